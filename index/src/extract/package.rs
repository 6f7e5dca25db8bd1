//! A ZIP file as a set of named members, within bounds: what an office document, a book or an archive is packed in.

use std::io::{Cursor, Read};

use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::{Budget, Refusal};
use crate::types::State;

/// Members of one file. The largest office documents have a few thousand; each costs some 300 bytes while it is open.
const MEMBERS_MAX: usize = 65_535;

/// Bytes of one member, unpacked: the XML of a very large sheet.
const MEMBER_BYTES_MAX: u64 = 192 << 20;

/// A member that is this much larger than it was packed is no document. XML of like rows stays below 1:150.
const RATIO_MAX: u64 = 400;

/// Below this size, unpacked, the ratio says nothing.
const RATIO_FREE_BYTES: u64 = 16 << 20;

/// An open ZIP file.
pub(crate) struct Package<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    budget: Budget,
}

/// What a member is, without its content.
pub(crate) struct Member {
    pub name: String,
    pub encrypted: bool,
    pub is_folder: bool,
    pub is_link: bool,
    pub bytes: u64,
}

impl<'a> Package<'a> {
    /// Opens it; reads the list of members only.
    ///
    /// # Errors
    /// It is broken, or its members share their bytes, or there are too many.
    pub(crate) fn open(bytes: &'a [u8], budget: &Budget) -> Result<Self, Refusal> {
        // Before the list is read: a member's entry there begins so, and each makes an allocation.
        let entries = bytes.windows(4).filter(|w| w == b"PK\x01\x02").take(4 * MEMBERS_MAX).count();
        if entries >= 4 * MEMBERS_MAX {
            return Err(Refusal::failed("it is packed with too many members"));
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(refusal_of)?;
        if zip.len() > MEMBERS_MAX {
            return Err(Refusal::failed(format!("it is packed with {} members, too many", zip.len())));
        }
        let mut package = Self { zip, budget: budget.clone() };
        package.refuse_overlaps()?;
        Ok(package)
    }

    /// Members that share their packed bytes are the mark of a file that is small and unpacks to petabytes.
    fn refuse_overlaps(&mut self) -> Result<(), Refusal> {
        let mut spans = Vec::with_capacity(self.zip.len());
        for index in 0..self.zip.len() {
            // A member whose own header is broken is told of when it is read.
            let Ok(file) = self.zip.by_index_raw(index) else { continue };
            let Some(start) = file.data_start() else { continue };
            if file.compressed_size() > 0 {
                spans.push((start, start.saturating_add(file.compressed_size())));
            }
        }
        spans.sort_unstable();
        if spans.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            return Err(Refusal::failed("it is a bomb: its members share their bytes"));
        }
        Ok(())
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.zip.len()
    }

