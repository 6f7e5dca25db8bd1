//! Changes of files are reflected in searches, by the watcher alone: no rescan is asked for.

use std::sync::atomic::Ordering;

use satchel_index::{Freshness, Mode, Query, State};

use crate::harness::Bench;

#[test]
fn create_edit_and_delete() {
    let mut bench = Bench::new();
    bench.write("old.txt", "walrus");
    bench.start();
    assert_eq!(bench.find("walrus"), ["old.txt"]);
    bench.write("new.txt", "narwhal");
    bench.until("a new file is found", |b| b.find("narwhal") == ["new.txt"]);
    bench.write("new.txt", "dugong");
    bench.until("an edit is found", |b| b.find("dugong") == ["new.txt"] && b.find("narwhal").is_empty());
    std::fs::remove_file(bench.path("new.txt")).unwrap();
    bench.until("a deleted file is gone", |b| b.find("dugong").is_empty() && b.file("new.txt").is_none());
    assert_eq!(bench.find("walrus"), ["old.txt"]);
}

#[test]
fn save_by_rename() {
    let mut bench = Bench::new();
    bench.write("letter.txt", "first draft");
    bench.start();
    bench.write(".letter.txt.new", "second version");
    std::fs::rename(bench.path(".letter.txt.new"), bench.path("letter.txt")).unwrap();
    bench.until("the saved version is found", |b| b.find("second") == ["letter.txt"] && b.find("draft").is_empty());
}

#[test]
fn a_moved_file_keeps_its_vectors() {
    let mut bench = Bench::new();
    bench.write("a.txt", "the manatee eats sea grass");
    bench.start();
    let before = bench.embedder.embedded.load(Ordering::Relaxed);
    std::fs::rename(bench.path("a.txt"), bench.path("b.txt")).unwrap();
    bench.until("the new name is indexed and the old one gone", |b| {
        b.state("b.txt") == Some(State::Indexed) && b.file("a.txt").is_none()
    });
    assert_eq!(bench.find_by("manatee", Mode::Vector), ["b.txt"]);
    assert_eq!(bench.embedder.embedded.load(Ordering::Relaxed), before, "nothing was embedded again");
}

#[test]
fn an_edit_embeds_only_what_changed() {
    let mut bench = Bench::new();
    let part = |word: &str| format!("# {word}\n\n{}\n\n", format!("{word} fills this part of the text. ").repeat(30));
    bench.write("long.md", [part("one"), part("two"), part("three")].concat());
    bench.start();
    let before = bench.embedder.embedded.load(Ordering::Relaxed);
    bench.write("long.md", [part("one"), part("changed"), part("three")].concat());
    bench
        .until("the edit is embedded", |b| !b.find("changed").is_empty() && b.state("long.md") == Some(State::Indexed));
    let passages = bench.file("long.md").unwrap().passages as usize;
    let again = bench.embedder.embedded.load(Ordering::Relaxed) - before;
    assert!(again >= 1 && again <= passages / 3 + 1, "{again} of {passages} passages were embedded again");
}

#[test]
fn folders_are_renamed_and_filled() {
    let mut bench = Bench::new();
    bench.write("in/deep/x.txt", "octopus");
    bench.start();
    std::fs::rename(bench.path("in"), bench.path("out")).unwrap();
    bench.until("files have the folder's new name", |b| b.find("octopus") == ["out/deep/x.txt"]);
    bench.write("out/deep/y.txt", "cuttlefish");
    bench.until("the renamed folder is still watched", |b| b.find("cuttlefish") == ["out/deep/y.txt"]);
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    bench.until("all of it is gone", |b| b.find("octopus cuttlefish").is_empty());
    bench.write("out/deep/y.txt", "squid");
    bench.until("a folder of the old name is watched anew", |b| b.find("squid") == ["out/deep/y.txt"]);
}

#[test]
fn a_file_becomes_a_folder_and_back() {
    let mut bench = Bench::new();
    bench.write("flip", "beaver");
    bench.start();
    std::fs::remove_file(bench.path("flip")).unwrap();
    bench.write("flip/inner.txt", "otter");
    bench.until("the folder's file is found", |b| b.find("otter") == ["flip/inner.txt"] && b.find("beaver").is_empty());
    std::fs::remove_dir_all(bench.path("flip")).unwrap();
    bench.write("flip", "beaver again");
    bench.until("the file is back", |b| b.find("beaver") == ["flip"] && b.find("otter").is_empty());
}

#[test]
fn ignore_rules_that_change_are_followed() {
    let mut bench = Bench::new();
    bench.write("a.log", "heron");
    bench.start();
    assert_eq!(bench.find("heron"), ["a.log"]);
    bench.write(".satchelignore", "*.log\n");
    bench.until("an ignored file goes", |b| b.find("heron").is_empty());
    std::fs::remove_file(bench.path(".satchelignore")).unwrap();
    bench.until("it comes back", |b| b.find("heron") == ["a.log"]);
}

#[test]
fn a_quote_is_checked_against_the_file() {
    let mut bench = Bench::new();
    bench.write("q.txt", "the exact words of the contract");
    bench.write("legacy.txt", latin1("Die Größe der Straße beträgt fünf Meter, sagt der Prüfer."));
    bench.start();
    let hit = |bench: &Bench, words: &str| bench.index.search(&Query::new(words, 1), None).unwrap().hits.remove(0);
    let (quote, legacy) = (hit(&bench, "contract"), hit(&bench, "Prüfer"));
    assert!(quote.in_file && !legacy.in_file);
    assert_eq!(bench.index.verify(&quote).unwrap(), Freshness::Fresh);
    assert_eq!(bench.index.verify(&legacy).unwrap(), Freshness::Fresh);
    bench.stop();
    bench.write("q.txt", "the exact words of the contract\nand more below");
    assert_eq!(bench.index.verify(&quote).unwrap(), Freshness::Fresh, "the bytes still stand there");
    bench.write("q.txt", "The exact words of the contract");
    assert_eq!(bench.index.verify(&quote).unwrap(), Freshness::Changed);
    std::fs::remove_file(bench.path("q.txt")).unwrap();
    assert_eq!(bench.index.verify(&quote).unwrap(), Freshness::Gone);
    let same = std::fs::read(bench.path("legacy.txt")).unwrap();
    bench.write("legacy.txt", same);
    assert_eq!(bench.index.verify(&legacy).unwrap(), Freshness::Fresh, "touched, but the same content");
    bench.write("legacy.txt", "other");
    assert_eq!(bench.index.verify(&legacy).unwrap(), Freshness::Changed);
}

/// Bytes of a text in Latin-1, which windows-1252 shares for these letters.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}
