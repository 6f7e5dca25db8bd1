//! Schema versions. Two rules: a migration that was released is never changed, and a newer file is never touched.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::error::{Doing, Error};

/// Append only; `user_version` counts how many were applied.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_parts.sql"),
    include_str!("migrations/0003_verdicts.sql"),
    include_str!("migrations/0004_size.sql"),
    include_str!("migrations/0005_embedders.sql"),
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
                     VALUES (1, 0, 5, 1, 1, 1, 7);
                 INSERT INTO vectors VALUES (1, x'0000803f7f01');",
            )
            .unwrap();
        for (start, piece) in [(0, "wor"), (3, "ds")] {
            let sql = "INSERT INTO blocks (document_id, start, data) VALUES (1, ?1, ?2)";
            connection.execute(sql, rusqlite::params![start, deflated(piece)]).unwrap();
        }
        migrate(&mut connection, Path::new("x")).unwrap();
        assert_eq!(crate::store::text::get(&connection, 1, 0, 5).unwrap(), "words");
        let known = crate::store::documents::known_below(&connection, Path::new("/r")).unwrap();
        let outdated = |path: &str| known.iter().find(|(p, _)| p == Path::new(path)).unwrap().1.outdated;
        assert!(!outdated("/r/a.txt") && outdated("/r/b.pdf"));
        assert!(crate::store::passages::by_id(&connection, 1).unwrap().is_some());
        assert!(crate::store::parts::at(&connection, 1, 0).unwrap().is_empty());
        let vector =
            crate::store::vectors::get(&connection, crate::store::vectors::Of::Serving, 1, 2).unwrap().unwrap();
        assert_eq!((vector.scale, vector.bytes), (1.0, vec![127, 1]));
        // Found by the whole hash, through an index that holds its beginning.
        let twin = |hash: &[u8]| crate::store::documents::by_hash(&connection, hash, Path::new("/r/b.pdf")).unwrap();
        assert!(twin(&[1]).is_some() && twin(&[1, 0]).is_none());
        // The full text is to be merged, and texts are to be packed.
        assert!(crate::store::fulltext::wants_merging(&connection, 1).unwrap());
        assert_eq!(crate::store::text::loose(&connection, 10).unwrap().len(), 2);
    }

    fn deflated(text: &str) -> Vec<u8> {
        use std::io::Write;
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn looking_for_locked_files_needs_no_table() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, Path::new("x")).unwrap();
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT 1 FROM documents WHERE state = {}",
            crate::types::State::Locked.number()
        );
        let plan: String = connection.query_row(&sql, [], |row| row.get(3)).unwrap();
        assert!(plan.contains("documents_locked"), "{plan}");
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
