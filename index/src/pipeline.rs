//! The threads that keep the index in step with the folders.
//!
//! `satchel-files` waits for changes, plans, and writes texts: a file can be found by its words at once. `satchel-vectors`
//! follows behind and embeds what was written, the latest change first. Both take their work from the store, so that a
//! crash loses no more than the file and the batch in work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::embedder::Embedder;
use crate::embedding::{Embedding, Step};
use crate::error::Error;
use crate::extract;
use crate::index::Index;
use crate::ingest::{Cutting, Ingested, ingest, mark_failed, remove};
use crate::jail::Jail;
use crate::limits::{PENDING_BATCH, RESCAN_EVERY, WORKER_IDLE_MAX};
use crate::progress::{Event, OnEvent, Tracker};
use crate::scan::{Plan, Work, plan_path, plan_root};
use crate::store::{documents, queue, roots, state};
use crate::types::{Kind, RootState, State};
use crate::watch::{Changed, Inbox, Wake, Watch};

/// Time between two scans while a root is missing: a mount gives no event.
const MISSING_EVERY: Duration = Duration::from_secs(30);

/// Time between two looks at the file of passwords while there are locked files.
const PASSWORDS_EVERY: Duration = Duration::from_secs(5);

/// Time until what failed (a full disk, most often) is tried again: soon after there is room, yet without spinning.
const TROUBLE_EVERY: Duration = Duration::from_secs(10);

/// How often, and after which pause, tidying is tried again when searches held it up. What is left after that waits for the
/// next quiet moment.
const TIDY_TRIES: usize = 20;
const TIDY_PAUSE: Duration = Duration::from_millis(50);

/// Keeps an index in step with its folders for as long as it lives.
pub struct Indexer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

pub(crate) struct Shared {
    pub index: Index,
    pub jail: Arc<Jail>,
    pub inbox: Arc<Inbox>,
    pub tracker: Tracker,
    lists: Signal,
    embedder: RwLock<Option<Arc<dyn Embedder>>>,
}

impl Shared {
    pub(crate) fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        self.embedder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Indexer {
    /// Starts the threads; files are parsed in `jail`. The first thing they do is a scan of all roots. Without an embedder,
    /// texts are indexed by their words alone until [`Indexer::set_embedder`] brings one. Events come on the indexer's
    /// threads and must not block.
    ///
    /// # Errors
    /// A thread cannot be started, or the embedder does not fit.
    pub fn start(
        index: Index,
        jail: Arc<Jail>,
        embedder: Option<Arc<dyn Embedder>>,
        on_event: OnEvent,
    ) -> Result<Self, Error> {
        if let Some(embedder) = &embedder {
            index.use_embedder(embedder.as_ref(), false)?;
        }
        let inbox = Arc::new(Inbox::default());
        let tracker = Tracker::new(on_event);
        let lists = Signal::default();
        let shared = Arc::new(Shared { index, jail, inbox, tracker, lists, embedder: RwLock::new(embedder) });
        shared.inbox.rescan();
        let mut indexer = Self { shared, threads: Vec::new() };
        indexer.spawn("satchel-files", |shared| Files::new(shared).run())?;
        indexer.spawn("satchel-vectors", |shared| vectors(&shared))?;
        indexer.spawn("satchel-lists", |shared| keep_lists(&shared))?;
        Ok(indexer)
    }

    fn spawn(&mut self, name: &'static str, run: impl FnOnce(Arc<Shared>) + Send + 'static) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(shared));
        self.threads.push(thread.map_err(|source| Error::Thread { name, source })?);
        Ok(())
    }

    /// Sets the embedder. If the index has vectors of another one, everything is embedded anew, by and by. With `serve_on`
    /// the caller keeps that other one for its searches, and its vectors stay until all are made anew
    /// ([`Index::serving_embedder`] tells which is needed); without, they are dropped at once.
    ///
    /// # Errors
    /// The embedder does not fit, or the store refuses.
    pub fn set_embedder(&self, embedder: Arc<dyn Embedder>, serve_on: bool) -> Result<(), Error> {
        self.shared.index.use_embedder(embedder.as_ref(), serve_on)?;
        *self.shared.embedder.write().unwrap_or_else(PoisonError::into_inner) = Some(embedder);
        self.rescan();
        self.shared.tracker.more_to_embed();
        Ok(())
    }

    /// Asks for a scan of all roots; files that could not be read are tried again.
    pub fn rescan(&self) {
        self.shared.inbox.rescan();
    }

    /// Stops reading and embedding after the file and the batch in work.
    pub fn pause(&self) {
        self.shared.inbox.pause(true);
    }

    /// Goes on.
    pub fn resume(&self) {
        self.shared.inbox.pause(false);
        self.shared.tracker.more_to_embed();
    }

    /// Waits until everything known is done, at most so long. Gives whether it is.
    #[must_use]
    pub fn wait_idle(&self, at_most: Duration) -> bool {
        self.shared.tracker.wait_idle(at_most, || self.shared.inbox.is_empty())
    }

    /// Stops after the batch in work; the file in work is given up and read at the next start.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.inbox.stop();
        self.shared.jail.stop();
        self.shared.tracker.stop();
        self.shared.lists.wake();
        for thread in self.threads.drain(..) {
            // A panic there was reported where it happened; there is nothing left to undo.
            let _ = thread.join();
        }
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Wakes one thread; calls before it looks count once.
#[derive(Default)]
struct Signal {
    set: Mutex<bool>,
    wake: Condvar,
}

