//! Taking a document out of the index for good, and proving it.
//!
//! Deleting rows is not enough: full-text postings of a deleted passage stay in their segments until these are merged, and
//! pages of the database and its log keep old bytes. So after the rows are gone the full text is compacted, the log is
//! emptied into a database that overwrites what it frees, and then everything is looked for again: rows, terms that only
//! this document had, and the very bytes of its text blocks and vectors in both files.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::Connection;

use crate::error::{Doing, Error};
use crate::index::Index;
use crate::ingest::{clear, stamp_of};
use crate::language::Language;
use crate::store::documents::{self, Document, Outcome, Stamp};
use crate::store::vectors::Of;
use crate::store::{self, forgotten, fulltext, passages, text, vectors};
use crate::terms::{Terms, document_terms};
use crate::types::{Forgotten, State};

/// Why a forgotten file is not indexed.
pub(crate) const FORGOTTEN: &str = "forgotten; it comes back when its content changes";

/// Bytes of a blob that are looked for; shorter ones could stand elsewhere by chance.
const NEEDLE: std::ops::RangeInclusive<usize> = 24..=64;
/// Needles taken of one document: the first blocks and vectors, and so on through the text.
const NEEDLES_MAX: usize = 512;

/// What a document leaves to look for.
#[derive(Default)]
struct Traces {
    ids: Vec<i64>,
    passage_ids: Vec<i64>,
    terms: BTreeSet<String>,
    needles: Vec<Vec<u8>>,
}

impl Index {
    /// Removes a document, or all documents below a folder: text, vectors, full text, and what free pages and the log still
    /// hold of them. A file that still lies in a root stays listed as excluded and does not come back until it changes.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`] if nothing is known of the path; [`Error::NotForgotten`] if anything was found afterwards
    /// (a copy of the same text in another file shares no bytes here, so that is no such case).
    pub fn forget(&self, path: &Path) -> Result<Forgotten, Error> {
        let known = self.store().read(|c| documents::below(c, path))?;
        if known.is_empty() {
            return Err(Error::UnknownDocument { path: path.to_owned() });
        }
        let (mut traces, mut report) = (Traces::default(), Forgotten::default());
        self.write("forget a document", |tx, changes| {
            for document in documents::below(tx, path)? {
                traces.collect(tx, &document, &mut report)?;
                clear(tx, &document, changes)?;
                // Deleted and written anew, so that no column keeps anything but what is listed.
                documents::delete(tx, document.id)?;
                let (hash, stamp) = as_it_lies(&document);
                let mut outcome = Outcome::without_text(
                    &document.path,
                    State::Excluded,
                    FORGOTTEN,
                    document.kind,
                    stamp,
                    document.epoch,
                );
                outcome.hash = hash;
                documents::put(tx, &outcome, self.now())?;
                forgotten::put(tx, &document.path, hash, stamp)?;
            }
            Ok(())
        })?;
        self.wipe()?;
        let left = self.look_for(&mut traces, &mut report)?;
        if left > 0 {
            return Err(Error::NotForgotten { path: path.to_owned(), traces: left });
        }
        Ok(report)
    }

    /// Rewrites the full text without what was deleted, and empties the log.
    fn wipe(&self) -> Result<(), Error> {
        self.write("compact its full text", |tx, _| fulltext::optimize(tx))?;
        let writer = self.store().writer();
        // A search that is running holds the log for some milliseconds.
        for _ in 0..100 {
            if store::checkpoint(&writer)? {
                break;
            }
        }
        self.store().compact(&writer).map(|_| ())
    }

    fn look_for(&self, traces: &mut Traces, report: &mut Forgotten) -> Result<usize, Error> {
        let mut left = self.store().read(|c| traces.rows_left(c))?;
        // Terms that other documents have too prove nothing either way.
        left += self.store().read(|c| {
            let mut found = 0;
            for term in &traces.terms {
                if !fulltext::has_term(c, term)? {
                    report.terms += 1;
                } else if !fulltext::has_living(c, term)? {
                    found += 1;
                }
            }
            Ok(found)
        })?;
        for file in self.store().files() {
            let (found, scanned) = scan_file(&file, &traces.needles)?;
            report.scanned_bytes += scanned;
            left += found;
        }
        Ok(left)
    }
}

