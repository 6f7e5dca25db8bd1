//! One file for each format; each a pure `fn(&[u8], &Limits) -> Result<Extracted, Refusal>` without paths, I/O or
//! recursion on the input, so that it can run in a jailed process.

pub(crate) mod html;
pub(crate) mod mail;
pub(crate) mod markdown;
pub(crate) mod mbox;
pub(crate) mod odf;
pub(crate) mod ooxml;
pub(crate) mod pdf;
pub(crate) mod plain;
