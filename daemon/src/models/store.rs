//! The models folder: what is installed, under which name, and what is in use.
//!
//! ```text
//! NAME.gguf        the model
//! NAME.json        where it came from: hash, source, day, licence; absent for files that were put here by hand
//! in-use.json      the names chosen with `model use`
//! .NAME.lock       held while it is fetched or imported
//! .partial/NAME/   what is fetched so far
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use satchel_engine::gguf::Gguf;
use satchel_engine::pool::Pool;
use satchel_engine::{Config, Embedder, Llm};
use serde::{Deserialize, Serialize};

use super::catalogue::{self, CATALOGUE, DEFAULT_EMBEDDER, Role};
use super::choice::{Choice, choose_llm};
use super::error::ModelError;
use super::files::{self, Lock};
use super::limits::{NAME_BYTES, STORE_ENTRIES};

/// What is known of an installed model besides its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// SHA-256 of the file in the store.
    pub sha256: String,
    /// Size of the file in the store.
    pub bytes: u64,
    /// Where it came from, in words.
    pub source: String,
    /// When, in seconds since 1970.
    pub pulled: u64,
    /// The licence, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
}

/// A model of the catalogue or the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it is for; none for a file that cannot be read.
    pub role: Option<Role>,
    /// Its licence, when known.
    pub licence: Option<String>,
    /// Size of the file; for what is not installed, as the catalogue says.
    pub bytes: u64,
    /// Where the file is, when installed.
    pub path: Option<PathBuf>,
    /// Where it came from.
    pub record: Option<Record>,
    /// Whether it is the one in use for its role.
    pub in_use: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct InUse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    llm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedder: Option<String>,
}