    /// Names of all members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.zip.file_names()
    }

    /// What the member at this place of the list is; `None` where its header is broken.
    pub(crate) fn member(&mut self, index: usize) -> Option<Member> {
        let file = self.zip.by_index_raw(index).ok()?;
        Some(Member {
            name: file.name().to_owned(),
            encrypted: file.encrypted(),
            is_folder: file.is_dir(),
            is_link: file.is_symlink(),
            bytes: file.size(),
        })
    }

    /// Whether there is a member of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.index_of(name).is_some()
    }

    /// Whether the member is packed in one of the two ways that all programs know.
    pub(crate) fn is_packed_usually(&mut self, name: &str) -> bool {
        let index = self.index_of(name);
        let file = index.and_then(|index| self.zip.by_index_raw(index).ok());
        file.is_some_and(|f| matches!(f.compression(), CompressionMethod::Stored | CompressionMethod::Deflated))
    }

    /// The member of that name; names in office documents do not tell case apart.
    fn index_of(&self, name: &str) -> Option<usize> {
        let name = name.trim_start_matches('/');
        self.zip.index_for_name(name).or_else(|| {
            let found = self.zip.file_names().find(|n| n.eq_ignore_ascii_case(name))?;
            self.zip.index_for_name(found)
        })
    }

    /// The content of a member, or `None` where there is no such member.
    ///
    /// # Errors
    /// It is broken, or larger than is read.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        match self.index_of(name) {
            Some(index) => self.read_at(index, None).map(Some),
            None => Ok(None),
        }
    }

    /// The content of an XML member as text.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_xml(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let Some(bytes) = self.read(name)? else { return Ok(None) };
        // The usual case without a copy.
        Ok(Some(String::from_utf8(bytes).unwrap_or_else(|e| super::xml::decode(e.as_bytes()).into_owned())))
    }

    /// The content of the member at this place of the list, opened with a password where one is given.
    ///
    /// # Errors
    /// It is broken, larger than is read, or the password is wrong.
    pub(crate) fn read_at(&mut self, index: usize, password: Option<&str>) -> Result<Vec<u8>, Refusal> {
        let file = match password {
            None => self.zip.by_index(index),
            Some(password) => self.zip.by_index_decrypt(index, password.as_bytes()),
        };
        let mut file = file.map_err(refusal_of)?;
        let (packed, size) = (file.compressed_size(), file.size());
        let bound =
            MEMBER_BYTES_MAX.min(self.budget.left()).min(RATIO_FREE_BYTES.max(packed.saturating_mul(RATIO_MAX)));
        // The size that is told is a wish; what is reserved for it is bounded by what the packed bytes can be.
        let mut out = Vec::with_capacity(usize::try_from(size.min(bound)).unwrap_or(0).min(16 << 20));
        let read = file.by_ref().take(bound + 1).read_to_end(&mut out);
        let unpacked = out.len() as u64;
        self.budget.spend(unpacked);
        if unpacked > bound {
            return Err(Refusal::failed("it unpacks to far more than a document does"));
        }
        match read {
            Ok(_) => Ok(out),
            Err(error) => Err(Refusal::failed(format!("it is broken: {error}"))),
        }
    }
}

fn refusal_of(error: ZipError) -> Refusal {
    match error {
        ZipError::InvalidPassword => Refusal::locked(),
        ZipError::UnsupportedArchive(what) if what == ZipError::PASSWORD_REQUIRED => Refusal::locked(),
        ZipError::InvalidArchive(_) => Refusal::failed("it is broken: it is cut off, or no ZIP file at all"),
        other => Refusal::failed(format!("it is broken: {other}")),
    }
}

impl Refusal {
    /// A password is needed, and none of the person's own opens it.
    pub(crate) fn locked() -> Self {
        Self { state: State::Locked, reason: "it is locked with a password".to_owned() }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    /// A ZIP file with these members.
    pub(crate) fn packed(members: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in members {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn members_are_read_whatever_their_case() {
        let bytes = packed(&[("Word/Document.xml", "<a/>"), ("b", "2")]);
        let mut package = Package::open(&bytes, &Budget::default()).unwrap();
        assert_eq!(package.read_xml("/word/document.xml").unwrap().as_deref(), Some("<a/>"));
        assert_eq!(package.read("none").unwrap(), None);
        assert!(package.has("b"));
    }

    #[test]
    fn what_is_cut_is_broken() {
        let bytes = packed(&[("a", "some text")]);
        assert_eq!(Package::open(&bytes[..bytes.len() - 20], &Budget::default()).err().unwrap().state, State::Failed);
    }

    #[test]
    fn a_bomb_is_refused() {
        let bytes = packed(&[("a", &"\0".repeat(64 << 20))]);
        assert!(bytes.len() < 100 << 10);
        let refusal = Package::open(&bytes, &Budget::default()).unwrap().read("a").unwrap_err();
        assert!(refusal.reason.contains("far more"), "{}", refusal.reason);
    }

    #[test]
    fn members_that_share_bytes_are_refused() {
        // Two entries of the list that point at one member: the second's offset is made the first's.
        let mut bytes = packed(&[("a", "the same bytes twice"), ("b", "the same bytes twice")]);
        let entry = bytes.windows(4).rposition(|w| w == b"PK\x01\x02").unwrap();
        bytes[entry + 42..entry + 46].copy_from_slice(&[0; 4]);
        let refusal = Package::open(&bytes, &Budget::default()).err().unwrap();
        assert!(refusal.reason.contains("bomb"), "{}", refusal.reason);
    }
}
