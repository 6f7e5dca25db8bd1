//! What a person may write into a search or a question to narrow it: `in:contracts type:pdf after:2024-03 notice period`.
//!
//! The same for every client, since it is read here and not by the command line. A condition is a word that starts with
//! `in:`, `type:` (or `kind:`), `after:` or `before:` and goes on without a space; a value with spaces stands in quotes. Times
//! and other words with a colon (`at:`, `after: dinner`, `std::in`) stay words.

use std::path::PathBuf;

use satchel_index::{Filter, Kind, parse_iso};
use satchel_ipc::ErrorBody;

use crate::translate;

/// Conditions of one query; more is no query that a person wrote.
const CONDITIONS_MAX: usize = 16;

/// The words of a query without its conditions, and these. Of two folders or two kinds one must hold.
///
/// # Errors
/// `bad_request` for a value that is none, for too many conditions, and where no words are left.
pub fn narrow(query: &str) -> Result<(String, Filter), ErrorBody> {
    let mut words = String::with_capacity(query.len());
    let mut filter = Filter::default();
    let mut conditions = 0;
    let mut rest = query;
    while !rest.is_empty() {
        let length = if let Some((condition, length)) = Condition::read(rest)? {
            condition.apply(&mut filter);
            conditions += 1;
            length
        } else {
            let length = word(rest).len();
            words.push_str(&rest[..length]);
            length
        };
        let after = &rest[length..];
        rest = after.trim_start();
        words.push_str(&after[..after.len() - rest.len()]);
    }
    if conditions == 0 {
        return Ok((words, filter));
    }
    if conditions > CONDITIONS_MAX {
        return Err(ErrorBody::bad_request(format!("{conditions} conditions > {CONDITIONS_MAX} in one query")));
    }
    let words = words.trim();
    if words.is_empty() {
        return Err(ErrorBody::bad_request("the query has conditions, but no words")
            .with_hint("say what to look for too, such as `type:pdf notice period`"));
    }
    Ok((words.to_owned(), filter))
}

/// Up to the next space.
fn word(text: &str) -> &str {
    &text[..text.find(char::is_whitespace).unwrap_or(text.len())]
}

/// One condition.
enum Condition {
    Path(PathBuf),
    Folder(String),
    Kind(Kind),
    After(i64),
    Before(i64),
}

impl Condition {
    /// The condition that a text begins with, if it does, and its length in bytes.
    fn read(text: &str) -> Result<Option<(Self, usize)>, ErrorBody> {
        let Some((name, value)) = word(text).split_once(':') else { return Ok(None) };
        if !["in", "type", "kind", "after", "before"].contains(&name) {
            return Ok(None);
        }
        let (value, length) = if let Some(quoted) = text[name.len() + 1..].strip_prefix('"') {
            let Some((value, _)) = quoted.split_once('"') else { return Ok(None) };
            (value, value.len() + 2)
        } else {
            (value, value.len())
        };
        if value.trim().is_empty() || value.starts_with(':') {
            return Ok(None);
        }
        let condition = match name {
            "in" if value.starts_with('/') => Self::Path(translate::absolute(value)?),
            "in" => Self::Folder(value.trim_end_matches('/').to_owned()),
            "type" | "kind" => Self::Kind(translate::kind(value)?),
            // A word such as `after:all` is none of ours; a time that starts as one and is not is a slip.
            _ if !value.starts_with(|c: char| c.is_ascii_digit()) => return Ok(None),
            "after" => Self::After(time(name, value)?),
            _ => Self::Before(time(name, value)?),
        };
        Ok(Some((condition, name.len() + 1 + length)))
    }

    fn apply(self, filter: &mut Filter) {
        match self {
            Self::Path(path) => filter.path_prefix.push(path),
            Self::Folder(name) => filter.folder.push(name),
            Self::Kind(kind) => filter.kind.push(kind),
            Self::After(time) => filter.after = Some(filter.after.map_or(time, |t| t.max(time))),
            Self::Before(time) => filter.before = Some(filter.before.map_or(time, |t| t.min(time))),
        }
    }
}

/// The start of a year, month or day (UTC), in milliseconds since 1970.
fn time(name: &str, value: &str) -> Result<i64, ErrorBody> {
    parse_iso(value).ok_or_else(|| {
        ErrorBody::bad_request(format!("{name}:{value} is not a date"))
            .with_hint("write a year, a month or a day, such as 2024, 2024-03 or 2024-03-01")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(query: &str) -> (String, Filter) {
        narrow(query).unwrap()
    }

    #[test]
    fn conditions_leave_the_query_and_enter_the_filter() {
        let (words, filter) =
            narrowed("type:pdf notice  period in:Contracts kind:Mail in:\"My Documents/\" after:2024-03 before:2025");
        assert_eq!(words, "notice  period");
        assert_eq!(filter.kind, [Kind::Pdf, Kind::Mail]);
        assert_eq!(filter.folder, ["Contracts", "My Documents"]);
        assert_eq!(filter.after, Some(1_709_251_200_000));
        assert_eq!(filter.before, Some(1_735_689_600_000));
        let (words, filter) = narrowed("in:/home/you/notes dentist");
        assert_eq!((words.as_str(), filter.path_prefix), ("dentist", vec!["/home/you/notes".into()]));
    }

    #[test]
    fn other_words_with_colons_stay_words() {
        for query in [
            "after: dinner",
            "after:all",
            "std::in:x",
            "in::x",
            "type:",
            "in:\"open x",
            "in:\"\"",
            " in: \"a b\"",
            "is it at:5",
            "  spaces  stay ",
        ] {
            let (words, filter) = narrowed(query);
            assert_eq!(words, query);
            assert!(filter.is_empty(), "{query}");
        }
    }

    #[test]
    fn of_two_times_the_narrower_holds() {
        let (_, filter) = narrowed("x after:2024 before:2026 after:2025 before:2027 after:2023");
        let (_, same) = narrowed("x after:2025 before:2026");
        assert_eq!((filter.after, filter.before), (same.after, same.before));
    }

    #[test]
    fn what_is_no_condition_is_an_error() {
        let many = "in:a ".repeat(CONDITIONS_MAX + 1) + "x";
        for (query, what) in [
            ("type:pfd x", "kind \"pfd\" is not known"),
            ("after:2024-13 x", "after:2024-13 is not a date"),
            ("type:pdf", "no words"),
            (many.as_str(), "17 conditions > 16"),
        ] {
            let error = narrow(query).unwrap_err();
            assert!(error.message.contains(what), "{query}: {}", error.message);
        }
    }
}
