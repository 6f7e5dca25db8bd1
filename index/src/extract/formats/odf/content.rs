//! The text of an OpenDocument: paragraphs wherever they stand.

use crate::extract::PartKind;
use crate::extract::draft::{Draft, Gap};
use crate::extract::xml::{Node, Tag, Xml};

/// Elements whose content is not seen, or not as text: what was deleted, names of pictures, who commented when.
const UNSEEN: &[&str] = &[
    "tracked-changes",
    "title",
    "desc",
    "binary-data",
    "ruby-text",
    "note-citation",
    "creator",
    "date",
    "styles",
    "automatic-styles",
    "master-styles",
    "scripts",
    "settings",
    "meta",
    "forms",
    "shapes-forms",
    "font-face-decls",
    "date-string",
    "sender-initials",
    "content-validations",
    "dde-links",
    "tracked-change",
    "named-expressions",
];

/// Where in the text the reader is.
#[derive(Default)]
pub(crate) struct Content {
    /// Paragraphs in one another: a text box stands in one.
    paragraphs: u32,
    lists: u32,
    /// Tables in one another; a sheet is the outermost.
    tables: u32,
    in_sheets: bool,
    is_title: bool,
    sheet: u32,
    slide: u32,
    /// Where the text of each open row starts.
    rows: Vec<usize>,
    objects: Vec<String>,
}

impl Content {
    /// Reads it into the draft; gives the names of charts and formulas that are in it.
    pub(crate) fn read(mut self, xml: &mut Xml<'_>, draft: &mut Draft<'_>) -> Vec<String> {
        while let Some(node) = xml.next() {
            if draft.is_full() {
                break;
            }
            match node {
                Node::Start(tag) if UNSEEN.contains(&tag.name()) => xml.skip(),
                Node::Start(tag) => self.start(&tag, draft),
                Node::End(name) => self.end(&name, draft),
                Node::Text(text) if self.paragraphs > 0 => self.characters(&text, draft),
                Node::Text(_) => {}
            }
        }
        draft.end_heading();
        self.objects
    }

    /// White space in a row is one space; more is written as elements.
    fn characters(&self, text: &str, draft: &mut Draft<'_>) {
        if text.starts_with(char::is_whitespace) {
            draft.separate_somehow(Gap::Space);
        }
        let mut words = text.split_whitespace().peekable();
        let mut any = false;
        while let Some(word) = words.next() {
            any = true;
            draft.push(word);
            if words.peek().is_some() {
                draft.separate_somehow(Gap::Space);
            }
        }
        if any && text.ends_with(char::is_whitespace) {
            draft.separate_somehow(Gap::Space);
        }
    }

    fn start(&mut self, tag: &Tag<'_>, draft: &mut Draft<'_>) {
        match tag.name() {
            "p" | "h" => {
                if self.paragraphs > 0 {
                    draft.separate(Gap::Line);
                } else {
                    draft.separate_somehow(Gap::Line);
                }
                self.paragraphs += 1;
                if tag.name() == "h" {
                    draft.begin_heading(tag.get("outline-level").and_then(|l| l.parse().ok()).unwrap_or(1));
                } else if self.is_title {
                    draft.begin_heading(1);
                }
            }
            "s" => draft.separate_somehow(Gap::Space),
            "tab" => draft.separate(Gap::Tab),
            "line-break" => draft.separate(Gap::Line),
            "list" => self.lists += 1,
            "spreadsheet" => self.in_sheets = true,
            "table" => {
                if self.in_sheets && self.tables == 0 {
                    self.sheet += 1;
                    draft.part(PartKind::Sheet, self.sheet, tag.get("name").as_deref());
                }
                self.tables += 1;
            }
            "table-row" => self.rows.push(draft.len()),
            "page" => {
                self.slide += 1;
                draft.part(PartKind::Slide, self.slide, None);
            }
            "frame" => self.is_title = tag.get("class").is_some_and(|c| c == "title"),
            "object" => self.objects.extend(tag.get("href")),
            _ => {}
        }
    }

    fn end(&mut self, name: &str, draft: &mut Draft<'_>) {
        match name {
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                draft.end_heading();
                let inside = self.lists > 0 || !self.rows.is_empty() || self.paragraphs > 0;
                draft.separate(if inside { Gap::Line } else { Gap::Blank });
            }
            "note" | "annotation" => draft.separate(Gap::Line),
            "list" => {
                self.lists = self.lists.saturating_sub(1);
                if self.lists == 0 && self.rows.is_empty() {
                    draft.separate(Gap::Blank);
                }
            }
            "table-cell" | "covered-table-cell" if self.rows.last().is_some_and(|&start| draft.len() > start) => {
                draft.separate_by(Gap::Tab);
            }
            "table-row" => {
                self.rows.pop();
                draft.separate_by(Gap::Line);
            }
            "table" => {
                self.tables = self.tables.saturating_sub(1);
                if self.tables == 0 {
                    draft.separate_by(Gap::Blank);
                }
            }
            "frame" => self.is_title = false,
            "page" => draft.separate(Gap::Blank),
            _ => {}
        }
    }
}

/// Headers and footers of pages, as the master pages have them. Several pages may share a text, which is read once.
pub(crate) fn headers(styles: &str, draft: &mut Draft<'_>) {
    let (mut xml, mut in_masters, mut seen) = (Xml::new(styles), false, Vec::new());
    while let Some(node) = xml.next() {
        match node {
            Node::Start(tag) => match tag.name() {
                "master-styles" => in_masters = true,
                // In sheets and slides they are fields and hints, not text.
                "region-left" | "region-center" | "region-right" | "notes" => xml.skip(),
                "header" | "footer" | "header-left" | "footer-left" | "header-first" | "footer-first" if in_masters => {
                    let text = xml.text(64 << 10);
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    if !seen.contains(&text) && seen.len() < 100 {
                        draft.separate(Gap::Blank);
                        draft.push(&text);
                        seen.push(text);
                    }
                }
                _ => {}
            },
            Node::End(name) if name == "master-styles" => return,
            _ => {}
        }
    }
}
