//! Embedders give the vectors of the reference: MiniLM's of a float pass, e5's of the engine its file was made for.
//! How the goldens were made is in `golden/make.py`.

#[path = "support/golden.rs"]
#[allow(dead_code, reason = "distributions are not needed here")]
mod golden;
mod support;

use std::sync::Arc;

use golden::{ids, json, numbers};
use satchel_engine::kernels::Kernels;
use satchel_engine::pool::Pool;
use satchel_engine::{Embedder, Special, Tokenizer};
use serde_json::Value as Json;

fn open(name: &str, kernels: &'static Kernels) -> (Embedder, Tokenizer) {
    let embedder = Embedder::open_with(&support::model(name), Arc::new(Pool::new(2)), kernels).unwrap();
    let tokenizer = Tokenizer::from_gguf(embedder.gguf().metadata()).unwrap();
    (embedder, tokenizer)
}

/// Tokens that e5 takes.
const CONTEXT: usize = 512;

fn items(name: &str) -> Vec<Json> {
    let items = json(&format!("vec_{name}.json"))["items"].as_array().unwrap().clone();
    assert_eq!(items.len(), 24);
    items
}

fn cosine(a: &[f32], b: &[f64]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * b).sum();
    let norm = |sum: f64| sum.sqrt();
    dot / norm(a.iter().map(|v| f64::from(*v).powi(2)).sum()) / norm(b.iter().map(|v| v * v).sum())
}

/// Least cosine over all texts, embedded in one call.
fn least_cosine(name: &str, kernels: &'static Kernels, texts: &[Vec<u32>], items: &[Json]) -> f64 {
    let (embedder, _) = open(name, kernels);
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let vectors = embedder.embed(&texts, &|| false).unwrap();
    let cosines: Vec<f64> = vectors.iter().zip(items).map(|(v, item)| cosine(v, &numbers(&item["vector"]))).collect();
    let least = cosines.iter().copied().fold(1.0, f64::min);
    let mean = cosines.iter().sum::<f64>() / cosines.len() as f64;
    support::say(&format!("{name}, {}: cosine least {least:.6}, mean {mean:.6}", kernels.name()));
    least
}

#[test]
fn minilm_equals_the_float_reference() {
    let name = "all-minilm-l6-v2";
    let items = items(name);
    let (_, tokenizer) = open(name, Kernels::detect());
    for item in &items {
        let text = item["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_framed(text, Special::Text).unwrap(), ids(&item["ids"]), "{text:?}");
    }
    let texts: Vec<Vec<u32>> = items.iter().map(|item| ids(&item["ids"])).collect();
    for kernels in Kernels::available() {
        let least = least_cosine(name, kernels, &texts, &items);
        // Rounding activations to int8 costs most on the shortest text; the mean is 0.9995.
        assert!(least >= 0.998, "{}: {least}", kernels.name());
    }
}

#[test]
fn e5_equals_the_engine_its_file_was_made_for() {
    let name = "multilingual-e5-small";
    let items = items(name);
    let (_, tokenizer) = open(name, Kernels::detect());
    let texts: Vec<Vec<u32>> = items
        .iter()
        .map(|item| {
            let mut ids = tokenizer.encode_framed(item["text"].as_str().unwrap(), Special::Text).unwrap();
            // The oracle keeps the beginning of a longer text, and its end token.
            if ids.len() > CONTEXT {
                ids.drain(CONTEXT - 1..ids.len() - 1);
            }
            ids
        })
        .collect();
    for (text, item) in texts.iter().zip(&items) {
        assert_eq!(text.len() as u64, item["tokens"].as_u64().unwrap(), "tokens of {}", item["text"]);
    }
    let least = least_cosine(name, Kernels::detect(), &texts, &items);
    assert!(least >= 0.99, "{least}");
}
