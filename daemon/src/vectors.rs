//! The index's embedder, made of an engine model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use satchel_engine::error::{LoadError, RunError};
use satchel_engine::pool::Pool;
use satchel_engine::{Embedder, Special, Tokenizer};
use satchel_index::{Calibration, EmbedError};

use crate::gate::Gate;

/// Longest wait of an ingest batch for answers in work.
const INGEST_PATIENCE: Duration = Duration::from_secs(120);

/// Embedders whose cosines were measured (docs/retrieval.md, "Nothing relevant"): e5's crowd near 0.8, MiniLM's spread around 0
/// and say nothing across languages.
const CALIBRATIONS: [(&str, Calibration); 2] = [
    (
        "multilingual-e5-small",
        Calibration { similarity: 85.9, coverage: 14.8, bias: -76.3, foreign: Some((43.4, -34.6)) },
    ),
    ("all-minilm-l6-v2", Calibration { similarity: 22.0, coverage: 10.0, bias: -11.9, foreign: None }),
];

/// An embedding model with its tokenizer and prefixes.
#[derive(Debug)]
pub struct Vectors {
    name: String,
    id: String,
    model: Embedder,
    tokenizer: Tokenizer,
    query_prefix: String,
    passage_prefix: String,
    /// Tokens that framing and prefix add to a passage.
    overhead: usize,
    gate: Arc<Gate>,
    stopping: AtomicBool,
}

impl Vectors {
    /// Opens the model at `path`; `hash` tells models of the same name apart.
    ///
    /// # Errors
    /// As [`Embedder::open`].
    pub fn open(path: &Path, name: &str, hash: &str, pool: Arc<Pool>, gate: Arc<Gate>) -> Result<Self, LoadError> {
        let model = Embedder::open(path, pool)?;
        let m = model.gguf().metadata();
        let prefix = |key: &str| Ok::<_, LoadError>(m.str(key)?.unwrap_or_default().to_owned());
        let query_prefix = prefix("satchel.embed.query_prefix")?;
        let passage_prefix = prefix("satchel.embed.passage_prefix")?;
        let tokenizer = Tokenizer::from_gguf(m)?;
        let count = |text: &str| tokenizer.encode_framed(text, Special::Text).map_or(0, |ids| ids.len());
        let overhead = count(&passage_prefix).max(count(&query_prefix)).max(2);
        let id = format!("{name}:{}", hash.get(..16).unwrap_or(hash));
        let stopping = AtomicBool::new(false);
        Ok(Self { name: name.to_owned(), id, model, tokenizer, query_prefix, passage_prefix, overhead, gate, stopping })
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends waiting and embedding; used when the daemon stops.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Unit vectors of texts with a prefix each; what is longer than the context is embedded by its beginning.
    ///
    /// # Errors
    /// As [`Embedder::embed`].
    pub fn embed(&self, prefix: &str, texts: &[&str]) -> Result<Vec<Vec<f32>>, RunError> {
        let limit = self.model.config().context;
        let mut ids = Vec::with_capacity(texts.len());
        for text in texts {
            let mut one = self.tokenizer.encode_framed(&format!("{prefix}{text}"), Special::Text)?;
            if one.len() > limit {
                let end = one.last().copied();
                one.truncate(limit - 1);
                one.extend(end);
            }
            ids.push(one);
        }
        let slices: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        self.model.embed(&slices, &|| self.stopping.load(Ordering::Relaxed))
    }

    /// Prefix of passages.
    pub fn passage_prefix(&self) -> &str {
        &self.passage_prefix
    }

    /// Prefix of queries.
    pub fn query_prefix(&self) -> &str {
        &self.query_prefix
    }

    /// Tokens of a text with its frame and prefix.
    pub fn framed_tokens(&self, prefix: &str, text: &str) -> usize {
        self.tokenizer.encode_framed(&format!("{prefix}{text}"), Special::Text).map_or(0, |ids| ids.len())
    }
}

fn failed(e: RunError) -> EmbedError {
    match e {
        RunError::Cancelled => EmbedError::Stopping,
        other => EmbedError::Failed { message: other.to_string(), source: Some(Box::new(other)) },
    }
}

impl satchel_index::Embedder for Vectors {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn dim(&self) -> usize {
        self.model.config().width
    }

    fn max_tokens(&self) -> usize {
        self.model.config().context.saturating_sub(self.overhead)
    }

    fn count_tokens(&self, text: &str) -> usize {
        // A text that cannot be tokenized counts as its bytes, so that it is cut rather than refused.
        self.tokenizer.encode(text, Special::Text).map_or(text.len(), |ids| ids.len())
    }

    fn calibration(&self) -> Option<Calibration> {
        CALIBRATIONS.iter().find(|(name, _)| *name == self.name).map(|(_, calibration)| *calibration)
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.gate.wait(INGEST_PATIENCE);
        self.embed(&self.passage_prefix, texts).map_err(failed)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vectors = self.embed(&self.query_prefix, &[text]).map_err(failed)?;
        vectors.pop().ok_or(EmbedError::Stopping)
    }

    fn wait_turn(&self) {
        self.gate.wait(INGEST_PATIENCE);
    }
}
