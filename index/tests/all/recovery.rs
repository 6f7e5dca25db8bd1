//! kill -9 at random instants, many times, then reopen: nothing lost, nothing doubled, at most the work in hand repeated.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use satchel_index::{Error, FilesQuery, Index, Indexer, Mode, State};

use crate::harness::{Bench, PATIENCE, Rng, Words, jail};

const CHILD: &str = "SATCHEL_INDEX_TEST_CHILD";
const FILES: usize = 150;

/// Not a test by itself: the process that is killed. It indexes the folder it is given.
#[test]
fn child_indexes() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let index = Index::open(&std::path::Path::new(&dir).join("index")).unwrap();
    let told = |event| {
        // The parent reads this to kill in the midst of work.
        let _ = writeln!(std::io::stderr(), "{event:?}");
    };
    let indexer = Indexer::start(index, jail(), Some(Words::new()), Box::new(told)).unwrap();
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
