//! Whether a file still says what a hit says: asked again when an answer is given.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::beneath::{self, Barred};
use crate::error::Error;
use crate::index::Index;
use crate::limits::FILE_BYTES_MAX;
use crate::store::{documents, roots};
use crate::types::{Freshness, Hit};

impl Index {
    /// Looks at the file itself. Where spans point into the file, its bytes there must be the passage; elsewhere size and
    /// times must be those that were indexed, or else the content's hash.
    ///
    /// A file that grew behind the passage is still fresh: the quote stands where it is said to stand.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn verify(&self, hit: &Hit) -> Result<Freshness, Error> {
        self.verify_span(&hit.path, hit.in_file, hit.byte_start, &hit.text)
    }

    /// The same for any part of a passage: `text` is what stood at `byte_start`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn verify_span(&self, path: &Path, in_file: bool, byte_start: usize, text: &str) -> Result<Freshness, Error> {
        let (roots, known) = self.store().read(|c| Ok((roots::all(c)?, documents::by_path(c, path)?)))?;
        let Some(root) = roots::containing(&roots, path) else { return Ok(Freshness::Gone) };
        let relative = path.strip_prefix(&root).unwrap_or(path);
        let (mut file, stat) = match beneath::open_file(&root, relative) {
            Ok(opened) => opened,
            Err(Barred::Gone | Barred::NotAFile) => return Ok(Freshness::Gone),
            Err(Barred::System(_)) => return Ok(Freshness::Changed),
        };
        let stamp = beneath::stamp(&stat);
        if in_file {
            let mut bytes = vec![0; text.len()];
            let read = file.seek(SeekFrom::Start(byte_start as u64)).and_then(|_| file.read_exact(&mut bytes));
            return Ok(if read.is_ok() && bytes == text.as_bytes() { Freshness::Fresh } else { Freshness::Changed });
        }
        let Some(known) = known else { return Ok(Freshness::Changed) };
        if known.stamp == stamp {
            return Ok(Freshness::Fresh);
        }
        let size = u64::try_from(stamp.size).unwrap_or(0);
        let same = beneath::read(&mut file, size, FILE_BYTES_MAX)
            .ok()
            .flatten()
            .is_some_and(|bytes| known.hash.as_deref() == Some(Sha256::digest(&bytes).as_slice()));
        Ok(if same { Freshness::Fresh } else { Freshness::Changed })
    }
}
