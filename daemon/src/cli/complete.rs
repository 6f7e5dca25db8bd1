//! `satchel complete`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use satchel_engine::CacheType;

use super::args::parse_cache_type;
use super::backend::Backend;
use super::exit::{Exit, Failure};
use super::render::escape_text;
use super::session::deadline_passed;
use super::terminal::Terminal;
use crate::paths::Paths;

/// Options of `complete`.
#[derive(Debug, Clone, Args)]
pub struct CompleteArgs {
    /// The model: a catalogue name or a GGUF file
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// The text to continue, as it is
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: String,
    /// Most tokens to generate
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub max_tokens: u32,
    /// Threads (default: the physical cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// How keys and values are stored: f16, or q8_0 for about half the memory
    #[arg(long, value_name = "TYPE", value_parser = parse_cache_type, default_value = "f16")]
    pub kv_type: CacheType,
    /// Write the logits here, as rows of raw f32, one a position
    #[arg(long, value_name = "FILE")]
    pub logits: Option<PathBuf>,
}

pub fn run<B: Backend>(
    args: &CompleteArgs,
    deadline: Option<Instant>,
    paths: &Paths,
    backend: &B,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let json = terminal.json;
    let (mut failed, mut expired) = (None, false);
    let report = backend.complete(paths, args, &mut |piece| {
        expired = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if json || expired {
            return !expired;
        }
        let written = write!(terminal.out, "{}", escape_text(piece)).and_then(|()| terminal.out.flush());
        written.map_err(|error| failed = Some(error)).is_ok()
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if expired {
        return Err(deadline_passed().into());
    }
    if json {
        terminal.print_json(&report.json)?;
    } else {
        writeln!(terminal.out)?;
    }
    Ok(Exit::Done)
}
