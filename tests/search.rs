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
fn phrases_beginnings_and_slips_are_understood_over_the_socket() {
    let home = Home::new();
    let rent = home.write("rent.md", "The notice period is three months. The boiler is the landlord's.\n");
    let note = home.write("note.txt", "A period of notice: a month. Boiling water is in the kitchen.\n");
    let daemon = home.daemon();
    daemon.settled();
    let paths = |query: &str, mode: &str| -> Vec<String> {
        let reply = daemon.post("/v1/search", json!({"query": query, "mode": mode}));
        reply["hits"].as_array().unwrap().iter().map(|h| h["path"].as_str().unwrap().to_owned()).collect()
    };
    let (rent, note) = (rent.to_str().unwrap(), note.to_str().unwrap());
    for mode in ["lexical", "vector", "hybrid"] {
        assert_eq!(paths("\"notice period\"", mode), [rent], "{mode}");
        assert_eq!(paths("\"notice period\" in:nowhere", mode), [""; 0], "{mode}");
    }
    assert_eq!(paths("landlrod", "lexical"), [rent]);
    let mut begun = paths("boil*", "lexical");
    begun.sort();
    assert_eq!(begun, [note, rent]);
    let reply = daemon.post("/v1/search", json!({"query": "boiler zeppelin"}));
    let best = &reply["hits"][0];
    let (coverage, similarity) = (best["coverage"].as_f64().unwrap(), best["similarity"].as_f64().unwrap());
    assert!(coverage > 0.05 && coverage < 0.95, "{best}");
    assert!(similarity > 0.0 && similarity <= 1.0, "{best}");
    let shown = home.run(["search", "\"period of notice\""]).ok();
    assert!(shown.out.contains(note) && !shown.out.contains(rent), "{}", shown.out);
}

#[test]
fn that_nothing_is_relevant_is_told_and_costs_no_answer() {
    let home = Home::new();
    home.write(
        "flat.md",
        "# Lease\n\nThe landlord repairs the boiler. The notice period for the flat is three months.\n",
    );
    let daemon = home.daemon();
    daemon.settled();
    let best = |query: &str| -> f64 {
        let reply = daemon.post("/v1/search", json!({"query": query}));
        let hits = reply["hits"].as_array().unwrap().iter();
        hits.map(|h| h["relevance"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    let about = best("how long is the notice period of the flat?");
    let other = best("which team won the football world cup in 1998?");
    assert!(about > 0.5 && other < 0.05, "{about} {other}");
    let asked = daemon.post("/v1/ask", json!({"question": "Which team won the football world cup in 1998?"}));
    assert_eq!(asked["abstained"], json!(true), "{asked}");
    assert_eq!(asked["timings"]["prompt_tokens"], json!(0), "{asked}");
    let told = home.run(["search", "which team won the football world cup in 1998?"]).ok();
    assert!(told.err.contains("nothing found seems to be about this"), "{}", told.err);
    let quiet = home.run(["search", "notice period of the flat"]).ok();
    assert!(!quiet.err.contains("nothing found"), "{}", quiet.err);
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
