//! The daemon's parts, how they start and how they stop.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use satchel_engine::pool::Pool;
use satchel_index::{Counts, Index, Indexer, Jail, WorkerCommand};
use satchel_ipc::wire::{DaemonState, Event, IndexProgress};
use satchel_ipc::{Code, ErrorBody, Exchange};

use crate::cli::serve::ServeArgs;
use crate::gate::Gate;
use crate::hub::Hub;
use crate::memory;
use crate::models::{self, Store, catalogue};
use crate::paths::Paths;
use crate::threads::compute_threads;
use crate::translate;
use crate::vectors::Vectors;
use crate::writer::{DEFAULT_CONTEXT, Writer};

/// Troubles kept for `status`: the latest ones.
const MAX_WARNINGS: usize = 8;
/// How often a request that waits for a model looks whether it should give up.
const WAIT_STEP: Duration = Duration::from_millis(100);
/// Rest after a failed download before it is tried again, unless a question asks for it.
const RETRY_AFTER: Duration = Duration::from_secs(60);

mod embedder;

/// A model on its way.
#[derive(Debug)]
enum Slot<T> {
    /// Nobody asked for it yet.
    Absent,
    /// Being fetched or opened.
    Coming,
    /// In use.
    Ready(Arc<T>),
    /// Not to be had; asking again tries again.
    Failed(ErrorBody),
}

