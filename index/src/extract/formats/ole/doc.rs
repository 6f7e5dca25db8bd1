//! DOC: the text of Word 6 to 2003, put together of the pieces that it was saved in.
//!
//! Footnotes, headers, comments and text boxes stand behind the text, as they do in the file. What fields are made of is
//! left out, what they show is kept.

use super::rc4::Key;
use super::{Compound, place_at, summary, u16_at, u32_at, utf16};
use crate::extract::codepage::Codepage;
use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, Refusal};

/// The first version of the format whose header has the lists of places that are used here (Word 97).
const WORD_97: u16 = 0xC1;

/// Bytes at the start of the stream that are never locked.
const OPEN_BYTES: usize = 68;

/// Bytes that are locked with one key.
const BLOCK_BYTES: usize = 512;

/// Fields in one another that are followed.
const FIELDS_MAX: usize = 64;

/// Reads the text, or says that it needs a password.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut file = Compound::open(bytes)?;
    let broken = || Refusal::failed("its text cannot be found: the file is damaged");
    let mut main = file.read("WordDocument").ok_or_else(broken)?;
    let flags = u16_at(&main, 0x0A).ok_or_else(broken)?;
    let version = u16_at(&main, 2).ok_or_else(broken)?;
    let table_name = if flags & 0x0200 != 0 { "1Table" } else { "0Table" };
    let mut table = file.read(table_name).unwrap_or_default();
    if flags & 0x0100 != 0 {
        // Masked by the password itself, as before 1997: not undone here.
        let key = if flags & 0x8000 == 0 { Key::find(&table, context.passwords) } else { None };
        let key = key.ok_or_else(Refusal::locked)?;
        let opened = key.open_blocks(&main, BLOCK_BYTES);
        let from = OPEN_BYTES.min(opened.len());
        main.truncate(from);
        main.extend_from_slice(&opened[from..]);
        table = key.open_blocks(&table, BLOCK_BYTES);
    }
    let text = if version >= WORD_97 { pieces_of_97(&main, &table) } else { pieces_of_95(&main) };
    let mut draft = Draft::new(context.limits);
    write(&text.ok_or_else(broken)?, &mut draft);
    summary::read(&mut file, draft.about());
    draft.finish()
}

fn pieces_of_97(main: &[u8], table: &[u8]) -> Option<String> {
    // Where the list of pieces stands is the 34th of the pairs of place and length.
    let (at, length) = (place_at(main, 0x1A2)?, place_at(main, 0x1A6)?);
    let list = table.get(at..)?;
    let list = list.get(..length).unwrap_or(list);
    pieces(main, list, None)
}

/// Word 6 and 95: the list, if there is one, stands in the text's own stream; else the text is one piece.
fn pieces_of_95(main: &[u8]) -> Option<String> {
    let page = codepage_of(u16_at(main, 6)?);
    if u16_at(main, 0x0A)? & 0x0004 != 0 {
        let (at, length) = (place_at(main, 0x160)?, place_at(main, 0x164)?);
        let list = main.get(at..)?;
        return pieces(main, list.get(..length).unwrap_or(list), Some(page));
    }
    let (from, to) = (place_at(main, 0x18)?, place_at(main, 0x1C)?);
    Some(page.decode(main.get(from..to).or_else(|| main.get(from..))?))
}

/// The text of all pieces. `page` is set where they are of single bytes whatever they say.
fn pieces(main: &[u8], mut list: &[u8], page: Option<Codepage>) -> Option<String> {
    // Before the pieces stand changes of format that were saved in a hurry.
    while list.first() == Some(&1) {
        list = list.get(3 + usize::from(u16_at(list, 1)?)..)?;
    }
    let list = (list.first() == Some(&2)).then(|| list.get(5..)).flatten()?;
    let count = list.len().checked_sub(4)? / 12;
    let mut out = String::new();
    for i in 0..count {
        let (Some(from), Some(to)) = (u32_at(list, 4 * i), u32_at(list, 4 * i + 4)) else { break };
        let place = u32_at(list, 4 * (count + 1) + 8 * i + 2)?;
        // A list of a broken length ends where its places no longer rise.
        let Some(length) = to.checked_sub(from).and_then(|n| usize::try_from(n).ok()) else { break };
        let narrow = page.is_some() || place & 0x4000_0000 != 0;
        let at = usize::try_from(match (page, narrow) {
            (Some(_), _) => place,
            (None, true) => (place & 0x3FFF_FFFF) / 2,
            (None, false) => place & 0x3FFF_FFFF,
        });
        let at = at.ok()?;
        let rest = main.get(at..).unwrap_or_default();
        let bytes = if narrow { length } else { length.saturating_mul(2) };
        let bytes = rest.get(..bytes).unwrap_or(rest);
        // Pieces can be said to stand all at the same place: no document has more text than bytes.
        if out.len() > 4 * main.len() {
            break;
        }
        out.push_str(&if narrow { page.unwrap_or(Codepage::WESTERN).decode(bytes) } else { utf16(bytes) });
    }
    Some(out)
}

