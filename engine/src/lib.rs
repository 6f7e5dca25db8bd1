//! Inference of GGUF models on the CPU: files in, tokens and vectors out.
//!
//! The engine knows nothing of documents, sockets or prompts. Matrices are row-major and named by their shape as
//! `(rows, columns)`; a weight matrix is `(outputs, inputs)`, activations are `(tokens, width)`. It is synchronous: one
//! session computes at a time on a [`pool::Pool`] of fixed workers.
#![deny(unsafe_code)]

mod cache;
pub mod chat;
mod embed;
pub mod error;
pub mod gguf;
pub mod import;
#[allow(unsafe_code, reason = "SIMD; argued in the files")]
pub mod kernels;
pub mod limits;
mod llm;
#[allow(unsafe_code, reason = "memory mapping; argued in the file")]
mod mapping;
#[allow(unsafe_code, reason = "threads write disjoint parts of shared buffers; argued in the files")]
mod model;
#[allow(unsafe_code, reason = "lends stack data to threads; argued in the file")]
pub mod pool;
pub mod quant;
pub mod sample;
mod session;
pub mod tokenizer;

pub use cache::{CacheType, KvCache};
pub use embed::Embedder;
pub use llm::Llm;
pub use model::{Architecture, Config, Logits, Pooling};
pub use session::Session;
pub use tokenizer::{Special, Tokenizer};
