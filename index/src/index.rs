//! The index as its users see it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::beneath;
use crate::embedder::{Embedder, check_vector};
use crate::error::{Doing, Error};
use crate::extract::{PartKind, floor_boundary};
use crate::language::Language;
use crate::limits::{
    FILES_PAGE_MAX, FUSION_DEPTH, HITS_MAX, LISTS_PASSAGES_MIN, QUERY_BYTES_MAX, REPEATS_NAMED_MAX, TIGHTEN_BATCH,
};
use crate::lists;
use crate::nearest::nearest;
use crate::phrase::Phrases;
use crate::relevance::{Calibration, relevance};
use crate::repeats::Texts;
use crate::resident::{Change, Resident};
use crate::search::{self, Ranked};
use crate::store::{Store, documents, fulltext, parts, passages, roots, state, text};
use crate::types::{Counts, FileInfo, FilesQuery, Hit, Mode, Query, Root, SearchResult, display_path};
use crate::{lexical, terms};

/// The index of a person's folders. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Index {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    resident: RwLock<Resident>,
}

impl Index {
    /// Opens the index in `dir`, creating the folder and the database where there is none.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process has it open; [`Error::NewerSchema`] if a newer version wrote it; and whatever
    /// the system or SQLite refuse.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let store = Store::open(dir)?;
        let resident = store.read(Resident::load)?;
        let index = Self { inner: Arc::new(Inner { store, resident: RwLock::new(resident) }) };
        index.rebuild_full_text_if_outdated()?;
        Ok(index)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn resident(&self) -> RwLockReadGuard<'_, Resident> {
        self.inner.resident.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn resident_mut(&self) -> RwLockWriteGuard<'_, Resident> {
        self.inner.resident.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dimensions of the vectors in the store; 0 before there was an embedder.
    pub(crate) fn dim(&self) -> usize {
        self.resident().dim
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Runs one transaction and brings the resident table in step with it. Searches see both or neither: they wait for the
    /// commit, which in WAL mode is a write to the log without a sync.
    pub(crate) fn write<T>(
        &self,
        doing: &'static str,
        f: impl FnOnce(&Transaction<'_>, &mut Vec<Change>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = self.inner.store.writer();
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate).doing(doing)?;
        let mut changes = Vec::new();
        let value = f(&transaction, &mut changes)?;
        if changes.is_empty() && !self.resident().outdated() {
            transaction.commit().doing(doing)?;
        } else {
            let generation = state::next_generation(&transaction)?;
            let reload = changes.iter().any(|change| matches!(change, Change::Reload));
            let mut resident = self.resident_mut();
            transaction.commit().doing(doing)?;
            if reload || resident.outdated() {
                resident.reload(&writer)?;
            } else {
                resident.apply(changes, generation);
            }
        }
        self.inner.store.tidy(&writer)?;
        Ok(value)
    }

    /// Brings the store to its smallest size, for quiet moments: packs texts, merges the full text once much of it changed,
    /// gives free pages back and empties the log. Gives whether all of that is done; it stops early where `go_on` says so.
    pub(crate) fn compact(&self, go_on: &dyn Fn() -> bool) -> Result<bool, Error> {
        while self.pack_texts()? {
            if !go_on() {
                return Ok(false);
            }
        }
        let living = self.resident().live();
        if self.store().read(|c| fulltext::wants_merging(c, living))? {
            while self.write("compact its full text", |tx, _| fulltext::merge(tx))? {
                if !go_on() {
                    return Ok(false);
                }
            }
        }
        let writer = self.store().writer();
        self.store().compact(&writer)
    }

    /// Packs some texts tightly. Gives whether there may be more.
    pub(crate) fn pack_texts(&self) -> Result<bool, Error> {
        let packed = text::pack(self.store().read(|c| text::loose(c, TIGHTEN_BATCH))?)?;
        if packed.is_empty() {
            return Ok(false);
        }
        self.write("store a text", |tx, _| text::tighten(tx, &packed))?;
        Ok(true)
    }

    /// Looks after the lists of like passages; see [`lists::tend()`].
    pub(crate) fn tend_lists(&self, go_on: &dyn Fn() -> bool) {
        lists::tend(&self.inner.resident, LISTS_PASSAGES_MIN, go_on);
    }

    /// Lists of like passages that searches by meaning look into; 0 while they compare with every vector.
    #[must_use]
    pub fn lists(&self) -> usize {
        self.resident().lists().map_or(0, lists::Lists::len)
    }

    /// Whether that should not wait for a quiet moment.
    pub(crate) fn lists_are_pressing(&self) -> bool {
        lists::pressing(&self.resident())
    }

    /// Terms made by another version of the tokenizer are made anew from the stored texts.
    fn rebuild_full_text_if_outdated(&self) -> Result<(), Error> {
        let found = self.store().read(|c| state::number(c, state::TERMS_VERSION))?;
        if found == terms::VERSION {
            return Ok(());
        }
        self.write("rebuild its full text", |tx, _| {
            // Cut anew by the next scan: terms come from the whole pipeline, not from the text alone.
            tx.execute("UPDATE documents SET epoch = -1, stale = 1 WHERE passages > 0", [])
                .doing("rebuild its full text")?;
            state::set(tx, state::TERMS_VERSION, terms::VERSION)
        })
    }

    /// Adds a folder to those that are watched. A folder inside a root, or a root itself, is covered already and changes
    /// nothing; roots inside the new one become part of it. Gives the canonical path.
    ///
    /// # Errors
    /// The path is missing, is no folder, cannot be read, or lies inside the index's own folder. A folder around that is
    /// accepted: the index does not index itself.
    pub fn add_root(&self, path: &Path) -> Result<PathBuf, Error> {
        let canonical = canonical_folder(path)?;
        if canonical.starts_with(self.store().dir()) {
            return Err(Error::RootHoldsIndex { path: path.to_owned() });
        }
        self.write("add a root", |tx, _| {
            let known = roots::all(tx)?;
            if roots::containing(&known, &canonical).is_some() {
                return Ok(());
            }
            for inner in known.iter().filter(|r| r.path.starts_with(&canonical)) {
                roots::remove(tx, &inner.path)?;
            }
            roots::add(tx, &canonical).map(|_| ())
        })?;
        Ok(canonical)
    }

    /// Stops watching a folder and takes everything below it out of the index, however much that is.
    ///
    /// # Errors
    /// [`Error::NotARoot`] if it is none.
    pub fn remove_root(&self, path: &Path) -> Result<u64, Error> {
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let removed = self.write("remove a root", |tx, _| roots::remove(tx, &canonical))?;
        if !removed {
            return Err(Error::NotARoot { path: path.to_owned() });
        }
        let below = self.store().read(|c| documents::below(c, &canonical))?;
        for document in &below {
            crate::ingest::remove(self, &document.path)?;
        }
        Ok(below.len() as u64)
    }

    /// The watched folders.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn roots(&self) -> Result<Vec<Root>, Error> {
        self.store().read(roots::all)
    }

