//! Turns embedders as they are published into GGUF files, which is all that the engine runs.
//!
//! Two forms are known: a folder with `config.json`, `tokenizer.json` and `model.safetensors` (BERT and its
//! multilingual kin), and the single `.bin` file of 4-bit e5. Everything read here is untrusted: sizes are checked
//! against the file before they are believed, and nothing is written before the whole source was checked.

mod bert;
mod charsmap;
mod e5;
mod encoder;
mod safetensors;
mod vocabulary;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::LoadError;
use crate::gguf::WriteError;

/// Why a model could not be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file of the source could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Neither of the known forms.
    #[error(
        "{path} is no model that can be imported: expected a GGUF file, a folder with config.json, tokenizer.json \
         and model.safetensors, or an e5 .bin file", path = path.display()
    )]
    Unknown {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file is cut short or has a field out of bounds.
    #[error("{path}: {source}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: LoadError,
    },
    /// A file holds something that is wrong or not supported.
    #[error("{path}: {what}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file is not the JSON that it should be.
    #[error("{path} is not valid JSON: {source}", path = path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The result could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// What the source does not say about itself; it goes into the file's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCard {
    /// `general.name`.
    pub name: String,
    /// `general.license`, as an SPDX identifier.
    pub license: Option<String>,
    /// Put before a query, e.g. `query: `. None takes what the source says, else nothing.
    pub query_prefix: Option<String>,
    /// Put before a passage. None takes what the source says, else nothing.
    pub passage_prefix: Option<String>,
}

/// What a path holds, by its first bytes and names alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A GGUF file, to be used as it is.
    Gguf,
    /// A folder with `model.safetensors`.
    Safetensors,
    /// 4-bit e5.
    E5,
}

/// Looks at a path.
///
/// # Errors
/// [`ImportError::Io`] and [`ImportError::Unknown`].
pub fn detect(path: &Path) -> Result<SourceKind, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    let unknown = || ImportError::Unknown { path: path.to_owned() };
    if metadata.is_dir() {
        return if path.join("model.safetensors").is_file() { Ok(SourceKind::Safetensors) } else { Err(unknown()) };
    }
    // A pipe would block for ever.
    if !metadata.is_file() {
        return Err(unknown());
    }
    let mut magic = Vec::new();
    File::open(path).and_then(|f| f.take(4).read_to_end(&mut magic)).map_err(io)?;
    match magic.as_slice() {
        b"GGUF" => Ok(SourceKind::Gguf),
        e5::MAGIC => Ok(SourceKind::E5),
        _ => Err(unknown()),
    }
}

/// Converts a folder or `.bin` file to GGUF, written to `out`. A GGUF file is refused: it needs no conversion.
///
/// # Errors
/// An [`ImportError`] that says what is wrong and where; `out` may then hold a part.
pub fn import(path: &Path, card: &ModelCard, out: &mut dyn Write) -> Result<(), ImportError> {
    match detect(path)? {
        SourceKind::Gguf => Err(unsupported(path, "it is GGUF already and needs no conversion")),
        SourceKind::Safetensors => bert::import(path, card, out),
        SourceKind::E5 => e5::import(path, card, out),
    }
}

fn unsupported(path: &Path, what: impl Into<String>) -> ImportError {
    ImportError::Unsupported { path: path.to_owned(), what: what.into() }
}

/// A whole file of at most `limit` bytes.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ImportError> {
    let io = |source| ImportError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(unsupported(path, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return Err(unsupported(path, format!("more than the {limit} bytes allowed")));
    }
    Ok(bytes)
}

/// A JSON file of at most `limit` bytes.
fn read_json(path: &Path, limit: u64) -> Result<serde_json::Value, ImportError> {
    let bytes = read_bounded(path, limit)?;
    serde_json::from_slice(&bytes).map_err(|source| ImportError::Json { path: path.to_owned(), source })
}
