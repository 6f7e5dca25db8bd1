//! Golden JSON: the wire is a contract, so its spelling is pinned here.

use serde_json::json;

use super::*;
use crate::error::{Code, ErrorBody};

#[test]
fn requests_in_their_shortest_form() {
    let search: SearchRequest = serde_json::from_value(json!({"query": "rent"})).unwrap();
    assert_eq!(search, SearchRequest { query: "rent".into(), ..SearchRequest::default() });
    assert_eq!(search.mode, SearchMode::Hybrid);
    let ask: AskRequest = serde_json::from_value(json!({"question": "how much?"})).unwrap();
    assert!(!ask.stream && ask.passages.is_none() && ask.conversation.is_empty());
}

#[test]
fn requests_in_their_longest_form() {
    let value = json!({
        "question": "q", "k": 3, "max_tokens": 64, "stream": true, "deadline_ms": 1500,
        "filter": {"path_prefix": "/a", "kind": "markdown", "after": 1, "before": 2},
        "conversation": [{"role": "user", "text": "u"}, {"role": "assistant", "text": "a"}],
        "passages": ["one", "two"],
    });
    let ask: AskRequest = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(ask.conversation[1].role, Role::Assistant);
    assert_eq!(serde_json::to_value(&ask).unwrap(), value);
}

#[test]
fn a_path_prefix_may_be_one_path_or_several() {
    let read = |value| serde_json::from_value::<Filter>(value).map(|filter| filter.path_prefix);
    assert_eq!(read(json!({"path_prefix": ["/a", "/b"]})).unwrap(), ["/a", "/b"]);
    assert_eq!(read(json!({"path_prefix": "/a"})).unwrap(), ["/a"]);
    assert_eq!(read(json!({"path_prefix": null})).unwrap(), [""; 0]);
    assert!(read(json!({"path_prefix": 3})).unwrap_err().to_string().contains("path_prefix"));
}

#[test]
fn unknown_fields_are_refused_by_name_at_any_depth() {
    for (value, field) in [
        (json!({"question": "q", "strem": true}), "strem"),
        (json!({"question": "q", "filter": {"prefix": "/a"}}), "prefix"),
        (json!({"question": "q", "conversation": [{"role": "user", "text": "u", "at": 1}]}), "at"),
    ] {
        let error = serde_json::from_value::<AskRequest>(value).unwrap_err().to_string();
        assert!(error.contains(&format!("unknown field `{field}`")), "{error}");
    }
}

#[test]
fn events_are_tagged_and_done_is_the_reply() {
    let token = Event::Token { text: "ja".into() };
    assert_eq!(serde_json::to_value(&token).unwrap(), json!({"event": "token", "text": "ja"}));
    let done = Event::Done(Box::new(AskReply { answer: "a".into(), ..AskReply::default() }));
    let value = serde_json::to_value(&done).unwrap();
    assert_eq!(value["event"], "done");
    assert_eq!(value["answer"], "a");
    assert_eq!(value["timings"]["reused_tokens"], 0);
    assert_eq!(serde_json::from_value::<Event>(value).unwrap(), done);
    let error = Event::Error { error: ErrorBody::new(Code::Cancelled, "m") };
    assert_eq!(
        serde_json::to_value(&error).unwrap(),
        json!({"event": "error", "error": {"code": "cancelled", "message": "m"}})
    );
    assert_eq!(serde_json::from_value::<Event>(json!({"event": "moon", "phase": 3})).unwrap(), Event::Unknown);
}

#[test]
fn replies_of_a_newer_daemon_are_read() {
    let status = json!({
        "version": "9", "pid": 1, "state": "dreaming", "model": null, "embedder": {"name": "e", "dim": 384},
        "index": {"documents": 1, "passages": 2, "pending": 0, "failed": 0, "excluded": 0, "generation": 4, "bytes": 5},
        "memory": {"budget_bytes": null, "resident_bytes": 1, "peak_resident_bytes": 2, "kv_bytes": 0},
        "kernels": {"isa": "avx2", "novel": true}, "index_lag_ms": 0, "mood": "good",
    });
    let status: StatusReply = serde_json::from_value(status).unwrap();
    assert_eq!(status.state, DaemonState::Unknown);
    assert_eq!(status.index.locked, 0);
}

#[test]
fn names_and_serde_agree() {
    for state in FileState::ALL {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        assert_eq!(FileState::from_name(state.name()), Some(state));
    }
    for state in [DaemonState::Starting, DaemonState::Downloading, DaemonState::Indexing, DaemonState::Ready] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
    for state in [RootState::Scanning, RootState::Indexing, RootState::Ready, RootState::Unavailable] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
}
