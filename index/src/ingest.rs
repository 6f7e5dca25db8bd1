//! One file → its rows, in one transaction.

use std::fs::File;
use std::path::Path;

use rusqlite::Transaction;
use sha2::{Digest, Sha256};

use crate::beneath::{self, Barred};
use crate::chunk::{Chunk, Sizes, chunk};
use crate::embedder::Embedder;
use crate::embedders;
use crate::error::Error;
use crate::extract::{self, Extracted, Refusal};
use crate::forget::FORGOTTEN;
use crate::index::Index;
use crate::jail::Jail;
use crate::kept::Kept;
use crate::language::Language;
use crate::limits::{CONTEXT_TOKENS_RESERVED, FILE_BYTES_MAX, PASSAGE_TOKENS_MAX_DEFAULT, PASSAGE_TOKENS_TARGET};
use crate::resident::{Change, Meta};
use crate::store::documents::{self, Document, Outcome, Stamp};
use crate::store::parts;
use crate::store::passages::{self, Passage};
use crate::store::vectors::{self, Of};
use crate::store::{forgotten, fulltext, roots, text};
use crate::terms::{Terms, document_terms};
use crate::types::{Kind, State};

/// What became of a file, for progress and events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ingested {
    /// The file is not there; its rows are gone.
    Gone,
    /// Nothing had changed.
    Unchanged,
    /// Its rows were written.
    Written { state: State, reason: Option<String> },
}

/// How passages are cut.
pub(crate) struct Cutting<'a> {
    /// Where files are parsed.
    pub jail: &'a Jail,
    pub embedder: Option<&'a dyn Embedder>,
    /// The embedder's epoch in the store.
    pub epoch: i64,
}

impl Cutting<'_> {
    fn sizes<'b>(&self, count: &'b dyn Fn(&str) -> usize) -> Sizes<'b> {
        let window = self.embedder.map_or(PASSAGE_TOKENS_MAX_DEFAULT + CONTEXT_TOKENS_RESERVED, Embedder::max_tokens);
        let max = window.saturating_sub(CONTEXT_TOKENS_RESERVED).max(16);
        Sizes { target: PASSAGE_TOKENS_TARGET.min(max), max, count }
    }
}

/// Tokens as a guess, for texts that are cut before there is an embedder: about four letters of an alphabet, or one and a
/// half ideographs.
fn guess_tokens(text: &str) -> usize {
    let (mut letters, mut ideographs, mut marks) = (0, 0, 0);
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '\u{2E80}'.. => ideographs += 1,
            _ if c.is_ascii_punctuation() => marks += 1,
            _ => letters += 1,
        }
    }
    letters / 4 + ideographs * 2 / 3 + marks + 1
}

/// Brings the rows of one file in step with the file.
pub(crate) fn ingest(index: &Index, root: &Path, path: &Path, cutting: &Cutting<'_>) -> Result<Ingested, Error> {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let kind = extract::Format::of_name(relative).map(extract::Format::kind);
    let (mut file, stat) = match beneath::open_file(root, relative) {
        Ok(opened) => opened,
        Err(Barred::Gone | Barred::NotAFile) => return remove(index, path),
        Err(Barred::System(errno)) => {
            let stamp = beneath::stat_path(root, relative).map(|s| beneath::stamp(&s)).unwrap_or_default();
            let refusal = Refusal::failed(format!("cannot be opened: {}", std::io::Error::from(errno)));
            return refuse(index, path, kind.unwrap_or(Kind::Other), stamp, cutting.epoch, &refusal, None);
        }
    };
    let stamp = beneath::stamp(&stat);
    let (kind, read) = match kind {
        Ok(kind) => (kind, read(&mut file, stamp)),
        Err(refusal) => (Kind::Other, Err(refusal)),
    };
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(refusal) => return refuse(index, path, kind, stamp, cutting.epoch, &refusal, None),
    };
    let hash = Sha256::digest(&bytes);
    if let Some(same) = unchanged(index, path, &hash, stamp, cutting)? {
        return Ok(same);
    }
    let extracted = match cutting.jail.extract(relative, &bytes)? {
        Ok(extracted) => extracted,
        Err(refusal) => return refuse(index, path, kind, stamp, cutting.epoch, &refusal, Some(&hash)),
    };
    drop(bytes);
    let prepared = prepare(path, &extracted, cutting);
    let source = Source { path, kind, stamp, hash: &hash, epoch: cutting.epoch, embeds: cutting.embedder.is_some() };
    write(index, &source, &extracted, &prepared)
}

