//! One embedder takes over from another: the old one serves until then, and a kill at any moment costs no more than a batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use satchel_index::{Embedder, Index, Mode, Query, State};

use crate::harness::{Bench, Rng, Words, jail};

fn hits(index: &Index, words: &str, embedder: &dyn Embedder) -> usize {
    let query = Query { mode: Mode::Vector, ..Query::new(words, 1000) };
    index.search(&query, Some(embedder)).unwrap().hits.len()
}

fn filled(files: usize) -> Bench {
    let mut bench = Bench::new();
    for i in 0..files {
        bench.write(&format!("f{i}.txt"), format!("a capybara swims in river {i}, and word{i} is its own"));
    }
    bench.start();
    bench
}

fn change_to(bench: &Bench, new: &Arc<Words>, serve_on: bool) {
    let new: Arc<dyn Embedder> = new.clone();
    bench.indexer.as_ref().unwrap().set_embedder(new, serve_on).unwrap();
}

#[test]
fn the_old_one_serves_until_all_is_embedded_anew() {
    const FILES: usize = 40;
    let bench = filled(FILES);
    let (old, new) = (Arc::clone(&bench.embedder), Words::named("new words", 96));
    let indexer = bench.indexer.as_ref().unwrap();
    indexer.pause();
    change_to(&bench, &new, true);
    assert_eq!(hits(&bench.index, "capybara", old.as_ref()), FILES);
    assert_eq!(hits(&bench.index, "capybara", new.as_ref()), 0, "vectors of two models never mix");
    assert_eq!(bench.index.serving_embedder().unwrap().as_deref(), Some("words"));
    let counts = bench.index.counts().unwrap();
    assert_eq!((counts.unembedded, counts.pending), (FILES as u64, FILES as u64), "{counts:?}");
    indexer.resume();
    bench.until("the new one serves", |b| {
        // At no moment is there neither.
        let serving = b.index.serving_embedder().unwrap();
        let found = hits(&b.index, "capybara", old.as_ref()) + hits(&b.index, "capybara", new.as_ref());
        assert!(found >= FILES || b.index.serving_embedder().unwrap() != serving, "{found} hits");
        serving.as_deref() == Some("new words")
    });
    bench.settle();
    assert_eq!(hits(&bench.index, "capybara", new.as_ref()), FILES);
    assert_eq!(hits(&bench.index, "capybara", old.as_ref()), 0);
    assert_eq!(new.embedded.load(Ordering::Relaxed), FILES, "each passage is embedded once");
    assert_eq!(bench.index.counts().unwrap().indexed, FILES as u64);
}

#[test]
fn what_is_written_and_removed_meanwhile_is_in_step() {
    let mut bench = filled(6);
    let new = Words::named("new words", 96);
    bench.indexer.as_ref().unwrap().pause();
    change_to(&bench, &new, true);
    std::fs::remove_file(bench.path("f0.txt")).unwrap();
    std::fs::rename(bench.path("f1.txt"), bench.path("moved.txt")).unwrap();
    bench.write("f2.txt", "an okapi instead");
    bench.write("later.txt", "a later capybara");
    bench.indexer.as_ref().unwrap().resume();
    bench.until("the new one serves", |b| b.index.serving_embedder().unwrap().as_deref() == Some("new words"));
    bench.until("the later file is there", |b| b.state("later.txt") == Some(State::Indexed));
    bench.until("the moved file is there", |b| b.state("moved.txt") == Some(State::Indexed));
    bench.settle();
    bench.embedder = new;
    let mut found = bench.find_by("capybara", Mode::Vector);
    found.sort();
    assert_eq!(found, ["f2.txt", "f3.txt", "f4.txt", "f5.txt", "later.txt", "moved.txt"]);
    assert_eq!(bench.find_by("an okapi instead", Mode::Vector)[0], "f2.txt");
    assert_eq!(bench.index.counts().unwrap().unembedded, 0);
    // Nothing is left of it: the next life has nothing to do.
    bench.stop();
    let before = bench.embedder.embedded.load(Ordering::Relaxed);
    bench.start();
    assert_eq!(bench.embedder.embedded.load(Ordering::Relaxed), before);
}

#[test]
fn a_stop_in_between_goes_on_where_it_was() {
    let mut bench = filled(30);
    let (old, new) = (Arc::clone(&bench.embedder), Words::named("new words", 96));
    let indexer = bench.indexer.as_ref().unwrap();
    indexer.pause();
    change_to(&bench, &new, true);
    bench.stop();
    drop(bench.indexer.take());
    bench.index = reopened(&bench);
    assert_eq!(hits(&bench.index, "capybara", old.as_ref()), 30);
    let indexer = satchel_index::Indexer::start(bench.index.clone(), jail(), None, Box::new(|_| {})).unwrap();
    let coming: Arc<dyn Embedder> = new.clone();
    indexer.set_embedder(coming, true).unwrap();
    bench.indexer = Some(indexer);
    bench.settle();
    assert_eq!(hits(&bench.index, "capybara", new.as_ref()), 30);
    assert_eq!(new.embedded.load(Ordering::Relaxed), 30);
}

