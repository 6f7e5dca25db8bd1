//! The client: one connection a request. Dropping a call or a stream closes its connection, which cancels the work.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::error::{Code, ErrorBody, ErrorReply};
use crate::limits::{MAX_REPLY_BYTES, QUICK_CALL_TIMEOUT, STREAM_SILENCE_TIMEOUT};
use crate::route::Request;
use crate::socket;
use crate::wire::{
    AskReply, AskRequest, Event, FilesReply, FilesRequest, ForgetReply, ForgetRequest, RootRequest, RootsReply,
    SearchReply, SearchRequest, StatusReply,
};

/// Why a call brought no reply.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing listens on the socket.
    #[error("no daemon listens on {path:?}")]
    NoDaemon {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The socket cannot be opened.
    #[error("cannot open the socket {path:?}: {source}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another user listens on the socket: nothing was sent.
    #[error("the socket {path:?} is served by another user")]
    ForeignDaemon {
        /// The socket.
        path: PathBuf,
    },
    /// The daemon answered with an error.
    #[error("{0}")]
    Refused(ErrorBody),
    /// The connection broke.
    #[error("the daemon closed the connection: {0}")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The daemon's answer is not what the wire says.
    #[error("the daemon's answer is not understood: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// The daemon's answer is longer than a client takes.
    #[error("the daemon's answer is longer than {} bytes", MAX_REPLY_BYTES)]
    TooLong,
    /// A stream fell silent, or a call that needs no work was not answered.
    #[error("the daemon has said nothing for {} s", .0.as_secs())]
    Silent(Duration),
}

impl ClientError {
    /// The error in the terms of the wire: code, sentence, hint.
    pub fn to_body(&self) -> ErrorBody {
        let body = |code| ErrorBody::new(code, self.to_string());
        match self {
            Self::Refused(error) => error.clone(),
            Self::NoDaemon { .. } => body(Code::NoDaemon).with_hint("start one with `satchel serve`"),
            Self::ForeignDaemon { .. } => body(Code::Error).with_hint("name your own socket with SATCHEL_SOCKET"),
            Self::Broken(_) | Self::Silent(_) => body(Code::Error).with_hint("see the daemon's log; try again"),
            Self::Unreadable(_) => body(Code::Error).with_hint("is the daemon of another version? restart it"),
            Self::Connect { .. } | Self::TooLong => body(Code::Error),
        }
    }
}

