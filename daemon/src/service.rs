//! The daemon behind the socket: one function per request.

use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use satchel_index::{FilesQuery, Filter, Freshness, Hit, Query, RootState};
use satchel_ipc::wire::{
    AskRequest, EmbedderStatus, Event, FilesReply, FilesRequest, ForgetReply, ForgetRequest, IndexStatus, KernelStatus,
    MemoryStatus, ModelStatus, RootEntry, RootsReply, SearchReply, SearchRequest, StatusReply,
};
use satchel_ipc::{Code, ErrorBody, Exchange, Reply, Request, Service, wire};

use crate::answer::{self, DEFAULT_PASSAGES, MAX_PASSAGES, MAX_QUESTION_BYTES, Passages};
use crate::app::App;
use crate::query;
use crate::translate;

/// Passages that a search returns unless asked otherwise, and at most.
const DEFAULT_HITS: u32 = 10;
const MAX_HITS: u32 = 200;
/// Longest search query in bytes.
const MAX_QUERY_BYTES: usize = 16 << 10;
/// Likelihood that a passage is about the question, below which a question is not even put to the model. Of questions that have
/// an answer 0.3 % are below, of those about something else 81 % (docs/retrieval.md); the others are left to the support check.
const ASKED_RELEVANCE_MIN: f32 = 0.05;
/// Texts that an answer may be asked from directly, and their bytes together.
const MAX_GIVEN: usize = 100;
/// How often a follower of events looks whether it should end.
const FOLLOW_STEP: Duration = Duration::from_millis(200);

impl Service for App {
    fn handle(&self, request: Request, exchange: &Exchange) -> Result<Reply, ErrorBody> {
        match request {
            Request::Status => self.status().map(|s| Reply::Status(Box::new(s))),
            Request::Search(request) => self.search(&request).map(Reply::Search),
            Request::Ask(request) => self.ask(&request, exchange).map(Reply::Ask),
            Request::Roots => self.roots().map(Reply::Roots),
            Request::AddRoot(request) => self.add_root(&request.path).map(Reply::Roots),
            Request::RemoveRoot(request) => self.remove_root(&request.path).map(Reply::Roots),
            Request::Files(request) => self.files(&request).map(Reply::Files),
            Request::Forget(request) => self.forget(&request).map(Reply::Forget),
            Request::Events => self.follow(exchange).map(|()| Reply::Closed {}),
        }
    }
}

impl App {
    fn status(&self) -> Result<StatusReply, ErrorBody> {
        let counts = self.index().counts().map_err(|e| translate::index_error(&e))?;
        let writer = self.writer_if_loaded();
        let usage = self.memory();
        let kv = writer.as_ref().and_then(|w| w.kv());
        Ok(StatusReply {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: self.state(&counts),
            model: writer.map(|w| ModelStatus {
                name: w.name().to_owned(),
                arch: w.llm().gguf().architecture().unwrap_or("unknown").to_owned(),
                quant: prevailing_type(w.llm().gguf()),
                context: kv.map_or(self.context() as u64, |(_, n)| n as u64),
            }),
            embedder: self
                .vectors_if_ready()
                .map(|v| EmbedderStatus { name: v.name().to_owned(), dim: satchel_index::Embedder::dim(&*v) as u64 }),
            index: IndexStatus {
                documents: counts.indexed,
                passages: counts.passages,
                pending: counts.pending,
                failed: counts.failed,
                excluded: counts.excluded,
                locked: counts.locked,
                needs_ocr: counts.needs_ocr,
                empty: counts.empty,
                generation: counts.generation,
                bytes: counts.bytes,
            },
            memory: MemoryStatus {
                budget_bytes: self.budget(),
                resident_bytes: usage.resident,
                peak_resident_bytes: usage.peak,
                kv_bytes: kv.map_or(0, |(bytes, _)| bytes as u64),
            },
            kernels: KernelStatus {
                isa: satchel_engine::kernels::Kernels::detect().name().to_owned(),
                ..Default::default()
            },
            index_lag_ms: self.lag_ms(),
            warnings: self.warnings(),
        })
    }

    fn search(&self, request: &SearchRequest) -> Result<SearchReply, ErrorBody> {
        let started = Instant::now();
        check_length("query", &request.query, MAX_QUERY_BYTES)?;
        let k = bounded("k", request.k, DEFAULT_HITS, MAX_HITS)?;
        let (text, narrower) = query::narrow(&request.query)?;
        let filters = vec![translate::filter(request.filter.as_ref())?, narrower];
        let query = Query { text, k, mode: translate::mode(request.mode), filters };
        let found = self.find(&query)?;
        Ok(SearchReply {
            hits: found.hits.iter().map(translate::hit).collect(),
            took_ms: started.elapsed().as_millis() as u64,
            generation: found.generation,
        })
    }

    fn find(&self, query: &Query) -> Result<satchel_index::SearchResult, ErrorBody> {
        let vectors = self.vectors_for_search();
        let embedder = vectors.as_deref().map(|v| v as &dyn satchel_index::Embedder);
        self.index().search(query, embedder).map_err(|e| translate::index_error(&e))
    }

