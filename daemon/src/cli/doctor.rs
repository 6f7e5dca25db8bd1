//! `satchel doctor`.

use std::io::Write;

use super::backend::Backend;
use super::exit::{Exit, Failure};
use super::render::pairs;
use super::terminal::Terminal;
use crate::paths::Paths;

pub fn run<B: Backend>(paths: &Paths, backend: &B, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let report = backend.doctor(paths)?;
    if terminal.json {
        terminal.print_json(&report.json)?;
        return Ok(Exit::Done);
    }
    write!(terminal.out, "{}", pairs(&report.rows))?;
    let places = [
        ("home", &paths.home),
        ("index", &paths.index),
        ("models", &paths.models),
        ("socket", &paths.socket),
        ("log", &paths.log),
    ];
    write!(terminal.out, "{}", pairs(&places.map(|(name, path)| (name, path.display().to_string()))))?;
    Ok(Exit::Done)
}
