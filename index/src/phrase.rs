//! Phrases: words of a query in quotes, which must stand in a passage as they stand there. The full-text table keeps no
//! positions, so the passages that have all the words are read and looked through.

use rusqlite::Connection;

use crate::error::Error;
use crate::ingest::context;
use crate::limits::{PHRASE_BYTES_MAX, PHRASES_MAX};
use crate::store::{documents, passages, text};
use crate::terms::{fold, is_dense, is_word};

/// Opening quotes and what closes each.
const QUOTES: [(char, &str); 7] =
    [('"', "\""), ('“', "”"), ('„', "“”"), ('«', "»"), ('»', "«"), ('「', "」"), ('『', "』")];

/// The phrases of a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Phrases {
    /// Folded (see [`fold`]), none empty, at most `PHRASES_MAX`.
    pub all: Vec<String>,
    /// Nothing else is in the query: then a passage must have all of them. Beside other words they weigh as rare words do: a
    /// question may name two things that no passage has both of.
    pub alone: bool,
}

impl Phrases {
    pub(crate) fn of(query: &str) -> Self {
        let mut found = Self { all: Vec::new(), alone: true };
        let mut before = ' ';
        let mut rest = query;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            if let Some((phrase, length)) = quoted(c, before, rest) {
                if found.all.len() < PHRASES_MAX && !found.all.contains(&phrase) {
                    found.all.push(phrase);
                }
                rest = &rest[length..];
                before = '"';
                continue;
            }
            found.alone &= !is_word(c) && !is_dense(c);
            before = c;
        }
        found.alone &= !found.all.is_empty();
        found
    }
}

/// What stands between this quote and its end, folded, and its length in bytes with the closing quote. A straight quote opens
/// only where no letter is before it and closes only where none follows: `24" by 17"` has none.
fn quoted(open: char, before: char, rest: &str) -> Option<(String, usize)> {
    let (_, closing) = QUOTES.iter().find(|(quote, _)| *quote == open)?;
    if open == '"' && is_word(before) {
        return None;
    }
    let (at, close) = rest.char_indices().find(|(_, c)| closing.contains(*c))?;
    let end = at + close.len_utf8();
    if at > PHRASE_BYTES_MAX || (open == '"' && rest[end..].chars().next().is_some_and(char::is_alphanumeric)) {
        return None;
    }
    let phrase = fold(&rest[..at]);
    (!phrase.is_empty()).then_some((phrase, end))
}

/// Whether a passage, its headings or its document's title has the phrase.
pub(crate) fn stands_in(connection: &Connection, passage_id: i64, phrase: &str) -> Result<bool, Error> {
    let Some(passage) = passages::by_id(connection, passage_id)? else { return Ok(false) };
    let body = text::get(connection, passage.document_id, passage.byte_start, passage.byte_end)?;
    if stands(&fold(&body), phrase) {
        return Ok(true);
    }
    let title = documents::by_id(connection, passage.document_id)?.and_then(|d| d.title);
    Ok(context(title.as_deref(), &passage.heading, &body).lines().any(|line| stands(&fold(line), phrase)))
}

/// Whether a folded text has a folded phrase, and not as a part of longer words.
fn stands(text: &str, phrase: &str) -> bool {
    let inside = |c: Option<char>, edge: Option<char>| c.is_some_and(is_word) && edge.is_some_and(is_word);
    let (first, last) = (phrase.chars().next(), phrase.chars().next_back());
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + phrase.len()..].chars().next());
        !inside(before, first) && !inside(after, last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> (Vec<String>, bool) {
        let found = Phrases::of(query);
        (found.all, found.alone)
    }

    #[test]
    fn what_stands_in_quotes_is_a_phrase() {
        let list = |all: &[&str]| all.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        assert_eq!(of("\"Force  Majeure\""), (list(&["force majeure"]), true));
        assert_eq!(of("who wrote “The Raven”?"), (list(&["the raven"]), false));
        assert_eq!(of("为什么“LK-99”不是超导体"), (list(&["lk 99"]), false));
        assert_eq!(of("„Miete“, «bail» \"rent\"!"), (list(&["miete", "bail", "rent"]), true));
    }

    #[test]
    fn other_quotes_are_none() {
        for query in
            ["a 24\" and a 17\" screen", "\"open", "\"\" \" \"", "rock 'n' roll", "say \"so\"ftly", "", "\"", "?!"]
        {
            assert_eq!(of(query), (vec![], false), "{query}");
        }
        let long = format!("\"{}\"", "x ".repeat(PHRASE_BYTES_MAX));
        assert_eq!(of(&long).0.len(), 0);
        let many: String = (0..100).map(|n| format!("\"w{n}\" ")).collect();
        assert_eq!(of(&many).0.len(), PHRASES_MAX);
    }

    #[test]
    fn a_phrase_is_whole_words_in_their_order() {
        let text = fold("The Force-Majeure clause, and ﬁre.\nLK-99不是超导体");
        for phrase in ["force majeure", "Clause and FIRE", "LK-99", "不是", "fire LK"] {
            assert!(stands(&text, &fold(phrase)), "{phrase}");
        }
        for phrase in ["majeure force", "orce majeure", "force maj", "LK-9", "and fir"] {
            assert!(!stands(&text, &fold(phrase)), "{phrase}");
        }
    }
}
