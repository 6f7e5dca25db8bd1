//! Numbers and texts, read within bounds.

use std::io::{self, Read, Write};

/// Why a message was not understood.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The other side went away, or the system refused.
    Io(io::Error),
    /// It is against the protocol.
    Bad(&'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Length that stands for an absent text.
const ABSENT: u32 = u32::MAX;

/// Bytes allocated before the first of them has come: a length alone costs nothing.
const ALLOCATED_FIRST: usize = 1 << 20;

pub(super) fn array<const N: usize>(from: &mut impl Read) -> Result<[u8; N], Broken> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn u8(from: &mut impl Read) -> Result<u8, Broken> {
    Ok(u8::from_le_bytes(array(from)?))
}

pub(super) fn u32(from: &mut impl Read) -> Result<u32, Broken> {
    Ok(u32::from_le_bytes(array(from)?))
}

pub(super) fn u64(from: &mut impl Read) -> Result<u64, Broken> {
    Ok(u64::from_le_bytes(array(from)?))
}

pub(super) fn i64(from: &mut impl Read) -> Result<i64, Broken> {
    Ok(i64::from_le_bytes(array(from)?))
}

/// A yes or no; anything else is against the protocol.
pub(super) fn flag(from: &mut impl Read) -> Result<bool, Broken> {
    match u8(from)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Broken::Bad("a flag is neither yes nor no")),
    }
}

/// A count, at most `max`.
pub(super) fn count(from: &mut impl Read, max: usize, what: &'static str) -> Result<usize, Broken> {
    let n = usize::try_from(u32(from)?).unwrap_or(usize::MAX);
    if n <= max { Ok(n) } else { Err(Broken::Bad(what)) }
}

/// A place in a text or a length of bytes, at most `max`.
pub(super) fn size(from: &mut impl Read, max: usize, what: &'static str) -> Result<usize, Broken> {
    let n = usize::try_from(u64(from)?).unwrap_or(usize::MAX);
    if n <= max { Ok(n) } else { Err(Broken::Bad(what)) }
}

/// So many bytes; memory grows with what comes, not with what was announced.
pub(super) fn bytes(from: &mut impl Read, length: usize) -> Result<Vec<u8>, Broken> {
    let mut bytes = Vec::with_capacity(length.min(ALLOCATED_FIRST));
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(Broken::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

pub(super) fn text(from: &mut impl Read, max: usize) -> Result<String, Broken> {
    maybe_text(from, max)?.ok_or(Broken::Bad("a text is absent that must not be"))
}

pub(super) fn maybe_text(from: &mut impl Read, max: usize) -> Result<Option<String>, Broken> {
    let length = match u32(from)? {
        ABSENT => return Ok(None),
        length => usize::try_from(length).unwrap_or(usize::MAX),
    };
    if length > max {
        return Err(Broken::Bad("a text is longer than it may be"));
    }
    utf8(bytes(from, length)?).map(Some)
}

pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, Broken> {
    String::from_utf8(bytes).map_err(|_| Broken::Bad("a text is not UTF-8"))
}

/// Puts a text; the writer keeps the bounds, so a longer one than a u32 can say does not come.
pub(super) fn put_text(to: &mut impl Write, text: &str) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    put_number(to, length)?;
    to.write_all(text.as_bytes())
}

pub(super) fn put_maybe_text(to: &mut impl Write, text: Option<&str>) -> io::Result<()> {
    match text {
        Some(text) => put_text(to, text),
        None => put_number(to, ABSENT),
    }
}

/// Puts a count that its own bound keeps below u32's.
pub(super) fn put_count(to: &mut impl Write, count: usize) -> io::Result<()> {
    put_number(to, u32::try_from(count).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?)
}

pub(super) fn put_number(to: &mut impl Write, number: u32) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())
}
