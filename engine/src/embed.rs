//! An embedding model: token ids in, unit vectors out.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{LoadError, RunError};
use crate::gguf::Gguf;
use crate::kernels::Kernels;
use crate::limits::PREFILL_BATCH;
use crate::model::{Compute, Config, Encoder, EncoderScratch, Weights, WorkerScratch, workers};
use crate::pool::Pool;

/// A loaded encoder.
#[derive(Debug)]
pub struct Embedder {
    gguf: Gguf,
    config: Config,
    weights: Weights,
    kernels: &'static Kernels,
    pool: Arc<Pool>,
    workers: Vec<Mutex<WorkerScratch>>,
    scratch: Mutex<EncoderScratch>,
}

impl Embedder {
    /// Opens an embedder that computes on `pool` with the best kernels of this machine.
    ///
    /// # Errors
    /// A [`LoadError`]; [`LoadError::Architecture`] also for decoders.
    pub fn open(path: &Path, pool: Arc<Pool>) -> Result<Self, LoadError> {
        Self::open_with(path, pool, Kernels::detect())
    }

    /// The same with the kernels given.
    ///
    /// # Errors
    /// As [`Embedder::open`].
    pub fn open_with(path: &Path, pool: Arc<Pool>, kernels: &'static Kernels) -> Result<Self, LoadError> {
        let gguf = Gguf::open(path)?;
        let config = Config::from_gguf(&gguf)?;
        if !config.is_encoder() {
            return Err(LoadError::Architecture(format!("{} (not an embedder)", gguf.architecture()?)));
        }
        if !config.width.is_multiple_of(32) || config.heads * config.head_dim != config.width {
            let what = format!("{} heads of {} dimensions in {}", config.heads, config.head_dim, config.width);
            return Err(LoadError::BadKey { key: "bert.embedding_length".into(), what });
        }
        let weights = Weights::find(&gguf, &config)?;
        let workers = workers(&pool);
        Ok(Self { gguf, config, weights, kernels, pool, workers, scratch: Mutex::default() })
    }

    /// The file.
    #[must_use]
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// The hyperparameters; `width` is the length of a vector.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Unit vectors of texts given as token ids, special tokens included. Texts are packed into batches without
    /// padding; `cancelled` is polled between batches.
    ///
    /// # Errors
    /// [`RunError::TooLong`], [`RunError::BadToken`], [`RunError::Text`] for an empty text, [`RunError::Cancelled`],
    /// [`RunError::NotFinite`].
    pub fn embed(&self, texts: &[&[u32]], cancelled: &dyn Fn() -> bool) -> Result<Vec<Vec<f32>>, RunError> {
        texts.iter().try_for_each(|t| self.check(t))?;
        // Texts of similar length in a batch change nothing without padding, so the order given is kept.
        let mut out = Vec::with_capacity(texts.len());
        let mut rest = texts;
        let compute = Compute { kernels: self.kernels, pool: &self.pool, workers: &self.workers };
        let encoder = Encoder::new(&self.config, &self.weights, compute);
        while !rest.is_empty() {
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            let mut tokens = 0;
            let fits = |t: &&&[u32]| {
                tokens += t.len();
                tokens <= PREFILL_BATCH
            };
            let n = rest.iter().take_while(fits).count().max(1);
            let (batch, later) = rest.split_at(n);
            let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
            out.extend(encoder.encode(batch, &mut scratch));
            rest = later;
        }
        if out.iter().flatten().all(|v| v.is_finite()) { Ok(out) } else { Err(RunError::NotFinite) }
    }

    fn check(&self, text: &[u32]) -> Result<(), RunError> {
        let (limit, vocab) = (self.config.context, self.config.vocab);
        if text.is_empty() {
            return Err(RunError::Text("nothing to embed: the text has no tokens".into()));
        }
        if text.len() > limit {
            return Err(RunError::TooLong { needed: text.len(), limit });
        }
        match text.iter().find(|t| **t as usize >= vocab) {
            Some(id) => Err(RunError::BadToken { id: *id, vocab }),
            None => Ok(()),
        }
    }
}
