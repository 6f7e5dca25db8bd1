//! Files that are nearly right, given to the reader of documents: does any of them crash it, hang it, or outgrow it?
//!
//!     cargo run --release -p satchel-index --example fuzz -- [--seconds N] [--seed N] [--only FORMAT] [--out DIR] FOLDER...
//!
//! Files below the folders are the seeds, sorted by the format that their names say. Each format is tried for so many
//! seconds (10 unless said otherwise): a seed is changed and read by a real worker, confined and bounded as the daemon's
//! is. A worker that crashes, panics, takes too long, needs too much memory or answers against the protocol is a finding;
//! the file goes to `--out` (unless that is missing) and the exit code is 1. The same `--seed` gives the same changes.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod change;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use satchel_index::{Format, Jail, State};

use change::{Rng, Seed};

/// Larger seeds cost time and tell no more.
const SEED_BYTES_MAX: u64 = 1 << 20;

/// What is said of a file that did to its reader what no file may.
const FINDINGS: &[&str] =
    &["failed inside the program", "reading it took longer", "of memory", "too deeply to be read", "its reader"];

struct Options {
    seconds: u64,
    seed: u64,
    only: Option<String>,
    out: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

fn main() -> ExitCode {
    if let Some(ended) = satchel_index::worker_if_asked(std::env::args_os()) {
        return ended;
    }
    let Some(options) = options() else {
        eprintln!("usage: fuzz [--seconds N] [--seed N] [--only FORMAT] [--out DIR] FOLDER...");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Option<Options> {
    let mut options = Options { seconds: 10, seed: 1, only: None, out: None, folders: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => options.seconds = args.next()?.parse().ok()?,
            "--seed" => options.seed = args.next()?.parse().ok()?,
            "--only" => options.only = Some(args.next()?.to_lowercase()),
            "--out" => options.out = Some(args.next()?.into()),
            _ => options.folders.push(arg.into()),
        }
    }
    (!options.folders.is_empty()).then_some(options)
}

/// Tries every format and gives the number of findings.
fn run(options: &Options) -> Result<usize, Box<dyn std::error::Error>> {
    let jail = Jail::of_this_program()?;
    println!("{}", jail.level()?);
    println!(
        "{:14} {:>6} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "format", "seeds", "files", "read", "p99 ms", "max ms", "findings"
    );
    let mut findings = 0;
    for (format, seeds) in seeds(&options.folders)? {
        if options.only.as_ref().is_none_or(|only| *only == format.to_lowercase()) {
            findings += one(&format, &seeds, &jail, options)?;
        }
    }
    println!("most memory of a reader: {} MiB", jail.memory().peak >> 20);
    Ok(findings)
}

/// Files by the format that their names say.
fn seeds(folders: &[PathBuf]) -> std::io::Result<BTreeMap<String, Vec<Seed>>> {
    let mut found: BTreeMap<String, Vec<Seed>> = BTreeMap::new();
    let mut folders = folders.to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let (path, meta) = entry.and_then(|e| Ok((e.path(), e.metadata()?)))?;
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(format) = Format::of_name(&path) else { continue };
            if (1..=SEED_BYTES_MAX).contains(&meta.len()) {
                found.entry(format!("{format:?}")).or_default().push(Seed::new(std::fs::read(&path)?, path));
            }
        }
    }
    // Folders list their files in any order; the same seed must make the same run.
    found.values_mut().for_each(|seeds| seeds.sort_by(|a, b| a.path.cmp(&b.path)));
    Ok(found)
}

fn one(format: &str, seeds: &[Seed], jail: &Jail, options: &Options) -> Result<usize, Box<dyn std::error::Error>> {
    let mut rng = Rng::new(options.seed ^ format.bytes().fold(0, |h, b| h * 31 + u64::from(b)));
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let (mut times, mut read, mut found) = (Vec::new(), 0, 0);
    while Instant::now() < end {
        let seed = &seeds[rng.below(seeds.len())];
        let other = &seeds[rng.below(seeds.len())];
        let bytes = seed.changed(other, &mut rng);
        let start = Instant::now();
        let reply = jail.extract(&seed.path, &bytes)?;
        times.push(start.elapsed());
        match reply {
            Ok(_) => read += 1,
            Err(refusal) => {
                let bad = refusal.state == State::Failed && FINDINGS.iter().any(|f| refusal.reason.contains(f));
                if bad {
                    found += 1;
                    tell(format, found, seed, &refusal.reason, &bytes, options.out.as_deref())?;
                }
            }
        }
    }
    times.sort_unstable();
    let ms = |t: Option<&Duration>| t.map_or(0.0, |t| t.as_secs_f64() * 1000.0);
    println!(
        "{format:14} {:>6} {:>9} {read:>8} {:>9.1} {:>9.1} {found:>9}",
        seeds.len(),
        times.len(),
        ms(times.get(times.len() * 99 / 100)),
        ms(times.last())
    );
    Ok(found)
}

fn tell(format: &str, n: usize, seed: &Seed, reason: &str, bytes: &[u8], out: Option<&Path>) -> std::io::Result<()> {
    println!("finding: {format}, made of {}: {reason}", seed.path.display());
    let Some(out) = out else { return Ok(()) };
    std::fs::create_dir_all(out)?;
    let name = seed.path.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(out.join(format!("{format}-{n}-{name}")), bytes)
}
