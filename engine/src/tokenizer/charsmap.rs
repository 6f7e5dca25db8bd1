//! SentencePiece's normalisation rules, from `tokenizer.ggml.precompiled_charsmap`.
//!
//! ```text
//! u32 trie bytes | trie: u32 units | replacements, each ended by a zero byte
//! ```
//! The trie is a double array over UTF-8 bytes. Following byte `c` from the unit at `p` leads to `p ^ offset(p) ^ c`,
//! which is there if its label is `c`; a unit with the leaf bit has the place of a replacement in the unit at
//! `p ^ offset(p)`. Bits of a unit: 0-7 label, 8 leaf, 9 the offset counts in 256s, 10-30 offset, 31 value.
//! The file is not trusted: every step is checked, and a broken step is "no rule".

use super::huggingface;
use crate::error::LoadError;
use crate::gguf::Metadata;

/// The rules.
#[derive(Debug, Default)]
pub(super) struct CharsMap {
    units: Vec<u32>,
    replacements: String,
}

impl CharsMap {
    /// Reads the key, else the `tokenizer.json`; without either there are no rules.
    pub(super) fn read(metadata: &Metadata, json: Option<&str>) -> Result<Self, LoadError> {
        const KEY: &str = "tokenizer.ggml.precompiled_charsmap";
        let Some(numbers) = metadata.integers(KEY)? else {
            let Some(text) = json.map(huggingface::charsmap).transpose()?.flatten() else { return Ok(Self::default()) };
            return base64(&text)
                .and_then(|bytes| Self::parse(&bytes))
                .ok_or_else(|| LoadError::Tokenizer("the rules in tokenizer.huggingface.json are damaged".into()));
        };
        let bad = |what: &str| LoadError::BadKey { key: KEY.into(), what: what.into() };
        // Signed and unsigned bytes are both found in files.
        let bytes: Vec<u8> = numbers
            .iter()
            .map(|v| u8::try_from(*v).or_else(|_| i8::try_from(*v).map(|v| v as u8)))
            .collect::<Result<_, _>>()
            .map_err(|_| bad("holds a value that is no byte"))?;
        Self::parse(&bytes).ok_or_else(|| bad("is not a trie and its replacements"))
    }

    /// From the bytes of the key.
    fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (trie, replacements) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        let (units, odd) = trie.as_chunks::<4>();
        let replacements = std::str::from_utf8(replacements).ok()?;
        if !odd.is_empty() {
            return None;
        }
        Some(Self { units: units.iter().map(|u| u32::from_le_bytes(*u)).collect(), replacements: replacements.into() })
    }

    /// The longest rule at the start of `text`: bytes replaced, and by what.
    fn longest(&self, text: &str) -> Option<(usize, &str)> {
        let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
        let mut at = offset(*self.units.first()?);
        let mut best = None;
        for (i, byte) in text.bytes().enumerate() {
            at ^= usize::from(byte);
            let Some(unit) = self.units.get(at).copied() else { break };
            if unit & (1 << 31 | 0xff) != u32::from(byte) || byte == 0 {
                break;
            }
            at ^= offset(unit);
            if unit & (1 << 8) != 0 {
                best = self.units.get(at).map(|value| (i + 1, (value & !(1 << 31)) as usize));
            }
        }
        let (len, place) = best.filter(|(len, _)| text.is_char_boundary(*len))?;
        let rest = self.replacements.get(place..)?;
        Some((len, &rest[..rest.find('\0').unwrap_or(rest.len())]))
    }

    /// The text with all rules applied once, from left to right.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match self.longest(rest) {
                Some((len, replacement)) => {
                    out.push_str(replacement);
                    rest = &rest[len..];
                }
                None => {
                    out.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        out
    }

    /// Whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> usize {
        4 * self.units.capacity() + self.replacements.capacity()
    }
}

/// Decodes base64 (RFC 4648, standard alphabet).
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        // The examples of RFC 4648.
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9vYmE=", "fooba"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(base64("-w=="), None);
    }

    #[test]
    fn broken_maps_are_refused_or_change_nothing_and_never_panic() {
        assert!(CharsMap::parse(&[1, 0]).is_none());
        assert!(CharsMap::parse(&[255, 255, 255, 255, 0]).is_none());
        assert!(CharsMap::parse(&[3, 0, 0, 0, 1, 2, 3]).is_none(), "half a unit");
        assert!(CharsMap::parse(&[0, 0, 0, 0, 0xff]).is_none(), "replacements that are no UTF-8");
        // Pseudo-random tries: whatever they say, text goes in and text comes out.
        let mut state = 7u32;
        for _ in 0..2000 {
            let mut bytes = vec![64, 0, 0, 0];
            for _ in 0..64 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.push((state >> 24) as u8 & if state & 1 == 0 { 0x7f } else { 3 });
            }
            bytes.extend_from_slice("aé\0日".as_bytes());
            let map = CharsMap::parse(&bytes).unwrap();
            let _ = map.apply("a é 日本\u{0} x\u{1}\u{2}\u{3}");
        }
    }
}
