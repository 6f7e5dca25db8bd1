//! Another embedder takes over: the one before serves until everything is embedded anew.

use serde_json::{Value, json};

use crate::harness::{Daemon, EMBEDDER, Home, PATIENCE, eventually};

/// The other test embedder.
const OTHER: &str = "multilingual-e5-small";
const FILES: usize = 60;

fn filled() -> Home {
    let home = Home::new();
    for i in 0..FILES {
        let more = "The boat was painted in spring and launched before the first warm weekend. ".repeat(i % 8);
        home.write(format!("note{i}.txt"), format!("Note {i} on the harbour: the ferry leaves at dawn. {more}\n"));
    }
    home
}

/// How many files a search by meaning finds.
fn by_meaning(daemon: &Daemon) -> usize {
    let found = daemon.post("/v1/search", json!({"query": "when does the ship sail?", "mode": "vector", "k": 200}));
    let mut paths: Vec<&str> = found["hits"].as_array().unwrap().iter().map(|h| h["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.len()
}

fn warnings(status: &Value) -> String {
    status["warnings"].to_string()
}

#[test]
fn the_embedder_before_serves_until_everything_is_embedded_anew() {
    let home = filled();
    let daemon = home.daemon();
    assert_eq!(by_meaning(&daemon), FILES);
    daemon.stop();
    home.install(&[OTHER]);
    home.run(["model", "use", OTHER]).ok();
    let daemon = home.serve([""; 0]);
    let mut told = false;
    eventually("the other embedder has embedded everything", PATIENCE, || {
        let status = daemon.get("/v1/status");
        told |= warnings(&status).contains(&format!("goes by {EMBEDDER}"));
        // From the moment that an embedder is there, one that serves is there.
        if status["embedder"]["name"] == OTHER {
            assert_eq!(by_meaning(&daemon), FILES, "{status}");
        }
        let changing = warnings(&status).contains("goes by");
        let done = status["embedder"]["name"] == OTHER && status["index"]["pending"] == 0 && !changing;
        if done { Ok(()) } else { Err(status.to_string()) }
    });
    assert!(told, "it was not told that the one before serves");
    assert_eq!(by_meaning(&daemon), FILES);
}

#[test]
fn where_the_model_before_is_gone_words_serve_and_it_is_told() {
    let home = filled();
    home.daemon().stop();
    home.install(&[OTHER]);
    home.run(["model", "use", OTHER]).ok();
    for end in ["gguf", "json"] {
        std::fs::remove_file(home.path.join(format!("models/{EMBEDDER}.{end}"))).unwrap();
    }
    let daemon = home.serve([""; 0]);
    let mut told = false;
    eventually("the other embedder has embedded everything", PATIENCE, || {
        let status = daemon.get("/v1/status");
        told |= warnings(&status).contains(&format!("{EMBEDDER}, is gone"));
        assert_eq!(daemon.holding("ferry").len(), FILES);
        let done =
            status["embedder"]["name"] == OTHER && status["index"]["pending"] == 0 && by_meaning(&daemon) == FILES;
        if done { Ok(()) } else { Err(status.to_string()) }
    });
    assert!(told, "it was not told that the one before is gone");
}
