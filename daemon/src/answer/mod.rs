//! A question to a cited answer: retrieve, fit, generate, support.

mod answerable;
mod cite;
mod prompt;
mod quoting;
mod support;
mod text;

use std::time::{Duration, Instant};

use satchel_engine::error::RunError;
use satchel_index::{Freshness, Hit, Index};
use satchel_ipc::wire::{AskReply, AskRequest, Citation, Event, Quote, Timings};
use satchel_ipc::{Code, ErrorBody, Exchange};

use crate::translate;
use crate::writer::Writer;
use cite::{Citer, Said};
use prompt::{Prompt, Wording};
pub use quoting::Quoting;
use support::{Evidence, Support, find};

/// Passages read unless the request says otherwise. Five of about 200 tokens hold the answer nearly as often as ten and
/// cost half the prefill.
pub const DEFAULT_PASSAGES: u32 = 5;
/// Most passages that a request may ask for.
pub const MAX_PASSAGES: u32 = 50;
/// Longest answer unless the request says otherwise, in tokens; a small context gives a quarter of itself.
pub fn default_tokens(context: usize) -> u32 {
    (context / 4).min(256) as u32
}

/// Longest question in bytes; a longer one is a document.
pub const MAX_QUESTION_BYTES: usize = 16 << 10;

/// What an abstaining answer says.
const ABSTAINED: &str = "The documents do not contain an answer to this question.";

/// A passage that the answer may rest on.
#[derive(Debug, Clone)]
struct Source {
    title: String,
    text: String,
    place: Place,
}

/// Where a source comes from.
#[derive(Debug, Clone)]
enum Place {
    /// A document of the index.
    Index(Box<Hit>),
    /// Given in the request.
    Given(usize),
}

/// What a request is answered from.
#[derive(Debug)]
pub enum Passages {
    /// Hits of the index, best first.
    Found(Vec<Hit>),
    /// Texts of the request.
    Given(Vec<String>),
}