/// The index closed and opened anew.
fn reopened(bench: &Bench) -> Index {
    let dir = bench.dir.path().join("index");
    let copy = bench.dir.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in ["index.sqlite", "index.sqlite-wal"] {
        if dir.join(file).exists() {
            std::fs::copy(dir.join(file), copy.join(file)).unwrap();
        }
    }
    Index::open(&copy).unwrap()
}

#[test]
fn back_to_the_old_one_costs_nothing() {
    let bench = filled(5);
    let (old, new) = (Arc::clone(&bench.embedder), Words::named("new words", 96));
    bench.indexer.as_ref().unwrap().pause();
    change_to(&bench, &new, true);
    change_to(&bench, &old, true);
    bench.indexer.as_ref().unwrap().resume();
    bench.settle();
    assert_eq!((hits(&bench.index, "capybara", old.as_ref()), old.embedded.load(Ordering::Relaxed)), (5, 5));
    assert_eq!((bench.index.counts().unwrap().indexed, new.embedded.load(Ordering::Relaxed)), (5, 0));
}

#[test]
fn back_to_the_old_one_half_way_embeds_what_it_lacks() {
    const FILES: usize = 60;
    let bench = filled(FILES);
    let old = Arc::clone(&bench.embedder);
    let slow = Words { delay: Duration::from_millis(30), ..Arc::into_inner(Words::named("new words", 96)).unwrap() };
    change_to(&bench, &Arc::new(slow), true);
    bench.write("later.txt", "a later capybara");
    bench.until("the later file is embedded with the new one", |b| b.state("later.txt") == Some(State::Indexed));
    change_to(&bench, &old, true);
    bench.until("the later file is there", |b| hits(&b.index, "capybara", old.as_ref()) == FILES + 1);
    bench.settle();
    let counts = bench.index.counts().unwrap();
    assert_eq!((counts.indexed, counts.unembedded), (FILES as u64 + 1, 0));
    assert_eq!(bench.index.serving_embedder().unwrap().as_deref(), Some("words"));
}

#[test]
fn without_the_old_one_words_find_at_once_and_meaning_by_and_by() {
    let bench = filled(5);
    let new = Words::named("new words", 96);
    bench.indexer.as_ref().unwrap().pause();
    change_to(&bench, &new, false);
    assert_eq!(bench.find("capybara").len(), 5);
    assert_eq!(hits(&bench.index, "capybara", bench.embedder.as_ref()), 0);
    bench.indexer.as_ref().unwrap().resume();
    bench.settle();
    assert_eq!(hits(&bench.index, "capybara", new.as_ref()), 5);
}

#[test]
fn nothing_is_left_of_what_is_forgotten_meanwhile() {
    let mut bench = Bench::new();
    // Alike in nothing but one word: vectors of like texts share bytes here, which proves nothing.
    let mut rng = Rng(3);
    for i in 0..5 {
        let words: String = (0..60).map(|_| format!("w{} ", rng.below(100_000))).collect();
        bench.write(&format!("f{i}.txt"), format!("capybara {words}"));
    }
    bench.start();
    let new = Words::named("new words", 96);
    bench.indexer.as_ref().unwrap().pause();
    change_to(&bench, &new, true);
    assert_eq!(bench.index.forget(&bench.path("f3.txt")).unwrap().vectors, 1);
    bench.indexer.as_ref().unwrap().resume();
    bench.until("the new one serves", |b| b.index.serving_embedder().unwrap().as_deref() == Some("new words"));
    assert_eq!(hits(&bench.index, "capybara", new.as_ref()), 4);
    assert_eq!(bench.index.forget(&bench.path("f4.txt")).unwrap().vectors, 1);
}

#[test]
fn passages_too_long_for_the_new_one_are_cut_anew() {
    let mut bench = Bench::new();
    let long: String = (0..40).map(|i| format!("Sentence {i} has just a few of these words.\n\n")).collect();
    bench.write("long.txt", &long);
    bench.start();
    let passages = bench.index.counts().unwrap().passages;
    let new = Words::with_window("new words", 96, 40);
    change_to(&bench, &new, true);
    bench.until("it is cut smaller", |b| b.index.counts().unwrap().passages > passages * 3);
    bench.settle();
    assert!(hits(&bench.index, "sentence 7", new.as_ref()) as u64 > passages * 3);
    assert_eq!(bench.index.counts().unwrap().unembedded, 0);
}
