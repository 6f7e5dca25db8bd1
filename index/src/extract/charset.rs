//! Bytes of unknown charset → text.
//!
//! In order: a byte order mark decides; then NULs at every other place mean UTF-16 without one, and three of four places
//! UTF-32; then bytes that are valid UTF-8 are UTF-8; then EBCDIC by its spaces and letters; then what looks binary is
//! refused; then a guess by letter statistics.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::{Limits, Refusal, ebcdic};
use crate::limits::SNIFF_BYTES;

/// Decoded text.
pub(crate) struct Decoded<'a> {
    pub text: Cow<'a, str>,
    /// Whether `text` is the file byte for byte.
    pub in_file: bool,
    pub charset: &'static str,
}

/// Decodes, or says why this is no text.
pub(crate) fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Refusal> {
    if let Some(magic) = binary_magic(bytes) {
        return Err(Refusal::excluded(format!("not text: {magic}")));
    }
    // Before UTF-16, whose mark is the first half of this one's.
    if let Some(text) = utf32(bytes) {
        check_size(text.len(), limits)?;
        return Ok(Decoded { text: Cow::Owned(text), in_file: false, charset: "UTF-32" });
    }
    if let Some((encoding, mark)) = Encoding::for_bom(bytes)
        && encoding != UTF_8
    {
        return convert(encoding, &bytes[mark..], limits);
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        return convert(encoding, bytes, limits);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if looks_binary(bytes) {
            return Err(Refusal::excluded("not text: it has too many control characters"));
        }
        check_size(text.len(), limits)?;
        return Ok(Decoded { text: Cow::Borrowed(text), in_file: true, charset: "UTF-8" });
    }
    // Before what looks binary: its line ends are control characters of other charsets.
    if let Some(text) = ebcdic::decode(bytes) {
        check_size(text.len(), limits)?;
        return Ok(Decoded { text: Cow::Owned(text), in_file: false, charset: "EBCDIC" });
    }
    if looks_binary(bytes) {
        return Err(Refusal::excluded("not text: it has too many control characters"));
    }
    convert(guess(bytes), bytes, limits)
}

fn check_size(len: usize, limits: &Limits) -> Result<(), Refusal> {
    if len > limits.text_bytes_max {
        return Err(Refusal::failed(format!(
            "its text has {len} bytes, more than the limit of {}",
            limits.text_bytes_max
        )));
    }
    Ok(())
}

