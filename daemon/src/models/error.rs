//! Why a model could not be fetched, found or used.

use std::io;
use std::path::PathBuf;

use satchel_engine::error::LoadError;
use satchel_engine::import::ImportError;
use satchel_ipc::{Code, ErrorBody};

/// Any failure of the model store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The catalogue has no such name, and there is no such file.
    #[error("no model is called {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The model is known but its file is not here.
    #[error("the model {name} is not installed")]
    Missing {
        /// The model.
        name: String,
    },
    /// A file is no model that the engine can run.
    #[error("the model file {path} cannot be used: {source}", path = path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: LoadError,
    },
    /// A folder or file could not be converted.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The model has another role than it was asked for.
    #[error("{name} is {found}, not {wanted}")]
    WrongRole {
        /// The model.
        name: String,
        /// Its role.
        found: &'static str,
        /// The role asked for.
        wanted: &'static str,
    },
    /// A file or folder of the store failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that satchel wrote is not what it wrote.
    #[error("{path} is damaged: {source}", path = path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// Too little space on the disk.
    #[error("{path} has {has} bytes free and {needs} are needed", path = path.display())]
    DiskFull {
        /// The folder.
        path: PathBuf,
        /// Bytes needed.
        needs: u64,
        /// Bytes free.
        has: u64,
    },
    /// Another process is fetching or importing the same model.
    #[error("the model {name} is being fetched by another process")]
    Busy {
        /// The model.
        name: String,
    },
    /// The caller ended it; what was fetched is kept.
    #[error("cancelled; what was fetched of {name} is kept")]
    Cancelled {
        /// The model.
        name: String,
    },
    /// No source gave the model.
    #[error("{name} could not be fetched from any of its sources: {}", listed(attempts))]
    AllSources {
        /// The model.
        name: String,
        /// Each source, in words, and why it failed.
        attempts: Vec<(String, SourceError)>,
    },
    /// The name cannot be that of a file in the store.
    #[error("{name:?} cannot be a model's name: use letters, digits, '.', '-' and '_', at most 64")]
    BadName {
        /// The name.
        name: String,
    },
}

fn listed(attempts: &[(String, SourceError)]) -> String {
    let each: Vec<String> = attempts.iter().map(|(source, error)| format!("{source} ({error})")).collect();
    each.join(", then ")
}

/// Why one source failed; the next one is tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// No connection, or the connection broke and nothing more came.
    #[error("{0}")]
    Http(#[source] Box<ureq::Error>),
    /// The server answered with another status.
    #[error("the server answered {0}")]
    Status(u16),
    /// The body ended early or stalled.
    #[error("the connection broke off after {at} of {total} bytes: {source}")]
    Broken {
        /// Bytes at hand.
        at: u64,
        /// Bytes in all.
        total: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Another number of bytes than the catalogue says.
    #[error("{file} has {found} bytes instead of {expected}")]
    Size {
        /// The file.
        file: String,
        /// Its size.
        found: u64,
        /// The size in the catalogue.
        expected: u64,
    },
    /// Another content than the catalogue says.
    #[error("{file} is not the expected file: its SHA-256 is {found} instead of {expected}")]
    Hash {
        /// The file.
        file: String,
        /// Its hash.
        found: String,
        /// The hash in the catalogue.
        expected: String,
    },
    /// There is no Python to ask.
    #[error("neither python3 nor python runs `-m pip`")]
    NoPip,
    /// pip ended with an error.
    #[error("pip failed: {0}")]
    Pip(String),
    /// pip did nothing for a long time.
    #[error("pip received nothing for {0} seconds")]
    PipStalled(u64),
    /// A wheel is not what it should be.
    #[error("the wheel {wheel}: {what}")]
    Wheel {
        /// The wheel.
        wheel: String,
        /// What is wrong.
        what: String,
    },
    /// The folder that was named as a mirror does not have it.
    #[error("{0} is not there")]
    NotThere(String),
}

/// How the fetching of one source ended early.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The next source may do.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No source would do.
    #[error(transparent)]
    All(#[from] ModelError),
}

impl ModelError {
    /// A function that makes an [`ModelError::Io`] of what the system said.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// Its name on the wire, which decides the exit code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Unknown { .. } | Self::Missing { .. } | Self::AllSources { .. } => Code::ModelMissing,
            Self::Invalid { .. } | Self::Import(_) => Code::ModelInvalid,
            Self::WrongRole { .. } | Self::BadName { .. } => Code::BadRequest,
            Self::Busy { .. } => Code::Busy,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::Io { .. } | Self::Record { .. } | Self::DiskFull { .. } => Code::Error,
        }
    }

    /// What the person can do, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { .. } => Some("`satchel model list` shows the names; a path to a GGUF file does too".into()),
            Self::Invalid { .. } => {
                Some("fetch or copy the file anew; `satchel model list` shows what can be pulled".into())
            }
            Self::Missing { name } => Some(format!("satchel model pull {name}")),
            Self::DiskFull { .. } => Some("free some space, or keep models elsewhere with --home".into()),
            Self::Busy { .. } => Some("wait for it, or end it".into()),
            Self::Cancelled { name } => Some(format!("`satchel model pull {name}` goes on where it ended")),
            Self::AllSources { attempts, .. } => {
                let no_pip = attempts.iter().any(|(_, error)| matches!(error, SourceError::NoPip));
                Some(match no_pip {
                    true => "install Python with pip, or set HF_ENDPOINT to a mirror that you reach".into(),
                    false => "check the network, or take a file that you have with `satchel model import`".into(),
                })
            }
            _ => None,
        }
    }
}

impl From<ModelError> for ErrorBody {
    fn from(error: ModelError) -> Self {
        let body = Self::new(error.code(), error.to_string());
        match error.hint() {
            Some(hint) => body.with_hint(hint),
            None => body,
        }
    }
}