/// The models folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    #[cfg(test)]
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the file of a name is, or would be.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.gguf"))
    }

    pub(super) fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(".partial").join(name)
    }

    pub(super) fn lock(&self, name: &str) -> Result<Lock, ModelError> {
        files::make_folder(&self.folder)?;
        files::lock(&self.folder.join(format!(".{name}.lock")), name)
    }

    fn record_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Where an installed model came from. A damaged record counts as none: the model itself is untouched.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<Record> {
        files::read_record(&self.record_path(name)).ok().flatten()
    }

    /// Whether the whole file is here.
    #[must_use]
    pub fn is_installed(&self, name: &str) -> bool {
        is_name(name) && self.path(name).is_file()
    }

    /// The file of a model given by name, or by a path to a GGUF file.
    ///
    /// # Errors
    /// [`ModelError::Missing`] for a known model that is not installed, [`ModelError::Unknown`] otherwise.
    pub fn resolve(&self, name: &str) -> Result<PathBuf, ModelError> {
        if self.is_installed(name) {
            return Ok(self.path(name));
        }
        if catalogue::find(name).is_some() {
            return Err(ModelError::Missing { name: name.to_owned() });
        }
        let path = Path::new(name);
        if path.is_file() {
            return std::path::absolute(path).map_err(ModelError::io("find", path));
        }
        Err(ModelError::Unknown { name: name.to_owned() })
    }

    /// Checks a finished file, puts it in its place and records where it came from.
    pub(super) fn install(&self, from: &Path, name: &str, record: &Record) -> Result<PathBuf, ModelError> {
        validate(from)?;
        let to = self.path(name);
        files::put(from, &to)?;
        files::write_record(&self.record_path(name), record)?;
        Ok(to)
    }

    /// The catalogue, then what else is in the folder.
    ///
    /// # Errors
    /// The folder or the file of choices cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, ModelError> {
        let in_use = self.choices()?;
        let mut all: Vec<Listed> = CATALOGUE.iter().map(|entry| self.listed(entry.name, &in_use)).collect();
        for name in self.installed()? {
            if catalogue::find(&name).is_none() {
                all.push(self.listed(&name, &in_use));
            }
        }
        Ok(all)
    }

    /// One row of the list, for a name of the catalogue or the folder.
    ///
    /// # Errors
    /// The file of choices cannot be read.
    pub fn row(&self, name: &str) -> Result<Listed, ModelError> {
        Ok(self.listed(name, &self.choices()?))
    }

    fn listed(&self, name: &str, in_use: &InUse) -> Listed {
        let entry = catalogue::find(name);
        let path = self.is_installed(name).then(|| self.path(name));
        let record = path.as_ref().and_then(|_| self.record(name));
        let role = entry.map(|entry| entry.role).or_else(|| path.as_deref().and_then(|path| role(path).ok()));
        let licence = entry.map(|e| e.licence.to_owned()).or_else(|| record.as_ref().and_then(|r| r.licence.clone()));
        let chosen = match role {
            Some(Role::Llm) => in_use.llm.as_deref(),
            Some(Role::Embedder) => Some(in_use.embedder.as_deref().unwrap_or(DEFAULT_EMBEDDER)),
            None => None,
        };
        Listed {
            name: name.to_owned(),
            role,
            licence,
            bytes: path.as_deref().map_or(entry.map_or(0, |entry| entry.bytes), files::size),
            in_use: chosen == Some(name) && path.is_some(),
            path,
            record,
        }
    }

    /// Names of the GGUF files in the folder, sorted.
    fn installed(&self) -> Result<Vec<String>, ModelError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(ModelError::io("read", &self.folder)(error)),
        };
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".gguf")?.to_owned());
        let mut names: Vec<String> =
            entries.take(STORE_ENTRIES).flatten().filter_map(name).filter(|name| self.is_installed(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn choices_path(&self) -> PathBuf {
        self.folder.join("in-use.json")
    }

    fn choices(&self) -> Result<InUse, ModelError> {
        Ok(files::read_record(&self.choices_path())?.unwrap_or_default())
    }

    /// What was chosen for a role with `use`: a name, or the path of a file.
    ///
    /// # Errors
    /// The file of choices cannot be read.
    pub fn chosen(&self, role: Role) -> Result<Option<String>, ModelError> {
        let choices = self.choices()?;
        Ok(match role {
            Role::Llm => choices.llm,
            Role::Embedder => choices.embedder,
        })
    }

    /// Makes an installed model, or a GGUF file, the one in use for its role. Gives the name kept: a catalogue name,
    /// or an absolute path.
    ///
    /// # Errors
    /// The model is not installed, or its file cannot be used.
    pub fn choose(&self, name: &str) -> Result<(String, Role), ModelError> {
        let path = self.resolve(name)?;
        validate(&path)?;
        let role = role(&path)?;
        let kept = if self.is_installed(name) { name.to_owned() } else { path.to_string_lossy().into_owned() };
        let mut choices = self.choices()?;
        match role {
            Role::Llm => choices.llm = Some(kept.clone()),
            Role::Embedder => choices.embedder = Some(kept.clone()),
        }
        files::make_folder(&self.folder)?;
        files::write_record(&self.choices_path(), &choices)?;
        Ok((kept, role))
    }

    /// The LLM to answer with: what was chosen, else the best for the memory, else the best of those installed that
    /// need less. Nothing is loaded; the name may be of a model that is not installed.
    ///
    /// # Errors
    /// The file of choices cannot be read.
    pub fn llm_to_use(&self, available: Option<u64>) -> Result<Choice, ModelError> {
        if let Some(name) = self.chosen(Role::Llm)? {
            return Ok(Choice { name, why: "it was chosen with `satchel model use`".into() });
        }
        let best = choose_llm(available);
        if self.is_installed(&best.name) {
            return Ok(best);
        }
        let smaller = CATALOGUE.iter().skip_while(|entry| entry.name != best.name);
        let installed = smaller.filter(|e| e.role == Role::Llm && e.instructed).find(|e| self.is_installed(e.name));
        Ok(match installed {
            Some(entry) => Choice {
                name: entry.name.to_owned(),
                why: format!("{} would fit, but this one is what is installed", best.name),
            },
            None => best,
        })
    }

    /// The embedder to index with: what was chosen, else the default, else another that is installed.
    ///
    /// # Errors
    /// The file of choices cannot be read.
    pub fn embedder_to_use(&self) -> Result<Choice, ModelError> {
        if let Some(name) = self.chosen(Role::Embedder)? {
            return Ok(Choice { name, why: "it was chosen with `satchel model use`".into() });
        }
        let mut embedders = CATALOGUE.iter().filter(|entry| entry.role == Role::Embedder);
        let installed = embedders.find(|entry| self.is_installed(entry.name));
        Ok(match installed {
            Some(entry) if entry.name != DEFAULT_EMBEDDER => Choice {
                name: entry.name.to_owned(),
                why: format!("{DEFAULT_EMBEDDER} is not installed, and this one is"),
            },
            _ => Choice { name: DEFAULT_EMBEDDER.to_owned(), why: "it is the default and knows 100 languages".into() },
        })
    }
}

/// Whether a text can be the name of a file in the store.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    plain && !name.is_empty() && name.len() <= NAME_BYTES && !name.starts_with('.')
}

/// Opens a file as the engine would, so that a broken one is told now and not at the first question.
///
/// # Errors
/// [`ModelError::Invalid`].
pub fn validate(path: &Path) -> Result<(), ModelError> {
    let invalid = |source| ModelError::Invalid { path: path.to_owned(), source };
    let pool = Arc::new(Pool::new(1));
    match role(path)? {
        Role::Embedder => Embedder::open(path, pool).map(drop).map_err(invalid),
        Role::Llm => Llm::open(path, pool).map(drop).map_err(invalid),
    }
}

/// What a file's model is for.
///
/// # Errors
/// [`ModelError::Invalid`].
pub fn role(path: &Path) -> Result<Role, ModelError> {
    let config = Gguf::open(path).and_then(|gguf| Config::from_gguf(&gguf));
    let config = config.map_err(|source| ModelError::Invalid { path: path.to_owned(), source })?;
    Ok(if config.is_encoder() { Role::Embedder } else { Role::Llm })
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

#[cfg(test)]
mod tests;
