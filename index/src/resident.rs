//! What a search needs in memory: for each passage its document, its length and its vector; for each document what a
//! filter asks. Built from SQLite at start, then kept in step by the same code that commits (see `index.rs`).
//!
//! 24 bytes and one byte a dimension for each passage, 8 more where there are lists: 100,000 passages of 384 dimensions take
//! 41 MB, a million 416 MB.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::Connection;

use crate::error::{Doing, Error};
use crate::language::Language;
use crate::limits::DIMENSIONS_MAX;
use crate::lists::Lists;
use crate::store::vectors::{self, Quantized};
use crate::store::{documents, state};
use crate::types::{Filter, Kind, State};

/// A change that a commit made to what searches see.
pub(crate) enum Change {
    AddDocument {
        id: i64,
        meta: Meta,
    },
    AddPassage {
        id: i64,
        document_id: i64,
        length: u32,
        vector: Option<Quantized>,
    },
    SetVector {
        passage_id: i64,
        vector: Quantized,
    },
    RemoveDocument {
        id: i64,
    },
    /// Another embedder: no vector is left.
    ResetVectors {
        dim: usize,
    },
    /// Another embedder, whose vectors are all there: who commits reads the table anew.
    Reload,
}

/// What a filter asks of a document.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    pub path: Box<[u8]>,
    pub kind: Kind,
    /// Milliseconds since 1970.
    pub modified: i64,
    pub language: Language,
}

/// A document and its first and last slot (exclusive).
struct Document {
    meta: Meta,
    slots: std::ops::Range<usize>,
}

/// The table. Slots are in the order of passage ids, which are never used twice, so additions go to the end.
#[derive(Default)]
pub(crate) struct Resident {
    pub generation: u64,
    pub dim: usize,
    ids: Vec<i64>,
    /// Document of each slot; 0 where the passage is gone.
    owners: Vec<i64>,
    lengths: Vec<u32>,
    /// 0 where there is no vector.
    scales: Vec<f32>,
    /// `dim` for each slot.
    bytes: Vec<i8>,
    documents: HashMap<i64, Document>,
    live: usize,
    embedded: usize,
    total_length: u64,
    /// Absent while they are not worth having or not made yet.
    lists: Option<Lists>,
    /// Changes when slots are renumbered or vectors get another length.
    layout: u64,
    /// It could not be read anew: empty until that succeeds.
    outdated: bool,
}

impl Resident {
    pub(crate) fn load(connection: &Connection) -> Result<Self, Error> {
        let dim = usize::try_from(state::number(connection, state::DIMENSIONS)?).unwrap_or(0).min(DIMENSIONS_MAX);
        let generation = u64::try_from(state::number(connection, state::GENERATION)?).unwrap_or(0);
        let mut table = Self { dim, generation, ..Self::default() };
        table.load_documents(connection)?;
        table.reserve(connection)?;
        let mut query = connection
            .prepare("SELECT id, document_id, length FROM passages ORDER BY id")
            .doing("load its passages")?;
        let mut rows = query.query([]).doing("load its passages")?;
        while let Some(row) = rows.next().doing("load its passages")? {
            let get = |i| row.get::<_, i64>(i).doing("load its passages");
            let length = u32::try_from(get(2)?).unwrap_or(0);
            table.add_passage(get(0)?, get(1)?, length, None);
        }
        // In the order of the file, not in that of the passages.
        vectors::each(connection, dim, |passage_id, vector| table.set_vector(passage_id, &vector))?;
        Ok(table)
    }

    /// Reads the table anew. Nobody may look meanwhile: slots and the length of vectors change.
    pub(crate) fn reload(&mut self, connection: &Connection) -> Result<(), Error> {
        let layout = self.layout + 1;
        // Not two tables at once.
        *self = Self { layout, outdated: true, ..Self::default() };
        *self = Self { layout, ..Self::load(connection)? };
        Ok(())
    }

    /// Makes room for all passages at once: growing by and by would copy what is there again and again.
    fn reserve(&mut self, connection: &Connection) -> Result<(), Error> {
        let count = connection.query_row("SELECT count(*) FROM passages", [], |row| row.get::<_, i64>(0));
        let count = usize::try_from(count.doing("count its passages")?).unwrap_or(0);
        self.ids.reserve_exact(count);
        self.owners.reserve_exact(count);
        self.lengths.reserve_exact(count);
        self.scales.reserve_exact(count);
        self.bytes.reserve_exact(count * self.dim);
        Ok(())
    }

