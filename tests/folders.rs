//! Folders as they come: odd names, links out of them, files that are none, and changes while they are read.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Daemon, Home, PATIENCE, SOON, eventually, is_root};
use crate::jail::shared;

/// How long files are changed.
const CHURN_SECONDS: u64 = 5;
/// Longest wait for any answer meanwhile.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Words that the generator put into one file each.
const MARKS: &[&str] = &[
    "newline",
    "tab",
    "quote",
    "backslash",
    "dash",
    "space",
    "dots",
    "glob",
    "percent",
    "sql",
    "html",
    "ansi",
    "emoji",
    "rlo",
    "badutf8",
    "sjis",
    "nfc",
    "nfd",
    "case1",
    "case2",
    "con",
    "nul",
    "noext",
    "manydots",
    "255",
    "cjk255",
    "link-target",
    "deep300",
    "path8000",
    "1901",
    "wide-4999",
];

/// All that is below a folder, with sizes and times. `find`, because paths may be longer than one call takes.
fn listing(folder: &Path) -> String {
    let mut find = Command::new("find");
    find.arg(folder).args(["-xdev", "-printf", "%p %y %s %T@ %C@\\0"]);
    String::from_utf8_lossy(&find.output().unwrap().stdout).into_owned()
}

fn all_have_an_end(daemon: &Daemon) {
    for file in daemon.files() {
        let known = ["indexed", "failed", "empty", "excluded"].contains(&file["state"].as_str().unwrap());
        let told = file["state"] == "indexed" || file["reason"].as_str().is_some_and(|r| r.len() > 8);
        assert!(known && told, "{file}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_of_odd_names_links_and_special_files_is_read_and_nothing_beside_it() {
    let Some(generator) = shared("corpus/hostile/make_fs.sh") else { return };
    let home = Home::bare();
    let strange = home.docs.join("strange");
    let made = Command::new("bash").arg(generator).arg(&strange).stdout(Stdio::null()).status().unwrap();
    assert!(made.success(), "the generator failed");
    let before = listing(&home.docs);
    let daemon = home.daemon();
    for mark in MARKS {
        let found = daemon.holding(&format!("marker-{mark}"));
        assert_eq!(found.len(), 1, "marker-{mark}: {found:?}");
    }
    // A hard link and a copy are files of their own.
    assert_eq!(daemon.holding("marker-plain").len(), 3);
    // Behind links, in folders of programs, and what this user may not read.
    assert!(daemon.holding("root:x:0:0").is_empty() && daemon.holding("litter").is_empty());
    let state = |name: &str| daemon.file(&strange.join(name)).map(|f| f["state"].as_str().unwrap().to_owned());
    let readable = is_root();
    for (name, wanted) in [
        ("sparse_1T.txt", Some("failed")),
        ("sparse_64G.pdf", Some("failed")),
        ("random.txt", Some("excluded")),
        ("empty.txt", Some("empty")),
        ("noread.txt", Some(if readable { "indexed" } else { "failed" })),
        ("nodir", if readable { None } else { Some("failed") }),
        ("fifo.txt", None),
        ("socket.txt", None),
        ("device_zero.txt", None),
        ("link_to_file.txt", None),
        ("links/zero.txt", None),
    ] {
        assert_eq!(state(name).as_deref(), wanted, "{name}");
    }
    all_have_an_end(&daemon);
    daemon.stop();
    assert!(listing(&home.docs) == before, "the folder was changed");
    let beside: BTreeSet<_> =
        fs::read_dir(home.docs.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(beside, BTreeSet::from([home.docs.clone(), home.path.clone()]));
    // So that it can be removed.
    for name in ["nodir", "noexec"] {
        fs::set_permissions(strange.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn files_that_change_while_they_are_read_are_followed_to_their_last_state() {
    let Some(churn) = shared("corpus/hostile/churn.sh") else { return };
    let home = Home::bare();
    let daemon = home.daemon();
    let mut churn = Command::new("bash")
        .arg(churn)
        .arg(&home.docs)
        .arg(CHURN_SECONDS.to_string())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the end of the changes", Duration::from_secs(CHURN_SECONDS) + PATIENCE, || {
        let asked = Instant::now();
        daemon.get("/v1/status");
        assert!(asked.elapsed() < ANSWER_MAX, "an answer took {:?}", asked.elapsed());
        churn.try_wait().unwrap().ok_or_else(|| "files are still changed".to_owned())
    });
    daemon.expect("marker-churn-final", &[&home.docs.join("final.txt")]);
    for name in ["rewritten.txt", "atomic.txt", "moved_a.txt", "dir_b/f.txt"] {
        let path = home.docs.join(name);
        let last = fs::read_to_string(&path).unwrap();
        eventually(&format!("the last of {name}"), SOON, || {
            let found = daemon.holding(last.trim());
            if found == [path.to_str().unwrap()] { Ok(()) } else { Err(format!("{last} in {found:?}")) }
        });
    }
    // Hidden files are what an editor was about to save.
    let on_disk: BTreeSet<String> = listing(&home.docs)
        .split('\0')
        .filter_map(|line| line.split_once(" f ").map(|(path, _)| path.to_owned()))
        .filter(|path| !path.contains("/."))
        .collect();
    eventually("the list is that of the folder", SOON, || {
        let known: BTreeSet<String> = daemon.files().iter().map(|f| f["path"].as_str().unwrap().to_owned()).collect();
        if known == on_disk { Ok(()) } else { Err(format!("{:?}", known.symmetric_difference(&on_disk))) }
    });
    daemon.settled();
    all_have_an_end(&daemon);
    daemon.stop();
}
