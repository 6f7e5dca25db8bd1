//! Bytes of a file → readable text with its outline. Pure functions over bytes; no paths are opened here.

pub(crate) mod charset;
pub(crate) mod cipher;
pub(crate) mod codepage;
pub(crate) mod date;
pub(crate) mod draft;
mod ebcdic;
mod format;
pub(crate) mod formats;
pub(crate) mod package;
mod sniff;
pub(crate) mod xml;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

pub use format::Format;

use crate::types::State;

/// Bounds an extractor keeps.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of text it may return.
    pub text_bytes_max: usize,
    /// Headings it may return.
    pub headings_max: usize,
    /// Pages, sheets and the like it may return.
    pub parts_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            text_bytes_max: crate::limits::TEXT_BYTES_MAX,
            headings_max: crate::limits::HEADINGS_MAX,
            parts_max: crate::limits::PARTS_MAX,
        }
    }
}

/// Containers in one another that are opened: a mail in an archive that has an archive in it. What lies deeper is named,
/// not read.
const DEPTH_MAX: u8 = 4;

/// Bytes that all containers of one file may unpack together: some seconds of work.
const UNPACKED_BYTES_MAX: u64 = 512 << 20;

/// What a file in a container costs beside its bytes, so that many small ones end too.
const INNER_COST_BYTES: u64 = 16 << 10;

/// What an extractor is given beside the bytes.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Bounds to keep.
    pub limits: &'a Limits,
    /// The person's own passwords, tried on files that are locked.
    pub passwords: &'a [String],
    /// Containers around this file: 0 for a file in a folder, 1 for what lies in an archive or hangs on a mail.
    pub depth: u8,
    /// What may still be unpacked, shared by all that lies in one file.
    pub(crate) budget: Budget,
}

impl<'a> Context<'a> {
    /// Of a file in a folder.
    #[must_use]
    pub fn new(limits: &'a Limits, passwords: &'a [String]) -> Self {
        Self { limits, passwords, depth: 0, budget: Budget::default() }
    }

    /// Of what lies in this file, if files in it are still to be opened.
    pub(crate) fn inner(&self) -> Option<Self> {
        (self.depth < DEPTH_MAX && self.budget.spend(INNER_COST_BYTES))
            .then(|| Self { depth: self.depth + 1, ..self.clone() })
    }
}

/// Bytes that may still be unpacked.
#[derive(Debug, Clone)]
pub(crate) struct Budget(Rc<Cell<u64>>);

impl Default for Budget {
    fn default() -> Self {
        Self(Rc::new(Cell::new(UNPACKED_BYTES_MAX)))
    }
}

impl Budget {
    /// Takes so much of it; `false` if there is not so much.
    pub(crate) fn spend(&self, bytes: u64) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// How much there is.
    pub(crate) fn left(&self) -> u64 {
        self.0.get()
    }
}

/// The readable text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The text; spans of passages point into it.
    pub text: String,
    /// Whether `text` is the file byte for byte, so that spans point into the file itself.
    pub in_file: bool,
    /// A title that the document itself declares.
    pub title: Option<String>,
    /// Words that describe the document without being part of its text, such as tags.
    pub keywords: Vec<String>,
    /// Who wrote it, as the document says.
    pub author: Option<String>,
    /// When it was written or sent, in milliseconds since 1970, as the document says.
    pub dated: Option<i64>,
    /// The language the document declares (BCP 47), such as `de-CH`.
    pub language: Option<String>,
    /// The outline, in the order of the text.
    pub headings: Vec<Heading>,
    /// Pages, sheets, slides and the like, in the order of the text. Text before the first belongs to none.
    pub parts: Vec<Part>,
    /// Name of the charset the file was read in.
    pub charset: &'static str,
    /// What of the file was left out because of a bound or because it is damaged, in words for the person.
    pub cut: Option<String>,
}

