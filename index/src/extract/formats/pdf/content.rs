//! What a page draws: its glyphs with place and text, in the order drawn, and how much of it is covered by images.
//!
//! Only what moves or shows text is followed; paths, colours and clips draw nothing that can be read. Everything is
//! counted against a [`Budget`], because a few kilobytes can draw a form within a form ten to the thirty times.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_syntax::object::{Dict, MaybeRef, Name, ObjRef, Object, Stream, String as PdfString};
use hayro_syntax::page::Resources;

use super::font::{Fonts, PdfFont};
use super::matrix::Matrix;
use super::{stream, string};

/// Forms within forms that are followed.
const FORM_DEPTH_MAX: usize = 12;

/// Saved graphics states; more are counted, not kept.
const SAVED_MAX: usize = 512;

/// What may still be done for a document.
pub(super) struct Budget {
    /// Operators: a drawn map has some millions, read at about ten million a second.
    pub operators: u64,
    /// Bytes unpacked of pages and forms, shared with all that lies in the file.
    pub bytes: crate::extract::Budget,
    /// Glyphs of the page at hand.
    pub glyphs: usize,
    /// Streams left out because they unpack to too much or not at all.
    pub refused: usize,
}

/// What drawing a form costs beside its bytes, so that forms without any come to an end too.
const FORM_BYTES: u64 = 4096;

impl Budget {
    pub fn new(bytes: crate::extract::Budget) -> Self {
        Self { operators: 30_000_000, bytes, glyphs: 0, refused: 0 }
    }

    /// A page begins: glyphs are kept for one page at a time.
    pub fn page(&mut self) {
        self.glyphs = 1_000_000;
    }

    pub fn is_spent(&self) -> bool {
        self.is_over() || self.glyphs == 0
    }

    /// Whether no further page is read.
    pub fn is_over(&self) -> bool {
        self.operators == 0 || self.bytes.left() == 0
    }

    fn operator(&mut self) -> bool {
        self.operators = self.operators.saturating_sub(1);
        !self.is_spent()
    }

    /// A stream was unpacked.
    pub fn unpacked(&mut self, bytes: usize) {
        let _ = self.bytes.spend(bytes as u64 + FORM_BYTES);
    }
}

/// A glyph on the page.
#[derive(Debug, Clone)]
pub(super) struct Glyph {
    pub text: Rc<str>,
    /// Where its line begins to draw it.
    pub x: f32,
    pub y: f32,
    /// The direction of its line; length 1.
    pub dx: f32,
    pub dy: f32,
    /// Its advance along the line.
    pub width: f32,
    /// The font's size along the line.
    pub em: f32,
    /// The font's size across the line.
    pub height: f32,
}

/// What a page shows.
#[derive(Default)]
pub(super) struct Drawn {
    pub glyphs: Vec<Glyph>,
    /// Codes whose text is not known.
    pub unknown: usize,
    /// Area covered by images, in the page's units.
    pub image_area: f64,
    pub images: usize,
}

#[derive(Clone)]
struct TextState<'a> {
    font: Option<Rc<PdfFont<'a>>>,
    size: f64,
    character_space: f64,
    word_space: f64,
    scale: f64,
    leading: f64,
    rise: f64,
}

/// Text that stands for what is drawn until its marked content ends.
struct Marked {
    hides: bool,
    actual: Option<Rc<RefCell<Rc<str>>>>,
}

