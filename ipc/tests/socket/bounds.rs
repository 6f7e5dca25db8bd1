use satchel_ipc::limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{Server, read_to_end, soon};

#[tokio::test]
async fn a_body_announced_too_long_is_refused_before_it_is_sent() {
    let server = Server::start();
    let mut stream = server.connect().await;
    let length = limits::MAX_REQUEST_BYTES + 1;
    stream
        .write_all(format!("POST /v1/ask HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let reply = read_to_end(&mut stream).await;
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains(&format!("{length} bytes, the limit is {}", limits::MAX_REQUEST_BYTES)), "{reply}");
}

#[tokio::test]
async fn a_body_without_a_length_is_refused_at_the_limit() {
    let server = Server::start();
    let stream = server.connect().await;
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let _ = write.write_all(b"POST /v1/ask HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while write.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    let mut reply = vec![0; 17];
    soon(read.read_exact(&mut reply)).await.unwrap();
    assert_eq!(reply, b"HTTP/1.1 413 Payl");
    drop(read);
    soon(sending).await.unwrap();
}

#[tokio::test]
async fn a_line_too_long_is_refused_at_the_limit() {
    let server = Server::start();
    let stream = server.connect().await;
    let (mut read, mut write) = stream.into_split();
    let sending = tokio::spawn(async move {
        let _ = write.write_all(b"{\"jsonrpc\":\"").await;
        while write.write_all(&[b'x'; 0x10000]).await.is_ok() {}
    });
    let mut reply = [0; 4096];
    let length = soon(read.read(&mut reply)).await.unwrap();
    let reply = String::from_utf8_lossy(&reply[..length]).into_owned();
    assert!(reply.contains("too_long"), "{reply}");
    drop(read);
    soon(sending).await.unwrap();
}

#[tokio::test]
async fn a_head_too_long_or_of_too_many_fields_is_refused() {
    let server = Server::start();
    let long = format!("GET /v1/status HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(limits::MAX_HEAD_BYTES));
    let many = format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(limits::MAX_HEADERS + 1));
    for head in [long, many] {
        let mut stream = server.connect().await;
        let _ = stream.write_all(head.as_bytes()).await;
        let mut reply = Vec::new();
        let _ = soon(stream.read_to_end(&mut reply)).await;
        let reply = String::from_utf8_lossy(&reply);
        assert!(!reply.contains("200 OK"), "{reply}");
    }
    assert!(server.client().status().await.is_ok());
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told_to_come_back_and_others_go_on() {
    let server = Server::start();
    let mut held = Vec::new();
    for _ in 0..limits::MAX_CONNECTIONS {
        let mut stream = server.connect().await;
        // A served request proves that the connection has its place.
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        soon(stream.read_u8()).await.unwrap();
        held.push(stream);
    }
    let mut refused = server.connect().await;
    let reply = read_to_end(&mut refused).await;
    assert!(reply.starts_with("HTTP/1.1 503 ") && reply.contains("\"busy\""), "{reply}");
    drop(held);
    let client = server.client();
    let served = async {
        while client.status().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(served).await;
}

/// Paused time jumps to the next timer whenever everything waits, so 30 s pass at once.
#[tokio::test(start_paused = true)]
async fn slow_and_silent_peers_are_dropped() {
    let server = Server::start();
    let starts: [&[u8]; 4] = [
        b"",
        b"GET /v1/status HTTP/1.1\r\nhos",
        b"{\"jsonrpc\":",
        b"POST /v1/ask HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
    ];
    for start in starts {
        let started = tokio::time::Instant::now();
        let mut stream = server.connect().await;
        stream.write_all(start).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 408 "), "{reply}");
        let waited = started.elapsed();
        assert!(waited >= limits::HEAD_TIMEOUT && waited < limits::HEAD_TIMEOUT * 3, "{start:?}: {waited:?}");
    }
}

/// A listener that accepts and says nothing is what a hung daemon looks like.
#[tokio::test(start_paused = true)]
async fn a_hung_daemon_does_not_hang_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let failed = satchel_ipc::Client::new(&path).status().await.unwrap_err();
    assert!(matches!(failed, satchel_ipc::ClientError::Silent(_)), "{failed:?}");
}
