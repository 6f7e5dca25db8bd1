//! `POST /v1/ask`.

use serde::{Deserialize, Serialize};

use super::{Filter, Hit};

/// A question about the documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskRequest {
    /// The question.
    pub question: String,
    /// How many passages to read; the daemon chooses when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Longest answer in tokens; the daemon chooses when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Whether the answer comes as events.
    #[serde(default)]
    pub stream: bool,
    /// Time allowed, in milliseconds. Past it the work is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Which documents take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// The turns before this question, oldest first. The daemon keeps no conversation of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversation: Vec<Turn>,
    /// Answer from these texts alone, without retrieval. An empty list is a list: it has no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passages: Option<Vec<String>>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Who spoke.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// Who spoke in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person.
    User,
    /// satchel.
    Assistant,
}

/// The whole answer: the reply of `stream: false` and the `done` event of `stream: true`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AskReply {
    /// The answer, or a sentence that there is none.
    pub answer: String,
    /// Whether the documents do not hold the answer.
    pub abstained: bool,
    /// Sentences of the model that no passage supports; they are not in the answer.
    #[serde(default)]
    pub withheld: u32,
    /// What supports the answer.
    pub citations: Vec<Citation>,
    /// The passages read.
    pub sources: Vec<Hit>,
    /// Where the time went.
    pub timings: Timings,
}

/// A place in a document that supports a part of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    /// The number in the answer, from 1.
    pub n: u32,
    /// The document: its path.
    pub document_id: String,
    /// The file.
    pub path: String,
    /// Page, for paged kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// First line of the quote.
    pub line_start: u32,
    /// Last line of the quote.
    pub line_end: u32,
    /// The text at `byte_start..byte_end` of the extracted text, byte for byte.
    pub quote: String,
    /// First byte of the quote.
    pub byte_start: u64,
    /// Byte after the quote.
    pub byte_end: u64,
    /// Whether the file was read again and still holds the quote there.
    pub verified: bool,
}

/// Where the time of an answer went, in milliseconds, and its tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// Finding the passages.
    pub retrieve_ms: u64,
    /// Prefill of the prompt.
    pub prefill_ms: u64,
    /// From the request to the first token.
    pub first_token_ms: u64,
    /// From the request to the end.
    pub total_ms: u64,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the prompt whose keys and values were at hand.
    pub reused_tokens: u64,
    /// Tokens generated.
    pub generated_tokens: u64,
}
