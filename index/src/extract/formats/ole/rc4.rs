//! How documents of the old office formats are locked: RC4, with a key of 40 bits out of MD5 (1997) or of up to 128 out
//! of SHA-1 (2002). Only to open what a person has the password of.

use md5::{Digest as _, Md5};

use super::{u16_at, u32_at};
use crate::extract::cipher::{Hash, PASSWORDS_MAX};

/// What programs lock with when no password was asked for: the document is only protected against changes.
const KNOWN: [&str; 2] = ["VelvetSweatshop", "/01Hannes Ruescher/01"];

/// The key of a document, from which the key of each of its blocks is made.
pub(super) struct Key {
    base: Vec<u8>,
    /// Bytes of the key; 0 for the way of 1997.
    length: usize,
}

impl Key {
    /// The key of the first of the passwords that fits. `info` begins with the version of the way it is locked.
    pub fn find(info: &[u8], passwords: &[String]) -> Option<Self> {
        let own = passwords.iter().take(PASSWORDS_MAX).map(String::as_str);
        KNOWN.into_iter().chain(own).find_map(|password| Self::of(info, password))
    }

    fn of(info: &[u8], password: &str) -> Option<Self> {
        let password: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
        match (u16_at(info, 0)?, u16_at(info, 2)?) {
            (1, 1) => Self::of_1997(info.get(4..52)?, &password),
            (2..=4, 2) => Self::of_2002(info, &password),
            _ => None,
        }
    }

    fn of_1997(info: &[u8], password: &[u8]) -> Option<Self> {
        let (salt, check) = info.split_at(16);
        let first = md5(password);
        let salted: Vec<u8> = (0..16).flat_map(|_| [&first[..5], salt].concat()).collect();
        let key = Self { base: md5(&salted)[..5].to_vec(), length: 0 };
        let opened = key.open(0, 0, check);
        (md5(&opened[..16]) == opened[16..32]).then_some(key)
    }

    fn of_2002(info: &[u8], password: &[u8]) -> Option<Self> {
        let header_bytes = usize::try_from(u32_at(info, 8)?).ok()?;
        let header = info.get(12..)?.get(..header_bytes)?;
        let bits = usize::try_from(u32_at(header, 16)?).ok()?;
        let verifier = info.get(12 + header_bytes..)?;
        let (salt, check) = (verifier.get(4..20)?, [verifier.get(20..36)?, verifier.get(40..60)?].concat());
        let length = if bits == 0 { 5 } else { bits / 8 };
        if !(5..=16).contains(&length) {
            return None;
        }
        let key = Self { base: Hash::Sha1.of(&[salt, password]), length };
        let opened = key.open(0, 0, &check);
        (Hash::Sha1.of(&[&opened[..16]]) == opened[16..36]).then_some(key)
    }

    fn block(&self, number: u32) -> Rc4 {
        let number = number.to_le_bytes();
        if self.length == 0 {
            return Rc4::new(&md5(&[&self.base[..], &number].concat()));
        }
        let mut key = Hash::Sha1.of(&[&self.base, &number]);
        key.truncate(self.length);
        if self.length == 5 {
            // 40 bits are filled up with zeros.
            key.resize(16, 0);
        }
        Rc4::new(&key)
    }

    /// Opens bytes of one block that stand at `at` in it.
    pub fn open(&self, block: u32, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.block(block);
        (0..at).for_each(|_| {
            stream.next();
        });
        bytes.iter().map(|byte| byte ^ stream.next()).collect()
    }

    /// Opens a stream that is locked in blocks of that length.
    pub fn open_blocks(&self, bytes: &[u8], block_bytes: usize) -> Vec<u8> {
        let blocks = (0..).zip(bytes.chunks(block_bytes.max(1)));
        blocks.flat_map(|(number, block)| self.open(number, 0, block)).collect()
    }
}

fn md5(bytes: &[u8]) -> Vec<u8> {
    Md5::digest(bytes).to_vec()
}

struct Rc4 {
    state: [u8; 256],
    i: u8,
    j: u8,
}

impl Rc4 {
    fn new(key: &[u8]) -> Self {
        let mut state: [u8; 256] = std::array::from_fn(|i| i as u8);
        let mut j = 0_u8;
        for (i, &of_key) in (0..256).zip(key.iter().cycle()) {
            j = j.wrapping_add(state[i]).wrapping_add(of_key);
            state.swap(i, usize::from(j));
        }
        Self { state, i: 0, j: 0 }
    }

    fn next(&mut self) -> u8 {
        self.i = self.i.wrapping_add(1);
        let a = self.state[usize::from(self.i)];
        self.j = self.j.wrapping_add(a);
        self.state.swap(usize::from(self.i), usize::from(self.j));
        let b = self.state[usize::from(self.i)];
        self.state[usize::from(a.wrapping_add(b))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_is_the_known_one() {
        let mut stream = Rc4::new(b"Key");
        let got: Vec<u8> = b"Plaintext".iter().map(|b| b ^ stream.next()).collect();
        assert_eq!(got, [0xBB, 0xF3, 0x16, 0xE8, 0xD9, 0x40, 0xAF, 0x0A, 0xD3]);
    }

    /// What a program would write for that password.
    pub(in super::super) fn info_1997(password: &str) -> Vec<u8> {
        let salt = [7_u8; 16];
        let first = md5(&password.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
        let salted: Vec<u8> = (0..16).flat_map(|_| [&first[..5], &salt].concat()).collect();
        let key = Key { base: md5(&salted)[..5].to_vec(), length: 0 };
        let verifier = [3_u8; 16];
        let check = key.open(0, 0, &[&verifier[..], &md5(&verifier)].concat());
        [&[1, 0, 1, 0][..], &salt, &check].concat()
    }

    #[test]
    fn the_password_that_fits_is_found() {
        let info = info_1997("right");
        assert!(Key::find(&info, &["wrong".to_owned()]).is_none());
        assert!(Key::find(&info, &["wrong".to_owned(), "right".to_owned()]).is_some());
        assert!(Key::find(&info_1997("VelvetSweatshop"), &[]).is_some());
        for end in 0..info.len() {
            assert!(Key::find(&info[..end], &["right".to_owned()]).is_none());
        }
    }
}
