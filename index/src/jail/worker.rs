//! The process that reads files: it confines itself, then takes bytes and gives text until its input ends.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use super::confine;
use super::level::Level;
use super::protocol::{Broken, Reply, Request, read_request, write_hello, write_reply};
use crate::extract::{Context, Limits, Refusal, extract};
use crate::limits::{WORKER_MEMORY_MAX, WORKER_STACK_BYTES};

/// Memory that the smallest budget leaves to a worker; below it, hardly a document could be read.
pub(super) const MEMORY_MIN: u64 = 64 << 20;

/// First argument of a program that is to be a worker.
pub(super) const WORKER_ARGUMENT: &str = "extract-worker";

/// The whole life of the process as a worker, if its arguments (the program's name first) ask for that. To be called first
/// thing in `main`.
pub fn worker_if_asked(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    args.next().is_some_and(|first| first == WORKER_ARGUMENT).then(|| run_worker(args))
}

/// The life of a worker; the only argument is the memory that it may take, in bytes. To be called first thing in `main`,
/// before there are other threads.
pub fn run_worker(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let memory = args.into_iter().next().and_then(|a| a.to_str().and_then(|a| a.parse().ok()));
    // What a panic says may hold words of the document.
    std::panic::set_hook(Box::new(|_| {}));
    let ended = confined(memory.unwrap_or(WORKER_MEMORY_MAX), |level| {
        // The parent decides whether this level is enough; it says nothing before it has read this.
        let mut output = BufWriter::with_capacity(64 << 10, Pipe(rustix::stdio::stdout()));
        write_hello(&mut output, level)?;
        serve(&mut Pipe(rustix::stdio::stdin()), &mut output)
    });
    if matches!(ended, Some(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `life` on a thread of its own, confined as far as this system can, and gives what it gives; nothing if it could not
/// be run. The whole process is confined from then on, for good.
pub fn confined<T: Send + 'static>(memory: u64, life: impl FnOnce(&Level) -> T + Send + 'static) -> Option<T> {
    let memory = memory.clamp(MEMORY_MIN, WORKER_MEMORY_MAX);
    let mut level = confine::process(memory);
    let thread = std::thread::Builder::new().name("reader".to_owned()).stack_size(stack_of(memory)).spawn(move || {
        confine::thread(&mut level);
        life(&level)
    });
    thread.ok()?.join().ok()
}

/// An eighth of the memory, at most what is ever needed.
fn stack_of(memory: u64) -> usize {
    usize::try_from(memory / 8).unwrap_or(WORKER_STACK_BYTES).min(WORKER_STACK_BYTES)
}

/// A descriptor to read or write without a buffer of its own.
struct Pipe(BorrowedFd<'static>);

impl std::io::Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(self.0, &mut *buffer))?)
    }
}

impl Write for Pipe {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::write(self.0, buffer))?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn serve(input: &mut impl std::io::Read, output: &mut impl Write) -> Result<(), Broken> {
    while let Some(request) = read_request(input)? {
        let limits = Limits {
            text_bytes_max: request.text_bytes_max,
            headings_max: request.headings_max,
            parts_max: request.parts_max,
        };
        let reply = read(&request, &limits);
        let number = request.number;
        // The file's bytes are not needed while its text is sent.
        drop(request);
        write_reply(output, number, reply, &limits)?;
    }
    Ok(())
}

fn read(request: &Request, limits: &Limits) -> Reply {
    let context = Context::new(limits, &request.passwords);
    let caught = catch_unwind(AssertUnwindSafe(|| extract(&request.name, &request.bytes, &context)));
    caught.unwrap_or_else(|_| Err(Refusal::failed("reading it failed inside the program")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jail::protocol::{read_reply, write_request};
    use std::ffi::OsStr;

    #[test]
    fn requests_are_answered_in_turn_until_the_input_ends() {
        let (limits, mut input, mut output) = (Limits::default(), Vec::new(), Vec::new());
        write_request(&mut input, 1, OsStr::new("a.txt"), &[], &limits, b"one").unwrap();
        write_request(&mut input, 2, OsStr::new("a.txt"), &[], &limits, b" ").unwrap();
        serve(&mut &input[..], &mut output).unwrap();
        let mut from = &output[..];
        assert_eq!(read_reply(&mut from, 1, &limits).unwrap().unwrap().text, "one");
        assert_eq!(read_reply(&mut from, 2, &limits).unwrap().unwrap_err(), Refusal::empty());
        assert!(from.is_empty());
    }
}
