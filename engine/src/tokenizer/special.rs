//! Tokens that are matched in a text as whole words, before it is cut further.

use std::collections::HashMap;

/// A stretch of text, or a token found in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Token(u32),
}

/// Finds words of a fixed list; of several at one place the longest wins.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    /// Words by their first byte, longest first.
    by_first: HashMap<u8, Vec<(String, u32)>>,
}

impl Matcher {
    /// Words must come longest first.
    pub(super) fn new(words: Vec<(String, u32)>) -> Self {
        let mut by_first: HashMap<u8, Vec<(String, u32)>> = HashMap::new();
        for (word, id) in words {
            if let Some(first) = word.bytes().next() {
                by_first.entry(first).or_default().push((word, id));
            }
        }
        Self { by_first }
    }

    /// Splits every text part at the words in it.
    pub(super) fn split<'a>(&self, parts: Vec<Part<'a>>) -> Vec<Part<'a>> {
        if self.by_first.is_empty() {
            return parts;
        }
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Text(text) => self.split_text(text, &mut out),
                token @ Part::Token(_) => out.push(token),
            }
        }
        out
    }

    fn split_text<'a>(&self, text: &'a str, out: &mut Vec<Part<'a>>) {
        let (mut from, mut at) = (0, 0);
        while at < text.len() {
            let Some((word, id)) = self.word_at(&text.as_bytes()[at..]) else {
                at += 1;
                continue;
            };
            if from < at {
                out.push(Part::Text(&text[from..at]));
            }
            out.push(Part::Token(id));
            at += word;
            from = at;
        }
        if from < text.len() {
            out.push(Part::Text(&text[from..]));
        }
    }

    /// Length and id of the longest word at the start of `bytes`. A match of whole words of UTF-8 begins and ends at
    /// character boundaries.
    fn word_at(&self, bytes: &[u8]) -> Option<(usize, u32)> {
        let words = self.by_first.get(bytes.first()?)?;
        words.iter().find(|(word, _)| bytes.starts_with(word.as_bytes())).map(|(word, id)| (word.len(), *id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_word_wins_and_text_is_kept() {
        let m = Matcher::new(vec![("<ab>".into(), 2), ("<a".into(), 1)]);
        assert_eq!(
            m.split(vec![Part::Text("é<ab><a x<")]),
            [Part::Text("é"), Part::Token(2), Part::Token(1), Part::Text(" x<")]
        );
    }
}
