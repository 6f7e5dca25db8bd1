//! A model file, memory-mapped read-only.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::LoadError;

/// The bytes of a file, mapped for reading.
///
/// The mapping keeps the file open, so replacing it by rename (as `model pull` does) leaves readers on the old
/// content. Truncating a mapped file in place would raise SIGBUS; satchel never writes into a finished model file.
#[derive(Debug)]
pub struct Mapping {
    path: PathBuf,
    map: memmap2::Mmap,
}

impl Mapping {
    /// Maps the whole file.
    ///
    /// # Errors
    /// [`LoadError::Io`] when it cannot be opened or mapped, or is not a regular file.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(io(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file")));
        }
        // SAFETY: the mapping is private and read-only. Its one hazard is another process changing the file
        // underneath: the bytes are only ever read as plain integers, for which every bit pattern is valid, and
        // every index computed from them is checked or was validated against a copy in `gguf`. Truncation in place
        // can end the process with SIGBUS; it cannot corrupt memory.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Ok(Self { path: path.to_owned(), map })
    }

    /// The file's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The file's path, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
