//! XLS: the cells, notes and text boxes of Excel 5 to 2003, sheet by sheet, numbers as they are shown.
//!
//! Records are read one after the other and cells as they come; nothing is laid out in a grid, so that two cells far
//! apart cost no more than two near each other.

use std::collections::HashMap;

use super::rc4::Key;
use super::xls_strings::{Pieces, boxed, shared};
use super::{Compound, f64_at, place_at, summary, u16_at, u32_at};
use crate::extract::codepage::Codepage;
use crate::extract::draft::{Draft, Gap};
use crate::extract::formats::ooxml::number_format::{NumberFormat, built_in};
use crate::extract::{Context, Extracted, PartKind, Refusal};

/// Styles of cells and formats of numbers that are kept; the format has room for a few thousand.
const STYLES_MAX: usize = 70_000;

/// Bytes that are locked with one key.
const BLOCK_BYTES: usize = 1024;

const BOF: u16 = 0x809;
const EOF: u16 = 0x0A;
const FILEPASS: u16 = 0x2F;
const BOUNDSHEET: u16 = 0x85;
const CONTINUE: u16 = 0x3C;

/// Reads the sheets, or says that they need a password.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut file = Compound::open(bytes)?;
    let broken = || Refusal::failed("its sheets cannot be found: the file is damaged");
    let mut book = file.read("Workbook").or_else(|| file.read("Book")).ok_or_else(broken)?;
    if !matches!(u16_at(&book, 0), Some(0x09 | 0x209 | 0x409 | BOF)) {
        return Err(broken());
    }
    if let Some(info) = lock_of(&book) {
        // Masked by the password itself, as before 1997: not undone here.
        let key = if u16_at(info, 0) == Some(1) {
            Key::find(info.get(2..).unwrap_or_default(), context.passwords)
        } else {
            None
        };
        let key = key.ok_or_else(Refusal::locked)?;
        book = open(&key, &book);
    }
    let mut draft = Draft::new(context.limits);
    summary::read(&mut file, draft.about());
    let mut reader = Reader::new(&mut draft);
    let mut at = 0;
    while let Some((kind, data)) = record_at(&book, at) {
        at += 4 + data.len();
        let mut more = Vec::new();
        while let Some((CONTINUE, data)) = record_at(&book, at) {
            more.push(data);
            at += 4 + data.len();
        }
        reader.record(kind, data, more);
        if reader.draft.is_full() {
            break;
        }
    }
    draft.finish()
}

/// The kind and the bytes of the record there. What comes behind a record that is cut is none.
fn record_at(book: &[u8], at: usize) -> Option<(u16, &[u8])> {
    let (kind, length) = (u16_at(book, at)?, usize::from(u16_at(book, at + 2)?));
    Some((kind, book.get(at + 4..at + 4 + length)?))
}

/// How the workbook is locked, if it is: said among its first records.
fn lock_of(book: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    for _ in 0..20 {
        let (kind, length) = (u16_at(book, at)?, usize::from(u16_at(book, at + 2)?));
        if kind == FILEPASS {
            return book.get(at + 4..at + 4 + length);
        }
        at += 4 + length;
    }
    None
}

/// Opens what is locked of each record: not its head, and not what programs must know before.
fn open(key: &Key, book: &[u8]) -> Vec<u8> {
    let mut out = key.open_blocks(book, BLOCK_BYTES);
    let mut at = 0;
    while let (Some(kind), Some(length)) = (u16_at(book, at), u16_at(book, at + 2)) {
        let end = (at + 4 + usize::from(length)).min(book.len());
        let plain_to = match kind {
            BOF | FILEPASS | 0xE1 | 0x194 | 0x195 | 0x196 | 0x138 => end,
            BOUNDSHEET => (at + 8).min(end),
            _ => (at + 4).min(end),
        };
        out[at..plain_to].copy_from_slice(&book[at..plain_to]);
        at = end;
    }
    out
}