/// Reads content streams into a [`Drawn`].
pub(super) struct Reader<'a, 'r> {
    pub fonts: &'r mut Fonts<'a>,
    pub budget: &'r mut Budget,
    /// Layers that are switched off.
    pub hidden: &'r [ObjRef],
    pub drawn: Drawn,
    ctm: Matrix,
    text: TextState<'a>,
    saved: Vec<(Matrix, TextState<'a>)>,
    saved_more: usize,
    matrix: Matrix,
    line: Matrix,
    marked: Vec<Marked>,
}

impl<'a, 'r> Reader<'a, 'r> {
    pub fn new(fonts: &'r mut Fonts<'a>, budget: &'r mut Budget, hidden: &'r [ObjRef]) -> Self {
        let text = TextState {
            font: None,
            size: 0.0,
            character_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        Self {
            fonts,
            budget,
            hidden,
            drawn: Drawn::default(),
            ctm: Matrix::IDENTITY,
            text,
            saved: Vec::new(),
            saved_more: 0,
            matrix: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            marked: Vec::new(),
        }
    }

    /// Reads one stream of a page, a form or an annotation.
    pub fn read(&mut self, data: &[u8], resources: &Resources<'a>) {
        self.run(data, resources, 0);
    }

    /// Draws a form, placed by `outer`.
    pub fn form(&mut self, form: &Stream<'a>, outer: Matrix, parent: &Resources<'a>, depth: usize) {
        if depth >= FORM_DEPTH_MAX || self.budget.is_spent() {
            return;
        }
        let Some(data) = stream::unpack(form) else {
            self.budget.refused += 1;
            return;
        };
        self.budget.unpacked(data.len());
        let own = form.dict().get::<Dict<'a>>("Resources").map(Resources::new);
        let matrix = form.dict().get::<[f64; 6]>("Matrix").map_or(Matrix::IDENTITY, Matrix);
        let before = (self.ctm, self.text.clone(), self.matrix, self.line);
        let (saved, marked) = (std::mem::take(&mut self.saved), std::mem::take(&mut self.marked));
        let hides = marked.iter().any(|m| m.hides);
        self.marked.push(Marked { hides, actual: None });
        self.ctm = matrix.then(outer).then(self.ctm);
        self.run(&data, own.as_ref().unwrap_or(parent), depth);
        (self.ctm, self.text, self.matrix, self.line) = before;
        (self.saved, self.marked) = (saved, marked);
    }

    fn run(&mut self, data: &[u8], resources: &Resources<'a>, depth: usize) {
        let mut operators = TypedIter::new(data);
        let mut fonts: HashMap<Vec<u8>, Option<Rc<PdfFont<'a>>>> = HashMap::new();
        while let Some(op) = operators.next() {
            if !self.budget.operator() {
                return;
            }
            match op {
                Op::SaveState(_) => self.save(),
                Op::RestoreState(_) => self.restore(),
                Op::Transform(m) => self.ctm = matrix([m.0, m.1, m.2, m.3, m.4, m.5]).then(self.ctm),
                Op::TextFont(t) => {
                    let name: &[u8] = t.0.as_ref();
                    if !fonts.contains_key(name) {
                        let font = match resources.get_font(t.0) {
                            Some(dict) => self.fonts.get(&dict),
                            None => self.fonts.standard().map(Rc::new),
                        };
                        fonts.insert(name.to_vec(), font);
                    }
                    self.text.font = fonts.get(name).cloned().flatten();
                    self.text.size = t.1.as_f64();
                }
                Op::SetGraphicsState(name) => self.graphics_state(name.0, resources),
                Op::XObject(name) => self.object(name.0, resources, depth),
                Op::InlineImage(_) => self.image(),
                Op::BeginMarkedContent(_) => self.mark(None, resources),
                Op::BeginMarkedContentWithProperties(mark) => self.mark(Some((mark.0, mark.1)), resources),
                Op::EndMarkedContent(_) => {
                    self.marked.pop();
                }
                other => self.show(other),
            }
        }
    }

    /// The operators of text.
    fn show(&mut self, op: Op<'_, '_>) {
        match op {
            Op::BeginText(_) => (self.matrix, self.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
            Op::SetTextMatrix(m) => {
                self.line = matrix([m.0, m.1, m.2, m.3, m.4, m.5]);
                self.matrix = self.line;
            }
            Op::NextLine(n) => self.next_line(n.0.as_f64(), n.1.as_f64()),
            Op::NextLineAndSetLeading(n) => {
                self.text.leading = -n.1.as_f64();
                self.next_line(n.0.as_f64(), n.1.as_f64());
            }
            Op::NextLineUsingLeading(_) => self.next_line(0.0, -self.text.leading),
            Op::CharacterSpacing(n) => self.text.character_space = n.0.as_f64(),
            Op::WordSpacing(n) => self.text.word_space = n.0.as_f64(),
            Op::HorizontalScaling(n) => self.text.scale = n.0.as_f64() / 100.0,
            Op::TextLeading(n) => self.text.leading = n.0.as_f64(),
            Op::TextRise(n) => self.text.rise = n.0.as_f64(),
            Op::ShowText(s) => self.string(s.0.as_bytes()),
            Op::ShowTexts(s) => self.strings(s.0.iter::<Object<'_>>()),
            Op::NextLineAndShowText(s) => {
                self.next_line(0.0, -self.text.leading);
                self.string(s.0.as_bytes());
            }
            Op::ShowTextWithParameters(s) => {
                (self.text.word_space, self.text.character_space) = (s.0.as_f64(), s.1.as_f64());
                self.next_line(0.0, -self.text.leading);
                self.string(s.2.as_bytes());
            }
            _ => {}
        }
    }

    fn save(&mut self) {
        if self.saved.len() < SAVED_MAX {
            self.saved.push((self.ctm, self.text.clone()));
        } else {
            self.saved_more += 1;
        }
    }

    fn restore(&mut self) {
        if self.saved_more > 0 {
            self.saved_more -= 1;
        } else if let Some((ctm, text)) = self.saved.pop() {
            (self.ctm, self.text) = (ctm, text);
        }
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.line = Matrix::translate(x, y).then(self.line);
        self.matrix = self.line;
    }

    fn graphics_state(&mut self, name: &Name<'_>, resources: &Resources<'a>) {
        let Some(state) = resources.get_ext_g_state(name) else { return };
        let Some(font) = state.get::<hayro_syntax::object::Array<'a>>("Font") else { return };
        let mut items = font.flex_iter();
        if let Some(dict) = items.next::<Dict<'a>>() {
            self.text.font = self.fonts.get(&dict);
            self.text.size = items.next::<f64>().unwrap_or(self.text.size);
        }
    }

    fn object(&mut self, name: &Name<'_>, resources: &Resources<'a>, depth: usize) {
        let Some(object) = resources.get_x_object(name) else { return };
        if self.is_hidden(object.dict()) {
            return;
        }
        match object.dict().get::<Name<'_>>("Subtype").as_ref().map(AsRef::as_ref) {
            Some(b"Image") => self.image(),
            _ => self.form(&object, Matrix::IDENTITY, resources, depth + 1),
        }
    }

    fn image(&mut self) {
        self.drawn.images += 1;
        let area = self.ctm.area();
        if area.is_finite() {
            self.drawn.image_area += area;
        }
    }

    fn is_hidden(&self, owner: &Dict<'_>) -> bool {
        !self.hidden.is_empty() && owner.get_ref("OC").is_some_and(|layer| self.hidden.contains(&layer))
    }

    fn mark(&mut self, mark: Option<(&Name<'_>, &Object<'_>)>, resources: &Resources<'a>) {
        let mut hides = self.marked.last().is_some_and(|m| m.hides);
        // Text that stands for an outer mark stands for what is in it too.
        let mut actual = self.marked.last().and_then(|m| m.actual.clone());
        match mark {
            Some((tag, Object::Name(name))) => {
                let layer = match resources.properties.get_raw::<Dict<'_>>(name.as_ref()) {
                    Some(MaybeRef::Ref(layer)) => Some(layer),
                    _ => None,
                };
                hides |= tag.as_ref() == b"OC" && layer.is_some_and(|layer| self.hidden.contains(&layer));
                let properties = resources.properties.get::<Dict<'_>>(name.as_ref());
                actual = properties.as_ref().and_then(actual_text).or(actual);
            }
            Some((_, Object::Dict(properties))) => actual = actual_text(properties).or(actual),
            _ => {}
        }
        // Marks are as deep as they are many in a hostile stream; beyond this they are not told apart.
        if self.marked.len() < 4 * SAVED_MAX {
            self.marked.push(Marked { hides, actual });
        }
    }

