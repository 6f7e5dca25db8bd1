use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::*;

/// What the server does with one request.
#[derive(Debug, Clone, Copy)]
pub enum Serve {
    /// Honours ranges.
    Well,
    /// Honours ranges, and closes after so many bytes of the body.
    Cut(usize),
    /// Always sends the whole.
    Whole,
    /// Answers with this status.
    Status(u16),
    /// Promises other bytes than asked for.
    WrongRange,
    /// Sends more than it has promised anyone.
    TooMuch,
    /// Closes without a word.
    Nothing,
}

/// A server on loopback that answers one request after the other as it is told, then closes.
pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `content` whatever the path.
    pub fn new(content: Vec<u8>, script: Vec<Serve>) -> Self {
        Self::routed(move |_| content.clone(), script)
    }

    /// Serves what `content` gives for the path.
    pub fn routed(content: impl Fn(&str) -> Vec<u8> + Send + 'static, script: Vec<Serve>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let thread = std::thread::spawn(move || {
            for serve in script {
                let (stream, _) = listener.accept().unwrap();
                let Some(request) = read_request(&stream) else { return };
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let from = request.split("bytes=").nth(1).map(|r| r.split('-').next().unwrap().parse().unwrap());
                log.lock().unwrap().push(format!("{path} {from:?}"));
                // The client may have hung up, which is its right.
                let _ = answer(stream, &content(&path), from, serve);
            }
        });
        Self { url, requests, thread: Some(thread) }
    }

    /// The requests so far: path, and the range's start.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Requests that were expected and did not come are made now, so that the thread ends.
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            drop(TcpStream::connect(self.url.trim_start_matches("http://")));
            std::thread::yield_now();
        }
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server failed");
    }
}

