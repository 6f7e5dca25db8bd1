//! OpenDocument texts, sheets and slides (ODT, ODS, ODP), packed or as one flat file.

mod content;
mod locked;

use std::borrow::Cow;

use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{self, Node, Xml};
use crate::extract::{Context, Extracted, Refusal, date, short};
use crate::limits::TITLE_BYTES_MAX;

use content::Content;

/// Charts and formulas in a document that are read.
const OBJECTS_MAX: usize = 1000;

/// Keywords kept.
const KEYWORDS_MAX: usize = 32;

/// Text, headings, tables, notes and comments; what was deleted is left out.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    if !bytes.starts_with(b"PK") {
        return flat(&xml::decode(bytes), context);
    }
    let mut package = Package::open(bytes, &context.budget)?;
    let keys = locked::Keys::find(&mut package, context)?;
    let text = keys.read(&mut package, "content.xml")?;
    let text = text.ok_or_else(|| Refusal::failed("it is broken: it has no content.xml"))?;
    let mut draft = Draft::new(context.limits);
    let mut xml = Xml::new(&text);
    let objects = Content::default().read(&mut xml, &mut draft);
    if xml.is_broken() && draft.len() == 0 {
        return Err(Refusal::failed("it is broken: its text is not well-formed XML"));
    }
    for object in objects.iter().take(OBJECTS_MAX) {
        let name = object.trim_start_matches("./").trim_end_matches('/');
        if let Some(text) = keys.read(&mut package, &format!("{name}/content.xml"))? {
            draft.separate(Gap::Blank);
            let _ = Content::default().read(&mut Xml::new(&text), &mut draft);
        }
    }
    if let Some(text) = keys.read(&mut package, "styles.xml")? {
        content::headers(&text, &mut draft);
    }
    if let Some(text) = keys.read(&mut package, "meta.xml")? {
        properties(&text, draft.about());
    }
    draft.finish()
}

fn flat(text: &str, context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut draft = Draft::new(context.limits);
    let mut xml = Xml::new(text);
    let _ = Content::default().read(&mut xml, &mut draft);
    if xml.is_broken() && draft.len() == 0 {
        return Err(Refusal::failed("it is broken: its text is not well-formed XML"));
    }
    content::headers(text, &mut draft);
    properties(text, draft.about());
    draft.finish()
}

/// Title, author, date, keywords and language: those in `office:meta` only.
fn properties(text: &str, out: &mut Extracted) {
    let mut xml = Xml::new(text);
    let mut in_meta = false;
    while let Some(node) = xml.next() {
        let tag = match node {
            Node::Start(tag) => tag,
            Node::End(name) if name == "meta" => return,
            _ => continue,
        };
        let name = tag.name().to_owned();
        in_meta |= name == "meta";
        let known = ["title", "creator", "initial-creator", "creation-date", "date", "language", "keyword"];
        if !in_meta || !known.contains(&name.as_str()) {
            continue;
        }
        let value = short(&xml.text(4 * TITLE_BYTES_MAX), TITLE_BYTES_MAX);
        match name.as_str() {
            _ if value.is_empty() => {}
            "title" => out.title = Some(value),
            "initial-creator" => out.author = Some(value),
            "creator" if out.author.is_none() => out.author = Some(value),
            "creation-date" => out.dated = date::parse_iso(&value),
            "date" if out.dated.is_none() => out.dated = date::parse_iso(&value),
            "language" => out.language = Some(value),
            "keyword" if out.keywords.len() < KEYWORDS_MAX => out.keywords.push(short(&value, 64)),
            _ => {}
        }
    }
}

/// The text of a member that is XML.
fn as_text(bytes: Vec<u8>) -> String {
    match xml::decode(&bytes) {
        Cow::Borrowed(_) => String::from_utf8(bytes).unwrap_or_default(),
        Cow::Owned(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::package::tests::packed;
    use crate::extract::{Limits, PartKind};

    fn read(body: &str) -> Extracted {
        let content = format!("<office:document-content><office:body>{body}</office:body></office:document-content>");
        let meta = "<office:document-meta><office:meta><dc:title>T</dc:title><meta:initial-creator>Ann</meta:initial-creator>\
                    <meta:keyword>k</meta:keyword><meta:creation-date>1970-01-02T00:00:00</meta:creation-date></office:meta></office:document-meta>";
        let bytes = packed(&[("content.xml", &content), ("meta.xml", meta)]);
        extract(&bytes, &Context::new(&Limits::default(), &[])).unwrap()
    }

    #[test]
    fn texts_are_read_as_they_are_seen() {
        let got = read(
            "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>\
             <text:h text:outline-level='2'>Head</text:h><text:p>a<text:s text:c='3'/>b<text:tab/>c<text:line-break/>d\
             <text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note>\
             <office:annotation><dc:creator>Bob</dc:creator><dc:date>2020</dc:date><text:p>why</text:p></office:annotation></text:p>\
             <text:list><text:list-item><text:p>one</text:p></text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list>\
             <text:p><draw:frame><svg:title>picture</svg:title><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame></text:p></office:text>",
        );
        assert_eq!(got.text, "Head\n\na b\tc\nd\nnote\nwhy\n\none\ntwo\n\nbox\n");
        assert_eq!((got.headings[0].level, got.title.as_deref()), (2, Some("T")));
        assert_eq!(
            (got.author.as_deref(), got.dated, got.keywords.as_slice()),
            (Some("Ann"), Some(86_400_000), &["k".to_owned()][..])
        );
    }

    #[test]
    fn sheets_are_parts_and_repetition_costs_nothing() {
        let got = read(
            "<office:spreadsheet><table:table table:name='One'><table:table-row table:number-rows-repeated='1048576'>\
             <table:table-cell table:number-columns-repeated='16384'/><table:table-cell><text:p>a</text:p></table:table-cell>\
             <table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>\
             <table:table-row><table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>\
             <table:table table:name='Two'><table:table-row><table:table-cell><text:p>d</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>",
        );
        assert_eq!(got.text, "a\tb\nc\n\nd\n");
        let parts: Vec<_> = got.parts.iter().map(|p| (p.kind, p.number, p.name.as_deref())).collect();
        assert_eq!(parts, [(PartKind::Sheet, 1, Some("One")), (PartKind::Sheet, 2, Some("Two"))]);
    }

    #[test]
    fn slides_are_parts_with_their_titles_and_notes() {
        let got = read(
            "<office:presentation><draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame>\
             <draw:custom-shape><text:p>shape</text:p></draw:custom-shape><presentation:notes><draw:frame><draw:text-box><text:p>say</text:p></draw:text-box></draw:frame></presentation:notes></draw:page>\
             <draw:page><text:p>second</text:p></draw:page></office:presentation>",
        );
        assert_eq!(got.text, "Hello\n\nshape\n\nsay\n\nsecond\n");
        assert_eq!((got.headings.len(), got.parts.len()), (1, 2));
    }

    #[test]
    fn flat_documents_are_read() {
        let flat = "<office:document><office:meta><dc:title>F</dc:title></office:meta><office:styles><text:p>no</text:p></office:styles>\
                    <office:body><office:text><text:p>yes</text:p></office:text></office:body></office:document>";
        let got = extract(flat.as_bytes(), &Context::new(&Limits::default(), &[])).unwrap();
        assert_eq!((got.text.as_str(), got.title.as_deref()), ("yes\n", Some("F")));
    }
}
