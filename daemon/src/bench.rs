//! `satchel bench`: speeds of the engine on this machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use satchel_engine::error::RunError;
use satchel_engine::kernels::{Kernels, PEAK_ROUNDS};
use satchel_engine::pool::Pool;
use satchel_engine::{Llm, Session};
use satchel_ipc::{Code, ErrorBody};

use crate::app::invalid;
use crate::backend::Rows;
use crate::cli::backend::Report;
use crate::cli::bench::BenchArgs;
use crate::doctor::kernel_of;
use crate::gate::Gate;
use crate::memory::usage;
use crate::models::{self, Store};
use crate::service::prevailing_type;
use crate::threads::compute_threads;
use crate::vectors::Vectors;

const MIB: f64 = (1u64 << 20) as f64;
/// Timed runs of each figure; the median is told.
const RUNS: usize = 3;
/// Bytes read to measure the memory's bandwidth: well beyond any cache.
const BANDWIDTH_BYTES: usize = 1 << 28;
/// Largest file of texts, in bytes.
const MAX_TEXTS_BYTES: u64 = 256 << 20;
/// Passages that the embedder gets at a time, as indexing does.
const EMBED_BATCH: usize = 32;

/// Runs what `args` asks for.
pub fn run(store: &Store, args: &BenchArgs) -> Result<Report, ErrorBody> {
    let threads = args.threads.map_or_else(compute_threads, usize::from);
    let pool = Arc::new(Pool::new(threads));
    let mut rows = Rows::default();
    rows.add("threads", "threads", threads.to_string(), threads);
    rows.say("kernels", "kernels", Kernels::detect().name());
    match &args.embed {
        Some(texts) => embed(store, args, texts, pool, &mut rows)?,
        None => generate(store, args, pool, &mut rows)?,
    }
    Ok(rows.finish())
}

fn generate(store: &Store, args: &BenchArgs, pool: Arc<Pool>, rows: &mut Rows) -> Result<(), ErrorBody> {
    let name = match &args.model {
        Some(name) => name.clone(),
        None => store.llm_to_use(models::available_memory())?.name,
    };
    let path = store.resolve(&name)?;
    let llm = Arc::new(Llm::open(&path, Arc::clone(&pool)).map_err(|e| invalid(&name, &e))?);
    let (prefill, decode, context) = (args.prefill as usize, args.decode as usize, args.context as usize);
    let capacity = prefill.max(context + decode).max(1);
    let mut session = Session::with_cache(Arc::clone(&llm), capacity, args.kv_type).map_err(|e| told(&e))?;
    let vocab = llm.config().vocab;
    let tokens = |n: usize| -> Vec<u32> { (0..n).map(|i| ((i * 37 % 20_000 + 100) % vocab) as u32).collect() };
    let (mut prefills, mut decodes) = (Vec::new(), Vec::new());
    // The first run warms caches and pages and is not counted.
    for run in 0..=RUNS {
        if prefill > 0 {
            session.truncate(0);
            let started = Instant::now();
            session.extend(&tokens(prefill), &|| false).map_err(|e| told(&e))?;
            note(run, prefill, started, &mut prefills);
        }
        if decode > 0 {
            session.truncate(0);
            if context > 0 {
                session.extend(&tokens(context), &|| false).map_err(|e| told(&e))?;
            }
            let started = Instant::now();
            for token in tokens(decode) {
                session.extend(&[token], &|| false).map_err(|e| told(&e))?;
            }
            note(run, decode, started, &mut decodes);
        }
    }
    // Before the buffer that the bandwidth is measured with.
    let memory = usage().peak;
    let (read, peak) = (bandwidth(&pool), peak(&pool));
    rows.say("model", "model", path.display().to_string());
    rows.say("quant", "prevailing type", prevailing_type(llm.gguf()));
    let (p, d) = (median(&mut prefills), median(&mut decodes));
    rows.add("prefill_tok_s", &format!("prefill {prefill}"), format!("{p:.1} tok/s"), p);
    rows.add("decode_tok_s", &format!("decode {decode} at {context}"), format!("{d:.2} tok/s"), d);
    let moved = d * llm.bytes_per_token() as f64 / 1e9;
    rows.add(
        "bytes_per_token",
        "weights read a token",
        format!("{:.1} MB", llm.bytes_per_token() as f64 / 1e6),
        llm.bytes_per_token(),
    );
    rows.add("decode_gb_s", "decode moves", format!("{moved:.1} GB/s"), moved);
    rows.add("read_gb_s", "plain reading moves", format!("{read:.1} GB/s"), read);
    rows.add("share_of_read", "share", format!("{:.0} %", 100.0 * moved / read), moved / read);
    let computed = p * llm.macs_per_token() as f64 / 1e9;
    rows.add("prefill_gmac_s", "prefill multiplies", format!("{computed:.0} GMAC/s"), computed);
    rows.add("peak_gmac_s", "8-bit peak", format!("{peak:.0} GMAC/s"), peak);
    rows.add("share_of_peak", "share", format!("{:.0} %", 100.0 * computed / peak), computed / peak);
    let isa = llm.kernels().name();
    let mut types: Vec<_> = llm.gguf().tensors().iter().map(|t| t.ty).collect();
    types.sort_unstable_by_key(ToString::to_string);
    types.dedup();
    let types: Vec<String> = types.into_iter().map(|t| format!("{t}: {}", kernel_of(t, isa))).collect();
    rows.add("tensor_types", "tensor types", types.join("; "), types);
    rows.say("kv_type", "KV cache", session.cache_type().name());
    let (file, kv) = (path.metadata().map_or(0, |m| m.len()), session.kv_bytes() as u64);
    let mib = |bytes: u64| bytes as f64 / MIB;
    let shown =
        format!("{:.0} MiB resident at most; the file has {:.0}, the KV cache {:.0}", mib(memory), mib(file), mib(kv));
    rows.add("peak_bytes", "memory", shown, memory);
    rows.add("model_bytes", "model file", format!("{file} bytes"), file);
    rows.add("kv_bytes", "KV cache size", format!("{kv} bytes for {} tokens", session.capacity()), kv);
    if args.sustain > 0 {
        sustain(&mut session, args, &tokens(context + 1), rows)?;
    }
    Ok(())
}

