//! Documents of the old office formats, kept in compound files: streams with names in one file.

pub(crate) mod doc;
pub(crate) mod msg;
pub(crate) mod ppt;
mod rc4;
mod summary;
pub(crate) mod xls;
mod xls_strings;

use std::io::{Cursor, Read};

use crate::extract::{Format, Refusal};

/// How such a file begins.
pub(crate) const SIGNATURE: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";

/// Entries of one folder of such a file that are looked at; a mail has some hundred.
const ENTRIES_MAX: usize = 20_000;

/// A compound file.
pub(super) struct Compound<'a> {
    file: cfb::CompoundFile<Cursor<&'a [u8]>>,
    bytes_max: u64,
}

impl<'a> Compound<'a> {
    /// # Errors
    /// Its tables are broken.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let file = cfb::CompoundFile::open(Cursor::new(bytes));
        let file = file.map_err(|_| Refusal::failed("its container is damaged"))?;
        Ok(Self { file, bytes_max: bytes.len() as u64 })
    }

    pub fn has(&self, stream: &str) -> bool {
        self.file.is_stream(stream)
    }

    /// The stream, or nothing where there is none or it is broken. It has no more bytes than the file.
    pub fn read(&mut self, stream: &str) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let stream = self.file.open_stream(stream).ok()?;
        // What can be read of a broken chain is better than nothing.
        let _ = stream.take(self.bytes_max).read_to_end(&mut out);
        (!out.is_empty()).then_some(out)
    }

    /// Names of what lies in that folder, `true` for folders.
    pub fn list(&self, folder: &str) -> Vec<(String, bool)> {
        let entries = self.file.read_storage(folder);
        let entries = entries.map(|all| all.take(ENTRIES_MAX).map(|e| (e.name().to_owned(), e.is_storage())).collect());
        entries.unwrap_or_default()
    }
}

/// Which document it is, by the stream that only such a document has.
pub(crate) fn format_of(bytes: &[u8]) -> Option<Format> {
    if !bytes.starts_with(SIGNATURE) {
        return None;
    }
    let file = Compound::open(bytes).ok()?;
    let kinds = [
        ("WordDocument", Format::Doc),
        ("Workbook", Format::Xls),
        ("Book", Format::Xls),
        ("PowerPoint Document", Format::Ppt),
        ("__properties_version1.0", Format::Msg),
    ];
    kinds.iter().find(|(stream, _)| file.has(stream)).map(|&(_, format)| format)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A number of 32 bits as a place in the bytes.
fn place_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

fn f64_at(bytes: &[u8], at: usize) -> Option<f64> {
    Some(f64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// Hundreds of nanoseconds since 1601 → milliseconds since 1970.
fn milliseconds(ticks: u64) -> Option<i64> {
    const YEAR_1970: i64 = 11_644_473_600_000;
    let since_1601 = i64::try_from(ticks / 10_000).ok()?;
    // Before 1980 there was no such program: a length of time, not a time.
    let year_1980 = 315_532_800_000;
    Some(since_1601 - YEAR_1970).filter(|&ms| (year_1980..10_000_000_000_000).contains(&ms))
}

fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0.into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write as _;

    /// A compound file of these streams.
    pub(crate) fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
        for (name, bytes) in streams {
            if let Some((folder, _)) = name.rsplit_once('/') {
                file.create_storage_all(folder).unwrap();
            }
            file.create_stream(name).unwrap().write_all(bytes).unwrap();
        }
        file.into_inner().into_inner()
    }

    #[test]
    fn documents_are_told_by_their_streams() {
        assert_eq!(format_of(&compound(&[("Workbook", b"x")])), Some(Format::Xls));
        assert_eq!(format_of(&compound(&[("WordDocument", b"x"), ("1Table", b"y")])), Some(Format::Doc));
        assert_eq!(format_of(&compound(&[("Other", b"x")])), None);
        assert_eq!(format_of(SIGNATURE), None);
    }

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(milliseconds(132_223_104_000_000_000), Some(1_577_836_800_000));
        assert_eq!(milliseconds(36_000_000_000), None);
    }
}
