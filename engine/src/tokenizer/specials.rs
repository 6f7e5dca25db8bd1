//! Tokens that are cut out of the text whole, before the model sees the rest.

use super::vocabulary::{Kind, Vocabulary};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// A token named in the text.
    Token(u32),
    /// What lies between; never empty.
    Text(&'t str),
}

/// The control and user-defined tokens, by first byte, longest first.
#[derive(Debug)]
pub(super) struct Specials {
    by_first_byte: Vec<Vec<u32>>,
}

impl Specials {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let mut by_first_byte = vec![Vec::new(); 256];
        for id in [Kind::Control, Kind::Unknown, Kind::UserDefined].into_iter().flat_map(|k| vocabulary.of_kind(k)) {
            if let Some(first) = vocabulary.text(id).first() {
                by_first_byte[usize::from(*first)].push(id);
            }
        }
        for ids in &mut by_first_byte {
            ids.sort_by_key(|id| (std::cmp::Reverse(vocabulary.text(*id).len()), *id));
        }
        Self { by_first_byte }
    }

    /// Nothing is ever cut out.
    pub(super) fn none() -> Self {
        Self { by_first_byte: vec![Vec::new(); 256] }
    }

    /// Cuts `text` at the leftmost, longest tokens of the kinds that `wanted` holds for.
    pub(super) fn split<'t>(
        &self,
        text: &'t str,
        vocabulary: &Vocabulary,
        wanted: impl Fn(Kind) -> bool,
    ) -> Vec<Part<'t>> {
        let bytes = text.as_bytes();
        let mut parts = Vec::new();
        let (mut done, mut at) = (0, 0);
        while at < bytes.len() {
            let here = self.by_first_byte[usize::from(bytes[at])].iter().find(|id| {
                vocabulary.kind(**id).is_some_and(&wanted) && bytes[at..].starts_with(vocabulary.text(**id))
            });
            let Some(id) = here else {
                at += 1;
                continue;
            };
            // A token is whole UTF-8, so where it matches characters begin and end.
            if done < at {
                parts.push(Part::Text(&text[done..at]));
            }
            parts.push(Part::Token(*id));
            at += vocabulary.text(*id).len();
            done = at;
        }
        if done < bytes.len() {
            parts.push(Part::Text(&text[done..]));
        }
        parts
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.by_first_byte.iter().map(|ids| 24 + 4 * ids.capacity()).sum()
    }
}
