//! What need not be embedded again when a file is written anew.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::Transaction;

use crate::error::Error;
use crate::store::documents::{self, Document};
use crate::store::vectors::{self, Of, Quantized};
use crate::store::{passages, state};

/// Vectors of text that is embedded already, by its fingerprint: in the old version of the file, and in a file of the same
/// content (a copy, or the place the file was moved from).
#[derive(Default)]
pub(crate) struct Kept {
    pub serving: HashMap<i64, Quantized>,
    pub coming: HashMap<i64, Quantized>,
}

impl Kept {
    pub(crate) fn of(tx: &Transaction<'_>, path: &Path, hash: &[u8], known: Option<&Document>) -> Result<Self, Error> {
        let mut kept = Self::default();
        let twin = documents::by_hash(tx, hash, path)?;
        let dimensions = [(Of::Serving, state::DIMENSIONS), (Of::Coming, state::COMING_DIMENSIONS)];
        for (of, key) in dimensions {
            let dim = usize::try_from(state::number(tx, key)?).unwrap_or(0);
            for document in known.into_iter().chain(twin.as_ref()).filter(|d| d.text_bytes > 0 && dim > 0) {
                for passage in passages::of_document(tx, document.id)? {
                    if let Some(vector) = vectors::get(tx, of, passage.id, dim)? {
                        kept.kind(of).insert(passage.fingerprint, vector);
                    }
                }
            }
        }
        Ok(kept)
    }

    fn kind(&mut self, of: Of) -> &mut HashMap<i64, Quantized> {
        match of {
            Of::Serving => &mut self.serving,
            Of::Coming => &mut self.coming,
        }
    }

    pub(crate) fn has(&self, of: Of, fingerprint: i64) -> bool {
        match of {
            Of::Serving => self.serving.contains_key(&fingerprint),
            Of::Coming => self.coming.contains_key(&fingerprint),
        }
    }
}
