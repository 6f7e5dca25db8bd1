//! Notes, comments and the fields of forms.

use hayro_syntax::object::{Array, Dict, Name, Object, Rect, Stream, String as PdfString};
use hayro_syntax::page::Page;

use super::matrix::Matrix;
use super::{placed, stream, string};

/// Annotations of one page that are read.
const ANNOTATIONS_MAX: usize = 10_000;

/// Fields of a form that are read, and how deep their tree goes.
const FIELDS_MAX: usize = 50_000;
const FIELD_DEPTH_MAX: usize = 16;

/// Bytes of one note or value that are kept.
const NOTE_BYTES_MAX: usize = 1 << 20;

fn of<'a>(page: &Page<'a>) -> Vec<Dict<'a>> {
    let all = page.raw().get::<Array<'a>>("Annots");
    all.map(|all| all.iter::<Dict<'a>>().take(ANNOTATIONS_MAX).collect()).unwrap_or_default()
}

fn subtype(annotation: &Dict<'_>) -> Vec<u8> {
    annotation.get::<Name<'_>>("Subtype").map(|n| n.as_ref().to_vec()).unwrap_or_default()
}

/// Whether it is not shown: hidden, or shown by nothing but a click.
fn is_hidden(annotation: &Dict<'_>) -> bool {
    annotation.get::<i64>("F").unwrap_or(0) & 0b10_0010 != 0
}

/// What the annotations of a page draw, and where.
pub(super) fn appearances<'a>(page: &Page<'a>) -> Vec<(Stream<'a>, Matrix)> {
    of(page).iter().filter(|a| !is_hidden(a) && subtype(a) != b"Popup").filter_map(appearance).collect()
}

fn appearance<'a>(annotation: &Dict<'a>) -> Option<(Stream<'a>, Matrix)> {
    let form = match annotation.get::<Dict<'a>>("AP")?.get::<Object<'a>>("N")? {
        Object::Stream(form) => form,
        Object::Dict(states) => states.get::<Stream<'a>>(annotation.get::<Name<'_>>("AS")?)?,
        _ => return None,
    };
    let bbox = form.dict().get::<[f64; 4]>("BBox")?;
    let matrix = form.dict().get::<[f64; 6]>("Matrix").map_or(Matrix::IDENTITY, Matrix);
    let rectangle = annotation.get::<Rect>("Rect")?;
    Some((form, placed(bbox, matrix, rectangle)))
}

/// Adds what the notes of a page say, where the page does not say it already.
pub(super) fn add(page: &Page<'_>, text: &mut String) {
    for annotation in of(page) {
        // What is said of a link or a widget is for programs.
        if matches!(&subtype(&annotation)[..], b"Link" | b"Widget" | b"Popup" | b"PrinterMark" | b"TrapNet") {
            continue;
        }
        if let Some(contents) = annotation.get::<PdfString<'_>>("Contents") {
            add_new(text, &string::decode(contents.as_bytes()));
        }
    }
}

/// Adds a paragraph unless the text holds it, however its lines are broken.
fn add_new(text: &mut String, note: &str) {
    let note = &note[..crate::extract::floor_boundary(note, NOTE_BYTES_MAX)];
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = words(note);
    if wanted.is_empty() || text.contains(&wanted) || (text.len() < NOTE_BYTES_MAX && words(text).contains(&wanted)) {
        return;
    }
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(note.trim());
}

/// Adds the values of a form's fields that no page shows.
pub(super) fn add_fields(catalog: &Dict<'_>, text: &mut String) {
    let Some(form) = catalog.get::<Dict<'_>>("AcroForm") else { return };
    let Some(fields) = form.get::<Array<'_>>("Fields") else { return };
    let mut values = Vec::new();
    let mut stack: Vec<(Dict<'_>, usize)> = fields.iter::<Dict<'_>>().take(FIELDS_MAX).map(|f| (f, 0)).collect();
    let mut visits = 0;
    while let Some((field, depth)) = stack.pop() {
        visits += 1;
        if visits > FIELDS_MAX {
            break;
        }
        if let Some(value) = value(&field).filter(|v| !v.trim().is_empty()) {
            values.push(value);
        }
        if depth < FIELD_DEPTH_MAX
            && let Some(kids) = field.get::<Array<'_>>("Kids")
        {
            stack
                .extend(kids.iter::<Dict<'_>>().take(FIELDS_MAX - stack.len().min(FIELDS_MAX)).map(|k| (k, depth + 1)));
        }
    }
    let shown: std::collections::HashSet<String> = text.split_whitespace().map(str::to_owned).collect();
    values.reverse();
    let start = text.len();
    for value in values {
        if !value.split_whitespace().all(|word| shown.contains(word)) {
            text.push_str(value[..crate::extract::floor_boundary(&value, NOTE_BYTES_MAX)].trim());
            text.push('\n');
        }
        if text.len() - start > 16 * NOTE_BYTES_MAX {
            break;
        }
    }
}

fn value(field: &Dict<'_>) -> Option<String> {
    // A button's value is the name of a state, a signature's is no text.
    if field.get::<Name<'_>>("FT").is_some_and(|kind| matches!(kind.as_ref(), b"Btn" | b"Sig")) {
        return None;
    }
    match field.get::<Object<'_>>("V")? {
        Object::String(text) => Some(string::decode(text.as_bytes())),
        Object::Stream(text) => Some(string::decode(&stream::unpack(&text)?)),
        Object::Array(choices) => {
            let choices = choices.iter::<PdfString<'_>>().take(FIELDS_MAX);
            Some(choices.map(|c| string::decode(c.as_bytes())).collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}
