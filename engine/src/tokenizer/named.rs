//! Tokens that the file names by purpose, and those known by their names.

use super::vocabulary::{Kind, Vocabulary};
use crate::error::LoadError;
use crate::gguf::Metadata;

/// Tokens that end an answer in known models.
const ENDS: [&str; 9] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
];

/// Tokens that begin a turn in known models.
const STARTS: [&str; 5] = [
    "<|im_start|>",
    "<start_of_turn>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>",
];

/// The ids of the keys `tokenizer.ggml.*_token_id`.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    eot: Option<u32>,
    eom: Option<u32>,
    pub(super) unknown: Option<u32>,
    pub(super) cls: Option<u32>,
    pub(super) separator: Option<u32>,
}

impl Named {
    pub(super) fn read(metadata: &Metadata) -> Result<Self, LoadError> {
        let id = |name: &str| metadata.u32(&format!("tokenizer.ggml.{name}_token_id"));
        Ok(Self {
            bos: id("bos")?,
            eos: id("eos")?,
            eot: id("eot")?,
            eom: id("eom")?,
            unknown: id("unknown")?,
            cls: id("cls")?,
            // The format's own spelling.
            separator: id("seperator")?,
        })
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        [self.bos, self.eos, self.eot, self.eom, self.cls, self.separator].into_iter().flatten()
    }

    /// Whether a token is a control token whatever its type in the file: some files call the ends of turns plain text.
    pub(super) fn is_structural(&self, id: u32, name: &str) -> bool {
        self.all().any(|named| named == id) || ENDS.contains(&name) || STARTS.contains(&name)
    }

    /// Refuses ids outside a vocabulary of that size.
    pub(super) fn check(&self, vocab: usize) -> Result<(), LoadError> {
        match self.all().chain(self.unknown).find(|id| *id as usize >= vocab) {
            Some(id) => {
                Err(LoadError::Tokenizer(format!("the special token {id} is outside the vocabulary of {vocab}")))
            }
            None => Ok(()),
        }
    }

    /// All tokens that end an answer, sorted.
    pub(super) fn ends(&self, vocabulary: &Vocabulary) -> Vec<u32> {
        let by_name = vocabulary
            .of_kind(Kind::Control)
            .filter(|id| ENDS.iter().any(|name| name.as_bytes() == vocabulary.text(*id)));
        let mut ends: Vec<u32> = by_name.chain([self.eos, self.eot, self.eom].into_iter().flatten()).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}