impl<T> Slot<T> {
    fn ready(&self) -> Option<Arc<T>> {
        match self {
            Self::Ready(model) => Some(Arc::clone(model)),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Models {
    embedder: Slot<Vectors>,
    /// The embedder before, while the index still has its vectors.
    outgoing: Option<Arc<Vectors>>,
    /// Its name where it could not be opened, or there was no room for two: its vectors were dropped, and not all are made anew.
    lost: Option<String>,
    writer: Slot<Writer>,
    /// A question waits for the writer.
    writer_wanted: bool,
    downloading: bool,
}

/// The daemon.
pub struct App {
    index: Index,
    jail: Arc<Jail>,
    indexer: Mutex<Option<Indexer>>,
    store: Store,
    pool: Arc<Pool>,
    gate: Arc<Gate>,
    hub: Arc<Hub>,
    models: Mutex<Models>,
    changed: Condvar,
    stopping: Arc<AtomicBool>,
    /// Roots whose first scan has not ended.
    new_roots: Mutex<HashSet<PathBuf>>,
    troubles: Arc<Mutex<Vec<String>>>,
    /// Since when there has been work.
    busy_since: Arc<Mutex<Option<Instant>>>,
    args: ServeArgs,
    loader: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// Opens the index, starts following the folders, and begins to fetch and open the embedder. Returns at once.
    ///
    /// # Errors
    /// The index cannot be opened, a folder of the command line cannot be watched, a named model does not exist.
    pub fn start(paths: &Paths, args: &ServeArgs) -> Result<Arc<Self>, ErrorBody> {
        let store = Store::new(&paths.models);
        if let Some(model) = &args.model {
            // A name of the catalogue may still have to be fetched; a path must be there.
            if catalogue::find(model).is_none() {
                store.resolve(model)?;
            }
        }
        let index = Index::open(&paths.index).map_err(|e| translate::index_error(&e))?;
        let hub = Arc::new(Hub::default());
        let troubles = Arc::new(Mutex::new(Vec::new()));
        let busy_since = Arc::new(Mutex::new(Some(Instant::now())));
        let tell = teller(&index, Arc::clone(&hub), Arc::clone(&troubles), Arc::clone(&busy_since));
        let jail = jail(paths, args.budget)?;
        let indexer =
            Indexer::start(index.clone(), Arc::clone(&jail), None, tell).map_err(|e| translate::index_error(&e))?;
        let threads = args.threads.map_or_else(compute_threads, usize::from);
        let app = Arc::new(Self {
            index,
            jail,
            indexer: Mutex::new(Some(indexer)),
            store,
            pool: Arc::new(Pool::new(threads)),
            gate: Arc::new(Gate::default()),
            hub,
            models: Mutex::new(Models {
                embedder: Slot::Coming,
                outgoing: None,
                lost: None,
                writer: Slot::Absent,
                writer_wanted: false,
                downloading: false,
            }),
            changed: Condvar::new(),
            stopping: Arc::new(AtomicBool::new(false)),
            new_roots: Mutex::default(),
            troubles,
            busy_since,
            args: args.clone(),
            loader: Mutex::new(None),
        });
        for folder in &args.folders {
            let folder = std::path::absolute(folder)
                .map_err(|e| ErrorBody::bad_request(format!("the folder {folder:?} cannot be used: {e}")))?;
            app.watch(&folder)?;
        }
        let loader = Arc::clone(&app);
        let thread = std::thread::Builder::new()
            .name("models".into())
            .spawn(move || loader.load_models())
            .map_err(|e| ErrorBody::new(Code::Error, format!("cannot start a thread: {e}")))?;
        *lock(&app.loader) = Some(thread);
        Ok(app)
    }

    /// Ends everything that `start` began; the index is closed when this returns.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(vectors) = self.vectors_if_ready() {
            vectors.stop();
        }
        self.changed.notify_all();
        if let Some(indexer) = lock(&self.indexer).take() {
            indexer.shutdown();
        }
        if let Some(thread) = lock(&self.loader).take() {
            // A panic there was told by its own message; nothing is left to undo.
            let _ = thread.join();
        }
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// What this process and the one that reads files take of memory. The peak is the sum of both peaks, so at most too high.
    pub fn memory(&self) -> memory::Usage {
        let (own, reader) = (memory::usage(), self.jail.memory());
        memory::Usage { resident: own.resident + reader.resident, peak: own.peak + reader.peak }
    }

    /// The followers of events.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Priority of answers over ingest.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The memory promise, if one was made.
    pub fn budget(&self) -> Option<u64> {
        self.args.budget
    }

    /// Context of an answer in tokens.
    pub fn context(&self) -> usize {
        self.args.context.map_or(DEFAULT_CONTEXT, |n| n as usize)
    }

    /// Watches a folder.
    pub fn watch(&self, folder: &Path) -> Result<(), ErrorBody> {
        let known = self.index.roots().map_err(|e| translate::index_error(&e))?;
        let root = self.index.add_root(folder).map_err(|e| translate::index_error(&e))?;
        if !known.iter().any(|r| r.path == root) {
            lock(&self.new_roots).insert(root);
            self.rescan();
        }
        // With something to answer from, the model that answers is fetched too.
        self.changed.notify_all();
        Ok(())
    }

    /// Looks at all folders again.
    pub fn rescan(&self) {
        if let Some(indexer) = &*lock(&self.indexer) {
            indexer.rescan();
        }
    }

    /// Whether everything known is indexed, the embedder included.
    pub fn is_idle(&self) -> bool {
        if matches!(lock(&self.models).embedder, Slot::Coming | Slot::Absent) {
            return false;
        }
        let idle = lock(&self.indexer).as_ref().is_some_and(|i| i.wait_idle(Duration::ZERO));
        if idle {
            lock(&self.new_roots).clear();
        }
        idle
    }

    /// Whether the first scan of a root has not ended.
    pub fn is_new_root(&self, path: &Path) -> bool {
        lock(&self.new_roots).contains(path) || matches!(lock(&self.models).embedder, Slot::Coming)
    }

    /// What the daemon is doing.
    pub fn state(&self, counts: &Counts) -> DaemonState {
        if self.stopping.load(Ordering::Relaxed) {
            return DaemonState::Stopping;
        }
        let models = lock(&self.models);
        if models.downloading {
            return DaemonState::Downloading;
        }
        if matches!(models.embedder, Slot::Coming) || (models.writer_wanted && matches!(models.writer, Slot::Coming)) {
            return DaemonState::Loading;
        }
        if counts.pending > 0 { DaemonState::Indexing } else { DaemonState::Ready }
    }

    /// How long there has been unfinished work, in milliseconds; 0 when there is none.
    pub fn lag_ms(&self) -> u64 {
        lock(&self.busy_since).map_or(0, |since| since.elapsed().as_millis() as u64)
    }

    /// What a person should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = lock(&self.troubles).clone();
        all.extend(self.jail.passwords_trouble());
        let models = lock(&self.models);
        if let Slot::Failed(e) = &models.embedder {
            all.push(format!("search by meaning is off: {}", e.message));
        }
        if let (Some(old), Slot::Ready(new)) = (&models.outgoing, &models.embedder) {
            let (old, new) = (old.name(), new.name());
            all.push(format!("search by meaning goes by {old} until everything is embedded with {new}"));
        }
        if let Some(old) = &models.lost {
            all.push(format!(
                "search by meaning finds only what is embedded anew: the model before, {old}, is gone or too large"
            ));
        }
        if let Slot::Failed(e) = &models.writer {
            all.push(format!("answers are off: {}", e.message));
        }
        all
    }

    /// The embedder, once it is there.
    pub fn vectors_if_ready(&self) -> Option<Arc<Vectors>> {
        lock(&self.models).embedder.ready()
    }

    /// The writer, once it is there.
    pub fn writer_if_loaded(&self) -> Option<Arc<Writer>> {
        lock(&self.models).writer.ready()
    }

    /// The model that writes, fetched and opened if need be.
    ///
    /// # Errors
    /// `model_missing`, `model_invalid`, `over_budget`, or the request was cancelled meanwhile.
    pub fn writer(&self, exchange: &Exchange) -> Result<Arc<Writer>, ErrorBody> {
        let mut models = lock(&self.models);
        if let Slot::Failed(_) = models.writer {
            models.writer = Slot::Absent;
        }
        models.writer_wanted = true;
        self.changed.notify_all();
        loop {
            match &models.writer {
                Slot::Ready(writer) => return Ok(Arc::clone(writer)),
                Slot::Failed(error) => return Err(error.clone()),
                Slot::Absent | Slot::Coming => {}
            }
            exchange.cancel.check()?;
            if self.stopping.load(Ordering::Relaxed) {
                return Err(ErrorBody::new(Code::Cancelled, "the daemon is stopping"));
            }
            models = match self.changed.wait_timeout(models, WAIT_STEP) {
                Ok((models, _)) => models,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// The loader's life: the embedder first, since indexing waits for it; then the writer's file, once there is a
    /// folder to answer from; the writer itself only when a question comes.
    fn load_models(&self) {
        let mut embedder_due = Some(Instant::now());
        let mut fetch_due = Some(Instant::now());
        while !self.stopping.load(Ordering::Relaxed) {
            if embedder_due.is_some_and(|due| due <= Instant::now()) {
                embedder_due = self.bring_embedder().is_err().then(|| Instant::now() + RETRY_AFTER);
                self.tell_state();
            }
            self.retire_embedder();
            if self.writer_is_wanted() {
                self.bring_writer();
                self.tell_state();
                continue;
            }
            let has_roots = self.index.roots().is_ok_and(|r| !r.is_empty());
            if has_roots && fetch_due.is_some_and(|due| due <= Instant::now()) {
                fetch_due = self.fetch_writer().is_err().then(|| Instant::now() + RETRY_AFTER);
                self.tell_state();
            }
            let models = lock(&self.models);
            if !(models.writer_wanted && matches!(models.writer, Slot::Absent)) {
                // Woken by questions, new folders and the end; the timeout serves retries.
                drop(self.changed.wait_timeout(models, Duration::from_secs(1)));
            }
        }
    }

    fn writer_is_wanted(&self) -> bool {
        let mut models = lock(&self.models);
        let wanted = models.writer_wanted && matches!(models.writer, Slot::Absent);
        if wanted {
            models.writer = Slot::Coming;
        }
        wanted
    }

    fn writer_name(&self) -> Result<String, ErrorBody> {
        match &self.args.model {
            Some(name) => Ok(name.clone()),
            None => Ok(self.store.llm_to_use(models::available_memory())?.name),
        }
    }

    fn fetch_writer(&self) -> Result<(), ErrorBody> {
        self.fetch(&self.writer_name()?).map(|_| ())
    }

    fn bring_writer(&self) {
        let result = self.writer_name().and_then(|name| {
            let path = self.fetch(&name)?;
            self.admit(&path)?;
            Writer::open(&path, &name, Arc::clone(&self.pool), self.context(), self.args.kv_type)
                .map_err(|e| invalid(&name, &e))
        });
        lock(&self.models).writer = match result {
            Ok(writer) => Slot::Ready(Arc::new(writer)),
            Err(error) => Slot::Failed(error),
        };
        self.changed.notify_all();
    }

    /// Refuses a model whose weights, KV cache and buffers would break the memory promise.
    fn admit(&self, path: &Path) -> Result<(), ErrorBody> {
        let Some(budget) = self.args.budget else { return Ok(()) };
        let gguf = satchel_engine::gguf::Gguf::open(path).map_err(|e| invalid(&path.display().to_string(), &e))?;
        let config = satchel_engine::Config::from_gguf(&gguf).map_err(|e| invalid(&path.display().to_string(), &e))?;
        let weights: u64 = gguf.tensors().iter().map(|t| t.bytes).sum();
        let kv = (config.kv_bytes_per_token(self.args.kv_type) * self.context().min(config.context)) as u64;
        let scratch = config.scratch_bytes(satchel_engine::limits::PREFILL_BATCH) as u64;
        let now = memory::usage().resident;
        // Whether or not it runs now: a large file may come at any time.
        let reader = self.jail.memory_max();
        let needs = now + reader + weights + kv + scratch;
        if needs <= budget {
            return Ok(());
        }
        let mib = |n: u64| n.div_ceil(1 << 20);
        let what = format!(
            "the model needs {} MiB (in use {} + reading files {} + weights {} + KV cache {} + buffers {}), the budget is {} MiB",
            mib(needs),
            mib(now),
            mib(reader),
            mib(weights),
            mib(kv),
            mib(scratch),
            mib(budget)
        );
        Err(ErrorBody::new(Code::OverBudget, what).with_hint("use a smaller model or --context, or a larger --budget"))
    }

    /// The file of a model, downloaded if it is not here.
    fn fetch(&self, name: &str) -> Result<PathBuf, ErrorBody> {
        if catalogue::find(name).is_none() || self.store.is_installed(name) {
            return Ok(self.store.resolve(name)?);
        }
        lock(&self.models).downloading = true;
        self.tell_state();
        let mut told = Instant::now() - Duration::from_secs(1);
        let places = models::Places::from_env(|name| std::env::var_os(name));
        let pulled = models::pull(&self.store, name, &places, &mut |progress| {
            if told.elapsed() >= Duration::from_millis(200) {
                told = Instant::now();
                self.hub.tell(&Event::Download(models::backend::wire(progress)));
            }
            !self.stopping.load(Ordering::Relaxed)
        });
        lock(&self.models).downloading = false;
        pulled?;
        Ok(self.store.resolve(name)?)
    }

    fn tell_state(&self) {
        if let Ok(counts) = self.index.counts() {
            self.hub.tell(&Event::State { state: self.state(&counts) });
        }
    }
}

/// Where files are read. Of a memory budget, the process that reads may have a quarter.
pub fn jail(paths: &Paths, budget: Option<u64>) -> Result<Arc<Jail>, ErrorBody> {
    let command = WorkerCommand::this_program()
        .map_err(|e| ErrorBody::new(Code::Error, format!("the program cannot be found: {e}")))?;
    Ok(Arc::new(Jail::new(command, budget.map_or(u64::MAX, |b| b / 4)).with_passwords(paths.passwords.clone())))
}

/// Tells a model that was imported without a record apart by size and time.
fn file_mark(path: &Path) -> String {
    let meta = path.metadata().ok();
    let time = meta.as_ref().and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{:x}-{:x}", meta.map_or(0, |m| m.len()), time.map_or(0, |t| t.as_millis()))
}

/// An error and its causes in one sentence.
fn with_causes(e: &dyn std::error::Error) -> String {
    let mut message = e.to_string();
    let mut source = e.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !message.contains(&cause_text) {
            message = format!("{message}: {cause_text}");
        }
        source = cause.source();
    }
    message
}

/// A model that cannot be opened.
pub fn invalid(name: &str, e: &satchel_engine::error::LoadError) -> ErrorBody {
    ErrorBody::new(Code::ModelInvalid, format!("the model {name} cannot be used: {}", with_causes(e)))
        .with_hint(format!("fetch it anew: satchel model pull {name}"))
}

/// Translates the indexer's events for the followers and remembers what `status` tells.
fn teller(
    index: &Index,
    hub: Arc<Hub>,
    troubles: Arc<Mutex<Vec<String>>>,
    busy_since: Arc<Mutex<Option<Instant>>>,
) -> satchel_index::OnEvent {
    use satchel_index::Event as From;
    let _ = index;
    Box::new(move |event| match event {
        From::Progress(p) => {
            lock(&busy_since).get_or_insert_with(Instant::now);
            hub.tell(&Event::Progress(progress(&p)));
        }
        From::File { path, state, reason } => hub.tell(&Event::File {
            file: satchel_ipc::wire::FileEntry {
                path: satchel_index::display_path(&path),
                state: translate::state(state),
                reason,
                since: 0,
                kind: String::new(),
                bytes: 0,
                passages: 0,
            },
        }),
        From::Trouble { message } => {
            let mut all = lock(&troubles);
            if !all.contains(&message) {
                if all.len() == MAX_WARNINGS {
                    all.remove(0);
                }
                all.push(message);
            }
        }
        From::Idle => *lock(&busy_since) = None,
        From::Gone { .. } | From::Root { .. } => {}
    })
}

/// Rates are those at which the rest would be done in the remaining time.
fn progress(p: &satchel_index::Progress) -> IndexProgress {
    let per_second = |left: u64| p.remaining.map_or(0.0, |time| left as f64 / time.as_secs_f64().max(0.001));
    IndexProgress {
        files_done: p.files_done,
        files_total: p.files_total,
        bytes_done: p.bytes_done,
        bytes_total: p.bytes_total,
        current: p.current.as_deref().map(satchel_index::display_path),
        files_per_s: per_second(p.files_total.saturating_sub(p.files_done)),
        bytes_per_s: per_second(p.bytes_total.saturating_sub(p.bytes_done)),
        remaining_ms: p.remaining.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}
