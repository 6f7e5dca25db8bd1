//! Byte-level BPE, as of GPT-2: split by a pattern, then merge bytes by the rank of the pair.

use super::merge::Merger;
use super::split::Splitter;
use super::vocabulary::{Spelling, Vocabulary, push_spelled};
use crate::error::LoadError;
use crate::gguf::Metadata;
use crate::limits::MAX_PROBES;

/// Merge rules and the splitter.
#[derive(Debug)]
pub(super) struct Bpe {
    splitter: Splitter,
    merges: Merges,
    /// A word that is a token as it stands is taken whole, whatever the merges would make of it.
    whole_words: bool,
}

impl Bpe {
    /// Reads `tokenizer.ggml.pre` and `tokenizer.ggml.merges`.
    pub(super) fn read(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Self, LoadError> {
        let name = metadata.need_str("tokenizer.ggml.pre")?;
        let (splitter, whole_words) = Splitter::named(name)?;
        let rules = metadata
            .strings("tokenizer.ggml.merges")?
            .ok_or_else(|| LoadError::MissingKey("tokenizer.ggml.merges".into()))?;
        Ok(Self { splitter, merges: Merges::new(rules, vocabulary)?, whole_words })
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, text: &str, vocabulary: &Vocabulary, out: &mut Vec<u32>) {
        let mut merger = Merger::default();
        self.splitter.split(text, &mut |word| {
            if self.whole_words
                && let Some(id) = vocabulary.find(word.as_bytes())
            {
                out.push(id);
                return;
            }
            merger.clear();
            for (i, byte) in word.bytes().enumerate() {
                merger.push(i, 1, vocabulary.byte(byte));
            }
            merger.run(|l, r| self.merges.get(l.id?, r.id?));
            // A byte without a token is left out, as the models' own tokenizers do; real vocabularies lack only
            // bytes that no UTF-8 holds.
            out.extend(merger.symbols().filter_map(|s| s.id));
        });
    }

    /// Bytes of memory held, the pattern's machine not counted.
    pub(super) fn memory_bytes(&self) -> usize {
        self.merges.slots.capacity() * size_of::<Merge>()
    }
}

/// A rule: two tokens become one.
#[derive(Debug, Clone, Copy)]
struct Merge {
    left: u32,
    right: u32,
    rank: u32,
    id: u32,
}

/// Marks a free slot.
const FREE: u32 = u32::MAX;

/// Merge rules by pair, in a table with open addressing.
#[derive(Debug)]
struct Merges {
    slots: Vec<Merge>,
}

impl Merges {
    /// From lines of the form `left right`, best first.
    fn new(rules: &[String], vocabulary: &Vocabulary) -> Result<Self, LoadError> {
        if rules.is_empty() {
            return Err(LoadError::Tokenizer("there are no merge rules".into()));
        }
        let slots = (rules.len() * 3 / 2).next_power_of_two();
        let mut all = Self { slots: vec![Merge { left: FREE, right: 0, rank: 0, id: 0 }; slots] };
        let mut bytes = Vec::new();
        for (rank, rule) in rules.iter().enumerate() {
            let broken = |what: &str| LoadError::Tokenizer(format!("merge rule {rank}, {rule:?}, {what}"));
            // No spelling has a space in it.
            let (left, right) = rule.split_once(' ').ok_or_else(|| broken("is no pair"))?;
            bytes.clear();
            push_spelled(left, Spelling::ByteLevel, &mut bytes);
            let middle = bytes.len();
            push_spelled(right, Spelling::ByteLevel, &mut bytes);
            let find = |text: &[u8]| vocabulary.find(text).ok_or_else(|| broken("names a token that there is not"));
            let (left, right, id) = (find(&bytes[..middle])?, find(&bytes[middle..])?, find(&bytes)?);
            all.insert(Merge { left, right, rank: rank as u32, id }).ok_or_else(|| broken("repeats another"))?;
        }
        Ok(all)
    }

    fn slot(&self, left: u32, right: u32) -> usize {
        let key = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (key >> 24) as usize & (self.slots.len() - 1)
    }

    /// None when the pair is there already, or when too many pairs share a place.
    fn insert(&mut self, merge: Merge) -> Option<()> {
        let mut slot = self.slot(merge.left, merge.right);
        for _ in 0..MAX_PROBES {
            let found = self.slots[slot];
            if found.left == FREE {
                self.slots[slot] = merge;
                return Some(());
            }
            if (found.left, found.right) == (merge.left, merge.right) {
                return None;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// Rank and result of a pair.
    fn get(&self, left: u32, right: u32) -> Option<(u32, u32)> {
        let mut slot = self.slot(left, right);
        loop {
            let found = self.slots[slot];
            if found.left == FREE {
                return None;
            }
            if (found.left, found.right) == (left, right) {
                return Some((found.rank, found.id));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}