    fn load_documents(&mut self, connection: &Connection) -> Result<(), Error> {
        let sql = "SELECT id, path, kind, mtime, language FROM documents WHERE passages > 0";
        let mut query = connection.prepare(sql).doing("load its documents")?;
        let mut rows = query.query([]).doing("load its documents")?;
        while let Some(row) = rows.next().doing("load its documents")? {
            let get = |i| row.get::<_, i64>(i).doing("load its documents");
            let path: Vec<u8> = row.get(1).doing("load its documents")?;
            let meta = Meta {
                path: path.into_boxed_slice(),
                kind: Kind::from_number(get(2)?),
                modified: get(3)? / 1_000_000,
                language: Language::from_number(get(4)?),
            };
            self.documents.insert(get(0)?, Document { meta, slots: 0..0 });
        }
        Ok(())
    }

    pub(crate) fn apply(&mut self, changes: Vec<Change>, generation: u64) {
        for change in changes {
            match change {
                Change::AddDocument { id, meta } => {
                    let slots = self.documents.get(&id).map_or(0..0, |d| d.slots.clone());
                    self.documents.insert(id, Document { meta, slots });
                }
                Change::AddPassage { id, document_id, length, vector } => {
                    self.add_passage(id, document_id, length, vector.as_ref());
                }
                Change::SetVector { passage_id, vector } => self.set_vector(passage_id, &vector),
                Change::RemoveDocument { id } => self.remove_document(id),
                Change::ResetVectors { dim } => self.reset_vectors(dim),
                Change::Reload => {}
            }
        }
        self.generation = generation;
        if self.ids.len() > 1024 && self.live * 2 < self.ids.len() {
            self.compact();
        }
    }

    fn add_passage(&mut self, id: i64, document_id: i64, length: u32, vector: Option<&Quantized>) {
        debug_assert!(self.ids.last().is_none_or(|last| *last < id), "passage ids rise");
        let slot = self.ids.len();
        let Some(document) = self.documents.get_mut(&document_id) else { return };
        document.slots = if document.slots.is_empty() { slot..slot + 1 } else { document.slots.start..slot + 1 };
        self.ids.push(id);
        self.owners.push(document_id);
        self.lengths.push(length);
        self.scales.push(0.0);
        self.bytes.resize((slot + 1) * self.dim, 0);
        if let Some(lists) = &mut self.lists {
            lists.extend();
        }
        self.live += 1;
        self.total_length += u64::from(length);
        if let Some(vector) = vector {
            self.put_vector(slot, vector);
        }
    }

    fn set_vector(&mut self, passage_id: i64, vector: &Quantized) {
        if let Ok(slot) = self.ids.binary_search(&passage_id)
            && self.owners[slot] != 0
        {
            self.put_vector(slot, vector);
        }
    }

    fn put_vector(&mut self, slot: usize, vector: &Quantized) {
        if vector.bytes.len() != self.dim || vector.scale <= 0.0 {
            return;
        }
        self.bytes[slot * self.dim..][..self.dim].copy_from_slice(&vector.bytes);
        self.embedded += usize::from(self.scales[slot] == 0.0);
        self.scales[slot] = vector.scale;
        if let Some(lists) = &mut self.lists {
            lists.put(slot);
        }
    }

    fn remove_document(&mut self, id: i64) {
        let Some(document) = self.documents.remove(&id) else { return };
        for slot in document.slots {
            if self.owners[slot] != id {
                continue;
            }
            self.owners[slot] = 0;
            self.live -= 1;
            self.total_length -= u64::from(self.lengths[slot]);
            self.embedded -= usize::from(self.scales[slot] != 0.0);
            self.scales[slot] = 0.0;
            if let Some(lists) = &mut self.lists {
                lists.remove(slot);
            }
            // Nothing of a removed document stays in memory.
            self.bytes[slot * self.dim..][..self.dim].fill(0);
        }
    }

    fn reset_vectors(&mut self, dim: usize) {
        self.dim = dim;
        self.scales.fill(0.0);
        self.bytes = vec![0; self.ids.len() * dim];
        self.embedded = 0;
        self.lists = None;
        self.layout += 1;
    }