struct Reader<'d, 'l> {
    draft: &'d mut Draft<'l>,
    /// Strings are narrow, in the code page of the workbook: before 1997.
    narrow: bool,
    page: Codepage,
    from_1904: bool,
    names: Vec<String>,
    strings: Vec<String>,
    /// The number of the format of each style.
    styles: Vec<u16>,
    codes: HashMap<u16, String>,
    parsed: HashMap<u16, NumberFormat>,
    /// Parts within parts: charts within sheets.
    depth: usize,
    sheets: usize,
    row: Option<u16>,
    /// A formula whose text comes in the next record.
    formula: Option<u16>,
}

impl<'d, 'l> Reader<'d, 'l> {
    fn new(draft: &'d mut Draft<'l>) -> Self {
        Self {
            draft,
            narrow: false,
            page: Codepage::WESTERN,
            from_1904: false,
            names: Vec::new(),
            strings: Vec::new(),
            styles: Vec::new(),
            codes: HashMap::new(),
            parsed: HashMap::new(),
            depth: 0,
            sheets: 0,
            row: None,
            formula: None,
        }
    }

    fn record(&mut self, kind: u16, data: &[u8], more: Vec<&[u8]>) {
        match kind {
            BOF | 0x09 | 0x209 | 0x409 => self.begin(data),
            EOF => self.depth = self.depth.saturating_sub(1),
            0x42 => {
                let page = u16_at(data, 0).and_then(|page| Codepage::of(u32::from(page)));
                self.page = page.unwrap_or(self.page);
            }
            0x22 => self.from_1904 = u16_at(data, 0) == Some(1),
            BOUNDSHEET => {
                let name = self.string(data.get(6..).unwrap_or_default(), 1);
                self.names.push(name.unwrap_or_default());
            }
            0xFC => self.strings = shared([&[data], &more[..]].concat()),
            0x41E | 0x1E => self.format(kind, data),
            0xE0 if self.styles.len() < STYLES_MAX => self.styles.push(u16_at(data, 2).unwrap_or(0)),
            0x1B6 => self.text_box(boxed(data, more)),
            _ => {
                let _ = self.cell(kind, data);
            }
        }
    }

    /// The workbook, a sheet or a chart begins.
    fn begin(&mut self, data: &[u8]) {
        self.depth += 1;
        let (version, is_book) = (u16_at(data, 0), u16_at(data, 2) == Some(5));
        if is_book {
            self.narrow = version.is_some_and(|v| v < 0x600);
            return;
        }
        // Sheets stand side by side behind the workbook; what is within them belongs to them.
        if self.depth == 1 {
            let number = u32::try_from(self.sheets + 1).unwrap_or(u32::MAX);
            let name = self.names.get(self.sheets).cloned();
            self.draft.part(PartKind::Sheet, number, name.as_deref());
            self.sheets += 1;
            self.row = None;
        }
    }

    fn string(&self, data: &[u8], length_bytes: usize) -> Option<String> {
        let mut pieces = Pieces::new(vec![data]);
        if self.narrow { pieces.narrow(length_bytes, self.page) } else { pieces.string(length_bytes) }
    }

    fn format(&mut self, kind: u16, data: &[u8]) {
        let Some(id) = u16_at(data, 0).filter(|_| self.codes.len() < STYLES_MAX) else { return };
        let length_bytes = if self.narrow || kind == 0x1E { 1 } else { 2 };
        if let Some(code) = self.string(data.get(2..).unwrap_or_default(), length_bytes) {
            self.codes.insert(id, code);
        }
    }

    fn cell(&mut self, kind: u16, data: &[u8]) -> Option<()> {
        if kind == 0x207 {
            let row = self.formula.take()?;
            let text = self.string(data, 2)?;
            self.write(row, &text);
            return Some(());
        }
        let row = u16_at(data, 0)?;
        let style = u16_at(data, 4);
        match kind {
            0xFD => {
                let text = self.strings.get(place_at(data, 6)?)?.clone();
                self.write(row, &text);
            }
            0x204 | 0xD6 => {
                let text = self.string(data.get(6..)?, 2)?;
                self.write(row, &text);
            }
            0x203 => self.number(row, style?, f64_at(data, 6)?),
            0x27E => self.number(row, style?, packed(u32_at(data, 6)?)),
            0xBD => {
                for cell in data.get(4..data.len().checked_sub(2)?)?.chunks_exact(6) {
                    self.number(row, u16_at(cell, 0)?, packed(u32_at(cell, 2)?));
                }
            }
            0x06 | 0x206 | 0x406 => {
                self.formula = None;
                match (data.get(6)?, u16_at(data, 12)?) {
                    (0, 0xFFFF) => self.formula = Some(row),
                    (1, 0xFFFF) => self.write(row, if *data.get(8)? == 0 { "FALSE" } else { "TRUE" }),
                    (_, 0xFFFF) => {}
                    _ => self.number(row, style?, f64_at(data, 6)?),
                }
            }
            0x205 if *data.get(7)? == 0 => self.write(row, if *data.get(6)? == 0 { "FALSE" } else { "TRUE" }),
            _ => {}
        }
        Some(())
    }

