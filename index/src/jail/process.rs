//! One worker process as its parent sees it: started, spoken to within a deadline, ended.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::level::Level;
use super::protocol::{Broken, Reply, read_hello, read_reply, write_request};
use super::worker::WORKER_ARGUMENT;
use crate::extract::Limits;

/// Longest wait for a worker's first words.
const START_DEADLINE: Duration = Duration::from_secs(10);
/// Longest wait for the end of a process that was killed or has closed its output.
const END_DEADLINE: Duration = Duration::from_secs(2);
/// Bytes of what a dying worker wrote that are looked at.
const LAST_WORDS_MAX: u64 = 4096;

/// How to start a worker: a program that calls [`crate::run_worker`] when it is given these arguments, and one more.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The program.
    pub program: PathBuf,
    /// Arguments before the worker's own.
    pub args: Vec<OsString>,
}

impl WorkerCommand {
    /// This very program, whose `main` begins with [`crate::worker_if_asked`].
    ///
    /// # Errors
    /// The system does not say where the program lies.
    pub fn this_program() -> io::Result<Self> {
        // An update may have put another program in the place of this one: on Linux it is still to be had.
        let running = PathBuf::from("/proc/self/exe");
        let linux = cfg!(any(target_os = "linux", target_os = "android"));
        let program = if linux && running.exists() { running } else { std::env::current_exe()? };
        Ok(Self { program, args: vec![WORKER_ARGUMENT.into()] })
    }
}

/// Why a worker gave no usable reply.
#[derive(Debug)]
pub(super) enum Fault {
    /// It was not done in time.
    Deadline,
    /// It asked for more memory than it may have.
    Memory,
    /// It nested deeper than its stack is long.
    Stack,
    /// Somebody or the system ended it, by this signal; its file need not be the reason.
    Killed(i32),
    /// It crashed by this signal, or ended by itself.
    Crashed(ExitStatus),
    /// What it said is against the protocol.
    Bad(&'static str),
}

/// A running worker.
pub(super) struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub level: Level,
    pub files: u32,
    pub busy: Duration,
    pub last_used: Instant,
    numbers: u64,
}

impl Worker {
    /// Starts one and waits until it says how far it is confined.
    pub(super) fn start(command: &WorkerCommand, memory: u64) -> Result<Self, String> {
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .arg(memory.to_string())
            // Nothing of our surroundings is its business. One arena: memory is counted, not spread over threads.
            .env_clear()
            .env("MALLOC_ARENA_MAX", "1")
            .current_dir("/")
            .arg0("satchel-reader")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", command.program.display()))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let Some((input, output)) = pipes else { return Err("its pipes are not there".to_owned()) };
        let mut worker = Self {
            child,
            input,
            output: BufReader::with_capacity(64 << 10, output),
            level: Level::default(),
            files: 0,
            busy: Duration::ZERO,
            last_used: Instant::now(),
            numbers: 0,
        };
        match worker.hello() {
            Ok(level) => worker.level = level,
            Err(broken) => {
                let fault = worker.fault(broken);
                return Err(format!("it did not begin as it should: {fault:?}"));
            }
        }
        Ok(worker)
    }

    fn hello(&mut self) -> Result<Level, Broken> {
        for fd in [self.input.as_fd(), self.output.get_ref().as_fd()] {
            rustix::io::ioctl_fionbio(fd, true).map_err(io::Error::from)?;
        }
        read_hello(&mut Timed::new(&mut self.output, Instant::now() + START_DEADLINE))
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it read one file. After a fault the worker is dead.
    pub(super) fn ask(
        &mut self,
        name: &OsStr,
        bytes: &[u8],
        passwords: &[String],
        limits: &Limits,
        deadline: Duration,
    ) -> Result<Reply, Fault> {
        let start = Instant::now();
        let end = start + deadline;
        self.numbers += 1;
        self.files += 1;
        let said =
            write_request(&mut TimedWrite { pipe: &self.input, end }, self.numbers, name, passwords, limits, bytes)
                .map_err(Broken::from)
                .and_then(|()| read_reply(&mut Timed::new(&mut self.output, end), self.numbers, limits));
        self.busy += start.elapsed();
        self.last_used = Instant::now();
        match said {
            Ok(_) if !self.output.buffer().is_empty() => Err(self.fault(Broken::Bad("it said more than it was asked"))),
            Ok(reply) => Ok(reply),
            Err(broken) => Err(self.fault(broken)),
        }
    }

    /// Ends the worker and says what was wrong with it.
    fn fault(&mut self, broken: Broken) -> Fault {
        let late = match broken {
            Broken::Bad(what) => {
                self.kill();
                return Fault::Bad(what);
            }
            Broken::Io(error) => error.kind() == io::ErrorKind::TimedOut,
        };
        // Its end of the pipes is closed: it is ending. If it does not, it is made to.
        let status = if late { None } else { self.wait(END_DEADLINE) };
        let Some(status) = status else {
            self.kill();
            return Fault::Deadline;
        };
        let last_words = self.last_words();
        // As the standard library of Rust puts it, in a worker that it ends.
        if last_words.contains("memory allocation of") || last_words.contains("out of memory") {
            return Fault::Memory;
        }
        if last_words.contains("overflowed its stack") {
            return Fault::Stack;
        }
        match status.signal() {
            Some(signal) if is_from_outside(signal) => Fault::Killed(signal),
            _ => Fault::Crashed(status),
        }
    }

    /// The beginning of what it wrote to standard error. Told to nobody: it may hold words of the document.
    fn last_words(&mut self) -> String {
        let Some(stderr) = self.child.stderr.as_mut() else { return String::new() };
        let mut bytes = Vec::new();
        // It has ended, so this ends at once; but a descriptor that something else still holds must not stop us.
        if rustix::io::ioctl_fionbio(stderr.as_fd(), true).is_ok() {
            let _ = stderr.take(LAST_WORDS_MAX).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + at_most;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it and takes it off the system's table.
    fn kill(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Signals that say nothing about the file: a person, the system short of memory, the end of the parent.
fn is_from_outside(signal: i32) -> bool {
    [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::XCPU]
        .iter()
        .any(|s| s.as_raw() == signal)
}

/// Ends a worker that another thread speaks with; that thread finds its pipes closed.
pub(super) fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended in between.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Waits until the pipe is ready, or gives an error of the kind `TimedOut`.
fn ready(fd: BorrowedFd<'_>, flags: PollFlags, end: Instant) -> io::Result<()> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) as _ };
        match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&left)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Reads until a moment, not longer.
struct Timed<'a> {
    pipe: &'a mut BufReader<ChildStdout>,
    end: Instant,
}

impl<'a> Timed<'a> {
    fn new(pipe: &'a mut BufReader<ChildStdout>, end: Instant) -> Self {
        Self { pipe, end }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.pipe.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready(self.pipe.get_ref().as_fd(), PollFlags::IN, self.end)?;
                }
                other => return other,
            }
        }
    }
}

/// Writes until a moment, not longer.
struct TimedWrite<'a> {
    pipe: &'a ChildStdin,
    end: Instant,
}

impl Write for TimedWrite<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::io::write(self.pipe, buffer) {
                Err(rustix::io::Errno::AGAIN) => ready(self.pipe.as_fd(), PollFlags::OUT, self.end)?,
                Err(rustix::io::Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
