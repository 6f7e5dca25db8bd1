//! A session: one sequence of tokens, its KV cache and its buffers.

use std::sync::Arc;

use crate::cache::{CacheType, KvCache};
use crate::error::RunError;
use crate::limits::PREFILL_BATCH;
use crate::llm::Llm;
use crate::model::{Logits, Scratch};

/// One sequence being computed. Not shared between threads; computing uses the model's pool.
#[derive(Debug)]
pub struct Session {
    llm: Arc<Llm>,
    cache: KvCache,
    scratch: Scratch,
    tokens: Vec<u32>,
}

impl Session {
    /// A session for at most `capacity` tokens, prompt and answer together, with a cache of halves.
    ///
    /// # Errors
    /// [`RunError::TooLong`] when the model was not made for that many.
    pub fn new(llm: Arc<Llm>, capacity: usize) -> Result<Self, RunError> {
        Self::with_cache(llm, capacity, CacheType::F16)
    }

    /// The same with keys and values stored as `ty`, or as halves where the model's heads do not fit it.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn with_cache(llm: Arc<Llm>, capacity: usize, ty: CacheType) -> Result<Self, RunError> {
        let limit = llm.config().context;
        if capacity > limit {
            return Err(RunError::TooLong { needed: capacity, limit });
        }
        let cache = KvCache::new(llm.config(), capacity, ty);
        Ok(Self { llm, cache, scratch: Scratch::default(), tokens: Vec::new() })
    }

    /// The model.
    #[must_use]
    pub fn llm(&self) -> &Arc<Llm> {
        &self.llm
    }

    /// Tokens computed so far.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Most tokens that the session holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.cache.capacity()
    }

    /// How keys and values are stored.
    #[must_use]
    pub fn cache_type(&self) -> CacheType {
        self.cache.ty()
    }

    /// Bytes reserved for keys and values.
    #[must_use]
    pub fn kv_bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// Forgets everything from position `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.cache.truncate(len);
        self.tokens.truncate(len);
    }

    /// Makes the sequence equal to `prompt`, keeping the longest common prefix that is already computed, and leaves the
    /// logits of the last position in [`Session::logits`]. Returns how many tokens were kept. `cancelled` is polled
    /// between batches.
    ///
    /// # Errors
    /// [`RunError::TooLong`], [`RunError::BadToken`], [`RunError::Cancelled`] (the prefix computed so far stays),
    /// [`RunError::NotFinite`].
    pub fn prefill(&mut self, prompt: &[u32], cancelled: &dyn Fn() -> bool) -> Result<usize, RunError> {
        if prompt.is_empty() {
            return Err(RunError::Text("the prompt has no tokens".into()));
        }
        // The last token is always computed: its logits are wanted.
        let common = prompt.iter().zip(&self.tokens).take_while(|(a, b)| a == b).count().min(prompt.len() - 1);
        self.truncate(common);
        self.extend(&prompt[common..], cancelled)?;
        Ok(common)
    }

    /// Appends tokens; the logits of the last one are left in [`Session::logits`].
    ///
    /// # Errors
    /// As [`Session::prefill`].
    pub fn extend(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<(), RunError> {
        self.check(tokens)?;
        let mut batches = tokens.chunks(PREFILL_BATCH).peekable();
        while let Some(batch) = batches.next() {
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            let logits = if batches.peek().is_none() { Logits::Last } else { Logits::None };
            self.forward(batch, logits);
        }
        self.finite()
    }

    /// Appends tokens and returns the logits of each, `(tokens, vocab)`; for comparing with other engines.
    ///
    /// # Errors
    /// As [`Session::prefill`].
    pub fn extend_with_logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>, RunError> {
        self.check(tokens)?;
        let mut all = Vec::new();
        for batch in tokens.chunks(PREFILL_BATCH) {
            self.forward(batch, Logits::All);
            all.extend_from_slice(&self.scratch.logits);
        }
        self.finite()?;
        Ok(all)
    }

    /// Logits of the last position, one a token of the vocabulary.
    #[must_use]
    pub fn logits(&self) -> &[f32] {
        let n = self.llm.config().vocab;
        &self.scratch.logits[self.scratch.logits.len().saturating_sub(n)..]
    }

    fn check(&self, tokens: &[u32]) -> Result<(), RunError> {
        let (needed, limit) = (self.tokens.len() + tokens.len(), self.capacity());
        if needed > limit {
            return Err(RunError::TooLong { needed, limit });
        }
        let vocab = self.llm.config().vocab;
        match tokens.iter().find(|t| **t as usize >= vocab) {
            Some(id) => Err(RunError::BadToken { id: *id, vocab }),
            None => Ok(()),
        }
    }

    fn forward(&mut self, batch: &[u32], logits: Logits) {
        self.llm.decoder().forward(batch, &mut self.cache, &mut self.scratch, logits);
        self.tokens.extend_from_slice(batch);
    }

    /// A damaged file shows as values that are no numbers, and they spread to every logit.
    fn finite(&self) -> Result<(), RunError> {
        if self.logits().iter().all(|v| v.is_finite()) { Ok(()) } else { Err(RunError::NotFinite) }
    }
}
