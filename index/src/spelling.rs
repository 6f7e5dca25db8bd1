//! Words that no passage has: the nearest ones that some passage has.

use rusqlite::Connection;

use crate::error::Error;
use crate::limits::{SPELLING_WORDS_MAX, WORDS_CORRECTED_MAX};
use crate::store::fulltext;

/// Letters of the shortest word that is corrected: shorter ones have too many neighbours that mean something else.
const SHORTEST: usize = 5;
/// Letters from which a word may have two slips.
const LONG: usize = 9;
/// Neighbours taken of one word.
const NEIGHBOURS_MAX: usize = 3;

/// Corrects the words of one query, a few of them at most.
pub(crate) struct Speller<'a> {
    connection: &'a Connection,
    left: usize,
}

impl<'a> Speller<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Self {
        Self { connection, left: WORDS_CORRECTED_MAX }
    }

    /// Terms of the index within one slip (a letter too many, too few, wrong or in the wrong place; two slips in long words)
    /// of this one and with the same first letter; the nearest only, the most frequent first.
    pub(crate) fn nearest(&mut self, term: &str) -> Result<Vec<String>, Error> {
        let word: Vec<char> = term.chars().collect();
        if word.len() < SHORTEST || self.left == 0 || !word.iter().all(|c| c.is_alphabetic()) {
            return Ok(Vec::new());
        }
        self.left -= 1;
        let mut slips = if word.len() < LONG { 1 } else { 2 };
        let mut near: Vec<(usize, i64, String)> = Vec::new();
        fulltext::terms_from(self.connection, word[0], SPELLING_WORDS_MAX, |other, passages| {
            if let Some(distance) = distance(&word, other, slips) {
                slips = distance;
                near.push((distance, -passages, other.to_owned()));
            }
        })?;
        near.retain(|(distance, ..)| *distance == slips);
        near.sort_unstable();
        Ok(near.into_iter().take(NEIGHBOURS_MAX).map(|(.., term)| term).collect())
    }
}

/// Edits from one word to another, two letters in the wrong order counted as one (optimal string alignment), if not more than
/// `most`.
fn distance(word: &[char], other: &str, most: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().take(word.len() + most + 1).collect();
    if word.len().abs_diff(other.len()) > most {
        return None;
    }
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in word.iter().enumerate() {
        let mut new = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut best = (old[j] + usize::from(a != b)).min(old[j + 1] + 1).min(new[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && word[i - 1] == *b {
                best = best.min(older[j - 1] + 1);
            }
            new.push(best);
        }
        older = std::mem::replace(&mut old, new);
    }
    old.last().copied().filter(|d| *d <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (word, other, slips) in [
            ("boiler", "boiler", 0),
            ("boilr", "boiler", 1),
            ("boielr", "boiler", 1),
            ("biler", "boiler", 1),
            ("boiller", "boiler", 1),
            ("bouler", "boiler", 1),
            ("thermostt", "thermostat", 1),
            ("temrostat", "thermostat", 2),
            ("договр", "договор", 1),
        ] {
            let word: Vec<char> = word.chars().collect();
            assert_eq!(distance(&word, other, 2), Some(slips), "{other}");
            assert_eq!(distance(&word, other, 0).is_some(), slips == 0);
        }
        let word: Vec<char> = "boiler".chars().collect();
        assert_eq!(distance(&word, "bottle", 2), None);
        assert_eq!(distance(&word, "", 2), None);
    }
}
