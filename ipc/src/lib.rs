//! satchel's socket: HTTP/1.1 and JSON over a Unix socket, with a one-line JSON-RPC dialect for `nc`.
//!
//! This crate knows the wire ([`wire`]), how to serve it ([`serve`], [`Service`]) and how to call it ([`Client`]).
//! It knows nothing of models, indexes or files: the daemon implements [`Service`] and translates.
//!
//! A request runs as a plain synchronous call on a thread of its own. It is told through [`Cancel`] when its
//! peer closed the connection, its deadline passed or the daemon stops. Every buffer, queue, wait and count has a
//! bound in [`limits`].
//!
//! Absent on purpose: TCP, TLS, cookies, content negotiation, compression, file serving.

mod cancel;
mod client;
mod error;
mod http;
mod io;
pub mod limits;
mod route;
mod rpc;
mod running;
mod server;
mod service;
mod socket;
pub mod wire;

pub use cancel::{Cancel, CancelReason};
pub use client::{Client, ClientError, EventStream};
pub use error::{Code, ErrorBody, ErrorReply};
pub use route::{Reply, Request};
pub use server::serve;
pub use service::{EventSink, Exchange, Service};
pub use socket::{Socket, SocketError, check_path, default_path};
