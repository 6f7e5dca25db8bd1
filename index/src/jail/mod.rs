//! Reading files in another process.
//!
//! Parsers of documents meet whatever a person was ever sent. So they run in a process of their own, the worker, which gets
//! bytes and gives text: no paths, no files, no network, a bound on memory, time and output. Whatever a file does to it, the
//! worst is that this file fails.
//!
//! [`Jail`] is the parent's side: it starts a worker when there is a file to read, hands it one file after the other, holds
//! every answer against the protocol's bounds, and replaces the worker when it crashes, takes too long, has grown, or has
//! read enough. The worker's side is [`run_worker`]; `confine` is what it may not do.

mod confine;
mod level;
mod process;
mod protocol;
mod usage;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use level::Level;
pub use process::WorkerCommand;
pub use worker::{confined, run_worker, worker_if_asked};

use crate::error::Error;
use crate::extract::{Extracted, Limits, Refusal};
use crate::limits::{
    READ_DEADLINE, WORKER_BUSY_MAX, WORKER_FILES_MAX, WORKER_IDLE_MAX, WORKER_KEPT_BYTES_MAX, WORKER_MEMORY_MAX,
};
use crate::passwords;
use crate::types::State;
use process::{Fault, Worker};

/// The parent's side. One file is read at a time.
pub struct Jail {
    command: WorkerCommand,
    memory: u64,
    deadline: Duration,
    /// The file of the person's passwords.
    passwords: Option<PathBuf>,
    worker: Mutex<Option<Worker>>,
    /// The living worker, for those who do not hold the lock above; cleared before it is waited for.
    pid: Mutex<Option<u32>>,
    stopping: AtomicBool,
    peak: AtomicU64,
}