fn read_request(stream: &TcpStream) -> Option<String> {
    let mut text = String::new();
    let mut lines = BufReader::new(stream);
    while !text.ends_with("\r\n\r\n") {
        if lines.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    Some(text)
}

fn answer(mut stream: TcpStream, content: &[u8], from: Option<usize>, serve: Serve) -> io::Result<()> {
    let total = content.len();
    let part = |from: usize| format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{total}", total - 1);
    let (status, body) = match (serve, from) {
        (Serve::Nothing, _) => return Ok(()),
        (Serve::Status(code), _) => (format!("{code} No"), &content[..0]),
        (Serve::WrongRange, _) => (part(1), &content[1..]),
        (Serve::Whole, _) | (_, None) => ("200 OK".to_owned(), content),
        (_, Some(from)) => (part(from), &content[from..]),
    };
    let sent = if let Serve::Cut(n) = serve { &body[..n.min(body.len())] } else { body };
    if matches!(serve, Serve::TooMuch) {
        write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n\r\n")?;
        stream.write_all(sent)?;
        return stream.write_all(b"surplus");
    }
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(sent)
}

pub fn content() -> Vec<u8> {
    (0..700_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn artifact() -> Artifact {
    Artifact { path: "m.gguf", bytes: 700_000, sha256: "" }
}

struct Fetched {
    result: Result<(), Stop>,
    bytes: Vec<u8>,
    requests: Vec<String>,
}

/// Fetches with `before` in the part already.
fn fetched(before: &[u8], script: Vec<Serve>) -> Fetched {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("m.gguf.part");
    if !before.is_empty() {
        std::fs::write(&part, before).unwrap();
    }
    let server = Server::new(content(), script);
    let result = fetch(&agent(), &format!("{}/m.gguf", server.url), &artifact(), &part, &mut |_| Ok(()));
    Fetched { result, bytes: std::fs::read(&part).unwrap_or_default(), requests: server.requests() }
}

fn whole(fetched: &Fetched) {
    assert!(fetched.result.is_ok(), "{:?}", fetched.result);
    assert!(fetched.bytes == content());
}

#[test]
fn a_file_comes_whole() {
    let fetched = fetched(&[], vec![Serve::Well]);
    whole(&fetched);
    assert_eq!(fetched.requests, ["/m.gguf None"]);
}

#[test]
fn a_part_is_gone_on_with() {
    let fetched = fetched(&content()[..123_456], vec![Serve::Well]);
    whole(&fetched);
    assert_eq!(fetched.requests, ["/m.gguf Some(123456)"]);
}

#[test]
fn a_whole_part_asks_nobody() {
    let fetched = fetched(&content(), vec![]);
    whole(&fetched);
    assert!(fetched.requests.is_empty());
}

#[test]
fn a_broken_connection_is_made_anew_as_long_as_it_brings_something() {
    let fetched = fetched(&[], vec![Serve::Cut(1000), Serve::Cut(50_000), Serve::Nothing, Serve::Nothing, Serve::Well]);
    whole(&fetched);
    assert_eq!(fetched.requests[1], "/m.gguf Some(1000)");
    assert_eq!(fetched.requests[4], "/m.gguf Some(51000)");
}

#[test]
fn a_connection_that_brings_nothing_any_more_is_given_up_and_the_part_kept() {
    let fetched = fetched(&[], vec![Serve::Cut(1000), Serve::Nothing, Serve::Cut(0), Serve::Nothing]);
    assert!(matches!(fetched.result, Err(Stop::Source(_))), "{:?}", fetched.result);
    assert_eq!(fetched.requests.len(), 4);
    assert!(fetched.bytes == content()[..1000]);
}

#[test]
fn a_server_without_ranges_starts_again() {
    let fetched = fetched(&[7; 5000], vec![Serve::Whole]);
    whole(&fetched);
}

#[test]
fn another_range_than_asked_for_is_not_appended() {
    let fetched = fetched(&content()[..10], vec![Serve::WrongRange, Serve::Well]);
    whole(&fetched);
    assert_eq!(fetched.requests[1], "/m.gguf None");
}

#[test]
fn a_part_that_is_too_long_is_thrown_away() {
    whole(&fetched(&vec![0; 800_000], vec![Serve::Well]));
}

#[test]
fn surplus_bytes_are_refused() {
    let fetched = fetched(&[], vec![Serve::TooMuch]);
    assert!(matches!(fetched.result, Err(Stop::Source(SourceError::Size { .. }))), "{:?}", fetched.result);
    assert!(fetched.bytes.len() <= content().len());
}

#[test]
fn a_status_that_is_no_success_ends_it() {
    for code in [404, 416, 429, 500] {
        let fetched = fetched(&[], vec![Serve::Status(code)]);
        assert!(matches!(fetched.result, Err(Stop::Source(SourceError::Status(c))) if c == code), "{code}");
    }
}

#[test]
fn nobody_at_the_address_is_told_at_once() {
    // Bound and dropped: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let url = format!("http://{address}/m.gguf");
    let result = fetch(&agent(), &url, &artifact(), &folder.path().join("p"), &mut |_| Ok(()));
    assert!(matches!(result, Err(Stop::Source(SourceError::Http(_)))), "{result:?}");
    assert!(started.elapsed() < CONNECT_TIMEOUT);
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let started = Instant::now();
    // The agent's own bounds, shortened, so that the test is.
    let agent = Agent::config_builder().timeout_recv_response(Some(Duration::from_millis(300))).build().new_agent();
    let url = format!("http://{address}/m.gguf");
    let result = fetch(&agent, &url, &artifact(), &folder.path().join("p"), &mut |_| Ok(()));
    assert!(matches!(result, Err(Stop::Source(SourceError::Http(_)))), "{result:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
    drop(listener);
}

#[test]
fn a_cancelled_download_keeps_its_part() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("p");
    let server = Server::new(content(), vec![Serve::Well]);
    let cancelled = || ModelError::Cancelled { name: "m".into() };
    let url = format!("{}/m.gguf", server.url);
    let step = &mut |done| if done > 0 { Err(cancelled()) } else { Ok(()) };
    let result = fetch(&agent(), &url, &artifact(), &part, step);
    assert!(matches!(result, Err(Stop::All(ModelError::Cancelled { .. }))), "{result:?}");
    let kept = std::fs::read(&part).unwrap();
    assert!(!kept.is_empty() && kept == content()[..kept.len()]);
}
