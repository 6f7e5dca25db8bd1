//! Next-token distributions as recorded in `golden/llm_NAME.{json,bin}`; `golden/make.py` tells their form.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

/// What was recorded for one model.
pub struct Golden {
    /// The prompt; distributions are those after every token but the first.
    pub ids: Vec<u32>,
    /// Greedy continuations.
    pub greedy: Vec<Greedy>,
    /// By llama.cpp.
    pub llama: Table,
    /// By float arithmetic on the same weights.
    pub exact: Table,
    /// Mean divergence of llama.cpp from the float arithmetic, of whole distributions.
    pub exact_to_llama: f64,
    /// The same by the tokens in `exact`, others taken together, as [`Table::divergence`] has it.
    pub exact_to_llama_kept: f64,
    /// Mean divergence of llama.cpp from itself, with weights repacked and not: its own noise.
    pub noise: f64,
}

/// A greedy continuation by llama.cpp, and by how much its first choice led at each step.
pub struct Greedy {
    pub prompt: String,
    pub prompt_ids: Vec<u32>,
    pub ids: Vec<u32>,
    pub gaps: Vec<f64>,
    /// What float arithmetic takes after the same tokens, and by how much that leads.
    pub exact_ids: Vec<u32>,
    pub exact_gaps: Vec<f64>,
}

/// The likeliest tokens of each position.
pub struct Table {
    kept: usize,
    ids: Vec<u32>,
    log_p: Vec<f32>,
    rest: Vec<f32>,
}

/// A file of the goldens.
pub fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

/// A JSON file of the goldens.
pub fn json(file: &str) -> Json {
    let path = path(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// A list of token ids.
pub fn ids(list: &Json) -> Vec<u32> {
    list.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// A list of numbers.
pub fn numbers(list: &Json) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

impl Golden {
    /// Reads both files of a model.
    pub fn read(name: &str) -> Self {
        let head = json(&format!("llm_{name}.json"));
        let bytes = std::fs::read(path(&format!("llm_{name}.bin"))).unwrap();
        let mut words = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
        let llama = Table::read(&mut words);
        let exact = Table::read(&mut words);
        assert_eq!(words.next(), None, "{name}: two tables and nothing else");
        let greedy = |g: &Json| Greedy {
            prompt: g["prompt"].as_str().unwrap().into(),
            prompt_ids: ids(&g["prompt_ids"]),
            ids: ids(&g["ids"]),
            gaps: numbers(&g["gaps"]),
            exact_ids: ids(&g["exact_ids"]),
            exact_gaps: numbers(&g["exact_gaps"]),
        };
        Self {
            ids: ids(&head["ids"]),
            greedy: head["greedy"].as_array().unwrap().iter().map(greedy).collect(),
            llama,
            exact,
            exact_to_llama: head["exact_to_llama"]["mean"].as_f64().unwrap(),
            exact_to_llama_kept: head["exact_to_llama"]["kept"].as_f64().unwrap(),
            noise: head["noise_floor"]["mean"].as_f64().unwrap(),
        }
    }
}

impl Table {
    fn read(words: &mut dyn Iterator<Item = u32>) -> Self {
        let mut take = |n: usize| -> Vec<u32> { words.take(n).collect() };
        let (n, kept) = (take(1)[0] as usize, take(1)[0] as usize);
        let floats = |v: Vec<u32>| v.into_iter().map(f32::from_bits).collect();
        Self { kept, ids: take(n * kept), log_p: floats(take(n * kept)), rest: floats(take(n)) }
    }

    /// Positions recorded.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// KL divergence at a position of the distribution that `logits` mean from this one, in nats; tokens that are not
    /// in the table are taken together, so it is a lower bound, near the whole where the rest is small.
    pub fn divergence(&self, position: usize, logits: &[f32]) -> f64 {
        let at = position * self.kept..(position + 1) * self.kept;
        let peak = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let weight = |v: f32| (f64::from(v) - peak).exp();
        let total: f64 = logits.iter().map(|v| weight(*v)).sum();
        let (mut kl, mut kept) = (0.0, 0.0);
        for (id, log_p) in self.ids[at.clone()].iter().zip(&self.log_p[at]) {
            let log_p = f64::from(*log_p);
            let q = weight(logits[*id as usize]) / total;
            kept += q;
            kl += log_p.exp() * (log_p - q.ln());
        }
        let (rest, others) = (f64::from(self.rest[position]), (1.0 - kept).max(1e-12));
        if rest > 0.0 { kl + rest * (rest / others).ln() } else { kl }
    }
}
