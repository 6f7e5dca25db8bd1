//! `GET /v1/files` and `POST /v1/forget`.

use serde::{Deserialize, Serialize};

/// Which files to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesRequest {
    /// Only files in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<FileState>,
    /// Only this file, or files below this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only files whose path sorts after this one: the `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Longest page; the daemon chooses when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of known files, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesReply {
    /// The files.
    pub files: Vec<FileEntry>,
    /// The `after` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One known file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The file.
    pub path: String,
    /// Its state.
    pub state: FileState,
    /// Why it is in that state, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when, seconds since 1970.
    pub since: i64,
    /// The kind of file, such as `markdown`.
    pub kind: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Passages in the index.
    pub passages: u64,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Searchable.
    Indexed,
    /// Waiting.
    Pending,
    /// Could not be read or understood.
    Failed,
    /// Behind a password.
    Locked,
    /// Images only.
    NeedsOcr,
    /// No text in it.
    Empty,
    /// Left out by rule.
    Excluded,
}

impl FileState {
    /// All states.
    pub const ALL: [FileState; 7] =
        [Self::Indexed, Self::Pending, Self::Failed, Self::Locked, Self::NeedsOcr, Self::Empty, Self::Excluded];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Indexed => "indexed",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Locked => "locked",
            Self::NeedsOcr => "needs_ocr",
            Self::Empty => "empty",
            Self::Excluded => "excluded",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The document to remove from the index. The file itself is not touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForgetRequest {
    /// The file, or a folder for all files below it.
    pub path: String,
}

/// What was removed, and the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetReply {
    /// The path asked for.
    pub path: String,
    /// Documents removed.
    pub documents: u64,
    /// Passages removed, with their full text and vectors.
    pub passages: u64,
    /// Traces found by looking again afterwards; 0 is the proof.
    pub remaining: u64,
}
