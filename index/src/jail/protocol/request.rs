//! A file to read.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::wire::{self, Broken};
use crate::extract::Limits;
use crate::limits::{FILE_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORDS_MAX};

const MAGIC: &[u8; 4] = b"SXQ1";

/// Bytes of a file's name; file systems allow 255, some a few more.
const NAME_MAX: usize = 4096;

/// What a worker is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub number: u64,
    /// The file's own name, without its folder.
    pub name: PathBuf,
    pub passwords: Vec<String>,
    pub text_bytes_max: usize,
    pub headings_max: usize,
    pub parts_max: usize,
    pub bytes: Vec<u8>,
}

pub(crate) fn write_request(
    to: &mut impl Write,
    number: u64,
    name: &OsStr,
    passwords: &[String],
    limits: &Limits,
    bytes: &[u8],
) -> io::Result<()> {
    // One small write for the head, one for the bytes as they are.
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&number.to_le_bytes());
    wire::put_count(&mut head, name.len())?;
    head.extend_from_slice(name.as_bytes());
    wire::put_count(&mut head, passwords.len())?;
    for password in passwords {
        wire::put_text(&mut head, password)?;
    }
    head.extend_from_slice(&(limits.text_bytes_max as u64).to_le_bytes());
    wire::put_count(&mut head, limits.headings_max)?;
    wire::put_count(&mut head, limits.parts_max)?;
    head.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)?;
    to.flush()
}

/// The next request; none when the other side has closed the pipe.
pub(crate) fn read_request(from: &mut impl Read) -> Result<Option<Request>, Broken> {
    let mut magic = [0; 4];
    if from.read(&mut magic[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut magic[1..])?;
    if &magic != MAGIC {
        return Err(Broken::Bad("it is no request"));
    }
    let number = wire::u64(from)?;
    let length = wire::count(from, NAME_MAX, "a name is too long")?;
    let name = PathBuf::from(std::ffi::OsString::from_vec(wire::bytes(from, length)?));
    let count = wire::count(from, PASSWORDS_MAX, "too many passwords")?;
    let passwords = (0..count).map(|_| wire::text(from, PASSWORD_BYTES_MAX)).collect::<Result<_, _>>()?;
    let own = Limits::default();
    let text_bytes_max = wire::size(from, own.text_bytes_max, "too much text is asked for")?;
    let headings_max = wire::count(from, own.headings_max, "too many headings are asked for")?;
    let parts_max = wire::count(from, own.parts_max, "too many parts are asked for")?;
    let most = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
    let length = wire::size(from, most, "a file is too large")?;
    let bytes = wire::bytes(from, length)?;
    Ok(Some(Request { number, name, passwords, text_bytes_max, headings_max, parts_max, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        let passwords = ["pass word".to_owned()];
        write_request(&mut out, 7, OsStr::from_bytes(b"a\xff.txt"), &passwords, &Limits::default(), b"bytes").unwrap();
        out
    }

    #[test]
    fn a_request_comes_as_it_was_sent() {
        let mut from = &written()[..];
        let read = read_request(&mut from).unwrap().unwrap();
        assert_eq!(
            (read.number, read.name.as_os_str().as_bytes(), &read.bytes[..]),
            (7, &b"a\xff.txt"[..], &b"bytes"[..])
        );
        assert_eq!((read.passwords, read.parts_max), (vec!["pass word".to_owned()], Limits::default().parts_max));
        assert_eq!(read_request(&mut from).unwrap(), None);
    }

    #[test]
    fn a_cut_or_lying_request_is_refused() {
        let whole = written();
        for end in 1..whole.len() {
            assert!(read_request(&mut &whole[..end]).is_err(), "cut at {end}");
        }
        let mut lying = whole.clone();
        let at = whole.len() - 5 - 8;
        lying[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(read_request(&mut &lying[..]), Err(Broken::Bad("a file is too large"))));
    }
}
