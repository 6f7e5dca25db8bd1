//! The text of documents, in compressed blocks.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::{Connection, params};

use crate::error::{Doing, Error};
use crate::extract::floor_boundary;
use crate::limits::BLOCK_BYTES;

pub(crate) fn put(connection: &Connection, document_id: i64, text: &str) -> Result<(), Error> {
    let sql = "INSERT INTO blocks (document_id, start, data) VALUES (?1, ?2, ?3)";
    let mut statement = connection.prepare_cached(sql).doing("store a text")?;
    let mut start = 0;
    while start < text.len() {
        let end = floor_boundary(text, start + BLOCK_BYTES);
        let data = pack(&text.as_bytes()[start..end])?;
        statement
            .execute(params![document_id, i64::try_from(start).unwrap_or(i64::MAX), data])
            .doing("store a text")?;
        start = end;
    }
    Ok(())
}

/// The bytes of a span. A span that does not exist is damage, not a short answer.
pub(crate) fn get(connection: &Connection, document_id: i64, start: usize, end: usize) -> Result<String, Error> {
    let sql = "SELECT start, data FROM blocks WHERE document_id = ?1 AND start < ?3
                 AND start >= (SELECT max(start) FROM blocks WHERE document_id = ?1 AND start <= ?2) ORDER BY start";
    let mut statement = connection.prepare_cached(sql).doing("read a text")?;
    let bounds = params![document_id, i64::try_from(start).unwrap_or(i64::MAX), i64::try_from(end).unwrap_or(i64::MAX)];
    let mut rows = statement.query(bounds).doing("read a text")?;
    let mut bytes = Vec::new();
    let mut base = None;
    while let Some(row) = rows.next().doing("read a text")? {
        let at: i64 = row.get(0).doing("read a text")?;
        base.get_or_insert(usize::try_from(at).unwrap_or(0));
        unpack(row.get_ref(1).doing("read a text")?.as_blob().unwrap_or_default(), &mut bytes)?;
    }
    let base = base.unwrap_or(0);
    let span = start.checked_sub(base).zip(end.checked_sub(base)).and_then(|(from, to)| bytes.get(from..to));
    span.and_then(|s| std::str::from_utf8(s).ok()).map(str::to_owned).ok_or_else(|| Error::Damaged {
        what: format!("the text of document {document_id} has no bytes {start} to {end}"),
    })
}

pub(crate) fn delete(connection: &Connection, document_id: i64) -> Result<(), Error> {
    connection
        .prepare_cached("DELETE FROM blocks WHERE document_id = ?1")
        .and_then(|mut s| s.execute([document_id]))
        .doing("remove a text")?;
    Ok(())
}

/// The stored blocks as they lie in the file, for the proof that they are gone.
pub(crate) fn raw_blocks(connection: &Connection, document_id: i64) -> Result<Vec<Vec<u8>>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT data FROM blocks WHERE document_id = ?1").doing("read a text")?;
    let rows = statement.query_map([document_id], |row| row.get(0));
    rows.and_then(Iterator::collect).doing("read a text")
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.map_err(|e| Error::Damaged { what: format!("a text block could not be packed: {e}") })
}

fn unpack(data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    // A block never holds more than BLOCK_BYTES; reading stops there whatever the data says.
    let mut decoder = DeflateDecoder::new(data).take(BLOCK_BYTES as u64 + 4);
    decoder
        .read_to_end(out)
        .map_err(|e| Error::Damaged { what: format!("a text block could not be unpacked: {e}") })?;
    Ok(())
}
