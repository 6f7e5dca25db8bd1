//! The language model that writes answers: one session, one answer at a time.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use satchel_engine::chat::ChatTemplate;
use satchel_engine::error::{LoadError, RunError};
use satchel_engine::pool::Pool;
use satchel_engine::sample::{Sampler, SamplerConfig};
use satchel_engine::tokenizer::Utf8Stream;
use satchel_engine::{CacheType, Llm, Session, Tokenizer};

use crate::answer::Quoting;

/// Context of a session unless asked otherwise, in tokens: five passages, a question, the conversation and an answer,
/// with room to spare. Its KV cache takes 112 MiB on the 1.5B model.
pub const DEFAULT_CONTEXT: usize = 4096;

/// A loaded model, ready to write.
#[derive(Debug)]
pub struct Writer {
    name: String,
    llm: Arc<Llm>,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    session: Mutex<Session>,
}

/// What became of a generation.
#[derive(Debug, Default, Clone, Copy)]
pub struct Generated {
    /// Tokens of the prompt whose keys and values were at hand.
    pub reused: usize,
    /// Tokens written.
    pub tokens: usize,
    /// Time of the prefill.
    pub prefill: Duration,
}

impl Writer {
    /// Opens the model at `path` for contexts of at most `context` tokens, keys and values stored as `cache`.
    ///
    /// # Errors
    /// The errors of opening a model, its tokenizer and template.
    pub fn open(path: &Path, name: &str, pool: Arc<Pool>, context: usize, cache: CacheType) -> Result<Self, LoadError> {
        let llm = Arc::new(Llm::open(path, pool)?);
        let tokenizer = Tokenizer::from_gguf(llm.gguf().metadata())?;
        let template = ChatTemplate::from_gguf(llm.gguf().metadata(), &tokenizer)?;
        let context = context.min(llm.config().context);
        let session = Session::with_cache(Arc::clone(&llm), context, cache)
            .map_err(|e| LoadError::BadKey { key: "context_length".into(), what: e.to_string() })?;
        Ok(Self { name: name.to_owned(), llm, tokenizer, template, session: Mutex::new(session) })
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model.
    pub fn llm(&self) -> &Arc<Llm> {
        &self.llm
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Its chat format.
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The session, waiting for the answer in work to end; none once `cancelled`.
    pub fn session(&self, cancelled: &dyn Fn() -> bool) -> Option<MutexGuard<'_, Session>> {
        loop {
            match self.session.try_lock() {
                Ok(session) => return Some(session),
                Err(TryLockError::Poisoned(e)) => {
                    // A panic may have left a half-computed position: start over.
                    let mut session = PoisonError::into_inner(e);
                    session.truncate(0);
                    self.session.clear_poison();
                    return Some(session);
                }
                Err(TryLockError::WouldBlock) if cancelled() => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Bytes reserved for keys and values and the context in tokens; none while an answer is in work.
    pub fn kv(&self) -> Option<(usize, usize)> {
        self.session.try_lock().ok().map(|s| (s.kv_bytes(), s.capacity()))
    }

    /// Computes `prompt`, then hands pieces of text to `piece` until the model ends, `max_tokens` are written, or `piece`
    /// returns false. What stands between quotation marks is what `quoting` allows.
    ///
    /// # Errors
    /// Those of [`Session::prefill`].
    pub fn generate(
        &self,
        session: &mut Session,
        prompt: &[u32],
        max_tokens: usize,
        quoting: &mut Quoting<'_>,
        cancelled: &dyn Fn() -> bool,
        piece: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Generated, RunError> {
        let started = std::time::Instant::now();
        let reused = session.prefill(prompt, cancelled)?;
        let mut done = Generated { reused, tokens: 0, prefill: started.elapsed() };
        let mut sampler = Sampler::new(SamplerConfig::default());
        let mut stream = Utf8Stream::default();
        while done.tokens < max_tokens && session.tokens().len() < session.capacity() {
            if cancelled() {
                return Err(RunError::Cancelled);
            }
            let allowed = |id| match self.tokenizer.is_end(id) {
                true => quoting.may_end(),
                false => quoting.allows(self.tokenizer.token_bytes(id)),
            };
            let id = sampler.sample_where(session.logits(), session.tokens(), &allowed)?;
            if self.tokenizer.is_end(id) {
                break;
            }
            done.tokens += 1;
            quoting.push(self.tokenizer.token_bytes(id));
            let text = stream.push(self.tokenizer.token_bytes(id));
            if !text.is_empty() && !piece(&text) {
                break;
            }
            if done.tokens == max_tokens || repeats(&session.tokens()[prompt.len()..]) {
                break;
            }
            session.extend(&[id], cancelled)?;
        }
        let rest = stream.finish();
        if !rest.is_empty() {
            piece(&rest);
        }
        Ok(done)
    }
}

/// Whether the last tokens are the same stretch three times: greedy decoding of a small model can fall into a loop.
fn repeats(tokens: &[u32]) -> bool {
    (4..=40).any(|n| {
        let Some(tail) = tokens.len().checked_sub(3 * n).map(|from| &tokens[from..]) else { return false };
        tail[..n] == tail[n..2 * n] && tail[..n] == tail[2 * n..]
    })
}
