//! What happens in a folder is seen in the index, without being asked to look.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::harness::{EMBEDDER, Home, SOON, eventually};

/// A home that embeds and does not answer.
fn searching() -> Home {
    let home = Home::bare();
    home.install(&[EMBEDDER]);
    home
}

#[test]
fn created_edited_renamed_moved_and_deleted_files_are_followed() {
    let home = searching();
    let first = home.write("letters/first.txt", "amethyst\n");
    let daemon = home.daemon();
    daemon.expect("amethyst", &[&first]);

    let second = home.write("letters/new/second.md", "# Beryl\n\nberyl\n");
    daemon.expect("beryl", &[&second]);

    fs::write(&first, "citrine\n").unwrap();
    daemon.expect("citrine", &[&first]);
    daemon.expect("amethyst", &[]);

    // As editors save: a new file takes the place of the old one.
    let draft = home.write("letters/.first.txt.swp", "diamond\n");
    fs::rename(&draft, &first).unwrap();
    daemon.expect("diamond", &[&first]);
    daemon.expect("citrine", &[]);

    let renamed = home.docs.join("letters/renamed.txt");
    fs::rename(&first, &renamed).unwrap();
    daemon.expect("diamond", &[&renamed]);

    // A file between folders, then a whole folder.
    fs::create_dir(home.docs.join("archive")).unwrap();
    let moved = home.docs.join("archive/second.md");
    fs::rename(&second, &moved).unwrap();
    daemon.expect("beryl", &[&moved]);
    fs::rename(home.docs.join("archive"), home.docs.join("attic")).unwrap();
    let moved = home.docs.join("attic/second.md");
    daemon.expect("beryl", &[&moved]);
    let inside = home.write("attic/third.txt", "emerald\n");
    daemon.expect("emerald", &[&inside]);

    fs::remove_file(&renamed).unwrap();
    daemon.expect("diamond", &[]);
    fs::remove_dir_all(home.docs.join("attic")).unwrap();
    daemon.expect("beryl", &[]);
    daemon.settled();
    assert_eq!(daemon.files(), [json!(null); 0]);
    assert_eq!(daemon.get("/v1/status")["index"]["passages"], 0);
}

#[test]
fn what_changed_while_no_daemon_ran_is_found_at_the_start() {
    let home = searching();
    let (kept, gone, edited) =
        (home.write("kept.txt", "jade\n"), home.write("gone.txt", "onyx\n"), home.write("edited.txt", "opal\n"));
    let daemon = home.daemon();
    daemon.expect("onyx", &[&gone]);
    let kept_before = daemon.file(&kept).unwrap();
    daemon.stop();
    fs::remove_file(&gone).unwrap();
    fs::write(&edited, "pearl\n").unwrap();
    let new = home.write("sub/new.txt", "topaz\n");
    let daemon = home.serve([""; 0]);
    for (word, paths) in
        [("jade", vec![&kept]), ("onyx", vec![]), ("opal", vec![]), ("pearl", vec![&edited]), ("topaz", vec![&new])]
    {
        daemon.expect(word, &paths.iter().map(|p| p.as_path()).collect::<Vec<_>>());
    }
    daemon.settled();
    assert_eq!(daemon.file(&kept).unwrap(), kept_before);
}

#[test]
fn a_root_that_is_not_there_keeps_its_documents() {
    let home = searching();
    let file = home.write("disk/a.txt", "granite\n");
    let disk = home.docs.join("disk");
    let away = home.docs.join("away");
    let daemon = home.serve(["--in".as_ref(), disk.as_os_str()]);
    daemon.settled();
    fs::rename(&disk, &away).unwrap();
    let root = || daemon.get("/v1/roots")["roots"][0].clone();
    eventually("the root is unavailable", SOON, || match root() {
        root if root["state"] == "unavailable" => Ok(()),
        root => Err(root.to_string()),
    });
    assert!(root()["reason"].as_str().unwrap().contains("not there"), "{}", root());
    daemon.expect("granite", &[&file]);
    assert_eq!(daemon.file(&file).unwrap()["state"], "indexed");
    // The same after a restart, and an empty mount point is no deletion either.
    daemon.stop();
    fs::create_dir(&disk).unwrap();
    let daemon = home.serve([""; 0]);
    let root = || daemon.get("/v1/roots")["roots"][0].clone();
    eventually("the root is unavailable", SOON, || match root() {
        root if root["state"] == "unavailable" => Ok(()),
        root => Err(root.to_string()),
    });
    daemon.expect("granite", &[&file]);
    daemon.stop();
    fs::remove_dir(&disk).unwrap();
    fs::rename(&away, &disk).unwrap();
    let daemon = home.serve([""; 0]);
    daemon.settled();
    daemon.expect("granite", &[&file]);
    fs::remove_file(&file).unwrap();
    daemon.expect("granite", &[]);
}

