//! Builds an index of a folder and tells what it takes: by words alone, or with vectors that mean nothing but take the
//! room of real ones.
//!
//!     cargo run --release -p satchel-index --example build -- FOLDER INDEX_FOLDER [--vectors]
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use satchel_index::{EmbedError, Embedder, Event, FilesQuery, Index, Indexer, Jail};

/// Vectors of noise, of the default embedder's length. Its tokens are guessed: four bytes of an alphabet, or one and a half
/// ideographs.
struct Noise;

impl Noise {
    const DIM: usize = 384;

    fn vector(text: &str) -> Vec<f32> {
        let mut state = text.bytes().fold(1_u64, |h, b| h.wrapping_mul(0x0100_0000_01B3) ^ u64::from(b));
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 24) as f32
        };
        // Four dice make a bell, the shape of an embedding's components.
        let all: Vec<f32> = (0..Self::DIM).map(|_| next() + next() + next() + next() - 2.0).collect();
        let length = all.iter().map(|x| x * x).sum::<f32>().sqrt();
        all.iter().map(|x| x / length).collect()
    }
}

impl Embedder for Noise {
    fn id(&self) -> String {
        "noise".into()
    }
    fn dim(&self) -> usize {
        Self::DIM
    }
    fn max_tokens(&self) -> usize {
        500
    }
    fn count_tokens(&self, text: &str) -> usize {
        let wide = text.chars().filter(|c| *c >= '\u{2E80}').count();
        wide * 2 / 3 + (text.len() - wide * 3).div_ceil(4)
    }
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|t| Self::vector(t)).collect())
    }
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(Self::vector(text))
    }
}

fn main() -> ExitCode {
    satchel_index::worker_if_asked(std::env::args_os()).unwrap_or_else(|| match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(dir)) = (args.next(), args.next()) else {
        return Err("usage: build FOLDER INDEX_FOLDER [--vectors]".into());
    };
    let embedder = args.any(|a| a == "--vectors").then(|| Arc::new(Noise) as Arc<dyn Embedder>);
    let index = Index::open(Path::new(&dir))?;
    index.add_root(Path::new(&folder))?;
    let start = Instant::now();
    let tell = |event| match event {
        Event::Trouble { message } => println!("trouble: {message}"),
        Event::File { path, reason: Some(reason), .. } => println!("{}: {reason}", path.display()),
        _ => {}
    };
    let indexer = Indexer::start(index.clone(), Jail::of_this_program()?.into(), embedder, Box::new(tell))?;
    let idle = indexer.wait_idle(Duration::from_secs(3600));
    println!("idle: {idle} after {:.2} s", start.elapsed().as_secs_f64());
    indexer.shutdown();
    let counts = index.counts()?;
    println!("{counts:#?}");
    let files: u64 = index.files(&FilesQuery::default())?.iter().map(|f| f.bytes).sum();
    println!("{:.3} bytes of index for each byte of these files", counts.bytes as f64 / files.max(1) as f64);
    Ok(())
}