    fn ask(&self, request: &AskRequest, exchange: &Exchange) -> Result<wire::AskReply, ErrorBody> {
        let started = Instant::now();
        check_length("question", &request.question, MAX_QUESTION_BYTES)?;
        let k = bounded("k", request.k, DEFAULT_PASSAGES, MAX_PASSAGES)?;
        let max_tokens = bounded("max_tokens", request.max_tokens, answer::default_tokens(self.context()), 8192)?;
        if max_tokens >= self.context() {
            let what =
                format!("max_tokens {max_tokens} leaves no room for a prompt in a context of {}", self.context());
            return Err(ErrorBody::new(Code::TooLong, what).with_hint("ask for a shorter answer"));
        }
        if let Some(texts) = &request.passages {
            if texts.len() > MAX_GIVEN {
                let what = format!("{} passages > {MAX_GIVEN}", texts.len());
                return Err(ErrorBody::new(Code::TooLong, what).with_hint("give the ones that matter"));
            }
            let writer = self.writer(exchange)?;
            let _answering = self.gate().answer();
            let given = Passages::Given(texts.clone());
            return answer::answer(request, given, max_tokens, self.index(), &writer, exchange, started);
        }
        let (question, narrower) = query::narrow(&request.question)?;
        let filters = [translate::filter(request.filter.as_ref())?, narrower];
        let found = Passages::Found(self.retrieve(&question, &filters, k)?);
        let request = &AskRequest { question, ..request.clone() };
        let writer = self.writer(exchange)?;
        let _answering = self.gate().answer();
        let reply = answer::answer(request, found, max_tokens, self.index(), &writer, exchange, started)?;
        if reply.abstained {
            self.abstained(&filters)?;
        }
        Ok(reply)
    }

    /// The passages to read: those close enough to the question whose files still say so.
    fn retrieve(&self, question: &str, filters: &[Filter], k: usize) -> Result<Vec<Hit>, ErrorBody> {
        let query = Query { filters: filters.to_vec(), ..Query::new(question, k) };
        let found = self.find(&query)?.hits;
        let mut hits = Vec::with_capacity(found.len());
        let mut stale = 0;
        for hit in found {
            match self.index().verify(&hit).map_err(|e| translate::index_error(&e))? {
                Freshness::Fresh => hits.push(hit),
                Freshness::Changed | Freshness::Gone => stale += 1,
            }
        }
        if stale > 0 {
            self.rescan();
        }
        if hits.is_empty() && stale > 0 {
            return Err(answer::stale());
        }
        if !hits.iter().any(|hit| hit.relevance.is_none_or(|r| r >= ASKED_RELEVANCE_MIN)) {
            hits.clear();
        }
        Ok(hits)
    }

    /// An abstention while files still wait is no statement about the documents.
    fn abstained(&self, filters: &[Filter]) -> Result<(), ErrorBody> {
        let not_yet = |what: String| Err(ErrorBody::new(Code::NotIndexedYet, what));
        let roots = self.index().roots().map_err(|e| translate::index_error(&e))?;
        if roots.is_empty() {
            return not_yet("no folder is watched yet".to_owned())
                .map_err(|e| e.with_hint("add one: satchel add FOLDER"));
        }
        // The narrowest that names folders: the question's own conditions come last.
        let folders = filters.iter().map(|f| f.path_prefix.as_slice()).rfind(|f| !f.is_empty()).unwrap_or_default();
        let mut pending = 0;
        if folders.is_empty() {
            pending = self.index().counts().map_err(|e| translate::index_error(&e))?.pending;
        }
        for folder in folders {
            if !roots.iter().any(|r| folder.starts_with(&r.path)) {
                return not_yet(format!("{} is in no watched folder", folder.display()))
                    .map_err(|e| e.with_hint("add it: satchel add FOLDER"));
            }
            pending += self.pending_below(folder)?;
        }
        if pending == 0 {
            return Ok(());
        }
        not_yet(format!("the indexed documents have no answer, but {pending} files are not indexed yet"))
            .map_err(|e| e.with_hint("ask again when `satchel status` shows none pending"))
    }

    fn roots(&self) -> Result<RootsReply, ErrorBody> {
        let roots = self.index().roots().map_err(|e| translate::index_error(&e))?;
        let counts = self.index().counts().map_err(|e| translate::index_error(&e))?;
        let idle = self.is_idle();
        let only = roots.len() == 1;
        let mut entries = Vec::with_capacity(roots.len());
        for root in roots {
            let pending = match counts.pending {
                0 => 0,
                n if only => n,
                _ => self.pending_below(&root.path)?,
            };
            let files = if only { counts.documents } else { self.files_below(&root.path)? };
            let state = match root.state {
                RootState::Missing | RootState::Unreadable => wire::RootState::Unavailable,
                RootState::New => wire::RootState::Scanning,
                RootState::Present if pending == 0 && (idle || !self.is_new_root(&root.path)) => wire::RootState::Ready,
                RootState::Present if pending == 0 => wire::RootState::Scanning,
                RootState::Present => wire::RootState::Indexing,
            };
            let reason = match root.state {
                RootState::Missing => Some("it is not there (unmounted?); what was indexed of it is kept".to_owned()),
                RootState::Unreadable => Some("it cannot be read; what was indexed of it is kept".to_owned()),
                _ => None,
            };
            let path = satchel_index::display_path(&root.path);
            entries.push(RootEntry { path, state, files, pending, reason });
        }
        Ok(RootsReply { roots: entries })
    }