/// Answers `request` from `passages` with `writer`. Tokens, quotes and citations go to the exchange as they come.
///
/// # Errors
/// The codes of the contract; abstaining is no error but a reply.
pub fn answer(
    request: &AskRequest,
    passages: Passages,
    max_tokens: usize,
    index: &Index,
    writer: &Writer,
    exchange: &Exchange,
    started: Instant,
) -> Result<AskReply, ErrorBody> {
    let retrieve = started.elapsed();
    let sources = sources(passages);
    let hits: Vec<_> = sources.iter().filter_map(Source::hit).collect();
    exchange.events.emit(Event::Sources { sources: hits.clone() })?;
    let mut reply = AskReply { sources: hits, ..AskReply::default() };
    reply.timings.retrieve_ms = millis(retrieve);
    if sources.is_empty() {
        return Ok(abstain(reply, started));
    }
    let mut evidence: Vec<Evidence> = sources.iter().map(|s| Evidence::new(&s.text)).collect();
    first_quote(&request.question, &sources, &evidence, index, exchange)?;
    let cancelled = || exchange.cancel.is_cancelled();
    let run_error = |e: RunError| run_error(&e, exchange);
    let mut session = writer.session(&cancelled).ok_or_else(|| cancelled_error(exchange))?;
    let room = session.capacity().saturating_sub(max_tokens);
    let shown: Vec<_> = sources.iter().map(|s| prompt::Shown { title: &s.title, text: &s.text }).collect();
    let (tokenizer, template) = (writer.tokenizer(), writer.template());
    let prompt =
        Prompt::fit(tokenizer, template, &request.question, &shown, &request.conversation, room).map_err(run_error)?;
    evidence.truncate(prompt.passages());
    let texts: Vec<&str> = sources[..prompt.passages()].iter().map(|s| s.text.as_str()).collect();
    let prefilled = Instant::now();
    let mut probed = None;
    if let Some(least) = answerable::least(writer.name()) {
        let probe = prompt.encode(Wording::Answerable).map_err(run_error)?;
        let reused = session.prefill(&probe, &cancelled).map_err(run_error)?;
        probed = Some(prefilled.elapsed());
        reply.timings.reused_tokens = reused as u64;
        reply.timings.prompt_tokens = probe.len() as u64;
        let odds = answerable::log_odds(session.logits(), tokenizer).map_err(run_error)?;
        if odds < least {
            reply.timings.prefill_ms = millis(prefilled.elapsed());
            return Ok(abstain(reply, started));
        }
    }
    let ids = prompt.encode(Wording::Answer).map_err(run_error)?;
    let mut out = Written { sources: &sources, index, exchange, reply, first: None, failed: None, said: String::new() };
    let mut citer = Citer::new(&request.question, &evidence);
    let mut quoting = Quoting::new(&texts);
    let generated = writer
        .generate(&mut session, &ids, max_tokens, &mut quoting, &cancelled, &mut |piece| {
            out.said.push_str(piece);
            out.take(citer.push(piece))
        })
        .map_err(run_error)?;
    drop(session);
    out.take(citer.finish());
    if let Some(error) = out.failed {
        return Err(error);
    }
    let (mut reply, first, said) = (out.reply, out.first, out.said);
    reply.withheld = citer.withheld() as u32;
    // What the probe computed is no reuse of an earlier question's.
    let reused = if probed.is_some() { reply.timings.reused_tokens } else { generated.reused as u64 };
    reply.timings = Timings {
        retrieve_ms: millis(retrieve),
        prefill_ms: millis(probed.unwrap_or_default() + generated.prefill),
        first_token_ms: first.map_or(0, |t| millis(t.duration_since(started))),
        total_ms: 0,
        prompt_tokens: ids.len() as u64,
        reused_tokens: reused,
        generated_tokens: generated.tokens as u64,
    };
    // A model that says there is no answer, and one whose every sentence lacks support, have none.
    if prompt::is_refusal(&said) || reply.answer.is_empty() {
        return Ok(abstain(reply, started));
    }
    reply.timings.total_ms = millis(started.elapsed());
    Ok(reply)
}

/// The answer as it grows.
struct Written<'a> {
    sources: &'a [Source],
    index: &'a Index,
    exchange: &'a Exchange,
    reply: AskReply,
    /// All that the model wrote, withheld sentences included.
    said: String,
    first: Option<Instant>,
    failed: Option<ErrorBody>,
}

impl Written<'_> {
    /// Takes what may be said; false ends the generation.
    fn take(&mut self, parts: Vec<Said>) -> bool {
        for part in parts {
            if let Err(error) = self.say(&part) {
                self.failed = Some(error);
                return false;
            }
        }
        true
    }

    fn say(&mut self, part: &Said) -> Result<(), ErrorBody> {
        let n = self.cite(&part.support)?;
        let text = if self.reply.answer.is_empty() { part.text.trim_start() } else { &part.text };
        let text = format!("{text} [{n}]");
        self.first.get_or_insert_with(Instant::now);
        self.reply.answer.push_str(&text);
        self.exchange.events.emit(Event::Token { text })
    }

    /// Records the citation and gives its number.
    fn cite(&mut self, support: &Support) -> Result<u32, ErrorBody> {
        let source = &self.sources[support.passage];
        let citation = source.citation(support.quote.clone(), self.index)?;
        if !citation.verified {
            return Err(stale());
        }
        let same = |c: &&Citation| c.path == citation.path && c.byte_start == citation.byte_start;
        if let Some(known) = self.reply.citations.iter().find(same) {
            return Ok(known.n);
        }
        let n = self.reply.citations.len() as u32 + 1;
        let citation = Citation { n, ..citation };
        self.reply.citations.push(citation.clone());
        self.exchange.events.emit(Event::Citation(citation))?;
        Ok(n)
    }
}

/// What was found changed before it could be said.
pub fn stale() -> ErrorBody {
    ErrorBody::new(Code::IndexStale, "the documents found have changed since they were indexed")
        .with_hint("they are being read again; ask once more in a moment")
}

