use satchel_ipc::wire::*;
use satchel_ipc::{Client, ClientError, Code};

use crate::harness::{Server, post, question, soon};

#[tokio::test]
async fn every_route_through_the_client() {
    let server = Server::start();
    let client = server.client();
    assert_eq!(client.status().await.unwrap().pid, std::process::id());
    let found = client.search(SearchRequest { query: "rent".into(), ..Default::default() }).await.unwrap();
    assert_eq!((found.hits[0].text.as_str(), found.generation), ("rent", 7));
    assert_eq!(client.ask(question("hello")).await.unwrap().answer, "echo hello");
    assert_eq!(client.add_root("/a").await.unwrap().roots.len(), 1);
    assert_eq!(client.roots().await.unwrap().roots[0].path, "/a");
    assert_eq!(client.remove_root("/a").await.unwrap().roots, []);
    let request =
        FilesRequest { state: Some(FileState::Failed), path: Some("/a b/ü".into()), after: None, limit: Some(5) };
    let files = client.files(request).await.unwrap().files;
    assert_eq!((files[0].path.as_str(), files[0].state), ("/a b/ü", FileState::Failed));
    assert_eq!(client.forget("/a").await.unwrap().remaining, 0);
    let mut events = client.events().await.unwrap();
    assert_eq!(soon(events.next()).await.unwrap(), Some(Event::State { state: DaemonState::Ready }));
}

#[tokio::test]
async fn a_stream_is_its_events_in_order_and_then_done() {
    let server = Server::start();
    let mut stream = server.client().ask_stream(question("count")).await.unwrap();
    let mut text = String::new();
    let mut kinds = Vec::new();
    while let Some(event) = soon(stream.next()).await.unwrap() {
        match event {
            Event::Sources { sources } => kinds.push(format!("sources {}", sources.len())),
            Event::Token { text: piece } => text.push_str(&piece),
            Event::Done(reply) => kinds.push(format!("done {}", reply.answer)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(kinds, ["sources 1", "done one two three"]);
    assert_eq!(text, "one two three");
}

#[tokio::test]
async fn the_same_handler_serves_a_single_reply() {
    let server = Server::start();
    assert_eq!(server.client().ask(question("count")).await.unwrap().answer, "one two three");
}

#[tokio::test]
async fn an_error_has_its_code_status_and_hint_in_both_forms() {
    let server = Server::start();
    for failed in [
        server.client().ask(question("no model")).await.unwrap_err(),
        server.client().ask_stream(question("no model")).await.unwrap_err(),
    ] {
        let body = failed.to_body();
        assert_eq!((body.code, body.hint.as_deref()), (Code::ModelMissing, Some("pull one")));
    }
    let raw = server.exchange(&post("/v1/ask", r#"{"question":"no model","stream":true}"#)).await;
    assert!(raw.starts_with("HTTP/1.1 424 "), "{raw}");
    assert!(raw.ends_with(r#"{"error":{"code":"model_missing","message":"no model","hint":"pull one"}}"#), "{raw}");
}

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let server = Server::start();
    let once = "GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n";
    let replies = server.exchange(once.repeat(5).as_bytes()).await;
    assert_eq!(replies.matches("HTTP/1.1 200 OK").count(), 5);
}

#[tokio::test]
async fn without_a_daemon_the_client_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let failed = Client::new(folder.path().join("none.sock")).status().await.unwrap_err();
    assert!(matches!(failed, ClientError::NoDaemon { .. }), "{failed:?}");
    assert_eq!(failed.to_body().code.exit_code(), 7);
}
