//! The wire as the contract lists it, spoken by the real daemon: names here are golden.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Home, Ran, SOON, eventually, mode};

/// The names of an object's fields.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Whether an object has exactly these fields, besides some optional ones.
fn check(value: &Value, required: &[&str], optional: &[&str]) {
    let found = keys(value);
    for field in required {
        assert!(found.contains(field), "{field} is missing in {value}");
    }
    for field in found {
        assert!(required.contains(&field) || optional.contains(&field), "{field} is new in {value}");
    }
}

/// What a hit may have besides: where it stands in a document of parts, and what that document says of itself.
const HIT_MAY: &[&str] = &["similarity", "coverage", "relevance", "also", "page", "part", "author", "dated"];

const HIT: &[&str] = &[
    "document_id",
    "passage_id",
    "path",
    "title",
    "line_start",
    "line_end",
    "byte_start",
    "byte_end",
    "score",
    "text",
];

#[test]
fn replies_have_the_fields_of_the_contract() {
    let home = Home::new();
    home.write("lease.md", "# Lease\n\nThe landlord is Marta Olsen.\n");
    home.write("photo.jpg", [0xff, 0xd8, 0xff, 0xe0, 0, 1]);
    let daemon = home.daemon();
    check(&daemon.get("/v1/roots"), &["roots"], &[]);
    check(&daemon.get("/v1/roots")["roots"][0], &["path", "state", "files", "pending"], &["reason"]);

    let files = daemon.get("/v1/files?state=&path=");
    check(&files, &["files"], &["next"]);
    for file in files["files"].as_array().unwrap() {
        check(file, &["path", "state", "since", "kind", "bytes", "passages"], &["reason"]);
    }
    let excluded = daemon.get("/v1/files?state=excluded");
    assert_eq!(excluded["files"].as_array().unwrap().len(), 1, "{excluded}");
    assert!(excluded["files"][0]["reason"].is_string(), "{excluded}");

    let search = daemon.post("/v1/search", json!({"query": "landlord", "k": 3, "mode": "hybrid"}));
    check(&search, &["hits", "took_ms", "generation"], &[]);
    check(&search["hits"][0], HIT, HIT_MAY);

    let answer = daemon.post("/v1/ask", json!({"question": "Who is the landlord?", "max_tokens": 40}));
    check(&answer, &["answer", "abstained", "citations", "sources", "timings"], &["withheld"]);
    check(&answer["sources"][0], HIT, HIT_MAY);
    let citation =
        &["n", "document_id", "path", "line_start", "line_end", "quote", "byte_start", "byte_end", "verified"];
    check(&answer["citations"][0], citation, &["page"]);
    let timings = &[
        "retrieve_ms",
        "prefill_ms",
        "first_token_ms",
        "total_ms",
        "prompt_tokens",
        "reused_tokens",
        "generated_tokens",
    ];
    check(&answer["timings"], timings, &[]);

    // After an answer the status knows the model, too.
    let status = daemon.get("/v1/status");
    let parts = &["version", "pid", "state", "model", "embedder", "index", "memory", "kernels", "index_lag_ms"];
    check(&status, parts, &["warnings"]);
    check(&status["model"], &["name", "arch", "quant", "context"], &[]);
    check(&status["embedder"], &["name", "dim"], &[]);
    let index = &["documents", "passages", "pending", "failed", "excluded", "generation", "bytes"];
    check(&status["index"], index, &["locked", "needs_ocr", "empty"]);
    check(&status["memory"], &["budget_bytes", "resident_bytes", "peak_resident_bytes", "kv_bytes"], &[]);
    check(&status["kernels"], &["isa"], &["tensor_types"]);
    assert_eq!((&status["pid"], &status["state"]), (&json!(daemon.pid()), &json!("ready")), "{status}");
    assert_eq!(status["index"]["documents"], 1, "{status}");
    assert!(status["memory"]["kv_bytes"].as_u64().unwrap() > 0, "{status}");

    let path = home.docs.join("lease.md");
    let forgotten = daemon.post("/v1/forget", json!({"path": path.to_str().unwrap()}));
    check(&forgotten, &["path", "documents", "passages", "remaining"], &[]);
    assert_eq!((&forgotten["documents"], &forgotten["remaining"]), (&json!(1), &json!(0)), "{forgotten}");
}

#[test]
fn the_command_line_prints_the_same_objects() {
    let home = Home::bare();
    home.write("a.txt", "quartz\n");
    let daemon = home.daemon();
    let run = |args: &[&str]| -> Ran { home.run(args.iter().chain(&["--json"])).ok() };
    for (command, field) in [("status", "pid"), ("roots", "roots"), ("files", "files")] {
        let printed = run(&[command]).json();
        assert_eq!(keys(&printed), keys(&daemon.get(&format!("/v1/{command}"))), "{printed}");
        assert!(!printed[field].is_null(), "{printed}");
    }
    let found = run(&["search", "quartz"]).json();
    assert_eq!(found["hits"][0]["path"], home.docs.join("a.txt").to_str().unwrap());
    assert_eq!(home.run(["search", "--json", "basalt"]).code, Some(3));
    assert_eq!(run(&["remove", home.docs.to_str().unwrap()]).json()["roots"], json!([]));
    assert_eq!(run(&["add", home.docs.to_str().unwrap()]).json()["roots"].as_array().unwrap().len(), 1);
    let models = run(&["model", "list"]).json();
    check(&models["models"][0], &["name", "role", "licence", "bytes", "installed", "in_use"], &["path", "sha256"]);
    assert!(run(&["doctor"]).json().is_object());
}

#[test]
fn events_tell_the_state_and_the_files() {
    let home = Home::bare();
    let daemon = home.daemon();
    let mut events = daemon.stream("GET", "/v1/events", None);
    let first = events.next().unwrap();
    assert_eq!(first["event"], "state", "{first}");
    let path = home.write("new.txt", "quartz\n");
    let told = events.find(|e| e["event"] == "file").unwrap();
    assert_eq!((&told["file"]["path"], &told["file"]["state"]), (&json!(path.to_str().unwrap()), &json!("indexed")));
    drop(events);
    // The daemon ends while someone follows: the stream ends too.
    let mut events = daemon.stream("GET", "/v1/events", None);
    events.next().unwrap();
    daemon.stop();
    assert!(events.any(|e| e["event"] == "error" && e["error"]["code"] == "cancelled"));
}

#[test]
fn only_the_user_may_open_the_socket_and_it_is_gone_with_the_daemon() {
    let home = Home::bare();
    let daemon = home.serve([""; 0]);
    let folder: &Path = daemon.socket.parent().unwrap();
    assert_eq!((mode(&daemon.socket), mode(folder)), (0o600, 0o700));
    let socket = daemon.socket.clone();
    daemon.stop();
    eventually("the socket is gone", SOON, || if socket.exists() { Err("there".to_owned()) } else { Ok(()) });
}
