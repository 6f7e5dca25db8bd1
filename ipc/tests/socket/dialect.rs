use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use satchel_ipc::CancelReason;

use crate::harness::{Server, soon};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn call(server: &Server, text: &str) -> Vec<Value> {
    lines(&server.exchange(text.as_bytes()).await)
}

#[tokio::test]
async fn one_line_in_one_line_out_with_the_writer_closed() {
    let server = Server::start();
    // `printf '...\n' | nc -NU`, and the same without the newline.
    for end in ["\n", ""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"search","params":{{"query":"x"}}}}{end}"#);
        let replies = call(&server, &text).await;
        assert_eq!(replies.len(), 1);
        assert_eq!((&replies[0]["id"], &replies[0]["result"]["hits"][0]["text"]), (&json!(1), &json!("x")));
    }
}

#[tokio::test]
async fn every_method_answers_in_order() {
    let server = Server::start();
    let calls = [
        ("status", json!(null)),
        ("search", json!({"query": "q"})),
        ("ask", json!({"question": "hello"})),
        ("roots.add", json!({"path": "/a"})),
        ("roots.list", json!({})),
        ("roots.remove", json!({"path": "/a"})),
        ("files", json!({"state": "failed", "limit": 2})),
        ("forget", json!({"path": "/a"})),
    ];
    let text: String = calls
        .iter()
        .enumerate()
        .map(|(id, (method, params))| {
            let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method});
            if !params.is_null() {
                call["params"] = params.clone();
            }
            format!("{call}\r\n\n")
        })
        .collect();
    let replies = call(&server, &text).await;
    assert_eq!(replies.len(), calls.len());
    for (id, reply) in replies.iter().enumerate() {
        assert_eq!(reply["id"], id);
        assert!(reply.get("error").is_none(), "{reply}");
    }
    assert_eq!(replies[2]["result"]["answer"], "echo hello");
    assert_eq!(replies[6]["result"]["files"][0]["state"], "failed");
}

#[tokio::test]
async fn a_streaming_ask_notifies_and_then_returns_the_whole() {
    let server = Server::start();
    let text = r#"{"jsonrpc":"2.0","id":"a","method":"ask","params":{"question":"count","stream":true}}"#;
    let replies = call(&server, text).await;
    let events: Vec<_> = replies.iter().filter(|reply| reply["method"] == "event").collect();
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event["params"]["id"] == "a"));
    assert_eq!(events[3]["params"]["event"], json!({"event": "token", "text": "three"}));
    let last = replies.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["answer"]), (&json!("a"), &json!("one two three")));
    assert!(last["result"].get("event").is_none());
}

#[tokio::test]
async fn errors_have_the_number_of_the_standard_and_the_code_of_the_contract() {
    let server = Server::start();
    let cases = [
        ("{nonsense", -32700, "bad_request", json!(null)),
        (r#"{"jsonrpc":"1.0","id":4,"method":"status"}"#, -32600, "bad_request", json!(4)),
        (r#"{"jsonrpc":"2.0","id":4,"method":"status","extra":1}"#, -32600, "bad_request", json!(4)),
        (r#"{"jsonrpc":"2.0","id":[4],"method":"status"}"#, -32600, "bad_request", json!(null)),
        (r#"{"jsonrpc":"2.0","id":4,"method":"stats"}"#, -32601, "bad_request", json!(4)),
        (r#"{"jsonrpc":"2.0","id":4,"method":"search","params":{"qery":"x"}}"#, -32602, "bad_request", json!(4)),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"ask","params":{"question":"no model"}}"#,
            -32000,
            "model_missing",
            json!(4),
        ),
        (r#"{"jsonrpc":"2.0","id":4,"method":"ask","params":{"question":"panic"}}"#, -32000, "error", json!(4)),
    ];
    for (line, number, code, id) in cases {
        let replies = call(&server, line).await;
        let error = &replies[0]["error"];
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(number), &json!(code)), "{line}");
        assert_eq!(replies[0]["id"], id, "{line}");
    }
    let after = "{bad}\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"status\"}\n[{}]\n";
    let replies = call(&server, after).await;
    assert_eq!(replies.len(), 3, "a bad line does not end the connection");
    assert_eq!(replies[1]["id"], 9);
}

#[tokio::test]
async fn a_call_without_an_id_is_carried_out_and_not_answered() {
    let server = Server::start();
    let text = "{\"jsonrpc\":\"2.0\",\"method\":\"roots.add\",\"params\":{\"path\":\"/quiet\"}}\n\
                {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots.list\"}\n";
    let replies = call(&server, text).await;
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0]["result"]["roots"][0]["path"], "/quiet");
}

#[tokio::test]
async fn closing_the_connection_cancels_here_too() {
    let server = Server::start();
    let stream = server.connect().await;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read).lines();
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ask\",\"params\":{\"question\":\"block\",\"stream\":true}}\n";
    write.write_all(ask.as_bytes()).await.unwrap();
    assert!(soon(read.next_line()).await.unwrap().unwrap().contains("started"));
    write.shutdown().await.unwrap();
    assert!(server.puppet.ends.borrow().is_empty(), "a finished writer is no closed connection");
    drop((read, write));
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
}
