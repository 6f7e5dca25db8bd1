//! The embedder, and the one before while it still serves.

use std::path::Path;
use std::sync::Arc;

use satchel_index::Embedder as _;
use satchel_ipc::ErrorBody;

use super::{App, Slot, file_mark, invalid, lock};
use crate::memory;
use crate::translate;
use crate::vectors::Vectors;

impl App {
    /// The embedder that the index's vectors are of: the one before, as long as another one has not embedded everything.
    pub fn vectors_for_search(&self) -> Option<Arc<Vectors>> {
        self.retire_embedder();
        let models = lock(&self.models);
        models.outgoing.clone().or_else(|| models.embedder.ready())
    }

    /// Drops the embedder before once its vectors are gone.
    pub(super) fn retire_embedder(&self) {
        let mut models = lock(&self.models);
        if models.lost.is_some() && self.index.counts().is_ok_and(|c| c.pending == 0) {
            models.lost = None;
        }
        let Some(old) = &models.outgoing else { return };
        if self.index.serving_embedder().is_ok_and(|id| id.as_ref() != Some(&old.id())) {
            models.outgoing = None;
        }
    }

    pub(super) fn bring_embedder(&self) -> Result<(), ErrorBody> {
        let result = self.open_embedder();
        let slot = match &result {
            Ok(vectors) => {
                let as_embedder: Arc<dyn satchel_index::Embedder> = Arc::clone(vectors) as _;
                let before = self.embedder_of_index().filter(|id| *id != vectors.id());
                let serve_on = before.is_some() && lock(&self.models).outgoing.is_some();
                let set = lock(&self.indexer).as_ref().map_or(Ok(()), |i| i.set_embedder(as_embedder, serve_on));
                if !serve_on {
                    let mut models = lock(&self.models);
                    models.outgoing = None;
                    models.lost = before.and_then(|id| id.rsplit_once(':').map(|(name, _)| name.to_owned()));
                }
                match set {
                    Ok(()) => Slot::Ready(Arc::clone(vectors)),
                    Err(e) => Slot::Failed(translate::index_error(&e)),
                }
            }
            Err(e) => Slot::Failed(e.clone()),
        };
        lock(&self.models).embedder = slot;
        self.changed.notify_all();
        result.map(|_| ())
    }

    fn open_embedder(&self) -> Result<Arc<Vectors>, ErrorBody> {
        let choice = self.store.embedder_to_use()?;
        self.open_outgoing(&choice.name);
        let path = self.fetch(&choice.name)?;
        let hash = self.store.record(&choice.name).map_or_else(|| file_mark(&path), |r| r.sha256);
        Vectors::open(&path, &choice.name, &hash, Arc::clone(&self.pool), Arc::clone(&self.gate))
            .map(Arc::new)
            .map_err(|e| invalid(&choice.name, &e))
    }

    /// Opens the embedder that the index's vectors are of, if it is another one than that of this name, still there, and
    /// within the memory promise: it serves until the other has embedded everything, and while that is being fetched.
    fn open_outgoing(&self, new: &str) {
        let Some(id) = self.embedder_of_index() else { return };
        let Some((name, _)) = id.rsplit_once(':').filter(|(name, _)| *name != new) else { return };
        let found = self.store.resolve(name).ok().filter(|path| self.room_for_both(path, new));
        let opened = found.and_then(|path| {
            let hash = self.store.record(name).map_or_else(|| file_mark(&path), |r| r.sha256);
            Vectors::open(&path, name, &hash, Arc::clone(&self.pool), Arc::clone(&self.gate)).ok()
        });
        // Another file of that name makes other vectors.
        lock(&self.models).outgoing = opened.filter(|old| old.id() == id).map(Arc::new);
    }

    /// Whether the memory promise leaves room for two embedders at once; weights are most of what one takes.
    fn room_for_both(&self, old: &Path, new: &str) -> bool {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
        let both = bytes(old) + self.store.resolve(new).map_or(0, |path| bytes(&path));
        let needs = memory::usage().resident + self.jail.memory_max() + both;
        self.args.budget.is_none_or(|budget| needs <= budget)
    }

    /// The embedder that the index has vectors of.
    fn embedder_of_index(&self) -> Option<String> {
        let any = self.index.counts().is_ok_and(|c| c.passages > 0);
        self.index.serving_embedder().ok().flatten().filter(|_| any)
    }
}
