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
        "walls" => try_the_walls(),
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

/// Confines itself as a worker does, tries what no worker may do, and tells what came of it, one line each.
fn try_the_walls() -> ExitCode {
    let own = std::env::current_exe().unwrap();
    let told = satchel_index::confined(u64::MAX, move |level| {
        let mut out = format!("limits {}\nfiles {}\ncalls {}\n", level.limits, level.files > 0, level.calls);
        let mut tell =
            |what: &str, done: bool| out.push_str(&format!("{what} {}\n", if done { "done" } else { "barred" }));
        tell("read", std::fs::read("/etc/passwd").is_ok());
        tell("list", std::fs::read_dir("/").is_ok());
        tell("write", std::fs::write(std::env::temp_dir().join("satchel-walls"), "x").is_ok());
        tell("tcp", std::net::TcpStream::connect("127.0.0.1:9").is_err_and(|e| e.raw_os_error() != Some(EPERM)));
        tell("udp", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
        tell("unix", std::os::unix::net::UnixDatagram::unbound().is_ok());
        tell("pair", std::os::unix::net::UnixStream::pair().is_ok());
        tell("thread", std::thread::Builder::new().spawn(|| ()).is_ok());
        tell("exec", std::process::Command::new(own).arg("quit").spawn().is_ok());
        tell("copy", rustix::io::dup(rustix::stdio::stdin()).is_ok());
        tell("kill", rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::CONT).is_ok());
        // What it may do: memory within its bounds, the time, chance.
        let mut small: Vec<u8> = Vec::new();
        tell("memory", small.try_reserve_exact(64 << 20).is_ok());
        let mut large: Vec<u8> = Vec::new();
        tell("much-memory", large.try_reserve_exact(512 << 20).is_ok());
        tell("time", std::time::Instant::now().elapsed() < Duration::from_secs(5));
        tell("chance", std::collections::HashSet::from([1]).contains(&1));
        out
    });
    say(told.unwrap().as_bytes());
    ExitCode::SUCCESS
}

/// What a system call that is not let through gives.
const EPERM: i32 = 1;

/// The first words of a worker with or without limits.
fn hello(limits: u8) -> Vec<u8> {
    [&b"SXH1"[..], &2_u32.to_le_bytes(), &[limits, 0, 0], &0_u32.to_le_bytes()].concat()
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
            let (absent, none) = (u32::MAX.to_le_bytes(), 0_u32.to_le_bytes());
            let head = [&b"SXR1"[..], number, &[0, 0], &absent, &absent, &absent, &[0]].concat();
            let rest = [&none[..], &absent, &none, &none, &none].concat();
            say(&[head, rest, (1_u64 << 63).to_le_bytes().to_vec()].concat());
        }
        // A good answer, and a word too many.
        "chatty" => say(&[&b"SXR1"[..], number, &[1, 4], &1_u32.to_le_bytes(), b"xmore"].concat()),
        // A text that it calls the file's own.
        "liar" => {
            let (absent, none) = (u32::MAX.to_le_bytes(), 0_u32.to_le_bytes());
            let head = [&b"SXR1"[..], number, &[0, 1], &absent, &absent, &absent, &[0]].concat();
            let rest = [&none[..], &absent, &none, &none, &none].concat();
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
