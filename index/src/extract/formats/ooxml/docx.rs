//! Word documents (DOCX): the text as a person sees it. Deleted and hidden text is left out, as are field codes and
//! phonetic guides; notes, comments, headers and footers stand behind the text, each once.

use std::collections::HashSet;

use crate::extract::draft::{Draft, Gap};
use crate::extract::package::Package;
use crate::extract::xml::{Node, Tag, Xml};
use crate::extract::{Context, Extracted, Refusal, short};

use super::styles::{Styles, outline_level};
use super::{Relations, drawing, embedded, main_part, properties, required};

/// Parts of one kind that are read: headers of many sections.
const PARTS_MAX: usize = 1000;

/// Elements whose content is not seen: deleted text, the origin of moved text, the second of two drawings of the same
/// thing, phonetic guides, and properties that have elements in common with text.
const UNSEEN: &[&str] =
    &["Fallback", "del", "moveFrom", "rt", "rubyPr", "sectPr", "tabs", "sdtPr", "ffData", "instrText", "pPrChange"];

/// Text, headings, notes, comments, headers and footers, embedded documents, and who wrote it.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let main = main_part(&mut package, "word/document.xml")?;
    let text = required(&mut package, &main)?;
    let relations = Relations::of(&mut package, &main)?;
    let styles = match relations.of_kind("styles").next() {
        Some(part) => Styles::read(&package.read_xml(part)?.unwrap_or_default()),
        None => Styles::default(),
    };
    let mut draft = Draft::new(context.limits);
    let mut xml = Xml::new(&text);
    Story { draft: &mut draft, package: &mut package, relations: &relations, styles: &styles, context }
        .read(&mut xml)?;
    if xml.is_broken() && draft.len() == 0 {
        return Err(Refusal::failed("it is broken: its text is not well-formed XML"));
    }
    for kind in ["footnotes", "endnotes", "comments"] {
        for part in relations.of_kind(kind) {
            story(&mut package, part, &styles, context, &mut draft)?;
        }
    }
    headers(&mut package, &relations, &styles, context, &mut draft)?;
    for part in relations.of_kind("package").take(PARTS_MAX) {
        embedded(&mut package, part, context, &mut draft)?;
    }
    draft.about().language.clone_from(&styles.language);
    properties(&mut package, draft.about())?;
    draft.finish()
}

/// Reads a part beside the main text.
fn story(
    package: &mut Package<'_>,
    part: &str,
    styles: &Styles,
    context: &Context<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let Some(text) = package.read_xml(part)? else { return Ok(()) };
    let relations = Relations::of(package, part)?;
    draft.separate(Gap::Blank);
    Story { draft, package, relations: &relations, styles, context }.read(&mut Xml::new(&text))
}

/// Headers and footers; sections repeat them, so that each text is read once.
fn headers(
    package: &mut Package<'_>,
    relations: &Relations,
    styles: &Styles,
    context: &Context<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for part in relations.of_kind("header").chain(relations.of_kind("footer")).take(PARTS_MAX) {
        let mut one = Draft::new(context.limits);
        story(package, part, styles, context, &mut one)?;
        let read = one.finish()?;
        if seen.insert(read.text.clone()) {
            draft.append(&Extracted { headings: Vec::new(), ..read });
        }
    }
    Ok(())
}

/// A run of paragraphs and tables being read.
struct Story<'s, 'p, 'l> {
    draft: &'s mut Draft<'l>,
    package: &'s mut Package<'p>,
    relations: &'s Relations,
    styles: &'s Styles,
    context: &'s Context<'s>,
}

/// Where in the text the reader is.
#[derive(Default)]
struct Place {
    in_text: bool,
    in_properties: bool,
    /// The run is formatted as hidden.
    is_hidden: bool,
    in_list: bool,
    /// Where the text of each open row starts.
    rows: Vec<usize>,
}

