//! What an index of very many passages takes: made-up texts whose words are as frequent as those of real ones, with vectors in
//! clusters of clusters, through the whole pipeline. Prints sizes, times, and how much of what an exact comparison finds a search
//! finds too.
//!
//!     cargo run --release -p satchel-index --example scale -- PASSAGES [FOLDER]
//!
//! FOLDER, which is made, keeps texts and index: a run that was ended goes on there.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use satchel_index::{EmbedError, Embedder, Index, Indexer, Jail, Mode, Query};

const DIM: usize = 384;
const TOPICS: u64 = 400;
/// Passages of one theme; each theme belongs to a topic.
const THEME: u64 = 60;
const WORDS: f64 = 50_000.0;
const PASSAGES_PER_FILE: u64 = 1000;
/// Numbers of queries begin here, beyond those of all passages.
const QUERIES_FROM: u64 = 1 << 40;
const QUERIES: u64 = 200;

struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Adds a vector of independent components to `v`.
    fn add_noise(mut self, weight: f32, v: &mut [f32]) {
        for x in v {
            // Three of 21 bits each: their sum is near enough to a normal distribution.
            let bits = self.next().wrapping_mul(0x2545_F491_4F6C_DD1D);
            let sum = (bits & 0x1F_FFFF) + (bits >> 21 & 0x1F_FFFF) + (bits >> 42 & 0x1F_FFFF);
            *x += weight * (sum as f32 / 2_097_152.0 - 1.5);
        }
    }
}

/// Vectors of `passages` passages and of queries about them.
#[derive(Clone, Copy)]
struct Clustered {
    passages: u64,
}

impl Clustered {
    /// What all have in common, a topic, a theme of it and something of its own: embeddings of real texts lie in a narrow
    /// cone, too.
    fn vector(self, n: u64) -> Vec<f32> {
        let theme = Rng::new(n ^ 0x7E3E).next() % (self.passages / THEME).max(10);
        // Some topics have many more themes than others.
        let topic = (Rng::new(theme ^ 0x70_71C5).share().powi(2) * TOPICS as f64) as u64;
        let mut v = vec![0.0; DIM];
        Rng::new(1).add_noise(1.6, &mut v);
        Rng::new(1_000_000_007 * (topic + 1)).add_noise(0.6, &mut v);
        Rng::new(998_244_353 * (theme + 1)).add_noise(0.5, &mut v);
        Rng::new(n ^ 0x0B_57A1).add_noise(0.5, &mut v);
        let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        v
    }

    /// The last word of a text is its number.
    fn of(self, text: &str) -> Vec<f32> {
        self.vector(number(text).unwrap_or(0))
    }
}

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next_back()?.parse().ok()
}

impl Embedder for Clustered {
    fn id(&self) -> String {
        "clustered".into()
    }
    fn dim(&self) -> usize {
        DIM
    }
    fn max_tokens(&self) -> usize {
        400
    }
    fn count_tokens(&self, text: &str) -> usize {
        text.len() / 4
    }
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|t| self.of(t)).collect())
    }
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(self.of(text))
    }
}

/// A word of two to five syllables; the n-th most frequent one is about n times as rare as the first.
fn word(rng: &mut Rng, out: &mut String) {
    let mut rank = WORDS.powf(rng.share()) as u64;
    let mut bits = Rng::new(rank).next();
    loop {
        for letters in [&b"bdfghjklmnprstvz"[..], b"aeiouaei"] {
            out.push(char::from(letters[bits as usize % letters.len()]));
            bits >>= 4;
        }
        if rank < 8 {
            break;
        }
        rank /= 16;
    }
}