/// Calls a daemon on its socket.
#[derive(Debug, Clone)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// A client of the daemon on `path`. Nothing is opened yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The daemon at a glance.
    ///
    /// # Errors
    /// See [`ClientError`], here and below.
    pub async fn status(&self) -> Result<StatusReply, ClientError> {
        self.quick_call(Request::Status).await
    }

    /// Passages.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn search(&self, request: SearchRequest) -> Result<SearchReply, ClientError> {
        self.call(Request::Search(request)).await
    }

    /// A whole answer.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn ask(&self, request: AskRequest) -> Result<AskReply, ClientError> {
        self.call(Request::Ask(AskRequest { stream: false, ..request })).await
    }

    /// An answer as it comes.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn ask_stream(&self, request: AskRequest) -> Result<EventStream, ClientError> {
        self.stream(Request::Ask(AskRequest { stream: true, ..request })).await
    }

    /// The watched folders.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn roots(&self) -> Result<RootsReply, ClientError> {
        self.quick_call(Request::Roots).await
    }

    /// Watches a folder.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn add_root(&self, path: impl Into<String>) -> Result<RootsReply, ClientError> {
        self.call(Request::AddRoot(RootRequest { path: path.into() })).await
    }

    /// Stops watching a folder.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn remove_root(&self, path: impl Into<String>) -> Result<RootsReply, ClientError> {
        self.call(Request::RemoveRoot(RootRequest { path: path.into() })).await
    }

    /// A page of known files.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn files(&self, request: FilesRequest) -> Result<FilesReply, ClientError> {
        self.call(Request::Files(request)).await
    }

    /// Removes a document from the index.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn forget(&self, path: impl Into<String>) -> Result<ForgetReply, ClientError> {
        self.call(Request::Forget(ForgetRequest { path: path.into() })).await
    }

    /// What happens, from now on.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn events(&self) -> Result<EventStream, ClientError> {
        self.stream(Request::Events).await
    }

    async fn quick_call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        let silent = |_| ClientError::Silent(QUICK_CALL_TIMEOUT);
        tokio::time::timeout(QUICK_CALL_TIMEOUT, self.call(request)).await.map_err(silent)?
    }

    async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        let (_connection, response) = self.send(&request).await?;
        let (head, body) = response.into_parts();
        let body = read_all(body).await?;
        if !head.status.is_success() {
            return Err(refused(&body));
        }
        serde_json::from_slice(&body).map_err(ClientError::Unreadable)
    }

    async fn stream(&self, request: Request) -> Result<EventStream, ClientError> {
        let (connection, response) = self.send(&request).await?;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            return Err(refused(&read_all(body).await?));
        }
        Ok(EventStream { _connection: connection, body, buffer: BytesMut::new(), searched: 0 })
    }

    async fn send(&self, request: &Request) -> Result<(Connection, hyper::Response<Incoming>), ClientError> {
        let (method, target, body) = request.to_http().map_err(ClientError::Unreadable)?;
        let stream = self.connect().await?;
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = Connection(tokio::spawn(async move {
            // A failure reaches the caller through the response or its body.
            let _ = driver.await;
        }));
        let request = hyper::Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, "satchel")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::<Bytes>::from(body))
            .map_err(|error| ClientError::Broken(Box::new(error)))?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok((connection, response))
    }

    async fn connect(&self) -> Result<UnixStream, ClientError> {
        let path = || self.path.clone();
        let stream = UnixStream::connect(&self.path).await.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NoDaemon { path: path(), source }
            }
            _ => ClientError::Connect { path: path(), source },
        })?;
        if !socket::is_own_peer(&stream) {
            return Err(ClientError::ForeignDaemon { path: path() });
        }
        Ok(stream)
    }
}

fn broken(error: hyper::Error) -> ClientError {
    ClientError::Broken(Box::new(error))
}

fn refused(body: &[u8]) -> ClientError {
    match serde_json::from_slice::<ErrorReply>(body) {
        Ok(reply) => ClientError::Refused(reply.error),
        Err(error) => ClientError::Unreadable(error),
    }
}

async fn read_all(body: Incoming) -> Result<Bytes, ClientError> {
    match Limited::new(body, MAX_REPLY_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(ClientError::TooLong),
        Err(error) => Err(ClientError::Broken(error)),
    }
}

/// The task that moves a connection's bytes; dropping it closes the socket.
#[derive(Debug)]
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The events of one request. Dropping it closes the connection and so cancels the work.
#[derive(Debug)]
pub struct EventStream {
    _connection: Connection,
    body: Incoming,
    buffer: BytesMut,
    /// Bytes of `buffer` known to hold no newline.
    searched: usize,
}

impl EventStream {
    /// The next event, heartbeats and unknown events left out; `None` at the end of the stream.
    ///
    /// # Errors
    /// `Refused` for an `error` event, `Silent` when the daemon hangs, `Broken` when it died.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(line) = self.take_line() {
                match serde_json::from_slice(&line).map_err(ClientError::Unreadable)? {
                    Event::Heartbeat | Event::Unknown => continue,
                    Event::Error { error } => return Err(ClientError::Refused(error)),
                    event => return Ok(Some(event)),
                }
            }
            if self.buffer.len() > MAX_REPLY_BYTES {
                return Err(ClientError::TooLong);
            }
            let frame = tokio::time::timeout(STREAM_SILENCE_TIMEOUT, self.body.frame())
                .await
                .map_err(|_| ClientError::Silent(STREAM_SILENCE_TIMEOUT))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(error)),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(offset) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + offset + 1);
        self.searched = 0;
        Some(line)
    }
}
