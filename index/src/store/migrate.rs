//! Schema versions. Two rules: a migration that was released is never changed, and a newer file is never touched.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Doing, Error};

/// Append only; `user_version` counts how many were applied.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_parts.sql"),
    include_str!("migrations/0003_verdicts.sql"),
];

/// Brings the schema up to date; does nothing when it is.
pub(crate) fn migrate(connection: &mut Connection, dir: &Path) -> Result<(), Error> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Exclusive).doing("be opened for writing")?;
    let found: i64 =
        transaction.pragma_query_value(None, "user_version", |row| row.get(0)).doing("read its version")?;
    let Some(pending) = usize::try_from(found).ok().and_then(|done| MIGRATIONS.get(done..)) else {
        return Err(Error::NewerSchema { dir: dir.to_owned(), found, known });
    };
    if pending.is_empty() {
        return Ok(());
    }
    for sql in pending {
        transaction.execute_batch(sql).doing("be brought to the newest schema")?;
    }
    transaction.pragma_update(None, "user_version", known).doing("store its version")?;
    transaction.commit().doing("be brought to the newest schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let schema = |c: &Connection| -> Vec<String> {
            let mut query = c.prepare("SELECT name || coalesce(sql, '') FROM sqlite_schema ORDER BY name").unwrap();
            query.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
        };
        migrate(&mut connection, Path::new("x")).unwrap();
        let once = schema(&connection);
        migrate(&mut connection, Path::new("x")).unwrap();
        assert_eq!(schema(&connection), once);
        assert!(once.len() > 10);
    }

    #[test]
    fn what_the_first_schema_held_is_kept_and_what_gave_no_text_is_read_again() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
            .execute_batch(
                "INSERT INTO documents (path, state, since, kind, size, mtime, ctime, inode, epoch, hash, text_bytes, passages)
                     VALUES (CAST('/r/a.txt' AS BLOB), 0, 1, 0, 5, 1, 1, 1, 0, x'01', 5, 1), (CAST('/r/b.pdf' AS BLOB), 6, 1, 5, 5, 1, 1, 2, 0, NULL, 0, 0);
                 INSERT INTO passages (document_id, byte_start, byte_end, line_start, line_end, length, fingerprint)
                     VALUES (1, 0, 5, 1, 1, 1, 7);",
            )
            .unwrap();
        crate::store::text::put(&connection, 1, "words").unwrap();
        migrate(&mut connection, Path::new("x")).unwrap();
        assert_eq!(crate::store::text::get(&connection, 1, 0, 5).unwrap(), "words");
        let known = crate::store::documents::known_below(&connection, Path::new("/r")).unwrap();
        let outdated = |path: &str| known.iter().find(|(p, _)| p == Path::new(path)).unwrap().1.outdated;
        assert!(!outdated("/r/a.txt") && outdated("/r/b.pdf"));
        assert!(crate::store::passages::by_id(&connection, 1).unwrap().is_some());
        assert!(crate::store::parts::at(&connection, 1, 0).unwrap().is_empty());
    }

    #[test]
    fn a_newer_schema_is_refused_and_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 999).unwrap();
        let error = migrate(&mut connection, Path::new("x")).unwrap_err();
        assert!(matches!(error, Error::NewerSchema { found: 999, .. }), "{error}");
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).unwrap();
        assert_eq!(tables, 0);
    }
}
