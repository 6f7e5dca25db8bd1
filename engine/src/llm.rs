//! A generative model: an open file with its configuration and threads.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::error::LoadError;
use crate::gguf::Gguf;
use crate::kernels::Kernels;
use crate::model::{Compute, Config, Decoder, Weights, WorkerScratch, workers};
use crate::pool::Pool;

/// A loaded decoder. Cheap to share; weights stay in the mapping of the file.
#[derive(Debug)]
pub struct Llm {
    gguf: Gguf,
    config: Config,
    weights: Weights,
    kernels: &'static Kernels,
    pool: Arc<Pool>,
    workers: Vec<Mutex<WorkerScratch>>,
}

impl Llm {
    /// Opens a model that computes on `pool` with the best kernels of this machine.
    ///
    /// # Errors
    /// A [`LoadError`]; [`LoadError::Architecture`] also for encoders, which cannot generate.
    pub fn open(path: &Path, pool: Arc<Pool>) -> Result<Self, LoadError> {
        Self::open_with(path, pool, Kernels::detect())
    }

    /// The same with the kernels given; for comparing instruction sets.
    ///
    /// # Errors
    /// As [`Llm::open`].
    pub fn open_with(path: &Path, pool: Arc<Pool>, kernels: &'static Kernels) -> Result<Self, LoadError> {
        let gguf = Gguf::open(path)?;
        let config = Config::from_gguf(&gguf)?;
        if config.is_encoder() {
            return Err(LoadError::Architecture(format!("{} (an embedder, which cannot write)", gguf.architecture()?)));
        }
        let weights = Weights::find(&gguf, &config)?;
        let workers = workers(&pool);
        Ok(Self { gguf, config, weights, kernels, pool, workers })
    }

    /// The file.
    #[must_use]
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// The hyperparameters.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The kernels in use.
    #[must_use]
    pub fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    /// The threads it computes on.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Bytes of weights read for one decoded token.
    #[must_use]
    pub fn bytes_per_token(&self) -> usize {
        self.weights.bytes_per_token()
    }

    /// Multiplications with weights for one token of a prompt, without attention and output.
    #[must_use]
    pub fn macs_per_token(&self) -> usize {
        self.weights.macs_per_token()
    }

    /// A pass over the layers.
    pub(crate) fn decoder(&self) -> Decoder<'_> {
        let compute = Compute { kernels: self.kernels, pool: &self.pool, workers: &self.workers };
        Decoder::new(&self.config, &self.weights, compute)
    }
}