impl Source {
    fn hit(&self) -> Option<satchel_ipc::wire::Hit> {
        match &self.place {
            Place::Index(hit) => Some(translate::hit(hit)),
            Place::Given(_) => None,
        }
    }

    /// The citation of some bytes of this source, without its number.
    fn citation(&self, quote: std::ops::Range<usize>, index: &Index) -> Result<Citation, ErrorBody> {
        let text = &self.text[quote.clone()];
        let lines_before = self.text[..quote.start].matches('\n').count() as u32;
        let lines_within = text.matches('\n').count() as u32;
        let (path, page, first_line, first_byte, verified) = match &self.place {
            Place::Given(i) => (format!("passage:{}", i + 1), None, 1, 0, true),
            Place::Index(hit) => {
                let at = hit.byte_start + quote.start;
                let fresh =
                    index.verify_span(&hit.path, hit.in_file, at, text).map_err(|e| translate::index_error(&e))?;
                (hit.document_id.clone(), hit.page, hit.line_start, hit.byte_start, fresh == Freshness::Fresh)
            }
        };
        Ok(Citation {
            n: 0,
            document_id: path.clone(),
            path,
            page,
            line_start: first_line + lines_before,
            line_end: first_line + lines_before + lines_within,
            quote: text.to_owned(),
            byte_start: (first_byte + quote.start) as u64,
            byte_end: (first_byte + quote.end) as u64,
            verified,
        })
    }
}

fn sources(passages: Passages) -> Vec<Source> {
    match passages {
        Passages::Given(texts) => texts
            .into_iter()
            .enumerate()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(i, text)| Source { title: String::new(), text, place: Place::Given(i) })
            .collect(),
        Passages::Found(hits) => hits
            .into_iter()
            .map(|hit| Source {
                title: translate::title(&hit),
                text: hit.text.clone(),
                place: Place::Index(Box::new(hit)),
            })
            .collect(),
    }
}

/// Shows the sentence that shares most with the question, before anything is generated.
fn first_quote(
    question: &str,
    sources: &[Source],
    evidence: &[Evidence],
    index: &Index,
    exchange: &Exchange,
) -> Result<(), ErrorBody> {
    if !exchange.events.is_open() {
        return Ok(());
    }
    let Some(best) = find(question, &Default::default(), evidence) else { return Ok(()) };
    let citation = sources[best.passage].citation(best.quote, index)?;
    if !citation.verified {
        return Ok(());
    }
    exchange.events.emit(Event::Quote(Quote {
        source: best.passage as u32,
        path: citation.path,
        page: citation.page,
        line_start: citation.line_start,
        line_end: citation.line_end,
        text: citation.quote,
    }))
}

fn abstain(reply: AskReply, started: Instant) -> AskReply {
    let timings = Timings { total_ms: millis(started.elapsed()), ..reply.timings };
    AskReply { answer: ABSTAINED.to_owned(), abstained: true, citations: Vec::new(), timings, ..reply }
}

fn cancelled_error(exchange: &Exchange) -> ErrorBody {
    match exchange.cancel.check() {
        Err(error) => error,
        Ok(()) => ErrorBody::new(Code::Cancelled, "the question was given up"),
    }
}

fn run_error(e: &RunError, exchange: &Exchange) -> ErrorBody {
    match e {
        RunError::Cancelled => cancelled_error(exchange),
        RunError::TooLong { needed, limit } => {
            ErrorBody::new(Code::TooLong, format!("the question has {needed} tokens > {limit} that fit the context"))
                .with_hint("ask a shorter question, or start the daemon with a larger --context")
        }
        RunError::NotFinite => ErrorBody::new(Code::ModelInvalid, e.to_string()).with_hint("pull the model again"),
        other => ErrorBody::new(Code::Error, other.to_string()),
    }
}

fn millis(d: Duration) -> u64 {
    d.as_millis().try_into().unwrap_or(u64::MAX)
}
