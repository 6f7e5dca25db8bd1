//! Nothing is left of a forgotten document, and it does not come back.

use satchel_index::{Error, Mode, State};

use crate::harness::{Bench, all_files};

#[test]
fn a_forgotten_document_leaves_no_trace() {
    let mut bench = Bench::new();
    let secret = format!("the passphrase is xylophonequartz {}", "and the vault stands in the cellar. ".repeat(40));
    bench.write("secret.txt", &secret);
    for i in 0..50 {
        bench.write(&format!("other{i}.txt"), format!("an ordinary note {i} about the cellar and the garden"));
    }
    bench.start();
    assert_eq!(bench.find("xylophonequartz"), ["secret.txt"]);
    let report = bench.index.forget(&bench.path("secret.txt")).unwrap();
    assert_eq!(report.documents, 1);
    assert!(report.passages >= 1 && report.vectors == report.passages && report.text_bytes == secret.len() as u64);
    assert!(report.terms >= 2, "{report:?}");
    assert!(report.scanned_bytes > 0);
    assert!(bench.find("xylophonequartz").is_empty());
    assert!(!bench.find_by("passphrase vault cellar", Mode::Vector).contains(&"secret.txt".to_owned()));
    for file in all_files(&bench.dir.path().join("index")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(15).any(|w| w == b"xylophonequartz"), "found in {}", file.display());
    }
    assert_eq!(bench.find("ordinary").len(), 50);
    assert_eq!(bench.index.counts().unwrap().indexed, 50);
}

#[test]
fn it_comes_back_only_when_it_changes() {
    let mut bench = Bench::new();
    bench.write("diary.txt", "armadillo");
    bench.start();
    bench.index.forget(&bench.path("diary.txt")).unwrap();
    let excluded = |b: &Bench| {
        let file = b.file("diary.txt").unwrap();
        file.state == State::Excluded && file.reason.as_deref().is_some_and(|r| r.starts_with("forgotten"))
    };
    assert!(excluded(&bench));
    bench.indexer.as_ref().unwrap().rescan();
    bench.settle();
    assert!(excluded(&bench));
    // Touched, but the same words.
    bench.write("diary.txt", "armadillo");
    bench.write("later.txt", "a file written after it");
    bench.until("the later file is seen", |b| b.state("later.txt") == Some(State::Indexed));
    bench.settle();
    assert!(excluded(&bench) && bench.find("armadillo").is_empty());
    bench.write("diary.txt", "armadillo and pangolin");
    bench.until("the changed file is back", |b| b.find("pangolin") == ["diary.txt"]);
}

#[test]
fn a_folder_is_forgotten_whole() {
    let mut bench = Bench::new();
    bench.write("private/a.txt", "gazelle");
    bench.write("private/sub/b.txt", "gazelle");
    bench.write("private.txt", "gazelle");
    bench.start();
    assert_eq!(bench.index.forget(&bench.path("private")).unwrap().documents, 2);
    assert_eq!(bench.find("gazelle"), ["private.txt"]);
}

#[test]
fn what_is_not_known_cannot_be_forgotten() {
    let bench = Bench::new();
    let error = bench.index.forget(&bench.path("nothing.txt")).unwrap_err();
    assert!(matches!(error, Error::UnknownDocument { .. }), "{error}");
}

#[test]
fn the_file_shrinks_when_much_is_removed() {
    let mut bench = Bench::new();
    let mut rng = crate::harness::Rng(5);
    for i in 0..120 {
        let text: String = (0..2000).map(|_| format!("w{} ", rng.below(100_000))).collect();
        bench.write(&format!("big{i}.txt"), text);
    }
    bench.start();
    bench.until("the log is emptied", |b| log_bytes(b) == 0);
    let full = bench.index.counts().unwrap().bytes;
    for i in 0..120 {
        std::fs::remove_file(bench.path(&format!("big{i}.txt"))).unwrap();
    }
    bench.until("all are gone", |b| b.index.counts().unwrap().documents == 0);
    bench.until("the size returns", |b| b.index.counts().unwrap().bytes < full / 3);
}

#[test]
fn a_hundred_edits_do_not_grow_the_file() {
    let mut bench = Bench::new();
    let mut rng = crate::harness::Rng(9);
    let mut text = || (0..3000).map(|_| format!("w{} ", rng.below(20_000))).collect::<String>();
    for i in 0..20 {
        bench.write(&format!("other{i}.md"), text());
    }
    bench.start();
    let mut sizes = Vec::new();
    for edit in 0..100 {
        bench.write("note.md", format!("edit{edit}x\n\n{}", text()));
        bench.until("the edit is found", |b| b.find(&format!("edit{edit}x")) == ["note.md"]);
        bench.settle();
        sizes.push(bench.index.counts().unwrap().bytes);
    }
    let (early, late) = (*sizes[..20].iter().max().unwrap(), *sizes[80..].iter().max().unwrap());
    assert!(late <= early + early / 20, "{early} bytes during the first edits, {late} during the last");
    assert!(bench.find("edit0x").is_empty());
}

fn log_bytes(bench: &Bench) -> u64 {
    std::fs::metadata(bench.dir.path().join("index/index.sqlite-wal")).map_or(0, |m| m.len())
}