/// Decodes at the same place for the time asked for, and tells the first tenth's speed, the last tenth's and the whole.
fn sustain(session: &mut Session, args: &BenchArgs, tokens: &[u32], rows: &mut Rows) -> Result<(), ErrorBody> {
    const TENTHS: usize = 10;
    let (context, token) = (tokens.len() - 1, tokens[tokens.len() - 1]);
    let each = f64::from(args.sustain) / TENTHS as f64;
    let mut rates = Vec::new();
    for _ in 0..TENTHS {
        let (started, mut n) = (Instant::now(), 0u32);
        while started.elapsed().as_secs_f64() < each {
            session.truncate(context);
            session.extend(&[token], &|| false).map_err(|e| told(&e))?;
            n += 1;
        }
        rates.push(f64::from(n) / started.elapsed().as_secs_f64());
    }
    let (first, last, all) = (rates[0], rates[TENTHS - 1], rates.iter().sum::<f64>() / TENTHS as f64);
    let shown =
        format!("{all:.1} tok/s over {} s, {:.0} % of the first tenth at the end", args.sustain, 100.0 * last / first);
    rows.add("sustained_tok_s", "sustained", shown, all);
    rows.add(
        "sustained_rates",
        "by tenths",
        rates.iter().map(|r| format!("{r:.1}")).collect::<Vec<_>>().join(" "),
        rates,
    );
    Ok(())
}