impl Extracted {
    /// Puts another document's text, outline and parts behind this one's: an attachment, a member of an archive. Within
    /// the bounds; what does not fit is left out, and `false` says so.
    #[must_use]
    pub fn append(&mut self, other: &Self, limits: &Limits) -> bool {
        self.cut = self.cut.take().or_else(|| other.cut.clone());
        let room = limits.text_bytes_max.saturating_sub(self.text.len());
        let end = floor_boundary(&other.text, room);
        let base = self.text.len();
        self.text.push_str(&other.text[..end]);
        let headings = other.headings.iter().filter(|h| h.start < end);
        let headings = headings.map(|h| Heading { start: base + h.start, ..h.clone() });
        self.headings.extend(headings.take(limits.headings_max.saturating_sub(self.headings.len())));
        let parts = other.parts.iter().filter(|p| p.start < end).map(|p| Part { start: base + p.start, ..p.clone() });
        self.parts.extend(parts.take(limits.parts_max.saturating_sub(self.parts.len())));
        end == other.text.len()
    }
}

/// A heading in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// First byte of its line in the text.
    pub start: usize,
    /// 1 for the outermost.
    pub level: u8,
    /// Its words.
    pub text: String,
}

/// A page, a sheet or the like. It runs to the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its first byte in the text.
    pub start: usize,
    /// What it is.
    pub kind: PartKind,
    /// Its number, from 1, as a person would count.
    pub number: u32,
    /// Its name, where it has one: of a sheet, of an attachment.
    pub name: Option<String>,
}

impl Part {
    /// Its name as a person would say it: `sheet Costs`, `page 3`.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.kind.name()),
            None => format!("{} {}", self.kind.name(), self.number),
        }
    }
}

/// What a part of a document is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A page of a PDF.
    Page,
    /// A sheet of a workbook.
    Sheet,
    /// A slide of a presentation.
    Slide,
    /// A chapter of a book.
    Chapter,
    /// A message of a mailbox.
    Message,
    /// What hangs on a mail.
    Attachment,
    /// A cell of a notebook.
    Cell,
    /// A file in an archive.
    File,
}

impl PartKind {
    /// All kinds, in the order of their stored numbers.
    pub const ALL: [Self; 8] =
        [Self::Page, Self::Sheet, Self::Slide, Self::Chapter, Self::Message, Self::Attachment, Self::Cell, Self::File];

    pub(crate) fn stored(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_stored(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|n| Self::ALL.get(n)).copied()
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Sheet => "sheet",
            Self::Slide => "slide",
            Self::Chapter => "chapter",
            Self::Message => "message",
            Self::Attachment => "attachment",
            Self::Cell => "cell",
            Self::File => "file",
        }
    }
}

/// Why a file gives no text. This is data for the person, not an error of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// How the file is listed.
    pub state: State,
    /// The reason, in words.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self { state: State::Failed, reason: reason.into() }
    }

    pub(crate) fn excluded(reason: impl Into<String>) -> Self {
        Self { state: State::Excluded, reason: reason.into() }
    }

    pub(crate) fn empty() -> Self {
        Self { state: State::Empty, reason: "the file holds no text".to_owned() }
    }
}

