//! A text being put together: separators between pieces, headings, parts, and the bounds of what may be returned.

use super::{Extracted, Heading, Limits, Part, PartKind, Refusal, short};
use crate::limits::TITLE_BYTES_MAX;

/// What stands between two pieces of text. The strongest one asked for is written once, before the next piece, so that
/// empty paragraphs and cells leave no trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    /// Within a line.
    None,
    /// Between words.
    Space,
    /// Between cells.
    Tab,
    /// Between lines.
    Line,
    /// Between paragraphs and sections.
    Blank,
}

/// Collects the text of a document that is not text itself.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    limits: &'a Limits,
    out: Extracted,
    gap: Gap,
    /// Level of the heading being written, and where its text starts once there is any.
    heading: Option<(u8, Option<usize>)>,
    /// A part whose first text is still to come.
    part: Option<(PartKind, u32, Option<String>)>,
    full: bool,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        let out = Extracted { charset: "UTF-8", ..Extracted::default() };
        Self { limits, out, gap: Gap::None, heading: None, part: None, full: false }
    }

    /// Whether the bound is reached; what is written from now on is dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes written.
    pub(crate) fn len(&self) -> usize {
        self.out.text.len()
    }

    /// Sees to it that at least this separates what was written from what comes.
    pub(crate) fn separate(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Sees to it that something separates them: this, if nothing was asked for.
    pub(crate) fn separate_somehow(&mut self, gap: Gap) {
        if self.gap == Gap::None {
            self.gap = gap;
        }
    }

    /// Puts this between what was written and what comes, in place of a weaker or stronger wish: a cell's end after its
    /// last paragraph's.
    pub(crate) fn separate_by(&mut self, gap: Gap) {
        self.gap = gap;
    }

    /// Writes text as it is.
    pub(crate) fn push(&mut self, text: &str) {
        if text.is_empty() || self.full {
            return;
        }
        self.write_gap();
        self.begin_part();
        if let Some((_, start @ None)) = &mut self.heading {
            *start = Some(self.out.text.len());
        }
        let room = self.limits.text_bytes_max.saturating_sub(self.out.text.len());
        self.full = text.len() > room;
        self.out.text.push_str(&text[..super::floor_boundary(text, room)]);
    }

    fn write_gap(&mut self) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if self.out.text.is_empty() {
            return;
        }
        let newlines = self.out.text.bytes().rev().take(2).take_while(|&b| b == b'\n').count();
        match gap {
            Gap::Space if !self.out.text.ends_with([' ', '\t', '\n']) => self.out.text.push(' '),
            Gap::Tab if newlines == 0 => self.out.text.push('\t'),
            Gap::Line if newlines == 0 => self.out.text.push('\n'),
            Gap::Blank => self.out.text.push_str(&"\n\n"[newlines..]),
            _ => {}
        }
    }

    /// What follows is a heading, until [`Self::end_heading`].
    pub(crate) fn begin_heading(&mut self, level: u8) {
        self.heading = Some((level.clamp(1, 9), None));
    }

    pub(crate) fn end_heading(&mut self) {
        if let Some((level, Some(start))) = self.heading.take()
            && self.out.headings.len() < self.limits.headings_max
        {
            let text = short(&self.out.text[start..], TITLE_BYTES_MAX);
            if !text.is_empty() {
                self.out.headings.push(Heading { start, level, text });
            }
        }
    }

    /// What follows belongs to this part, which starts a paragraph of its own. A part without text leaves no trace.
    pub(crate) fn begin_part(&mut self) {
        if let Some((kind, number, name)) = self.part.take()
            && self.out.parts.len() < self.limits.parts_max
        {
            self.out.parts.push(Part { start: self.out.text.len(), kind, number, name });
        }
    }

    /// Announces a part: it starts with the next text.
    pub(crate) fn part(&mut self, kind: PartKind, number: u32, name: Option<&str>) {
        self.separate_by(Gap::Blank);
        let name = name.map(|n| short(n, TITLE_BYTES_MAX)).filter(|n| !n.is_empty());
        self.part = Some((kind, number, name));
    }

    /// Puts another document's text behind what there is, as a paragraph of its own.
    pub(crate) fn append(&mut self, other: &Extracted) {
        if other.text.is_empty() || self.full {
            return;
        }
        self.separate(Gap::Blank);
        self.write_gap();
        self.begin_part();
        self.full = !self.out.append(other, self.limits);
        self.gap = Gap::Blank;
    }

    /// Title, author and the like, written by the caller.
    pub(crate) fn about(&mut self) -> &mut Extracted {
        &mut self.out
    }

    /// The finished text. A first heading of the first level serves as a title where the document declares none.
    ///
    /// # Errors
    /// There was more text than may be returned.
    pub(crate) fn finish(mut self) -> Result<Extracted, Refusal> {
        self.end_heading();
        if self.full {
            return Err(Refusal::failed(format!("its text has more than {} bytes", self.limits.text_bytes_max)));
        }
        let out = &mut self.out;
        if out.title.as_deref().is_none_or(str::is_empty) {
            out.title = out.headings.iter().find(|h| h.level == 1).map(|h| h.text.clone());
        }
        if !out.text.is_empty() && !out.text.ends_with('\n') {
            out.text.push('\n');
        }
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_written_once_and_only_between_texts() {
        let limits = Limits::default();
        let mut draft = Draft::new(&limits);
        draft.separate(Gap::Blank);
        draft.push("a");
        draft.separate(Gap::Line);
        draft.separate(Gap::Blank);
        draft.separate(Gap::Line);
        draft.push("b");
        draft.separate(Gap::Line);
        draft.separate_by(Gap::Tab);
        draft.push("c");
        draft.separate(Gap::Blank);
        assert_eq!(draft.finish().unwrap().text, "a\n\nb\tc\n");
    }

    #[test]
    fn headings_and_parts_stand_at_their_text() {
        let limits = Limits::default();
        let mut draft = Draft::new(&limits);
        draft.part(PartKind::Slide, 1, None);
        draft.part(PartKind::Slide, 2, Some("two"));
        draft.begin_heading(1);
        draft.push("Head");
        draft.end_heading();
        draft.separate(Gap::Line);
        draft.begin_heading(2);
        draft.end_heading();
        draft.push("body");
        draft.part(PartKind::Slide, 3, None);
        draft.push("last");
        let out = draft.finish().unwrap();
        assert_eq!(out.text, "Head\nbody\n\nlast\n");
        assert_eq!(out.headings, [Heading { start: 0, level: 1, text: "Head".to_owned() }]);
        let parts: Vec<_> = out.parts.iter().map(|p| (p.start, p.number, p.name.as_deref())).collect();
        assert_eq!(parts, [(0, 2, Some("two")), (11, 3, None)]);
        assert_eq!(out.title.as_deref(), Some("Head"));
    }

    #[test]
    fn more_text_than_allowed_is_refused() {
        let limits = Limits { text_bytes_max: 4, ..Limits::default() };
        let mut draft = Draft::new(&limits);
        draft.push("abcd");
        assert!(!draft.is_full());
        draft.push("é");
        assert!(draft.is_full());
        assert!(draft.finish().is_err());
    }
}