    /// Known files, in the order of their paths.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn files(&self, query: &FilesQuery) -> Result<Vec<FileInfo>, Error> {
        let limit = if query.limit == 0 { FILES_PAGE_MAX } else { query.limit.min(FILES_PAGE_MAX) };
        self.store().read(|c| documents::list(c, &FilesQuery { limit, ..query.clone() }))
    }

    /// How much the index holds.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn counts(&self) -> Result<Counts, Error> {
        let bytes = self.store().bytes();
        self.store().read(|c| {
            let generation = u64::try_from(state::number(c, state::GENERATION)?).unwrap_or(0);
            Ok(Counts { generation, bytes, ..documents::counts(c)? })
        })
    }

    /// Finds passages. Without an embedder, or before any passage has a vector of it, a hybrid search is a lexical one.
    ///
    /// # Errors
    /// [`Error::NoEmbedder`] for a vector search without one; the embedder's own; the store's.
    pub fn search(&self, query: &Query, embedder: Option<&dyn Embedder>) -> Result<SearchResult, Error> {
        let words = &query.text[..floor_boundary(&query.text, QUERY_BYTES_MAX)];
        let vector = match (query.mode, embedder) {
            (Mode::Lexical, _) | (Mode::Hybrid, None) => None,
            (Mode::Vector, None) => return Err(Error::NoEmbedder),
            (_, Some(embedder)) => self.embed_query(embedder, words)?,
        };
        let start = Instant::now();
        let resident = self.resident();
        let (hits, generation) = self.store().read(|c| {
            // The snapshot starts with its first read; the resident lock keeps commits out until then, and is held on so
            // that slots stay what they are.
            let generation = u64::try_from(state::number(c, state::GENERATION)?).unwrap_or(0);
            let k = query.k.clamp(1, HITS_MAX);
            let depth = FUSION_DEPTH.max(k);
            let allowed = resident.allowed(&query.filters);
            // A query of nothing but phrases keeps to the passages that have them, in every mode.
            let found = match query.mode {
                Mode::Vector if !Phrases::of(words).alone => lexical::Found::default(),
                _ => lexical::rank(c, &resident, words, allowed.as_deref(), depth)?,
            };
            let allowed = found.only.as_deref().or(allowed.as_deref());
            let by_vector = vector.as_deref().map_or_else(Vec::new, |v| nearest(&resident, v, allowed, depth));
            let ranked = match (query.mode, vector.is_some()) {
                (Mode::Hybrid, true) => search::fuse(&found.ranked, &by_vector, depth),
                (Mode::Vector, _) => by_vector,
                _ => found.ranked.clone(),
            };
            let scores = Scores {
                by_words: &found,
                query: vector.as_deref(),
                resident: &resident,
                calibration: embedder.and_then(Embedder::calibration),
                language: Language::guess(words),
            };
            Ok((distinct(c, &ranked, &scores, k)?, generation))
        })?;
        Ok(SearchResult { hits, generation, took: start.elapsed() })
    }

    /// The query's vector, if the index holds vectors of this embedder at all.
    fn embed_query(&self, embedder: &dyn Embedder, text: &str) -> Result<Option<Vec<f32>>, Error> {
        let id = embedder.id();
        let ours = self.store().read(|c| state::text(c, state::EMBEDDER))?.as_deref() == Some(&id);
        if !ours || self.resident().embedded() == 0 || text.trim().is_empty() {
            return Ok(None);
        }
        let vector = embedder.embed_query(text)?;
        check_vector(&vector, self.dim()).map_err(|what| Error::BadVector { id, what })?;
        Ok(Some(vector))
    }

    /// A passage by its id, for as long as its document does not change.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn passage(&self, passage_id: i64) -> Result<Option<Hit>, Error> {
        self.store().read(|c| load_hit(c, passage_id))
    }

    /// The passages around one, in the order of the text, itself included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn neighbours(&self, passage_id: i64, before: usize, after: usize) -> Result<Vec<Hit>, Error> {
        self.store().read(|c| {
            let Some(passage) = passages::by_id(c, passage_id)? else { return Ok(Vec::new()) };
            let all = passages::of_document(c, passage.document_id)?;
            let at = all.iter().position(|p| p.id == passage_id).unwrap_or(0);
            let window = &all[at.saturating_sub(before)..(at + after + 1).min(all.len())];
            let hits = window.iter().filter_map(|p| load_hit(c, p.id).transpose());
            hits.collect()
        })
    }
}

