//! HTTP/1.1 on one connection.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::{Code, ErrorBody, ErrorReply};
use crate::io::{Hangup, PeerIo};
use crate::limits::{BODY_TIMEOUT, FRAME_QUEUE, HEAD_TIMEOUT, MAX_HEAD_BYTES, MAX_HEADERS, MAX_REQUEST_BYTES};
use crate::route::{Refusal, Reply, Request};
use crate::running::{Hub, Running, Step};
use crate::service::Service;
use crate::wire::Event;

type ReplyBody = Either<Full<Bytes>, LinesBody>;

/// Serves requests until the peer leaves or the server stops.
pub(crate) async fn converse<S: Service>(hub: Hub<S>, io: PeerIo, peer: Arc<Hangup>) {
    let mut shutdown = hub.shutdown.clone();
    let service = service_fn(move |request| {
        let (hub, peer) = (hub.clone(), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(respond(&hub, &peer, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        // A peer that only finished sending still gets its reply; `Hangup` notices one that left.
        .half_close(true)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = shutdown.wait() => connection.as_mut().graceful_shutdown(),
    }
    // An error here is the peer's doing (it left, or sent what hyper has already answered): nobody is left to tell.
    let _ = connection.await;
}

async fn respond<S: Service>(
    hub: &Hub<S>,
    peer: &Arc<Hangup>,
    request: hyper::Request<Incoming>,
) -> Response<ReplyBody> {
    match answer(hub, peer, request).await {
        Ok(response) => response,
        Err(refusal) => refuse(&refusal),
    }
}

async fn answer<S: Service>(
    hub: &Hub<S>,
    peer: &Arc<Hangup>,
    request: hyper::Request<Incoming>,
) -> Result<Response<ReplyBody>, Refusal> {
    let (head, body) = request.into_parts();
    let body = read_body(body).await?;
    let request = Request::from_http(&head.method, head.uri.path(), head.uri.query(), &body)?;
    let streaming = request.is_streaming();
    let mut running = Running::start(hub, peer, request)?;
    if !streaming {
        return Ok(json(StatusCode::OK, &running.finish().await?));
    }
    // A stream that fails at once is a plain error, with its own status.
    match running.step().await {
        Step::Finished(Err(error)) => Err(error.into()),
        first => Ok(stream(running, first)),
    }
}

async fn read_body(body: Incoming) -> Result<Bytes, Refusal> {
    let too_long = |length: Option<u64>| {
        let length = length.map_or_else(|| "more".to_string(), |length| length.to_string());
        let error =
            ErrorBody::new(Code::TooLong, format!("the body has {length} bytes, the limit is {MAX_REQUEST_BYTES}"));
        Refusal::from(error)
    };
    let announced = body.size_hint().lower();
    if announced > MAX_REQUEST_BYTES as u64 {
        return Err(too_long(Some(announced)));
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_REQUEST_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long(None)),
        Ok(Err(error)) => Err(ErrorBody::bad_request(format!("the body cannot be read: {error}")).into()),
        Err(_) => Err(Refusal {
            status: 408,
            error: ErrorBody::bad_request(format!("the body took longer than {} s", BODY_TIMEOUT.as_secs())),
        }),
    }
}

fn json<T: Serialize>(status: StatusCode, value: &T) -> Response<ReplyBody> {
    let (status, text) = match serde_json::to_vec(value) {
        Ok(text) => (status, text),
        // Only a map with keys that are no strings fails, and the wire has none; still, say so and do not panic.
        Err(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, br#"{"error":{"code":"error","message":"unserializable"}}"#.into())
        }
    };
    with_head(status, "application/json", Either::Left(Full::from(text)))
}

fn refuse(refusal: &Refusal) -> Response<ReplyBody> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &ErrorReply { error: refusal.error.clone() });
    if matches!(refusal.status, 408 | 413) {
        // The rest of the body is unread: the connection cannot carry another request.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn with_head(status: StatusCode, kind: &'static str, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn stream(running: Running, first: Step) -> Response<ReplyBody> {
    let (lines, receiver) = mpsc::channel(FRAME_QUEUE);
    let pump = tokio::spawn(pump(running, first, lines));
    let body = LinesBody { lines: receiver, pump: pump.abort_handle() };
    with_head(StatusCode::OK, "application/x-ndjson", Either::Right(body))
}

/// Turns steps into lines until the request ends or the body is dropped.
async fn pump(mut running: Running, first: Step, lines: mpsc::Sender<Bytes>) {
    let mut step = first;
    loop {
        let (event, last) = match step {
            Step::Event(event) => (event, false),
            Step::Heartbeat => (Event::Heartbeat, false),
            Step::Finished(Ok(Reply::Ask(reply))) => (Event::Done(Box::new(reply)), true),
            Step::Finished(Ok(_)) => return,
            Step::Finished(Err(error)) => (Event::Error { error }, true),
        };
        let Ok(mut line) = serde_json::to_vec(&event) else { return };
        line.push(b'\n');
        if lines.send(line.into()).await.is_err() || last {
            return;
        }
        step = running.step().await;
    }
}

/// A body of lines. Dropping it (the connection ended) ends the request.
struct LinesBody {
    lines: mpsc::Receiver<Bytes>,
    pump: AbortHandle,
}

impl Body for LinesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.lines.poll_recv(cx).map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

impl Drop for LinesBody {
    fn drop(&mut self) {
        self.pump.abort();
    }
}
