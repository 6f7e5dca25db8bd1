//! The full-text table: which passages have a term, and how often.
//!
//! FTS5 keeps postings without positions or counts here (`detail=none`), which makes them a third of the size. The count is
//! kept by *tiers*: a passage that has a term 3 times is entered under the term, under the term's tier for "2 or more", and
//! under the one for "3 or more". BM25 saturates so early that five tiers rank like exact counts.

use rusqlite::{Connection, params};

use crate::error::{Doing, Error};
use crate::limits::MERGE_PAGES;
use crate::store::state;
use crate::terms::Terms;

/// Counts that open a tier; the first is the term itself.
pub(crate) const TIERS: [u32; 5] = [1, 2, 3, 5, 9];

/// Stands for an apostrophe: FTS5's `ascii` tokenizer would split there, and it splits nowhere else in a term.
const APOSTROPHE: char = '\u{E001}';

/// The name of a term's tier: private-use characters, which no term from text holds.
fn tier_name(term: &str, tier: usize) -> String {
    let mut name: String = term.chars().map(|c| if c.is_ascii_punctuation() { APOSTROPHE } else { c }).collect();
    name.extend(u32::try_from(tier).ok().filter(|t| *t > 0).and_then(|t| char::from_u32(0xE010 + t)));
    name
}

pub(crate) fn put(connection: &Connection, passage_id: i64, terms: &Terms) -> Result<(), Error> {
    let mut all: Vec<(&str, u32)> = terms.counts.iter().map(|(t, n)| (t.as_str(), *n)).collect();
    all.sort_unstable();
    let mut joined = String::new();
    for (term, count) in all {
        for tier in 0..TIERS.iter().filter(|t| count >= **t).count() {
            joined.push_str(&tier_name(term, tier));
            joined.push(' ');
        }
    }
    connection
        .prepare_cached("INSERT INTO fulltext (rowid, terms) VALUES (?1, ?2)")
        .and_then(|mut s| s.execute(params![passage_id, joined]))
        .doing("store full text")?;
    Ok(())
}

/// Marks a document's passages as deleted. Their postings stay until the next merge, which their count asks for.
pub(crate) fn delete_of(connection: &Connection, document_id: i64) -> Result<(), Error> {
    let deleted = connection
        .prepare_cached("DELETE FROM fulltext WHERE rowid IN (SELECT id FROM passages WHERE document_id = ?1)")
        .and_then(|mut s| s.execute([document_id]))
        .doing("remove full text")?;
    count_unmerged(connection, deleted)
}

/// Counts passages that were written or deleted.
pub(crate) fn count_unmerged(connection: &Connection, passages: usize) -> Result<(), Error> {
    let before = state::number(connection, state::UNMERGED)?;
    state::set(connection, state::UNMERGED, before.saturating_add(i64::try_from(passages).unwrap_or(i64::MAX)))
}

/// Calls `each` with the passages that have the term in this tier, in rising order, at most `limit` of them. Gives how many.
pub(crate) fn postings(
    connection: &Connection,
    term: &str,
    tier: usize,
    limit: usize,
    each: impl FnMut(i64),
) -> Result<usize, Error> {
    // The name holds no punctuation, so nothing in it could end the quotes.
    matching(connection, &format!("\"{}\"", tier_name(term, tier)), limit, each)
}

/// The same for all terms that begin so; a passage comes once.
pub(crate) fn postings_of_prefix(
    connection: &Connection,
    prefix: &str,
    limit: usize,
    each: impl FnMut(i64),
) -> Result<usize, Error> {
    matching(connection, &format!("\"{}\" *", tier_name(prefix, 0)), limit, each)
}

fn matching(connection: &Connection, query: &str, limit: usize, mut each: impl FnMut(i64)) -> Result<usize, Error> {
    let mut statement = connection
        .prepare_cached("SELECT rowid FROM fulltext WHERE fulltext MATCH ?1 LIMIT ?2")
        .doing("search its full text")?;
    let mut rows =
        statement.query(params![query, i64::try_from(limit).unwrap_or(i64::MAX)]).doing("search its full text")?;
    let mut count = 0;
    while let Some(row) = rows.next().doing("search its full text")? {
        each(row.get(0).doing("search its full text")?);
        count += 1;
    }
    Ok(count)
}

/// Calls `each` with words that begin with this letter and how many passages have them (deleted ones included until the table is
/// compacted), at most `limit` of them.
pub(crate) fn terms_from(
    connection: &Connection,
    letter: char,
    limit: usize,
    mut each: impl FnMut(&str, i64),
) -> Result<(), Error> {
    let mut query = connection
        .prepare_cached("SELECT term, doc FROM fulltext_terms WHERE term >= ?1 AND term < ?2 LIMIT ?3")
        .doing("search its full text")?;
    let next = char::from_u32(u32::from(letter) + 1).unwrap_or(char::MAX);
    let range = params![letter.to_string(), next.to_string(), i64::try_from(limit).unwrap_or(i64::MAX)];
    let mut rows = query.query(range).doing("search its full text")?;
    while let Some(row) = rows.next().doing("search its full text")? {
        let term = row.get_ref(0).doing("search its full text")?.as_str().unwrap_or_default();
        // Neither tiers nor identifiers as a whole.
        if !term.contains(|c| matches!(c, '\u{E000}'..='\u{E0FF}')) {
            each(term, row.get(1).doing("search its full text")?);
        }
    }
    Ok(())
}

/// Whether any segment of the full-text index still holds the term, deleted passages included.
pub(crate) fn has_term(connection: &Connection, term: &str) -> Result<bool, Error> {
    let mut query = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM fulltext_terms WHERE term = ?1)")
        .doing("search its full text")?;
    query.query_row([tier_name(term, 0)], |row| row.get(0)).doing("search its full text")
}

/// Whether a passage that was not deleted has the term.
pub(crate) fn has_living(connection: &Connection, term: &str) -> Result<bool, Error> {
    Ok(postings(connection, term, 0, 1, |_| {})? > 0)
}

/// Rewrites the index without what was deleted.
pub(crate) fn optimize(connection: &Connection) -> Result<(), Error> {
    connection.execute("INSERT INTO fulltext (fulltext) VALUES ('optimize')", []).doing("compact its full text")?;
    state::set(connection, state::UNMERGED, 0)
}

/// Whether so much was written or deleted that merging is worth its cost, which is that of the whole table: then it has been
/// paid for by as many changes. Merged, a term stands once instead of once a segment, and the dead are gone: a sixth to a
/// third less.
pub(crate) fn wants_merging(connection: &Connection, living: usize) -> Result<bool, Error> {
    let unmerged = usize::try_from(state::number(connection, state::UNMERGED)?).unwrap_or(0);
    Ok(unmerged > living / 4)
}

/// Does one step of what [`optimize`] does at once. Gives whether there is more to do.
pub(crate) fn merge(connection: &Connection) -> Result<bool, Error> {
    let before = connection.total_changes();
    // Below zero: all segments into one, whatever their levels.
    connection
        .prepare_cached("INSERT INTO fulltext (fulltext, rank) VALUES ('merge', ?1)")
        .and_then(|mut s| s.execute([-MERGE_PAGES]))
        .doing("compact its full text")?;
    // The command itself counts as one change.
    if connection.total_changes() - before >= 2 {
        return Ok(true);
    }
    state::set(connection, state::UNMERGED, 0)?;
    Ok(false)
}