    /// Takes the dead slots out, in place: there need not be memory for a second table.
    fn compact(&mut self) {
        let kept: Vec<u32> = (0..).zip(&self.owners).filter(|(_, owner)| **owner != 0).map(|(slot, _)| slot).collect();
        self.documents.values_mut().for_each(|document| document.slots = 0..0);
        for (to, from) in kept.iter().map(|slot| *slot as usize).enumerate() {
            self.ids[to] = self.ids[from];
            self.owners[to] = self.owners[from];
            self.lengths[to] = self.lengths[from];
            self.scales[to] = self.scales[from];
            self.bytes.copy_within(from * self.dim..(from + 1) * self.dim, to * self.dim);
            if let Some(document) = self.documents.get_mut(&self.owners[to]) {
                let first = if document.slots.is_empty() { to } else { document.slots.start };
                document.slots = first..to + 1;
            }
        }
        cut(&mut self.ids, kept.len());
        cut(&mut self.owners, kept.len());
        cut(&mut self.lengths, kept.len());
        cut(&mut self.scales, kept.len());
        cut(&mut self.bytes, kept.len() * self.dim);
        if let Some(lists) = &mut self.lists {
            lists.renumber(&kept);
        }
        self.layout += 1;
    }

    /// The lists, if there are any.
    pub(crate) fn lists(&self) -> Option<&Lists> {
        self.lists.as_ref()
    }

    /// Changes the lists with a look at the vectors, if there are any.
    pub(crate) fn change_lists(&mut self, change: impl FnOnce(&mut Lists, &Self)) {
        if let Some(mut lists) = self.lists.take() {
            change(&mut lists, self);
            self.lists = Some(lists);
        }
    }

    /// Takes lists that were made aside, of the table as it was numbered at `layout`: of another, they are of no use.
    pub(crate) fn set_lists(&mut self, layout: u64, mut lists: Lists) {
        if layout == self.layout {
            lists.settle(&self.scales);
            self.lists = Some(lists);
        }
    }

    /// Lets go of the lists.
    pub(crate) fn drop_lists(&mut self) {
        self.lists = None;
    }

    /// Whether it has to be read anew, since that failed before.
    pub(crate) fn outdated(&self) -> bool {
        self.outdated
    }

    /// A number that changes when slots are renumbered.
    pub(crate) fn layout(&self) -> u64 {
        self.layout
    }

    /// Slots, dead ones included.
    pub(crate) fn slots(&self) -> usize {
        self.ids.len()
    }

    /// Passages.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Passages with a vector.
    pub(crate) fn embedded(&self) -> usize {
        self.embedded
    }

    pub(crate) fn id(&self, slot: usize) -> i64 {
        self.ids[slot]
    }

    /// The slot of a living passage, looked for from `from` on: postings come in rising order.
    pub(crate) fn slot_from(&self, id: i64, from: usize) -> Option<usize> {
        let rest = self.ids.get(from..)?;
        // Ids are nearly dense: the slot is at most id - first away, and a short gallop finds it.
        let mut reach = 1;
        while reach < rest.len() && rest[reach] < id {
            reach *= 2;
        }
        let low = reach / 2;
        let high = rest.len().min(reach + 1);
        let at = from + low + rest[low..high].binary_search(&id).ok()?;
        (self.owners[at] != 0).then_some(at)
    }

    pub(crate) fn length(&self, slot: usize) -> u32 {
        self.lengths[slot]
    }

    /// Number and mean length of the living passages, or of those of them that a filter allows.
    pub(crate) fn passages_and_mean_length(&self, allowed: Option<&[bool]>) -> (f32, f32) {
        let (total, n) = match allowed {
            None => (self.total_length, self.live as u64),
            Some(allowed) => {
                let slots = self.lengths.iter().zip(&self.owners).zip(allowed);
                slots
                    .filter(|((_, owner), allowed)| **owner != 0 && **allowed)
                    .fold((0, 0), |(total, n), ((length, _), _)| (total + u64::from(*length), n + 1))
            }
        };
        (n as f32, if n == 0 { 1.0 } else { (total as f64 / n as f64).max(1.0) as f32 })
    }

    /// The vector of a slot.
    pub(crate) fn vector(&self, slot: usize) -> Option<(f32, &[i8])> {
        (self.scales[slot] != 0.0).then(|| (self.scales[slot], &self.bytes[slot * self.dim..][..self.dim]))
    }

    /// Scales and bytes of some slots; a scale of 0 stands for no vector.
    pub(crate) fn vectors(&self, slots: std::ops::Range<usize>) -> (&[f32], &[i8]) {
        let bytes = &self.bytes[slots.start * self.dim..slots.end * self.dim];
        (&self.scales[slots], bytes)
    }

    /// The language of a slot's document.
    pub(crate) fn language(&self, slot: usize) -> Option<Language> {
        self.documents.get(self.owners.get(slot)?).map(|d| d.meta.language)
    }

