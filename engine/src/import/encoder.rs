//! Hyperparameters of an encoder, checked and written as metadata.

use std::path::Path;

use super::{ImportError, ModelCard, unsupported};
use crate::gguf::{GgufWriter, Value};
use crate::limits::{MAX_CONTEXT, MAX_HEADS, MAX_LAYERS, MAX_VOCAB, MAX_WIDTH};
use crate::quant::TensorType;

/// What both sources tell about their encoder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Encoder {
    pub(super) width: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) ffn: u64,
    pub(super) vocab: u64,
    /// Positions that a text may use.
    pub(super) context: u64,
    pub(super) token_types: u64,
    pub(super) eps: f32,
    /// As in `pooling_type`: 1 mean, 2 first token, 3 last token.
    pub(super) pooling: u64,
}

impl Encoder {
    /// Refuses what the engine would refuse, before anything is computed from it.
    pub(super) fn check(&self, path: &Path) -> Result<(), ImportError> {
        let bounds = [
            ("width", self.width, u64::from(MAX_WIDTH)),
            ("layers", self.layers, u64::from(MAX_LAYERS)),
            ("heads", self.heads, u64::from(MAX_HEADS)),
            ("feed-forward width", self.ffn, u64::from(MAX_WIDTH)),
            ("vocabulary", self.vocab, MAX_VOCAB as u64),
            ("positions", self.context, MAX_CONTEXT as u64),
            // Types of tokens mark first and second sentence; more than a few are unheard of.
            ("token types", self.token_types, 16),
        ];
        for (name, value, limit) in bounds {
            if value == 0 || value > limit {
                return Err(unsupported(path, format!("{name}: {value} is outside 1..={limit}")));
            }
        }
        if !self.width.is_multiple_of(self.heads) {
            return Err(unsupported(path, format!("{} heads do not divide the width {}", self.heads, self.width)));
        }
        if !(self.eps.is_finite() && self.eps > 0.0) {
            return Err(unsupported(path, format!("the layer norm's epsilon is {}", self.eps)));
        }
        Ok(())
    }

    /// A file with all keys but those of the tokenizer. `matrices` is the type of most matrices.
    pub(super) fn header(&self, card: &ModelCard, matrices: TensorType) -> GgufWriter {
        let mut file = GgufWriter::new("bert");
        file.set("general.name", &Value::String(card.name.clone()));
        if let Some(license) = &card.license {
            file.set("general.license", &Value::String(license.clone()));
        }
        // The format's own numbers for "mostly" this type.
        let file_type = if matrices == TensorType::Q4_0 { 2 } else { 7 };
        let numbers = [
            ("general.quantization_version", 2),
            ("general.file_type", file_type),
            ("bert.context_length", self.context),
            ("bert.embedding_length", self.width),
            ("bert.block_count", self.layers),
            ("bert.feed_forward_length", self.ffn),
            ("bert.attention.head_count", self.heads),
            ("bert.pooling_type", self.pooling),
            ("tokenizer.ggml.token_type_count", self.token_types),
        ];
        for (key, value) in numbers {
            file.set(key, &Value::Unsigned(value));
        }
        file.set("bert.attention.layer_norm_epsilon", &Value::Float(self.eps.into()));
        file.set("bert.attention.causal", &Value::Bool(false));
        for (key, prefix) in
            [("satchel.embed.query_prefix", &card.query_prefix), ("satchel.embed.passage_prefix", &card.passage_prefix)]
        {
            file.set(key, &Value::String(prefix.clone().unwrap_or_default()));
        }
        file
    }
}
