//! `satchel bench`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use satchel_engine::CacheType;

use super::args::parse_cache_type;
use super::backend::Backend;
use super::exit::{Exit, Failure};
use super::render::pairs;
use super::terminal::Terminal;
use crate::paths::Paths;

/// Options of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The model: a catalogue name or a GGUF file (default: the one in use)
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Threads (default: the physical cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Tokens of the prompt to time
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub prefill: u32,
    /// Tokens to generate and time
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub decode: u32,
    /// Tokens already in the KV cache when decoding begins
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub context: u32,
    /// How keys and values are stored: f16, or q8_0 for about half the memory
    #[arg(long, value_name = "TYPE", value_parser = parse_cache_type, default_value = "f16")]
    pub kv_type: CacheType,
    /// Go on decoding for so long and tell how the speed changes: heat shows only then
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub sustain: u32,
    /// Time the embedder on these texts, one {"text": ...} a line
    #[arg(long, value_name = "TEXTS.jsonl")]
    pub embed: Option<PathBuf>,
    /// Time single queries on these texts, one {"text": ...} a line
    #[arg(long, value_name = "QUERIES.jsonl", requires = "embed")]
    pub queries: Option<PathBuf>,
    /// Write the vectors of --embed here, as rows of raw f32
    #[arg(long, value_name = "OUT", requires = "embed")]
    pub vectors: Option<PathBuf>,
}

pub fn run<B: Backend>(args: &BenchArgs, paths: &Paths, backend: &B, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let report = backend.bench(paths, args)?;
    if terminal.json {
        terminal.print_json(&report.json)?;
    } else {
        write!(terminal.out, "{}", pairs(&report.rows))?;
    }
    Ok(Exit::Done)
}
