//! What of a page is not seen, or is not its text.

use html5ever::tokenizer::Tag;

/// Elements whose text is never for reading.
const HIDDEN: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "object", "select", "noframes"];

/// Elements around the text of a page: menus and the like.
const FURNITURE: &[&str] = &["nav", "footer", "aside", "menu", "form"];

/// Roles of elements around the text.
const FURNITURE_ROLES: &[&str] = &["navigation", "menu", "menubar", "search", "contentinfo", "toolbar"];

/// Elements without content, which hide nothing.
const VOID: &[&str] =
    &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

/// Elements that the next one of their kind ends.
const ENDED_BY_THEIR_LIKE: &[&str] = &["p", "li", "dt", "dd", "tr", "td", "th", "option"];

/// Which open elements hide what is in them.
#[derive(Default)]
pub(super) struct Hiding {
    /// Names, and how many of each are open.
    open: Vec<(String, u32)>,
}

impl Hiding {
    /// Whether what comes now is hidden.
    pub(super) fn is_on(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes note of an element's begin or end. `is_block` says that it ends a paragraph.
    pub(super) fn tag(&mut self, tag: &Tag, start: bool, is_block: bool, skip_furniture: bool) {
        let name: &str = &tag.name;
        if start && ENDED_BY_THEIR_LIKE.contains(&name) {
            self.open.retain(|(open, _)| open != name);
        }
        if start && is_block {
            self.open.retain(|(open, _)| open != "p");
        }
        if tag.self_closing || VOID.contains(&name) {
            return;
        }
        let by_name = HIDDEN.contains(&name) || (skip_furniture && FURNITURE.contains(&name));
        let known = self.open.iter().any(|(open, _)| open == name);
        if by_name || known || (start && by_attributes(tag, skip_furniture)) {
            self.count(name, start);
        }
    }

    fn count(&mut self, name: &str, start: bool) {
        let at = self.open.iter().position(|(open, _)| open == name);
        match (at, start) {
            (Some(i), true) => self.open[i].1 = self.open[i].1.saturating_add(1),
            (None, true) => self.open.push((name.to_owned(), 1)),
            (Some(i), false) if self.open[i].1 > 1 => self.open[i].1 -= 1,
            (Some(i), false) => {
                self.open.remove(i);
            }
            (None, false) => {}
        }
    }
}

/// Whether an element's attributes take it off the page, or say that it is not the text.
fn by_attributes(tag: &Tag, skip_furniture: bool) -> bool {
    // The page itself is never hidden: some show it when their scripts have run.
    if matches!(&*tag.name, "html" | "body") {
        return false;
    }
    tag.attrs.iter().any(|attribute| {
        let value: &str = &attribute.value;
        match &*attribute.name.local {
            "hidden" => value != "until-found",
            "style" if value.len() < 10_000 => {
                let style: String =
                    value.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
                ["display:none", "visibility:hidden", "font-size:0;", "font-size:0px"].iter().any(|s| style.contains(s))
            }
            "role" => skip_furniture && FURNITURE_ROLES.contains(&value.trim()),
            "aria-hidden" => skip_furniture && value.trim() == "true",
            _ => false,
        }
    })
}
