//! Strings of a PDF outside of its pages: titles, values of forms, names of attachments.

/// Reads a text string: UTF-16 or UTF-8 with a mark, else PDFDocEncoding.
pub(super) fn decode(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xFE, 0xFF, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xFF, 0xFE, rest @ ..] => encoding_rs::UTF_16LE.decode_without_bom_handling(rest).0.into_owned(),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        // Not what the standard says, but what many programs write.
        _ if !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok() => String::from_utf8_lossy(bytes).into_owned(),
        _ => bytes.iter().map(|&b| document_encoding(b)).collect(),
    };
    without_language(&text).replace('\r', "\n")
}

/// `ESC de CH ESC` inside of a string names a language.
fn without_language(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, piece) in text.split('\u{1B}').enumerate() {
        if i.is_multiple_of(2) {
            out.extend(piece.chars().filter(|c| !c.is_control() || c.is_whitespace()));
        }
    }
    out
}

fn document_encoding(byte: u8) -> char {
    const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
    const HIGH: [char; 33] = [
        '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ', 'Ł',
        'Œ', 'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{FFFD}', '€',
    ];
    match byte {
        0x18..=0x1F => LOW[usize::from(byte - 0x18)],
        0x80..=0xA0 => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_of_strings() {
        assert_eq!(decode(b"\xFE\xFF\x00A\x20\xAC"), "A€");
        assert_eq!(decode(b"\xFF\xFEA\x00"), "A");
        assert_eq!(decode(b"\xEF\xBB\xBF\xC3\xA4"), "ä");
        assert_eq!(decode(b"\xE4x\x80\xA0"), "äx•€");
        assert_eq!(decode(b"\xFE\xFF\x00\x1B\x00d\x00e\x00\x1B\x00x"), "x");
    }
}
