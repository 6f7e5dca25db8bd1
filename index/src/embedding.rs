//! Passages without a vector → vectors, in batches of like length.

use std::time::Duration;

use crate::embedder::{EmbedError, Embedder, check_vector};
use crate::embedders;
use crate::error::Error;
use crate::index::Index;
use crate::ingest::{context, embedded_text};
use crate::limits::{EMBED_BATCH, EMBED_WINDOW};
use crate::pipeline::Shared;
use crate::progress::Event;
use crate::resident::Change;
use crate::store::passages::{self, Passage};
use crate::store::vectors::{self, Of, Quantized};
use crate::store::{documents, queue, state, text};
use crate::types::State;

/// Documents looked at for one window.
const DOCUMENTS: usize = 16;
/// First and longest wait after the embedder failed.
const WAIT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What a step came to.
pub(crate) enum Step {
    /// Nothing is left to embed, or there is no embedder.
    Done,
    /// There may be more.
    More,
    /// The embedder failed; try again after so long.
    Trouble(Duration),
}

/// The state of the embedding thread.
#[derive(Default)]
pub(crate) struct Embedding {
    failures: u32,
}

/// A passage and what is embedded for it.
struct Item {
    passage: Passage,
    text: String,
}

impl Embedding {
    /// Takes one window of passages and embeds it.
    pub(crate) fn step(&mut self, shared: &Shared) -> Step {
        let Some(embedder) = shared.embedder() else { return Step::Done };
        match self.window(shared, embedder.as_ref()) {
            Ok(0) => Step::Done,
            Ok(_) => {
                self.failures = 0;
                Step::More
            }
            Err(Error::Embed(EmbedError::Stopping)) => Step::Trouble(WAIT.0),
            Err(error) => {
                shared.tracker.trouble(&error);
                self.failures = self.failures.saturating_add(1);
                Step::Trouble((WAIT.0 * 2_u32.saturating_pow(self.failures.min(8))).min(WAIT.1))
            }
        }
    }

    fn window(&self, shared: &Shared, embedder: &dyn Embedder) -> Result<usize, Error> {
        let mut items = take(&shared.index, EMBED_WINDOW)?;
        if items.is_empty() && shared.index.finish_change_of_embedder()? {
            // Documents that the new embedder wants cut anew are found by a scan.
            shared.inbox.rescan();
        }
        // Like lengths together: a batch costs as much as its longest text.
        items.sort_by_key(|item| item.text.len());
        for batch in items.chunks(EMBED_BATCH) {
            if shared.inbox.stopping() {
                break;
            }
            let made = embed(embedder, batch)?;
            let done = store(&shared.index, embedder, batch, &made)?;
            let bytes = batch.iter().map(|item| item.passage.byte_end - item.passage.byte_start).sum::<usize>();
            shared.tracker.embedded(&shared.index, batch.len() as u64, bytes as u64);
            for path in done {
                shared.tracker.emit(Event::File { path, state: State::Indexed, reason: None });
            }
        }
        // The texts of the window are tidied on the way: a hundredth of what embedding them took.
        shared.index.pack_texts()?;
        Ok(items.len())
    }
}

fn take(index: &Index, limit: usize) -> Result<Vec<Item>, Error> {
    index.store().read(|c| {
        let mut items = Vec::new();
        let (epoch, of) = (state::number(c, state::EPOCH)?, embedders::wanted(c)?);
        for document_id in queue::next(c, epoch, DOCUMENTS)? {
            let Some(document) = documents::by_id(c, document_id)? else { continue };
            for passage in passages::unembedded(c, of, document_id, limit - items.len())? {
                let body = text::get(c, document_id, passage.byte_start, passage.byte_end)?;
                let context = context(document.title.as_deref(), &passage.heading, &body);
                items.push(Item { passage, text: embedded_text(&context, &body) });
            }
            if items.len() >= limit {
                break;
            }
        }
        Ok(items)
    })
}

/// A vector for each item; `None` for a text that the embedder refuses while it takes others.
fn embed(embedder: &dyn Embedder, batch: &[Item]) -> Result<Vec<Option<Quantized>>, Error> {
    let texts: Vec<&str> = batch.iter().map(|item| item.text.as_str()).collect();
    match embedder.embed_passages(&texts) {
        Ok(made) => check(embedder, made, batch.len()),
        Err(EmbedError::Stopping) => Err(EmbedError::Stopping.into()),
        Err(error) => one_by_one(embedder, &texts, error),
    }
}

fn one_by_one(embedder: &dyn Embedder, texts: &[&str], first: EmbedError) -> Result<Vec<Option<Quantized>>, Error> {
    let mut out = Vec::new();
    for text in texts {
        match embedder.embed_passages(&[text]) {
            Ok(made) => out.extend(check(embedder, made, 1)?),
            Err(EmbedError::Stopping) => return Err(EmbedError::Stopping.into()),
            Err(EmbedError::Failed { .. }) => out.push(None),
        }
    }
    // If none works, a plain word tells whether it is the texts or the embedder.
    let texts_at_fault = out.iter().any(Option::is_some) || embedder.embed_passages(&["word"]).is_ok();
    if texts_at_fault { Ok(out) } else { Err(first.into()) }
}

fn check(embedder: &dyn Embedder, made: Vec<Vec<f32>>, wanted: usize) -> Result<Vec<Option<Quantized>>, Error> {
    let bad = |what| Error::BadVector { id: embedder.id(), what };
    if made.len() != wanted {
        return Err(bad(format!("{} came for {wanted} texts", made.len())));
    }
    for vector in &made {
        check_vector(vector, embedder.dim()).map_err(bad)?;
    }
    Ok(made.iter().map(|v| Some(Quantized::of(v))).collect())
}

/// Writes a batch; gives the documents that it completed.
fn store(
    index: &Index,
    embedder: &dyn Embedder,
    batch: &[Item],
    made: &[Option<Quantized>],
) -> Result<Vec<std::path::PathBuf>, Error> {
    let id = embedder.id();
    index.write("store vectors", |tx, changes| {
        let mut done = Vec::new();
        let Some(of) = embedders::kind_of(tx, &id)? else { return Ok(done) };
        for (item, vector) in batch.iter().zip(made) {
            // The document may have changed while its old text was being embedded.
            if passages::by_id(tx, item.passage.id)?.is_none() || vectors::raw(tx, of, item.passage.id)?.is_some() {
                continue;
            }
            // A text that cannot be embedded gets a vector of zeros: it is found by its words, and not tried for ever.
            let none = Quantized { scale: 0.0, bytes: vec![0; embedder.dim()] };
            let vector = vector.clone().unwrap_or(none);
            vectors::put(tx, of, item.passage.id, &vector)?;
            if of == Of::Serving {
                changes.push(Change::SetVector { passage_id: item.passage.id, vector });
            } else if embedder.count_tokens(&item.text) > embedder.max_tokens() {
                queue::set_too_long(tx, item.passage.document_id)?;
            }
            done.extend(queue::count_down(tx, item.passage.document_id, 1, index.now())?);
        }
        Ok(done)
    })
}
