//! A page's bytes before they are read: in which charset they are, and what would be too slow to read.

use std::borrow::Cow;

/// Attributes of one element; pages have some dozen.
const ATTRIBUTES_MAX: usize = 1000;

/// Bytes in which a page's charset is looked for.
const META_BYTES: usize = 64 << 10;

/// Cuts elements with more than [`ATTRIBUTES_MAX`] attributes: the tokenizer compares each with all others.
pub(super) fn with_short_tags(html: &str) -> Cow<'_, str> {
    let (bytes, mut out, mut copied, mut at) = (html.as_bytes(), String::new(), 0, 0);
    while at < bytes.len() {
        at += 1;
        if bytes[at - 1] != b'<' || !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let (mut attributes, mut quote, mut cut) = (0, None, None);
        while at < bytes.len() && (quote.is_some() || !matches!(bytes[at], b'>' | b'<')) {
            match (bytes[at], quote) {
                (b'"' | b'\'', None) if bytes[at - 1] == b'=' => quote = Some(bytes[at]),
                (byte, Some(open)) if byte == open => quote = None,
                (byte, None) if byte.is_ascii_whitespace() || byte == b'/' => {
                    attributes += 1;
                    if attributes > ATTRIBUTES_MAX && cut.is_none() {
                        cut = Some(at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(cut) = cut {
            out.push_str(&html[copied..cut]);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(html);
    }
    out.push_str(&html[copied..]);
    Cow::Owned(out)
}

/// The charset that a `<meta>` element declares. Browsers look at the first kilobyte; pages with long scripts before it
/// are read by what they say too.
pub(super) fn declared_charset(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = bytes[..bytes.len().min(META_BYTES)].to_ascii_lowercase();
    let mut rest = &head[..];
    while let Some(at) = find(rest, b"<meta") {
        rest = &rest[at + 5..];
        let tag = &rest[..rest.iter().position(|&b| b == b'>').unwrap_or(rest.len())];
        let Some(at) = find(tag, b"charset=") else { continue };
        let label: Vec<u8> = tag[at + 8..]
            .iter()
            .copied()
            .skip_while(|b| matches!(b, b'"' | b'\'' | b' '))
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':'))
            .take(40)
            .collect();
        if let Some(encoding) = encoding_rs::Encoding::for_label(&label) {
            return Some(encoding);
        }
    }
    None
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|w| w == word)
}
