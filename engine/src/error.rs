//! Errors: loading a model, and running it.

use std::path::PathBuf;

/// Why a model file was not accepted. Each variant says what is wrong and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file could not be opened, read or mapped.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The first four bytes are not `GGUF`.
    #[error("not a GGUF file (it begins with {found:?})")]
    NotGguf {
        /// The bytes found instead of the magic.
        found: Vec<u8>,
    },
    /// Written for big-endian machines.
    #[error("the file is big-endian GGUF; only little-endian files are supported")]
    BigEndian,
    /// A version other than 2 and 3.
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    /// The file ends before what its header promises.
    #[error("the file is truncated: {what} needs bytes {from}..{to}, but it has {have} bytes")]
    Truncated {
        /// The item being read.
        what: String,
        /// First byte needed.
        from: u64,
        /// One past the last byte needed.
        to: u64,
        /// The size of the file.
        have: u64,
    },
    /// A count or length beyond `limits.rs`.
    #[error("{what} at byte {at} is {value}, more than the {limit} allowed")]
    TooLarge {
        /// The item.
        what: String,
        /// Its place in the file.
        at: u64,
        /// Its value.
        value: u64,
        /// The bound.
        limit: u64,
    },
    /// A field that the format does not allow.
    #[error("malformed header at byte {at}: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// Its place in the file.
        at: u64,
    },
    /// A metadata key is absent.
    #[error("metadata key {0} is missing")]
    MissingKey(String),
    /// A metadata value is of the wrong type or out of range.
    #[error("metadata key {key}: {what}")]
    BadKey {
        /// The key.
        key: String,
        /// What is wrong with it.
        what: String,
    },
    /// `general.architecture` names a family that this engine does not run.
    #[error("architecture {0:?} is not supported (llama, qwen2, gemma3 and bert are)")]
    Architecture(String),
    /// A tensor is stored in a type that this engine does not read.
    #[error("tensor {tensor}: type {id} ({name}) is not supported")]
    TensorType {
        /// The tensor.
        tensor: String,
        /// The type's number in the file.
        id: u32,
        /// Its name, where known.
        name: &'static str,
    },
    /// A tensor that the architecture needs is absent.
    #[error("tensor {0} is missing")]
    MissingTensor(String),
    /// A tensor has another shape than the metadata implies.
    #[error("tensor {tensor} has the shape {found:?}, expected {expected:?}")]
    Shape {
        /// The tensor.
        tensor: String,
        /// Its dimensions, fastest first.
        found: Vec<u64>,
        /// What was expected.
        expected: Vec<u64>,
    },
    /// A tensor's place or size in the file is inconsistent.
    #[error("tensor {tensor}: {what}")]
    TensorLayout {
        /// The tensor.
        tensor: String,
        /// What is wrong.
        what: String,
    },
    /// The tokenizer cannot be built from the file.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The chat template cannot be used.
    #[error("chat template: {0}")]
    ChatTemplate(String),
}

/// Why a loaded model could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// More tokens than the context holds; nothing is ever cut silently.
    #[error("too long: {needed} tokens > {limit}")]
    TooLong {
        /// Tokens asked for.
        needed: usize,
        /// Tokens that fit.
        limit: usize,
    },
    /// The caller's cancel flag was set.
    #[error("cancelled")]
    Cancelled,
    /// The model is of the wrong kind for this call (an embedder asked to generate, or the reverse).
    #[error("model is not {0}")]
    WrongKind(&'static str),
    /// Text could not be tokenized or a prompt not rendered.
    #[error("{0}")]
    Text(String),
    /// A token id outside the vocabulary.
    #[error("token {id} is outside the vocabulary of {vocab}")]
    BadToken {
        /// The id.
        id: u32,
        /// The vocabulary's size.
        vocab: usize,
    },
    /// The model produced values that are not numbers: a broken file.
    #[error("the model produced values that are not numbers; the file is probably damaged")]
    NotFinite,
}
