//! `POST /v1/search`.

use serde::{Deserialize, Serialize};

/// A search for passages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// The words or the question.
    pub query: String,
    /// How many passages; the daemon chooses when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Which rankings take part.
    #[serde(default)]
    pub mode: SearchMode,
    /// Which documents take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

/// Which rankings take part in a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// Full text and vectors, fused.
    #[default]
    Hybrid,
    /// Full text alone.
    Lexical,
    /// Vectors alone.
    Vector,
}

/// Restricts a search or a question to some documents. All given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// The path is one of these files or lies below one of these folders; none means any. On the wire a single
    /// path may stand alone: `"path_prefix": "/notes"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "one_or_many")]
    pub path_prefix: Vec<String>,
    /// The kind of file, such as `markdown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Modified at or after this time, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// Modified before this time, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<i64>,
}

/// What a search found, best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchReply {
    /// The passages.
    pub hits: Vec<Hit>,
    /// Time taken, in milliseconds.
    pub took_ms: u64,
    /// Generation of the index searched.
    pub generation: u64,
}

/// A passage and where it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The document: its path.
    pub document_id: String,
    /// The passage within the index.
    pub passage_id: i64,
    /// The file.
    pub path: String,
    /// The document's title or the heading above the passage; may be empty.
    pub title: String,
    /// Page, for paged kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The sheet, message, attachment or the like that it stands in, such as `sheet Costs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Who wrote the document, as it says itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was written or sent, as it says itself, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dated: Option<i64>,
    /// First line.
    pub line_start: u32,
    /// Last line.
    pub line_end: u32,
    /// First byte in the extracted text.
    pub byte_start: u64,
    /// Byte after the last one in the extracted text.
    pub byte_end: u64,
    /// Rank score; comparable within one reply only.
    pub score: f64,
    /// Cosine of the passage and the query, where both have vectors. What is close depends on the embedder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
    /// Share of the query's words that the passage has, from 0 to 1, rare ones counting more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// How likely it is, from 0 to 1, that the passage is about the query at all; absent where that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<f64>,
    /// Paths of other documents that say the same word for word; they are not listed as hits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The passage.
    pub text: String,
}

/// A string for a list of one, both ways.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged, expecting = "`path_prefix` is neither a path nor a list of paths")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        Ok(match Option::<OneOrMany>::deserialize(deserializer)? {
            None => Vec::new(),
            Some(OneOrMany::One(path)) => vec![path],
            Some(OneOrMany::Many(paths)) => paths,
        })
    }

    pub(super) fn serialize<S: Serializer>(paths: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        match paths {
            [one] => serializer.serialize_str(one),
            many => many.serialize(serializer),
        }
    }
}
