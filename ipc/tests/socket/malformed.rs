use crate::harness::{Server, post, read_to_end};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn what_is_no_proper_request_gets_its_status_and_its_reason() {
    let server = Server::start();
    let cases: [(Vec<u8>, &str, &str); 9] = [
        (post("/v1/ask", "{"), "400", "EOF"),
        (post("/v1/ask", "[]"), "400", "bad_request"),
        (post("/v1/ask", r#"{"question":"q","k":-1}"#), "400", "-1"),
        (post("/v1/ask", r#"{"question":"q","k":1,"k":2}"#), "400", "duplicate field `k`"),
        (post("/v1/search", r#"{"query":"q","mode":"psychic"}"#), "400", "psychic"),
        (post("/v1/search?k=1", r#"{"query":"q"}"#), "400", "not in both"),
        (post("/v1/status", ""), "405", "use GET"),
        (post("/", "{}"), "404", "/v1/search"),
        (post("/v1/ask", &"[".repeat(100_000)), "400", "bad_request"),
    ];
    for (bytes, status, part) in cases {
        let reply = server.exchange(&bytes).await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status} ")), "{reply}");
        assert!(reply.contains(part), "{reply}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_http_never_end_the_server() {
    let server = Server::start();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let sample = post("/v1/ask", r#"{"question":"q","k":3,"filter":{"kind":"text"}}"#);
    for round in 0..400 {
        let mut bytes = if round % 2 == 0 {
            sample.clone()
        } else {
            br#"{"jsonrpc":"2.0","id":1,"method":"search","params":{"query":"x"}}"#.to_vec()
        };
        for _ in 0..1 + next() % 6 {
            let at = (next() as usize) % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(1 + (next() as usize) % bytes.len());
        let mut stream = server.connect().await;
        // The server may have answered and closed before all is sent.
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut reply = Vec::new();
        let read = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut reply);
        let _ = crate::harness::soon(read).await;
    }
    assert!(server.client().status().await.is_ok());
    assert!(!server.serving.is_finished());
}

#[tokio::test]
async fn a_connection_closed_without_a_word_is_nothing() {
    let server = Server::start();
    drop(server.connect().await);
    let mut stream = server.connect().await;
    stream.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut stream).await, "");
    assert!(server.client().status().await.is_ok());
}