#[test]
fn links_that_leave_the_root_are_not_followed() {
    let home = searching();
    let outside = home.beside("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "obsidian\n").unwrap();
    let inside = home.write("inside.txt", "basalt\n");
    symlink(&outside, home.docs.join("folder")).unwrap();
    symlink(outside.join("secret.txt"), home.docs.join("file.txt")).unwrap();
    symlink("/", home.docs.join("everything")).unwrap();
    let daemon = home.daemon();
    daemon.expect("basalt", &[&inside]);
    assert_eq!(daemon.holding("obsidian"), [""; 0]);
    assert_eq!(daemon.files().len(), 1, "{:?}", daemon.files());
    // A file that becomes a link out of the root is gone.
    fs::remove_file(&inside).unwrap();
    symlink(outside.join("secret.txt"), &inside).unwrap();
    daemon.expect("basalt", &[]);
    daemon.settled();
    assert_eq!(daemon.holding("obsidian"), [""; 0]);
}

#[test]
fn a_forgotten_document_stays_forgotten_until_it_changes() {
    let home = searching();
    let diary = home.write("diary.txt", "malachite\n");
    let other = home.write("other.txt", "marble\n");
    let daemon = home.daemon();
    daemon.expect("malachite", &[&diary]);
    let forgot = home.run(["forget", "--json", diary.to_str().unwrap()]).ok().json();
    assert_eq!((&forgot["documents"], &forgot["remaining"]), (&json!(1), &json!(0)), "{forgot}");
    assert_eq!(daemon.holding("malachite"), [""; 0]);
    // Nothing of it is left in any file of the home.
    for file in files_below(&home.path) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(9).any(|w| w == b"malachite"), "{file:?} still holds the text");
    }
    daemon.stop();
    let daemon = home.serve([""; 0]);
    daemon.settled();
    daemon.expect("marble", &[&other]);
    assert_eq!(daemon.holding("malachite"), [""; 0]);
    assert_eq!(daemon.file(&diary).unwrap()["state"], "excluded");
    fs::write(&diary, "malachite and more\n").unwrap();
    daemon.expect("malachite", &[&diary]);
    let unknown = home.run(["forget", "--json", home.docs.join("nosuch.txt").to_str().unwrap()]);
    assert_eq!((unknown.code, &unknown.json()["error"]["code"]), (Some(2), &json!("bad_request")), "{unknown:?}");
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                // The models hold every word; the test is about what was read.
                kind if kind.is_file() && entry.path().extension() != Some("gguf".as_ref()) => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

#[test]
fn a_name_that_is_not_utf8_is_indexed_and_shown_escaped() {
    let home = searching();
    home.write(OsStr::from_bytes(b"caf\xe9.txt"), "feldspar\n");
    let daemon = home.daemon();
    let shown = format!("{}/caf\\xE9.txt", home.docs.display());
    assert_eq!(daemon.holding("feldspar"), std::slice::from_ref(&shown));
    assert_eq!(daemon.files()[0]["path"], shown.as_str());
    let listed = home.run(["files"]).ok();
    assert!(listed.out.contains("caf\\xE9.txt"), "{listed:?}");
    // The name as shown is a name that can be used.
    let forgot = daemon.post("/v1/forget", json!({"path": shown}));
    assert_eq!((&forgot["documents"], &forgot["remaining"]), (&json!(1), &json!(0)), "{forgot}");
    assert_eq!(daemon.holding("feldspar"), [""; 0]);
}

#[test]
fn litter_is_passed_over_and_other_kinds_are_listed() {
    let home = searching();
    let note = home.write("note.txt", "gneiss\n");
    for litter in [".hidden.txt", ".git/config.txt", "node_modules/a/readme.md", "note.txt~", "~$note.docx", "x.tmp"] {
        home.write(litter, "gneiss\n");
    }
    home.write("private/.satchelignore", "*.txt\n");
    home.write("private/plan.txt", "gneiss\n");
    let empty = home.write("empty.txt", "");
    let photo = home.write("photo.jpg", [0xff, 0xd8, 0xff, 0xe0, 0, 1]);
    let daemon = home.daemon();
    daemon.expect("gneiss", &[&note]);
    let mut states: Vec<(String, String)> = daemon
        .files()
        .iter()
        .map(|f| (f["path"].as_str().unwrap().to_owned(), f["state"].as_str().unwrap().to_owned()))
        .collect();
    states.sort();
    let row = |path: &Path, state: &str| (path.to_str().unwrap().to_owned(), state.to_owned());
    assert_eq!(states, [row(&empty, "empty"), row(&note, "indexed"), row(&photo, "excluded")]);
}
