//! Errors of the index as a whole. What is wrong with one file is not an error but data: see [`crate::Refusal`].

use std::path::PathBuf;

use crate::embedder::EmbedError;

/// What can go wrong with the index itself; each says what was being done and where.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused something.
    #[error("cannot {doing} {}", .path.display())]
    Io {
        /// The verb, for the message.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// SQLite refused something.
    #[error("the index cannot {doing}")]
    Sqlite {
        /// The verb, for the message.
        doing: &'static str,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// Another process has the index open for writing.
    #[error("another process has the index in {} open", .dir.display())]
    Locked {
        /// The index folder.
        dir: PathBuf,
    },
    /// The file was written by a newer version.
    #[error("the index in {} has schema {found}, this program knows schemas up to {known}", .dir.display())]
    NewerSchema {
        /// The index folder.
        dir: PathBuf,
        /// The version in the file.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The SQLite library is older than the one known to be safe under WAL.
    #[error("SQLite {found} is too old, {needed} or newer is needed")]
    OldSqlite {
        /// The version linked.
        found: String,
        /// The oldest accepted.
        needed: &'static str,
    },
    /// A root must exist when it is added.
    #[error("there is no folder {}", .path.display())]
    RootMissing {
        /// The path as given.
        path: PathBuf,
    },
    /// A root must be a folder.
    #[error("{} is not a folder", .path.display())]
    RootNotAFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The path is not a root of this index.
    #[error("{} is not a watched folder", .path.display())]
    NotARoot {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder lies inside the index's own folder.
    #[error("{} belongs to the index itself and cannot be watched", .path.display())]
    RootHoldsIndex {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder shows the state of the system, and holds no files of anybody.
    #[error("{} is made by the system and holds no documents", .path.display())]
    SystemFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// No document of that path is known.
    #[error("no document {} is known", .path.display())]
    UnknownDocument {
        /// The path as given.
        path: PathBuf,
    },
    /// A vector search needs an embedder.
    #[error("a vector search needs an embedder, and none is set")]
    NoEmbedder,
    /// The embedder failed.
    #[error("the embedder failed")]
    Embed(#[from] EmbedError),
    /// The embedder returned what is not a unit vector of its own dimension.
    #[error("the embedder {id} returned an unusable vector: {what}")]
    BadVector {
        /// The embedder's id.
        id: String,
        /// What is wrong with it.
        what: String,
    },
    /// A row of the store does not hold what was written.
    #[error("the index is damaged: {what}")]
    Damaged {
        /// What was found.
        what: String,
    },
    /// The process that reads files cannot be started, or is not confined.
    #[error("no file can be read, since the process that reads them is not there: {what}")]
    Jail {
        /// Why.
        what: String,
    },
    /// The indexer is ending.
    #[error("the indexer is stopping")]
    Stopping,
    /// A forgotten document left traces.
    #[error("{traces} traces of {} are left in the index", .path.display())]
    NotForgotten {
        /// The document.
        path: PathBuf,
        /// How many rows, terms or byte strings were found.
        traces: usize,
    },
    /// A thread could not be started.
    #[error("cannot start the {name} thread")]
    Thread {
        /// Its name.
        name: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Folders cannot be watched for changes.
    #[error("cannot watch {} for changes", .path.display())]
    Watch {
        /// The root.
        path: PathBuf,
        /// Why.
        #[source]
        source: notify::Error,
    },
}

/// Attaches the verb to an SQLite error.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for rusqlite::Result<T> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Sqlite { doing, source })
    }
}
