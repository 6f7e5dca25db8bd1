//! kill -9 at random instants, many times, then reopen: nothing lost, nothing doubled, at most the work in hand repeated.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use satchel_index::{Embedder, Error, FilesQuery, Index, Indexer, Mode, Query, State};

use crate::harness::{Bench, PATIENCE, Rng, Words, jail};

const CHILD: &str = "SATCHEL_INDEX_TEST_CHILD";
const FILES: usize = 150;
/// Set where the child changes to another embedder.
const CHANGE: &str = "SATCHEL_INDEX_TEST_CHANGE";

/// Not a test by itself: the process that is killed. It indexes the folder it is given.
#[test]
fn child_indexes() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let index = Index::open(&std::path::Path::new(&dir).join("index")).unwrap();
    let told = |event| {
        // The parent reads this to kill in the midst of work.
        let _ = writeln!(std::io::stderr(), "{event:?}");
    };
    let changes = std::env::var(CHANGE).is_ok();
    let first = (!changes).then(|| Words::new() as Arc<dyn Embedder>);
    let indexer = Indexer::start(index, jail(), first, Box::new(told)).unwrap();
    if changes {
        // Slow enough to be killed in the midst of it.
        let slow =
            Words { delay: Duration::from_millis(10), ..Arc::into_inner(Words::named("new words", 96)).unwrap() };
        indexer.set_embedder(Arc::new(slow), true).unwrap();
    }
    assert!(indexer.wait_idle(PATIENCE));
    let _ = writeln!(std::io::stderr(), "done");
    // Killed here at the latest.
    std::thread::sleep(PATIENCE);
}

#[test]
fn killed_at_random_instants() {
    let bench = Bench::new();
    for i in 0..FILES {
        let filler = format!("words of file {i} that go on. ").repeat(30 + i % 50);
        bench.write(&format!("f{i}.md"), format!("# File {i}\n\nunique{i}x\n\n{filler}\n\n## Second\n\n{filler}"));
    }
    let Bench { dir, index, embedder, events, .. } = bench;
    drop(index);
    let mut rng = Rng(41);
    let mut kills = 0;
    let mut known = 0;
    for round in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "recovery::child_indexes", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_millis(5 + rng.below(120) as u64);
        while Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        child.kill().unwrap();
        kills += usize::from(!child.wait().unwrap().success());
        let index = Index::open(&dir.path().join("index")).unwrap();
        let counts = index.counts().unwrap();
        assert!(counts.indexed >= known, "round {round}: {} documents were indexed, then {}", known, counts.indexed);
        known = counts.indexed;
        let listed = index.files(&FilesQuery::default()).unwrap();
        assert!(listed.len() <= FILES && listed.windows(2).all(|w| w[0].path < w[1].path), "round {round}: doubled");
        if round % 3 == 2 {
            // Changed and removed between two lives, too.
            std::fs::write(dir.path().join(format!("files/f{round}.md")), format!("# File\n\nunique{round}x edited\n"))
                .unwrap();
            known = known.saturating_sub(1);
        }
    }
    assert_eq!(kills, 25, "the child ended by itself");
    let index = Index::open(&dir.path().join("index")).unwrap();
    let mut bench = Bench { dir, index, jail: jail(), embedder, events, indexer: None };
    bench.start();
    for i in 0..FILES {
        assert_eq!(bench.find(&format!("unique{i}x")), [format!("f{i}.md")]);
    }
    let counts = bench.index.counts().unwrap();
    assert_eq!((counts.indexed, counts.unembedded, counts.documents), (FILES as u64, 0, FILES as u64));
    let hits = bench.find_by("words of file that go on", Mode::Vector);
    assert!(hits.len() > 1);
    bench.stop();
    // And once it is done, a new life has nothing to do.
    let before = bench.embedder.embedded.load(Ordering::Relaxed);
    let generation = bench.index.counts().unwrap().generation;
    bench.start();
    assert_eq!(bench.embedder.embedded.load(Ordering::Relaxed), before);
    assert_eq!(bench.index.counts().unwrap().generation, generation);
}

#[test]
fn killed_while_the_embedder_changes() {
    let mut bench = Bench::new();
    for i in 0..FILES {
        bench.write(&format!("f{i}.md"), format!("a capybara swims in river {i}. {}", "It goes on. ".repeat(i % 40)));
    }
    bench.start();
    bench.stop();
    let Bench { dir, index, embedder: old, .. } = bench;
    drop(index);
    let new = Words::named("new words", 96);
    let found = |index: &Index, embedder: &Words| {
        let query = Query { mode: Mode::Vector, ..Query::new("capybara", 1000) };
        index.search(&query, Some(embedder)).unwrap().hits.len()
    };
    let (mut rng, mut between) = (Rng(17), 0);
    for round in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "recovery::child_indexes", "--nocapture"])
            .env(CHILD, dir.path())
            .env(CHANGE, "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::park_timeout(Duration::from_millis(5 + rng.below(100) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let index = Index::open(&dir.path().join("index")).unwrap();
        let (by_old, by_new) = (found(&index, &old), found(&index, &new));
        assert_eq!(by_old.max(by_new), FILES, "round {round}: neither serves");
        assert_eq!(by_old.min(by_new), 0, "round {round}: both serve");
        let left = index.counts().unwrap().unembedded;
        between += usize::from(left > 0 && left < FILES as u64);
    }
    assert!(between > 0, "it was never killed in the midst of it");
    let index = Index::open(&dir.path().join("index")).unwrap();
    let indexer = Indexer::start(index.clone(), jail(), None, Box::new(|_| {})).unwrap();
    indexer.set_embedder(new.clone(), true).unwrap();
    assert!(indexer.wait_idle(PATIENCE));
    assert_eq!((found(&index, &old), found(&index, &new)), (0, FILES));
    assert_eq!((index.counts().unwrap().unembedded, index.counts().unwrap().indexed), (0, FILES as u64));
}

#[test]
fn a_second_opening_is_refused() {
    let bench = Bench::new();
    let error = Index::open(&bench.dir.path().join("index")).err().unwrap();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains("another process"));
}

#[test]
fn a_crash_between_text_and_vectors_only_delays_the_vectors() {
    let mut bench = Bench::new();
    bench.write("a.txt", "porcupine");
    let words_only = Indexer::start(bench.index.clone(), jail(), None, Box::new(|_| {})).unwrap();
    assert!(words_only.wait_idle(PATIENCE));
    words_only.shutdown();
    assert_eq!(bench.find("porcupine"), ["a.txt"]);
    assert_eq!((bench.state("a.txt"), bench.index.counts().unwrap().unembedded), (Some(State::Indexed), 1));
    let embedder: Arc<Words> = bench.embedder.clone();
    bench.start();
    assert_eq!(embedder.embedded.load(Ordering::Relaxed), 1);
    assert_eq!(bench.find_by("porcupine", Mode::Vector), ["a.txt"]);
}
