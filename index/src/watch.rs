//! File events, as hints. The only file that names notify; it reads no file.
//!
//! Events are reduced to a bounded set of changed paths. When there are more, or the system lost some, the set gives way to
//! a flag that asks for a scan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::event::{EventKind, MetadataKind, ModifyKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::Error;
use crate::limits::{CHANGED_PATHS_MAX, QUIET, QUIET_MAX};
use crate::rules::IGNORE_FILES;

/// Whether a watch on a folder tells of its subfolders. Where it does not (inotify), each folder is watched by itself: then
/// ignored folders cost nothing, and a folder that cannot be watched does not spoil the others.
const RECURSIVE: bool = cfg!(not(any(target_os = "linux", target_os = "android")));

/// What has changed since it was last asked.
#[derive(Default)]
pub(crate) struct Changed {
    pub paths: BTreeSet<PathBuf>,
    /// Everything must be scanned.
    pub rescan: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Where events, the program's own wishes and the pipeline meet.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    wake: Condvar,
}

#[derive(Default)]
struct InboxState {
    changed: Changed,
    paused: bool,
    stop: bool,
}

/// Why the pipeline wakes.
pub(crate) enum Wake {
    Changed(Changed),
    /// Nothing came within the time asked for.
    Quiet,
    Stop,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, f: impl FnOnce(&mut InboxState)) {
        f(&mut self.lock());
        self.wake.notify_all();
    }

    pub(crate) fn rescan(&self) {
        self.change(|s| s.changed.rescan = true);
    }

    pub(crate) fn pause(&self, paused: bool) {
        self.change(|s| s.paused = paused);
    }

    pub(crate) fn stop(&self) {
        self.change(|s| s.stop = true);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.lock().stop
    }

    /// Whether something waits that nobody has taken yet.
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.changed.paths.is_empty() && !state.changed.rescan
    }

    /// Blocks while paused; gives whether to go on.
    pub(crate) fn may_go_on(&self) -> bool {
        let mut state = self.lock();
        while state.paused && !state.stop {
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stop
    }

    pub(crate) fn add(&self, path: PathBuf) {
        self.change(|s| {
            let now = Instant::now();
            s.changed.first.get_or_insert(now);
            s.changed.last = Some(now);
            if s.changed.paths.len() >= CHANGED_PATHS_MAX {
                s.changed.paths.clear();
                s.changed.rescan = true;
            }
            if !s.changed.rescan {
                s.changed.paths.insert(path);
            }
        });
    }

    /// Waits for changes to settle, at most `patience` if there are none.
    pub(crate) fn next(&self, patience: Duration) -> Wake {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.stop {
                return Wake::Stop;
            }
            let wait = if state.paused {
                Duration::from_secs(3600)
            } else if state.changed.rescan {
                return Wake::Changed(std::mem::take(&mut state.changed));
            } else if let (Some(first), Some(last)) = (state.changed.first, state.changed.last) {
                let due = (last + QUIET).min(first + QUIET_MAX);
                if due <= now {
                    return Wake::Changed(std::mem::take(&mut state.changed));
                }
                due - now
            } else if deadline <= now {
                return Wake::Quiet;
            } else {
                deadline - now
            };
            state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The system's watcher and what it watches.
pub(crate) struct Watch {
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Why folders go unwatched, if any do: they are seen by the periodic scan only.
    pub trouble: Option<String>,
}

impl Watch {
    pub(crate) fn start(inbox: Arc<Inbox>) -> Result<Self, Error> {
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(move |event| take(&inbox, event), config)
            .map_err(|source| Error::Watch { path: PathBuf::new(), source })?;
        Ok(Self { watcher, watched: BTreeSet::new(), trouble: None })
    }

    /// Watches a folder. A failure is remembered, not returned: the scan goes on without it.
    pub(crate) fn add(&mut self, folder: &Path, is_root: bool) {
        if RECURSIVE && !is_root {
            return;
        }
        // Watched anew even if it is on the list: another folder may stand under the name by now.
        let mode = if RECURSIVE { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
        match self.watcher.watch(folder, mode) {
            Ok(()) => {
                self.watched.insert(folder.to_owned());
            }
            Err(error) => self.trouble = Some(format!("{} is not watched: {error}", folder.display())),
        }
    }

    /// Forgets folders that are not there any more; before a scan, for the reason given at [`Watch::remove`].
    pub(crate) fn prune(&mut self) {
        let there = |path: &PathBuf| path.symlink_metadata().is_ok_and(|m| m.is_dir());
        let gone: Vec<PathBuf> = self.watched.iter().filter(|path| !there(path)).cloned().collect();
        gone.iter().for_each(|path| self.remove(path));
    }

    /// Forgets the folder and all below it. Must come before the same folder is watched under a new name: the system knows
    /// folders, not names, and taking the old name away would take the new one with it.
    pub(crate) fn remove(&mut self, folder: &Path) {
        let below: Vec<PathBuf> =
            self.watched.range(folder.to_owned()..).take_while(|p| p.starts_with(folder)).cloned().collect();
        for path in below {
            self.watched.remove(&path);
            // The system has often dropped it already.
            let _ = self.watcher.unwatch(&path);
        }
    }
}

fn take(inbox: &Inbox, event: notify::Result<notify::Event>) {
    let Ok(event) = event else {
        inbox.rescan();
        return;
    };
    if event.need_rescan() {
        inbox.rescan();
        return;
    }
    match event.kind {
        // Our own reading must not wake us.
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(MetadataKind::AccessTime)) => return,
        _ => {}
    }
    for path in event.paths {
        let rules_changed = path.file_name().is_some_and(|name| IGNORE_FILES.iter().any(|f| name == *f));
        match path.parent() {
            Some(folder) if rules_changed => inbox.add(folder.to_owned()),
            _ => inbox.add(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_paths_become_a_scan() {
        let inbox = Inbox::default();
        for i in 0..=CHANGED_PATHS_MAX {
            inbox.add(PathBuf::from(format!("/x/{i}")));
        }
        let Wake::Changed(changed) = inbox.next(Duration::ZERO) else { panic!("nothing came") };
        assert!(changed.rescan && changed.paths.is_empty());
        assert!(matches!(inbox.next(Duration::ZERO), Wake::Quiet));
    }

    #[test]
    fn changes_come_once_and_together() {
        let inbox = Inbox::default();
        for path in ["/a", "/b", "/a"] {
            inbox.add(PathBuf::from(path));
        }
        let Wake::Changed(changed) = inbox.next(Duration::from_secs(5)) else { panic!("nothing came") };
        assert_eq!(changed.paths.into_iter().collect::<Vec<_>>(), [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert!(inbox.is_empty());
    }

    #[test]
    fn stop_wins_over_pause() {
        let inbox = Inbox::default();
        inbox.pause(true);
        inbox.rescan();
        inbox.stop();
        assert!(!inbox.may_go_on());
        assert!(matches!(inbox.next(Duration::from_secs(5)), Wake::Stop));
    }
}
