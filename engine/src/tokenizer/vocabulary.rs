//! The tokens of a model: their kinds, their bytes, and the way from bytes to an id.
//!
//! All bytes lie in one buffer and the index is one array of ids, so that 262,144 tokens take some 6 MiB and load in
//! milliseconds. Bytes are what a token stands for in text: a byte-level `Ġthe` and a SentencePiece `▁the` are both
//! ` the` here.

use crate::error::LoadError;
use crate::gguf::Metadata;
use crate::limits::{MAX_PROBES, MAX_TOKEN_BYTES, MAX_VOCAB};

/// What a token is for; numbers as in `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text.
    Normal,
    /// Stands for what has no token.
    Unknown,
    /// Structure of the model's format; never comes out of text.
    Control,
    /// Text that is taken whole before anything else is tried.
    UserDefined,
    /// A row without a meaning.
    Unused,
    /// One byte, for text that has no token.
    Byte,
}

impl Kind {
    fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            // Some writers leave the type out as 0.
            0 | 1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}

/// How the texts of normal tokens in the file stand for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Each character is a byte, by GPT-2's table.
    ByteLevel,
    /// UTF-8, with U+2581 for the space.
    WordStart,
}

/// The offset basis and the prime of FNV-1a (draft-eastlake-fnv).
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// A hash of bytes that can be extended by more of them, which prefix searches use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) const EMPTY: Self = Self(FNV_BASIS);

    pub(super) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    }

    pub(super) fn of(bytes: &[u8]) -> Self {
        bytes.iter().fold(Self::EMPTY, |h, b| h.with(*b))
    }

    /// The hash spread over the low bits: FNV's own low bits depend on the low bits of the input alone.
    pub(super) fn spread(self) -> usize {
        ((self.0 ^ (self.0 >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as usize
    }
}

/// The vocabulary. Ids are places in it.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// Text of all tokens, one after the other.
    bytes: Vec<u8>,
    /// Where each token ends in `bytes`.
    ends: Vec<u32>,
    kinds: Vec<Kind>,
    /// Open addressing over the normal tokens: id + 1, or 0.
    index: Vec<u32>,
    /// Tokens that stand for one byte, by that byte.
    byte_ids: Box<[Option<u32>; 256]>,
}

impl Vocabulary {
    /// Reads `tokenizer.ggml.tokens` and `tokenizer.ggml.token_type`. Tokens for which `structural` holds are control
    /// tokens, whatever the file says of their type.
    pub(super) fn read(
        metadata: &Metadata,
        spelling: Spelling,
        structural: impl Fn(u32, &str) -> bool,
    ) -> Result<Self, LoadError> {
        const TOKENS: &str = "tokenizer.ggml.tokens";
        const TYPES: &str = "tokenizer.ggml.token_type";
        let tokens = metadata.strings(TOKENS)?.ok_or_else(|| LoadError::MissingKey(TOKENS.into()))?;
        let bad = |key: &str, what: String| LoadError::BadKey { key: key.into(), what };
        if tokens.is_empty() || tokens.len() > MAX_VOCAB {
            return Err(bad(TOKENS, format!("has {} tokens, outside 1..={MAX_VOCAB}", tokens.len())));
        }
        let mut kinds = match metadata.integers(TYPES)? {
            None => vec![Kind::Normal; tokens.len()],
            Some(types) if types.len() != tokens.len() => {
                return Err(bad(TYPES, format!("has {} entries for {} tokens", types.len(), tokens.len())));
            }
            Some(types) => types
                .iter()
                .enumerate()
                .map(|(id, t)| Kind::from_number(*t).ok_or_else(|| bad(TYPES, format!("token {id} has the type {t}"))))
                .collect::<Result<_, _>>()?,
        };
        for (id, (kind, token)) in (0..).zip(kinds.iter_mut().zip(tokens)) {
            if matches!(kind, Kind::Normal | Kind::UserDefined) && structural(id, token) {
                *kind = Kind::Control;
            }
        }
        Self::new(tokens, kinds, spelling)
    }

    /// A vocabulary of the given tokens, one kind for each.
    pub(super) fn new(tokens: &[String], kinds: Vec<Kind>, spelling: Spelling) -> Result<Self, LoadError> {
        if let Some(id) = tokens.iter().position(|token| token.len() > MAX_TOKEN_BYTES) {
            return Err(LoadError::Tokenizer(format!("token {id} is longer than {MAX_TOKEN_BYTES} bytes")));
        }
        let total: usize = tokens.iter().map(String::len).sum();
        if u32::try_from(total).is_err() {
            return Err(LoadError::Tokenizer(format!("the tokens have {total} bytes, more than 4 GiB")));
        }
        let mut all = Self {
            bytes: Vec::with_capacity(total),
            ends: Vec::with_capacity(tokens.len()),
            kinds,
            index: vec![0; (tokens.len() * 3 / 2 + 1).next_power_of_two()],
            byte_ids: Box::new([None; 256]),
        };
        for (id, token) in tokens.iter().enumerate() {
            all.push(token, id, spelling)?;
        }
        if spelling == Spelling::ByteLevel {
            for byte in 0..=255u8 {
                all.byte_ids[usize::from(byte)] = all.find(&[byte]);
            }
        }
        all.bytes.shrink_to_fit();
        Ok(all)
    }

    fn push(&mut self, token: &str, id: usize, spelling: Spelling) -> Result<(), LoadError> {
        let start = self.bytes.len();
        match self.kinds[id] {
            Kind::Normal => push_spelled(token, spelling, &mut self.bytes),
            Kind::Byte => {
                let byte = byte_of(token)
                    .ok_or_else(|| LoadError::Tokenizer(format!("the byte token {id} is spelled {token:?}")))?;
                self.bytes.push(byte);
                if self.byte_ids[usize::from(byte)].replace(id as u32).is_some() {
                    return Err(LoadError::Tokenizer(format!("two tokens stand for the byte {byte:#04x}")));
                }
            }
            _ => self.bytes.extend_from_slice(token.as_bytes()),
        }
        self.ends.push(self.bytes.len() as u32);
        if self.kinds[id] != Kind::Normal || start == self.bytes.len() {
            return Ok(());
        }
        let mask = self.index.len() - 1;
        let mut slot = Hash::of(&self.bytes[start..]).spread() & mask;
        for _ in 0..MAX_PROBES {
            match self.index[slot] {
                0 => {
                    self.index[slot] = id as u32 + 1;
                    return Ok(());
                }
                other if self.text(other - 1) == &self.bytes[start..] => {
                    return Err(LoadError::Tokenizer(format!("tokens {} and {id} are both {token:?}", other - 1)));
                }
                _ => slot = (slot + 1) & mask,
            }
        }
        Err(LoadError::Tokenizer(format!("more than {MAX_PROBES} tokens share a hash; no real vocabulary does")))
    }

    /// The normal token with exactly these bytes.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<u32> {
        self.find_hashed(Hash::of(bytes), bytes)
    }

    /// The same where the hash is known already. The index is never full, so the search ends.
    pub(super) fn find_hashed(&self, hash: Hash, bytes: &[u8]) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = hash.spread() & mask;
        loop {
            match self.index[slot] {
                0 => return None,
                id if self.text(id - 1) == bytes => return Some(id - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The token that stands for a single byte.
    pub(super) fn byte(&self, byte: u8) -> Option<u32> {
        self.byte_ids[usize::from(byte)]
    }

    /// The bytes of a token; for control tokens their name. The id must be in the vocabulary.
    pub(super) fn text(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.bytes[start..self.ends[id] as usize]
    }

    /// The kind of a token; none outside the vocabulary.
    pub(super) fn kind(&self, id: u32) -> Option<Kind> {
        self.kinds.get(id as usize).copied()
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All ids of a kind, rising.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = u32> {
        (0..).zip(&self.kinds).filter(move |(_, k)| **k == kind).map(|(id, _)| id)
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * (self.ends.capacity() + self.index.capacity()) + self.kinds.capacity() + 2048
    }
}

/// `<0x0A>` to 10.
fn byte_of(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

/// Appends the bytes that a normal token's spelling stands for.
pub(super) fn push_spelled(token: &str, spelling: Spelling, out: &mut Vec<u8>) {
    match spelling {
        Spelling::WordStart => {
            let mut rest = token;
            while let Some((before, after)) = rest.split_once('\u{2581}') {
                out.extend_from_slice(before.as_bytes());
                out.push(b' ');
                rest = after;
            }
            out.extend_from_slice(rest.as_bytes());
        }
        Spelling::ByteLevel => {
            let start = out.len();
            for c in token.chars() {
                let Some(byte) = byte_of_char(c) else {
                    // Not of the alphabet: added later, as plain text.
                    out.truncate(start);
                    out.extend_from_slice(token.as_bytes());
                    return;
                };
                out.push(byte);
            }
        }
    }
}

/// GPT-2's table: printable Latin-1 characters stand for themselves, the other 68 bytes, in order, are U+0100 onwards.
fn byte_of_char(c: char) -> Option<u8> {
    match u32::from(c) {
        v @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(v as u8),
        v @ 0x100..=0x120 => Some((v - 0x100) as u8),
        v @ 0x121..=0x142 => Some((v - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &[(&str, Kind)], spelling: Spelling) -> Result<Vocabulary, LoadError> {
        let (texts, kinds): (Vec<String>, Vec<Kind>) = tokens.iter().map(|(t, k)| (t.to_string(), *k)).unzip();
        Vocabulary::new(&texts, kinds, spelling)
    }

    #[test]
    fn the_byte_table_reaches_every_byte_once() {
        let mut seen = [0; 256];
        for c in (0..=0x200).filter_map(char::from_u32) {
            if let Some(b) = byte_of_char(c) {
                seen[usize::from(b)] += 1;
            }
        }
        assert_eq!(seen, [1; 256]);
        assert_eq!(byte_of_char('Ġ'), Some(b' '));
        assert_eq!(byte_of_char('Ċ'), Some(b'\n'));
        assert_eq!(byte_of_char('ł'), Some(0xa0));
    }

    #[test]
    fn tokens_are_found_by_the_bytes_they_stand_for() {
        let tokens = [("Ġthe", Kind::Normal), ("ä½ł", Kind::Normal), ("<s>", Kind::Control)];
        let v = vocabulary(&tokens, Spelling::ByteLevel).unwrap();
        assert_eq!(v.find(b" the"), Some(0));
        assert_eq!(v.find("你".as_bytes()), Some(1));
        assert_eq!(v.find(b"<s>"), None, "control tokens have no way from text");
        assert_eq!(v.text(2), b"<s>");
        let tokens = [("▁a▁b", Kind::Normal), ("<0xFF>", Kind::Byte)];
        let v = vocabulary(&tokens, Spelling::WordStart).unwrap();
        assert_eq!(v.find(b" a b"), Some(0));
        assert_eq!(v.byte(0xff), Some(1));
        assert_eq!(v.find(b"<0xFF>"), None);
        assert_eq!(v.find(b""), None);
    }

    #[test]
    fn broken_vocabularies_are_refused_with_the_reason() {
        for (tokens, reason) in [
            (vec![("a", Kind::Normal), ("b", Kind::Normal), ("a", Kind::Normal)], "tokens 0 and 2 are both \"a\""),
            (vec![("<0xF>", Kind::Byte)], "spelled \"<0xF>\""),
            (vec![("<0x41>", Kind::Byte), ("<0x41>", Kind::Byte)], "two tokens stand for the byte 0x41"),
            (vec![(&"x".repeat(5000), Kind::Normal)], "token 0 is longer than 4096 bytes"),
        ] {
            let error = vocabulary(&tokens, Spelling::WordStart).unwrap_err().to_string();
            assert!(error.contains(reason), "{error:?} does not say {reason:?}");
        }
    }
}
