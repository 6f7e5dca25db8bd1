//! Lexical retrieval quality over sets of `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.
//!
//!     cargo run --release -p satchel-index --example retrieval -- SET_FOLDER...
//!
//! Each document becomes one text file, named by a number; of several passages of a document the best counts.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use satchel_index::{Index, Indexer, Jail, Mode, Query};
use serde_json::Value;

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
    println!(
        "{:28} {:>6} {:>7} {:>8} {:>7} {:>7} {:>8} {:>8} {:>7} {:>10}",
        "set", "docs", "queries", "ndcg@10", "r@10", "hit@1", "p50 ms", "p95 ms", "index s", "disk/text"
    );
    for set in std::env::args().skip(1) {
        measure(Path::new(&set))?;
    }
    Ok(())
}

fn measure(set: &Path) -> Result<(), Box<dyn Error>> {
    let work = tempfile::tempdir()?;
    let folder = work.path().join("files");
    std::fs::create_dir(&folder)?;
    let mut ids: HashMap<String, String> = HashMap::new();
    let mut text_bytes = 0;
    for (n, doc) in lines(&set.join("corpus.jsonl"))?.into_iter().enumerate() {
        let path = folder.join(format!("d{n:05}.txt"));
        let title = doc["title"].as_str().unwrap_or("").trim().replace('\n', " ");
        let text = doc["text"].as_str().unwrap_or("");
        let data = if title.is_empty() { format!("{text}\n") } else { format!("{title}\n\n{text}\n") };
        text_bytes += data.len() as u64;
        std::fs::write(&path, data)?;
        ids.insert(path.canonicalize()?.display().to_string(), doc["_id"].as_str().unwrap_or("").to_owned());
    }
    let index = Index::open(&work.path().join("index"))?;
    index.add_root(&folder)?;
    let start = Instant::now();
    let indexer = Indexer::start(index.clone(), Jail::of_this_program()?.into(), None, Box::new(|_| {}))?;
    if !indexer.wait_idle(Duration::from_secs(3600)) {
        return Err("indexing took more than an hour".into());
    }
    let seconds = start.elapsed().as_secs_f64();
    indexer.shutdown();
    let mut qrels: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in std::fs::read_to_string(set.join("qrels.tsv"))?.lines().skip(1) {
        let parts: Vec<&str> = line.split('\t').collect();
        qrels.entry(parts[0].into()).or_default().insert(parts[1].into(), parts[2].parse()?);
    }
    let (mut ndcg, mut recall, mut first, mut queries) = (0.0, 0.0, 0.0, 0_u32);
    let mut took = Vec::new();
    for query in lines(&set.join("queries.jsonl"))? {
        let Some(rel) = query["_id"].as_str().and_then(|id| qrels.get(id)) else { continue };
        let found = index
            .search(&Query { mode: Mode::Lexical, ..Query::new(query["text"].as_str().unwrap_or(""), 30) }, None)?;
        took.push(found.took.as_secs_f64() * 1000.0);
        let mut ranked: Vec<&str> = Vec::new();
        for hit in &found.hits {
            let id = ids.get(&hit.document_id).map_or("", String::as_str);
            if !ranked.contains(&id) {
                ranked.push(id);
            }
        }
        ranked.truncate(10);
        queries += 1;
        ndcg += gain(ranked.iter().map(|id| rel.get(*id).copied().unwrap_or(0.0))) / ideal(rel);
        recall += ranked.iter().filter(|id| rel.get(**id).is_some_and(|g| *g > 0.0)).count() as f64 / rel.len() as f64;
        first += f64::from(u8::from(ranked.first().is_some_and(|id| rel.contains_key(*id))));
    }
    took.sort_by(f64::total_cmp);
    let at = |p: usize| took.get((took.len() * p / 100).min(took.len() - 1)).copied().unwrap_or(0.0);
    let n = f64::from(queries.max(1));
    println!(
        "{:28} {:6} {queries:7} {:8.4} {:7.4} {:7.4} {:8.2} {:8.2} {seconds:7.1} {:10.3}",
        set.iter()
            .rev()
            .take(2)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<std::path::PathBuf>()
            .display()
            .to_string(),
        ids.len(),
        ndcg / n,
        recall / n,
        first / n,
        at(50),
        at(95),
        index.counts()?.bytes as f64 / text_bytes as f64,
    );
    Ok(())
}

fn gain(gains: impl Iterator<Item = f64>) -> f64 {
    gains.enumerate().map(|(i, g)| g / (i as f64 + 2.0).log2()).sum()
}

fn ideal(rel: &HashMap<String, f64>) -> f64 {
    let mut gains: Vec<f64> = rel.values().copied().collect();
    gains.sort_by(|a, b| b.total_cmp(a));
    gain(gains.into_iter().take(10))
}

fn lines(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    std::fs::read_to_string(path)?.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
}
