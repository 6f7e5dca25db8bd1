//! Files within a PDF: named, and read by the rules of their own kind.

use std::collections::HashSet;
use std::path::Path;

use hayro_syntax::Pdf;
use hayro_syntax::object::{Array, Dict, Name, Stream, String as PdfString};

use super::{stream, string};
use crate::extract::{Context, Extracted, Part, PartKind, short};
use crate::limits::TITLE_BYTES_MAX;

/// Attachments of one document that are read.
const ATTACHMENTS_MAX: usize = 1000;

/// Nodes of the tree of names that are looked at.
const NODES_MAX: usize = 5000;

/// Adds the attachments; returns how many there are.
pub(super) fn add(pdf: &Pdf, catalog: &Dict<'_>, context: &Context<'_>, out: &mut Extracted) -> usize {
    let mut files = named(catalog);
    for page in pdf.pages().iter() {
        let Some(annotations) = page.raw().get::<Array<'_>>("Annots") else { continue };
        for annotation in annotations.iter::<Dict<'_>>().take(ATTACHMENTS_MAX) {
            let is_file = annotation.get::<Name<'_>>("Subtype").is_some_and(|s| s.as_ref() == b"FileAttachment");
            files.extend(annotation.get::<Dict<'_>>("FS").filter(|_| is_file));
        }
        if files.len() > ATTACHMENTS_MAX {
            break;
        }
    }
    files.truncate(ATTACHMENTS_MAX);
    for (i, file) in files.iter().enumerate() {
        add_file(file, u32::try_from(i + 1).unwrap_or(u32::MAX), context, out);
    }
    files.len()
}

/// The files of the document's tree of names.
fn named<'a>(catalog: &Dict<'a>) -> Vec<Dict<'a>> {
    let root = catalog.get::<Dict<'a>>("Names").and_then(|names| names.get::<Dict<'a>>("EmbeddedFiles"));
    let mut stack: Vec<Dict<'a>> = root.into_iter().collect();
    let (mut out, mut visited) = (Vec::new(), HashSet::new());
    let mut visits = 0;
    while let Some(node) = stack.pop() {
        visits += 1;
        if visits > NODES_MAX || node.obj_id().is_some_and(|id| !visited.insert((id.obj_number, id.gen_number))) {
            continue;
        }
        if let Some(names) = node.get::<Array<'a>>("Names") {
            let mut items = names.flex_iter();
            while let Some((_, file)) = items.next::<(PdfString<'a>, Dict<'a>)>() {
                if out.len() >= ATTACHMENTS_MAX {
                    return out;
                }
                out.push(file);
            }
        }
        if let Some(kids) = node.get::<Array<'a>>("Kids") {
            let mut kids: Vec<Dict<'a>> = kids.iter::<Dict<'a>>().take(NODES_MAX).collect();
            kids.reverse();
            stack.extend(kids);
            stack.truncate(NODES_MAX);
        }
    }
    out
}

fn add_file(file: &Dict<'_>, number: u32, context: &Context<'_>, out: &mut Extracted) {
    let word = |key: &str| file.get::<PdfString<'_>>(key).map(|s| string::decode(s.as_bytes()));
    let name = word("UF").or_else(|| word("F")).unwrap_or_default();
    let name = short(name.rsplit(['/', '\\']).next().unwrap_or_default(), TITLE_BYTES_MAX);
    let start = out.text.len();
    if out.parts.len() < context.limits.parts_max {
        out.parts.push(Part { start, kind: PartKind::Attachment, number, name: Some(name.clone()) });
    }
    if out.text.len() + name.len() < context.limits.text_bytes_max {
        out.text.push_str(&name);
        out.text.push('\n');
        if let Some(description) = word("Desc").filter(|d| d.trim() != name) {
            out.text.push_str(&short(&description, 4 * TITLE_BYTES_MAX));
            out.text.push('\n');
        }
    }
    let Some(inner) = context.inner() else { return };
    let embedded = file.get::<Dict<'_>>("EF").unwrap_or_default();
    let Some(data) = embedded.get::<Stream<'_>>("F").or_else(|| embedded.get::<Stream<'_>>("UF")) else { return };
    let Some(data) = stream::unpack(&data) else { return };
    if !context.budget.spend(data.len() as u64) {
        return;
    }
    // What cannot be read of an attachment does not spoil the document; its name is there.
    if let Ok(read) = crate::extract::extract(Path::new(&name), &data, &inner) {
        let _ = out.append(&read, context.limits);
        out.text.push_str("\n\n");
    }
}
