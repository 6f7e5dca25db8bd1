//! Workers that crash, hang, lie, or are killed from outside: one file fails, or is read after all, and nothing else.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use satchel_index::{Error, Jail, Refusal, State};

use crate::harness::{Bench, jail, worker};

fn refusal(what: &str, bytes: &[u8]) -> Refusal {
    let jail = Jail::new(worker(what), u64::MAX).with_deadline(Duration::from_millis(300));
    let start = Instant::now();
    let refusal = jail.extract(Path::new("/somewhere/note.txt"), bytes).unwrap().unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5), "{what}: {:?}", start.elapsed());
    assert_eq!(refusal.state, State::Failed, "{what}");
    refusal
}

#[test]
fn a_worker_that_misbehaves_fails_the_file_with_a_reason() {
    for (what, reason) in [
        ("hang", "longer than 0.3 s"),
        ("abort", "crashed (signal 6)"),
        ("quit", "ended by itself (exit status: 3)"),
        ("garbage", "it is no reply"),
        ("stale", "answers another request"),
        ("vast", "longer than it may be"),
        ("chatty", "more than it was asked"),
        ("liar", "the file's own"),
    ] {
        let said = refusal(what, b"text").reason;
        assert!(said.contains(reason), "{what}: {said}");
    }
    // More than a pipe holds, to one that does not read.
    assert!(refusal("hang", &vec![b'x'; 8 << 20]).reason.contains("longer than"));
}

#[test]
fn a_worker_that_is_not_there_or_not_confined_is_no_fault_of_the_file() {
    for (what, reason) in [("absent", "did not begin"), ("unconfined", "not confined")] {
        let error = Jail::new(worker(what), u64::MAX).extract(Path::new("a.txt"), b"text").unwrap_err();
        assert!(matches!(&error, Error::Jail { .. }) && error.to_string().contains(reason), "{what}: {error}");
    }
    let mut command = worker("read");
    command.program = "/nonexistent/program".into();
    assert!(matches!(Jail::new(command, u64::MAX).level(), Err(Error::Jail { .. })));
}

#[test]
fn the_real_worker_reads_and_says_how_it_is_confined() {
    let jail = jail();
    let level = jail.level().unwrap();
    assert!(level.limits, "{level}");
    let read = jail.extract(Path::new("/x/note.txt"), "grüße".as_bytes()).unwrap().unwrap();
    assert!(read.in_file && read.text == "grüße");
    let latin = jail.extract(Path::new("note.txt"), b"gr\xfc\xdfe aus der Stra\xdfe\n").unwrap().unwrap();
    assert!(!latin.in_file && latin.text.starts_with("grüße"));
    assert_eq!(jail.extract(Path::new("a.txt"), b"\n").unwrap().unwrap_err().state, State::Empty);
    assert!(jail.memory().resident > 0 && jail.memory().peak >= jail.memory().resident);
}

#[test]
fn the_largest_text_fits_and_its_memory_is_given_back() {
    let jail = jail();
    let line = "words that go on and on, line after line\n";
    let text = line.repeat((64 << 20) / line.len());
    let read = jail.extract(Path::new("large.txt"), text.as_bytes()).unwrap().unwrap();
    assert_eq!(read.text.len(), text.len());
    let peak = jail.memory().peak;
    assert!(peak < 512 << 20, "{peak}");
    // UTF-16 is the widest detour: decoded into a text half as long again.
    let wide: Vec<u8> = "\u{feff}語".repeat((64 << 20) / 4).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let read = jail.extract(Path::new("wide.txt"), &wide[..64 << 20]).unwrap();
    assert!(read.is_ok(), "{:?}", read.unwrap_err());
    assert!(jail.memory().resident < 100 << 20, "{:?}", jail.memory());
    assert!(jail.memory().peak < 512 << 20, "{:?}", jail.memory());
}

#[test]
fn a_worker_killed_from_outside_is_replaced_and_the_file_read() {
    let mut bench = Bench::new();
    bench.start();
    for round in 0..5 {
        bench.write(&format!("{round}.txt"), format!("round{round}x"));
        bench.until("the file is found", |b| b.find(&format!("round{round}x")).len() == 1);
        if let Some(id) = bench.jail.process().and_then(|id| Pid::from_raw(id.cast_signed())) {
            kill_process(id, Signal::KILL).unwrap();
        }
    }
    assert!(bench.jail.process().is_some());
}

#[test]
fn many_files_need_more_than_one_worker_and_little_time() {
    let jail = jail();
    let text = "a line of text that is like many others\n".repeat(25);
    jail.extract(Path::new("warm.txt"), b"warm").unwrap().unwrap();
    let start = Instant::now();
    for n in 0..1000 {
        let read = jail.extract(Path::new("small.txt"), text.as_bytes()).unwrap();
        assert!(read.is_ok(), "{n}");
    }
    let each = start.elapsed() / 1000;
    // Some 50 µs on an idle machine; the bound is for a busy one.
    assert!(each < Duration::from_millis(10), "{each:?} a file of 1 KB");
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn nothing_outside_can_be_reached_from_inside() {
    let run = std::process::Command::new(worker("walls").program).arg("walls").env_clear().output().unwrap();
    let out = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success() && out.contains("limits true"), "{:?} {out}", run.status);
    let may = ["memory", "time", "chance"];
    let linux = cfg!(target_os = "linux");
    // A kernel that lacks one of them says so; what the other bars must still be barred.
    let (files, calls) = (out.contains("files true"), out.contains("calls true"));
    for line in out.lines().skip(3) {
        let (what, came) = line.split_once(' ').unwrap();
        let barred = match what {
            what if may.contains(&what) => false,
            "read" | "list" => files || calls,
            "tcp" | "udp" | "unix" | "pair" | "copy" | "kill" => calls,
            "thread" | "exec" => calls || !is_root(),
            _ => true,
        };
        if barred || may.contains(&what) {
            assert_eq!(came == "barred", barred, "{what}: {out}");
        }
    }
    assert!(!linux || files || calls, "neither Landlock nor seccomp: {out}");
    assert!(!std::env::temp_dir().join("satchel-walls").exists());
}

#[test]
fn what_failed_is_not_read_again_until_its_content_changes() {
    let mut bench = Bench::new();
    bench.write("a.txt", "never read");
    bench.start_with(Arc::new(Jail::new(worker("abort"), u64::MAX)));
    assert_eq!(bench.state("a.txt"), Some(State::Failed));
    bench.stop();
    // The real worker would read it, but the same content has its verdict, also when it is touched or copied over.
    bench.write("a.txt", "never read");
    bench.start();
    let reason = bench.file("a.txt").unwrap().reason.unwrap();
    assert!(reason.contains("crashed"), "{reason}");
    bench.indexer.as_ref().unwrap().rescan();
    bench.settle();
    assert_eq!(bench.state("a.txt"), Some(State::Failed));
    bench.write("a.txt", "read at last");
    bench.until("it is read", |b| b.state("a.txt") == Some(State::Indexed));
}
