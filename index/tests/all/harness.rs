//! A folder, an index over it, and an embedder that needs no model.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use satchel_index::{
    EmbedError, Embedder, Event, FileInfo, FilesQuery, Index, Indexer, Jail, Mode, Query, State, WorkerCommand,
};

/// Longest wait for anything in these tests; a loaded machine needs some of it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Vectors of words by hash: texts that share words are near.
pub struct Words {
    pub name: &'static str,
    pub dim: usize,
    /// Words that a passage may have.
    pub window: usize,
    /// How long a batch takes.
    pub delay: Duration,
    /// Texts embedded so far.
    pub embedded: AtomicUsize,
}

impl Words {
    pub fn new() -> Arc<Self> {
        Self::named("words", 64)
    }

    pub fn named(name: &'static str, dim: usize) -> Arc<Self> {
        Self::with_window(name, dim, 256)
    }

    pub fn with_window(name: &'static str, dim: usize, window: usize) -> Arc<Self> {
        Arc::new(Self { name, dim, window, delay: Duration::ZERO, embedded: AtomicUsize::new(0) })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.01; self.dim];
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()) {
            let hash =
                word.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3));
            vector[(hash >> 20) as usize % self.dim] += 1.0;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / length).collect()
    }
}

impl Embedder for Words {
    fn id(&self) -> String {
        self.name.to_owned()
    }

    fn dim(&self) -> usize {
        self.dim
    }

    fn max_tokens(&self) -> usize {
        self.window
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        std::thread::sleep(self.delay);
        self.embedded.fetch_add(texts.len(), Ordering::Relaxed);
        if texts.iter().any(|t| t.contains("unembeddable")) {
            return Err(EmbedError::Failed { message: "this text is refused".into(), source: None });
        }
        Ok(texts.iter().map(|t| self.vector(t)).collect())
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(self.vector(text))
    }
}

/// Where the files of a test are read: in a real worker.
pub fn jail() -> Arc<Jail> {
    Arc::new(Jail::new(worker("read"), u64::MAX))
}

/// A worker that does what the word says; see `bin/worker.rs`.
pub fn worker(what: &str) -> WorkerCommand {
    WorkerCommand { program: env!("CARGO_BIN_EXE_satchel-index-test-worker").into(), args: vec![what.into()] }
}

pub struct Bench {
    pub dir: tempfile::TempDir,
    pub index: Index,
    pub jail: Arc<Jail>,
    pub embedder: Arc<Words>,
    pub events: Arc<Mutex<Vec<Event>>>,
    pub indexer: Option<Indexer>,
}

impl Bench {
    /// A root `files` with nothing in it, and an index that is not running yet.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let index = Index::open(&dir.path().join("index")).unwrap();
        index.add_root(&dir.path().join("files")).unwrap();
        Self { dir, index, jail: jail(), embedder: Words::new(), events: Arc::default(), indexer: None }
    }

    pub fn start(&mut self) {
        // One that was stopped stays so.
        self.start_with(jail());
    }

    pub fn start_with(&mut self, jail: Arc<Jail>) {
        self.jail = jail;
        let events = Arc::clone(&self.events);
        let tell = move |event| events.lock().unwrap().push(event);
        let embedder: Arc<dyn Embedder> = self.embedder.clone();
        self.indexer =
            Some(Indexer::start(self.index.clone(), Arc::clone(&self.jail), Some(embedder), Box::new(tell)).unwrap());
        self.settle();
    }

    pub fn stop(&mut self) {
        self.indexer.take().unwrap().shutdown();
    }

    /// Waits until the indexer has nothing to do.
    pub fn settle(&self) {
        assert!(self.indexer.as_ref().unwrap().wait_idle(PATIENCE), "not idle: {:?}", self.index.counts());
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("files").canonicalize().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Names of the files that hold the words, best first.
    pub fn find(&self, words: &str) -> Vec<String> {
        self.find_by(words, Mode::Lexical)
    }

    pub fn find_by(&self, words: &str, mode: Mode) -> Vec<String> {
        let query = Query { mode, ..Query::new(words, 50) };
        let result = self.index.search(&query, Some(self.embedder.as_ref())).unwrap();
        let mut names: Vec<String> = Vec::new();
        for path in result.hits.into_iter().flat_map(|hit| std::iter::once(hit.path).chain(hit.also)) {
            let name = path.strip_prefix(self.root()).unwrap().display().to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    pub fn file(&self, name: &str) -> Option<FileInfo> {
        let query = FilesQuery { path: Some(self.path(name)), ..FilesQuery::default() };
        self.index.files(&query).unwrap().into_iter().find(|f| f.path == self.path(name))
    }

    pub fn state(&self, name: &str) -> Option<State> {
        self.file(name).map(|f| f.state)
    }

    /// Waits until the condition holds.
    pub fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(self) {
            if Instant::now() >= deadline {
                let mut files = self.index.files(&FilesQuery::default()).unwrap();
                files.truncate(20);
                panic!("waited in vain until {what}; {:?}; {files:?}", self.index.counts());
            }
            std::thread::yield_now();
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

pub fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut stack = vec![folder.to_owned()];
    while let Some(folder) = stack.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() { stack.push(entry.path()) } else { out.push(entry.path()) }
        }
    }
    out
}

/// The same seed gives the same run on every machine (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}