/// What the file is told by later. If it was not read yet in its present form, the file's size and time must do.
fn as_it_lies(document: &Document) -> (Option<&[u8]>, Stamp) {
    match document.hash.as_deref() {
        Some(hash) if !document.stale => (Some(hash), document.stamp),
        _ => (None, std::fs::symlink_metadata(&document.path).map_or(document.stamp, |m| stamp_of(&m))),
    }
}

impl Traces {
    fn collect(&mut self, connection: &Connection, document: &Document, report: &mut Forgotten) -> Result<(), Error> {
        self.ids.push(document.id);
        report.documents += 1;
        report.text_bytes += u64::try_from(document.text_bytes).unwrap_or(0);
        let mut terms = Terms::default();
        for passage in passages::of_document(connection, document.id)? {
            report.passages += 1;
            self.passage_ids.push(passage.id);
            let body = text::get(connection, document.id, passage.byte_start, passage.byte_end)?;
            document_terms(&body, Language::from_number(document.language), &mut terms);
            for of in Of::ALL {
                if let Some(blob) = vectors::raw(connection, of, passage.id)? {
                    report.vectors += 1;
                    self.needle(&blob);
                }
            }
        }
        self.terms.extend(terms.counts.into_keys());
        for block in text::raw_blocks(connection, document.id)? {
            self.needle(&block);
        }
        Ok(())
    }

    fn needle(&mut self, blob: &[u8]) {
        // From the middle: the start of a compressed block is much the same for similar texts.
        let from = blob.len() / 2;
        let needle = &blob[from..blob.len().min(from + NEEDLE.end())];
        if needle.len() >= *NEEDLE.start() && self.needles.len() < NEEDLES_MAX && needle.iter().any(|b| *b != needle[0])
        {
            self.needles.push(needle.to_vec());
        }
    }

    fn rows_left(&self, connection: &Connection) -> Result<usize, Error> {
        let mut left = 0;
        for (ids, sql) in [
            (&self.ids, "SELECT (SELECT count(*) FROM documents WHERE id = ?1) + (SELECT count(*) FROM texts WHERE id BETWEEN ?1 << 28 AND (?1 << 28) + 268435455)
                         + (SELECT count(*) FROM loose_texts WHERE id BETWEEN ?1 << 28 AND (?1 << 28) + 268435455)
                         + (SELECT count(*) FROM passages WHERE document_id = ?1) + (SELECT count(*) FROM parts WHERE document_id = ?1)"),
            (&self.passage_ids, "SELECT (SELECT count(*) FROM passages WHERE id = ?1) + (SELECT count(*) FROM vectors WHERE passage_id = ?1)
                         + (SELECT count(*) FROM coming_vectors WHERE passage_id = ?1)
                         + (SELECT count(*) FROM fulltext_docsize WHERE id = ?1)"),
        ] {
            let mut query = connection.prepare(sql).doing("look for a forgotten document")?;
            for id in ids {
                let rows: i64 = query.query_row([id], |row| row.get(0)).doing("look for a forgotten document")?;
                left += usize::try_from(rows).unwrap_or(0);
            }
        }
        Ok(left)
    }
}

/// Looks for byte strings in a file, a piece at a time. Gives how many were found and how many bytes were read.
fn scan_file(path: &Path, needles: &[Vec<u8>]) -> Result<(usize, u64), Error> {
    let io = |source| Error::Io { doing: "scan", path: path.to_owned(), source };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((0, 0)),
        Err(error) => return Err(io(error)),
    };
    // Needles by their first bytes, so that each place of the file is looked at once.
    let mut by_start: std::collections::HashMap<[u8; 4], Vec<usize>> = std::collections::HashMap::new();
    for (i, needle) in needles.iter().enumerate() {
        if let Some(start) = needle.first_chunk::<4>() {
            by_start.entry(*start).or_default().push(i);
        }
    }
    let mut found = BTreeSet::new();
    let mut window: Vec<u8> = Vec::new();
    let mut scanned = 0;
    loop {
        let mut piece = Vec::new();
        let read = file.by_ref().take(1 << 20).read_to_end(&mut piece).map_err(io)?;
        if read == 0 {
            return Ok((found.len(), scanned));
        }
        scanned += read as u64;
        window.extend_from_slice(&piece);
        for at in 0..window.len().saturating_sub(3) {
            let Some(hits) = window[at..].first_chunk::<4>().and_then(|start| by_start.get(start)) else { continue };
            found.extend(hits.iter().copied().filter(|i| window[at..].starts_with(&needles[*i])));
        }
        let keep = window.len().saturating_sub(*NEEDLE.end());
        window.drain(..keep);
    }
}