impl Signal {
    fn wake(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    fn wait(&self) {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        while !std::mem::take(&mut *set) {
            set = self.wake.wait(set).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Looks after the lists of like passages when the others have come to rest, or when that cannot wait.
fn keep_lists(shared: &Shared) {
    let go_on = || {
        if let Some(embedder) = shared.embedder() {
            embedder.wait_turn();
        }
        shared.inbox.may_go_on()
    };
    while !shared.inbox.stopping() {
        shared.lists.wait();
        shared.index.tend_lists(&go_on);
    }
}

fn vectors(shared: &Shared) {
    let mut embedding = Embedding::default();
    while !shared.inbox.stopping() {
        if !shared.inbox.may_go_on() {
            return;
        }
        match embedding.step(shared) {
            Step::Done => {
                tidy(shared);
                shared.tracker.all_embedded();
            }
            Step::More if shared.index.lists_are_pressing() => shared.lists.wake(),
            Step::More => {}
            Step::Trouble(wait) => shared.tracker.sleep(wait),
        }
    }
}

/// Looks after the files of the store and the lists while nothing waits.
fn tidy(shared: &Shared) {
    let go_on = || shared.inbox.is_empty() && !shared.inbox.stopping();
    for _ in 0..TIDY_TRIES {
        match shared.index.compact(&go_on) {
            Ok(true) => break,
            Ok(false) if go_on() => std::thread::sleep(TIDY_PAUSE),
            Ok(false) => break,
            Err(error) => {
                shared.tracker.trouble(&error);
                break;
            }
        }
    }
    shared.lists.wake();
}

/// The thread that follows the folders.
struct Files {
    shared: Arc<Shared>,
    watch: Option<Watch>,
    /// A root was missing at the last scan.
    missing: bool,
    /// Something failed since the last scan that went through.
    troubled: bool,
    /// When the last scan of all roots ended.
    scanned: Instant,
    /// Some files wait for a password.
    locked: bool,
}

impl Files {
    fn new(shared: Arc<Shared>) -> Self {
        let watch = match Watch::start(Arc::clone(&shared.inbox)) {
            Ok(watch) => Some(watch),
            Err(error) => {
                shared.tracker.trouble(&error);
                None
            }
        };
        Self { shared, watch, missing: false, troubled: false, scanned: Instant::now(), locked: false }
    }

    fn run(mut self) {
        loop {
            let patience = match (self.troubled, self.missing) {
                (true, _) => TROUBLE_EVERY,
                (false, true) => MISSING_EVERY,
                (false, false) => RESCAN_EVERY,
            };
            let due = patience.saturating_sub(self.scanned.elapsed());
            let rest = if self.shared.jail.process().is_some() { WORKER_IDLE_MAX } else { due };
            let look = if self.locked { PASSWORDS_EVERY } else { due };
            let result = match self.shared.inbox.next(due.min(rest).min(look)) {
                Wake::Stop => return,
                Wake::Quiet => {
                    self.shared.jail.rest();
                    if self.scanned.elapsed() < patience && !self.passwords_changed() {
                        continue;
                    }
                    self.scan_all()
                }
                Wake::Changed(Changed { rescan: true, .. }) => self.scan_all(),
                Wake::Changed(changed) => self.follow(changed),
            };
            match result {
                Ok(()) => {}
                Err(Error::Stopping) => return,
                Err(error) => {
                    self.troubled = true;
                    // Not at once: what failed would fail again.
                    self.scanned = Instant::now();
                    self.shared.tracker.trouble(&error);
                }
            }
            if self.shared.inbox.is_empty() {
                tidy(&self.shared);
            }
            self.locked = self.shared.index.store().read(documents::any_locked).unwrap_or(false);
            // Files that could not be stored still wait: nothing is done before they are.
            if !self.troubled {
                self.shared.tracker.files_quiet();
            }
        }
    }

    fn scan_all(&mut self) -> Result<(), Error> {
        self.shared.tracker.scanning();
        let index = self.shared.index.clone();
        self.try_new_passwords()?;
        let roots = index.roots()?;
        self.missing = false;
        if let Some(watch) = &mut self.watch {
            watch.prune();
        }
        for root in &roots {
            let epoch = index.epoch()?;
            let watch = &mut self.watch;
            let plan = plan_root(index.store(), &root.path, epoch, &mut |folder| {
                if let Some(watch) = watch {
                    watch.add(folder, folder == root.path);
                }
            })?;
            if let Some((state, inode)) = plan.root {
                self.missing |= state != RootState::Present;
                let changed =
                    index.write("store a root's state", |tx, _| roots::set_state(tx, &root.path, state, inode))?;
                if changed && state != root.state {
                    self.shared.tracker.emit(Event::Root { path: root.path.clone(), state });
                }
            }
            self.carry_out(&root.path, plan)?;
        }
        self.remove_orphans()?;
        if let Some(trouble) = self.watch.as_mut().and_then(|w| w.trouble.take()) {
            self.shared.tracker.emit(Event::Trouble { message: trouble });
        }
        self.troubled = false;
        self.scanned = Instant::now();
        Ok(())
    }

    fn passwords_changed(&self) -> bool {
        let known = self.shared.index.store().read(|c| state::number(c, state::PASSWORDS));
        self.locked && known.is_ok_and(|known| known != self.shared.jail.passwords_mark())
    }

    /// Locked files are read again when the person's passwords are others than they were.
    fn try_new_passwords(&self) -> Result<(), Error> {
        let index = &self.shared.index;
        let mark = self.shared.jail.passwords_mark();
        if index.store().read(|c| state::number(c, state::PASSWORDS))? == mark {
            return Ok(());
        }
        index.write("list locked files again", |tx, _| {
            documents::retry_locked(tx)?;
            state::set(tx, state::PASSWORDS, mark)
        })
    }

    /// Documents of a root that was removed while its files were being read, or just before a crash.
    fn remove_orphans(&self) -> Result<(), Error> {
        let index = &self.shared.index;
        let roots = index.roots()?;
        let all = index.store().read(|c| documents::known_below(c, Path::new("/")))?;
        for (path, _) in all.iter().filter(|(path, _)| roots::containing(&roots, path).is_none()) {
            remove(index, path)?;
        }
        Ok(())
    }

    /// Looks at the paths that events named.
    fn follow(&mut self, changed: Changed) -> Result<(), Error> {
        let index = self.shared.index.clone();
        let roots = index.roots()?;
        let epoch = index.epoch()?;
        if let Some(watch) = &mut self.watch {
            changed.paths.iter().for_each(|path| watch.remove(path));
        }
        let mut plans: Vec<(PathBuf, Plan)> = Vec::new();
        let mut covered: Option<&PathBuf> = None;
        for path in &changed.paths {
            // Paths come in order: one below the last folder was looked at with it.
            if covered.is_some_and(|c| path.starts_with(c)) {
                continue;
            }
            covered = Some(path);
            let Some(root) = roots::containing(&roots, path) else { continue };
            if *path == root {
                return self.scan_all();
            }
            let watch = &mut self.watch;
            let plan = plan_path(index.store(), &root, path, epoch, &mut |folder| {
                if let Some(watch) = watch {
                    watch.add(folder, folder == root);
                }
            })?;
            plans.push((root, plan));
        }
        // New files come before those that are gone: a file that was moved finds its vectors under its old name.
        let mut gone = Vec::new();
        for (root, mut plan) in plans {
            gone.append(&mut plan.gone);
            self.carry_out(&root, plan)?;
        }
        self.remove_gone(&gone)
    }

    fn carry_out(&self, root: &Path, plan: Plan) -> Result<(), Error> {
        let shared = &self.shared;
        let index = &shared.index;
        for works in plan.read.chunks(PENDING_BATCH) {
            index.write("list pending files", |tx, _| {
                for work in works {
                    documents::set_pending(
                        tx,
                        &work.path,
                        extract::Format::of_name(&work.path).map_or(Kind::Other, extract::Format::kind),
                        index.now(),
                    )?;
                }
                Ok(())
            })?;
        }
        let all = plan.read.iter().chain(&plan.retry);
        let waiting = || shared.embedder().map(|_| index.store().read(queue::waiting).unwrap_or_default());
        shared.tracker.add_files(all.clone().count() as u64, all.clone().map(|w| w.bytes).sum(), waiting);
        for work in all {
            if !shared.inbox.may_go_on() {
                return Ok(());
            }
            self.one(root, work)?;
        }
        for (path, reason) in &plan.refused {
            mark_failed(index, path, reason)?;
            shared.tracker.emit(Event::File { path: path.clone(), state: State::Failed, reason: Some(reason.clone()) });
        }
        self.remove_gone(&plan.gone)
    }

    fn one(&self, root: &Path, work: &Work) -> Result<(), Error> {
        let shared = &self.shared;
        shared.tracker.file_started(&work.path);
        let embedder = shared.embedder();
        let cutting = Cutting { jail: &shared.jail, embedder: embedder.as_deref(), epoch: shared.index.epoch()? };
        // A panic over one file must not take the others with it.
        let caught = catch_unwind(AssertUnwindSafe(|| ingest(&shared.index, root, &work.path, &cutting)));
        let ingested = match caught {
            Ok(result) => result?,
            Err(_) => {
                let reason = "reading it failed inside the program";
                mark_failed(&shared.index, &work.path, reason)?;
                Ingested::Written { state: State::Failed, reason: Some(reason.to_owned()) }
            }
        };
        shared.tracker.file_done(work.bytes);
        // Also where nothing changed: passages that lack vectors waited until that was known.
        if matches!(ingested, Ingested::Unchanged | Ingested::Written { state: State::Pending, .. }) {
            shared.tracker.more_to_embed();
        }
        if let Ingested::Written { state, reason } = ingested {
            shared.tracker.emit(Event::File { path: work.path.clone(), state, reason });
        }
        Ok(())
    }

    fn remove_gone(&self, gone: &[PathBuf]) -> Result<(), Error> {
        for path in gone {
            if !self.shared.inbox.may_go_on() {
                return Ok(());
            }
            remove(&self.shared.index, path)?;
            self.shared.tracker.emit(Event::Gone { path: path.clone() });
        }
        Ok(())
    }
}

/// Whether a wait until `deadline` is over.
pub(crate) fn left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
}
