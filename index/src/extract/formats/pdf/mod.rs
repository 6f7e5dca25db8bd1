//! PDF: the text that its pages draw, its annotations, the values of its forms and its attachments.

mod accents;
mod annotations;
mod attachments;
mod bidi;
mod content;
mod font;
mod info;
mod lines;
mod matrix;
mod order;
mod outline;
mod page;
mod stream;
mod string;

use hayro_syntax::object::{Array, Dict, ObjRef, Stream};
use hayro_syntax::page::Page;
use hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::extract::{Context, Extracted, Part, PartKind, Refusal};
use crate::types::State;
use content::{Budget, Drawn, Reader};
use font::Fonts;
use matrix::Matrix;

/// Passwords tried on one file; each costs some hundred hashes.
const PASSWORDS_MAX: usize = 1000;

/// Letters on a page of images that are no text of it: a stamp, a page number, the name of a scanner.
const STAMP_LETTERS_MAX: usize = 16;

/// Bytes that the content of one page may unpack to.
const PAGE_BYTES_MAX: usize = 64 << 20;

/// Layers that may be switched off.
const LAYERS_MAX: usize = 10_000;

/// Refuses what needs a password that is not known, what is broken, and what is nothing but images.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let pdf = open(bytes, context.passwords)?;
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id()).unwrap_or_default();
    let mut out = info::read(&pdf, &catalog);
    out.charset = "PDF";
    let hidden = hidden_layers(&catalog);
    let mut fonts = Fonts::new();
    let mut budget = Budget::new(context.budget.clone());
    let mut seen = Seen::default();
    for (i, page) in pdf.pages().iter().enumerate() {
        if i >= context.limits.parts_max || budget.is_over() {
            break;
        }
        budget.page();
        let drawn = draw(page, &mut fonts, &mut budget, &hidden);
        if budget.glyphs == 0 {
            out.cut = Some(format!("page {} has more text than is read of one page", i + 1));
        }
        let mut text = page::text(lines::lines(&drawn.glyphs));
        annotations::add(page, &mut text);
        seen.page(page, &drawn, &text);
        let number = u32::try_from(i + 1).unwrap_or(u32::MAX);
        out.parts.push(Part { start: out.text.len(), kind: PartKind::Page, number, name: None });
        if !text.is_empty() {
            out.text.push_str(&text);
            out.text.push_str("\n\n");
        }
        if out.text.len() > context.limits.text_bytes_max {
            let most = context.limits.text_bytes_max;
            return Err(Refusal::failed(format!("its text has more than {most} bytes")));
        }
    }
    out.cut = seen.cut(pdf.pages().len(), &budget).or(out.cut);
    annotations::add_fields(&catalog, &mut out.text);
    let attached = attachments::add(&pdf, &catalog, context, &mut out);
    if attached == 0 {
        seen.check(&out.text, &budget)?;
    }
    outline::read(&pdf, &catalog, context.limits, &mut out);
    Ok(out)
}

fn open(bytes: &[u8], passwords: &[String]) -> Result<Pdf, Refusal> {
    // One copy, which all objects point into.
    let data = std::sync::Arc::new(bytes.to_vec());
    let mut error = match Pdf::new(data.clone()) {
        Ok(pdf) => return Ok(pdf),
        Err(error) => error,
    };
    for password in passwords.iter().take(PASSWORDS_MAX) {
        if error != LoadPdfError::Decryption(DecryptionError::PasswordProtected) {
            break;
        }
        error = match Pdf::new_with_password(data.clone(), password) {
            Ok(pdf) => return Ok(pdf),
            Err(error) => error,
        };
    }
    Err(match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            Refusal { state: State::Locked, reason: "it needs a password".to_owned() }
        }
        LoadPdfError::Decryption(DecryptionError::UnsupportedAlgorithm) => {
            Refusal { state: State::Locked, reason: "it is encrypted in a way that is not known here".to_owned() }
        }
        LoadPdfError::Decryption(_) => Refusal::failed("its encryption is broken"),
        LoadPdfError::Invalid => Refusal::failed("it is no PDF or too damaged to be read as one"),
    })
}

fn draw<'a>(page: &Page<'a>, fonts: &mut Fonts<'a>, budget: &mut Budget, hidden: &[ObjRef]) -> Drawn {
    let mut reader = Reader::new(fonts, budget, hidden);
    if let Some(data) = content_of(page, reader.budget) {
        reader.read(&data, page.resources());
    }
    for (form, place) in annotations::appearances(page) {
        reader.form(&form, place, page.resources(), 1);
    }
    reader.drawn
}

