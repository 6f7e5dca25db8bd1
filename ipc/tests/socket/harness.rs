//! A server in a temporary folder, a service to command, and raw connections.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use satchel_ipc::wire::*;
use satchel_ipc::{CancelReason, Client, Code, ErrorBody, Exchange, Reply, Request, Service, Socket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Every wait of a test ends here at the latest; a healthy one takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for `future`, and fails the test when that takes too long.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("took too long")
}

/// A service that does what the question says and records how its requests ended.
pub struct Puppet {
    /// Reasons of cancellation seen by handlers, in order.
    pub ends: watch::Sender<Vec<CancelReason>>,
    /// Handlers inside `handle`.
    pub inside: watch::Sender<usize>,
    pub emitted: AtomicUsize,
    pub roots: Mutex<Vec<String>>,
    /// Lets `stubborn` handlers go.
    pub release: watch::Sender<bool>,
}

impl Puppet {
    fn new() -> Self {
        Self {
            ends: watch::Sender::new(Vec::new()),
            inside: watch::Sender::new(0),
            emitted: AtomicUsize::new(0),
            roots: Mutex::new(Vec::new()),
            release: watch::Sender::new(false),
        }
    }

    fn roots(&self) -> Reply {
        let entry = |path: &String| RootEntry {
            path: path.clone(),
            state: RootState::Ready,
            files: 1,
            pending: 0,
            reason: None,
        };
        Reply::Roots(RootsReply { roots: self.roots.lock().unwrap().iter().map(entry).collect() })
    }

    fn until_cancelled(&self, exchange: &Exchange) -> ErrorBody {
        assert!(exchange.cancel.wait(PATIENCE), "never cancelled");
        self.record(exchange)
    }

    fn record(&self, exchange: &Exchange) -> ErrorBody {
        let reason = exchange.cancel.reason().unwrap();
        self.ends.send_modify(|ends| ends.push(reason));
        reason.to_error()
    }

    fn ask(&self, request: &AskRequest, exchange: &Exchange) -> Result<Reply, ErrorBody> {
        let token = |text: &str| exchange.events.emit(Event::Token { text: text.into() });
        match request.question.as_str() {
            "count" => {
                exchange.events.emit(Event::Sources { sources: vec![Hit { path: "/a".into(), ..Hit::default() }] })?;
                for word in ["one ", "two ", "three"] {
                    token(word)?;
                }
                Ok(Reply::Ask(AskReply { answer: "one two three".into(), ..AskReply::default() }))
            }
            "block" => {
                token("started")?;
                Err(self.until_cancelled(exchange))
            }
            "quiet block" => Err(self.until_cancelled(exchange)),
            "flood" => loop {
                if token(&"x".repeat(4096)).is_err() {
                    return Err(self.record(exchange));
                }
                self.emitted.fetch_add(1, Ordering::SeqCst);
            },
            "stubborn" => {
                // It goes on even when the deadline is already past.
                let _ = token("started");
                let mut release = self.release.subscribe();
                tokio::runtime::Handle::current().block_on(release.wait_for(|go| *go)).unwrap();
                Ok(Reply::Ask(AskReply::default()))
            }
            "panic" => panic!("as asked"),
            "no model" => Err(ErrorBody::new(Code::ModelMissing, "no model").with_hint("pull one")),
            other => Ok(Reply::Ask(AskReply { answer: format!("echo {other}"), ..AskReply::default() })),
        }
    }
}

/// Counts a handler while it lives, panics included.
struct Inside<'a>(&'a watch::Sender<usize>);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|inside| *inside -= 1);
    }
}

impl Service for Puppet {
    fn handle(&self, request: Request, exchange: &Exchange) -> Result<Reply, ErrorBody> {
        self.inside.send_modify(|inside| *inside += 1);
        let _inside = Inside(&self.inside);
        match request {
            Request::Status => {
                let status = StatusReply { version: "0".into(), pid: std::process::id(), ..Default::default() };
                Ok(Reply::Status(Box::new(status)))
            }
            Request::Search(request) => Ok(Reply::Search(SearchReply {
                hits: vec![Hit { text: request.query, score: 0.5, line_start: 1, line_end: 2, ..Hit::default() }],
                took_ms: 1,
                generation: 7,
            })),
            Request::Ask(request) => self.ask(&request, exchange),
            Request::Roots => Ok(self.roots()),
            Request::AddRoot(request) => {
                self.roots.lock().unwrap().push(request.path);
                Ok(self.roots())
            }
            Request::RemoveRoot(request) => {
                self.roots.lock().unwrap().retain(|path| *path != request.path);
                Ok(self.roots())
            }
            Request::Files(request) => Ok(Reply::Files(FilesReply {
                files: vec![FileEntry {
                    path: request.path.unwrap_or_default(),
                    state: request.state.unwrap_or(FileState::Indexed),
                    reason: None,
                    since: 1,
                    kind: "text".into(),
                    bytes: 2,
                    passages: 3,
                }],
                next: request.after,
            })),
            Request::Forget(request) => {
                Ok(Reply::Forget(ForgetReply { path: request.path, documents: 1, passages: 2, remaining: 0 }))
            }
            Request::Events => {
                exchange.events.emit(Event::State { state: DaemonState::Ready })?;
                self.until_cancelled(exchange);
                Ok(Reply::Closed {})
            }
        }
    }
}

pub struct Server {
    pub puppet: Arc<Puppet>,
    pub path: PathBuf,
    pub stop: Option<oneshot::Sender<()>>,
    pub serving: JoinHandle<std::io::Result<()>>,
    _socket: Socket,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("satchel.sock");
        let (socket, listener) = Socket::bind(&path).unwrap();
        let puppet = Arc::new(Puppet::new());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(satchel_ipc::serve(listener, Arc::clone(&puppet), async {
            let _ = stopped.await;
        }));
        Self { puppet, path, stop: Some(stop), serving, _socket: socket, _folder: folder }
    }

    pub fn client(&self) -> Client {
        Client::new(&self.path)
    }

    pub async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.path).await.unwrap()
    }

    /// Sends raw bytes, ends sending, and reads everything that comes back.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        read_to_end(&mut stream).await
    }

    /// Waits until handlers have seen `count` cancellations.
    pub async fn ends(&self, count: usize) -> Vec<CancelReason> {
        let mut ends = self.puppet.ends.subscribe();
        soon(ends.wait_for(|ends| ends.len() >= count)).await.unwrap().clone()
    }

    /// Waits until exactly `count` handlers run.
    pub async fn inside(&self, count: usize) {
        let mut inside = self.puppet.inside.subscribe();
        soon(inside.wait_for(|inside| *inside == count)).await.unwrap();
    }

    /// Asks the server to stop.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

pub async fn read_to_end(stream: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    soon(stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// A POST with a body, as a raw client writes it.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub fn question(text: &str) -> AskRequest {
    AskRequest { question: text.into(), ..AskRequest::default() }
}
