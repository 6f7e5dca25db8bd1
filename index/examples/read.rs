//! How long reading takes, and what it takes of memory:
//! `cargo run --release -p satchel-index --example read -- FOLDER…`
//!
//! Reads every file below the folders once, in the confined process that the daemon uses, and prints for each kind how many
//! files gave text, the time of all, and the slowest one. What went wrong is listed with its reason.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use satchel_index::{Format, Jail, State};

/// Larger files are not read by the daemon either.
const FILE_BYTES_MAX: u64 = satchel_index::limits::FILE_BYTES_MAX;

/// Figures of one format.
#[derive(Default)]
struct Row {
    files: usize,
    bytes: u64,
    read: usize,
    time: Duration,
    slowest: Duration,
    slowest_file: String,
}

fn main() -> ExitCode {
    if let Some(ended) = satchel_index::worker_if_asked(std::env::args_os()) {
        return ended;
    }
    match run(std::env::args_os().skip(1).map(PathBuf::from).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut folders: Vec<PathBuf>) -> Result<(), Box<dyn std::error::Error>> {
    let jail = Jail::of_this_program()?;
    println!("{}", jail.level()?);
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut most = (0, String::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let (path, meta) = entry.and_then(|e| Ok((e.path(), e.metadata()?)))?;
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(format) = Format::of_name(&path) else { continue };
            if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
                continue;
            }
            let bytes = std::fs::read(&path)?;
            let start = Instant::now();
            let reply = jail.extract(&path, &bytes)?;
            let time = start.elapsed();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match &reply {
                Err(refusal) if refusal.state == State::Failed => println!("{name}: {}", refusal.reason),
                _ => {}
            }
            if jail.memory().peak > most.0 {
                most = (jail.memory().peak, name.clone());
            }
            rows.entry(format!("{format:?}")).or_default().add(meta.len(), reply.is_ok(), time, name);
        }
    }
    println!("{:14} {:>6} {:>10} {:>6} {:>9} {:>8}  slowest", "format", "files", "bytes", "read", "all ms", "max ms");
    let mut all = Row::default();
    for (format, row) in &rows {
        row.print(format);
        all.files += row.files;
        all.bytes += row.bytes;
        all.read += row.read;
        all.time += row.time;
        if row.slowest > all.slowest {
            (all.slowest, all.slowest_file) = (row.slowest, row.slowest_file.clone());
        }
    }
    all.print("all");
    println!("most memory of a reader: {} MiB, reached at {}", most.0 >> 20, most.1);
    Ok(())
}

impl Row {
    fn add(&mut self, bytes: u64, read: bool, time: Duration, name: String) {
        self.files += 1;
        self.bytes += bytes;
        self.read += usize::from(read);
        self.time += time;
        if time > self.slowest {
            (self.slowest, self.slowest_file) = (time, name);
        }
    }

    fn print(&self, format: &str) {
        let ms = |t: Duration| t.as_secs_f64() * 1000.0;
        println!(
            "{format:14} {:>6} {:>10} {:>6} {:>9.1} {:>8.1}  {}",
            self.files,
            self.bytes,
            self.read,
            ms(self.time),
            ms(self.slowest),
            self.slowest_file
        );
    }
}
