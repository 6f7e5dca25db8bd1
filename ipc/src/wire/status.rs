//! `GET /v1/status`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The daemon at a glance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The daemon's version.
    pub version: String,
    /// The daemon's process id.
    pub pid: u32,
    /// What it is doing.
    pub state: DaemonState,
    /// The language model in use; absent until one is chosen.
    pub model: Option<ModelStatus>,
    /// The embedding model in use; absent until one is chosen.
    pub embedder: Option<EmbedderStatus>,
    /// Counts of the index.
    pub index: IndexStatus,
    /// The memory budget and what is used of it.
    pub memory: MemoryStatus,
    /// The kernels in use.
    pub kernels: KernelStatus,
    /// Age of the oldest change that is not yet searchable, in milliseconds; 0 when there is none.
    pub index_lag_ms: u64,
    /// Things a person should know: a watcher at its limit, an unmounted root, and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What the daemon is doing. Several at once may be true; the first of this list that is wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DaemonState {
    /// Opening its files.
    #[default]
    Starting,
    /// Fetching a model.
    Downloading,
    /// Loading a model.
    Loading,
    /// Bringing the index up to date.
    Indexing,
    /// Everything known is searchable.
    Ready,
    /// Ending.
    Stopping,
    /// A state of a newer daemon.
    #[serde(other)]
    Unknown,
}

impl DaemonState {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Downloading => "downloading",
            Self::Loading => "loading",
            Self::Indexing => "indexing",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::Unknown => "unknown",
        }
    }
}

/// The language model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelStatus {
    /// Catalogue name or file name.
    pub name: String,
    /// Architecture, such as `qwen2`.
    pub arch: String,
    /// The prevailing tensor type, such as `Q4_K_M`.
    pub quant: String,
    /// Context in tokens.
    pub context: u64,
}

/// The embedding model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedderStatus {
    /// Catalogue name or file name.
    pub name: String,
    /// Dimensions of a vector.
    pub dim: u64,
}

/// Counts of files by state, and the size of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexStatus {
    /// Files that are indexed.
    pub documents: u64,
    /// Passages of those files.
    pub passages: u64,
    /// Files waiting to be indexed.
    pub pending: u64,
    /// Files that could not be read or understood.
    pub failed: u64,
    /// Files left out by rule.
    pub excluded: u64,
    /// Files behind a password.
    #[serde(default)]
    pub locked: u64,
    /// Files of images only.
    #[serde(default)]
    pub needs_ocr: u64,
    /// Files without text.
    #[serde(default)]
    pub empty: u64,
    /// Rises with each change of the index.
    pub generation: u64,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Memory of the daemon and its children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// The promise, in bytes; absent when none is set.
    pub budget_bytes: Option<u64>,
    /// Resident now, in bytes.
    pub resident_bytes: u64,
    /// The highest so far, in bytes.
    pub peak_resident_bytes: u64,
    /// KV cache, in bytes.
    pub kv_bytes: u64,
}

/// Which kernels run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelStatus {
    /// The instruction set, such as `avx2`.
    pub isa: String,
    /// Kernel name by tensor type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tensor_types: BTreeMap<String, String>,
}
