//! What stands for a content while a template is rendered, and how it is found again.
//!
//! A placeholder is `<blank><open>INDEX<close><blank>`. The marks are of Unicode's private use area; the blanks around
//! them tell afterwards whether the template trimmed the content, so that the content itself can be trimmed likewise.

const OPEN: char = '\u{f8fc}';
const CLOSE: char = '\u{f8fd}';
/// Blanks on either side; a template that strips only line ends takes but the outer one.
const BLANKS: &str = "\n \n";
const BLANKS_WITHOUT_LINE_END: [&str; 2] = [" \n", "\n "];

/// How much of the blanks at one end a template took away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Kept,
    LineEnds,
    Trimmed,
}

/// What a template did to the ends of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trim {
    start: End,
    end: End,
}

impl Trim {
    /// Does the same to a text.
    pub(super) fn apply(self, text: &str) -> &str {
        let text = match self.start {
            End::Kept => text,
            End::LineEnds => text.trim_start_matches('\n'),
            End::Trimmed => text.trim_start(),
        };
        match self.end {
            End::Kept => text,
            End::LineEnds => text.trim_end_matches('\n'),
            End::Trimmed => text.trim_end(),
        }
    }
}

/// A placeholder found in a rendering.
#[derive(Debug)]
pub(super) struct Cut<'t> {
    pub(super) before: &'t str,
    pub(super) index: usize,
    pub(super) trim: Trim,
    pub(super) after: &'t str,
}

/// Whether a template's source has the marks in it.
pub(super) fn is_forged(source: &str) -> bool {
    source.contains([OPEN, CLOSE])
}

/// What stands for content `index`. An empty content stands for itself, because templates ask for that.
pub(super) fn of(index: usize, content: &str) -> String {
    if content.trim().is_empty() { String::new() } else { format!("{BLANKS}{OPEN}{index}{CLOSE}{BLANKS}") }
}

/// The next placeholder of a rendering.
pub(super) fn next(text: &str) -> Result<Option<Cut<'_>>, String> {
    let Some((before, rest)) = text.split_once(OPEN) else { return Ok(None) };
    let changed = || "it changed a message".to_owned();
    let (index, after) = rest.split_once(CLOSE).ok_or_else(changed)?;
    let index = index.parse().map_err(|_| changed())?;
    let (before, start) = match (before.strip_suffix(BLANKS), before.strip_suffix(BLANKS_WITHOUT_LINE_END[0])) {
        (Some(before), _) => (before, End::Kept),
        (None, Some(before)) => (before, End::LineEnds),
        (None, None) => (before, End::Trimmed),
    };
    let (after, end) = match (after.strip_prefix(BLANKS), after.strip_prefix(BLANKS_WITHOUT_LINE_END[1])) {
        (Some(after), _) => (after, End::Kept),
        (None, Some(after)) => (after, End::LineEnds),
        (None, None) => (after, End::Trimmed),
    };
    Ok(Some(Cut { before, index, trim: Trim { start, end }, after }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_trims_is_trimmed_from_the_content() {
        let content = "\n\n  a \n";
        let p = of(3, content);
        for (rendered, expected) in [
            (format!("<{p}>"), content),
            (format!("<{}>", p.trim()), "a"),
            (format!("<{}>", p.trim_start()), "a \n"),
            (format!("<{}>", p.trim_start_matches('\n')), "  a \n"),
            (format!("<{}>", p.trim_end_matches('\n')), "\n\n  a "),
        ] {
            let cut = next(&rendered).unwrap().unwrap();
            assert_eq!((cut.before, cut.index, cut.after), ("<", 3, ">"), "{rendered:?}");
            assert_eq!(cut.trim.apply(content), expected, "{rendered:?}");
        }
        assert!(next("no mark").unwrap().is_none());
        for broken in ["\u{f8fc}1", "\u{f8fc}x\u{f8fd}", "\u{f8fc}\u{f8fd}"] {
            assert!(next(broken).is_err());
        }
    }
}
