//! OpenDocuments that need a password: each member is locked by itself, and the manifest says how.

use std::collections::HashMap;
use std::io::Read;

use crate::extract::cipher::{self, Hash, PASSWORDS_MAX, ROUNDS_MAX};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Xml};
use crate::extract::{Context, Refusal};

/// Bytes of one member, unpacked.
const MEMBER_BYTES_MAX: u64 = 192 << 20;

/// How one member is locked.
#[derive(Debug, Default, Clone)]
struct Lock {
    algorithm: String,
    start: Vec<u8>,
    salt: Vec<u8>,
    rounds: u32,
    key_bytes: usize,
    /// What the password is hashed with first.
    hash: Option<Hash>,
    derivation: String,
}

/// What opens the members of a document.
pub(crate) struct Keys<'c> {
    locks: HashMap<String, Lock>,
    password: Option<&'c str>,
    context: &'c Context<'c>,
}

impl<'c> Keys<'c> {
    /// Reads how the document is locked, and finds the password.
    ///
    /// # Errors
    /// None of the person's passwords opens it.
    pub(crate) fn find(package: &mut Package<'_>, context: &'c Context<'c>) -> Result<Self, Refusal> {
        let manifest = package.read_xml("META-INF/manifest.xml")?.unwrap_or_default();
        let mut keys = Self { locks: locks(&manifest), password: None, context };
        let Some(lock) = keys.locks.get("content.xml").cloned() else {
            // LibreOffice's newest way locks the whole document as one member.
            return if package.has("encrypted-package") { Err(Refusal::locked()) } else { Ok(keys) };
        };
        let Some(bytes) = package.read("content.xml")? else { return Ok(keys) };
        for password in context.passwords.iter().take(PASSWORDS_MAX) {
            if open(&lock, password, &bytes, context).is_some() {
                keys.password = Some(password);
                return Ok(keys);
            }
        }
        Err(Refusal::locked())
    }

    /// The text of a member, opened where it is locked.
    ///
    /// # Errors
    /// It cannot be unpacked.
    pub(crate) fn read(&self, package: &mut Package<'_>, name: &str) -> Result<Option<String>, Refusal> {
        let Some(bytes) = package.read(name)? else { return Ok(None) };
        Ok(match (self.locks.get(name), self.password) {
            (Some(lock), Some(password)) => open(lock, password, &bytes, self.context).map(super::as_text),
            _ => Some(super::as_text(bytes)),
        })
    }
}

/// What the manifest says of each locked member.
fn locks(manifest: &str) -> HashMap<String, Lock> {
    let (mut xml, mut out) = (Xml::new(manifest), HashMap::new());
    let mut open: Option<(String, Option<Lock>)> = None;
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => {
                let bytes = |name: &str| tag.get(name).and_then(|text| cipher::base64(&text)).unwrap_or_default();
                let number = |name: &str| tag.get(name).and_then(|text| text.trim().parse::<u32>().ok());
                match (tag.name(), open.as_mut()) {
                    ("file-entry", _) => open = tag.get("full-path").map(|path| (path, None)),
                    ("encryption-data", Some((_, lock))) => *lock = Some(Lock::default()),
                    ("algorithm", Some((_, Some(lock)))) => {
                        lock.algorithm = tag.get("algorithm-name").unwrap_or_default().to_ascii_lowercase();
                        lock.start = bytes("initialisation-vector");
                    }
                    ("key-derivation", Some((_, Some(lock)))) => {
                        lock.derivation = tag.get("key-derivation-name").unwrap_or_default().to_ascii_lowercase();
                        lock.salt = bytes("salt");
                        lock.rounds = number("iteration-count").unwrap_or(0);
                        lock.key_bytes = number("key-size").map_or(16, |bytes| bytes as usize);
                    }
                    ("start-key-generation", Some((_, Some(lock)))) => {
                        lock.hash = Hash::named(&tag.get("start-key-generation-name").unwrap_or_default());
                    }
                    _ => {}
                }
            }
            Node::End(name) if name == "file-entry" => {
                if let Some((path, Some(lock))) = open.take() {
                    out.insert(path, lock);
                }
            }
            _ => {}
        }
    }
    out
}

/// The member's content, or `None` where this password does not open it: then what comes out does not unpack.
fn open(lock: &Lock, password: &str, bytes: &[u8], context: &Context<'_>) -> Option<Vec<u8>> {
    if !lock.derivation.ends_with("pbkdf2") || !(1..=ROUNDS_MAX).contains(&lock.rounds) || lock.key_bytes > 64 {
        return None;
    }
    let first = lock.hash.unwrap_or(Hash::Sha1).of(&[password.as_bytes()]);
    let key = cipher::pbkdf2_sha1(&first, &lock.salt, lock.rounds, lock.key_bytes);
    let packed = if lock.algorithm.contains("blowfish") {
        cipher::blowfish_cfb(&key, &lock.start, bytes)?
    } else if lock.algorithm.ends_with("-cbc") {
        cipher::aes_cbc(&key, &lock.start, bytes)?
    } else {
        return None;
    };
    let (bound, mut out) = (MEMBER_BYTES_MAX.min(context.budget.left()), Vec::new());
    // What fills the last block stands behind the end of the packed bytes.
    flate2::read::DeflateDecoder::new(&packed[..]).take(bound).read_to_end(&mut out).ok()?;
    context.budget.spend(out.len() as u64);
    out.starts_with(b"<").then_some(out)
}
