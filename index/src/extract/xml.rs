//! XML as a stream of elements and text: no tree, no external entities, no entities of a document's own making. Only the
//! five of XML and character references are replaced, so that nothing expands.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};

/// Elements nested in one another. Documents stay below a few hundred; beyond this something is being tried.
const DEPTH_MAX: u32 = 100_000;

/// A piece of XML. Names come without their namespace's prefix.
pub(crate) enum Node<'a> {
    /// An element begins. One without content is followed by its end at once.
    Start(Tag<'a>),
    /// The element of this name ends.
    End(Cow<'a, str>),
    /// Text or CDATA, entities replaced.
    Text(Cow<'a, str>),
}

/// An element's begin.
pub(crate) struct Tag<'a>(BytesStart<'a>);

impl Tag<'_> {
    /// Its name without prefix.
    pub(crate) fn name(&self) -> &str {
        after_prefix(self.0.name().into_inner())
    }

    /// The attribute of that name, whatever its prefix.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let found = attributes.with_checks(false).flatten().find(|a| after_prefix(a.key.into_inner()) == name)?;
        Some(unescape(&found.value))
    }

    /// The attribute whose name with prefix is this.
    pub(crate) fn get_exact(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let found = attributes.with_checks(false).flatten().find(|a| a.key.into_inner() == name)?;
        Some(unescape(&found.value))
    }
}

fn after_prefix(name: &str) -> &str {
    name.rsplit_once(':').map_or(name, |(_, local)| local)
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The longest reference that means anything is `&#x10FFFF;`.
        match rest
            .as_bytes()
            .iter()
            .take(12)
            .position(|&b| b == b';')
            .and_then(|end| Some((end, entity(&rest[1..end])?)))
        {
            Some((end, c)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{A0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

/// Reads XML from text.
pub(crate) struct Xml<'a> {
    reader: quick_xml::Reader<&'a [u8]>,
    /// The name of an element without content, whose end is still to be told.
    empty: Option<String>,
    depth: u32,
    broken: bool,
}

impl<'a> Xml<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut reader = quick_xml::Reader::from_str(text.trim_start_matches('\u{FEFF}'));
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        Self { reader, empty: None, depth: 0, broken: false }
    }

    /// Whether the text ended in the middle of something, or was no XML at all.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken || self.depth > 0
    }

    /// The next piece. `None` at the end, or where it is no longer XML: what was read before stands.
    pub(crate) fn next(&mut self) -> Option<Node<'a>> {
        if let Some(name) = self.empty.take() {
            return Some(Node::End(name.into()));
        }
        loop {
            match self.reader.read_event() {
                Ok(Event::Start(tag)) => {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        self.broken = true;
                        return None;
                    }
                    return Some(Node::Start(Tag(tag)));
                }
                Ok(Event::Empty(tag)) => {
                    self.empty = Some(after_prefix(tag.name().into_inner()).to_owned());
                    return Some(Node::Start(Tag(tag)));
                }
                Ok(Event::End(tag)) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Some(Node::End(after_prefix(tag.name().into_inner()).to_owned().into()));
                }
                Ok(Event::Text(text)) => return Some(Node::Text(text.into_inner())),
                Ok(Event::CData(text)) => return Some(Node::Text(text.into_inner())),
                Ok(Event::GeneralRef(reference)) => {
                    if let Some(c) = entity(&reference.into_inner()) {
                        return Some(Node::Text(c.to_string().into()));
                    }
                }
                Ok(Event::Eof) => return None,
                Ok(_) => {}
                Err(_) => {
                    self.broken = true;
                    return None;
                }
            }
        }
    }

    /// Passes over the rest of the element that just began.
    pub(crate) fn skip(&mut self) {
        let mut depth = 1_u32;
        while depth > 0 {
            match self.next() {
                Some(Node::Start(_)) => depth += 1,
                Some(Node::End(_)) => depth -= 1,
                Some(Node::Text(_)) => {}
                None => return,
            }
        }
    }

    /// The text of the element that just began, up to so many bytes.
    pub(crate) fn text(&mut self, bytes_max: usize) -> String {
        let (mut depth, mut out) = (1_u32, String::new());
        while depth > 0 {
            match self.next() {
                Some(Node::Start(_)) => depth += 1,
                Some(Node::End(_)) => depth -= 1,
                Some(Node::Text(text)) => {
                    let room = bytes_max.saturating_sub(out.len());
                    out.push_str(&text[..super::floor_boundary(&text, room)]);
                }
                None => break,
            }
        }
        out
    }
}

/// The text of an XML file: UTF-8 nearly always, UTF-16 where a mark says so, else what the declaration names.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    let declared = head.split_once("encoding=").and_then(|(_, rest)| rest.get(1..)?.split(['"', '\'']).next());
    let encoding = declared.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    encoding.unwrap_or(encoding_rs::UTF_8).decode_without_bom_handling(bytes).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(xml: &str) -> String {
        let (mut reader, mut out) = (Xml::new(xml), String::new());
        while let Some(node) = reader.next() {
            match node {
                Node::Start(tag) => out.push_str(&format!("<{} {:?}>", tag.name(), tag.get("k"))),
                Node::End(name) => out.push_str(&format!("</{name}>")),
                Node::Text(text) => out.push_str(&text),
            }
        }
        out + if reader.is_broken() { "!" } else { "" }
    }

    #[test]
    fn elements_text_and_references() {
        assert_eq!(
            told("<?xml version='1.0'?><w:a x:k='1 &amp; &#x32; & &no;'>x&lt;&#228;<b/><![CDATA[<c>]]></w:a>"),
            "<a Some(\"1 & 2 & &no;\")>x<ä<b None></b><c></a>"
        );
    }

    #[test]
    fn a_documents_own_entities_are_left_out() {
        let bomb = "<!DOCTYPE r [<!ENTITY a 'aaaa'><!ENTITY b SYSTEM 'file:///etc/passwd'>]><r>x&a;&b;y</r>";
        assert_eq!(told(bomb), "<r None>xy</r>");
    }

    #[test]
    fn what_is_cut_is_read_as_far_as_it_goes() {
        assert_eq!(told("<a>one<b>two"), "<a None>one<b None>two!");
        assert!(told("<a>one<b k='").ends_with("one!"));
    }

    #[test]
    fn depth_is_bounded() {
        assert!(told(&"<a>".repeat(DEPTH_MAX as usize + 10)).ends_with('!'));
    }

    #[test]
    fn the_declared_charset_is_used_where_it_is_not_utf8() {
        assert!(decode(b"<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><a>\xE4</a>").contains('ä'));
        assert_eq!(decode(b"\xFF\xFE<\0a\0"), "<a");
    }
}
