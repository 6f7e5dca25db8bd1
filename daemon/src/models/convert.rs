//! Models from files that a person has: copied when GGUF, converted when an embedder in another form.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use satchel_engine::import::{self, ModelCard, SourceKind};

use super::catalogue::{self, CATALOGUE, Entry};
use super::error::ModelError;
use super::files;
use super::limits::{COPY_BUFFER, NAME_BYTES};
use super::store::{Listed, Record, Store, is_name, now};

/// What the catalogue knows of a model, for its file.
pub(super) fn card(entry: &Entry) -> ModelCard {
    let [query, passage] = entry.prefixes.map(str::to_owned);
    ModelCard {
        name: entry.name.to_owned(),
        license: Some(entry.licence.to_owned()),
        query_prefix: Some(query),
        passage_prefix: Some(passage),
    }
}

/// Converts a folder or `.bin` file. `step` is told the bytes written, and may stop it.
pub(super) fn to_gguf(
    from: &Path,
    card: &ModelCard,
    to: &Path,
    step: impl FnMut(u64) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    let file = files::open_to_write(to, false)?;
    let mut out = Counted { out: BufWriter::with_capacity(COPY_BUFFER, file), written: 0, step, stopped: None };
    let imported = import::import(from, card, &mut out);
    if let Some(stopped) = out.stopped {
        return Err(stopped);
    }
    imported?;
    out.out.flush().map_err(ModelError::io("write", to))
}

/// A writer that tells how much went through it.
struct Counted<W, F> {
    out: W,
    written: u64,
    step: F,
    stopped: Option<ModelError>,
}

impl<W: Write, F: FnMut(u64) -> Result<(), ModelError>> Write for Counted<W, F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.written += n as u64;
        if let Err(error) = (self.step)(self.written) {
            self.stopped = Some(error);
            return Err(io::ErrorKind::Other.into());
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Takes a GGUF file, a folder with safetensors, or an e5 `.bin` file into the store. What the catalogue knows by its
/// hash gets the catalogue's name; anything else that of its file or folder.
///
/// # Errors
/// The path holds no such model, it is damaged or not supported, or it does not fit the disk.
pub fn import_path(store: &Store, path: &Path) -> Result<Listed, ModelError> {
    let kind = import::detect(path)?;
    let weights = if kind == SourceKind::Safetensors { path.join("model.safetensors") } else { path.to_owned() };
    let sha256 = files::sha256(&weights, |_| Ok(()))?;
    let known = CATALOGUE.iter().find(|entry| entry.artifacts.iter().any(|a| a.sha256 == sha256));
    let name = match known {
        Some(entry) => entry.name.to_owned(),
        None => name_of(path)?,
    };
    let _lock = store.lock(&name)?;
    let partial = store.partial(&name);
    files::make_folder(&partial)?;
    // Converted files are smaller than their source, at most equal.
    files::check_space(&partial, files::size(&weights))?;
    let to = partial.join("imported.gguf");
    let sha256 = match kind {
        // A copy and no link: a file that is changed in place would take a running engine with it.
        SourceKind::Gguf => {
            std::fs::copy(path, &to).map_err(ModelError::io("copy", path))?;
            sha256
        }
        SourceKind::Safetensors | SourceKind::E5 => {
            let card = known.map_or_else(|| ModelCard { name: name.clone(), ..ModelCard::default() }, card);
            to_gguf(path, &card, &to, |_| Ok(()))?;
            files::sha256(&to, |_| Ok(()))?
        }
    };
    let licence = known.map(|entry| entry.licence.to_owned()).or_else(|| licence(&to));
    let source = std::path::absolute(path).map_err(ModelError::io("find", path))?.to_string_lossy().into_owned();
    let record = Record { sha256, bytes: files::size(&to), source, pulled: now(), licence };
    let installed = store.install(&to, &name, &record);
    // Unlike what a pull fetched, this is quickly made again.
    files::remove(&partial)?;
    installed?;
    store.row(&name)
}

/// The licence that a file names.
fn licence(path: &Path) -> Option<String> {
    let gguf = satchel_engine::gguf::Gguf::open(path).ok()?;
    gguf.metadata().str("general.license").ok().flatten().map(str::to_owned)
}

/// A name for a file or folder that the catalogue does not know: its own, in the letters that names may have.
fn name_of(path: &Path) -> Result<String, ModelError> {
    let path = std::path::absolute(path).map_err(ModelError::io("find", path))?;
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() }.unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c.to_ascii_lowercase() } else { '-' };
    let name: String = stem.chars().map(plain).collect::<String>().trim_matches(['-', '.']).to_owned();
    let mut name: String = name.chars().take(NAME_BYTES - "-imported".len()).collect();
    // The catalogue's names stand for its own files.
    if catalogue::find(&name).is_some() {
        name.push_str("-imported");
    }
    if is_name(&name) { Ok(name) } else { Err(ModelError::BadName { name: stem.into_owned() }) }
}

#[cfg(test)]
mod tests;