fn read(file: &mut File, stamp: Stamp) -> Result<Vec<u8>, Refusal> {
    let size = u64::try_from(stamp.size).unwrap_or(0);
    let too_large = || Refusal::failed(format!("it is larger than the limit of {} MiB", FILE_BYTES_MAX >> 20));
    if size > FILE_BYTES_MAX {
        return Err(too_large());
    }
    match beneath::read(file, size, FILE_BYTES_MAX) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(too_large()),
        Err(error) => Err(Refusal::failed(format!("cannot be read: {error}"))),
    }
}

/// A file whose content is the one that was read before only gets its new stamp.
fn unchanged(
    index: &Index,
    path: &Path,
    hash: &[u8],
    stamp: Stamp,
    cutting: &Cutting<'_>,
) -> Result<Option<Ingested>, Error> {
    let Some(known) = index.store().read(|c| documents::by_path(c, path))? else { return Ok(None) };
    // What gave no text, or ended its reader, would do so again.
    if let Some(verdict) = known.verdict.as_ref().filter(|_| known.hash.as_deref() == Some(hash)) {
        return refuse(index, path, known.kind, stamp, cutting.epoch, verdict, Some(hash)).map(Some);
    }
    if known.hash.as_deref() != Some(hash) || known.epoch != cutting.epoch || known.text_bytes == 0 {
        return Ok(None);
    }
    let state = if known.unembedded > 0 && cutting.embedder.is_some() { State::Pending } else { State::Indexed };
    let language = Language::from_number(known.language);
    index.write("store a document", |tx, changes| {
        documents::set_stamp(tx, known.id, stamp, state)?;
        let meta = Meta {
            path: crate::store::path_bytes(path).into(),
            kind: known.kind,
            modified: stamp.mtime / 1_000_000,
            language,
        };
        changes.push(Change::AddDocument { id: known.id, meta });
        Ok(())
    })?;
    if known.state == state {
        Ok(Some(Ingested::Unchanged))
    } else {
        Ok(Some(Ingested::Written { state, reason: None }))
    }
}

/// Takes a file that is gone out of the index.
pub(crate) fn remove(index: &Index, path: &Path) -> Result<Ingested, Error> {
    if index.store().read(|c| documents::by_path(c, path))?.is_none() {
        return Ok(Ingested::Gone);
    }
    index.write("remove a document", |tx, changes| {
        if let Some(known) = documents::by_path(tx, path)? {
            clear(tx, &known, changes)?;
            documents::delete(tx, known.id)?;
        }
        Ok(())
    })?;
    Ok(Ingested::Gone)
}

/// Removes everything a document has but its row.
pub(crate) fn clear(tx: &Transaction<'_>, known: &Document, changes: &mut Vec<Change>) -> Result<(), Error> {
    if known.text_bytes > 0 {
        fulltext::delete_of(tx, known.id)?;
        vectors::delete_of(tx, known.id)?;
        passages::delete_of(tx, known.id)?;
        parts::delete_of(tx, known.id)?;
        text::delete(tx, known.id)?;
        changes.push(Change::RemoveDocument { id: known.id });
    }
    Ok(())
}