    fn strings<'s>(&mut self, items: impl Iterator<Item = Object<'s>>) {
        for item in items {
            match item {
                Object::String(text) => self.string(text.as_bytes()),
                Object::Number(by) => {
                    let by = -by.as_f64() / 1000.0 * self.text.size;
                    self.advance(by * if self.is_vertical() { 1.0 } else { self.text.scale });
                }
                _ => {}
            }
        }
    }

    fn is_vertical(&self) -> bool {
        self.text.font.as_ref().is_some_and(|f| f.vertical)
    }

    fn advance(&mut self, by: f64) {
        let step = if self.is_vertical() { Matrix::translate(0.0, by) } else { Matrix::translate(by, 0.0) };
        self.matrix = step.then(self.matrix);
    }

    fn string(&mut self, bytes: &[u8]) {
        if self.text.font.is_none() {
            self.text.font = self.fonts.standard().map(Rc::new);
        }
        let Some(font) = self.text.font.clone() else { return };
        font.decode(bytes, |code| {
            let width = code.advance / 1000.0 * self.text.size;
            if self.budget.glyphs > 0 {
                self.budget.glyphs -= 1;
                self.glyph(&font, code.text, width);
            }
            let space = self.text.character_space + if code.space { self.text.word_space } else { 0.0 };
            if font.vertical {
                self.advance(width + space);
            } else {
                self.advance((width + space) * self.text.scale);
            }
        });
    }

