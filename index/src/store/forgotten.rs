//! Files that must not come back until they change.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::documents::Stamp;
use super::path_bytes;
use crate::error::{Doing, Error};

pub(crate) fn put(connection: &Connection, path: &Path, hash: Option<&[u8]>, stamp: Stamp) -> Result<(), Error> {
    connection
        .execute(
            "INSERT INTO forgotten (path, hash, size, mtime) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (path) DO UPDATE SET hash = ?2, size = ?3, mtime = ?4",
            params![path_bytes(path), hash, stamp.size, stamp.mtime],
        )
        .doing("forget a document")?;
    Ok(())
}

/// Whether the file of that content was forgotten. Where the content was never read, size and time of change decide.
pub(crate) fn holds(connection: &Connection, path: &Path, hash: &[u8], stamp: Stamp) -> Result<bool, Error> {
    let mut query = connection
        .prepare_cached("SELECT CASE WHEN hash IS NULL THEN size = ?3 AND mtime = ?4 ELSE hash = ?2 END FROM forgotten WHERE path = ?1")
        .doing("look up a forgotten document")?;
    let same: Option<bool> = query
        .query_row(params![path_bytes(path), hash, stamp.size, stamp.mtime], |row| row.get(0))
        .optional()
        .doing("look up a forgotten document")?;
    Ok(same.unwrap_or(false))
}

pub(crate) fn delete(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM forgotten WHERE path = ?1")
        .and_then(|mut s| s.execute([path_bytes(path)]))
        .doing("remember a document again")?;
    Ok(())
}
