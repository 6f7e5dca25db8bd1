//! Apple's Pages, Numbers and Keynote. Documents of 2005 to 2012 are XML. Later ones are records of Apple's own, whose
//! texts are read without knowing the records around them.

use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Xml};
use crate::extract::{Context, Extracted, PartKind, Refusal};

use super::iwa;

/// Members of the XML kind, one of which there is.
const XML_MEMBERS: &[&str] = &["index.xml", "index.apxl"];

/// The text of the document, without that of its templates.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let mut draft = Draft::new(context.limits);
    if let Some(name) = XML_MEMBERS.iter().find(|name| package.has(name)) {
        // What is locked is packed in a way of Apple's own.
        if !package.is_packed_usually(name) {
            return Err(Refusal::locked());
        }
        let bytes = package.read(name)?.unwrap_or_default();
        if !looks_like_xml(&bytes) {
            return Err(Refusal::locked());
        }
        xml_text(&crate::extract::xml::decode(&bytes), &mut draft);
        return draft.finish();
    }
    if package.has(".iwpv2") || package.has("Index/.iwpv2") {
        return Err(Refusal::locked());
    }
    // Some are a folder that was packed, with the records packed once more inside.
    let inner = package.read("Index.zip")?;
    match &inner {
        Some(bytes) => records(&mut Package::open(bytes, &context.budget)?, &mut draft)?,
        None => records(&mut package, &mut draft)?,
    }
    if draft.len() == 0 {
        return Err(Refusal::excluded("its text could not be told from Apple's own records"));
    }
    draft.finish()
}

fn looks_like_xml(bytes: &[u8]) -> bool {
    bytes.iter().take(200).find(|b| !b.is_ascii_whitespace() && !matches!(b, 0xEF | 0xBB | 0xBF)) == Some(&b'<')
}

/// Paragraphs and the texts of cells; a slide is a part.
fn xml_text(text: &str, draft: &mut Draft<'_>) {
    let (mut xml, mut paragraphs, mut slide) = (Xml::new(text), 0_u32, 0);
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => match tag.name() {
                // Templates have texts of their own, which nobody sees.
                "stylesheet" | "theme-list" | "master-slides" | "styles" | "metadata" | "prototypes" => xml.skip(),
                "slide" => {
                    slide += 1;
                    draft.part(PartKind::Slide, slide, None);
                }
                "p" => paragraphs += 1,
                "tab" => draft.separate(Gap::Tab),
                "br" | "lnbr" => draft.separate(Gap::Line),
                "ct" => {
                    if let Some(cell) = tag.get("s") {
                        draft.push(&cell);
                        draft.separate(Gap::Line);
                    }
                }
                _ => {}
            },
            Node::End(name) if name == "p" => {
                paragraphs = paragraphs.saturating_sub(1);
                draft.separate(Gap::Line);
            }
            Node::Text(text) if paragraphs > 0 => draft.push(text.trim_matches(['\n', '\r'])),
            _ => {}
        }
    }
}

/// The texts of all records, slides first in their order.
fn records(package: &mut Package<'_>, draft: &mut Draft<'_>) -> Result<(), Refusal> {
    let mut names: Vec<String> = package.names().filter(|name| name.ends_with(".iwa")).map(str::to_owned).collect();
    // Masters and stylesheets hold the texts of templates.
    names.retain(|name| !["Master", "Template", "Stylesheet", "Theme"].iter().any(|word| name.contains(word)));
    names.sort_by_key(|name| (name.len(), name.clone()));
    for name in names {
        let Some(bytes) = package.read(&name)? else { continue };
        for text in iwa::texts(&bytes) {
            draft.separate(Gap::Blank);
            draft.push(&text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    #[test]
    fn old_documents_are_read_without_their_templates() {
        let document = "<?xml version='1.0'?><d><key:theme-list><sf:p>Template</sf:p></key:theme-list>\
            <key:slide><sf:p>One<sf:br/></sf:p><sf:p>Two</sf:p></key:slide><key:slide><sf:ct sfa:s='cell'/></key:slide></d>";
        let limits = Limits::default();
        let got = extract(&packed(&[("index.apxl", document)]), &Context::new(&limits, &[])).unwrap();
        assert_eq!((got.text.as_str(), got.parts.len()), ("One\nTwo\n\ncell\n", 2));
        let locked = extract(&packed(&[("index.xml", "\u{1}\u{2}\u{3}")]), &Context::new(&limits, &[]));
        assert_eq!(locked.unwrap_err().state, crate::State::Locked);
    }
}
