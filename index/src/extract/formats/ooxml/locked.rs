//! Office documents that need a password: the packed document is one encrypted stream in a file of the old kind, beside
//! a stream that says how (MS-OFFCRYPTO: standard and agile encryption).

use std::io::{Cursor, Read};
use std::path::Path;

use crate::extract::cipher::{self, AES_BLOCK, Hash, PASSWORDS_MAX, ROUNDS_MAX};
use crate::extract::xml::{Node, Xml};
use crate::extract::{Context, Extracted, Refusal};

/// Bytes of the stream that says how the other is locked.
const INFO_BYTES_MAX: u64 = 1 << 20;

/// Bytes that are locked as one piece in the agile way.
const SEGMENT_BYTES: usize = 4096;

/// Rounds of the standard way.
const STANDARD_ROUNDS: u32 = 50_000;

/// Which key of the agile way is made: each has a mark of its own.
const VERIFIER_INPUT: [u8; 8] = [0xFE, 0xA7, 0xD2, 0x76, 0x3B, 0x4B, 0x9E, 0x79];
const VERIFIER_VALUE: [u8; 8] = [0xD7, 0xAA, 0x0F, 0x6D, 0x30, 0x61, 0x34, 0x4E];
const KEY_VALUE: [u8; 8] = [0x14, 0x6E, 0x0B, 0xE7, 0xAB, 0xAC, 0xD0, 0xD6];

/// Whether these are the bytes of a locked document.
pub(crate) fn is_locked(bytes: &[u8]) -> bool {
    // The names of streams stand as UTF-16 in the file's list.
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") && bytes.windows(name.len()).any(|w| w == name)
}

/// Opens it with one of the person's passwords and reads what is in it.
///
/// # Errors
/// None of them opens it, or what is in it cannot be read.
pub(crate) fn extract(name: &Path, bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let (info, package) = streams(bytes).ok_or_else(Refusal::locked)?;
    let passwords = context.passwords.iter().take(PASSWORDS_MAX);
    let opened = passwords.filter_map(|password| open(&info, &package, password)).next().ok_or_else(Refusal::locked)?;
    drop(package);
    let inner = context.inner().ok_or_else(Refusal::locked)?;
    crate::extract::extract(name, &opened, &inner)
}

fn streams(bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut file = cfb::CompoundFile::open(Cursor::new(bytes)).ok()?;
    let mut read = |name: &str, bytes_max: u64| {
        let mut out = Vec::new();
        file.open_stream(name).ok()?.take(bytes_max).read_to_end(&mut out).ok()?;
        Some(out)
    };
    // A stream has no more bytes than the file.
    Some((read("EncryptionInfo", INFO_BYTES_MAX)?, read("EncryptedPackage", bytes.len() as u64)?))
}

