//! What goes over the pipes between the daemon and a worker, byte by byte.
//!
//! All numbers are little endian. A text is its length (u32) and its bytes; one that may be absent has the length
//! `u32::MAX` for absent. The worker speaks first, once it is confined:
//!
//! ```text
//! hello    "SXH1"  version u32  level: limits u8, files u8 (Landlock's ABI, 0 for none), calls u8, note text
//! request  "SXQ1"  number u64  name text  passwords u32, text each  text_max u64  headings_max u32  parts_max u32
//!                  length u64, bytes
//! reply    "SXR1"  number u64  0 u8, extracted  or  1 u8, refusal
//! extracted        in_file u8  title, author, language: text or absent  dated: 0 u8 or 1 u8, i64  charset text  cut: text or absent
//!                  keywords u32, text each  headings u32, (start u64, level u8, text) each
//!                  parts u32, (start u64, kind u8, number u32, name: text or absent) each  length u64, UTF-8
//! refusal          state u8  reason text
//! ```
//!
//! Whoever reads checks a length against its bound before anything is allocated for it. The parent believes nothing of a
//! reply: a worker may have been taken over by the file it read.

mod hello;
mod reply;
mod request;
mod wire;

pub(crate) use hello::{read_hello, write_hello};
pub(crate) use reply::{Reply, read_reply, write_reply};
pub(crate) use request::{Request, read_request, write_request};
pub(crate) use wire::Broken;
