//! Time and recall of vector search over made-up passages whose vectors lie in clusters, as those of real texts do.
//!
//!     cargo run --release -p satchel-index --example vectors -- PASSAGES [ROUNDS]
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use satchel_index::{EmbedError, Embedder, Index, Indexer, Jail, Mode, Query};

const DIM: usize = 384;
const CLUSTERS: u64 = 2000;

struct Clustered;

fn noise(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    (0..DIM).map(|_| next() + next() + next()).collect()
}

/// The text is a number: its cluster's centre and its own noise.
fn vector(text: &str) -> Vec<f32> {
    let n: u64 = text.split_whitespace().next_back().and_then(|w| w.parse().ok()).unwrap_or(0);
    let mut v: Vec<f32> =
        noise(n % CLUSTERS + 1).iter().zip(noise(n + 1_000_003)).map(|(c, own)| c + 0.8 * own).collect();
    let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
    v.iter_mut().for_each(|x| *x /= length);
    v
}

impl Embedder for Clustered {
    fn id(&self) -> String {
        "clustered".into()
    }
    fn dim(&self) -> usize {
        DIM
    }
    fn max_tokens(&self) -> usize {
        250
    }
    fn count_tokens(&self, text: &str) -> usize {
        text.len() / 2
    }
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|t| vector(t)).collect())
    }
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(vector(text))
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
    let passages: u64 = std::env::args().nth(1).ok_or("usage: vectors PASSAGES")?.parse()?;
    let work = tempfile::tempdir()?;
    let folder = work.path().join("files");
    std::fs::create_dir(&folder)?;
    for file in 0..passages.div_ceil(100) {
        let part = |n: u64| format!("{}passage {n}\n\n", "filling words of no meaning ".repeat(15));
        let text: String = (file * 100..passages.min(file * 100 + 100)).map(part).collect();
        std::fs::write(folder.join(format!("{file}.txt")), text)?;
    }
    let index = Index::open(&work.path().join("index"))?;
    index.add_root(&folder)?;
    let start = Instant::now();
    let indexer =
        Indexer::start(index.clone(), Jail::of_this_program()?.into(), Some(Arc::new(Clustered)), Box::new(|_| {}))?;
    if !indexer.wait_idle(Duration::from_secs(3600)) {
        return Err("indexing took more than an hour".into());
    }
    let counts = index.counts()?;
    println!("{} passages indexed in {:.1} s, {} bytes", counts.passages, start.elapsed().as_secs_f64(), counts.bytes);
    let all: Vec<Vec<f32>> = (0..passages).map(|n| vector(&n.to_string())).collect();
    let rounds: u64 = std::env::args().nth(2).map_or(Ok(6), |r| r.parse())?;
    for round in 0..rounds {
        let (mut took, mut found) = (Vec::new(), 0);
        for q in 0..100 {
            let text = format!("query {}", 7_000_000 + q * 31 + round);
            let query = vector(&text);
            let mut exact: Vec<(f32, u64)> =
                all.iter().zip(0..).map(|(v, n)| (v.iter().zip(&query).map(|(a, b)| a * b).sum(), n)).collect();
            exact.sort_by(|a, b| b.0.total_cmp(&a.0));
            let result = index.search(&Query { mode: Mode::Vector, ..Query::new(text, 10) }, Some(&Clustered))?;
            took.push(result.took.as_secs_f64() * 1000.0);
            let best: Vec<u64> = exact.iter().take(10).map(|e| e.1).collect();
            let number = |t: &str| t.split_whitespace().next_back().and_then(|w| w.parse::<u64>().ok());
            found += result.hits.iter().filter(|h| number(&h.text).is_some_and(|n| best.contains(&n))).count();
        }
        took.sort_by(f64::total_cmp);
        println!(
            "after {:.0} s: p50 {:.2} ms, p95 {:.2} ms, recall@10 {:.3}",
            start.elapsed().as_secs_f64(),
            took[50],
            took[95],
            found as f64 / 1000.0
        );
    }
    indexer.shutdown();
    Ok(())
}