    fn add_root(&self, path: &str) -> Result<RootsReply, ErrorBody> {
        self.watch(&translate::absolute(path)?)?;
        self.roots()
    }

    fn remove_root(&self, path: &str) -> Result<RootsReply, ErrorBody> {
        let path = translate::absolute(path)?;
        self.index().remove_root(&path).map_err(|e| translate::index_error(&e))?;
        self.rescan();
        self.roots()
    }

    fn files(&self, request: &FilesRequest) -> Result<FilesReply, ErrorBody> {
        let path = |p: &Option<String>| p.as_deref().map(translate::absolute).transpose();
        let query = FilesQuery {
            state: request.state.map(translate::state_from),
            path: path(&request.path)?,
            after: path(&request.after)?,
            limit: request.limit.unwrap_or(0) as usize,
        };
        let files = self.index().files(&query).map_err(|e| translate::index_error(&e))?;
        // A short page may be the last one or not: asking for one more file tells.
        let next = match files.last() {
            Some(last) => {
                let one = FilesQuery { after: Some(last.path.clone()), limit: 1, ..query };
                let more = self.index().files(&one).map_err(|e| translate::index_error(&e))?;
                (!more.is_empty()).then(|| satchel_index::display_path(&last.path))
            }
            None => None,
        };
        Ok(FilesReply { files: files.iter().map(translate::file).collect(), next })
    }

    fn forget(&self, request: &ForgetRequest) -> Result<ForgetReply, ErrorBody> {
        let path = translate::absolute(&request.path)?;
        let done = self.index().forget(&path).map_err(|e| translate::index_error(&e))?;
        Ok(ForgetReply {
            path: request.path.clone(),
            documents: done.documents,
            passages: done.passages,
            // `forget` looks for every trace afterwards and fails if it finds one.
            remaining: 0,
        })
    }

    /// Tells events until the peer leaves or the daemon stops, which is told as an error.
    fn follow(&self, exchange: &Exchange) -> Result<(), ErrorBody> {
        let events = self.hub().follow();
        let state = self.index().counts().map(|c| self.state(&c));
        let mut first = state.ok().map(|state| Event::State { state });
        while !exchange.cancel.is_cancelled() {
            let event = match first.take() {
                Some(event) => Ok(event),
                None => events.recv_timeout(FOLLOW_STEP),
            };
            match event {
                Ok(event) => exchange.events.emit(event)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        exchange.cancel.check()
    }

    fn pending_below(&self, path: &std::path::Path) -> Result<u64, ErrorBody> {
        self.count_below(path, Some(satchel_index::State::Pending))
    }

    fn files_below(&self, path: &std::path::Path) -> Result<u64, ErrorBody> {
        self.count_below(path, None)
    }

    fn count_below(&self, path: &std::path::Path, state: Option<satchel_index::State>) -> Result<u64, ErrorBody> {
        let mut query = FilesQuery { state, path: Some(path.to_owned()), ..FilesQuery::default() };
        let mut n = 0;
        loop {
            let page = self.index().files(&query).map_err(|e| translate::index_error(&e))?;
            let Some(last) = page.last() else { return Ok(n) };
            n += page.len() as u64;
            query.after = Some(last.path.clone());
        }
    }
}

fn check_length(what: &str, text: &str, limit: usize) -> Result<(), ErrorBody> {
    if text.trim().is_empty() {
        return Err(ErrorBody::bad_request(format!("the {what} is empty")).with_hint("put it into words"));
    }
    if text.len() > limit {
        let what = format!("the {what} has {} bytes > {limit}", text.len());
        return Err(ErrorBody::new(Code::TooLong, what).with_hint("use fewer words; a long text belongs in a document"));
    }
    Ok(())
}

fn bounded(what: &str, value: Option<u32>, default: u32, most: u32) -> Result<usize, ErrorBody> {
    match value.unwrap_or(default) {
        n @ 1.. if n <= most => Ok(n as usize),
        n => Err(ErrorBody::bad_request(format!("{what} is {n}, outside 1..={most}"))
            .with_hint(format!("leave it out for {default}"))),
    }
}

/// The type that holds most bytes of a file, such as `Q4_K`.
pub fn prevailing_type(gguf: &satchel_engine::gguf::Gguf) -> String {
    let mut bytes: Vec<(satchel_engine::quant::TensorType, u64)> = Vec::new();
    for t in gguf.tensors() {
        match bytes.iter_mut().find(|(ty, _)| *ty == t.ty) {
            Some((_, n)) => *n += t.bytes,
            None => bytes.push((t.ty, t.bytes)),
        }
    }
    bytes.iter().max_by_key(|(_, n)| *n).map_or_else(|| "none".to_owned(), |(ty, _)| ty.to_string())
}
