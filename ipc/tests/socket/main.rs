//! The socket from outside: a real server on a real socket, with a service that does as its question says.
//!
//! - `roundtrip`: every route through the client
//! - `malformed`: raw bytes that are no proper requests
//! - `bounds`: sizes, counts and times
//! - `cancel`: closing, deadlines, panics, slow readers
//! - `shutdown`: ending with work open
//! - `permissions`: the socket as a file
//! - `dialect`: JSON-RPC, one object a line

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bounds;
mod cancel;
mod dialect;
mod harness;
mod malformed;
mod permissions;
mod roundtrip;
mod shutdown;
