use std::time::Instant;

use satchel_ipc::wire::Event;
use satchel_ipc::{CancelReason, Code, limits};
use tokio::io::AsyncWriteExt;

use crate::harness::{Server, post, question, read_to_end, soon};

#[tokio::test]
async fn open_streams_and_calls_end_with_cancelled() {
    let mut server = Server::start();
    let mut stream = server.client().ask_stream(question("block")).await.unwrap();
    assert!(matches!(soon(stream.next()).await.unwrap(), Some(Event::Token { .. })));
    let mut events = server.client().events().await.unwrap();
    soon(events.next()).await.unwrap();
    let client = server.client();
    let call = tokio::spawn(async move { client.ask(question("quiet block")).await });
    server.inside(3).await;
    let stopped = Instant::now();
    server.stop();
    let failed = soon(stream.next()).await.unwrap_err().to_body();
    assert_eq!(failed.code, Code::Cancelled);
    assert!(failed.message.contains("stopping"), "{failed}");
    assert_eq!(soon(call).await.unwrap().unwrap_err().to_body().code, Code::Cancelled);
    assert_eq!(soon(events.next()).await.unwrap(), None);
    soon(&mut server.serving).await.unwrap().unwrap();
    assert!(stopped.elapsed() < limits::CANCEL_GRACE, "handlers returned at once, so must the server");
    assert_eq!(server.ends(3).await, [CancelReason::Shutdown; 3]);
}

#[tokio::test]
async fn idle_connections_do_not_hold_the_end_up() {
    let mut server = Server::start();
    let mut silent = server.connect().await;
    let mut http = server.connect().await;
    http.write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut lines = server.connect().await;
    lines.write_all(b"{\"jsonrpc\"").await.unwrap();
    assert!(server.client().status().await.is_ok());
    let stopped = Instant::now();
    server.stop();
    soon(&mut server.serving).await.unwrap().unwrap();
    assert!(stopped.elapsed() < limits::DRAIN_TIMEOUT);
    for stream in [&mut silent, &mut http, &mut lines] {
        read_to_end(stream).await;
    }
    assert!(server.client().status().await.is_err());
}

#[tokio::test]
async fn a_reader_that_stands_still_does_not_hold_the_end_up() {
    let mut server = Server::start();
    let mut stream = server.connect().await;
    stream.write_all(&post("/v1/ask", r#"{"question":"flood","stream":true}"#)).await.unwrap();
    server.inside(1).await;
    server.stop();
    soon(&mut server.serving).await.unwrap().unwrap();
    server.inside(0).await;
    drop(stream);
}

#[tokio::test]
async fn a_stubborn_handler_does_not_hold_the_end_up() {
    let mut server = Server::start();
    let mut stream = server.client().ask_stream(question("stubborn")).await.unwrap();
    soon(stream.next()).await.unwrap();
    server.stop();
    assert_eq!(soon(stream.next()).await.unwrap_err().to_body().code, Code::Cancelled);
    soon(&mut server.serving).await.unwrap().unwrap();
    server.puppet.release.send_replace(true);
    server.inside(0).await;
}