    fn number(&mut self, row: u16, style: u16, value: f64) {
        let id = self.styles.get(usize::from(style)).copied().unwrap_or(0);
        let code = self.codes.get(&id).map_or_else(|| built_in(u32::from(id)), String::as_str);
        let format = self.parsed.entry(id).or_insert_with(|| NumberFormat::parse(code));
        let text = format.show(value, self.from_1904);
        self.write(row, &text);
    }

    fn write(&mut self, row: u16, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        self.draft.separate_by(if self.row == Some(row) { Gap::Tab } else { Gap::Line });
        self.row = Some(row);
        self.draft.push(text);
    }

    fn text_box(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.draft.separate(Gap::Line);
            self.draft.push(text.replace('\r', "\n").trim());
            self.draft.separate(Gap::Line);
            self.row = None;
        }
    }
}

/// A number in 32 bits: the upper part of a floating one or a whole one, perhaps of hundredths.
fn packed(bits: u32) -> f64 {
    let value = if bits & 2 != 0 {
        f64::from(bits.cast_signed() >> 2)
    } else {
        f64::from_bits(u64::from(bits & 0xFFFF_FFFC) << 32)
    };
    if bits & 1 != 0 { value / 100.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::super::tests::compound;
    use super::*;
    use crate::extract::Limits;

    fn record(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &u16::try_from(data.len()).unwrap().to_le_bytes(), data].concat()
    }

    fn read(records: &[Vec<u8>]) -> Result<Extracted, Refusal> {
        let limits = Limits::default();
        extract(&compound(&[("Workbook", &records.concat())]), &Context::new(&limits, &[]))
    }

    #[test]
    fn sheets_are_read_row_by_row() {
        let got = read(&[
            record(BOF, &[0, 6, 5, 0]),
            record(BOUNDSHEET, &[&[0, 0, 0, 0, 0, 0, 4, 0][..], b"Data"].concat()),
            record(0xFC, &[&[1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0][..], b"Name"].concat()),
            record(0xE0, &[0, 0, 0, 0]),
            record(0xE0, &[0, 0, 14, 0]),
            record(EOF, &[]),
            record(BOF, &[0, 6, 16, 0]),
            record(0xFD, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            record(0x203, &[&[0, 0, 1, 0, 0, 0][..], &2.5_f64.to_le_bytes()].concat()),
            record(0x27E, &[&[1, 0, 0, 0, 1, 0][..], &(43_831_u32 << 2 | 2).to_le_bytes()].concat()),
            record(0x06, &[&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF][..]].concat()),
            record(0x207, &[&[2, 0, 0][..], b"ok"].concat()),
            record(EOF, &[]),
        ])
        .unwrap();
        assert_eq!(got.text, "Name\t2.5\n2020-01-01\nok\n");
        assert_eq!((got.parts[0].kind, got.parts[0].name.as_deref()), (PartKind::Sheet, Some("Data")));
    }

    #[test]
    fn locked_and_broken_books_are_told() {
        let bof = record(BOF, &[0, 6, 5, 0]);
        let refusal = read(&[bof.clone(), record(FILEPASS, &[0, 0, 1, 2, 3, 4])]).unwrap_err();
        assert_eq!(refusal.state, crate::State::Locked);
        assert_eq!(read(&[b"nonsense".to_vec()]).unwrap_err().state, crate::State::Failed);
        assert!(read(&[bof, vec![0xFD, 0, 255, 255, 1]]).is_ok());
    }
}