/// The content streams of a page as one: an operator may begin in one and end in the next.
fn content_of(page: &Page<'_>, budget: &mut Budget) -> Option<Vec<u8>> {
    let single = page.raw().get::<Stream<'_>>("Contents");
    let many = page.raw().get::<Array<'_>>("Contents");
    let streams = single.into_iter().chain(many.iter().flat_map(|all| all.iter::<Stream<'_>>()));
    let mut out: Option<Vec<u8>> = None;
    for stream in streams {
        let Some(data) = stream::unpack(&stream) else {
            budget.refused += 1;
            continue;
        };
        budget.unpacked(data.len());
        if budget.is_spent() {
            break;
        }
        let all = out.get_or_insert_with(Vec::new);
        if all.len() + data.len() > PAGE_BYTES_MAX {
            budget.refused += 1;
            break;
        }
        all.extend_from_slice(&data);
        all.push(b'\n');
    }
    out
}

/// Layers that are off when the file is opened.
fn hidden_layers(catalog: &Dict<'_>) -> Vec<ObjRef> {
    let layers = catalog.get::<Dict<'_>>("OCProperties").and_then(|p| p.get::<Dict<'_>>("D"));
    let off = layers.and_then(|d| d.get::<Array<'_>>("OFF"));
    off.map(|off| off.raw_iter().take(LAYERS_MAX).filter_map(|r| r.as_obj_ref()).collect()).unwrap_or_default()
}

/// What the pages were like, to say why there is no text.
#[derive(Default)]
struct Seen {
    pages: usize,
    /// Pages that are an image with next to no text.
    images: usize,
    glyphs: usize,
    unknown: usize,
}

impl Seen {
    fn page(&mut self, page: &Page<'_>, drawn: &Drawn, text: &str) {
        let paper = page.media_box();
        let covered = drawn.image_area / (paper.width() * paper.height()).max(1.0);
        let letters = text.chars().filter(|c| c.is_alphanumeric()).take(STAMP_LETTERS_MAX + 1).count();
        self.pages += 1;
        self.images +=
            usize::from(drawn.images > 0 && (letters == 0 || (letters <= STAMP_LETTERS_MAX && covered > 0.4)));
        self.glyphs += drawn.glyphs.len();
        self.unknown += drawn.unknown;
    }

    /// What of the pages was left out.
    fn cut(&self, pages: usize, budget: &Budget) -> Option<String> {
        if budget.is_over() {
            return Some(format!("read to page {} of {pages}, and that one in part", self.pages));
        }
        if self.pages < pages {
            return Some(format!("read to page {} of {pages}", self.pages));
        }
        (budget.refused > 0).then(|| "parts of its pages are damaged or unpack to more than is read".to_owned())
    }

    fn check(&self, text: &str, budget: &Budget) -> Result<(), Refusal> {
        let needs_ocr = |reason: &str| Err(Refusal { state: State::NeedsOcr, reason: reason.to_owned() });
        let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
        if self.images > 0 && self.images == self.pages && letters <= STAMP_LETTERS_MAX * self.pages {
            return needs_ocr("its pages are images");
        }
        // Mixed with pages that are empty.
        if letters == 0 && self.images > 0 {
            return needs_ocr("its pages are images");
        }
        if letters == 0 && budget.refused > 0 {
            return Err(Refusal::failed("its pages are damaged or unpack to more than is read"));
        }
        if letters == 0 && budget.is_over() {
            return Err(Refusal::failed("its pages draw more than is read"));
        }
        if self.unknown > 20 && self.unknown * 10 > self.glyphs * 9 {
            return needs_ocr("its fonts do not say which letters they draw");
        }
        Ok(())
    }
}

/// Where an appearance goes: its box onto the rectangle of its annotation.
fn placed(bbox: [f64; 4], matrix: Matrix, rectangle: hayro_syntax::object::Rect) -> Matrix {
    let corners = [(0, 1), (2, 1), (0, 3), (2, 3)].map(|(x, y)| matrix.point(bbox[x], bbox[y]));
    let low = |f: fn(&(f64, f64)) -> f64| corners.iter().map(f).fold(f64::INFINITY, f64::min);
    let high = |f: fn(&(f64, f64)) -> f64| corners.iter().map(f).fold(f64::NEG_INFINITY, f64::max);
    let (x0, x1, y0, y1) = (low(|c| c.0), high(|c| c.0), low(|c| c.1), high(|c| c.1));
    let scale = |want: f64, have: f64| if have > 0.0 { want / have } else { 1.0 };
    let (sx, sy) = (scale(rectangle.width(), x1 - x0), scale(rectangle.height(), y1 - y0));
    Matrix([sx, 0.0, 0.0, sy, rectangle.x0 - sx * x0, rectangle.y0 - sy * y0])
}

#[cfg(test)]
mod tests;