/// Memory of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JailMemory {
    /// Resident bytes of the one that runs.
    pub resident: u64,
    /// The most that one had.
    pub peak: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Jail {
    /// Nothing is started yet. A worker may take `memory` bytes at most, within the bounds of this crate.
    #[must_use]
    pub fn new(command: WorkerCommand, memory: u64) -> Self {
        Self {
            command,
            memory: memory.clamp(worker::MEMORY_MIN, WORKER_MEMORY_MAX),
            deadline: READ_DEADLINE,
            passwords: None,
            worker: Mutex::default(),
            pid: Mutex::default(),
            stopping: AtomicBool::new(false),
            peak: AtomicU64::new(0),
        }
    }

    /// With workers that are this very program and take the usual memory: see [`WorkerCommand::this_program`].
    ///
    /// # Errors
    /// The system does not say where the program lies.
    pub fn of_this_program() -> std::io::Result<Self> {
        Ok(Self::new(WorkerCommand::this_program()?, WORKER_MEMORY_MAX))
    }

    /// Another deadline than the usual one, for tests and fuzzing.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// With the passwords in this file, one a line, tried on locked files.
    #[must_use]
    pub fn with_passwords(self, file: PathBuf) -> Self {
        Self { passwords: Some(file), ..self }
    }

    /// Why the person's passwords are not used, if there are some that are not.
    #[must_use]
    pub fn passwords_trouble(&self) -> Option<String> {
        self.passwords().err()
    }

    fn passwords(&self) -> Result<Vec<String>, String> {
        self.passwords.as_deref().map_or(Ok(Vec::new()), passwords::read)
    }

    /// Tells whether the file of passwords is another one than before.
    pub(crate) fn passwords_mark(&self) -> i64 {
        self.passwords.as_deref().map_or(0, passwords::mark)
    }

    /// How far a worker is confined on this machine, by starting one and asking it.
    ///
    /// # Errors
    /// [`Error::Jail`] if none can be started.
    pub fn level(&self) -> Result<Level, Error> {
        let mut slot = lock(&self.worker);
        Ok(self.living(&mut slot)?.level.clone())
    }

    /// Reads a file in the worker; if it is locked, once more with the person's passwords, where there are any.
    ///
    /// # Errors
    /// [`Error::Jail`] if no worker can be started, or none that is confined; [`Error::Stopping`]. Whatever the file itself
    /// causes is a [`Refusal`].
    pub fn extract(&self, name: &Path, bytes: &[u8]) -> Result<Result<Extracted, Refusal>, Error> {
        let reply = self.ask(name, bytes, &[])?;
        if !reply.as_ref().is_err_and(|refusal| refusal.state == State::Locked) {
            return Ok(reply);
        }
        // The worker never sees passwords that it does not need. Why a list is not used, `passwords_trouble` says.
        match self.passwords() {
            Ok(passwords) if !passwords.is_empty() => self.ask(name, bytes, &passwords),
            _ => Ok(reply),
        }
    }

    fn ask(&self, name: &Path, bytes: &[u8], passwords: &[String]) -> Result<Result<Extracted, Refusal>, Error> {
        let mut slot = lock(&self.worker);
        let name = name.file_name().unwrap_or_default();
        let mut again = true;
        loop {
            let worker = self.living(&mut slot)?;
            let fault = match worker.ask(name, bytes, passwords, &Limits::default(), self.deadline) {
                Ok(Ok(extracted)) if extracted.in_file && extracted.text.as_bytes() != bytes => {
                    Fault::Bad("it calls a text the file's own that is another one")
                }
                Ok(reply) => {
                    self.look_after(&mut slot);
                    return Ok(reply);
                }
                Err(fault) => fault,
            };
            self.end(&mut slot);
            if self.stopping.load(Ordering::SeqCst) {
                return Err(Error::Stopping);
            }
            match fault {
                // Once more with a new worker: the end of the first may have had nothing to do with the file.
                Fault::Killed(_) if again => again = false,
                fault => return Ok(Err(Refusal::failed(self.reason(&fault)))),
            }
        }
    }

    fn reason(&self, fault: &Fault) -> String {
        match fault {
            Fault::Deadline => format!("reading it took longer than {} s", self.deadline.as_secs_f32()),
            Fault::Memory => format!("reading it needs more than {} MiB of memory", self.memory >> 20),
            Fault::Stack => "it is nested too deeply to be read".to_owned(),
            Fault::Killed(signal) => format!("its reader was ended twice (signal {signal})"),
            Fault::Crashed(status) => match std::os::unix::process::ExitStatusExt::signal(status) {
                Some(signal) => format!("its reader crashed (signal {signal})"),
                None => format!("its reader ended by itself ({status})"),
            },
            Fault::Bad(what) => format!("its reader gave an answer that cannot be used: {what}"),
        }
    }

    /// The running worker, or a new one.
    fn living<'a>(&self, slot: &'a mut Option<Worker>) -> Result<&'a mut Worker, Error> {
        if slot.as_mut().is_some_and(|worker| !worker.is_alive()) {
            self.end(slot);
        }
        if slot.is_none() {
            let started = Worker::start(&self.command, self.memory).map_err(|what| Error::Jail { what })?;
            if !started.level.limits {
                // Without limits on memory and time nothing is read, whatever else there is.
                return Err(Error::Jail { what: format!("it is not confined ({})", started.level) });
            }
            let mut pid = lock(&self.pid);
            // Checked with the lock held: `stop` either sees this worker or is seen here.
            if self.stopping.load(Ordering::SeqCst) {
                return Err(Error::Stopping);
            }
            *pid = Some(started.pid());
            *slot = Some(started);
        }
        slot.as_mut().ok_or(Error::Stopping)
    }

    fn end(&self, slot: &mut Option<Worker>) {
        // First nobody can signal it any more, then its number is given back.
        *lock(&self.pid) = None;
        *slot = None;
    }

    /// Replaces a worker that has read enough or has grown.
    fn look_after(&self, slot: &mut Option<Worker>) {
        let Some(worker) = slot else { return };
        let memory = memory_of(worker.pid());
        self.peak.fetch_max(memory.peak, Ordering::Relaxed);
        let spent = worker.files >= WORKER_FILES_MAX || worker.busy >= WORKER_BUSY_MAX;
        if spent || memory.resident > WORKER_KEPT_BYTES_MAX {
            self.end(slot);
        }
    }

    /// Ends a worker that has had nothing to do for a while.
    pub(crate) fn rest(&self) {
        if let Ok(mut slot) = self.worker.try_lock()
            && slot.as_mut().is_some_and(|w| w.last_used.elapsed() >= WORKER_IDLE_MAX || !w.is_alive())
        {
            self.end(&mut slot);
        }
    }

    /// The worker's process, while there is one.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        *lock(&self.pid)
    }

    /// Ends the worker, in the middle of a file if need be, for good.
    pub(crate) fn stop(&self) {
        let pid = lock(&self.pid);
        self.stopping.store(true, Ordering::SeqCst);
        if let Some(pid) = *pid {
            process::end(pid);
        }
    }

    /// What the workers take of memory.
    #[must_use]
    pub fn memory(&self) -> JailMemory {
        let now = lock(&self.pid).map(memory_of).unwrap_or_default();
        let peak = self.peak.fetch_max(now.peak, Ordering::Relaxed).max(now.peak);
        JailMemory { resident: now.resident, peak }
    }

    /// The most that a worker may take.
    #[must_use]
    pub fn memory_max(&self) -> u64 {
        self.memory
    }
}

fn memory_of(pid: u32) -> JailMemory {
    let usage = usage::usage(&pid.to_string());
    JailMemory { resident: usage.resident, peak: usage.peak }
}
