//! The repository itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Longest source file. Most have a third of it; what grows past it is two things.
const LINES_MAX: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().canonicalize().unwrap()
}

/// Files of the repository with one of these endings, build output and hidden folders left out.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && name != "target" && name != "golden" && (!name.starts_with('.') || name == ".ci") {
                folders.push(path);
            } else if kind.is_file() && endings.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no {endings:?} in {:?}", root());
    found
}

#[test]
fn packages_depend_on_each_other_in_one_direction() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let metadata: Value = serde_json::from_slice(&run.stdout).unwrap();
    let mut depends: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if other.starts_with("satchel") {
                depends.entry(name).or_default().insert(other);
            } else if dependency["kind"].is_null() {
                all.entry(name).or_default().insert(other);
            }
        }
        depends.entry(name).or_default();
    }
    let wanted = [
        ("satchel", ["satchel-engine", "satchel-index", "satchel-ipc"].into()),
        ("satchel-engine", BTreeSet::new()),
        ("satchel-index", BTreeSet::new()),
        ("satchel-ipc", BTreeSet::new()),
    ];
    assert_eq!(depends, BTreeMap::from(wanted));
    for synchronous in ["satchel-engine", "satchel-index"] {
        assert!(!all[synchronous].contains("tokio"), "{synchronous} is synchronous");
    }
}

#[test]
fn every_file_of_these_tests_is_a_module_of_main() {
    let main = fs::read_to_string(root().join("tests/main.rs")).unwrap();
    for entry in fs::read_dir(root().join("tests")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|m| *m != "main") {
            assert!(main.lines().any(|line| line == format!("mod {module};")), "tests/{name} is not run");
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut links = 0;
    for page in files(&[".md"]) {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', ' ', '\n']).next().unwrap().trim_matches(['<', '>']);
            let target = target.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            assert!(page.parent().unwrap().join(target).exists(), "{}: {target} is not there", page.display());
        }
        // Paths in code spans are links, too: the pages name files so.
        for span in text.split('`').skip(1).step_by(2).filter(|s| is_path(s)) {
            links += 1;
            assert!(root().join(span).exists(), "{}: {span} is not there", page.display());
        }
    }
    assert!(links > 0, "no page links to anything");
}

/// Whether a code span is a path from the root of the repository: `engine/src/lib.rs`, not a pattern or a command.
fn is_path(span: &str) -> bool {
    let ours = ["daemon/", "engine/", "index/", "ipc/", "tests/", "docs/", ".ci/"];
    ours.iter().any(|folder| span.starts_with(folder)) && !span.contains([' ', '*', '{', '<', '\n', ':'])
}

#[test]
fn source_files_are_short_and_finished() {
    // Put together from two parts, so that this file does not hold them.
    let unfinished = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    for file in files(&[".rs", ".py", ".sh"]) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines > {LINES_MAX}", file.display());
        for (number, line) in text.lines().enumerate() {
            // Only in comments: a format of notes has such words of its own.
            let sign = if file.extension().is_some_and(|e| e == "rs") { "//" } else { "#" };
            let comment = line.split_once(sign).map_or("", |(_, comment)| comment);
            let mark = unfinished.iter().find(|mark| comment.contains(**mark));
            assert!(mark.is_none(), "{}:{}: {line}", file.display(), number + 1);
        }
    }
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let local = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "target-")];
    for file in files(&[".rs", ".md", ".sh", ".py", ".toml"]) {
        let text = fs::read_to_string(&file).unwrap();
        for place in local {
            assert!(!text.contains(place), "{} names {place}", file.display());
        }
    }
}
