//! Watched folders.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::{path_bytes, path_of};
use crate::error::{Doing, Error};
use crate::types::{Root, RootState};

pub(crate) fn all(connection: &Connection) -> Result<Vec<Root>, Error> {
    let mut query = connection.prepare_cached("SELECT path, state FROM roots ORDER BY path").doing("list its roots")?;
    let rows =
        query.query_map([], |row| Ok(Root { path: path_of(row.get(0)?), state: RootState::from_number(row.get(1)?) }));
    rows.and_then(Iterator::collect).doing("list its roots")
}

pub(crate) fn add(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let sql = "INSERT INTO roots (path, state) VALUES (?1, ?2) ON CONFLICT (path) DO NOTHING";
    let added = connection.execute(sql, params![path_bytes(path), RootState::New.number()]).doing("add a root")?;
    Ok(added > 0)
}

pub(crate) fn remove(connection: &Connection, path: &Path) -> Result<bool, Error> {
    let removed = connection.execute("DELETE FROM roots WHERE path = ?1", [path_bytes(path)]).doing("remove a root")?;
    Ok(removed > 0)
}

/// The folder's inode at the last good scan.
pub(crate) fn inode(connection: &Connection, path: &Path) -> Result<Option<i64>, Error> {
    connection
        .query_row("SELECT inode FROM roots WHERE path = ?1", [path_bytes(path)], |row| row.get(0))
        .doing("read a root")
}

/// Gives whether the state is another one than before.
pub(crate) fn set_state(
    connection: &Connection,
    path: &Path,
    state: RootState,
    inode: Option<i64>,
) -> Result<bool, Error> {
    let sql = "UPDATE roots SET state = ?2, inode = coalesce(?3, inode)
               WHERE path = ?1 AND (state IS NOT ?2 OR (?3 IS NOT NULL AND inode IS NOT ?3))";
    let changed =
        connection.execute(sql, params![path_bytes(path), state.number(), inode]).doing("store a root's state")?;
    Ok(changed > 0)
}

/// The root that holds the path, if any.
pub(crate) fn containing(roots: &[Root], path: &Path) -> Option<PathBuf> {
    roots.iter().find(|root| path.starts_with(&root.path)).map(|root| root.path.clone())
}
