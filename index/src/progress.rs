//! How far the indexer is, and who is told.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::index::Index;
use crate::pipeline::left;
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
    /// Files read and searchable by their words.
    pub files_done: u64,
    /// Files found to be read.
    pub files_total: u64,
    /// Their bytes.
    pub bytes_done: u64,
    /// Their bytes.
    pub bytes_total: u64,
    /// Passages embedded.
    pub passages_done: u64,
    /// Passages embedded or waiting to be.
    pub passages_total: u64,
    /// The file being read.
    pub current: Option<PathBuf>,
    /// Passages embedded in a second, over the whole run; 0 before the first.
    pub passages_per_second: f64,
}

/// Shortest time between two progress events: a person reads no faster.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Tracker {
    on_event: OnEvent,
    state: Mutex<Tracked>,
    wake: Condvar,
}

struct Tracked {
    progress: Progress,
    /// The file thread has work or has not started yet.
    files_busy: bool,
    /// The vector thread has work or has not looked yet.
    vectors_busy: bool,
    /// Something was written since the vector thread last found nothing.
    embed_again: bool,
    stop: bool,
    told: Option<Instant>,
    embedding_since: Option<Instant>,
}

impl Tracker {
    pub(crate) fn new(on_event: OnEvent) -> Self {
        let state = Tracked {
            progress: Progress::default(),
            files_busy: true,
            vectors_busy: true,
            embed_again: true,
            stop: false,
            told: None,
            embedding_since: None,
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
        let told = due.then(|| state.progress.clone());
        drop(state);
        if let Some(progress) = told {
            self.emit(Event::Progress(progress));
        }
    }

    pub(crate) fn scanning(&self) {
        self.lock().files_busy = true;
    }

    pub(crate) fn add_files(&self, files: u64, bytes: u64) {
        if files > 0 {
            self.update(|s| {
                s.files_busy = true;
                s.progress.files_total += files;
                s.progress.bytes_total += bytes;
            });
        }
    }

    pub(crate) fn file_started(&self, path: &Path) {
        self.update(|s| s.progress.current = Some(path.to_owned()));
    }

    pub(crate) fn file_done(&self, bytes: u64) {
        self.update(|s| {
            s.progress.files_done += 1;
            s.progress.bytes_done += bytes;
        });
    }

    pub(crate) fn embedded(&self, index: &Index, passages: u64) {
        let waiting = index.counts().map_or(0, |c| c.unembedded);
        self.update(|s| {
            let since = *s.embedding_since.get_or_insert_with(Instant::now);
            s.progress.passages_done += passages;
            s.progress.passages_total = s.progress.passages_done + waiting;
            let seconds = since.elapsed().as_secs_f64();
            s.progress.passages_per_second =
                if seconds > 0.0 { s.progress.passages_done as f64 / seconds } else { 0.0 };
        });
    }

    pub(crate) fn more_to_embed(&self) {
        let mut state = self.lock();
        state.embed_again = true;
        state.vectors_busy = true;
        state.embedding_since.get_or_insert_with(Instant::now);
        drop(state);
        self.wake.notify_all();
    }

    /// The file thread found nothing more to do.
    pub(crate) fn files_quiet(&self) {
        let mut state = self.lock();
        state.files_busy = false;
        state.progress.current = None;
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
        let last = std::mem::take(&mut state.progress);
        let had_work = last.files_total > 0 || last.passages_done > 0;
        if idle {
            state.embedding_since = None;
            state.told = None;
        } else {
            state.progress = last.clone();
        }
        drop(state);
        self.wake.notify_all();
        if idle && had_work {
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
