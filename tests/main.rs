//! End-to-end tests: the real binary, real daemons, real models, real folders.
//!
//! A table of contents:

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

/// How the others run the binary, start and end daemons, and speak to their sockets.
mod harness;

/// Questions: right answers with true quotes, streams, abstentions, cancellation, hostile documents.
mod ask;
/// The fields of every reply, and who may open the socket.
mod contract;
/// Documents of many kinds: cited places.
mod documents;
/// One embedder takes over from another.
mod embedders;
/// Every error that a person can cause: one sentence, a hint, the right exit code, and nothing lost.
mod errors;
/// Folders that are strange, and folders that change while they are read.
mod folders;
/// What happens in a folder is seen in the index.
mod ingest;
/// The process that reads files: killed, refused, given what is meant to break it.
mod jail;
/// What computing takes of memory.
mod memory;
/// Daemons killed while they index.
mod recovery;
/// What may be written into a search.
mod search;
/// The repository itself: who depends on whom, links, sizes.
mod tidy;
