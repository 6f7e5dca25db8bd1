//! The ciphers that office documents are locked with, put together from the block ciphers of RustCrypto. They only ever
//! open what a person has the password of; nothing is kept secret by them.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use blowfish::Blowfish;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Bytes of one block of AES.
pub(crate) const AES_BLOCK: usize = 16;

/// Rounds of a key's derivation that are computed. Documents have up to some hundred thousand; this is a second of work.
pub(crate) const ROUNDS_MAX: u32 = 1_000_000;

/// Passwords of the person's that are tried on one file, each of which may take [`ROUNDS_MAX`].
pub(crate) const PASSWORDS_MAX: usize = 20;

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// By the name that documents use.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Some(match name.to_ascii_lowercase() {
            n if n.ends_with("sha1") => Self::Sha1,
            n if n.ends_with("sha256") => Self::Sha256,
            n if n.ends_with("sha384") => Self::Sha384,
            n if n.ends_with("sha512") => Self::Sha512,
            _ => return None,
        })
    }

    /// The hash of these pieces, one behind another.
    pub(crate) fn of(self, pieces: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha1 => {
                use sha1::Digest as _;
                let mut hash = Sha1::new();
                pieces.iter().for_each(|p| hash.update(p));
                hash.finalize().to_vec()
            }
            Self::Sha256 => digest::<Sha256>(pieces),
            Self::Sha384 => digest::<Sha384>(pieces),
            Self::Sha512 => digest::<Sha512>(pieces),
        }
    }
}

fn digest<D: Digest>(pieces: &[&[u8]]) -> Vec<u8> {
    let mut hash = D::new();
    pieces.iter().for_each(|p| hash.update(p));
    hash.finalize().to_vec()
}

/// PBKDF2 with HMAC-SHA1.
pub(crate) fn pbkdf2_sha1(password: &[u8], salt: &[u8], rounds: u32, key_bytes: usize) -> Vec<u8> {
    let mut key = vec![0; key_bytes];
    pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, rounds, &mut key);
    key
}

/// Opens AES in a chain of blocks (CBC). What is left over of the last block stays as it is. `None` for a key or a start
/// of a wrong length.
pub(crate) fn aes_cbc(key: &[u8], start: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = aes_ecb(key, bytes)?;
    let start: [u8; AES_BLOCK] = start.get(..AES_BLOCK)?.try_into().ok()?;
    for (i, block) in out.chunks_exact_mut(AES_BLOCK).enumerate() {
        let before = if i == 0 { &start[..] } else { &bytes[(i - 1) * AES_BLOCK..i * AES_BLOCK] };
        block.iter_mut().zip(before).for_each(|(byte, b)| *byte ^= b);
    }
    Some(out)
}

/// Opens AES block by block (ECB).
pub(crate) fn aes_ecb(key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    match key.len() {
        16 => decrypt::<Aes128>(key, bytes),
        24 => decrypt::<Aes192>(key, bytes),
        32 => decrypt::<Aes256>(key, bytes),
        _ => None,
    }
}

fn decrypt<C: KeyInit + BlockCipherDecrypt + BlockSizeUser>(key: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let cipher = C::new_from_slice(key).ok()?;
    let mut out = bytes.to_vec();
    for chunk in out.chunks_exact_mut(AES_BLOCK) {
        let mut block = Array::try_from(&*chunk).ok()?;
        cipher.decrypt_block(&mut block);
        chunk.copy_from_slice(&block);
    }
    Some(out)
}

/// Opens Blowfish with feedback (CFB), as older OpenDocuments are locked.
pub(crate) fn blowfish_cfb(key: &[u8], start: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let cipher = <Blowfish>::new_from_slice(key).ok()?;
    let mut register: [u8; 8] = start.get(..8)?.try_into().ok()?;
    let mut out = Vec::with_capacity(bytes.len());
    for chunk in bytes.chunks(8) {
        let mut block = Array::from(register);
        cipher.encrypt_block(&mut block);
        out.extend(chunk.iter().zip(&block).map(|(byte, mask)| byte ^ mask));
        register = chunk.try_into().unwrap_or(register);
    }
    Some(out)
}

/// Base64, with or without white space in it.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes().chunks(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn hashes_and_keys_are_those_of_the_standards() {
        assert_eq!(Hash::Sha1.of(&[b"a", b"bc"]), hex("a9993e364706816aba3e25717850c26c9cd0d89d"));
        assert_eq!(Hash::named("http://www.w3.org/2000/09/xmldsig#sha256"), Some(Hash::Sha256));
        assert_eq!(Hash::named("SHA-512"), Some(Hash::Sha512));
        // RFC 6070.
        assert_eq!(pbkdf2_sha1(b"password", b"salt", 2, 20), hex("ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"));
    }

    #[test]
    fn ciphers_are_those_of_the_standards() {
        // NIST SP 800-38A, F.2.2: CBC-AES128.
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c");
        let start = hex("000102030405060708090a0b0c0d0e0f");
        let got = aes_cbc(&key, &start, &hex("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"));
        assert_eq!(got, Some(hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")));
        assert_eq!(aes_cbc(&key[1..], &start, b""), None);
        assert_eq!(aes_cbc(&key, &start[1..], b"0123456789abcdef"), None);
        // The test vectors of Blowfish's author: CFB64.
        let key = hex("0123456789abcdeff0e1d2c3b4a59687");
        let start = hex("fedcba9876543210");
        let got = blowfish_cfb(&key, &start, &hex("e73214a2822139caf26ecf6d2eb9e76e3da3de04d1517200519d57a6c3"));
        assert_eq!(got, Some(hex("37363534333231204e6f77206973207468652074696d6520666f722000")));
    }
}
