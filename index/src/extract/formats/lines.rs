//! What the text formats have in common that are read line by line: the text is the file, and its outline is taken out.

use crate::extract::{Extracted, Heading, Limits, Refusal, charset, short};
use crate::limits::TITLE_BYTES_MAX;

/// Keywords kept.
const KEYWORDS_MAX: usize = 32;

/// A text whose outline is being read.
pub(crate) struct Outline<'l> {
    pub out: Extracted,
    limits: &'l Limits,
}

impl<'l> Outline<'l> {
    /// The text of a file, without any outline yet.
    ///
    /// # Errors
    /// It is no text.
    pub(crate) fn of(bytes: &[u8], limits: &'l Limits) -> Result<Self, Refusal> {
        let decoded = charset::decode(bytes, limits)?;
        let out = Extracted {
            text: decoded.text.into_owned(),
            in_file: decoded.in_file,
            charset: decoded.charset,
            ..Extracted::default()
        };
        Ok(Self { out, limits })
    }

    /// Tells every line with its first byte, without its end.
    pub(crate) fn for_each_line(&mut self, mut tell: impl FnMut(&mut Self, usize, &str)) {
        let text = std::mem::take(&mut self.out.text);
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            tell(self, start, line.trim_end_matches(['\n', '\r']).trim_start_matches('\u{FEFF}'));
            start += line.len();
        }
        self.out.text = text;
    }

    pub(crate) fn heading(&mut self, start: usize, level: usize, text: &str) {
        let text = short(text, TITLE_BYTES_MAX);
        if !text.is_empty() && self.out.headings.len() < self.limits.headings_max {
            // Deeper than nine is told as nine, as in all formats.
            let level = u8::try_from(level.clamp(1, 9)).unwrap_or(9);
            self.out.headings.push(Heading { start, level, text });
        }
    }

    pub(crate) fn keyword(&mut self, word: &str) {
        let word = short(word, 64);
        if !word.is_empty() && self.out.keywords.len() < KEYWORDS_MAX && !self.out.keywords.contains(&word) {
            self.out.keywords.push(word);
        }
    }

    /// The finished text; a first heading of the first level is its title where it has none.
    pub(crate) fn finish(mut self) -> Extracted {
        if self.out.title.as_deref().is_none_or(str::is_empty) {
            self.out.title = self.out.headings.iter().find(|h| h.level == 1).map(|h| h.text.clone());
        }
        self.out
    }
}

/// A line's words as a value, where there are any.
pub(crate) fn value(text: &str) -> Option<String> {
    Some(short(text, TITLE_BYTES_MAX)).filter(|value| !value.is_empty())
}