/// Extracts the text of a file. Its format follows from the name and, where a known signature says otherwise, the bytes.
///
/// # Errors
/// A [`Refusal`] says how the file is to be listed and why.
pub fn extract(name: &Path, bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    if bytes.is_empty() {
        Format::of_name(name)?;
        return Err(Refusal::empty());
    }
    let format = Format::of(name, bytes)?;
    let extracted = match format {
        Format::Markdown => formats::markdown::extract(bytes, context.limits)?,
        Format::Pdf => formats::pdf::extract(bytes, context)?,
        Format::Doc => formats::ole::doc::extract(bytes, context)?,
        Format::Xls => formats::ole::xls::extract(bytes, context)?,
        Format::Ppt => formats::ole::ppt::extract(bytes, context)?,
        Format::Msg => formats::ole::msg::extract(bytes, context)?,
        Format::Rtf => formats::rtf::extract(bytes, context.limits)?,
        Format::Html => formats::html::extract(bytes, context.limits)?,
        Format::Docx => formats::ooxml::docx::extract(bytes, context)?,
        Format::Pptx => formats::ooxml::pptx::extract(bytes, context)?,
        Format::Xlsx => formats::ooxml::xlsx::extract(bytes, context)?,
        Format::LockedOffice => formats::ooxml::locked::extract(name, bytes, context)?,
        Format::Odt | Format::Ods | Format::Odp => formats::odf::extract(bytes, context)?,
        Format::Epub => formats::epub::extract(bytes, context)?,
        Format::Mhtml => formats::mhtml::extract(bytes, context)?,
        Format::Notebook => formats::notebook::extract(bytes, context)?,
        Format::IWork => formats::iwork::extract(bytes, context)?,
        Format::Zip => formats::archive::extract(bytes, context)?,
        Format::Gzip => formats::archive::gzip(name, bytes, context)?,
        Format::Org => formats::org::extract(bytes, context.limits)?,
        Format::Latex => formats::latex::extract(bytes, context.limits)?,
        Format::Rst => formats::rst::extract(bytes, context.limits)?,
        Format::Eml => formats::mail::extract(bytes, context)?,
        Format::Mbox => formats::mbox::extract(bytes, context)?,
        Format::Text | Format::Code | Format::Data => formats::plain::extract(bytes, context.limits)?,
    };
    if extracted.text.chars().all(|c| c.is_whitespace() || c == '\u{FEFF}' || c == '\0') {
        return Err(Refusal::empty());
    }
    Ok(extracted)
}

/// Collapses white space and cuts at a character boundary: for titles and headings, which come from untrusted text.
pub(crate) fn short(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        let space = usize::from(!out.is_empty());
        let room = bytes_max.saturating_sub(out.len() + space);
        if room == 0 {
            break;
        }
        if space == 1 {
            out.push(' ');
        }
        out.push_str(&word[..floor_boundary(word, room)]);
        if word.len() > room {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// The largest character boundary at or below `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_space_is_empty() {
        for bytes in [&b""[..], b" \n\t", b"\xEF\xBB\xBF"] {
            let refusal = extract(Path::new("a.txt"), bytes, &Context::new(&Limits::default(), &[])).unwrap_err();
            assert_eq!(refusal.state, State::Empty);
        }
    }

    #[test]
    fn what_is_appended_keeps_its_places_and_the_bounds() {
        let part = |start, number| Part { start, kind: PartKind::Page, number, name: None };
        let heading = |start| Heading { start, level: 1, text: "h".to_owned() };
        let other = Extracted {
            text: "one\ntwö\n".to_owned(),
            parts: vec![part(0, 1), part(4, 2)],
            headings: vec![heading(4)],
            ..Extracted::default()
        };
        let mut all = Extracted { text: "body\n".to_owned(), ..Extracted::default() };
        assert!(all.append(&other, &Limits::default()));
        assert_eq!(
            (all.text.as_str(), &all.parts[..], &all.headings[..]),
            ("body\none\ntwö\n", &[part(5, 1), part(9, 2)][..], &[heading(9)][..])
        );
        let mut cut = Extracted::default();
        let tight = Limits { text_bytes_max: 7, parts_max: 1, ..Limits::default() };
        assert!(!cut.append(&other, &tight));
        assert_eq!((cut.text.as_str(), &cut.parts[..]), ("one\ntw", &[part(0, 1)][..]));
    }

    #[test]
    fn short_cuts_at_a_character() {
        assert_eq!(short("  two\n words ", 100), "two words");
        assert_eq!(short("日本語", 7), "日本");
        assert_eq!(short("ab cd", 3), "ab");
    }
}
