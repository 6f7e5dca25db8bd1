//! Markdown: the text is the file, so that spans point into it; only outline, title and tags are taken out.

use pulldown_cmark::{Event, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use crate::extract::{Extracted, Heading, Limits, Refusal, charset, short};
use crate::limits::TITLE_BYTES_MAX;

/// Keywords kept of a front matter.
const KEYWORDS_MAX: usize = 32;

/// Headings with their place, title and tags from the front matter.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let decoded = charset::decode(bytes, limits)?;
    let mut out = Extracted {
        text: decoded.text.into_owned(),
        in_file: decoded.in_file,
        charset: decoded.charset,
        ..Extracted::default()
    };
    let text = std::mem::take(&mut out.text);
    outline(&text, limits, &mut out);
    out.text = text;
    if out.title.is_none() {
        out.title = out.headings.iter().find(|h| h.level == 1).map(|h| h.text.clone());
    }
    Ok(out)
}

fn outline(text: &str, limits: &Limits, out: &mut Extracted) {
    let mark = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let options =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut heading: Option<Heading> = None;
    let (mut in_front_matter, mut in_code) = (false, false);
    for (event, range) in Parser::new_ext(&text[mark..], options).into_offset_iter() {
        match event {
            Event::Start(Tag::MetadataBlock(MetadataBlockKind::YamlStyle)) => in_front_matter = true,
            Event::End(TagEnd::MetadataBlock(_)) => in_front_matter = false,
            Event::Text(yaml) if in_front_matter => front_matter(&yaml, out),
            Event::Start(Tag::Heading { level, .. }) if out.headings.len() < limits.headings_max => {
                heading = Some(Heading { start: mark + range.start, level: level as u8, text: String::new() });
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some(mut done) = heading.take() {
                    done.text = short(&done.text, TITLE_BYTES_MAX);
                    out.headings.push(done);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(part) if !in_code && heading.is_none() => inline_tags(&part, out),
            Event::Text(part) | Event::Code(part) => {
                if let Some(open) = heading.as_mut().filter(|h| h.text.len() < 4 * TITLE_BYTES_MAX) {
                    open.text.push_str(&part);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(open) = heading.as_mut() {
                    open.text.push(' ');
                }
            }
            _ => {}
        }
    }
}

/// Reads `title:` and `tags:` of the simple YAML that notes carry; everything else is left to the text.
fn front_matter(yaml: &str, out: &mut Extracted) {
    let mut in_tags = false;
    for line in yaml.lines() {
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if in_tags {
                keyword(item, out);
            }
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { continue };
        let key = key.trim().to_ascii_lowercase();
        in_tags = matches!(key.as_str(), "tags" | "keywords" | "categories" | "aliases");
        if key == "title" && out.title.is_none() {
            out.title = Some(short(unquote(value), TITLE_BYTES_MAX)).filter(|t| !t.is_empty());
        } else if in_tags {
            for item in value.trim().trim_start_matches('[').trim_end_matches(']').split(',') {
                keyword(item, out);
            }
        }
    }
}

/// Tags that stand in the text of notes, such as `#home/garden`: not numbers, not anchors in addresses, not colours.
fn inline_tags(text: &str, out: &mut Extracted) {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '#' && (before.is_whitespace() || before == '(') {
            let tag = &text[at + 1..];
            let end = tag.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '/')).unwrap_or(tag.len());
            let tag = tag[..end].trim_end_matches(['-', '/']);
            if tag.chars().any(char::is_alphabetic) && !out.keywords.iter().any(|k| k == tag) {
                keyword(tag, out);
            }
        }
        before = c;
    }
}

fn keyword(item: &str, out: &mut Extracted) {
    let word = short(unquote(item), 64);
    if !word.is_empty() && out.keywords.len() < KEYWORDS_MAX {
        out.keywords.push(word);
    }
}

fn unquote(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Extracted {
        extract(text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn headings_stand_at_their_bytes() {
        let text = "intro\n\n# One `x`\n\ntext\n\n```\n# not a heading\n```\n\nTwo\n---\n";
        let got = read(text);
        let seen: Vec<_> =
            got.headings.iter().map(|h| (&text[h.start..h.start + 3], h.level, h.text.as_str())).collect();
        assert_eq!(seen, [("# O", 1, "One x"), ("Two", 2, "Two")]);
        assert_eq!(got.title.as_deref(), Some("One x"));
        assert_eq!(got.text, text);
    }

    #[test]
    fn front_matter_gives_title_and_tags() {
        let got = read(
            "---\ntitle: \"Heat pump: notes\"\ntags: [home, 'energy']\nkeywords:\n  - winter\n---\n# Other\n\nbody\n",
        );
        assert_eq!(got.title.as_deref(), Some("Heat pump: notes"));
        assert_eq!(got.keywords, ["home", "energy", "winter"]);
    }

    #[test]
    fn inline_tags_are_keywords() {
        let got =
            read("Plant #home/garden and (#spring-2026), not #12, x#y, or http://a/#b.\n\n```\n#no\n```\n\n`#code`\n");
        assert_eq!(got.keywords, ["home/garden", "spring-2026"]);
        assert_eq!(read("[[Note|alias]] #todo").keywords, ["todo"]);
    }

    #[test]
    fn a_byte_order_mark_shifts_nothing() {
        let text = "\u{FEFF}# Head\n\nbody\n";
        let got = read(text);
        assert_eq!(&text[got.headings[0].start..][..6], "# Head");
    }

    #[test]
    fn nesting_is_no_depth() {
        for text in ["> ".repeat(200_000), "[".repeat(200_000), "* ".repeat(50_000)] {
            let _ = read(&format!("x {text} y\n# end\n"));
        }
    }
}
