//! Which embedder's vectors serve, and how another one takes over.
//!
//! Vectors of two models never mix. With another embedder than before there are two ways. Where the one before is still at
//! hand, it *serves on*: its vectors stay, those of the new one come to a table of their own, and once nothing is left to
//! embed one transaction puts them in place. Passages stay as they were cut; documents of which one is too long for the new
//! model are cut anew after that. What is indexed meanwhile gets new vectors only, so until then it is found by its words.
//! Where the old one is gone, its vectors are of no use: they are dropped at once, all files are cut anew, and what is embedded
//! is found by its meaning as it comes. Each state is in the store, so a kill at any moment costs at most a batch.

use rusqlite::Transaction;

use crate::embedder::Embedder;
use crate::error::{Doing, Error};
use crate::index::Index;
use crate::limits::DIMENSIONS_MAX;
use crate::resident::Change;
use crate::store::vectors::Of;
use crate::store::{queue, state, vectors};

impl Index {
    /// Names the embedder whose vectors the index is to have. `serve_on` says that searches will go on with the one they are of
    /// now. Gives the epoch.
    pub(crate) fn use_embedder(&self, embedder: &dyn Embedder, serve_on: bool) -> Result<i64, Error> {
        let (id, dim) = (embedder.id(), embedder.dim());
        if dim == 0 || dim > DIMENSIONS_MAX {
            return Err(Error::BadVector { id, what: format!("it has {dim} dimensions") });
        }
        let new = Named { id, dim: i64::try_from(dim).unwrap_or(0) };
        self.write("change the embedder", |tx, changes| {
            let serving = Named::read(tx, state::EMBEDDER, state::DIMENSIONS)?;
            let coming = Named::read(tx, state::COMING_EMBEDDER, state::COMING_DIMENSIONS)?;
            if serving.as_ref() == Some(&new) {
                return if coming.is_some() { give_up(tx) } else { Ok(()) };
            }
            let goes_on = coming.as_ref() == Some(&new);
            match (goes_on, serve_on && serving.is_some()) {
                (true, true) => Ok(()),
                // Half of the work is worth more than all of the old.
                (true, false) => take_over(tx, &new, changes),
                (false, true) => begin(tx, &new),
                (false, false) => start_over(tx, &new, changes),
            }
        })?;
        self.epoch()
    }

    /// Puts the coming vectors in place, if there are any. Call when nothing is left to embed. Gives whether it did.
    pub(crate) fn finish_change_of_embedder(&self) -> Result<bool, Error> {
        if self.store().read(|c| state::text(c, state::COMING_EMBEDDER))?.is_none() {
            return Ok(false);
        }
        self.write("change the embedder", |tx, changes| {
            match Named::read(tx, state::COMING_EMBEDDER, state::COMING_DIMENSIONS)? {
                Some(new) => take_over(tx, &new, changes).map(|()| true),
                None => Ok(false),
            }
        })
    }

    /// The id of the embedder that searches by meaning need: none before there was one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn serving_embedder(&self) -> Result<Option<String>, Error> {
        self.store().read(|c| state::text(c, state::EMBEDDER))
    }

    /// The epoch of the embedder last used.
    pub(crate) fn epoch(&self) -> Result<i64, Error> {
        self.store().read(|c| state::number(c, state::EPOCH))
    }
}

/// Which kind of vectors an embedder makes, if any.
pub(crate) fn kind_of(connection: &rusqlite::Connection, id: &str) -> Result<Option<Of>, Error> {
    for (key, of) in [(state::COMING_EMBEDDER, Of::Coming), (state::EMBEDDER, Of::Serving)] {
        if state::text(connection, key)?.as_deref() == Some(id) {
            return Ok(Some(of));
        }
    }
    Ok(None)
}

/// The kind that is being made: what lacks one of these is unembedded.
pub(crate) fn wanted(connection: &rusqlite::Connection) -> Result<Of, Error> {
    let coming = state::text(connection, state::COMING_EMBEDDER)?.is_some();
    Ok(if coming { Of::Coming } else { Of::Serving })
}

/// An embedder as the store names it.
#[derive(PartialEq, Eq)]
struct Named {
    id: String,
    dim: i64,
}

impl Named {
    fn read(tx: &Transaction<'_>, id: &str, dim: &str) -> Result<Option<Self>, Error> {
        let dim = state::number(tx, dim)?;
        Ok(state::text(tx, id)?.map(|id| Self { id, dim }))
    }
}

/// The new embedder begins, the old one serves on.
fn begin(tx: &Transaction<'_>, new: &Named) -> Result<(), Error> {
    clear_coming(tx)?;
    queue::reset(tx)?;
    state::set(tx, state::COMING_EMBEDDER, &new.id)?;
    state::set(tx, state::COMING_DIMENSIONS, new.dim)
}

/// Back to the embedder that serves.
fn give_up(tx: &Transaction<'_>) -> Result<(), Error> {
    clear_coming(tx)?;
    queue::recount(tx)
}

fn take_over(tx: &Transaction<'_>, new: &Named, changes: &mut Vec<Change>) -> Result<(), Error> {
    vectors::take_over(tx)?;
    state::set(tx, state::EMBEDDER, &new.id)?;
    state::set(tx, state::DIMENSIONS, new.dim)?;
    tx.execute("UPDATE documents SET epoch = -1 WHERE id IN (SELECT document_id FROM too_long)", [])
        .doing("change the embedder")?;
    clear_coming(tx)?;
    changes.push(Change::Reload);
    Ok(())
}

fn start_over(tx: &Transaction<'_>, new: &Named, changes: &mut Vec<Change>) -> Result<(), Error> {
    clear_coming(tx)?;
    vectors::delete_all(tx, Of::Serving)?;
    queue::reset(tx)?;
    state::set(tx, state::EMBEDDER, &new.id)?;
    state::set(tx, state::DIMENSIONS, new.dim)?;
    state::set(tx, state::EPOCH, state::number(tx, state::EPOCH)? + 1)?;
    changes.push(Change::ResetVectors { dim: usize::try_from(new.dim).unwrap_or(0) });
    Ok(())
}

fn clear_coming(tx: &Transaction<'_>) -> Result<(), Error> {
    vectors::delete_all(tx, Of::Coming)?;
    tx.execute("DELETE FROM too_long", []).doing("change the embedder")?;
    state::unset(tx, state::COMING_EMBEDDER)?;
    state::unset(tx, state::COMING_DIMENSIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_could_not_be_read_anew_is_at_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(folder.path()).unwrap();
        index.write("set a number", |tx, _| state::set(tx, state::DIMENSIONS, 384)).unwrap();
        let broken = rusqlite::Connection::open_in_memory().unwrap();
        assert!(index.resident_mut().reload(&broken).is_err());
        assert_eq!(index.dim(), 0);
        index.write("set a number", |tx, _| state::set(tx, state::EPOCH, 7)).unwrap();
        assert_eq!(index.dim(), 384);
        assert!(!index.resident().outdated());
    }
}