impl Story<'_, '_, '_> {
    fn read(mut self, xml: &mut Xml<'_>) -> Result<(), Refusal> {
        let mut place = Place::default();
        while let Some(node) = xml.next() {
            if self.draft.is_full() {
                break;
            }
            match node {
                Node::Start(tag) if UNSEEN.contains(&tag.name()) => xml.skip(),
                // The lines that part notes from the text are notes too.
                Node::Start(tag)
                    if matches!(tag.name(), "footnote" | "endnote")
                        && tag.get("type").is_some_and(|t| t != "normal") =>
                {
                    xml.skip();
                }
                Node::Start(tag) => self.start(&tag, &mut place)?,
                Node::End(name) => self.end(&name, &mut place),
                // An invisible sign between a function and what it is of, as in "sin θ".
                Node::Text(text) if text == "\u{2061}" => self.draft.separate(Gap::Space),
                Node::Text(text) if place.in_text && !place.is_hidden => {
                    self.draft.push(&text.replace('\u{2061}', " "))
                }
                Node::Text(_) => {}
            }
        }
        self.draft.end_heading();
        self.draft.separate(Gap::Blank);
        Ok(())
    }

    fn start(&mut self, tag: &Tag<'_>, place: &mut Place) -> Result<(), Refusal> {
        match tag.name() {
            "t" => place.in_text = true,
            "p" => {
                self.draft.separate_somehow(Gap::Line);
                place.in_list = false;
            }
            "pPr" => place.in_properties = true,
            "numPr" => place.in_list = true,
            "pStyle" => {
                if let Some(level) = self.styles.level(&tag.get("val").unwrap_or_default()) {
                    self.draft.begin_heading(level);
                }
            }
            "outlineLvl" if place.in_properties => match outline_level(tag.get("val")) {
                Some(level @ 1..=9) => self.draft.begin_heading(level),
                _ => self.draft.end_heading(),
            },
            "vanish" if !place.in_properties => {
                place.is_hidden = !tag.get("val").is_some_and(|v| matches!(v.as_str(), "0" | "false" | "off"));
            }
            "tab" | "ptab" => self.draft.separate(Gap::Tab),
            "br" | "cr" => self.draft.separate(Gap::Line),
            "noBreakHyphen" => self.draft.push("-"),
            "sym" => self.symbol(tag),
            "tr" => place.rows.push(self.draft.len()),
            "comment" => {
                self.draft.separate(Gap::Line);
                let author = short(&tag.get("author").unwrap_or_default(), 100);
                if !author.is_empty() {
                    self.draft.push(&format!("{author}:"));
                    self.draft.separate(Gap::Space);
                }
            }
            "relIds" => self.pointed_at(tag.get("dm"))?,
            "chart" => self.pointed_at(tag.get("id"))?,
            "altChunk" => {
                if let Some(part) = tag.get("id").and_then(|id| self.relations.target(&id)) {
                    embedded(self.package, part, self.context, self.draft)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn pointed_at(&mut self, id: Option<String>) -> Result<(), Refusal> {
        id.map_or(Ok(()), |id| drawing::read_pointed_at(self.package, self.relations, &id, self.draft))
    }

    /// A character of a symbol font; those fonts' own places say nothing as text.
    fn symbol(&mut self, tag: &Tag<'_>) {
        let code = tag.get("char").and_then(|c| u32::from_str_radix(&c, 16).ok());
        let symbol = code.filter(|code| !(0xE000..0xF900).contains(code)).and_then(char::from_u32);
        if let Some(c) = symbol {
            self.draft.push(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn end(&mut self, name: &str, place: &mut Place) {
        match name {
            "t" => place.in_text = false,
            "r" => place.is_hidden = false,
            "pPr" => place.in_properties = false,
            "p" => {
                self.draft.end_heading();
                self.draft.separate(if place.in_list || !place.rows.is_empty() { Gap::Line } else { Gap::Blank });
            }
            // Numerator and denominator, base and index, stand beside one another.
            "num" => self.draft.push("/"),
            "tc" if place.rows.last().is_some_and(|&start| self.draft.len() > start) => {
                self.draft.separate_by(Gap::Tab);
            }
            "tr" => {
                place.rows.pop();
                self.draft.separate_by(Gap::Line);
            }
            "tbl" if place.rows.is_empty() => self.draft.separate_by(Gap::Blank),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    fn read(body: &str, more: &[(&str, &str)]) -> Extracted {
        let document = format!("<?xml version='1.0'?><w:document><w:body>{body}</w:body></w:document>");
        let mut members = vec![("word/document.xml", document.as_str())];
        members.extend_from_slice(more);
        extract(&packed(&members), &Context::new(&Limits::default(), &[])).unwrap()
    }

    fn para(text: &str) -> String {
        format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
    }

    #[test]
    fn what_is_seen_is_read_and_the_rest_left_out() {
        let got = read(
            "<w:p><w:pPr><w:tabs><w:tab w:pos='1'/></w:tabs></w:pPr><w:r><w:t>one</w:t><w:tab/><w:t>two</w:t></w:r>\
             <w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del><w:ins><w:r><w:t> new</w:t></w:r></w:ins>\
             <w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>\
             <w:r><w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r></w:rubyBase></w:ruby></w:r>\
             <w:r><w:t>soft</w:t><w:softHyphen/><w:t>ly</w:t><w:noBreakHyphen/><w:t>x</w:t></w:r></w:p>\
             <w:p><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></mc:Choice>\
             <mc:Fallback><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent></w:p>",
            &[],
        );
        assert_eq!(got.text, "one\ttwo new東softly-x\n\nbox\n");
    }

    #[test]
    fn tables_keep_their_rows_with_empty_cells_too() {
        let cell =
            |text: &str| format!("<w:tc>{}</w:tc>", if text.is_empty() { "<w:p/>".to_owned() } else { para(text) });
        let row = |cells: [&str; 3]| format!("<w:tr>{}</w:tr>", cells.map(cell).concat());
        let table = format!("<w:tbl>{}{}</w:tbl>", row(["a", "", "c"]), row(["", "e", ""]));
        assert_eq!(read(&format!("{}{table}{}", para("x"), para("y")), &[]).text, "x\n\na\tc\ne\n\ny\n");
    }

    #[test]
    fn headings_notes_comments_and_headers_are_found_once() {
        let relation = |id: &str, kind: &str, target: &str| {
            format!("<Relationship Id='{id}' Type='http://x/{kind}' Target='{target}'/>")
        };
        let relations = format!(
            "<Relationships>{}{}{}{}{}</Relationships>",
            relation("1", "styles", "styles.xml"),
            relation("2", "footnotes", "footnotes.xml"),
            relation("3", "header", "h1.xml"),
            relation("4", "header", "h2.xml"),
            relation("5", "comments", "comments.xml"),
        );
        let header = format!("<w:hdr>{}</w:hdr>", para("Head of page"));
        let got = read(
            &format!("<w:p><w:pPr><w:pStyle w:val='H'/></w:pPr><w:r><w:t>Chapter</w:t></w:r></w:p>{}", para("text")),
            &[
                ("word/_rels/document.xml.rels", &relations),
                ("word/styles.xml", "<s><style styleId='H'><name val='heading 1'/></style></s>"),
                (
                    "word/footnotes.xml",
                    "<f><w:footnote w:type='separator'><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>\
                     <w:footnote><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnote></f>",
                ),
                (
                    "word/comments.xml",
                    "<c><w:comment w:author='Ann'><w:p><w:r><w:t>Why?</w:t></w:r></w:p></w:comment></c>",
                ),
                ("word/h1.xml", &header),
                ("word/h2.xml", &header),
            ],
        );
        assert_eq!(got.text, "Chapter\n\ntext\n\nA note\n\nAnn: Why?\n\nHead of page\n");
        assert_eq!(got.headings.len(), 1);
        assert_eq!(got.title.as_deref(), Some("Chapter"));
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}{}", "<w:ins>".repeat(50_000), para("deep"), "</w:ins>".repeat(50_000));
        assert_eq!(read(&deep, &[]).text, "deep\n");
        let tables = format!("{}{}", "<w:tbl><w:tr><w:tc>".repeat(5000), para("deep"));
        assert_eq!(read(&tables, &[]).text, "deep\n");
    }

    #[test]
    fn a_document_without_text_part_is_broken() {
        let bytes = packed(&[("word/other.xml", "<a/>")]);
        assert!(extract(&bytes, &Context::new(&Limits::default(), &[])).is_err());
    }
}
