//! The outline of a PDF → headings.

use std::collections::{HashMap, HashSet};

use hayro_syntax::Pdf;
use hayro_syntax::object::{Array, Dict, MaybeRef, Object, String as PdfString};

use super::string;
use crate::extract::{Extracted, Heading, Limits, PartKind, short};
use crate::limits::TITLE_BYTES_MAX;

/// Levels of an outline that are told apart.
const DEPTH_MAX: usize = 8;

/// Entries that are read; the outline of a large manual has some thousand.
const ENTRIES_MAX: usize = 20_000;

/// Adds a heading for each entry whose page is known: at the line that has its words, or else where the page begins.
pub(super) fn read(pdf: &Pdf, catalog: &Dict<'_>, limits: &Limits, out: &mut Extracted) {
    let Some(root) = catalog.get::<Dict<'_>>("Outlines") else { return };
    let numbers: HashMap<(u32, i32), usize> = pdf
        .pages()
        .iter()
        .enumerate()
        .filter_map(|(i, page)| page.raw().obj_id().map(|id| ((id.obj_number, id.gen_number), i)))
        .collect();
    let pages: Vec<usize> = out.parts.iter().filter(|p| p.kind == PartKind::Page).map(|p| p.start).collect();
    let mut headings: Vec<Heading> = Vec::new();
    for (level, title, target) in entries(&root) {
        let page = target.and_then(|target| page_of(&target, catalog, &numbers));
        let Some(&from) = page.and_then(|page| pages.get(page)) else { continue };
        let to = page.and_then(|page| pages.get(page + 1)).copied().unwrap_or(out.text.len());
        let start = from + line_with(&out.text[from..to], &title).unwrap_or(0);
        headings.push(Heading { start, level, text: title });
    }
    headings.sort_by_key(|heading| heading.start);
    headings.truncate(limits.headings_max.saturating_sub(out.headings.len()));
    // Those of attachments come behind the last page.
    headings.append(&mut out.headings);
    out.headings = headings;
}

/// Level, title and target of each entry, in order. Loops and shared branches are followed once.
fn entries<'a>(root: &Dict<'a>) -> Vec<(u8, String, Option<Object<'a>>)> {
    let mut out = Vec::new();
    let mut visited = HashSet::new();
    let mut stack: Vec<(Dict<'a>, usize)> = root.get::<Dict<'a>>("First").map(|first| (first, 1)).into_iter().collect();
    while let Some((entry, depth)) = stack.pop() {
        let id = entry.obj_id().map(|id| (id.obj_number, id.gen_number));
        if out.len() >= ENTRIES_MAX || id.is_none_or(|id| !visited.insert(id)) {
            continue;
        }
        if let Some(next) = entry.get::<Dict<'a>>("Next") {
            stack.push((next, depth));
        }
        if depth < DEPTH_MAX
            && let Some(first) = entry.get::<Dict<'a>>("First")
        {
            stack.push((first, depth + 1));
        }
        let title = entry.get::<PdfString<'_>>("Title").map(|t| string::decode(t.as_bytes())).unwrap_or_default();
        let title = short(&title, TITLE_BYTES_MAX);
        let target = entry.get::<Object<'a>>("Dest").or_else(|| entry.get::<Dict<'a>>("A")?.get::<Object<'a>>("D"));
        if !title.is_empty() {
            out.push((u8::try_from(depth).unwrap_or(u8::MAX), title, target));
        }
    }
    out
}

/// The page that a destination leads to.
fn page_of(target: &Object<'_>, catalog: &Dict<'_>, numbers: &HashMap<(u32, i32), usize>) -> Option<usize> {
    let place = match target {
        Object::Array(place) => place.clone(),
        Object::Dict(place) => place.get::<Array<'_>>("D")?,
        Object::Name(name) => named(catalog.get::<Dict<'_>>("Dests")?.get::<Object<'_>>(name.as_ref())?)?,
        // The tree of names is sorted, but seldom so in files that need it; it is not searched.
        _ => return None,
    };
    match place.raw_iter().next()? {
        MaybeRef::Ref(page) => numbers.get(&(page.obj_number, page.gen_number)).copied(),
        MaybeRef::NotRef(Object::Number(page)) => usize::try_from(page.as_i64()).ok(),
        MaybeRef::NotRef(_) => None,
    }
}

fn named(place: Object<'_>) -> Option<Array<'_>> {
    match place {
        Object::Array(place) => Some(place),
        Object::Dict(place) => place.get::<Array<'_>>("D"),
        _ => None,
    }
}

/// Where the line begins that reads like the title.
fn line_with(page: &str, title: &str) -> Option<usize> {
    let plain =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let wanted = plain(title);
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        // A line much longer than the title is a sentence that has its words.
        if line.len() < 2 * title.len() + 20 && !wanted.is_empty() && plain(line).ends_with(&wanted) {
            return Some(at);
        }
        at += line.len();
    }
    None
}
