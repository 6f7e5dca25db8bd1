use std::time::{Duration, Instant};

use satchel_ipc::wire::{AskRequest, Event};
use satchel_ipc::{CancelReason, Code, limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{PATIENCE, Server, post, question, read_to_end, soon};

#[tokio::test]
async fn closing_a_stream_cancels_its_work_promptly() {
    let server = Server::start();
    let mut stream = server.client().ask_stream(question("block")).await.unwrap();
    assert_eq!(soon(stream.next()).await.unwrap(), Some(Event::Token { text: "started".into() }));
    let closed = Instant::now();
    drop(stream);
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
    // Far below a heartbeat: the close itself is noticed, not the failure of the next write.
    assert!(closed.elapsed() < Duration::from_secs(1), "{:?}", closed.elapsed());
}

#[tokio::test]
async fn closing_cancels_a_call_that_has_sent_nothing_yet() {
    let server = Server::start();
    for body in [r#"{"question":"quiet block"}"#, r#"{"question":"quiet block","stream":true}"#] {
        let mut stream = server.connect().await;
        stream.write_all(&post("/v1/ask", body)).await.unwrap();
        server.inside(1).await;
        drop(stream);
        server.inside(0).await;
    }
    assert_eq!(server.ends(2).await, [CancelReason::PeerClosed; 2]);
}

#[tokio::test]
async fn closing_is_noticed_behind_a_pipelined_request() {
    let server = Server::start();
    let mut stream = server.connect().await;
    stream.write_all(&post("/v1/ask", r#"{"question":"quiet block"}"#)).await.unwrap();
    stream.write_all(&post("/v1/ask", r#"{"question":"next"}"#)).await.unwrap();
    server.inside(1).await;
    drop(stream);
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
}

#[tokio::test]
async fn a_dropped_call_of_the_client_cancels() {
    let server = Server::start();
    let client = server.client();
    let call = tokio::spawn(async move { client.ask(question("quiet block")).await });
    server.inside(1).await;
    call.abort();
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
}

#[tokio::test]
async fn a_peer_that_only_finished_sending_is_answered() {
    let server = Server::start();
    let reply = server.exchange(&post("/v1/ask", r#"{"question":"count","stream":true}"#)).await;
    assert!(reply.contains(r#"{"event":"token","text":"three"}"#), "{reply}");
    assert!(reply.contains(r#"{"event":"done","answer":"one two three""#), "{reply}");
    assert!(reply.contains("content-type: application/x-ndjson"), "{reply}");
    assert!(server.puppet.ends.borrow().is_empty());
}

#[tokio::test]
async fn the_deadline_cancels_and_says_so() {
    let server = Server::start();
    let asked = Instant::now();
    let request = AskRequest { deadline_ms: Some(30), ..question("quiet block") };
    let failed = soon(server.client().ask(request)).await.unwrap_err().to_body();
    assert_eq!(failed.code, Code::Cancelled);
    assert!(failed.message.contains("deadline"), "{failed}");
    assert!(asked.elapsed() >= Duration::from_millis(30));
    assert_eq!(server.ends(1).await, [CancelReason::Deadline]);
}

#[tokio::test]
async fn a_deadline_holds_against_a_handler_that_never_pauses() {
    let server = Server::start();
    let request = AskRequest { deadline_ms: Some(50), ..question("flood") };
    let mut stream = server.client().ask_stream(request).await.unwrap();
    let failed = loop {
        match soon(stream.next()).await {
            Ok(event) => assert!(matches!(event, Some(Event::Token { .. })), "{event:?}"),
            Err(error) => break error.to_body(),
        }
    };
    assert_eq!(failed.code, Code::Cancelled);
    assert_eq!(server.ends(1).await, [CancelReason::Deadline]);
}

#[tokio::test]
async fn absurd_deadlines_are_no_overflow() {
    let server = Server::start();
    let request = AskRequest { deadline_ms: Some(u64::MAX), ..question("hello") };
    assert_eq!(server.client().ask(request).await.unwrap().answer, "echo hello");
}

#[tokio::test]
async fn a_handler_that_ignores_its_deadline_does_not_keep_the_peer() {
    let server = Server::start();
    let asked = Instant::now();
    let request = AskRequest { deadline_ms: Some(1), ..question("stubborn") };
    let failed = soon(server.client().ask(request)).await.unwrap_err();
    assert_eq!(failed.to_body().code, Code::Cancelled);
    assert!(asked.elapsed() >= limits::CANCEL_GRACE);
    server.puppet.release.send_replace(true);
    server.inside(0).await;
}

#[tokio::test]
async fn a_panic_ends_its_request_alone() {
    let server = Server::start();
    let failed = server.client().ask(question("panic")).await.unwrap_err().to_body();
    assert_eq!((failed.code, failed.code.http_status()), (Code::Error, 500));
    server.inside(0).await;
    assert!(server.client().status().await.is_ok());
}

#[tokio::test]
async fn a_slow_reader_holds_the_handler_back_in_bounded_space() {
    let server = Server::start();
    let mut stream = server.connect().await;
    stream.write_all(&post("/v1/ask", r#"{"question":"flood","stream":true}"#)).await.unwrap();
    soon(stream.read_u8()).await.unwrap();
    // The handler stands still once all queues are full: then the count no longer changes.
    let emitted = || server.puppet.emitted.load(std::sync::atomic::Ordering::SeqCst);
    let (mut last, mut still, end) = (emitted(), Instant::now(), Instant::now() + PATIENCE);
    while still.elapsed() < Duration::from_millis(300) {
        assert!(Instant::now() < end, "never stood still");
        tokio::task::yield_now().await;
        if emitted() != last {
            (last, still) = (emitted(), Instant::now());
        }
    }
    // Queues hold fewer than a hundred 4 KiB events; the socket's and hyper's buffers hold the rest.
    assert!(last < 400, "{last} events taken from a reader that reads nothing");
    drop(stream);
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_has_heartbeats() {
    let server = Server::start();
    let mut stream = server.connect().await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    // A blocking handler stops the automatic clock, so it is moved by hand.
    while !text.contains("ready") || text.matches(r#"{"event":"heartbeat"}"#).count() < 3 {
        let mut bytes = [0; 4096];
        tokio::select! {
            read = stream.read(&mut bytes) => text.push_str(&String::from_utf8_lossy(&bytes[..read.unwrap()])),
            () = tokio::time::advance(limits::HEARTBEAT_INTERVAL / 4) => tokio::task::yield_now().await,
        }
    }
    drop(stream);
    tokio::time::resume();
    assert_eq!(server.ends(1).await, [CancelReason::PeerClosed]);
}

#[tokio::test]
async fn a_handler_refused_for_lack_of_room_is_busy() {
    let server = Server::start();
    // Abandoned handlers keep their places until they return.
    for _ in 0..limits::MAX_HANDLERS {
        let mut stream = server.connect().await;
        stream.write_all(&post("/v1/ask", r#"{"question":"stubborn","stream":true}"#)).await.unwrap();
        soon(stream.read_u8()).await.unwrap();
    }
    let freed = async {
        loop {
            match server.client().status().await {
                Err(error) if error.to_string().contains("requests are in work") => return error,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    assert_eq!(soon(freed).await.to_body().code, Code::Busy);
    server.puppet.release.send_replace(true);
    server.inside(0).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(read_to_end(&mut stream).await.starts_with("HTTP/1.1 200 "));
}