fn convert(encoding: &'static Encoding, bytes: &[u8], limits: &Limits) -> Result<Decoded<'static>, Refusal> {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    check_size(text.len(), limits)?;
    let replaced = text.chars().filter(|&c| c == '\u{FFFD}').count();
    let total = text.chars().count().max(1);
    // A guess that leaves a tenth of the characters undecodable was no text in that charset.
    if replaced * 10 > total {
        return Err(Refusal::excluded(format!("not text: it is not valid {}", encoding.name())));
    }
    Ok(Decoded { text: Cow::Owned(text.into_owned()), in_file: false, charset: encoding.name() })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    // UTF-8 with a few broken bytes is still UTF-8: most multi-byte sequences are valid.
    let (mut valid, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    if valid > 20 * broken {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    let seen = &bytes[..bytes.len().min(4 * SNIFF_BYTES)];
    detector.feed(seen, seen.len() == bytes.len());
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

/// UTF-32 has a NUL at the high end of every character, with a mark or without one.
fn utf32(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(4) || bytes.len() < 8 {
        return None;
    }
    let little = bytes[3] == 0;
    let unit = |four: &[u8]| {
        let four = <[u8; 4]>::try_from(four).unwrap_or_default();
        if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
    };
    let is_text = |four: &[u8]| char::from_u32(unit(four)).is_some_and(|c| !is_odd(c) && c != '\0');
    if !bytes.chunks_exact(4).all(is_text) {
        return None;
    }
    let text: String = bytes.chunks_exact(4).filter_map(|four| char::from_u32(unit(four))).collect();
    Some(text.trim_start_matches('\u{FEFF}').to_owned())
}

/// UTF-16 has a NUL in every other place for Latin text, and for any script in its spaces and line ends.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let seen = &bytes[..bytes.len().min(SNIFF_BYTES) & !1];
    if !bytes.len().is_multiple_of(2) || seen.len() < 4 {
        return None;
    }
    let (mut even, mut odd) = (0_usize, 0_usize);
    for pair in seen.chunks_exact(2) {
        even += usize::from(pair[0] == 0 && pair[1] != 0);
        odd += usize::from(pair[1] == 0 && pair[0] != 0);
    }
    let units = seen.len() / 2;
    let decodes = |encoding: &'static Encoding| {
        let (text, faults) = encoding.decode_without_bom_handling(seen);
        let odd_characters = text.chars().filter(|c| is_odd(*c)).count();
        (!faults && odd_characters * 50 <= units).then(|| text.chars().filter(|c| is_common(*c)).count())
    };
    // Latin text: most units have the zero. Other scripts: some do, and the units decode without a fault.
    let (encoding, zeros, other) = if odd > even { (UTF_16LE, odd, even) } else { (UTF_16BE, even, odd) };
    if zeros * 50 > units && other * 10 <= zeros {
        return decodes(encoding).map(|_| encoding);
    }
    // Ideographs have few spaces, and some have a zero of their own (U+4E00). No charset but these has any zero, and one
    // of the two orders gives nothing but characters that people write with.
    if even + odd == 0 {
        return None;
    }
    let read = [UTF_16LE, UTF_16BE].map(|encoding| (decodes(encoding).unwrap_or(0), encoding));
    read.into_iter().filter(|(common, _)| common * 20 >= units * 19).max_by_key(|(common, _)| *common).map(|(_, e)| e)
}

/// Letters and marks of the scripts that most texts are in: Latin to Thai, kana, ideographs, Hangul, wide forms.
fn is_common(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{E7F}' | '\u{2000}'..='\u{206F}' | '\u{20A0}'..='\u{20BF}' | '\u{3000}'..='\u{30FF}')
        || matches!(c, '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF00}'..='\u{FFEF}')
}

fn is_odd(c: char) -> bool {
    (c.is_control() && !c.is_whitespace()) || ('\u{E000}'..='\u{F8FF}').contains(&c) || c == '\u{FFFD}'
}

/// Text has next to no control characters; 0.5 % allows for stray form feeds and terminal escapes.
fn looks_binary(bytes: &[u8]) -> bool {
    let seen = &bytes[..bytes.len().min(SNIFF_BYTES)];
    let control = seen
        .iter()
        .filter(|&&b| b == 0 || (b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B | 0x08)) || b == 0x7F)
        .count();
    control * 200 > seen.len()
}

/// Formats that are told by their first bytes, whatever the file is called.
fn binary_magic(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"%PDF-", "a PDF"),
        (b"PK\x03\x04", "a ZIP archive or office document"),
        (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "an office document of the old format"),
        (b"{\\rtf", "RTF"),
        (b"\x89PNG\r\n\x1a\n", "a PNG image"),
        (b"\xFF\xD8\xFF", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"\x1F\x8B", "gzip data"),
        (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
        (b"Rar!\x1A\x07", "a RAR archive"),
        (b"\x7FELF", "a program"),
        (b"GGUF", "a model file"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"OggS", "Ogg media"),
        (b"ID3", "MP3 audio"),
    ];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(String, &'static str, bool), Refusal> {
        decode(bytes, &Limits::default()).map(|d| (d.text.into_owned(), d.charset, d.in_file))
    }

    /// (label of encoding_rs, text): long enough that a guess is a guess and not a coin toss.
    const GOLDEN: &[(&str, &str)] = &[
        (
            "windows-1252",
            "Der Käufer übergibt das Gerät spätestens am nächsten Tag; Größe und Maße müssen überprüft werden. Schöne Grüße aus Köln.",
        ),
        (
            "windows-1251",
            "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью.",
        ),
        (
            "koi8-r",
            "Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью.",
        ),
        ("shift_jis", "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"),
        ("euc-jp", "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"),
        ("gbk", "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"),
        ("big5", "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。"),
        (
            "euc-kr",
            "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았다.",
        ),
        ("windows-1253", "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα."),
        (
            "windows-1256",
            "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء",
        ),
        (
            "iso-8859-2",
            "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i sumieniem.",
        ),
    ];

    #[test]
    fn legacy_charsets_are_recognised() {
        for (label, text) in GOLDEN {
            let encoding = Encoding::for_label(label.as_bytes()).unwrap();
            let (bytes, _, faults) = encoding.encode(text);
            assert!(!faults, "{label} cannot write its own golden");
            let (got, charset, in_file) = read(&bytes).unwrap_or_else(|r| panic!("{label}: {}", r.reason));
            assert_eq!(got, *text, "{label} was read as {charset}");
            assert!(!in_file);
        }
    }

    fn utf16(text: &str, big: bool) -> Vec<u8> {
        text.encode_utf16().flat_map(|u| if big { u.to_be_bytes() } else { u.to_le_bytes() }).collect()
    }

    #[test]
    fn utf16_with_and_without_mark() {
        for text in
            ["plain English text\n", "Все люди рождаются свободными и равными\n", "人人生而自由 在尊严\n和权利上\n"]
        {
            for big in [false, true] {
                let body = utf16(text, big);
                assert_eq!(read(&body).unwrap().0, text, "no mark, big endian: {big}");
                let mut marked = if big { vec![0xFE, 0xFF] } else { vec![0xFF, 0xFE] };
                marked.extend(&body);
                assert_eq!(read(&marked).unwrap().0, text);
            }
        }
    }

    #[test]
    fn utf16_of_ideographs_with_nothing_but_line_ends_between() {
        let text = "租客不得在墙上打孔，如有违反，须在退租之前自行修补，或者从押金中扣除相应的费用，具体数额由双方协商确定，\n";
        assert_eq!(read(&utf16(&text.repeat(3), false)).unwrap().0, text.repeat(3));
    }

    #[test]
    fn utf32_with_and_without_mark() {
        for text in ["\u{FEFF}plain text 文\n", "plain text 文\n"] {
            let little: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
            let big: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
            for bytes in [little, big] {
                assert_eq!(read(&bytes).unwrap(), ("plain text 文\n".to_owned(), "UTF-32", false));
            }
        }
    }

    #[test]
    fn utf8_keeps_its_bytes_mark_included() {
        assert_eq!(read(b"\xEF\xBB\xBFabc").unwrap(), ("\u{FEFF}abc".to_owned(), "UTF-8", true));
        assert!(read("Größe 后".as_bytes()).unwrap().2);
    }

    #[test]
    fn utf8_with_a_broken_byte_stays_utf8() {
        let mut bytes = "Größe und Maße müssen überprüft werden, schöne Grüße. ".repeat(10).into_bytes();
        bytes[21] = 0xFF;
        let (text, charset, in_file) = read(&bytes).unwrap();
        assert_eq!((charset, in_file), ("UTF-8", false));
        assert!(text.contains("überprüft"));
    }

    #[test]
    fn binary_is_refused() {
        let noise: Vec<u8> = (0..10_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for bytes in [&noise[..], &[0; 64], b"\x7FELF\x02\x01\x01", b"%PDF-1.7\n", b"ab\0\0\0\0cd"] {
            assert_eq!(read(bytes).unwrap_err().state, crate::State::Excluded);
        }
    }

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let limits = Limits { text_bytes_max: 10, ..Limits::default() };
        assert!(decode(b"0123456789", &limits).is_ok());
        let refusal = decode(b"0123456789a", &limits).err().unwrap();
        assert!(refusal.reason.contains("11 bytes"), "{}", refusal.reason);
    }
}
