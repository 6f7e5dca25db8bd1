//! The text of documents, in compressed blocks.
//!
//! A block is written as raw deflate to `loose_texts`, which costs next to nothing: a file is found by its words as soon as
//! may be. Brotli at the level used here takes a fifth less room, for it knows common words beforehand, but packs 2 MB a
//! second; so blocks are packed again later, a few at a time, and move to `texts` (see [`loose`], [`pack`], [`tighten`]).
//! A kill between leaves the older form, which reads the same.

use std::io::{Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rusqlite::{Connection, params};

use crate::error::{Doing, Error};
use crate::extract::floor_boundary;
use crate::limits::{BLOCK_BYTES, TEXT_BYTES_MAX};

/// Bits of a block's id that are its first byte in the text; those above are the document.
const START_BITS: u32 = 28;
const _: () = assert!(TEXT_BYTES_MAX < 1 << START_BITS);

/// The level above saves one part in fifty and takes twice the time; those below find no better than deflate.
const BROTLI_LEVEL: i32 = 10;
/// Window of 64 KiB, the next size above a block.
const BROTLI_WINDOW: i32 = 16;
/// Bytes handed from coder to coder at a time.
const BUFFER_BYTES: usize = 4096;

/// A block's id. A start beyond the longest text belongs to no block.
fn block_id(document_id: i64, start: usize) -> i64 {
    (document_id << START_BITS) | i64::try_from(start.min((1 << START_BITS) - 1)).unwrap_or(0)
}

/// Ids of a document's blocks, first and last.
fn ids_of(document_id: i64) -> [i64; 2] {
    [block_id(document_id, 0), block_id(document_id, usize::MAX)]
}

pub(crate) fn put(connection: &Connection, document_id: i64, text: &str) -> Result<(), Error> {
    let sql = "INSERT INTO loose_texts (id, data) VALUES (?1, ?2)";
    let mut statement = connection.prepare_cached(sql).doing("store a text")?;
    let mut start = 0;
    while start < text.len() {
        let end = floor_boundary(text, start + BLOCK_BYTES);
        let data = deflate(&text.as_bytes()[start..end])?;
        statement.execute(params![block_id(document_id, start), data]).doing("store a text")?;
        start = end;
    }
    Ok(())
}

/// The bytes of a span. A span that does not exist is damage, not a short answer.
pub(crate) fn get(connection: &Connection, document_id: i64, start: usize, end: usize) -> Result<String, Error> {
    // The block that the span begins in is the last one at or before its start, in whichever table that lies.
    let sql = "WITH first (id) AS (SELECT max(
                   coalesce((SELECT max(id) FROM texts WHERE id BETWEEN ?1 AND ?2), ?1),
                   coalesce((SELECT max(id) FROM loose_texts WHERE id BETWEEN ?1 AND ?2), ?1)))
               SELECT id, 1, data FROM texts WHERE id >= (SELECT id FROM first) AND id < ?3
               UNION ALL SELECT id, 0, data FROM loose_texts WHERE id >= (SELECT id FROM first) AND id < ?3 ORDER BY id";
    let mut statement = connection.prepare_cached(sql).doing("read a text")?;
    let bounds = [block_id(document_id, 0), block_id(document_id, start), block_id(document_id, end)];
    let mut rows = statement.query(bounds).doing("read a text")?;
    let mut bytes = Vec::new();
    let mut base = None;
    while let Some(row) = rows.next().doing("read a text")? {
        let at = row.get::<_, i64>(0).doing("read a text")? - bounds[0];
        let base = *base.get_or_insert(usize::try_from(at).unwrap_or(0));
        let tight = row.get(1).doing("read a text")?;
        let data = row.get_ref(2).doing("read a text")?.as_blob().unwrap_or_default();
        // Of the last block only what lies before the end is unpacked.
        unpack(tight, data, end.saturating_sub(base), &mut bytes)?;
    }
    let base = base.unwrap_or(0);
    let span = start.checked_sub(base).zip(end.checked_sub(base)).and_then(|(from, to)| bytes.get(from..to));
    span.and_then(|s| std::str::from_utf8(s).ok()).map(str::to_owned).ok_or_else(|| Error::Damaged {
        what: format!("the text of document {document_id} has no bytes {start} to {end}"),
    })
}

pub(crate) fn delete(connection: &Connection, document_id: i64) -> Result<(), Error> {
    for sql in ["DELETE FROM texts WHERE id BETWEEN ?1 AND ?2", "DELETE FROM loose_texts WHERE id BETWEEN ?1 AND ?2"] {
        connection.prepare_cached(sql).and_then(|mut s| s.execute(ids_of(document_id))).doing("remove a text")?;
    }
    Ok(())
}

/// The stored blocks as they lie in the file, for the proof that they are gone.
pub(crate) fn raw_blocks(connection: &Connection, document_id: i64) -> Result<Vec<Vec<u8>>, Error> {
    let sql = "SELECT data FROM texts WHERE id BETWEEN ?1 AND ?2
               UNION ALL SELECT data FROM loose_texts WHERE id BETWEEN ?1 AND ?2";
    let mut statement = connection.prepare_cached(sql).doing("read a text")?;
    let rows = statement.query_map(ids_of(document_id), |row| row.get(0));
    rows.and_then(Iterator::collect).doing("read a text")
}

