//! The byte alphabet of byte-level BPE: printable bytes stand for themselves, the others for characters from U+0100 on.

/// The bytes of a token. A character outside the alphabet (an added token's) stands for its own UTF-8.
pub(super) fn decode(token: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(token.len());
    for c in token.chars() {
        match byte(c) {
            Some(b) => out.push(b),
            None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

fn byte(c: char) -> Option<u8> {
    match u32::from(c) {
        n @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(n as u8),
        n @ 0x100..=0x120 => Some((n - 0x100) as u8),
        n @ 0x121..=0x142 => Some((n - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_covers_every_byte_once() {
        let mut seen = [false; 256];
        for c in (0..0x200).filter_map(char::from_u32) {
            if let Some(b) = byte(c) {
                assert!(!std::mem::replace(&mut seen[usize::from(b)], true), "{b:#x} twice");
            }
        }
        assert!(seen.iter().all(|s| *s));
        assert_eq!(decode("\u{120}a\u{10a}"), b" a\n");
    }
}