/// About 900 bytes, then the number.
fn passage(n: u64, out: &mut String) {
    let mut rng = Rng::new(n);
    let start = out.len();
    while out.len() - start < 880 {
        word(&mut rng, out);
        out.push(' ');
    }
    // A string takes all that is written to it.
    let _ = writeln!(out, "{n}\n");
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
    let passages: u64 = std::env::args().nth(1).ok_or("usage: scale PASSAGES [FOLDER]")?.parse()?;
    let embedder = Clustered { passages };
    let own = tempfile::tempdir()?;
    let work = std::env::args_os().nth(2).map_or_else(|| own.path().to_owned(), Into::into);
    let (folder, store) = (work.join("files"), work.join("index"));
    let text_bytes = write_files(passages, &folder)?;

    let index = Index::open(&store)?;
    index.add_root(&folder)?;
    let start = Instant::now();
    let indexer = indexer(&index, embedder)?;
    let took = start.elapsed().as_secs_f64();
    let bytes = index.counts()?.bytes;
    println!("{} passages, {:.1} MB of text", index.counts()?.passages, text_bytes as f64 / 1e6);
    println!("indexed in {took:.1} s, of which vectors of a model would take the most");
    println!("index {:.1} MB, {:.2} of the text", bytes as f64 / 1e6, bytes as f64 / text_bytes as f64);
    indexer.shutdown();
    drop(index);

    let before = resident();
    let start = Instant::now();
    let index = Index::open(&store)?;
    println!("opened in {:.2} s", start.elapsed().as_secs_f64());
    println!("memory {:.0} MB, {:.0} MB of it for the index", resident(), resident() - before);
    print!("exact scan: ");
    let exact = measure(&index, embedder, Mode::Vector)?;
    println!("its recall@10 of what the vectors as they were made give: {:.4}", recall(&exact, &truth(embedder)));
    let start = Instant::now();
    let indexer = self::indexer(&index, embedder)?;
    // Lists are made after the folders were compared with the store, if there is to be any.
    while index.lists() == 0 && start.elapsed() < Duration::from_secs(120) && passages >= 200_000 {
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{} lists {:.1} s after the start", index.lists(), start.elapsed().as_secs_f64());
    let found = measure(&index, embedder, Mode::Vector)?;
    println!("recall@10 of the exact scan: {:.4}", recall(&found, &exact));
    measure(&index, embedder, Mode::Lexical)?;
    measure(&index, embedder, Mode::Hybrid)?;
    println!("memory {:.0} MB", resident());
    indexer.shutdown();
    Ok(())
}

fn write_files(passages: u64, folder: &Path) -> Result<u64, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut bytes = 0;
    for file in 0..passages.div_ceil(PASSAGES_PER_FILE) {
        let mut text = String::new();
        let first = file * PASSAGES_PER_FILE;
        (first..passages.min(first + PASSAGES_PER_FILE)).for_each(|n| passage(n, &mut text));
        let path = folder.join(format!("{file}.txt"));
        if !path.exists() {
            std::fs::write(path, &text)?;
        }
        bytes += text.len() as u64;
    }
    Ok(bytes)
}

/// One that has done all there is to be done.
fn indexer(index: &Index, embedder: Clustered) -> Result<Indexer, Box<dyn Error>> {
    let jail = Jail::of_this_program()?.into();
    let indexer = Indexer::start(index.clone(), jail, Some(Arc::new(embedder)), Box::new(|_| {}))?;
    if !indexer.wait_idle(Duration::from_secs(4 * 3600)) {
        return Err("indexing took more than four hours".into());
    }
    Ok(indexer)
}

/// Resident memory of this process in MB; 0 where the system does not tell.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0
}

/// For each query the ten passages that are nearest by the vectors as they were made.
fn truth(embedder: Clustered) -> Vec<Vec<u64>> {
    let queries: Vec<Vec<f32>> = (0..QUERIES).map(|q| embedder.vector(QUERIES_FROM + q)).collect();
    let mut best: Vec<Vec<(f32, u64)>> = vec![Vec::new(); queries.len()];
    for n in 0..embedder.passages {
        let vector = embedder.vector(n);
        for (query, best) in queries.iter().zip(&mut best) {
            let cosine = cosine(query, &vector);
            if best.len() < 10 || cosine > best[9].0 {
                let at = best.partition_point(|b| b.0 >= cosine);
                best.insert(at, (cosine, n));
                best.truncate(10);
            }
        }
    }
    best.into_iter().map(|best| best.into_iter().map(|(_, n)| n).collect()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum()
}

/// How many of `wanted` were found.
fn recall(found: &[Vec<u64>], wanted: &[Vec<u64>]) -> f64 {
    let both = found.iter().zip(wanted).map(|(found, wanted)| wanted.iter().filter(|n| found.contains(n)).count());
    both.sum::<usize>() as f64 / wanted.iter().map(Vec::len).sum::<usize>().max(1) as f64
}

/// Asks all queries; gives the numbers of the ten passages found for each.
fn measure(index: &Index, embedder: Clustered, mode: Mode) -> Result<Vec<Vec<u64>>, Box<dyn Error>> {
    let (mut took, mut found) = (Vec::new(), Vec::new());
    for q in QUERIES_FROM..QUERIES_FROM + QUERIES {
        let mut text = String::new();
        let mut rng = Rng::new(q);
        for _ in 0..3 + rng.next() % 6 {
            word(&mut rng, &mut text);
            text.push(' ');
        }
        write!(text, "{q}")?;
        let result = index.search(&Query { mode, ..Query::new(text, 10) }, Some(&embedder))?;
        took.push(result.took.as_secs_f64() * 1000.0);
        found.push(result.hits.iter().filter_map(|hit| number(&hit.text)).collect());
    }
    took.sort_by(f64::total_cmp);
    println!("{mode:?}: p50 {:.2} ms, p95 {:.2} ms", took[took.len() / 2], took[took.len() * 95 / 100]);
    Ok(found)
}
