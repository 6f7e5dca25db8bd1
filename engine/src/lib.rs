//! Inference of GGUF models on the CPU: files in, tokens and vectors out.
//!
//! The engine knows nothing of documents, sockets or prompts. Matrices are row-major and named by their shape as
//! `(rows, columns)`; a weight matrix is `(outputs, inputs)`, activations are `(tokens, width)`. It is synchronous: one
//! session computes at a time on a [`pool::Pool`] of fixed workers.
#![deny(unsafe_code)]

pub mod error;
pub mod gguf;
pub mod limits;
#[allow(unsafe_code, reason = "memory mapping; argued in the file")]
mod mapping;
pub mod quant;
