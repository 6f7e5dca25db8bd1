//! What a worker may not do, from before it reads its first byte until it ends.
//!
//! Three layers, each enough by itself for most of it: resource limits (every system), Landlock (no file, no network) and a
//! filter of system calls (Linux). The worker enters them itself: the parent has threads and must not be touched between
//! fork and exec. Nothing of a file is read before.

mod limits;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod no_calls;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod no_files;

use super::level::Level;

/// Confines the process as far as must be done before its reading thread starts. `memory` bounds everything it may take.
/// Gives what was reached so far.
pub(super) fn process(memory: u64) -> Level {
    let mut level = Level::default();
    die_with_parent();
    match limits::enter(memory) {
        Ok(()) => level.limits = true,
        Err(error) => level.add_note(&format!("limits cannot be set: {error}")),
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    match no_files::enter() {
        Ok(version) => level.files = version,
        Err(error) => level.add_note(&format!("no Landlock: {error}")),
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    level.add_note("this system has neither Landlock nor seccomp");
    level
}

/// Closes what the start of the reading thread needed. To be called on that thread, and holds for all.
pub(super) fn thread(level: &mut Level) {
    if let Err(error) = limits::no_more_processes() {
        level.limits = false;
        level.add_note(&format!("processes cannot be limited: {error}"));
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    match no_calls::enter() {
        Ok(()) => level.calls = true,
        Err(error) => level.add_note(&format!("no seccomp: {error}")),
    }
}

impl Level {
    fn add_note(&mut self, note: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(note);
    }
}

/// The end of the thread that started the worker ends the worker; where that cannot be, the end of its input does.
fn die_with_parent() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // A failure leaves the end of input, which comes to the same for a worker that waits.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}
