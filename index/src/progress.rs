//! How far the indexer is, and who is told.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::index::Index;
use crate::pipeline::left;
use crate::remaining::{Amounts, Rate};
use crate::store::queue::{self, Waiting};
use crate::types::{RootState, State};

/// What the indexer tells.
#[derive(Debug, Clone)]
pub enum Event {
    /// How far it is; at most a few times a second.
    Progress(Progress),
    /// A file reached a state.
    File {
        /// Its path.
        path: PathBuf,
        /// The state.
        state: State,
        /// Why, where there is something to say.
        reason: Option<String>,
    },
    /// A file is gone, and so are its rows.
    Gone {
        /// Its path.
        path: PathBuf,
    },
    /// A root appeared or went away.
    Root {
        /// Its path.
        path: PathBuf,
        /// How it was found.
        state: RootState,
    },
    /// Something went wrong that is not about one file; the indexer goes on.
    Trouble {
        /// What, in words.
        message: String,
    },
    /// Everything known is done.
    Idle,
}

/// Called on the indexer's threads; must not block.
pub type OnEvent = Box<dyn Fn(Event) + Send + Sync>;

/// How far the indexer is since it last had nothing to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Files read and, where there is an embedder, embedded.
    pub files_done: u64,
    /// Files found to be read.
    pub files_total: u64,
    /// Their bytes: the share of the work that is done, as bytes of files.
    pub bytes_done: u64,
    /// Their bytes.
    pub bytes_total: u64,
    /// Passages embedded.
    pub passages_done: u64,
    /// Passages embedded or waiting to be, of files that were read.
    pub passages_total: u64,
    /// The file being read.
    pub current: Option<PathBuf>,
    /// Time to the end as it went lately; none in the first second.
    pub remaining: Option<Duration>,
}

/// Shortest time between two progress events: a person reads no faster.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Time between two looks at how much waits to be embedded, which reads a row for each document that does. In between, what
/// was embedded is taken off.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Tracker {
    on_event: OnEvent,
    state: Mutex<Tracked>,
    wake: Condvar,
}

struct Tracked {
    run: Run,
    /// The file thread has work or has not started yet.
    files_busy: bool,
    /// The vector thread has work or has not looked yet.
    vectors_busy: bool,
    /// Something was written since the vector thread last found nothing.
    embed_again: bool,
    stop: bool,
    told: Option<Instant>,
}

/// What was done since the indexer last had nothing to do.
#[derive(Default)]
struct Run {
    files_read: u64,
    files_total: u64,
    passages_embedded: u64,
    current: Option<PathBuf>,
    amounts: Amounts,
    reading: Rate,
    embedding: Rate,
    /// Documents and passages that wait for vectors, as last looked at.
    waiting: Waiting,
    looked: Option<Instant>,
}

impl Run {
    fn progress(&self) -> Progress {
        let bytes_total = self.amounts.files_total;
        Progress {
            files_done: self.files_read.saturating_sub(self.waiting.documents),
            files_total: self.files_total,
            bytes_done: (bytes_total as f64 * self.amounts.done()) as u64,
            bytes_total,
            passages_done: self.passages_embedded,
            passages_total: self.passages_embedded + self.waiting.passages,
            current: self.current.clone(),
            remaining: self.amounts.remaining(&self.reading, &self.embedding),
        }
    }

    fn look(&mut self, waiting: Waiting) {
        self.waiting = waiting;
        self.amounts.waiting = waiting.bytes;
        self.looked = Some(Instant::now());
    }
}

impl Tracker {
    pub(crate) fn new(on_event: OnEvent) -> Self {
        let state = Tracked {
            run: Run::default(),
            files_busy: true,
            vectors_busy: true,
            embed_again: true,
            stop: false,
            told: None,
        };
        Self { on_event, state: Mutex::new(state), wake: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Tracked> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.on_event)(event);
    }

    pub(crate) fn trouble(&self, error: &Error) {
        let mut message = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        self.emit(Event::Trouble { message });
    }

    /// Changes the figures and tells them, if it is time.
    fn update(&self, f: impl FnOnce(&mut Tracked)) {
        let mut state = self.lock();
        f(&mut state);
        let due = state.told.is_none_or(|t| t.elapsed() >= PROGRESS_EVERY);
        if due {
            state.told = Some(Instant::now());
        }
        let told = due.then(|| state.run.progress());
        drop(state);
        if let Some(progress) = told {
            self.emit(Event::Progress(progress));
        }
    }

