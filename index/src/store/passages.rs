//! Passages: spans of a document's text.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::vectors::Of;
use crate::error::{Doing, Error};

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passage {
    pub id: i64,
    pub document_id: i64,
    pub byte_start: usize,
    pub byte_end: usize,
    pub line_start: u32,
    pub line_end: u32,
    pub heading: String,
    pub length: u32,
    pub fingerprint: i64,
}

const COLUMNS: &str = "id, document_id, byte_start, byte_end, line_start, line_end, heading, length, fingerprint";

fn passage(row: &Row<'_>) -> rusqlite::Result<Passage> {
    let size = |i| row.get::<_, i64>(i).map(|n| usize::try_from(n).unwrap_or(0));
    Ok(Passage {
        id: row.get(0)?,
        document_id: row.get(1)?,
        byte_start: size(2)?,
        byte_end: size(3)?,
        line_start: row.get(4)?,
        line_end: row.get(5)?,
        heading: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        length: row.get(7)?,
        fingerprint: row.get(8)?,
    })
}

/// Stores a passage and gives its id; the id in `p` is not looked at.
pub(crate) fn put(connection: &Connection, p: &Passage) -> Result<i64, Error> {
    let sql =
        "INSERT INTO passages (document_id, byte_start, byte_end, line_start, line_end, heading, length, fingerprint)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let heading = Some(&p.heading).filter(|h| !h.is_empty());
    let bytes = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    connection
        .prepare_cached(sql)
        .and_then(|mut s| {
            s.insert(params![
                p.document_id,
                bytes(p.byte_start),
                bytes(p.byte_end),
                p.line_start,
                p.line_end,
                heading,
                p.length,
                p.fingerprint
            ])
        })
        .doing("store a passage")
}

pub(crate) fn by_id(connection: &Connection, id: i64) -> Result<Option<Passage>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM passages WHERE id = ?1");
    let mut query = connection.prepare_cached(&sql).doing("look up a passage")?;
    query.query_row([id], passage).optional().doing("look up a passage")
}

/// Passages of a document, in the order of its text.
pub(crate) fn of_document(connection: &Connection, document_id: i64) -> Result<Vec<Passage>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM passages WHERE document_id = ?1 ORDER BY id");
    let mut query = connection.prepare_cached(&sql).doing("list passages")?;
    let rows = query.query_map([document_id], passage);
    rows.and_then(Iterator::collect).doing("list passages")
}

/// Passages of a document that have no vector of that kind, in the order of its text.
pub(crate) fn unembedded(
    connection: &Connection,
    of: Of,
    document_id: i64,
    limit: usize,
) -> Result<Vec<Passage>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM passages WHERE document_id = ?1
           AND NOT EXISTS (SELECT 1 FROM {} v WHERE v.passage_id = passages.id) ORDER BY id LIMIT ?2",
        of.table()
    );
    let mut query = connection.prepare_cached(&sql).doing("list passages")?;
    let rows = query.query_map(params![document_id, i64::try_from(limit).unwrap_or(i64::MAX)], passage);
    rows.and_then(Iterator::collect).doing("list passages")
}

pub(crate) fn delete_of(connection: &Connection, document_id: i64) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM passages WHERE document_id = ?1")
        .and_then(|mut s| s.execute([document_id]))
        .doing("remove passages")?;
    Ok(())
}
