//! Every error that a person can cause: one sentence, a hint, the right exit code, in words and as JSON. What was there
//! before is there afterwards.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{
    EMBEDDER, Home, PATIENCE, Random, SATCHEL, SOON, WRITER, eventually, finish, is_root, test_models,
};

/// The id of the user called nobody on most systems; any id but ours would do.
const NOBODY: u32 = 65_534;

/// Runs a command that must fail, in words and as JSON, and gives its message.
fn fails<S: AsRef<OsStr>>(home: &Home, args: &[S], code: &str, exit: i32) -> String {
    let mut args: Vec<OsString> = args.iter().map(|a| a.as_ref().to_owned()).collect();
    let told = home.run(&args);
    assert_eq!((told.code, told.out.as_str()), (Some(exit), ""), "{args:?}: {told:?}");
    let lines: Vec<&str> = told.err.lines().collect();
    let [sentence, hint] = lines[..] else { panic!("{args:?}: not a sentence and a hint: {told:?}") };
    let sentence = sentence.strip_prefix("satchel: ").unwrap_or_else(|| panic!("{args:?}: {told:?}"));
    let hint = hint.strip_prefix("  hint: ").unwrap_or_else(|| panic!("{args:?}: {told:?}"));
    assert!(sentence.len() > 10 && hint.len() > 3 && !told.err.contains("\\u{"), "{args:?}: {told:?}");
    args.push("--json".into());
    let told = home.run(&args);
    assert_eq!((told.code, told.err.as_str()), (Some(exit), ""), "{args:?}: {told:?}");
    let error = &told.json()["error"];
    assert_eq!((&error["code"], &error["hint"].is_string()), (&json!(code), &true), "{args:?}: {error}");
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn folders_that_are_none() {
    let home = Home::bare();
    let file = home.write("a.txt", "slate\n");
    let missing = home.docs.join("nosuch");
    let daemon = home.daemon();
    for command in [&["ask", "--in"][..], &["add"]] {
        let with = |path: &Path| -> Vec<OsString> {
            let mut args: Vec<OsString> = command.iter().map(Into::into).collect();
            args.push(path.into());
            args.extend((command[0] == "ask").then(|| "what?".into()));
            args
        };
        assert!(fails(&home, &with(&missing), "bad_request", 2).contains("nosuch"));
        assert!(fails(&home, &with(&file), "bad_request", 2).contains("is not a folder"));
        if cfg!(target_os = "linux") {
            assert!(fails(&home, &with(Path::new("/proc/self")), "bad_request", 2).contains("made by the system"));
        }
        let named = home.docs.join(OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir_all(&named).unwrap();
        assert!(fails(&home, &with(&named), "bad_request", 2).contains("not UTF-8"));
    }
    assert!(fails(&home, &["remove", missing.to_str().unwrap()], "bad_request", 2).contains("not a watched folder"));
    assert!(fails(&home, &["forget", missing.to_str().unwrap()], "bad_request", 2).contains("nosuch"));
    daemon.expect("slate", &[&file]);
}

#[test]
fn without_a_daemon() {
    let home = Home::bare();
    let folder = home.docs.to_str().unwrap();
    for args in [&["status"][..], &["search", "x"], &["files"], &["roots"], &["add", folder], &["forget", folder]] {
        assert!(fails(&home, args, "no_daemon", 7).contains("no daemon"), "{args:?}");
    }
    // One that was killed left its socket behind.
    home.daemon().kill();
    assert!(home.socket().exists());
    assert!(fails(&home, &["status"], "no_daemon", 7).contains("no daemon"));
}

#[test]
fn a_second_daemon_leaves_the_first_alone() {
    let home = Home::bare();
    let file = home.write("a.txt", "slate\n");
    let daemon = home.daemon();
    let message = fails(&home, &["serve"], "busy", 1);
    assert!(message.contains(&daemon.pid().to_string()), "{message}");
    // With a socket of its own it still may not share the index.
    let mut second = home.command(["serve", "--json"]);
    second.env("SATCHEL_SOCKET", home.beside("other.sock"));
    let second = finish(second);
    assert_eq!((second.code, &second.json()["error"]["code"]), (Some(1), &json!("busy")), "{second:?}");
    daemon.expect("slate", &[&file]);
}

#[test]
fn wrong_usage() {
    let home = Home::bare();
    for args in [
        &["ask"][..],
        &["ask", "x", "--nosuch"],
        &["nosuch"],
        &["search", "x", "--k", "many"],
        &["files", "--state", "done"],
        &["serve", "--budget", "much"],
        &["serve", "--context", "3"],
        &["status", "--deadline", "-1"],
        &["status", "extra"],
        &["model"],
    ] {
        let told = home.run(args);
        assert_eq!((told.code, told.out.as_str()), (Some(2), ""), "{args:?}: {told:?}");
        assert!(!told.err.trim().is_empty(), "{args:?}");
        let told = home.run(args.iter().chain(&["--json"]));
        assert_eq!((told.code, told.err.as_str()), (Some(2), ""), "{args:?}: {told:?}");
        let error = &told.json()["error"];
        assert_eq!(error["code"], "bad_request", "{args:?}: {error}");
        let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
        assert!(!message.is_empty() && !message.contains('\n') && hint.contains("--help"), "{args:?}: {error}");
    }
    let long = home.beside(&"long".repeat(40));
    let told = home.run(["--home".as_ref(), long.as_os_str(), "status".as_ref(), "--json".as_ref()]);
    // `--home` was given twice: by the harness and here.
    assert_eq!(told.code, Some(2), "{told:?}");
    let mut command = Command::new(SATCHEL);
    command.args(["status", "--json", "--home"]).arg(&long).env_remove("SATCHEL_SOCKET");
    let told = finish(command);
    let error = &told.json()["error"];
    assert_eq!((told.code, &error["code"]), (Some(2), &json!("bad_request")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("bytes, the system allows"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("shorter"), "{error}");
}

#[test]
fn questions_that_cannot_be_asked() {
    let home = Home::new();
    home.write("lease.md", "The landlord is Marta Olsen.\n");
    let daemon = home.serve(["--context".as_ref(), "256".as_ref(), "--in".as_ref(), home.docs.as_os_str()]);
    daemon.settled();
    assert!(fails(&home, &["ask", " "], "bad_request", 2).contains("the question is empty"));
    assert!(fails(&home, &["search", " "], "bad_request", 2).contains("the query is empty"));
    assert!(fails(&home, &["ask", "--k", "1000", "who?"], "bad_request", 2).contains("k is 1000"));
    assert!(fails(&home, &["ask", "--kind", "holographic", "who?"], "bad_request", 2).contains("holographic"));
    let long = "who ".repeat(5000);
    assert!(fails(&home, &["ask", &long], "too_long", 1).contains("20000 bytes > 16384"));
    // Longer than the context, which is small here: the numbers say by how much.
    let message = fails(&home, &["ask", "--max-tokens", "64", &"Who is the landlord? ".repeat(60)], "too_long", 1);
    assert!(message.contains("> 192"), "{message}");
    assert!(fails(&home, &["ask", "--max-tokens", "400", "who?"], "too_long", 1).contains("400"));
    assert!(fails(&home, &["ask", "--deadline", "0.001", "Who is the landlord?"], "cancelled", 1).contains("deadline"));
    // And it still answers.
    let reply = daemon.post("/v1/ask", json!({"question": "Who is the landlord?", "max_tokens": 64}));
    assert!(reply["answer"].as_str().unwrap().contains("Marta Olsen"), "{reply}");
}

#[test]
fn requests_that_are_not_understood() {
    let home = Home::bare();
    let daemon = home.serve([""; 0]);
    let refused = |method: &str, target: &str, body: Value, status: u16, word: &str| {
        let (found, reply) = daemon.http(method, target, Some(&body));
        assert_eq!((found, &reply["error"]["code"]), (status, &json!("bad_request")), "{reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        assert!(message.contains(word), "{message}");
    };
    refused("POST", "/v1/ask", json!({"question": "q", "strem": true}), 400, "`strem`");
    refused("POST", "/v1/search", json!({"query": "q", "filter": {"prefix": "/a"}}), 400, "`prefix`");
    refused("POST", "/v1/search", json!({"query": "q", "k": -1}), 400, "-1");
    refused("POST", "/v1/search", json!({"query": "q", "filter": {"path_prefix": "notes"}}), 400, "not absolute");
    refused("POST", "/v1/search", json!([1, 2]), 400, "search");
    refused("POST", "/v1/nosuch", json!({}), 404, "/v1/nosuch");
    refused("PUT", "/v1/roots", json!({}), 405, "PUT");
    for (method, params, number) in
        [("ask", json!({"question": "q", "strem": true}), -32602), ("nosuch", json!({}), -32601)]
    {
        let reply = &daemon.rpc(method, params)[0];
        assert_eq!((&reply["error"]["code"], &reply["error"]["data"]["code"]), (&json!(number), &json!("bad_request")));
    }
    assert_eq!(daemon.get("/v1/status")["pid"], daemon.pid());
}

#[test]
fn models_that_are_missing() {
    let home = Home::bare();
    let file = home.write("a.txt", "The landlord is Marta Olsen.\n");
    let daemon = home.daemon();
    // Nothing can be fetched here; search by words works all the same.
    assert!(fails(&home, &["ask", "Who is the landlord?"], "model_missing", 8).contains("could not be fetched"));
    daemon.expect("Marta", &[&file]);
    assert!(daemon.get("/v1/status")["warnings"].to_string().contains("search by meaning is off"));
    assert!(fails(&home, &["search", "--mode", "vector", "x"], "model_missing", 8).contains("embedder"));
    for args in [
        &["model", "show", "nosuch"][..],
        &["model", "use", "nosuch"],
        &["model", "use", WRITER],
        &["model", "pull", WRITER],
        &["model", "pull", "nosuch"],
        &["complete", "--model", "nosuch", "--prompt", "x"],
        &["bench", "--model", "nosuch"],
    ] {
        fails(&home, args, "model_missing", 8);
    }
    daemon.stop();
    assert!(fails(&home, &["serve", "--model", "/nonexistent.gguf"], "model_missing", 8).contains("/nonexistent.gguf"));
    // A model that comes later is used without more ado.
    home.install(&[WRITER]);
    home.run(["model", "use", WRITER]).ok();
    let answer = home.run(["ask", "--in", home.docs.to_str().unwrap(), "Who is the landlord?"]).ok();
    assert!(answer.out.contains("Marta Olsen"), "{answer:?}");
}

#[test]
fn models_that_are_broken() {
    let home = Home::bare();
    let whole = fs::read(test_models().join(format!("{EMBEDDER}.gguf"))).unwrap();
    let path = home.beside("broken.gguf");
    let name = path.to_str().unwrap();
    let mut magic = whole.clone();
    magic[..4].copy_from_slice(b"GGML");
    for (what, bytes) in [
        ("empty", &[][..]),
        ("only its magic", &whole[..4]),
        ("cut in the header", &whole[..1000]),
        ("cut in the middle", &whole[..whole.len() / 2]),
        ("a byte short", &whole[..whole.len() - 1]),
        ("another magic", &magic),
        ("text", b"The landlord is Marta Olsen."),
    ] {
        fs::write(&path, bytes).unwrap();
        for command in ["use", "show"] {
            let message = fails(&home, &["model", command, name], "model_invalid", 8);
            assert!(message.contains("broken.gguf"), "{what}: {message}");
        }
    }
    let message = fails(&home, &["complete", "--model", name, "--prompt", "x"], "model_invalid", 8);
    assert!(message.contains("broken.gguf"), "{message}");
    flip_bits(&home, &path, &whole);
}

/// Single bits of the header, flipped: the file is refused or taken, and nothing crashes.
fn flip_bits(home: &Home, path: &Path, whole: &[u8]) {
    fs::write(path, whole).unwrap();
    let mut random = Random::new(7);
    let mut refused = 0;
    let mut file = fs::File::options().write(true).open(path).unwrap();
    let mut put = |at: usize, byte: u8| {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    for round in 0..40 {
        // Half of them among the first keys, half anywhere in the header with its vocabulary.
        let at = random.below(if round % 2 == 0 { 400 } else { 400_000 }) as usize;
        let bit = 1u8 << random.below(8);
        put(at, whole[at] ^ bit);
        let told = home.run(["model".as_ref(), "use".as_ref(), path.as_os_str()]);
        assert!(matches!(told.code, Some(0 | 8)), "bit {bit:#x} of byte {at}: {told:?}");
        assert!(!told.err.contains("panicked"), "bit {bit:#x} of byte {at}: {told:?}");
        refused += usize::from(told.code == Some(8));
        put(at, whole[at]);
    }
    assert!(refused > 5, "only {refused} flipped bits were noticed");
    home.run(["model".as_ref(), "use".as_ref(), path.as_os_str()]).ok();
}

#[test]
fn a_model_that_breaks_under_the_daemon_and_is_mended() {
    let home = Home::new();
    let file = home.write("lease.md", "The landlord is Marta Olsen.\n");
    let path = home.path.join("models").join(format!("{WRITER}.gguf"));
    let kept = home.beside("kept.gguf");
    fs::rename(&path, &kept).unwrap();
    fs::write(&path, &fs::read(&kept).unwrap()[..1 << 20]).unwrap();
    let daemon = home.daemon();
    assert!(fails(&home, &["ask", "Who is the landlord?"], "model_invalid", 8).contains(WRITER));
    daemon.expect("Marta", &[&file]);
    assert!(daemon.get("/v1/status")["warnings"].to_string().contains("answers are off"));
    fs::rename(&kept, &path).unwrap();
    let answer = home.run(["ask", "Who is the landlord?"]).ok();
    assert!(answer.out.contains("Marta Olsen"), "{answer:?}");
}

#[test]
fn a_model_over_the_budget() {
    let home = Home::new();
    let file = home.write("lease.md", "The landlord is Marta Olsen.\n");
    let daemon = home.serve(["--budget".as_ref(), "50MiB".as_ref(), "--in".as_ref(), home.docs.as_os_str()]);
    daemon.settled();
    let message = fails(&home, &["ask", "Who is the landlord?"], "over_budget", 5);
    assert!(message.contains("budget is 50 MiB"), "{message}");
    daemon.expect("landlord", &[&file]);
    assert_eq!(daemon.get("/v1/status")["memory"]["budget_bytes"], 50 << 20);
}

/// A command of a user without rights, if we are root.
fn as_user(mut command: Command) -> Command {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives a folder and what is in it to the user of [`as_user`].
fn give(path: &Path) {
    if is_root() {
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                give(&entry.path());
            }
            std::os::unix::fs::lchown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

#[test]
fn files_and_folders_that_may_not_be_read() {
    let home = Home::bare();
    let open = home.write("open.txt", "slate\n");
    let secret = home.write("secret.txt", "slate\n");
    let inside = home.write("closed/inside.txt", "slate\n");
    let closed = home.docs.join("closed");
    fs::create_dir_all(&home.path).unwrap();
    give(home.docs.parent().unwrap());
    // The program itself may lie where that user may not go.
    let program = home.beside("satchel");
    if fs::hard_link(SATCHEL, &program).is_err() {
        fs::copy(SATCHEL, &program).unwrap();
    }
    let command = |args: &[&str]| {
        let mut command = Command::new(&program);
        command
            .arg("--home")
            .arg(&home.path)
            .args(args)
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .env("PATH", &home.docs);
        command.env_remove("SATCHEL_SOCKET").env_remove("SATCHEL_MODEL_MIRROR").env_remove("SATCHEL_PYTHON");
        as_user(command)
    };
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let daemon = home.start(command(&["serve", "--in", home.docs.to_str().unwrap()]));
    let listed = || -> Vec<Value> {
        let told = finish(command(&["files", "--json"])).ok();
        told.json()["files"].as_array().unwrap().clone()
    };
    let failed =
        |path: &Path| listed().iter().find(|f| f["path"] == path.to_str().unwrap() && f["state"] == "failed").cloned();
    for path in [&secret, &closed] {
        let entry = eventually(&format!("{path:?} is listed as failed"), SOON, || {
            failed(path).ok_or_else(|| format!("{:?}", listed()))
        });
        assert!(entry["reason"].as_str().unwrap().contains("ermission denied"), "{entry}");
    }
    let words = finish(command(&["files", "--state", "failed"])).ok();
    assert!(words.out.contains("secret.txt") && words.out.contains("ermission denied"), "{words:?}");
    let status = finish(command(&["status", "--json"])).ok().json();
    assert_eq!((&status["index"]["documents"], &status["index"]["failed"]), (&json!(1), &json!(2)), "{status}");
    // Another user, root included, does not get in.
    if is_root() {
        assert!(fails(&home, &["status"], "error", 1).contains("another user"));
    }
    // What may be read again is read again.
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let indexed =
        |path: &PathBuf| listed().iter().any(|f| f["path"] == path.to_str().unwrap() && f["state"] == "indexed");
    for path in [&open, &secret, &inside] {
        eventually(&format!("{path:?} is indexed"), SOON, || {
            if indexed(path) { Ok(()) } else { Err(format!("{:?}", listed())) }
        });
    }
    assert!(failed(&closed).is_none(), "{:?}", listed());
    daemon.stop();
}

/// A small file system over a folder, as long as it lives.
struct SmallDisk(CString);

impl SmallDisk {
    /// None where mounting is not allowed.
    fn mount(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let at = CString::new(at.as_os_str().as_bytes()).unwrap();
        let disk = Self(at);
        disk.call(0, size).then_some(disk)
    }

    fn grow(&self, size: &str) {
        assert!(self.call(libc::MS_REMOUNT, size), "{}", std::io::Error::last_os_error());
    }

    fn call(&self, flags: libc::c_ulong, size: &str) -> bool {
        let options = CString::new(format!("size={size},mode=0700")).unwrap();
        // SAFETY: all pointers are to strings with a closing zero that live through the call.
        unsafe {
            libc::mount(c"tmpfs".as_ptr(), self.0.as_ptr(), c"tmpfs".as_ptr(), flags, options.as_ptr().cast()) == 0
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // SAFETY: the pointer is to a string with a closing zero.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Text that does not shrink much when it is compressed.
fn noise(random: &mut Random, words: usize) -> String {
    (0..words).map(|_| format!("{:x} ", random.below(u64::from(u32::MAX)))).collect()
}

#[test]
fn a_full_disk_loses_nothing() {
    let home = Home::bare();
    let mut random = Random::new(11);
    let first = home.write("first.txt", "slate\n");
    let disk = SmallDisk::mount(&home.path, "2m");
    let daemon = match &disk {
        Some(_) => home.serve(["--in".as_ref(), home.docs.as_os_str()]),
        None => {
            println!("SKIPPED: no rights to mount a small disk; a limit on the size of files stands in for it");
            home.start(with_small_files(home.command(["serve".as_ref(), "--in".as_ref(), home.docs.as_os_str()])))
        }
    };
    daemon.expect("slate", &[&first]);
    let many: Vec<PathBuf> =
        (0..60).map(|i| home.write(format!("many/{i}.txt"), format!("granite {}", noise(&mut random, 8000)))).collect();
    eventually("the full disk is told", PATIENCE, || {
        let warnings = daemon.get("/v1/status")["warnings"].to_string();
        if ["full", "disk", "space", "large"].iter().any(|w| warnings.contains(w)) { Ok(()) } else { Err(warnings) }
    });
    // Still there: the daemon, what it had, and the word on what is missing.
    daemon.expect("slate", &[&first]);
    let status = daemon.get("/v1/status");
    assert_ne!(status["state"], "ready", "{status}");
    assert!(status["index"]["documents"].as_u64().unwrap() <= many.len() as u64, "{status}");
    let listed = |d: &crate::harness::Daemon| d.files().len();
    let known = listed(&daemon);
    let daemon = match &disk {
        Some(disk) => {
            disk.grow("200m");
            daemon
        }
        None => {
            daemon.stop();
            home.serve([""; 0])
        }
    };
    eventually("everything is indexed once there is room", PATIENCE, || {
        let status = daemon.get("/v1/status");
        if status["index"]["documents"] == many.len() + 1 { Ok(()) } else { Err(format!("{known} known; {status}")) }
    });
    let mut all: Vec<&Path> = many.iter().map(PathBuf::as_path).collect();
    daemon.expect("slate", &[&first]);
    all.sort();
    let holding = daemon.holding("granite");
    for path in all {
        assert!(holding.iter().any(|p| Path::new(p) == path), "{path:?}");
    }
}

/// Lets no file of the process grow past a mebibyte.
fn with_small_files(mut command: Command) -> Command {
    // SAFETY: between fork and exec only async-signal-safe calls are made: setrlimit and signal are; the limit lives on
    // the stack.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if libc::setrlimit(libc::RLIMIT_FSIZE, &limit) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    command
}
