//! SentencePiece's BPE, which GGUF calls `llama`: no words, characters merge by the score of what they become.
//!
//! The rules have no list of pairs: two neighbours may merge if together they are a token. (The `tokenizers` crate needs
//! such a list; deriving it for 262,144 tokens gives 580,000 pairs and takes more memory than all else here.)

use std::borrow::Cow;

use super::merge::Merger;
use super::vocabulary::Vocabulary;
use crate::error::LoadError;
use crate::gguf::Metadata;

/// The scores and habits of a vocabulary.
#[derive(Debug)]
pub(super) struct Spm {
    /// By id; lower is merged earlier.
    ranks: Vec<u32>,
    /// A space is put before the text.
    space_prefix: bool,
    /// For bytes that have no token.
    unknown: Option<u32>,
}

impl Spm {
    /// Reads `tokenizer.ggml.scores` and its companions.
    pub(super) fn read(metadata: &Metadata, vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Self, LoadError> {
        let scores = scores(metadata, vocabulary)?;
        let space_prefix = metadata.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
        Ok(Self { ranks: scores.iter().map(|s| rank(*s)).collect(), space_prefix, unknown })
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, text: &str, vocabulary: &Vocabulary, out: &mut Vec<u32>) {
        let text = self.normalize(text);
        let mut merger = Merger::default();
        for (i, c) in text.char_indices() {
            let len = c.len_utf8();
            merger.push(i, len, vocabulary.find(&text.as_bytes()[i..i + len]));
        }
        merger.run(|l, r| {
            let id = vocabulary.find(&text.as_bytes()[l.start as usize..(r.start + r.len) as usize])?;
            Some((self.ranks[id as usize], id))
        });
        for symbol in merger.symbols() {
            match symbol.id {
                Some(id) => out.push(id),
                None => {
                    let bytes = &text.as_bytes()[symbol.start as usize..(symbol.start + symbol.len) as usize];
                    out.extend(bytes.iter().filter_map(|b| vocabulary.byte(*b).or(self.unknown)));
                }
            }
        }
    }

    /// U+2581 is another way to write the space.
    fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match (self.space_prefix, text.contains('\u{2581}')) {
            (false, false) => Cow::Borrowed(text),
            (false, true) => Cow::Owned(text.replace('\u{2581}', " ")),
            (true, _) => Cow::Owned(format!(" {}", text.replace('\u{2581}', " "))),
        }
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        4 * self.ranks.capacity()
    }
}

/// One finite score for each token.
pub(super) fn scores<'m>(metadata: &'m Metadata, vocabulary: &Vocabulary) -> Result<&'m [f32], LoadError> {
    const KEY: &str = "tokenizer.ggml.scores";
    let scores = metadata.floats(KEY)?.ok_or_else(|| LoadError::MissingKey(KEY.into()))?;
    let bad = |what| LoadError::BadKey { key: KEY.into(), what };
    if scores.len() != vocabulary.len() {
        return Err(bad(format!("has {} entries for {} tokens", scores.len(), vocabulary.len())));
    }
    match scores.iter().position(|s| !s.is_finite()) {
        Some(id) => Err(bad(format!("token {id} has the score {}", scores[id]))),
        None => Ok(scores),
    }
}

/// A number that falls as the score rises. 0.0 and -0.0 are one score.
fn rank(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    let rising = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    !rising
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_fall_as_scores_rise() {
        let scores = [-1000.0, -3.5, -1e-9, 0.0, 1e-9, 2.0, 3e8];
        assert!(scores.windows(2).all(|w| rank(w[0]) > rank(w[1])));
        assert_eq!(rank(0.0), rank(-0.0));
    }
}