fn embed(store: &Store, args: &BenchArgs, texts: &Path, pool: Arc<Pool>, rows: &mut Rows) -> Result<(), ErrorBody> {
    let name = match &args.model {
        Some(name) => name.clone(),
        None => store.embedder_to_use()?.name,
    };
    let path = store.resolve(&name)?;
    let vectors = Vectors::open(&path, &name, "", pool, Arc::new(Gate::default())).map_err(|e| invalid(&name, &e))?;
    let passages = read_texts(texts)?;
    let all: Vec<&str> = passages.iter().map(String::as_str).collect();
    let tokens: usize = all.iter().map(|t| vectors.framed_tokens(vectors.passage_prefix(), t)).sum();
    let (mut rates, mut out) = (Vec::new(), Vec::new());
    for run in 0..=RUNS {
        out.clear();
        let started = Instant::now();
        for batch in all.chunks(EMBED_BATCH) {
            out.extend(vectors.embed(vectors.passage_prefix(), batch).map_err(|e| told(&e))?);
        }
        note(run, tokens, started, &mut rates);
    }
    rows.say("model", "model", path.display().to_string());
    rows.add("texts", "texts", all.len().to_string(), all.len());
    rows.add("tokens", "tokens", tokens.to_string(), tokens);
    let rate = median(&mut rates);
    rows.add("embed_tok_s", "embedding", format!("{rate:.0} tok/s"), rate);
    if let Some(queries) = &args.queries {
        let mut times = Vec::new();
        for query in read_texts(queries)? {
            let started = Instant::now();
            vectors.embed(vectors.query_prefix(), &[&query]).map_err(|e| told(&e))?;
            times.push(started.elapsed().as_secs_f64() * 1000.0);
        }
        let ms = median(&mut times);
        rows.add("query_ms", "one query", format!("{ms:.2} ms"), ms);
    }
    if let Some(file) = &args.vectors {
        let bytes: Vec<u8> = out.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(file, bytes)
            .map_err(|e| ErrorBody::new(Code::Error, format!("cannot write {}: {e}", file.display())))?;
        rows.say("vectors", "vectors", file.display().to_string());
    }
    Ok(())
}

/// One `{"text": ...}` a line.
fn read_texts(path: &Path) -> Result<Vec<String>, ErrorBody> {
    #[derive(serde::Deserialize)]
    struct Line {
        text: String,
    }
    let bad = |what: String| ErrorBody::bad_request(format!("{}: {what}", path.display()));
    let size = path.metadata().map_err(|e| bad(e.to_string()))?.len();
    if size > MAX_TEXTS_BYTES {
        return Err(bad(format!("{size} bytes > {MAX_TEXTS_BYTES}")));
    }
    let content = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let lines = content.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let texts: Vec<String> = lines
        .map(|(i, l)| serde_json::from_str::<Line>(l).map(|l| l.text).map_err(|e| bad(format!("line {}: {e}", i + 1))))
        .collect::<Result<_, _>>()?;
    if texts.is_empty() { Err(bad("no texts".into())) } else { Ok(texts) }
}

fn note(run: usize, tokens: usize, started: Instant, rates: &mut Vec<f64>) {
    if run > 0 {
        rates.push(tokens as f64 / started.elapsed().as_secs_f64());
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// GB/s of plain reading with all threads; the best of a few passes.
fn bandwidth(pool: &Pool) -> f64 {
    let data = vec![1u64; BANDWIDTH_BYTES / 8];
    let jobs = pool.threads() * 8;
    let part = data.len() / jobs;
    let mut best = 0f64;
    for _ in 0..5 {
        let started = Instant::now();
        pool.run(jobs, |_, job| {
            let mut lanes = [0u64; 16];
            for sixteen in data[job * part..(job + 1) * part].as_chunks::<16>().0 {
                for (lane, v) in lanes.iter_mut().zip(sixteen) {
                    *lane = lane.wrapping_add(*v);
                }
            }
            std::hint::black_box(lanes);
        });
        best = best.max((jobs * part * 8) as f64 / started.elapsed().as_secs_f64() / 1e9);
    }
    best
}

/// Billions of 8-bit products a second in registers, all threads; the best of a few passes.
fn peak(pool: &Pool) -> f64 {
    let kernels = Kernels::detect();
    let mut best = 0f64;
    for _ in 0..5 {
        let (started, products) = (Instant::now(), AtomicUsize::new(0));
        pool.run(pool.threads(), |_, _| {
            products.fetch_add(kernels.peak(PEAK_ROUNDS), Ordering::Relaxed);
        });
        best = best.max(products.into_inner() as f64 / started.elapsed().as_secs_f64() / 1e9);
    }
    best
}

fn told(e: &RunError) -> ErrorBody {
    let code = if matches!(e, RunError::TooLong { .. }) { Code::TooLong } else { Code::Error };
    ErrorBody::new(code, e.to_string())
}