fn canonical_folder(path: &Path) -> Result<PathBuf, Error> {
    let io = |source| Error::Io { doing: "read", path: path.to_owned(), source };
    let canonical = path.canonicalize().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::RootMissing { path: path.to_owned() },
        _ => io(source),
    })?;
    if !canonical.is_dir() {
        return Err(Error::RootNotAFolder { path: path.to_owned() });
    }
    let folder = beneath::open_root(&canonical).map_err(|errno| io(errno.into()))?;
    if beneath::is_system(&folder) {
        return Err(Error::SystemFolder { path: path.to_owned() });
    }
    beneath::entries(folder).map_err(|errno| io(errno.into()))?;
    Ok(canonical)
}

/// Where the parts of a hit's score come from.
struct Scores<'a> {
    by_words: &'a lexical::Found,
    query: Option<&'a [f32]>,
    resident: &'a Resident,
    calibration: Option<Calibration>,
    /// Of the query.
    language: Option<Language>,
}

/// The best `k` hits that say something each. A hit that repeats a better one is named by it, if it is of another document.
fn distinct(connection: &Connection, ranked: &[Ranked], scores: &Scores<'_>, k: usize) -> Result<Vec<Hit>, Error> {
    let mut hits: Vec<Hit> = Vec::new();
    let mut texts = Texts::default();
    for ranked in ranked {
        if hits.len() == k {
            break;
        }
        let Some(hit) = hit(connection, *ranked, scores)? else { continue };
        let Some(better) = texts.repeated(&hit.text).and_then(|at| hits.get_mut(at)) else {
            hits.push(hit);
            continue;
        };
        if better.path != hit.path && !better.also.contains(&hit.path) && better.also.len() < REPEATS_NAMED_MAX {
            better.also.push(hit.path);
        }
    }
    Ok(hits)
}