fn refuse(
    index: &Index,
    path: &Path,
    kind: Kind,
    stamp: Stamp,
    epoch: i64,
    refusal: &Refusal,
    hash: Option<&[u8]>,
) -> Result<Ingested, Error> {
    index.write("store a document", |tx, changes| {
        if !watched(tx, path)? {
            return Ok(());
        }
        if let Some(known) = documents::by_path(tx, path)? {
            clear(tx, &known, changes)?;
        }
        let mut outcome = Outcome::without_text(path, refusal.state, &refusal.reason, kind, stamp, epoch);
        outcome.hash = hash;
        outcome.verdict = hash.is_some();
        documents::put(tx, &outcome, index.now())?;
        Ok(())
    })?;
    Ok(Ingested::Written { state: refusal.state, reason: Some(refusal.reason.clone()) })
}

/// Whether the path lies in a root still: one may have been removed while its files were being read.
fn watched(tx: &Transaction<'_>, path: &Path) -> Result<bool, Error> {
    Ok(roots::containing(&roots::all(tx)?, path).is_some())
}

/// A passage ready to be stored.
struct Prepared {
    chunk: Chunk,
    terms: Terms,
    fingerprint: i64,
}

/// A document ready to be stored.
struct Cut {
    language: Language,
    passages: Vec<Prepared>,
}

fn prepare(path: &Path, extracted: &Extracted, cutting: &Cutting<'_>) -> Cut {
    let count = |text: &str| cutting.embedder.map_or_else(|| guess_tokens(text), |e| e.count_tokens(text));
    let language = Language::of(&extracted.text);
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let mut around = Terms::default();
    document_terms(&name, language, &mut around);
    for keyword in &extracted.keywords {
        document_terms(keyword, language, &mut around);
    }
    // Words of the name and of tags are found but do not make a passage longer.
    around.length = 0;
    let passages = chunk(&extracted.text, &extracted.headings, &extracted.parts, &cutting.sizes(&count))
        .into_iter()
        .map(|chunk| {
            let body = &extracted.text[chunk.start..chunk.end];
            let context = context(extracted.title.as_deref(), &chunk.heading, body);
            let mut terms = around.clone();
            document_terms(&context, language, &mut terms);
            document_terms(body, language, &mut terms);
            Prepared { fingerprint: fingerprint(&embedded_text(&context, body)), chunk, terms }
        });
    Cut { language, passages: passages.collect() }
}

/// Title and headings that the passage does not itself begin with.
pub(crate) fn context(title: Option<&str>, heading: &str, body: &str) -> String {
    let start = &body[..extract::floor_boundary(body, 400)];
    let start = start.trim_start_matches(['#', ' ', '\u{FEFF}']);
    let mut parts: Vec<&str> = Vec::new();
    for part in title.into_iter().chain(heading.split(" > ")) {
        if !part.is_empty() && !parts.contains(&part) && !start.starts_with(part) {
            parts.push(part);
        }
    }
    parts.join("\n")
}

/// What the embedder is given for a passage.
pub(crate) fn embedded_text(context: &str, body: &str) -> String {
    if context.is_empty() { body.to_owned() } else { format!("{context}\n\n{body}") }
}

fn fingerprint(embedded: &str) -> i64 {
    let digest = Sha256::digest(embedded.as_bytes());
    digest.first_chunk::<8>().map_or(0, |b| i64::from_le_bytes(*b))
}

struct Source<'a> {
    path: &'a Path,
    kind: Kind,
    stamp: Stamp,
    hash: &'a [u8],
    epoch: i64,
    embeds: bool,
}

