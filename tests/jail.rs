//! The process that reads files: whatever happens to it, one file fails at most, and the rest is indexed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::harness::{Daemon, Home, PATIENCE, SOON, eventually, signal};

/// Longest wait for all hostile files; most take milliseconds, none more than 10 s.
const HOSTILE_PATIENCE: Duration = Duration::from_secs(300);
/// Bounds of the contract: for the process that reads, and what the daemon itself takes while it does.
const READER_BYTES_MAX: u64 = 512 << 20;
const DAEMON_BYTES_MAX: u64 = 700 << 20;

/// The shared test files beside the repository, where they are.
pub fn shared(inside: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(inside);
    let found = path.canonicalize().ok();
    if found.is_none() {
        eprintln!("not tried: there is no {}", path.display());
    }
    found
}

/// Processes that the daemon started.
fn children(daemon: &Daemon) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
    let lists = threads.filter_map(|t| fs::read_to_string(t.unwrap().path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<i32>>()).collect()
}

fn all_below(folder: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    found
}

/// Files below a folder with their sizes and times.
fn snapshot(folder: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let files = all_below(folder).into_iter().filter(|path| path.is_file());
    files
        .map(|path| {
            let meta = fs::metadata(&path).unwrap();
            (path, meta.len(), meta.modified().unwrap())
        })
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn files_are_read_in_another_process_that_may_be_killed_and_is_counted() {
    let home = Home::bare();
    let first = home.write("first.txt", "amber\n");
    let daemon = home.daemon();
    daemon.expect("amber", &[&first]);
    for round in 0..3 {
        let readers = children(&daemon);
        assert_eq!(readers.len(), 1, "{readers:?}");
        let reader = fs::read_to_string(format!("/proc/{}/status", readers[0])).unwrap();
        assert!(reader.contains("Seccomp:\t2") && reader.contains("NoNewPrivs:\t1"), "{reader}");
        let own = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
        let own = own.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim().trim_end_matches(" kB").to_owned();
        let told = daemon.get("/v1/status")["memory"]["resident_bytes"].as_u64().unwrap();
        assert!(told > own.parse::<u64>().unwrap() * 1024, "{told} {own}: the reader is not counted");
        signal(readers[0], libc::SIGKILL);
        let word = format!("round{round}x");
        let file = home.write(format!("{round}.txt"), format!("{word}\n"));
        daemon.expect(&word, &[&file]);
    }
    // It ends with the daemon, even one that cannot take leave.
    let readers = children(&daemon);
    daemon.kill();
    for reader in readers {
        eventually("the reader ends", SOON, || match fs::read_to_string(format!("/proc/{reader}/cmdline")) {
            Ok(line) if line.starts_with("satchel-reader") => Err(line),
            _ => Ok(()),
        });
    }
}

#[test]
fn doctor_tells_how_far_the_reader_is_confined() {
    let home = Home::bare();
    let told = home.run(["doctor", "--json"]).ok().json();
    let sandbox = told["sandbox"].as_str().unwrap();
    assert!(sandbox.contains("memory, time, output and processes limited"), "{sandbox}");
}

#[test]
fn a_file_with_a_password_is_locked_until_the_person_gives_one() {
    let Some(locked) = shared("corpus/files/docx/testWORD_protected_passtika.docx") else { return };
    let home = Home::bare();
    let file = home.write("contract.docx", fs::read(locked).unwrap());
    let daemon = home.daemon();
    assert_eq!(daemon.file(&file).unwrap()["state"], "locked");
    let passwords = home.path.join("passwords");
    fs::write(&passwords, "wrong\ntika\n").unwrap();
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o644)).unwrap();
    let warned = daemon.get("/v1/status")["warnings"].to_string();
    assert!(warned.contains("chmod 600") && !warned.contains("tika"), "{warned}");
    assert_eq!(daemon.file(&file).unwrap()["state"], "locked");
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).unwrap();
    eventually("the file is opened", PATIENCE, || match daemon.file(&file).unwrap() {
        entry if entry["state"] == "indexed" => Ok(()),
        entry => Err(entry.to_string()),
    });
    daemon.expect("encrypted", &[&file]);
    assert!(daemon.get("/v1/status").get("warnings").is_none_or(|w| !w.to_string().contains("chmod")));
    daemon.stop();
    // The password stands in its own file and in no other.
    for path in all_below(&home.path).into_iter().filter(|p| p.is_file() && *p != passwords) {
        assert!(!fs::read(&path).unwrap().windows(4).any(|w| w == b"tika"), "{path:?} holds the password");
    }
}

/// The small set of the generator; `SATCHEL_TEST_LARGE=1` takes the large one.
#[test]
fn hostile_files_fail_alone_in_time_and_within_memory() {
    let Some(generator) = shared("corpus/hostile/make_hostile.py") else { return };
    let home = Home::bare();
    let mut make = Command::new("python3");
    make.arg(generator).arg(home.docs.join("hostile"));
    if std::env::var("SATCHEL_TEST_LARGE").is_ok_and(|v| v == "1") {
        make.arg("--big");
    }
    assert!(make.output().unwrap().status.success(), "the generator failed");
    let good = home.write("good.txt", "peridot\n");
    let (docs, around) = (snapshot(&home.docs), all_below(home.docs.parent().unwrap()).len());
    let daemon = home.serve(["--in".as_ref(), home.docs.as_os_str()]);
    eventually("all is read", HOSTILE_PATIENCE, || {
        let roots = daemon.get("/v1/roots");
        let root = &roots["roots"][0];
        if root["state"] == "ready" && root["pending"] == 0 { Ok(()) } else { Err(roots.to_string()) }
    });
    daemon.expect("peridot", &[&good]);
    let files = daemon.files();
    assert!(files.len() > 100, "{}", files.len());
    for file in &files {
        let final_state = ["indexed", "failed", "locked", "needs_ocr", "empty", "excluded"]
            .contains(&file["state"].as_str().unwrap());
        assert!(final_state, "{file}");
        let reason = file["reason"].as_str().unwrap_or_default();
        assert!(!reason.contains("longer than") && !reason.contains("crashed"), "{file}");
        assert!(file["state"] == "indexed" || file["reason"].as_str().is_some_and(|r| r.len() > 8), "{file}");
    }
    let memory = daemon.get("/v1/status")["memory"]["peak_resident_bytes"].as_u64().unwrap();
    assert!(memory < READER_BYTES_MAX + DAEMON_BYTES_MAX, "{} MiB", memory >> 20);
    // Nothing of a file is followed: no other file is read, and nothing is written but in the home.
    assert!(daemon.holding("root:x:0:0").is_empty());
    daemon.stop();
    assert_eq!(snapshot(&home.docs), docs);
    let written = all_below(home.docs.parent().unwrap()).into_iter().filter(|p| !p.starts_with(&home.path)).count();
    assert_eq!(written, around);
    for line in files.iter().filter(|f| f["state"] == "failed") {
        eprintln!("{} {}", line["path"].as_str().unwrap(), line["reason"].as_str().unwrap());
    }
}
