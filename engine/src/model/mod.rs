//! Models: what the metadata says, where the weights lie, and the passes over them.

mod config;
mod encoder;
mod forward;
mod linear;
mod rope;
mod weights;

pub use config::{Architecture, Config, Pooling};
pub(crate) use encoder::Encoder;
pub use encoder::EncoderScratch;
pub(crate) use forward::Decoder;
pub use forward::{Logits, Scratch};
pub(crate) use linear::{Compute, WorkerScratch, workers};
pub use weights::Weights;