fn write(index: &Index, source: &Source<'_>, extracted: &Extracted, prepared: &Cut) -> Result<Ingested, Error> {
    let mut result = Ingested::Unchanged;
    let title = extracted.title.as_deref();
    let keywords = Some(extracted.keywords.join(", ")).filter(|k| !k.is_empty());
    index.write("store a document", |tx, changes| {
        if !watched(tx, source.path)? {
            return Ok(());
        }
        let known = documents::by_path(tx, source.path)?;
        let kept = Kept::of(tx, source.path, source.hash, known.as_ref())?;
        if let Some(known) = &known {
            clear(tx, known, changes)?;
        }
        if forgotten::holds(tx, source.path, source.hash, source.stamp)? {
            let mut outcome =
                Outcome::without_text(source.path, State::Excluded, FORGOTTEN, source.kind, source.stamp, source.epoch);
            outcome.hash = Some(source.hash);
            documents::put(tx, &outcome, index.now())?;
            // From now on the content is known, not only its size and time.
            forgotten::put(tx, source.path, Some(source.hash), source.stamp)?;
            result = Ingested::Written { state: State::Excluded, reason: Some(FORGOTTEN.to_owned()) };
            return Ok(());
        }
        forgotten::delete(tx, source.path)?;
        let wanted = embedders::wanted(tx)?;
        let unembedded = prepared.passages.iter().filter(|p| !kept.has(wanted, p.fingerprint)).count();
        let state = if unembedded > 0 && source.embeds { State::Pending } else { State::Indexed };
        let outcome = Outcome {
            path: source.path,
            state,
            reason: extracted.cut.as_deref(),
            kind: source.kind,
            stamp: source.stamp,
            epoch: source.epoch,
            hash: Some(source.hash),
            title,
            keywords: keywords.as_deref(),
            language: prepared.language.number(),
            in_file: extracted.in_file,
            text_bytes: extracted.text.len(),
            passages: prepared.passages.len(),
            unembedded,
            verdict: false,
            author: extracted.author.as_deref(),
            dated: extracted.dated,
            declared: extracted.language.as_deref(),
        };
        let id = documents::put(tx, &outcome, index.now())?;
        if let Some(meta) = Meta::of(&outcome) {
            changes.push(Change::AddDocument { id, meta });
        }
        text::put(tx, id, &extracted.text)?;
        parts::put(tx, id, &extracted.parts)?;
        put_passages(tx, id, prepared, &kept, changes)?;
        result = Ingested::Written { state, reason: extracted.cut.clone() };
        Ok(())
    })?;
    Ok(result)
}

fn put_passages(
    tx: &Transaction<'_>,
    document_id: i64,
    prepared: &Cut,
    kept: &Kept,
    changes: &mut Vec<Change>,
) -> Result<(), Error> {
    for p in &prepared.passages {
        let row = Passage {
            id: 0,
            document_id,
            byte_start: p.chunk.start,
            byte_end: p.chunk.end,
            line_start: p.chunk.line_start,
            line_end: p.chunk.line_end,
            heading: p.chunk.heading.clone(),
            length: p.terms.length,
            fingerprint: p.fingerprint,
        };
        let id = passages::put(tx, &row)?;
        fulltext::put(tx, id, &p.terms)?;
        if let Some(vector) = kept.coming.get(&p.fingerprint) {
            vectors::put(tx, Of::Coming, id, vector)?;
        }
        let vector = kept.serving.get(&p.fingerprint).cloned();
        if let Some(vector) = &vector {
            vectors::put(tx, Of::Serving, id, vector)?;
        }
        changes.push(Change::AddPassage { id, document_id, length: p.terms.length, vector });
    }
    fulltext::count_unmerged(tx, prepared.passages.len())
}

/// Lists a file, or a folder that cannot be listed, as failed; what was searchable of it goes.
pub(crate) fn mark_failed(index: &Index, path: &Path, reason: &str) -> Result<(), Error> {
    let stamp = std::fs::symlink_metadata(path).map(|m| stamp_of(&m)).unwrap_or_default();
    let epoch = index.epoch()?;
    refuse(index, path, Kind::Other, stamp, epoch, &Refusal::failed(reason), None).map(|_| ())
}

pub(crate) fn stamp_of(metadata: &std::fs::Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds = |s: i64, n: i64| s.saturating_mul(1_000_000_000).saturating_add(n);
    Stamp {
        size: metadata.size().cast_signed(),
        mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino().cast_signed(),
    }
}
