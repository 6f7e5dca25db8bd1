//! Single values.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Doing, Error};

pub(crate) const GENERATION: &str = "generation";
pub(crate) const EPOCH: &str = "epoch";
pub(crate) const EMBEDDER: &str = "embedder";
pub(crate) const DIMENSIONS: &str = "dimensions";
/// The embedder that takes over once every passage has a vector of it.
pub(crate) const COMING_EMBEDDER: &str = "coming_embedder";
pub(crate) const COMING_DIMENSIONS: &str = "coming_dimensions";
pub(crate) const TERMS_VERSION: &str = "terms";
/// Which passwords locked files were last tried with.
pub(crate) const PASSWORDS: &str = "passwords";
/// Passages written or deleted since the full text was last merged into one.
pub(crate) const UNMERGED: &str = "unmerged";

pub(crate) fn number(connection: &Connection, key: &str) -> Result<i64, Error> {
    let mut query = connection.prepare_cached("SELECT value FROM state WHERE key = ?1").doing("read its state")?;
    let value: Option<i64> = query.query_row([key], |row| row.get(0)).optional().doing("read its state")?;
    Ok(value.unwrap_or(0))
}

pub(crate) fn text(connection: &Connection, key: &str) -> Result<Option<String>, Error> {
    let mut query = connection.prepare_cached("SELECT value FROM state WHERE key = ?1").doing("read its state")?;
    query.query_row([key], |row| row.get(0)).optional().doing("read its state")
}

pub(crate) fn set(connection: &Connection, key: &str, value: impl rusqlite::ToSql) -> Result<(), Error> {
    connection
        .prepare_cached("INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")
        .and_then(|mut s| s.execute(params![key, value]))
        .doing("store its state")?;
    Ok(())
}

pub(crate) fn unset(connection: &Connection, key: &str) -> Result<(), Error> {
    connection.execute("DELETE FROM state WHERE key = ?1", [key]).doing("store its state")?;
    Ok(())
}

/// Every transaction that changes what a search sees counts the generation up.
pub(crate) fn next_generation(connection: &Connection) -> Result<u64, Error> {
    let next = number(connection, GENERATION)?.saturating_add(1);
    set(connection, GENERATION, next)?;
    Ok(u64::try_from(next).unwrap_or(0))
}
