//! `GET`, `POST` and `DELETE /v1/roots`.

use serde::{Deserialize, Serialize};

/// The folder to watch, or to watch no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootRequest {
    /// Absolute path of the folder; all its subfolders belong to it.
    pub path: String,
}

/// All watched folders; the reply of all three methods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootsReply {
    /// The folders, by path.
    pub roots: Vec<RootEntry>,
}

/// One watched folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootEntry {
    /// Its absolute path, with links resolved.
    pub path: String,
    /// How far it is.
    pub state: RootState,
    /// Files known in it, in any state.
    #[serde(default)]
    pub files: u64,
    /// Files that wait to be indexed.
    #[serde(default)]
    pub pending: u64,
    /// Why it is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a watched folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootState {
    /// Its files are being listed for the first time since it was added.
    Scanning,
    /// Listed; some files are pending.
    Indexing,
    /// Every file of it is in a final state.
    Ready,
    /// The folder cannot be read (unmounted, permission): what is indexed of it is kept.
    Unavailable,
    /// A state of a newer daemon.
    #[serde(other)]
    Unknown,
}

impl RootState {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scanning => "scanning",
            Self::Indexing => "indexing",
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}