    pub(crate) fn scanning(&self) {
        self.lock().files_busy = true;
    }

    /// Files were found to be read. `waiting` is what waits to be embedded already, none where there is no embedder; it is asked
    /// for when a run begins.
    pub(crate) fn add_files(&self, files: u64, bytes: u64, waiting: impl FnOnce() -> Option<Waiting>) {
        if files == 0 {
            return;
        }
        let begins = self.lock().run.files_total == 0;
        let waiting = begins.then(waiting).flatten();
        self.update(|s| {
            s.files_busy = true;
            s.run.files_total += files;
            s.run.amounts.files_total += bytes;
            s.run.reading.begin(Instant::now());
            if let Some(waiting) = waiting {
                s.run.amounts.waited = waiting.bytes + s.run.amounts.embedded;
                s.run.amounts.embeds = true;
                s.run.look(waiting);
                // Looked at again with the first batch: much was read by then.
                s.run.looked = None;
            }
        });
    }

    pub(crate) fn file_started(&self, path: &Path) {
        self.update(|s| s.run.current = Some(path.to_owned()));
    }

    pub(crate) fn file_done(&self, bytes: u64) {
        self.update(|s| {
            s.run.files_read += 1;
            s.run.amounts.files_read += bytes;
            s.run.reading.add(bytes, Instant::now());
        });
    }

    /// A batch was embedded: so many passages, so many bytes.
    pub(crate) fn embedded(&self, index: &Index, passages: u64, bytes: u64) {
        let due = self.lock().run.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        let waiting = due.then(|| index.store().read(queue::waiting).ok()).flatten();
        self.update(|s| {
            s.run.passages_embedded += passages;
            s.run.amounts.embedded += bytes;
            s.run.amounts.embeds = true;
            s.run.embedding.add(bytes, Instant::now());
            if let Some(waiting) = waiting {
                s.run.look(waiting);
            } else {
                s.run.waiting.passages = s.run.waiting.passages.saturating_sub(passages);
                s.run.amounts.waiting = s.run.amounts.waiting.saturating_sub(bytes);
            }
        });
    }

    pub(crate) fn more_to_embed(&self) {
        let mut state = self.lock();
        state.embed_again = true;
        state.vectors_busy = true;
        state.run.embedding.begin(Instant::now());
        drop(state);
        self.wake.notify_all();
    }

    /// The file thread found nothing more to do.
    pub(crate) fn files_quiet(&self) {
        let mut state = self.lock();
        state.files_busy = false;
        state.run.current = None;
        self.idle_if_quiet(state);
    }

    /// The vector thread found nothing more to do: waits until there is.
    pub(crate) fn all_embedded(&self) {
        let mut state = self.lock();
        if !std::mem::take(&mut state.embed_again) {
            state.vectors_busy = false;
            self.idle_if_quiet(state);
            state = self.lock();
        }
        while !state.embed_again && !state.stop && !state.vectors_busy {
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn idle_if_quiet(&self, mut state: MutexGuard<'_, Tracked>) {
        let idle = !state.files_busy && !state.vectors_busy;
        let had_work = state.run.files_total > 0 || state.run.passages_embedded > 0;
        let last = idle.then(|| {
            state.told = None;
            let mut run = std::mem::take(&mut state.run);
            run.look(Waiting::default());
            run.progress()
        });
        drop(state);
        self.wake.notify_all();
        if let Some(last) = last.filter(|_| had_work) {
            self.emit(Event::Progress(last));
            self.emit(Event::Idle);
        }
    }

    /// Waits on the vector thread's behalf, until the time is over or there is a reason to look again.
    pub(crate) fn sleep(&self, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut state = self.lock();
        while !state.stop
            && let Some(wait) = left(deadline)
        {
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.wake.notify_all();
    }

    pub(crate) fn wait_idle(&self, at_most: Duration, nothing_waits: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + at_most;
        let mut state = self.lock();
        loop {
            if !state.files_busy && !state.vectors_busy && nothing_waits() {
                return true;
            }
            let Some(wait) = left(deadline) else { return false };
            // The inbox has no hand in this condition variable, so look again soon.
            let wait = wait.min(Duration::from_millis(50));
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
