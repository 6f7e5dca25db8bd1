//! The worker of this package's own tests: the real one, or one that misbehaves as its first argument says.
#![allow(clippy::unwrap_used, reason = "it is part of tests")]

use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let what = args.next().unwrap_or_default();
    match what.to_str().unwrap() {
        "read" => satchel_index::run_worker(args),
        "absent" => ExitCode::FAILURE,
        "unconfined" => {
            say(&hello(0));
            silence();
            ExitCode::SUCCESS
        }
        what => {
            say(&hello(1));
            misbehave(what)
        }
    }
}

/// The first words of a worker with or without limits.
fn hello(limits: u8) -> Vec<u8> {
    [&b"SXH1"[..], &1_u32.to_le_bytes(), &[limits, 0, 0], &0_u32.to_le_bytes()].concat()
}

fn misbehave(what: &str) -> ExitCode {
    let mut first = [0; 12];
    std::io::stdin().read_exact(&mut first).unwrap();
    let number = &first[4..];
    match what {
        "garbage" => say(b"this is no reply at all, however long it may be"),
        // The answer to another request.
        "stale" => say(&[&b"SXR1"[..], &99_u64.to_le_bytes(), &[1, 4], &1_u32.to_le_bytes(), b"x"].concat()),
        // A text of 2^63 bytes.
        "vast" => {
            let absent = u32::MAX.to_le_bytes();
            let head = [&b"SXR1"[..], number, &[0, 0], &absent, &absent, &absent, &[0]].concat();
            let rest =
                [&0_u32.to_le_bytes()[..], &0_u32.to_le_bytes(), &0_u32.to_le_bytes(), &0_u32.to_le_bytes()].concat();
            say(&[head, rest, (1_u64 << 63).to_le_bytes().to_vec()].concat());
        }
        // A good answer, and a word too many.
        "chatty" => say(&[&b"SXR1"[..], number, &[1, 4], &1_u32.to_le_bytes(), b"xmore"].concat()),
        // A text that it calls the file's own.
        "liar" => {
            let absent = u32::MAX.to_le_bytes();
            let head = [&b"SXR1"[..], number, &[0, 1], &absent, &absent, &absent, &[0]].concat();
            let rest =
                [&0_u32.to_le_bytes()[..], &0_u32.to_le_bytes(), &0_u32.to_le_bytes(), &0_u32.to_le_bytes()].concat();
            say(&[head, rest, 3_u64.to_le_bytes().to_vec(), b"lie".to_vec()].concat());
        }
        "abort" => std::process::abort(),
        "quit" => return ExitCode::from(3),
        // Reads no further: a large request never gets through.
        _ => {}
    }
    silence();
    ExitCode::SUCCESS
}

fn say(bytes: &[u8]) {
    let mut out = std::io::stdout();
    out.write_all(bytes).unwrap();
    out.flush().unwrap();
}

fn silence() {
    std::thread::sleep(Duration::from_secs(600));
}
