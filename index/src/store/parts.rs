//! Parts of documents: pages, sheets, slides, messages.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Doing, Error};
use crate::extract::{Part, PartKind};

pub(crate) fn put(connection: &Connection, document_id: i64, parts: &[Part]) -> Result<(), Error> {
    let sql = "INSERT INTO parts (document_id, number, start, kind, label, name) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut statement = connection.prepare_cached(sql).doing("store the parts of a document")?;
    for (number, part) in parts.iter().enumerate() {
        let values = params![document_id, bytes(number), bytes(part.start), part.kind.stored(), part.number, part.name];
        statement.execute(values).doing("store the parts of a document")?;
    }
    Ok(())
}

/// The part that a byte of the text lies in and, where that is a page, what the page is part of (an attachment, a file in
/// an archive).
pub(crate) fn at(connection: &Connection, document_id: i64, byte: usize) -> Result<Vec<Part>, Error> {
    let sql = "SELECT start, kind, label, name FROM parts WHERE document_id = ?1 AND start <= ?2
               ORDER BY start DESC, number DESC LIMIT 1";
    let around = "SELECT start, kind, label, name FROM parts WHERE document_id = ?1 AND start <= ?2 AND kind <> ?3
                  ORDER BY start DESC, number DESC LIMIT 1";
    let mut query = connection.prepare_cached(sql).doing("look up a part")?;
    let Some(inner) = query.query_row(params![document_id, bytes(byte)], part).optional().doing("look up a part")?
    else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    if inner.kind == PartKind::Page {
        let mut query = connection.prepare_cached(around).doing("look up a part")?;
        let bounds = params![document_id, bytes(byte), PartKind::Page.stored()];
        found.extend(query.query_row(bounds, part).optional().doing("look up a part")?);
    }
    found.push(inner);
    Ok(found)
}

pub(crate) fn delete_of(connection: &Connection, document_id: i64) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM parts WHERE document_id = ?1")
        .and_then(|mut s| s.execute([document_id]))
        .doing("remove the parts of a document")?;
    Ok(())
}

fn part(row: &Row<'_>) -> rusqlite::Result<Part> {
    Ok(Part {
        start: usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
        kind: PartKind::from_stored(row.get(1)?).unwrap_or(PartKind::File),
        number: row.get(2)?,
        name: row.get(3)?,
    })
}

fn bytes(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
