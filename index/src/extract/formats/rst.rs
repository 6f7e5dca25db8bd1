//! reStructuredText: the text is the file; headings, title, author and tags are taken out.

use crate::extract::{Extracted, Limits, Refusal, date};

use super::lines::{Outline, value};

/// Characters that underline a heading.
const MARKS: &str = "=-~^\"'`#*+.:_<>!$%&,/;?@|\\(){}[]";

/// The level of a heading follows from the order in which the lines of the document look different.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let mut outline = Outline::of(bytes, limits)?;
    // The looks of headings so far: the mark, and whether it stands above too.
    let mut looks: Vec<(char, bool)> = Vec::new();
    // Start and text of the line before, and the mark and start of a line of marks before that.
    let (mut before, mut above): ((usize, String), Option<(char, usize)>) = ((0, String::new()), None);
    outline.for_each_line(|outline, start, line| {
        let text = line.trim_end();
        if let Some(mark) = mark_of(text) {
            let is_title = !before.1.is_empty() && text.chars().count() >= before.1.trim().chars().count().min(3);
            if is_title {
                let over = above.filter(|&(m, _)| m == mark);
                let look = (mark, over.is_some());
                let level = looks.iter().position(|l| *l == look).unwrap_or_else(|| {
                    looks.push(look);
                    looks.len() - 1
                });
                outline.heading(over.map_or(before.0, |(_, at)| at), level + 1, &before.1);
                (before, above) = ((start, String::new()), None);
            } else {
                (before, above) = ((start, String::new()), Some((mark, start)));
            }
            return;
        }
        field(outline, text);
        if text.is_empty() || !before.1.is_empty() {
            above = None;
        }
        let in_paragraph = !before.1.is_empty() || text.starts_with([' ', '\t']) && above.is_none();
        before = (start, if in_paragraph { String::new() } else { text.to_owned() });
    });
    Ok(outline.finish())
}

/// The mark that a line is made of, if it is made of one and long enough.
fn mark_of(line: &str) -> Option<char> {
    let mark = line.chars().next().filter(|c| MARKS.contains(*c))?;
    (line.len() >= 3 && line.chars().all(|c| c == mark)).then_some(mark)
}

/// `:Author: Ann`, and a blog's `:tags: a, b`.
fn field(outline: &mut Outline<'_>, line: &str) {
    let Some((key, text)) = line.strip_prefix(':').and_then(|l| l.split_once(": ")) else { return };
    match key.to_ascii_lowercase().as_str() {
        "title" => outline.out.title = value(text),
        "author" | "authors" => outline.out.author = value(text),
        "date" => outline.out.dated = date::parse_iso(text),
        "tags" | "keywords" | "category" => text.split([',', ';']).for_each(|tag| outline.keyword(tag)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_told_by_their_lines() {
        let text = "=====\nTitle\n=====\n\n:Author: Ann\n:tags: a, b\n\nOne\n===\n\ntext\nmore text\n\nTwo\n---\n\n* item\n\nThree\n=====\n\nend\n\n----\n\nafter\n";
        let got = extract(text.as_bytes(), &Limits::default()).unwrap();
        let seen: Vec<_> = got.headings.iter().map(|h| (h.start, h.level, h.text.as_str())).collect();
        let at = |word: &str| text.find(word).unwrap();
        assert_eq!(seen, [(0, 1, "Title"), (at("One"), 2, "One"), (at("Two"), 3, "Two"), (at("Three"), 2, "Three")]);
        assert_eq!((got.title.as_deref(), got.author.as_deref()), (Some("Title"), Some("Ann")));
        assert_eq!(got.keywords, ["a", "b"]);
    }
}
