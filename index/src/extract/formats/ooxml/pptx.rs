//! PowerPoint presentations (PPTX): slides in the order they are shown, each with its notes and comments.

use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Tag, Xml};
use crate::extract::{Context, Extracted, PartKind, Refusal};

use super::{Relations, drawing, embedded, main_part, properties, required};

/// Slides read of one presentation.
const SLIDES_MAX: usize = 20_000;

/// Documents in one slide that are opened.
const EMBEDDED_MAX: usize = 100;

/// Places of a slide that hold its number, and on a page of notes also what the page repeats.
const NUMBERS: &[&str] = &["sldNum"];
const NOTES_FURNITURE: &[&str] = &["sldNum", "sldImg", "hdr", "ftr", "dt"];

/// Titles are headings; tables have a row a line.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let main = main_part(&mut package, "ppt/presentation.xml")?;
    let relations = Relations::of(&mut package, &main)?;
    let slides = slides(&required(&mut package, &main)?, &relations);
    let mut draft = Draft::new(context.limits);
    for (number, part) in (1..).zip(&slides) {
        draft.part(PartKind::Slide, number, None);
        slide(&mut package, part, context, &mut draft)?;
        if draft.is_full() {
            break;
        }
    }
    properties(&mut package, draft.about())?;
    draft.finish()
}

/// Parts of the slides, in order.
fn slides(presentation: &str, relations: &Relations) -> Vec<String> {
    let (mut xml, mut slides) = (Xml::new(presentation), Vec::new());
    while let Some(node) = xml.next() {
        let Node::Start(tag) = node else { continue };
        if tag.name() == "sldId" && slides.len() < SLIDES_MAX {
            // Its own number is called `id` too; the relation's has a prefix.
            let part = ["r:id", "d3p1:id"].iter().find_map(|key| relations.target(&tag.get_exact(key)?));
            slides.extend(part.map(str::to_owned));
        }
    }
    if slides.is_empty() {
        slides.extend(relations.of_kind("slide").take(SLIDES_MAX).map(str::to_owned));
    }
    slides
}

fn slide(package: &mut Package<'_>, part: &str, context: &Context<'_>, draft: &mut Draft<'_>) -> Result<(), Refusal> {
    // A slide that is named and not there loses itself only.
    let Some(text) = package.read_xml(part)? else { return Ok(()) };
    let relations = Relations::of(package, part)?;
    shapes(package, &text, &relations, NUMBERS, draft)?;
    for notes in relations.of_kind("notesSlide") {
        let Some(text) = package.read_xml(notes)? else { continue };
        let relations = Relations::of(package, notes)?;
        draft.separate(Gap::Blank);
        shapes(package, &text, &relations, NOTES_FURNITURE, draft)?;
    }
    for comments in relations.of_kind("comments") {
        draft.separate(Gap::Blank);
        comment_texts(&package.read_xml(comments)?.unwrap_or_default(), draft);
    }
    for document in relations.of_kind("package").take(EMBEDDED_MAX) {
        embedded(package, document, context, draft)?;
    }
    Ok(())
}

/// Comments of both kinds: the old have a `text`, the new paragraphs.
fn comment_texts(text: &str, draft: &mut Draft<'_>) {
    let (mut xml, mut in_text) = (Xml::new(text), false);
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => in_text = matches!(tag.name(), "text" | "t"),
            Node::End(name) => {
                in_text = false;
                if matches!(&*name, "text" | "p") {
                    draft.separate(Gap::Line);
                }
            }
            Node::Text(text) if in_text => draft.push(&text),
            Node::Text(_) => {}
        }
    }
}

/// The shapes of a slide or of its notes.
fn shapes(
    package: &mut Package<'_>,
    text: &str,
    relations: &Relations,
    left_out: &[&str],
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let (mut xml, mut place) = (Xml::new(text), Place::default());
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => match tag.name() {
                "Fallback" => xml.skip(),
                "relIds" | "chart" => {
                    let id = tag.get(if tag.name() == "chart" { "id" } else { "dm" }).unwrap_or_default();
                    drawing::read_pointed_at(package, relations, &id, draft)?;
                }
                _ => place.start(&tag, left_out, draft),
            },
            Node::End(name) => place.end(&name, draft),
            Node::Text(text) if place.in_text && !place.is_left_out => draft.push(&text),
            Node::Text(_) => {}
        }
    }
    draft.end_heading();
    Ok(())
}

