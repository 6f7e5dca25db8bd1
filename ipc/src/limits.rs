//! Every bound of the socket, with its reason. Nothing on the wire is believed past these.

use std::time::Duration;

/// Connections served at once. One person's tools need a handful; each may hold one handler thread.
pub const MAX_CONNECTIONS: usize = 64;

/// Handlers running at once, those abandoned after a cancellation included, so that a service that is slow
/// to notice a cancellation cannot pile up threads.
pub const MAX_HANDLERS: usize = MAX_CONNECTIONS;

/// Bytes of a request body, and of one JSON-RPC line. `ask` may carry passages; a large context holds ~1 MiB of text.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;

/// Bytes of one reply or one event a client accepts. A `search` for many passages is the largest.
pub const MAX_REPLY_BYTES: usize = 64 << 20;

/// Bytes of an HTTP head (request line and headers).
pub const MAX_HEAD_BYTES: usize = 32 << 10;

/// Header fields in an HTTP head.
pub const MAX_HEADERS: usize = 64;

/// Time from the wait for a request to the end of its head. It bounds both idle keep-alive and a slow sender.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the whole of a body, or from the first byte of a JSON-RPC line to its end.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Silence between two JSON-RPC lines; longer than for HTTP because a person may type them.
pub const LINE_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// A peer that takes no byte for this long is treated as gone.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A quiet stream sends a heartbeat this often, so that each side notices a dead other during a long prefill.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// A client that hears nothing on a stream for this long gives up: several heartbeats are missing.
pub const STREAM_SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client waits this long for replies that need no work (`status`, the list of roots): longer means a hung daemon.
pub const QUICK_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a running request looks whether its peer has hung up. It costs one system call, only while work runs.
pub const HANGUP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Events waiting for a slow reader; a full queue blocks the handler, which then generates no faster than is read.
pub const EVENT_QUEUE: usize = 64;

/// Encoded lines between the event pump and the HTTP body.
pub const FRAME_QUEUE: usize = 4;

/// After a deadline or shutdown a handler has this long to return by itself before its peer is answered without it.
pub const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// At shutdown all connections have this long to end; what is left is dropped.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A starting daemon waits this long for one that has stopped listening to let go of the lock: its drain and the closing
/// of its index fit in.
pub const HANDOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// How often it looks.
pub const HANDOVER_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Pause after a failed accept (most often: out of file descriptors).
pub const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Longest deadline a request may set, so that adding it to the clock cannot overflow.
pub const MAX_DEADLINE: Duration = Duration::from_secs(7 * 24 * 3600);

// A drain must leave the handlers their grace, and a peer must be given several heartbeats before it gives up.
const _: () = assert!(DRAIN_TIMEOUT.as_millis() > CANCEL_GRACE.as_millis());
const _: () = assert!(STREAM_SILENCE_TIMEOUT.as_millis() > 4 * HEARTBEAT_INTERVAL.as_millis());
const _: () = assert!(MAX_REPLY_BYTES > MAX_REQUEST_BYTES);
