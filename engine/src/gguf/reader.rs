//! A bounded cursor: the only place where a length from a file is believed, and only after it was checked.

use crate::error::LoadError;
use crate::limits::MAX_STRING_BYTES;

/// Reads little-endian values from a byte slice, never past its end.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far, which is the file offset.
    pub(crate) fn position(&self) -> u64 {
        self.at as u64
    }

    /// Bytes left to read.
    pub(crate) fn remaining(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// The next `n` bytes; `what` names them in the error.
    pub(crate) fn take(&mut self, n: u64, what: &str) -> Result<&'a [u8], LoadError> {
        if n > self.remaining() {
            return Err(LoadError::Truncated {
                what: what.to_owned(),
                from: self.position(),
                to: self.position().saturating_add(n),
                have: self.bytes.len() as u64,
            });
        }
        let start = self.at;
        self.at += n as usize;
        Ok(&self.bytes[start..self.at])
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], LoadError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N as u64, what)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, LoadError> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, LoadError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, LoadError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, LoadError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A count that must not exceed `limit`.
    pub(crate) fn count(&mut self, limit: u64, what: &str) -> Result<u64, LoadError> {
        let at = self.position();
        let value = self.u64(what)?;
        if value > limit {
            return Err(LoadError::TooLarge { what: what.to_owned(), at, value, limit });
        }
        Ok(value)
    }

    /// A length-prefixed UTF-8 string.
    pub(crate) fn string(&mut self, what: &str) -> Result<&'a str, LoadError> {
        let len = self.count(MAX_STRING_BYTES, what)?;
        let at = self.position();
        std::str::from_utf8(self.take(len, what)?)
            .map_err(|e| LoadError::Malformed { what: format!("{what} is not UTF-8 ({e})"), at })
    }
}