/// The code page of a language, for the versions that had no Unicode.
fn codepage_of(language: u16) -> Codepage {
    let number = match language & 0x3FF {
        0x11 => 932,
        0x12 => 949,
        0x04 if language == 0x404 || language == 0xC04 => 950,
        0x04 => 936,
        0x02 | 0x19 | 0x22 | 0x23 | 0x2F => 1251,
        0x05 | 0x0E | 0x15 | 0x18 | 0x1A | 0x1B | 0x24 => 1250,
        0x08 => 1253,
        0x1F => 1254,
        0x0D => 1255,
        0x01 | 0x20 | 0x29 => 1256,
        0x25..=0x27 => 1257,
        0x1E => 874,
        _ => 1252,
    };
    Codepage::of(number).unwrap_or(Codepage::WESTERN)
}

/// Writes the text as it is read: marks of fields, cells and pictures become what they stand for.
fn write(text: &str, draft: &mut Draft<'_>) {
    // For each field that is open: whether what it is made of is being passed over.
    let mut fields: Vec<bool> = Vec::new();
    let mut line = String::new();
    let mut after_cell = false;
    for c in text.chars() {
        let was_cell = std::mem::replace(&mut after_cell, c == '\u{7}');
        match c {
            '\u{13}' => {
                if fields.len() < FIELDS_MAX {
                    fields.push(true);
                }
            }
            '\u{14}' => {
                if let Some(last) = fields.last_mut() {
                    *last = false;
                }
            }
            '\u{15}' => {
                fields.pop();
            }
            _ if fields.contains(&true) => {}
            // The mark behind the last cell of a row.
            '\r' | '\u{B}' | '\u{C}' | '\u{E}' => end_line(&mut line, draft),
            '\u{7}' if was_cell => end_line(&mut line, draft),
            '\u{7}' | '\t' => line.push('\t'),
            '\u{1E}' => line.push('-'),
            '\u{A0}' => line.push(' '),
            c if c.is_control() || c == '\u{FFFD}' || c == '\u{FFFC}' => {}
            c => line.push(c),
        }
    }
    end_line(&mut line, draft);
}

fn end_line(line: &mut String, draft: &mut Draft<'_>) {
    draft.push(line.trim_end());
    draft.separate(Gap::Line);
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::super::tests::compound;
    use super::*;
    use crate::extract::Limits;

    /// A document whose text is these pieces, each narrow or wide.
    fn document(pieces: &[(&str, bool)]) -> Vec<u8> {
        let mut main = vec![0; 0x400];
        main[..4].copy_from_slice(&[0xEC, 0xA5, 0xC1, 0x00]);
        main[0x0B] = 0x02;
        let (mut places, mut list, mut count) = (vec![0_u32.to_le_bytes()], Vec::new(), 0_u32);
        for (text, narrow) in pieces {
            let at = u32::try_from(main.len()).unwrap();
            count += u32::try_from(text.chars().count()).unwrap();
            if *narrow {
                main.extend(encoding_rs::WINDOWS_1252.encode(text).0.iter());
            } else {
                main.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
            }
            places.push(count.to_le_bytes());
            list.extend([0, 0]);
            list.extend((if *narrow { (at * 2) | 0x4000_0000 } else { at }).to_le_bytes());
            list.extend([0, 0]);
        }
        let list = [places.concat(), list].concat();
        let mut table = vec![1, 2, 0, 9, 9, 2];
        table.extend(u32::try_from(list.len()).unwrap().to_le_bytes());
        table.extend(list);
        main[0x1A6..0x1AA].copy_from_slice(&u32::try_from(table.len()).unwrap().to_le_bytes());
        compound(&[("WordDocument", &main), ("1Table", &table)])
    }

    fn read(bytes: &[u8]) -> Result<Extracted, Refusal> {
        let limits = Limits::default();
        extract(bytes, &Context::new(&limits, &[]))
    }

    #[test]
    fn pieces_are_put_together() {
        let got =
            read(&document(&[("Ein sch\u{F6}ner ", true), ("Тег\r", false), ("a\u{7}b\u{7}\u{7}c\r", true)])).unwrap();
        assert_eq!(got.text, "Ein schöner Тег\na\tb\nc\n");
    }

    #[test]
    fn fields_show_what_they_show() {
        let got =
            read(&document(&[("see \u{13} HYPERLINK \"x\" \u{14}the page\u{15} and \u{13}PAGE\u{15}end\r", true)]))
                .unwrap();
        assert_eq!(got.text, "see the page and end\n");
    }

    #[test]
    fn broken_documents_are_refused() {
        assert!(read(&compound(&[("WordDocument", b"x")])).is_err());
        let whole = document(&[("text\r", true)]);
        for end in (512..whole.len()).step_by(64) {
            let _ = read(&whole[..end]);
        }
    }
}