    fn glyph(&mut self, font: &PdfFont<'_>, mut text: Rc<str>, width: f64) {
        let marked = self.marked.last();
        if marked.is_some_and(|m| m.hides) {
            return;
        }
        if let Some(actual) = marked.and_then(|m| m.actual.as_ref()) {
            // The first glyph carries the whole of it, the others only take up their room.
            text = actual.replace(Rc::from(""));
        } else if text.is_empty() {
            self.drawn.unknown += 1;
        }
        let place = self.matrix.then(self.ctm);
        let (x, y) = place.point(0.0, self.text.rise);
        let along = if font.vertical { place.vector(0.0, -1.0) } else { place.vector(self.text.scale, 0.0) };
        let across = if font.vertical { place.vector(1.0, 0.0) } else { place.vector(0.0, 1.0) };
        let (unit, height) = (along.0.hypot(along.1), across.0.hypot(across.1));
        let size = self.text.size.abs() * font.em / 1000.0;
        // A negative size mirrors the letters and lets the line run the other way.
        let sign = if self.text.size < 0.0 { -1.0 } else { 1.0 };
        let glyph = Glyph {
            text,
            x: x as f32,
            y: y as f32,
            dx: (sign * along.0 / unit) as f32,
            dy: (sign * along.1 / unit) as f32,
            width: (width.abs() * unit) as f32,
            em: (size * unit) as f32,
            height: (size * height) as f32,
        };
        let numbers = [glyph.x, glyph.y, glyph.dx, glyph.dy, glyph.width, glyph.em, glyph.height];
        // Text of no size is drawn by nobody; coordinates beyond any paper come of broken matrices.
        if numbers.iter().all(|n| n.is_finite() && n.abs() < 1e7) && glyph.em > 0.0 {
            self.drawn.glyphs.push(glyph);
        }
    }
}

fn matrix(numbers: [hayro_syntax::object::Number; 6]) -> Matrix {
    Matrix(numbers.map(|n| n.as_f64()))
}

fn actual_text(properties: &Dict<'_>) -> Option<Rc<RefCell<Rc<str>>>> {
    let text = properties.get::<PdfString<'_>>("ActualText")?;
    Some(Rc::new(RefCell::new(Rc::from(string::decode(text.as_bytes())))))
}
