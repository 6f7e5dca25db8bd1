//! The index as a whole, on real folders.
//!
//! - `follow`: changes of files are reflected in searches
//! - `model`: random changes against a map, by seed
//! - `recovery`: kill -9 at random instants, then reopen
//! - `forgetting`: nothing is left of a forgotten document
//! - `folders`: roots, links, special files, names, ignored and missing things
//! - `jail`: workers that crash, hang, lie or are killed
//! - `searching`: modes, filters, languages, embedders that change
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod embedders;
mod folders;
mod follow;
mod forgetting;
mod harness;
mod jail;
mod model;
mod recovery;
mod searching;
