//! EBCDIC, the charset of IBM's large machines: exports of theirs still lie in folders of people who work with them.
//!
//! No library of charsets that browsers know has it. Its letters stand where no other charset has letters, and its space is
//! `@` in ASCII, so that a text in it is told for certain: by the space between words and by the letters that Western
//! languages have most of.

/// Code page 37 (America) from 0x40 on, where its space is.
const CP037: &str = " \u{A0}âäàáãåçñ¢.<(+|&éêëèíîïìß!$*);¬-/ÂÄÀÁÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µ~stuvwxyz¡¿ÐÝÞ®^£¥·©§¶¼½¾[]¯¨´×{ABCDEFGHI\u{AD}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u{9F}";

/// What stands elsewhere in code page 500 (international).
const CP500: &[(u8, char)] =
    &[(0x4A, '['), (0x4F, '!'), (0x5A, ']'), (0x5F, '^'), (0xB0, '¢'), (0xBA, '¬'), (0xBB, '|')];

/// Bytes that are looked at.
const SEEN_BYTES: usize = 16 << 10;

/// Shorter texts say too little about their letters.
const BYTES_MIN: usize = 64;

/// The text, if the bytes are EBCDIC.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    if !is_ebcdic(&bytes[..bytes.len().min(SEEN_BYTES)]) {
        return None;
    }
    // The two have `!` in each other's places of `|` and `]`, which are rare.
    let count = |byte: u8| bytes.iter().filter(|&&b| b == byte).count();
    let international = count(0x4F) >= count(0x5A);
    let mut table: Vec<char> = (0..0x40).map(control).chain(CP037.chars()).collect();
    if international {
        for &(byte, c) in CP500 {
            table[usize::from(byte)] = c;
        }
    }
    let text: String = bytes.iter().filter_map(|&b| table.get(usize::from(b))).collect();
    Some(text.replace("\r\n", "\n"))
}

/// Line ends and tabs; other control characters say nothing to a reader.
fn control(byte: u8) -> char {
    match byte {
        0x05 => '\t',
        0x0D => '\r',
        0x15 | 0x25 => '\n',
        0x0C => '\u{C}',
        _ => ' ',
    }
}

/// Whether nearly all bytes are letters, digits, spaces and marks of EBCDIC, words are parted by its space, and the
/// commonest letters are common.
fn is_ebcdic(seen: &[u8]) -> bool {
    if seen.len() < BYTES_MIN {
        return false;
    }
    let (mut spaces, mut letters, mut common, mut other, mut ascii) = (0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
    for &byte in seen {
        match byte {
            0x40 => spaces += 1,
            // e t a o n i s r
            0x85 | 0xA3 | 0x81 | 0x96 | 0x95 | 0x89 | 0xA2 | 0x99 => {
                letters += 1;
                common += 1;
            }
            0x82..=0x88 | 0x91..=0x98 | 0xA4..=0xA9 | 0xC1..=0xC9 | 0xD1..=0xD9 | 0xE2..=0xE9 => letters += 1,
            b' ' | b'\n' => ascii += 1,
            // Digits and the marks of prose, line ends and tabs.
            0xF0..=0xF9 | 0x4B..=0x50 | 0x5A..=0x61 | 0x6B..=0x6F | 0x7A..=0x7F | 0x05 | 0x0C | 0x0D | 0x15 | 0x25 => {}
            _ => other += 1,
        }
    }
    // Accented letters and control characters make up an eighth at most. 0x20 and 0x0A are controls that no text has.
    spaces * 20 >= seen.len()
        && letters * 5 >= seen.len()
        && common * 2 >= letters
        && other * 8 <= seen.len()
        && ascii * 200 <= seen.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an export says, in code page 500 or 37.
    fn written(text: &str, international: bool) -> Vec<u8> {
        let mut table: Vec<char> = (0..0x40).map(control).chain(CP037.chars()).collect();
        if international {
            CP500.iter().for_each(|&(b, c)| table[usize::from(b)] = c);
        }
        let byte = |c: char| table.iter().rposition(|&t| t == c).map_or(0x6F, |at| at as u8);
        text.chars().map(|c| if c == '\n' { 0x15 } else { byte(c) }).collect()
    }

    #[test]
    fn tables_are_whole() {
        assert_eq!(CP037.chars().count(), 192);
        assert_eq!(written("a A 0 é", false), [0x81, 0x40, 0xC1, 0x40, 0xF0, 0x40, 0x51]);
    }

    #[test]
    fn both_code_pages_are_read() {
        let text =
            "The contract ends on 31 December 2026, unless it is renewed in time! [See section 4]\nGrüße aus Köln!\n";
        for international in [false, true] {
            assert_eq!(decode(&written(text, international)).as_deref(), Some(text), "{international}");
        }
        let german =
            "Der Käufer übergibt das Gerät spätestens am nächsten Tag; Größe und Maße müssen überprüft werden.\n";
        assert_eq!(decode(&written(german, true)).as_deref(), Some(german));
    }

    #[test]
    fn nothing_else_is_taken_for_it() {
        let words = [
            "ein Text in deutscher Sprache über Größe und Maße ",
            "Все люди рождаются свободными ",
            "人人生而自由在尊严和权利上一律平等",
            "すべての人間は生まれながらにして自由",
            "모든 인간은 태어날 때부터 자유로우며 ",
            "name@host.org, a@b.com; ",
        ];
        for word in words {
            for encoding in encoding_rs::Encoding::for_label(b"gbk").into_iter().chain(
                ["windows-1252", "windows-1251", "koi8-r", "big5", "shift_jis", "euc-jp", "euc-kr", "iso-2022-jp"]
                    .iter()
                    .filter_map(|label| encoding_rs::Encoding::for_label(label.as_bytes())),
            ) {
                let text = word.repeat(20);
                assert_eq!(decode(&encoding.encode(&text).0), None, "{word} in {}", encoding.name());
            }
        }
        let mut rng = crate::testing::Rng::new(5);
        for _ in 0..2000 {
            let noise: Vec<u8> = (0..512).map(|_| rng.next() as u8).collect();
            assert_eq!(decode(&noise), None);
        }
        assert_eq!(decode(&[0x40; 400]), None);
        assert_eq!(decode(&written("too short", false)), None);
    }
}
