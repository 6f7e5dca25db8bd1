//! One file for each format; each a pure `fn(&[u8], &Limits) -> Result<Extracted, Refusal>` without paths, I/O or
//! recursion on the input, so that it can run in a jailed process.

pub(crate) mod archive;
pub(crate) mod epub;
pub(crate) mod html;
pub(crate) mod iwa;
pub(crate) mod iwork;
pub(crate) mod latex;
pub(crate) mod lines;
pub(crate) mod mail;
pub(crate) mod markdown;
pub(crate) mod mbox;
pub(crate) mod mhtml;
pub(crate) mod notebook;
pub(crate) mod odf;
pub(crate) mod ole;
pub(crate) mod ooxml;
pub(crate) mod org;
pub(crate) mod pdf;
pub(crate) mod plain;
pub(crate) mod rst;
pub(crate) mod rtf;