    /// The languages of the documents, or of those that have a passage that a filter allows.
    pub(crate) fn languages(&self, allowed: Option<&[bool]>) -> Vec<Language> {
        let mut languages: Vec<Language> = Vec::new();
        for document in self.documents.values() {
            let new = !languages.contains(&document.meta.language);
            if new && allowed.is_none_or(|a| a[document.slots.clone()].contains(&true)) {
                languages.push(document.meta.language);
            }
        }
        languages
    }

    /// For each slot whether all of the filters let it through; `None` for no filter.
    pub(crate) fn allowed(&self, filters: &[Filter]) -> Option<Vec<bool>> {
        let asked: Vec<Asked<'_>> = filters.iter().filter(|f| !f.is_empty()).map(Asked::of).collect();
        if asked.is_empty() {
            return None;
        }
        let mut allowed = vec![false; self.ids.len()];
        for (id, document) in &self.documents {
            if asked.iter().all(|a| a.passes(&document.meta)) {
                for slot in document.slots.clone() {
                    allowed[slot] = self.owners[slot] == *id;
                }
            }
        }
        Some(allowed)
    }
}

/// Shortens a vector and gives back what it held.
fn cut<T>(vector: &mut Vec<T>, len: usize) {
    vector.truncate(len);
    vector.shrink_to_fit();
}

/// A filter, its paths made ready to be compared.
struct Asked<'a> {
    filter: &'a Filter,
    prefixes: Vec<Vec<u8>>,
    /// Lower case, between slashes.
    folders: Vec<String>,
}

impl<'a> Asked<'a> {
    fn of(filter: &'a Filter) -> Self {
        Self {
            filter,
            prefixes: filter.path_prefix.iter().map(|p| prefix_of(p)).collect(),
            folders: filter.folder.iter().map(|f| format!("/{}/", f.to_lowercase())).collect(),
        }
    }

    fn passes(&self, meta: &Meta) -> bool {
        let Self { filter, prefixes, folders } = self;
        let below = |prefix: &Vec<u8>| {
            meta.path.strip_prefix(prefix.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        let within = || {
            let path = String::from_utf8_lossy(&meta.path).to_lowercase();
            folders.iter().any(|folder| path.contains(folder.as_str()))
        };
        (prefixes.is_empty() || prefixes.iter().any(below))
            && (filter.kind.is_empty() || filter.kind.contains(&meta.kind))
            && filter.after.is_none_or(|t| meta.modified >= t)
            && filter.before.is_none_or(|t| meta.modified < t)
            && (folders.is_empty() || within())
    }
}

/// A folder or file without its closing slash.
fn prefix_of(path: &Path) -> Vec<u8> {
    let mut bytes = path.as_os_str().as_bytes().to_vec();
    while bytes.last() == Some(&b'/') {
        bytes.pop();
    }
    bytes
}

impl Meta {
    pub(crate) fn of(document: &documents::Outcome<'_>) -> Option<Self> {
        let searchable = document.passages > 0 && !matches!(document.state, State::Excluded);
        searchable.then(|| Self {
            path: document.path.as_os_str().as_bytes().into(),
            kind: document.kind,
            modified: document.stamp.mtime / 1_000_000,
            language: Language::from_number(document.language),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::Rng;

    pub(crate) const DIM: usize = 64;

    /// Adds documents of ten passages each, numbered from `first` on, with what `vector` gives for vectors.
    pub(crate) fn add(resident: &mut Resident, first: i64, n: i64, mut vector: impl FnMut() -> Vec<f32>) {
        let mut changes = Vec::new();
        for document_id in first..first + n {
            let path = format!("/{document_id}").into_bytes().into_boxed_slice();
            let meta = Meta { path, kind: Kind::Text, modified: 0, language: Language::ENGLISH };
            changes.push(Change::AddDocument { id: document_id, meta });
            for i in 0..10 {
                let vector = Some(Quantized::of(&vector()));
                changes.push(Change::AddPassage { id: document_id * 10 + i, document_id, length: 1, vector });
            }
        }
        resident.apply(changes, 1);
    }

    /// A table of such documents, numbered from 1, with vectors that point anywhere.
    pub(crate) fn table(documents: i64, rng: &mut Rng) -> Resident {
        let mut resident = Resident::default();
        resident.apply(vec![Change::ResetVectors { dim: DIM }], 0);
        add(&mut resident, 1, documents, || rng.unit(DIM));
        resident
    }
}