#[derive(Default)]
struct Place {
    in_text: bool,
    is_title: bool,
    is_left_out: bool,
    /// Where the text of the open row starts.
    row: Option<usize>,
}

impl Place {
    fn start(&mut self, tag: &Tag<'_>, left_out: &[&str], draft: &mut Draft<'_>) {
        match tag.name() {
            "sp" | "graphicFrame" => {
                (self.is_title, self.is_left_out) = (false, false);
                draft.separate(Gap::Blank);
            }
            "ph" => {
                let kind = tag.get("type").unwrap_or_default();
                self.is_title = matches!(kind.as_str(), "title" | "ctrTitle");
                self.is_left_out = left_out.contains(&kind.as_str());
            }
            "txBody" if self.is_title => draft.begin_heading(1),
            "t" => self.in_text = true,
            "br" => draft.separate(Gap::Line),
            "tab" if self.in_text => draft.separate(Gap::Tab),
            "tr" => self.row = Some(draft.len()),
            _ => {}
        }
    }

    fn end(&mut self, name: &str, draft: &mut Draft<'_>) {
        match name {
            "t" => self.in_text = false,
            "p" => draft.separate(Gap::Line),
            "txBody" => draft.end_heading(),
            "sp" | "graphicFrame" => {
                (self.is_title, self.is_left_out) = (false, false);
                draft.separate(Gap::Blank);
            }
            "tc" if self.row.is_some_and(|start| draft.len() > start) => draft.separate_by(Gap::Tab),
            "tr" => {
                self.row = None;
                draft.separate_by(Gap::Line);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    fn shape(kind: &str, text: &str) -> String {
        format!(
            "<p:sp><p:nvPr><p:ph type='{kind}'/></p:nvPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    }

    #[test]
    fn slides_come_in_order_with_titles_notes_and_tables() {
        let relation =
            |id: &str, kind: &str, target: &str| format!("<Relationship Id='{id}' Type='x/{kind}' Target='{target}'/>");
        let first = format!(
            "<s>{}{}{}<p:graphicFrame><a:tbl><a:tr><a:tc><a:p/></a:tc><a:tc><a:p><a:t>b</a:t></a:p></a:tc>\
             <a:tc><a:p><a:t>c</a:t></a:p></a:tc></a:tr></a:tbl></p:graphicFrame></s>",
            shape("title", "Hello"),
            shape("body", "world"),
            shape("sldNum", "7")
        );
        let bytes = packed(&[
            (
                "ppt/presentation.xml",
                "<p><p:sldId id='256' r:id='b'/><p:sldId id='257' r:id='a'/><p:sldId id='1' r:id='no'/></p>",
            ),
            (
                "ppt/_rels/presentation.xml.rels",
                &format!("<r>{}{}</r>", relation("a", "slide", "slides/1.xml"), relation("b", "slide", "slides/2.xml")),
            ),
            ("ppt/slides/1.xml", &first),
            ("ppt/slides/_rels/1.xml.rels", &format!("<r>{}</r>", relation("n", "notesSlide", "../notes/1.xml"))),
            ("ppt/notes/1.xml", &format!("<s>{}{}</s>", shape("hdr", "header"), shape("body", "say this"))),
            ("ppt/slides/2.xml", &format!("<s>{}</s>", shape("body", "begin"))),
        ]);
        let got = extract(&bytes, &Context::new(&Limits::default(), &[])).unwrap();
        assert_eq!(got.text, "begin\n\nHello\n\nworld\n\nb\tc\n\nsay this\n");
        let parts: Vec<_> = got.parts.iter().map(|p| (p.start, p.number)).collect();
        assert_eq!(parts, [(0, 1), (7, 2)]);
        assert_eq!((got.headings[0].start, got.title.as_deref()), (7, Some("Hello")));
    }
}
