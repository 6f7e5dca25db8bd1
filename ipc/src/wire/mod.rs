//! The types on the wire, one file per noun. Requests refuse unknown fields, so that a typing error is told and
//! not ignored; replies accept them, so that an older client can read a newer daemon.
//!
//! Paths are UTF-8 strings (a daemon shows a name that is not UTF-8 in an escaped form). Times are whole seconds
//! since 1970-01-01 UTC. Byte ranges are half open, lines and pages count from 1 and are inclusive.

mod ask;
mod events;
mod files;
mod roots;
mod search;
mod status;

pub use ask::{AskReply, AskRequest, Citation, Role, Timings, Turn};
pub use events::{DownloadProgress, Event, IndexProgress, Quote};
pub use files::{FileEntry, FileState, FilesReply, FilesRequest, ForgetReply, ForgetRequest};
pub use roots::{RootEntry, RootRequest, RootState, RootsReply};
pub use search::{Filter, Hit, SearchMode, SearchReply, SearchRequest};
pub use status::{DaemonState, EmbedderStatus, IndexStatus, KernelStatus, MemoryStatus, ModelStatus, StatusReply};

#[cfg(test)]
mod tests;
