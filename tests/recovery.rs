//! Daemons killed while they index. A file is then the old one or the new one, never half, never twice, and what was done
//! is not done again.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Daemon, EMBEDDER, Home, PATIENCE, Random, eventually};

const ROUNDS: u64 = 15;
const FILES: usize = 60;
/// A run is replayed by its seed, as far as the scheduler lets it.
const SEED: u64 = 20_261_201;

/// Documents that hold a word: path to the ids of their passages. Ids are never given twice, so a document that was
/// stored again has other ones.
type Holding = BTreeMap<String, Vec<i64>>;

/// The documents of one round's texts.
fn holding(daemon: &Daemon, round: u64) -> Holding {
    let word = word(round);
    let found = daemon.post("/v1/search", json!({"query": word, "mode": "lexical", "k": 200}));
    let mut documents = Holding::new();
    for hit in found["hits"].as_array().unwrap() {
        assert!(hit["text"].as_str().unwrap().contains(&word), "{hit}");
        let ids = documents.entry(hit["path"].as_str().unwrap().to_owned()).or_default();
        ids.push(hit["passage_id"].as_i64().unwrap());
        ids.sort_unstable();
    }
    documents
}

/// A word that only the texts of one round hold; no language's endings are taken off it.
fn word(round: u64) -> String {
    let letter = char::from(b'a' + u8::try_from(round).unwrap());
    format!("zq{letter}{letter}xk")
}

fn write_all(home: &Home, round: u64) -> Vec<PathBuf> {
    let text = |i: usize| format!("Report {i} of {}.\n\n{}", word(round), "The river rose and fell again. ".repeat(6));
    (0..FILES).map(|i| home.write(format!("folder{}/report{i}.txt", i % 7), text(i))).collect()
}

#[test]
fn a_killed_daemon_loses_nothing_doubles_nothing_and_repeats_at_most_one_file() {
    let home = Home::bare();
    home.install(&[EMBEDDER]);
    let mut random = Random::new(SEED);
    // The embedder is there before the first file: what was cut without one is cut anew, and rightly so.
    let mut daemon = home.daemon();
    let mut names = Vec::new();
    let mut amidst = 0;
    for round in 0..ROUNDS {
        println!("seed {SEED}, round {round}");
        let paths = write_all(&home, round);
        names = paths.iter().map(|p| p.to_str().unwrap().to_owned()).collect();
        names.sort();
        let before = watch_until_random_instant(&daemon, round, &mut random);
        daemon.kill();

        daemon = home.serve([""; 0]);
        // At once, before the rest is indexed: each file is the old one or the new one.
        let new = holding(&daemon, round);
        amidst += usize::from(new.len() < FILES);
        if round > 0 {
            for path in holding(&daemon, round - 1).keys() {
                // Between the two searches a file may have become new, never the other way.
                assert!(!new.contains_key(path), "round {round}: {path} is found with both of its texts");
            }
        }
        daemon.settled();
        check_settled(&daemon, round, &names);
        let after = holding(&daemon, round);
        let repeated: Vec<&String> =
            before.iter().filter(|(path, ids)| after.get(*path) != Some(ids)).map(|(p, _)| p).collect();
        assert!(repeated.len() <= 1, "round {round}: stored again: {repeated:?}");
    }
    assert!(amidst >= ROUNDS as usize / 3, "only {amidst} of {ROUNDS} kills came while files were being indexed");
    // The files themselves were only read.
    for path in &names {
        assert!(fs::read_to_string(path).unwrap().contains(&word(ROUNDS - 1)));
    }
}

/// Polls until a random number of the round's files is in the index, then a few times more. Gives what was seen last.
fn watch_until_random_instant(daemon: &Daemon, round: u64, random: &mut Random) -> Holding {
    let enough = random.below(FILES as u64) as usize;
    let mut seen = eventually("the index advances", PATIENCE, || match holding(daemon, round) {
        found if found.len() >= enough => Ok(found),
        found => Err(format!("{} of {enough} files", found.len())),
    });
    for _ in 0..random.below(4) {
        seen = holding(daemon, round);
    }
    seen
}

/// Every file is in the index once, with its text of this round alone.
fn check_settled(daemon: &Daemon, round: u64, names: &[String]) {
    let found = holding(daemon, round);
    assert!(found.keys().eq(names), "round {round}: {:?}", found.keys());
    assert!(found.values().all(|ids| ids.len() == 1), "round {round}: passages twice: {found:?}");
    if round > 0 {
        assert_eq!(holding(daemon, round - 1), Holding::new(), "round {round}: old texts");
    }
    let files: Vec<Value> = daemon.files();
    assert_eq!(files.len(), FILES);
    assert!(files.iter().all(|f| f["state"] == "indexed" && f["passages"] == 1), "round {round}: {files:?}");
    let index = &daemon.get("/v1/status")["index"];
    assert_eq!((&index["documents"], &index["passages"], &index["pending"]), (&json!(FILES), &json!(FILES), &json!(0)));
    // By their meaning they are found too: every passage has its vector.
    let near = daemon.post("/v1/search", json!({"query": "water level", "mode": "vector", "k": 200}));
    assert_eq!(near["hits"].as_array().unwrap().len(), FILES, "round {round}");
}

#[test]
fn a_daemon_killed_in_the_middle_of_an_answer_leaves_everything_usable() {
    let home = Home::new();
    let file = home.write("lease.md", "The landlord is Marta Olsen.\n");
    let daemon = home.daemon();
    let body = json!({"question": "Who is the landlord?", "stream": true});
    let mut events = daemon.stream("POST", "/v1/ask", Some(&body));
    assert_eq!(events.next().unwrap()["event"], "sources");
    daemon.kill();
    assert!(events.all(|e| e["event"] != "done"));
    // The socket that the dead one left is no hindrance.
    let daemon = home.serve([""; 0]);
    daemon.settled();
    daemon.expect("Marta", &[&file]);
    let answer = home.run(["ask", "--short", "Who is the landlord?"]).ok();
    assert!(answer.out.contains("Marta Olsen"), "{answer:?}");
}
