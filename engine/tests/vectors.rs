//! Embedders give the vectors of the reference: MiniLM's of a float pass, e5's of the engine its file was made for.
//! How the goldens were made is in `golden/make.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

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

/// Cosine of each text's vector with the recorded one, the texts embedded in one call.
fn cosines(name: &str, kernels: &'static Kernels, texts: &[Vec<u32>], items: &[Json]) -> Vec<f64> {
    let (embedder, _) = open(name, kernels);
    let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    let vectors = embedder.embed(&texts, &|| false).unwrap();
    vectors.iter().zip(items).map(|(v, item)| cosine(v, &numbers(&item["vector"]))).collect()
}

fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

/// Texts in the script that an English model knows; of others it sees single letters or nothing.
fn is_latin(text: &str) -> bool {
    text.chars().filter(|c| c.is_alphabetic()).all(|c| c < '\u{2000}' && !('\u{370}'..'\u{1e00}').contains(&c))
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
    let latin: Vec<bool> = items.iter().map(|item| is_latin(item["text"].as_str().unwrap())).collect();
    for kernels in Kernels::available() {
        let all = cosines(name, kernels, &texts, &items);
        let of = |script: bool| all.iter().zip(&latin).filter(move |(_, l)| **l == script).map(|(c, _)| *c);
        let (mean, known, other) = (all.iter().sum::<f64>() / all.len() as f64, least(of(true)), least(of(false)));
        let isa = kernels.name();
        support::say(&format!("{name}, {isa}: cosine mean {mean:.6}, least {known:.6}, in other scripts {other:.6}"));
        assert!(of(true).count() >= 12 && of(false).count() >= 6);
        assert!(known >= 0.999 && mean >= 0.999, "{isa}: {known}, {mean}");
        // What 8-bit weights and activations cost where a text is all but unknown to the model.
        assert!(other >= 0.998, "{isa}: {other}");
    }
}

#[test]
fn e5_equals_the_engine_its_file_was_made_for() {
    let name = "multilingual-e5-small";
    let items = items(name);
    let (_, tokenizer) = open(name, Kernels::detect());
    let encode = |item: &Json| tokenizer.encode_framed(item["text"].as_str().unwrap(), Special::Text).unwrap();
    let texts: Vec<Vec<u32>> = items.iter().map(encode).collect();
    for (text, item) in texts.iter().zip(&items) {
        assert_eq!(text.len() as u64, item["tokens"].as_u64().unwrap(), "tokens of {}", item["text"]);
    }
    for kernels in Kernels::available() {
        let all = cosines(name, kernels, &texts, &items);
        let (mean, least, isa) = (all.iter().sum::<f64>() / all.len() as f64, least(all), kernels.name());
        support::say(&format!("{name}, {isa}: cosine mean {mean:.6}, least {least:.6}"));
        assert!(least >= 0.99, "{isa}: {least}");
    }
}
