//! Lines of a page → its text: order, paragraphs and words cut at the end of a line.

use std::collections::HashSet;

use super::lines::Line;

/// Lines a page must have before its order is doubted.
const DOUBT_LINES_MIN: usize = 8;

/// The text of a page. Lines end in a line feed; a gap between paragraphs is an empty line.
pub(super) fn text(mut lines: Vec<Line>) -> String {
    if is_disordered(&lines) {
        lines = super::order::by_place(lines);
    }
    let compounds = compounds(&lines);
    let mut out = String::new();
    let mut before: Option<&Line> = None;
    for line in &lines {
        if let Some(before) = before {
            if is_new_paragraph(before, line) {
                out.push_str("\n\n");
            } else if !join_cut_word(&mut out, line, &compounds) {
                out.push('\n');
            }
        }
        out.push_str(&line.text);
        before = Some(line);
    }
    out
}

/// Whether the lines were drawn in an order that no one reads in: up and down within one column.
fn is_disordered(lines: &[Line]) -> bool {
    if lines.len() < DOUBT_LINES_MIN {
        return false;
    }
    let climbs = lines.windows(2).filter(|pair| {
        let (a, b) = (&pair[0], &pair[1]);
        a.is_along(b) && b.base > a.base + 0.5 * a.size && b.start < a.end && a.start < b.end
    });
    climbs.count() * 5 > lines.len()
}

fn is_new_paragraph(before: &Line, line: &Line) -> bool {
    if !before.is_along(line) {
        return true;
    }
    let size = before.size.max(line.size);
    let fall = before.base - line.base;
    fall > 1.9 * size || fall < -0.5 * size || line.size > 1.3 * before.size || before.size > 1.3 * line.size
}

/// Words of the page that have a hyphen of their own, such as `well-known`.
fn compounds(lines: &[Line]) -> HashSet<String> {
    let words = lines.iter().flat_map(|line| line.text.split(|c: char| !c.is_alphabetic() && c != '-'));
    words.filter(|word| word.trim_matches('-').contains('-')).map(str::to_lowercase).collect()
}

/// A word that was cut at the end of a line is put together. Says whether it was.
fn join_cut_word(out: &mut String, line: &Line, compounds: &HashSet<String>) -> bool {
    let Some(hyphen) = out.chars().next_back().filter(|c| matches!(c, '-' | '\u{AD}' | '\u{2010}')) else {
        return false;
    };
    let head = &out[..out.len() - hyphen.len_utf8()];
    let letters = head.chars().rev().take_while(|c| c.is_alphabetic()).count();
    let goes_on = line.text.chars().next().is_some_and(char::is_lowercase);
    if letters >= 2 && goes_on {
        let half = |c: char| !c.is_alphabetic();
        let (first, second) = (head.rsplit(half).next(), line.text.split(half).next());
        let whole = format!("{}-{}", first.unwrap_or_default(), second.unwrap_or_default()).to_lowercase();
        if compounds.contains(&whole) {
            return true;
        }
        out.truncate(head.len());
        return true;
    }
    // `XML-` and `2020-`: the hyphen stays, but the line goes on.
    hyphen != '\u{AD}' && letters >= 1 && line.text.chars().next().is_some_and(char::is_alphanumeric) && {
        out.push('\n');
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, start: f32, end: f32, base: f32) -> Line {
        Line { text: text.to_owned(), start, end, base, size: 10.0, way: (1.0, 0.0) }
    }

    #[test]
    fn cut_words_are_joined_and_paragraphs_parted() {
        let got = text(vec![
            line("an impor-", 0.0, 100.0, 700.0),
            line("tant word", 0.0, 100.0, 688.0),
            line("A new one", 0.0, 100.0, 650.0),
            line("T-", 0.0, 100.0, 638.0),
            line("shirt", 0.0, 100.0, 626.0),
        ]);
        assert_eq!(got, "an important word\n\nA new one\nT-\nshirt");
    }

    #[test]
    fn a_hyphen_that_the_word_has_elsewhere_stays() {
        let got =
            text(vec![line("a well-known word, a well-", 0.0, 100.0, 700.0), line("known one", 0.0, 100.0, 688.0)]);
        assert_eq!(got, "a well-known word, a well-known one");
    }

    #[test]
    fn a_page_drawn_from_the_bottom_is_read_from_the_top() {
        let lines: Vec<Line> = (0..10).map(|i| line(&format!("line {i}"), 0.0, 100.0, i as f32 * 12.0)).collect();
        assert!(text(lines).starts_with("line 9\nline 8"));
    }

    #[test]
    fn columns_drawn_one_after_the_other_stay_so() {
        let mut lines: Vec<Line> =
            (0..6).map(|i| line(&format!("left {i}"), 0.0, 100.0, 700.0 - i as f32 * 12.0)).collect();
        lines.extend((0..6).map(|i| line(&format!("right {i}"), 120.0, 220.0, 700.0 - i as f32 * 12.0)));
        let got = text(lines);
        assert!(got.contains("left 4\nleft 5\n\nright 0\nright 1"), "{got}");
    }
}
