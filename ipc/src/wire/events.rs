//! The events of `POST /v1/ask` with `stream: true` and of `GET /v1/events`, one JSON object a line.

use serde::{Deserialize, Serialize};

use super::{AskReply, Citation, DaemonState, FileEntry, Hit, RootEntry};
use crate::error::ErrorBody;

/// One line of a stream: `{"event": NAME, ...}`. Readers pass over names that they do not know.
///
/// An `ask` stream is `sources`, then any of `quote`, `token` and `citation`, then one `done` or `error`.
/// An `events` stream has the others and ends with `error` (`cancelled`) when the daemon stops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The passages that the answer will be written from.
    Sources {
        /// The passages.
        sources: Vec<Hit>,
    },
    /// A passage's best sentence, shown before the first token.
    Quote(Quote),
    /// A piece of the answer.
    Token {
        /// The piece: whole characters.
        text: String,
    },
    /// A citation of the answer so far.
    Citation(Citation),
    /// The end: the whole answer.
    Done(Box<AskReply>),
    /// The end: no answer.
    Error {
        /// Why.
        error: ErrorBody,
    },
    /// Nothing new, and both sides are alive.
    Heartbeat,
    /// The daemon's state changed.
    State {
        /// The new state.
        state: DaemonState,
    },
    /// How far the index is.
    Progress(IndexProgress),
    /// How far a model's download is.
    Download(DownloadProgress),
    /// A watched folder was added, changed its state, or was removed (then it no longer is in `roots`).
    Root {
        /// The folder.
        root: RootEntry,
    },
    /// A file changed its state.
    File {
        /// The file.
        file: FileEntry,
    },
    /// An event of a newer daemon.
    #[serde(other)]
    Unknown,
}

/// A sentence of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Position of the passage in `sources`, from 0.
    pub source: u32,
    /// The file.
    pub path: String,
    /// Page, for paged kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// First line.
    pub line_start: u32,
    /// Last line.
    pub line_end: u32,
    /// The sentence, byte for byte.
    pub text: String,
}

/// How far the index is. `done` and `total` count the work since the daemon was last idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexProgress {
    /// Files in a final state.
    pub files_done: u64,
    /// Files to do in all.
    pub files_total: u64,
    /// Bytes of the files done.
    pub bytes_done: u64,
    /// Bytes of all files to do.
    pub bytes_total: u64,
    /// The file in work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Recent rate in files a second.
    #[serde(default)]
    pub files_per_s: f64,
    /// Recent rate in bytes a second.
    #[serde(default)]
    pub bytes_per_s: f64,
    /// Estimated time to the end, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
}

/// How far a download is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DownloadProgress {
    /// The model.
    pub name: String,
    /// Where it comes from, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Bytes at hand.
    pub bytes_done: u64,
    /// Bytes in all, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// Recent rate in bytes a second.
    #[serde(default)]
    pub bytes_per_s: f64,
    /// Estimated time to the end, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
}
