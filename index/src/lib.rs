//! Documents → passages → hits.
//!
//! The index watches folders, reads the text of what is in them, cuts it into passages, and finds passages by words and by
//! meaning. It knows nothing of models (it is given an [`Embedder`]), of sockets, or of prompts, and it starts no runtime:
//! all calls are synchronous and may be made from any thread.
//!
//! SQLite is the truth: texts, spans, full-text postings and vectors, one transaction for each document. What is in memory
//! (a table for filters and scores, lists of passages that are alike) is derived from it and rebuilt whenever it is lacking. File events are
//! hints; the scan that compares folders with the store is the truth about files.
//!
//! Files are parsed in a confined process ([`Jail`]), never in this one.
//!
//! What is wrong with a single file is data, listed with a reason; [`Error`] is for the index as a whole.

mod beneath;
mod chunk;
mod dot;
mod embedder;
mod embedders;
mod embedding;
mod error;
mod extract;
mod forget;
mod graph;
mod index;
mod ingest;
mod jail;
mod kept;
mod language;
mod lexical;
pub mod limits;
mod lists;
mod nearest;
mod passwords;
mod phrase;
mod pipeline;
mod progress;
mod relevance;
mod remaining;
mod repeats;
mod resident;
mod rules;
mod scan;
mod search;
mod spelling;
mod store;
mod terms;
#[cfg(test)]
mod testing;
mod types;
mod verify;
mod watch;

pub use embedder::{EmbedError, Embedder};
pub use error::Error;
pub use extract::date::parse_iso;
pub use extract::{Context, Extracted, Format, Heading, Limits, Part, PartKind, Refusal, extract};
pub use index::Index;
pub use jail::{Jail, JailMemory, Level, WorkerCommand, confined, run_worker, worker_if_asked};
pub use pipeline::Indexer;
pub use progress::{Event, OnEvent, Progress};
pub use relevance::Calibration;
pub use types::{
    Counts, FileInfo, FilesQuery, Filter, Forgotten, Freshness, Hit, Kind, Mode, Query, Root, RootState, SearchResult,
    State, display_path,
};
