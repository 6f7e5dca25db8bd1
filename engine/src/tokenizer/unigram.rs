//! SentencePiece's unigram model, which GGUF calls `t5`: of all ways to cut the text, the one with the highest sum of
//! scores. XLM-RoBERTa and the multilingual e5 use it.
//!
//! (The `tokenizers` crate has this model too, with a trie of hash maps that takes over 200 MiB for 250,000 tokens; this
//! one takes 10.)

use unicode_normalization::UnicodeNormalization;

use super::charsmap::CharsMap;
use super::spm::scores;
use super::vocabulary::{Hash, Kind, Vocabulary};
use crate::error::LoadError;
use crate::gguf::Metadata;

/// Bits of the filter for each token. Most tokens add one to three prefixes that no other has.
const FILTER_BITS_PER_TOKEN: usize = 32;
/// What an unknown character costs more than the worst token.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Scores, normalisation and the filter of prefixes.
#[derive(Debug)]
pub(super) struct Unigram {
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f64,
    charsmap: CharsMap,
    collapse_spaces: bool,
    space_prefix: bool,
    /// A Bloom filter, with one hash, of the prefixes of all tokens: tells early that no longer token can match.
    prefixes: Vec<u64>,
}

/// The best way to reach a place in the text.
#[derive(Debug, Clone, Copy)]
struct Step {
    score: f64,
    from: u32,
    id: u32,
}

impl Unigram {
    /// Reads the scores and the treatment of spaces.
    pub(super) fn read(
        metadata: &Metadata,
        vocabulary: &Vocabulary,
        unknown: Option<u32>,
        charsmap: CharsMap,
    ) -> Result<Self, LoadError> {
        let scores = scores(metadata, vocabulary)?.to_vec();
        let unknown =
            unknown.ok_or_else(|| LoadError::Tokenizer("a unigram model needs a token for the unknown".into()))?;
        let worst = vocabulary.of_kind(Kind::Normal).map(|id| scores[id as usize]).fold(0.0, f32::min);
        let flag = |key: &str| metadata.bool(key).map(|v| v.unwrap_or(true));
        let mut all = Self {
            scores,
            unknown,
            unknown_score: f64::from(worst) - UNKNOWN_PENALTY,
            charsmap,
            collapse_spaces: flag("tokenizer.ggml.remove_extra_whitespaces")?,
            space_prefix: flag("tokenizer.ggml.add_space_prefix")?,
            prefixes: vec![0; (vocabulary.len() * FILTER_BITS_PER_TOKEN).next_power_of_two() / 64],
        };
        for id in vocabulary.of_kind(Kind::Normal) {
            let mut hash = Hash::EMPTY;
            for byte in vocabulary.text(id) {
                hash = hash.with(*byte);
                let (word, bit) = all.place(hash);
                all.prefixes[word] |= bit;
            }
        }
        Ok(all)
    }

    /// Word and bit of a prefix in the filter.
    fn place(&self, hash: Hash) -> (usize, u64) {
        let place = hash.spread() & (self.prefixes.len() * 64 - 1);
        (place / 64, 1 << (place % 64))
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, text: &str, vocabulary: &Vocabulary, out: &mut Vec<u32>) {
        let text = self.normalize(text);
        let steps = self.best_steps(&text, vocabulary);
        let start = out.len();
        let mut at = text.len();
        while at > 0 {
            let step = steps[at];
            // Neighbouring unknown characters are one unknown token.
            if step.id != self.unknown || out.len() == start || out.last() != Some(&self.unknown) {
                out.push(step.id);
            }
            at = step.from as usize;
        }
        out[start..].reverse();
    }

    /// For each place in the text, the last step of the best way there.
    fn best_steps(&self, text: &str, vocabulary: &Vocabulary) -> Vec<Step> {
        let bytes = text.as_bytes();
        let unreached = Step { score: f64::NEG_INFINITY, from: 0, id: self.unknown };
        let mut steps = vec![unreached; bytes.len() + 1];
        steps[0].score = 0.0;
        for (start, c) in text.char_indices() {
            let here = steps[start].score;
            let next = start + c.len_utf8();
            let mut single = false;
            let mut hash = Hash::EMPTY;
            for end in start + 1..=bytes.len() {
                hash = hash.with(bytes[end - 1]);
                let (word, bit) = self.place(hash);
                if self.prefixes[word] & bit == 0 {
                    break;
                }
                if !text.is_char_boundary(end) {
                    continue;
                }
                if let Some(id) = vocabulary.find_hashed(hash, &bytes[start..end]) {
                    single |= end == next;
                    let score = here + f64::from(self.scores[id as usize]);
                    if score > steps[end].score {
                        steps[end] = Step { score, from: start as u32, id };
                    }
                }
            }
            let score = here + self.unknown_score;
            if !single && score > steps[next].score {
                steps[next] = Step { score, from: start as u32, id: self.unknown };
            }
        }
        steps
    }

    /// Rules, then spaces: runs become one, none at the ends, one before the text. Without rules in the file, the
    /// compatibility forms that SentencePiece's own rules come from.
    fn normalize(&self, text: &str) -> String {
        let mut mapped = if self.charsmap.is_empty() {
            text.nfkc().map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
        } else {
            self.charsmap.apply(text)
        };
        if mapped.contains('\u{2581}') {
            mapped = mapped.replace('\u{2581}', " ");
        }
        let mut out = String::with_capacity(mapped.len() + 1);
        if self.collapse_spaces {
            for word in mapped.split(' ').filter(|word| !word.is_empty()) {
                if !out.is_empty() || self.space_prefix {
                    out.push(' ');
                }
                out.push_str(word);
            }
        } else {
            if self.space_prefix {
                out.push(' ');
            }
            out.push_str(&mapped);
        }
        out
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        4 * self.scores.capacity() + 8 * self.prefixes.capacity() + self.charsmap.memory_bytes()
    }
}