/// A block packed tightly.
pub(crate) struct Tight {
    id: i64,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Blocks that are still as they were first written, at most so many: id and data.
pub(crate) fn loose(connection: &Connection, limit: usize) -> Result<Vec<(i64, Vec<u8>)>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT id, data FROM loose_texts ORDER BY id LIMIT ?1").doing("read a text")?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).doing("read a text")
}

/// Packs such blocks anew; needs no database, so nobody waits.
pub(crate) fn pack(blocks: Vec<(i64, Vec<u8>)>) -> Result<Vec<Tight>, Error> {
    let pack = |(id, before): (i64, Vec<u8>)| {
        let mut bytes = Vec::new();
        unpack(false, &before, usize::MAX, &mut bytes)?;
        Ok(Tight { id, after: brotli(&bytes)?, before })
    };
    blocks.into_iter().map(pack).collect()
}

/// Puts packed blocks in place, but for those whose document changed meanwhile.
pub(crate) fn tighten(connection: &Connection, blocks: &[Tight]) -> Result<(), Error> {
    let mut take =
        connection.prepare_cached("DELETE FROM loose_texts WHERE id = ?1 AND data = ?2").doing("store a text")?;
    let mut put = connection.prepare_cached("INSERT INTO texts (id, data) VALUES (?1, ?2)").doing("store a text")?;
    for block in blocks {
        if take.execute(params![block.id, block.before]).doing("store a text")? > 0 {
            put.execute(params![block.id, block.after]).doing("store a text")?;
        }
    }
    Ok(())
}

fn deflate(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|e| damaged("packed", &e))
}

fn brotli(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let params = BrotliEncoderParams {
        quality: BROTLI_LEVEL,
        lgwin: BROTLI_WINDOW,
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut encoder = brotli::CompressorWriter::with_params(Vec::new(), BUFFER_BYTES, &params);
    encoder.write_all(bytes).map_err(|e| damaged("packed", &e))?;
    Ok(encoder.into_inner())
}

/// Appends at most `most` bytes of a block.
fn unpack(tight: bool, data: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    // A block never holds more than BLOCK_BYTES; reading stops there whatever the data says.
    let most = most.min(BLOCK_BYTES + 4) as u64;
    let read = if tight {
        brotli::Decompressor::new(data, BUFFER_BYTES).take(most).read_to_end(out)
    } else {
        DeflateDecoder::new(data).take(most).read_to_end(out)
    };
    read.map(|_| ()).map_err(|e| damaged("unpacked", &e))
}

fn damaged(what: &str, error: &std::io::Error) -> Error {
    Error::Damaged { what: format!("a text block could not be {what}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        for table in ["texts", "loose_texts"] {
            let sql = format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, data BLOB NOT NULL)");
            connection.execute_batch(&sql).unwrap();
        }
        connection
    }

    fn spans_read_alike(connection: &Connection, document_id: i64, text: &str) {
        let mut at = 0;
        while at < text.len() {
            let end = floor_boundary(text, at + 7001);
            assert_eq!(get(connection, document_id, at, end).unwrap(), text[at..end]);
            at = end;
        }
        assert_eq!(get(connection, document_id, 0, text.len()).unwrap(), text);
        assert!(get(connection, document_id, 0, text.len() + 1).is_err());
    }

    #[test]
    fn spans_read_alike_before_and_after_packing() {
        let connection = store();
        let texts = ["é漢字 words and more words, ".repeat(6000), "short".to_owned(), "b".repeat(BLOCK_BYTES)];
        for (text, id) in texts.iter().zip(3..) {
            put(&connection, id, text).unwrap();
            spans_read_alike(&connection, id, text);
        }
        let before: Vec<usize> = (3..6).map(|id| raw_blocks(&connection, id).unwrap().concat().len()).collect();
        // In two turns, as a kill between would leave it.
        tighten(&connection, &pack(loose(&connection, 2).unwrap()).unwrap()).unwrap();
        spans_read_alike(&connection, 3, &texts[0]);
        tighten(&connection, &pack(loose(&connection, 100).unwrap()).unwrap()).unwrap();
        assert!(loose(&connection, 1).unwrap().is_empty());
        for ((text, id), before) in texts.iter().zip(3..).zip(before) {
            spans_read_alike(&connection, id, text);
            assert!(raw_blocks(&connection, id).unwrap().concat().len() <= before + 4, "document {id}");
        }
        delete(&connection, 3).unwrap();
        assert!(raw_blocks(&connection, 3).unwrap().is_empty());
        spans_read_alike(&connection, 4, &texts[1]);
    }

    #[test]
    fn a_block_that_changed_meanwhile_stays() {
        let connection = store();
        put(&connection, 1, "the old text").unwrap();
        let packed = pack(loose(&connection, 10).unwrap()).unwrap();
        delete(&connection, 1).unwrap();
        put(&connection, 1, "the new text").unwrap();
        tighten(&connection, &packed).unwrap();
        assert_eq!(get(&connection, 1, 0, 12).unwrap(), "the new text");
    }

    #[test]
    fn damage_is_an_error() {
        let connection = store();
        connection.execute("INSERT INTO texts VALUES (?1, x'00ff13')", [block_id(1, 0)]).unwrap();
        assert!(get(&connection, 1, 0, 3).is_err());
        assert!(get(&connection, 2, 0, 3).is_err());
    }
}