fn open(info: &[u8], package: &[u8], password: &str) -> Option<Vec<u8>> {
    let size = usize::try_from(u64::from_le_bytes(package.get(..8)?.try_into().ok()?)).ok()?;
    let locked = package.get(8..)?;
    let password: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let version = (u16_at(info, 0)?, u16_at(info, 2)?);
    let mut opened = match version {
        (4, 4) => Agile::read(info.get(8..)?)?.open(&password, locked)?,
        (2..=4, 2) => standard(info.get(8..)?, &password, locked)?,
        _ => return None,
    };
    opened.truncate(size);
    Some(opened)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A password's hash, hashed over and over with the number of the round.
fn rounds_of(hash: Hash, salt: &[u8], password: &[u8], rounds: u32) -> Vec<u8> {
    let mut out = hash.of(&[salt, password]);
    for round in 0..rounds {
        out = hash.of(&[&round.to_le_bytes(), &out]);
    }
    out
}

/// The standard way: AES without a chain, keys by SHA-1.
fn standard(info: &[u8], password: &[u8], locked: &[u8]) -> Option<Vec<u8>> {
    let header_bytes = usize::try_from(u32_at(info, 0)?).ok()?;
    let header = info.get(4..4_usize.checked_add(header_bytes)?)?;
    let key_bytes = usize::try_from(u32_at(header, 16)?).ok()? / 8;
    let verifier = info.get(4 + header_bytes..)?;
    let salt = verifier.get(4..20)?;
    let hash = rounds_of(Hash::Sha1, salt, password, STANDARD_ROUNDS);
    let last = Hash::Sha1.of(&[&hash, &0_u32.to_le_bytes()]);
    let derive = |pad: u8| {
        let mut block = [pad; 64];
        block.iter_mut().zip(&last).for_each(|(b, h)| *b ^= h);
        Hash::Sha1.of(&[&block])
    };
    let key = [derive(0x36), derive(0x5C)].concat();
    let key = key.get(..key_bytes)?;
    let told = cipher::aes_ecb(key, verifier.get(20..36)?)?;
    let expected = cipher::aes_ecb(key, verifier.get(40..72)?)?;
    if expected.get(..20)? != Hash::Sha1.of(&[&told]) {
        return None;
    }
    cipher::aes_ecb(key, locked)
}

/// How one thing is locked in the agile way.
#[derive(Debug, Default)]
struct Lock {
    salt: Vec<u8>,
    key_bytes: usize,
    hash: Option<Hash>,
    is_cbc: bool,
}

/// The agile way: AES in chains, of which an XML text says the rest.
#[derive(Debug, Default)]
struct Agile {
    data: Lock,
    password: Lock,
    rounds: u32,
    verifier_input: Vec<u8>,
    verifier_value: Vec<u8>,
    key_value: Vec<u8>,
}

impl Agile {
    fn read(info: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(info).ok()?;
        let (mut xml, mut out) = (Xml::new(text), Self::default());
        while let Some(node) = xml.next() {
            let Node::Start(tag) = node else { continue };
            let bytes = |name: &str| tag.get(name).and_then(|t| cipher::base64(&t)).unwrap_or_default();
            let lock = || Lock {
                salt: bytes("saltValue"),
                key_bytes: tag.get("keyBits").and_then(|b| b.parse::<usize>().ok()).unwrap_or(0) / 8,
                hash: Hash::named(&tag.get("hashAlgorithm").unwrap_or_default()),
                is_cbc: tag.get("cipherAlgorithm").is_some_and(|c| c == "AES")
                    && tag.get("cipherChaining").is_some_and(|c| c == "ChainingModeCBC"),
            };
            match tag.name() {
                "keyData" => out.data = lock(),
                "encryptedKey" => {
                    out.password = lock();
                    out.rounds = tag.get("spinCount").and_then(|r| r.parse().ok()).unwrap_or(u32::MAX);
                    out.verifier_input = bytes("encryptedVerifierHashInput");
                    out.verifier_value = bytes("encryptedVerifierHashValue");
                    out.key_value = bytes("encryptedKeyValue");
                }
                _ => {}
            }
        }
        (out.data.is_cbc && out.password.is_cbc && out.rounds <= ROUNDS_MAX).then_some(out)
    }

    fn open(&self, password: &[u8], locked: &[u8]) -> Option<Vec<u8>> {
        let hash = self.password.hash?;
        let base = rounds_of(hash, &self.password.salt, password, self.rounds);
        let opened = |mark: &[u8], bytes: &[u8]| {
            let key = sized(hash.of(&[&base, mark]), self.password.key_bytes);
            cipher::aes_cbc(&key, &sized(self.password.salt.clone(), AES_BLOCK), bytes)
        };
        let told = hash.of(&[&opened(&VERIFIER_INPUT, &self.verifier_input)?]);
        let expected = opened(&VERIFIER_VALUE, &self.verifier_value)?;
        if expected.get(..told.len())? != told {
            return None;
        }
        let key = sized(opened(&KEY_VALUE, &self.key_value)?, self.data.key_bytes);
        let mut out = Vec::with_capacity(locked.len());
        for (number, segment) in (0_u32..).zip(locked.chunks(SEGMENT_BYTES)) {
            let start = self.data.hash?.of(&[&self.data.salt, &number.to_le_bytes()]);
            out.extend(cipher::aes_cbc(&key, &sized(start, AES_BLOCK), segment)?);
        }
        Some(out)
    }
}

/// Cut or filled to a size, as the standard says.
fn sized(mut bytes: Vec<u8>, size: usize) -> Vec<u8> {
    // No key is longer; a size that a file tells is not reserved as it is.
    bytes.resize(size.min(64), 0x36);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;

    #[test]
    fn what_says_no_way_stays_locked() {
        let mut bytes = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec();
        bytes.extend("EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes));
        assert!(is_locked(&bytes));
        assert!(!is_locked(&bytes[..20]));
        let limits = Limits::default();
        let got = extract(Path::new("a.docx"), &bytes, &Context::new(&limits, &["x".to_owned()]));
        assert_eq!(got.unwrap_err().state, crate::State::Locked);
    }

    #[test]
    fn absurd_ways_are_survived() {
        for info in [&b""[..], &[4, 0, 4, 0], &[3, 0, 2, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF], &[0xFF; 100]] {
            assert_eq!(open(info, &[0xFF; 100], "x"), None);
        }
        let rounds = "<e><keyData cipherAlgorithm='AES' cipherChaining='ChainingModeCBC'/>\
                      <encryptedKey cipherAlgorithm='AES' cipherChaining='ChainingModeCBC' spinCount='4000000000'/></e>";
        assert!(Agile::read(rounds.as_bytes()).is_none());
    }
}
