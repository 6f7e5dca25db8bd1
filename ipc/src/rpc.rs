//! The JSON-RPC 2.0 dialect on one connection: one object a line, answered in order.
//!
//! A streaming call is answered by notifications `{"jsonrpc":"2.0","method":"event","params":{"id":ID,"event":{...}}}`
//! and then by its result, which is the object of the `done` event. Errors carry satchel's own error under `data`.
//! Calls without an id are carried out and not answered. Batches are refused: lines do the same.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::error::{Code, ErrorBody};
use crate::io::{Hangup, PeerIo};
use crate::limits::{BODY_TIMEOUT, LINE_IDLE_TIMEOUT, MAX_REQUEST_BYTES};
use crate::route::{Request, RpcRefusal};
use crate::running::{Hub, Running, Step};
use crate::service::Service;
use crate::wire::Event;

// Error numbers of JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// From the range left to servers; `data.code` says which error it is.
const SERVER_ERROR: i32 = -32000;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// Answers lines until the peer has sent its last one, leaves, or the server stops.
pub(crate) async fn converse<S: Service>(hub: Hub<S>, io: PeerIo, peer: Arc<Hangup>) {
    let mut lines = Lines { io, buffer: Vec::new(), searched: 0, ended: false };
    let mut shutdown = hub.shutdown.clone();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = shutdown.wait() => return,
        };
        let done = match line {
            Line::Text(line) => carry_out(&hub, &peer, &mut lines.io, &line).await,
            Line::TooLong => {
                let error = ErrorBody::new(Code::TooLong, format!("a line is longer than {MAX_REQUEST_BYTES} bytes"));
                let _ = send(&mut lines.io, &failure(&Value::Null, INVALID_REQUEST, &error)).await;
                return;
            }
            Line::End => return,
        };
        if done.is_err() {
            return; // The peer left.
        }
    }
}

/// A call. The field `id` tells a missing id from a null one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: String,
    #[serde(default)]
    params: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

async fn carry_out<S: Service>(hub: &Hub<S>, peer: &Arc<Hangup>, io: &mut PeerIo, line: &[u8]) -> std::io::Result<()> {
    let call = match parse(line) {
        Ok(call) => call,
        Err((id, number, error)) => return send(io, &failure(&id, number, &error)).await,
    };
    let request = match Request::from_rpc(&call.method, call.params) {
        Ok(request) => request,
        Err(refusal) => {
            let (number, error) = match refusal {
                RpcRefusal::UnknownMethod(error) => (METHOD_NOT_FOUND, error),
                RpcRefusal::BadParams(error) => (INVALID_PARAMS, error),
            };
            return reply(io, call.id.as_ref(), |id| failure(id, number, &error)).await;
        }
    };
    let mut running = match Running::start(hub, peer, request) {
        Ok(running) => running,
        Err(error) => return reply(io, call.id.as_ref(), |id| failure(id, SERVER_ERROR, &error)).await,
    };
    loop {
        match running.step().await {
            Step::Event(event) => reply(io, call.id.as_ref(), |id| notification(id, &event)).await?,
            // A plain call wants no lines before its result.
            Step::Heartbeat if !running.is_streaming() => {}
            Step::Heartbeat => reply(io, call.id.as_ref(), |id| notification(id, &Event::Heartbeat)).await?,
            Step::Finished(Ok(result)) => {
                return reply(io, call.id.as_ref(), |id| json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
            }
            Step::Finished(Err(error)) => {
                return reply(io, call.id.as_ref(), |id| failure(id, SERVER_ERROR, &error)).await;
            }
        }
    }
}

/// The call, or the id to answer to, the error's number and the error.
fn parse(line: &[u8]) -> Result<Call, (Value, i32, ErrorBody)> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        (Value::Null, PARSE_ERROR, ErrorBody::bad_request(format!("the line is not JSON: {error}")))
    })?;
    let id = value.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or(Value::Null);
    let invalid = |message: String| (id.clone(), INVALID_REQUEST, ErrorBody::bad_request(message));
    if value.is_array() {
        return Err(invalid("batches are not served: send one object a line".into()));
    }
    let call: Call = serde_json::from_value(value).map_err(|error| invalid(format!("not a call: {error}")))?;
    if call.jsonrpc != "2.0" {
        return Err(invalid(format!("`jsonrpc` is {:?}, not \"2.0\"", call.jsonrpc)));
    }
    if call.id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number() || id.is_null())) {
        return Err(invalid("`id` is neither a string nor a number".into()));
    }
    Ok(call)
}

async fn reply(io: &mut PeerIo, id: Option<&Value>, message: impl FnOnce(&Value) -> Value) -> std::io::Result<()> {
    match id {
        Some(id) => send(io, &message(id)).await,
        None => Ok(()),
    }
}

fn failure(id: &Value, number: i32, error: &ErrorBody) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": number, "message": error.message, "data": error}})
}

fn notification(id: &Value, event: &Event) -> Value {
    json!({"jsonrpc": "2.0", "method": "event", "params": {"id": id, "event": event}})
}

async fn send<T: Serialize>(io: &mut PeerIo, message: &T) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    io.write_all(&line).await?;
    io.flush().await
}

/// What the peer sent next.
enum Line {
    Text(Vec<u8>),
    TooLong,
    End,
}

/// A bounded reader of lines.
struct Lines {
    io: PeerIo,
    buffer: Vec<u8>,
    /// Bytes of `buffer` known to hold no newline.
    searched: usize,
    ended: bool,
}

impl Lines {
    /// The next line that is not blank; the last one may lack its newline.
    async fn next(&mut self) -> Line {
        let mut until = Instant::now() + if self.buffer.is_empty() { LINE_IDLE_TIMEOUT } else { BODY_TIMEOUT };
        loop {
            if let Some(line) = self.take_line() {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Line::Text(line);
            }
            if self.buffer.len() > MAX_REQUEST_BYTES {
                return Line::TooLong;
            }
            if self.ended {
                let rest = std::mem::take(&mut self.buffer);
                return if rest.trim_ascii().is_empty() { Line::End } else { Line::Text(rest) };
            }
            let was_empty = self.buffer.is_empty();
            self.buffer.reserve(CHUNK_BYTES);
            match timeout_at(until, self.io.read_buf(&mut self.buffer)).await {
                Ok(Ok(0)) => self.ended = true,
                Ok(Ok(_)) if was_empty => until = Instant::now() + BODY_TIMEOUT,
                Ok(Ok(_)) => {}
                Ok(Err(_)) | Err(_) => return Line::End,
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(offset) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(self.searched + offset + 1);
        self.searched = 0;
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}