fn hit(connection: &Connection, ranked: Ranked, scores: &Scores<'_>) -> Result<Option<Hit>, Error> {
    let Some(mut hit) = load_hit(connection, scores.resident.id(ranked.slot))? else { return Ok(None) };
    hit.score = ranked.score;
    hit.coverage = scores.by_words.coverage(ranked.slot);
    hit.lexical = scores.by_words.ranked.iter().find(|r| r.slot == ranked.slot).map(|r| r.score);
    hit.similarity = scores.query.and_then(|query| {
        let (scale, bytes) = scores.resident.vector(ranked.slot)?;
        Some(crate::dot::dot_f32(query, scale, bytes))
    });
    let foreign = scores.language.is_none_or(|asked| scores.resident.language(ranked.slot) != Some(asked));
    hit.relevance = relevance(scores.calibration.as_ref(), hit.similarity, hit.coverage, foreign);
    Ok(Some(hit))
}

fn load_hit(connection: &Connection, passage_id: i64) -> Result<Option<Hit>, Error> {
    let Some(passage) = passages::by_id(connection, passage_id)? else { return Ok(None) };
    let Some(document) = documents::by_id(connection, passage.document_id)? else { return Ok(None) };
    let text = text::get(connection, document.id, passage.byte_start, passage.byte_end)?;
    let name = document.path.file_name().map(|n| display_path(Path::new(n))).unwrap_or_default();
    let (mut page, mut part) = (None, String::new());
    for found in parts::at(connection, document.id, passage.byte_start)? {
        match found.kind {
            PartKind::Page | PartKind::Slide => page = Some(found.number),
            _ => part = found.label(),
        }
    }
    Ok(Some(Hit {
        page,
        part,
        author: document.author,
        dated: document.dated,
        document_id: display_path(&document.path),
        passage_id,
        title: document.title.unwrap_or(name),
        path: document.path,
        kind: document.kind,
        heading: passage.heading,
        line_start: passage.line_start,
        line_end: passage.line_end,
        byte_start: passage.byte_start,
        byte_end: passage.byte_end,
        in_file: document.in_file,
        score: 0.0,
        lexical: None,
        similarity: None,
        coverage: None,
        relevance: None,
        also: Vec::new(),
        text,
    }))
}
