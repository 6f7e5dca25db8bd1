//! LaTeX: the text is the file; title, author and sections are taken out. Nothing that it includes is opened.

use crate::extract::{Extracted, Limits, Refusal};

use super::lines::{Outline, value};

/// Commands that are headings, and their levels.
const SECTIONS: &[(&str, usize)] = &[
    ("part", 1),
    ("chapter", 1),
    ("section", 2),
    ("subsection", 3),
    ("subsubsection", 4),
    ("paragraph", 5),
    ("subparagraph", 6),
];

/// Headings as they are written, at the start of a line.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let mut outline = Outline::of(bytes, limits)?;
    outline.for_each_line(|outline, start, line| {
        let Some(command) = line.trim_start().strip_prefix('\\') else { return };
        let name = command.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        let Some(argument) = argument(&command[name.len()..]) else { return };
        match name {
            "title" => outline.out.title = value(&words(argument)),
            "author" => outline.out.author = value(&words(argument)),
            "keywords" => words(argument).split([',', ';']).for_each(|word| outline.keyword(word)),
            _ => {
                if let Some((_, level)) = SECTIONS.iter().find(|(section, _)| *section == name) {
                    outline.heading(start, *level, &words(argument));
                }
            }
        }
    });
    Ok(outline.finish())
}

/// What stands in the braces, behind a star and a short form in brackets.
fn argument(text: &str) -> Option<&str> {
    let text = text.strip_prefix('*').unwrap_or(text).trim_start();
    let text = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.1,
        None => text,
    };
    let inside = text.trim_start().strip_prefix('{')?;
    let mut depth = 1_u32;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(&inside[..at]),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    Some(inside)
}

/// Without commands: `\textbf{one} \& two` is `one & two`.
fn words(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['\\', '{', '}', '~']) {
        out.push_str(&rest[..at]);
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        if found == b'~' {
            out.push(' ');
        } else if found == b'\\' {
            let name = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            match rest.chars().next() {
                Some('\\') => {
                    out.push(' ');
                    rest = &rest[1..];
                }
                Some(c) if name == 0 && "&%$#_{}".contains(c) => {
                    out.push(c);
                    rest = &rest[1..];
                }
                Some(c) if name == 0 => rest = &rest[c.len_utf8()..],
                _ => rest = rest[name..].trim_start(),
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_author_and_sections_are_taken_out() {
        let text = "\\documentclass{article}\n\\title{On \\emph{heat} \\& cold}\n\\author{Ann~B.}\n\\begin{document}\n\
                    \\section*{One}\n text\n  \\subsection[short]{Two {deep}}\n\\sectionmark{no}\n";
        let got = extract(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!((got.title.as_deref(), got.author.as_deref()), (Some("On heat & cold"), Some("Ann B.")));
        let seen: Vec<_> = got.headings.iter().map(|h| (h.level, h.text.as_str())).collect();
        assert_eq!(seen, [(2, "One"), (3, "Two deep")]);
        assert!(got.in_file);
    }

    #[test]
    fn unclosed_things_are_survived() {
        for text in ["\\section{", "\\section[", "\\", "\\title{\\", "\\section{é\\ü"] {
            let _ = extract(text.as_bytes(), &Limits::default());
        }
    }
}
