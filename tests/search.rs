//! What may be written into a search: conditions, and whatever a keyboard gives.

use serde_json::json;

use crate::harness::Home;

#[test]
fn conditions_in_the_query_hold_for_searches_and_questions_of_every_client() {
    let home = Home::new();
    let flat = home.write("Flats 2024/lease.md", "The landlord of the flat is Marta Olsen.\n");
    let shed = home.write("sheds/lease.txt", "The landlord of the shed is Erik Holm.\n");
    let daemon = home.daemon();
    daemon.settled();
    let paths = |query: &str| -> Vec<String> {
        let reply = daemon.post("/v1/search", json!({"query": query}));
        reply["hits"].as_array().unwrap().iter().map(|h| h["path"].as_str().unwrap().to_owned()).collect()
    };
    let (flat, shed) = (flat.to_str().unwrap(), shed.to_str().unwrap());
    assert_eq!(paths("landlord").len(), 2);
    assert_eq!(paths("landlord in:sheds"), [shed]);
    assert_eq!(paths("landlord in:\"flats 2024\""), [flat]);
    assert_eq!(paths(&format!("in:\"{}/sheds\" landlord", home.docs.display())), [shed]);
    assert_eq!(paths("type:markdown landlord"), [flat]);
    assert_eq!(paths("landlord after:2001 before:2002"), [""; 0]);
    assert_eq!(paths("landlord after:2001").len(), 2);
    // The client's own filter is never widened by words.
    let within = json!({"path_prefix": home.docs.join("sheds"), "kind": "text"});
    for query in ["landlord type:markdown", "landlord in:\"flats 2024\"", &format!("landlord in:\"{flat}\"")] {
        let reply = daemon.post("/v1/search", json!({"query": query, "filter": within}));
        assert_eq!(reply["hits"], json!([]), "{query}");
    }
    let shown = home.run(["search", "landlord", "in:sheds"]).ok();
    assert!(shown.out.contains(shed) && !shown.out.contains(flat), "{}", shown.out);
    let question = "Who is the landlord?";
    let answer = home.run(["ask", "--short", &format!("{question} in:sheds")]).ok();
    assert!(answer.out.contains("Erik Holm") && !answer.out.contains("Marta"), "{}", answer.out);
    let wrong = home.run(["search", "landlord", "type:pfd"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("kind \"pfd\" is not known") && wrong.err.contains("spreadsheet"), "{}", wrong.err);
}

#[test]
fn whatever_is_asked_gets_an_answer_or_one_clear_error() {
    let home = Home::new();
    home.write("a.md", "A badger (Meles meles) digs; 'setts' -- its burrows -- are old.\n");
    let daemon = home.daemon();
    daemon.settled();
    let long = "x".repeat(10_000);
    let words = "badger ".repeat(1_400);
    for query in [
        "a",
        "獾",
        "🦡",
        "?",
        "?!.,;",
        "\"",
        "\" OR NEAR(",
        "'; DROP TABLE passages; --",
        "text:foo*",
        "^foo {a b}:c",
        "AND OR NOT",
        "\0",
        "bad\0ger",
        "\u{200f}\u{202e}badger",
        "\u{301}\u{301}",
        "%s%n",
        "../../etc/passwd",
        "in:",
        "in:\"",
        "after:",
        "-- -x",
        &long,
        &words,
    ] {
        for mode in ["lexical", "vector", "hybrid"] {
            let (status, reply) = daemon.http("POST", "/v1/search", Some(&json!({"query": query, "mode": mode})));
            assert_eq!(status, 200, "{query:?} {mode}: {reply}");
            assert!(reply["hits"].is_array(), "{query:?} {mode}: {reply}");
        }
    }
    for query in ["", " ", "\n\t"] {
        let (status, reply) = daemon.http("POST", "/v1/search", Some(&json!({"query": query})));
        assert_eq!((status, &reply["error"]["message"]), (400, &json!("the query is empty")), "{query:?}");
    }
    let found = daemon.post("/v1/search", json!({"query": words, "mode": "lexical"}));
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
}
