//! Which paragraph styles of a Word document are headings, whatever they are called in the person's language.

use std::collections::HashMap;

use crate::extract::short;
use crate::extract::xml::{Node, Xml};

/// Styles read of one document.
const STYLES_MAX: usize = 10_000;

/// Styles that are based on one another.
const BASES_MAX: usize = 16;

#[derive(Default)]
struct Style {
    level: Option<u8>,
    base: Option<String>,
}

/// The styles of a document.
#[derive(Default)]
pub(crate) struct Styles {
    styles: HashMap<String, Style>,
    /// The language of the text, as the defaults say.
    pub language: Option<String>,
}

impl Styles {
    pub(crate) fn read(text: &str) -> Self {
        let (mut xml, mut out) = (Xml::new(text), Self::default());
        let mut open: Option<(String, Style)> = None;
        while let Some(node) = xml.next() {
            match node {
                Node::Start(tag) => match (tag.name(), open.as_mut()) {
                    ("style", _) => open = tag.get("styleId").map(|id| (id, Style::default())),
                    ("name", Some((_, style))) => {
                        style.level = style.level.or_else(|| named_level(&tag.get("val").unwrap_or_default()));
                    }
                    ("basedOn", Some((_, style))) => style.base = tag.get("val"),
                    ("outlineLvl", Some((_, style))) => style.level = outline_level(tag.get("val")),
                    ("lang", None) if out.language.is_none() => {
                        out.language = tag.get("val").map(|l| short(&l, 35)).filter(|l| !l.is_empty());
                    }
                    _ => {}
                },
                Node::End(name) if name == "style" => {
                    if let Some((id, style)) = open.take().filter(|_| out.styles.len() < STYLES_MAX) {
                        out.styles.insert(id, style);
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// The level of a heading in this style; `None` for a style of running text.
    pub(crate) fn level(&self, id: &str) -> Option<u8> {
        let mut id = id;
        for _ in 0..BASES_MAX {
            let Some(style) = self.styles.get(id) else { break };
            match (style.level, &style.base) {
                (Some(level), _) => return (1..=9).contains(&level).then_some(level),
                (None, Some(base)) => id = base,
                (None, None) => return None,
            }
        }
        None
    }
}

/// The built-in names are English in every language's version.
fn named_level(name: &str) -> Option<u8> {
    let name = name.trim().to_ascii_lowercase();
    if name == "title" {
        return Some(1);
    }
    name.strip_prefix("heading ")?.trim().parse().ok().filter(|level| (1..=9).contains(level))
}

/// A paragraph's own outline level, counted from 0; 9 is running text.
pub(crate) fn outline_level(value: Option<String>) -> Option<u8> {
    value?.trim().parse::<u8>().ok().map(|level| level.saturating_add(1).min(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_told_by_name_outline_and_base() {
        let styles = Styles::read(
            "<w:styles><w:docDefaults><w:lang w:val='fr-FR'/></w:docDefaults>\
             <w:style w:styleId='berschrift2'><w:name w:val='heading 2'/></w:style>\
             <w:style w:styleId='Mine'><w:name w:val='Mine'/><w:basedOn w:val='berschrift2'/></w:style>\
             <w:style w:styleId='Out'><w:name w:val='x'/><w:pPr><w:outlineLvl w:val='3'/></w:pPr></w:style>\
             <w:style w:styleId='Body'><w:name w:val='heading 1'/><w:pPr><w:outlineLvl w:val='9'/></w:pPr></w:style>\
             <w:style w:styleId='Loop'><w:name w:val='l'/><w:basedOn w:val='Loop'/></w:style></w:styles>",
        );
        let levels = ["berschrift2", "Mine", "Out", "Body", "Loop", "none"].map(|id| styles.level(id));
        assert_eq!(levels, [Some(2), Some(2), Some(4), None, None, None]);
        assert_eq!(styles.language.as_deref(), Some("fr-FR"));
    }
}
