//! Documents that wait for vectors.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::path_of;
use crate::error::{Doing, Error};
use crate::types::State;

/// What waits to be embedded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waiting {
    pub documents: u64,
    pub passages: u64,
    /// Of text; passages of a document are taken to be of one size.
    pub bytes: u64,
}

pub(crate) fn waiting(connection: &Connection) -> Result<Waiting, Error> {
    let sql =
        "SELECT count(*), coalesce(sum(unembedded), 0), coalesce(sum(text_bytes * unembedded / max(passages, 1)), 0)
               FROM documents WHERE unembedded > 0";
    let mut query = connection.prepare_cached(sql).doing("count what is to be embedded")?;
    let number = |row: &Row<'_>, i| row.get::<_, i64>(i).map(|n| u64::try_from(n).unwrap_or(0));
    query
        .query_row([], |row| {
            Ok(Waiting { documents: number(row, 0)?, passages: number(row, 1)?, bytes: number(row, 2)? })
        })
        .doing("count what is to be embedded")
}

/// Documents that still lack vectors, the latest change first. Those that are about to be cut anew wait for that.
pub(crate) fn next(connection: &Connection, epoch: i64, limit: usize) -> Result<Vec<i64>, Error> {
    let sql = "SELECT id FROM documents WHERE unembedded > 0 AND epoch = ?2 AND NOT stale ORDER BY since DESC LIMIT ?1";
    let mut statement = connection.prepare_cached(sql).doing("list what is to be embedded")?;
    let rows = statement.query_map(params![i64::try_from(limit).unwrap_or(i64::MAX), epoch], |row| row.get(0));
    rows.and_then(Iterator::collect).doing("list what is to be embedded")
}

/// Counts down what still lacks a vector; the last one makes the document indexed. Gives its path when it became so.
pub(crate) fn count_down(connection: &Connection, id: i64, by: i64, now: i64) -> Result<Option<PathBuf>, Error> {
    let sql = "UPDATE documents SET unembedded = max(0, unembedded - ?2),
                   since = CASE WHEN unembedded <= ?2 AND state = ?4 AND NOT stale THEN ?5 ELSE since END,
                   state = CASE WHEN unembedded <= ?2 AND state = ?4 AND NOT stale THEN ?3 ELSE state END
               WHERE id = ?1 RETURNING path, state";
    let mut statement = connection.prepare_cached(sql).doing("store a document")?;
    let row: Option<(Vec<u8>, i64)> = statement
        .query_row(params![id, by, State::Indexed.number(), State::Pending.number(), now], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
        .doing("store a document")?;
    Ok(row.filter(|(_, state)| *state == i64::from(State::Indexed.number())).map(|(path, _)| path_of(path)))
}

/// Everything is to be embedded anew: the embedder is another one.
pub(crate) fn reset(connection: &Connection) -> Result<(), Error> {
    let sql = "UPDATE documents SET unembedded = passages, state = CASE WHEN state = ?1 AND passages > 0 THEN ?2 ELSE state END";
    connection.execute(sql, params![State::Indexed.number(), State::Pending.number()]).doing("reset its vectors")?;
    Ok(())
}

/// Counts anew what lacks a vector of the embedder that serves.
pub(crate) fn recount(connection: &Connection) -> Result<(), Error> {
    let count = "UPDATE documents SET unembedded = (SELECT count(*) FROM passages p WHERE p.document_id = documents.id
                     AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id)) WHERE passages > 0";
    connection.execute(count, []).doing("count what is to be embedded")?;
    let sql = "UPDATE documents SET state = CASE WHEN unembedded > 0 THEN ?2 ELSE ?1 END
               WHERE passages > 0 AND NOT stale AND state IN (?1, ?2)";
    let states = params![State::Indexed.number(), State::Pending.number()];
    connection.execute(sql, states).doing("count what is to be embedded")?;
    Ok(())
}

/// Remembers that a passage of the document is too long for the coming embedder.
pub(crate) fn set_too_long(connection: &Connection, id: i64) -> Result<(), Error> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO too_long (document_id) VALUES (?1)")
        .and_then(|mut s| s.execute([id]))
        .doing("store a document")?;
    Ok(())
}
