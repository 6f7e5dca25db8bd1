//! What a page says about itself in its head.

use html5ever::tokenizer::Tag;

use crate::extract::{Extracted, date, short};
use crate::limits::TITLE_BYTES_MAX;

/// Keywords kept.
const KEYWORDS_MAX: usize = 32;

/// Takes note of an element that says something about the page.
pub(super) fn read(tag: &Tag, about: &mut Extracted) {
    let get = |name: &str| {
        let attribute = tag.attrs.iter().find(|a| &*a.name.local == name)?;
        Some(short(&attribute.value, TITLE_BYTES_MAX)).filter(|value| !value.is_empty())
    };
    match &*tag.name {
        "html" if about.language.is_none() => about.language = get("lang"),
        "meta" => {
            let (Some(name), Some(content)) = (get("name").or_else(|| get("property")), get("content")) else { return };
            match name.to_ascii_lowercase().as_str() {
                "author" | "dc.creator" if about.author.is_none() => about.author = Some(content),
                "keywords" | "news_keywords" => {
                    let words = content.split([',', ';']).map(|w| short(w, 64)).filter(|w| !w.is_empty());
                    about.keywords.extend(words.take(KEYWORDS_MAX.saturating_sub(about.keywords.len())));
                }
                "article:published_time" | "dc.date" | "date" if about.dated.is_none() => {
                    about.dated = date::parse_iso(&content);
                }
                _ => {}
            }
        }
        _ => {}
    }
}
