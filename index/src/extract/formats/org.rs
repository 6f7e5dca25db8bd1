//! Org: the text is the file; headings, title, author and tags are taken out. Nothing that it includes is opened.

use crate::extract::{Extracted, Limits, Refusal, date};

use super::lines::{Outline, value};

/// Words before a heading's text that say where a task stands.
const STATES: &[&str] = &["TODO", "DONE", "NEXT", "WAITING", "CANCELLED", "CANCELED", "HOLD", "STARTED"];

/// Headings outside of blocks.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let mut outline = Outline::of(bytes, limits)?;
    let mut in_block = false;
    outline.for_each_line(|outline, start, line| {
        let head = line.trim_start().get(..8).unwrap_or_default().to_ascii_lowercase();
        if head == "#+begin_" {
            in_block = true;
        } else if line.trim_start().to_ascii_lowercase().starts_with("#+end_") {
            in_block = false;
        }
        let stars = line.bytes().take_while(|&b| b == b'*').count();
        if stars > 0 && line[stars..].starts_with(' ') {
            // A heading ends a block that was never ended.
            in_block = false;
            heading(outline, start, stars, &line[stars..]);
        } else if let Some((key, text)) = line.strip_prefix("#+").and_then(|l| l.split_once(':')).filter(|_| !in_block)
        {
            setting(outline, &key.to_ascii_lowercase(), text);
        }
    });
    Ok(outline.finish())
}

fn heading(outline: &mut Outline<'_>, start: usize, level: usize, line: &str) {
    let mut text = line.trim();
    if let Some((state, rest)) = text.split_once(' ').filter(|(state, _)| STATES.contains(state)) {
        let _ = state;
        text = rest.trim_start();
    }
    if let Some(rest) = text.strip_prefix("[#").and_then(|r| r.get(1..)).and_then(|r| r.strip_prefix(']')) {
        text = rest.trim_start();
    }
    // Tags stand at the end: `:home:energy:`
    if let Some((before, tags)) = text.rsplit_once(char::is_whitespace)
        && tags.len() > 2
        && tags.starts_with(':')
        && tags.ends_with(':')
    {
        tags.split(':').for_each(|tag| outline.keyword(tag));
        text = before.trim_end();
    }
    outline.heading(start, level, text);
}

fn setting(outline: &mut Outline<'_>, key: &str, text: &str) {
    match key {
        "title" => outline.out.title = value(text),
        "author" => outline.out.author = value(text),
        "language" => outline.out.language = value(text),
        "date" => {
            outline.out.dated = date::parse_iso(text.trim().trim_start_matches(['<', '[']).get(..10).unwrap_or(""))
        }
        "filetags" | "keywords" => text.split([':', ',', ' ']).for_each(|tag| outline.keyword(tag)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_settings_and_tags_are_taken_out() {
        let text = "#+TITLE: My notes\n#+AUTHOR: Ann\n#+DATE: <1970-01-02 Fri>\n#+FILETAGS: :a:b:\n* TODO [#A] Heat pump  :home:energy:\n\
                    text\n#+BEGIN_SRC org\n#+TITLE: no\n#+END_SRC\n** Inner\n*bold* line\n";
        let got = extract(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(
            (got.title.as_deref(), got.author.as_deref(), got.dated),
            (Some("My notes"), Some("Ann"), Some(86_400_000))
        );
        assert_eq!(got.keywords, ["a", "b", "home", "energy"]);
        let seen: Vec<_> =
            got.headings.iter().map(|h| (h.level, h.text.as_str(), text[h.start..].starts_with('*'))).collect();
        assert_eq!(seen, [(1, "Heat pump", true), (2, "Inner", true)]);
        assert!(got.in_file && got.text == text);
    }
}
