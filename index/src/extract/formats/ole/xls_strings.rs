//! Strings of a workbook: shared ones may be cut anywhere and go on in the next record.

use super::{u16_at, u32_at, utf16};
use crate::extract::codepage::Codepage;

/// Strings that are kept; a sheet of the format has 65,536 rows.
const STRINGS_MAX: usize = 4 << 20;

/// Goes through the bytes of a record and of those that go on with it.
pub(super) struct Pieces<'a> {
    pieces: Vec<&'a [u8]>,
    at: usize,
}

impl<'a> Pieces<'a> {
    /// The pieces in reverse order, the first one last.
    pub fn new(mut pieces: Vec<&'a [u8]>) -> Self {
        pieces.reverse();
        Self { pieces, at: 0 }
    }

    fn rest(&mut self) -> Option<&'a [u8]> {
        loop {
            let piece = *self.pieces.last()?;
            if self.at < piece.len() {
                return Some(&piece[self.at..]);
            }
            self.pieces.pop();
            self.at = 0;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.rest()?.first()?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        (0..bytes).try_fold(0, |n, i| Some(n | usize::from(self.byte()?) << (8 * i)))
    }

    fn pass_over(&mut self, mut bytes: usize) -> Option<()> {
        while bytes > 0 {
            let step = self.rest()?.len().min(bytes);
            self.at += step;
            bytes -= step;
        }
        Some(())
    }

    /// That many characters. At the start of a piece stands anew whether they are narrow.
    fn characters(&mut self, mut count: usize, mut wide: bool) -> Option<String> {
        let mut out = String::new();
        while count > 0 {
            let rest = self.rest();
            let Some(rest) = rest else { break };
            let size = if wide { 2 } else { 1 };
            let here = (rest.len() / size).min(count);
            if here == 0 {
                self.at += rest.len();
            } else if wide {
                out.push_str(&utf16(&rest[..2 * here]));
            } else {
                out.extend(rest[..here].iter().map(|&b| char::from(b)));
            }
            self.at += here * size;
            count -= here;
            if count > 0 {
                // One that is cut is kept as far as it goes.
                let Some(flags) = self.byte() else { break };
                wide = flags & 1 != 0;
            }
        }
        Some(out)
    }

    /// A string: length, whether it is narrow, and what may stand behind it.
    pub fn string(&mut self, length_bytes: usize) -> Option<String> {
        let length = self.number(length_bytes)?;
        let flags = self.byte()?;
        let runs = if flags & 8 != 0 { self.number(2)? } else { 0 };
        let phonetic = if flags & 4 != 0 { self.number(4)? } else { 0 };
        let text = self.characters(length, flags & 1 != 0)?;
        // A string that was cut is kept; there is nothing behind it.
        let _ = self.pass_over(runs.saturating_mul(4).saturating_add(phonetic));
        Some(text)
    }

    /// A string of single bytes, as before 1997.
    pub fn narrow(&mut self, length_bytes: usize, page: Codepage) -> Option<String> {
        let length = self.number(length_bytes)?;
        let bytes: Vec<u8> = (0..length).map_while(|_| self.byte()).collect();
        Some(page.decode(&bytes))
    }
}

/// The strings that cells share.
pub(super) fn shared(pieces: Vec<&[u8]>) -> Vec<String> {
    let Some(count) = pieces.first().and_then(|first| u32_at(first, 4)) else { return Vec::new() };
    let bytes: usize = pieces.iter().map(|p| p.len()).sum();
    let mut reader = Pieces::new(pieces);
    let _ = reader.pass_over(8);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(STRINGS_MAX).min(bytes);
    (0..count).map_while(|_| reader.string(2)).collect()
}

/// What is written in a text box or a note: the length stands in one record, the text in those that go on with it.
pub(super) fn boxed(record: &[u8], more: Vec<&[u8]>) -> Option<String> {
    let length = usize::from(u16_at(record, 10)?);
    let mut reader = Pieces::new(more);
    let wide = reader.byte()? & 1 != 0;
    reader.characters(length, wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_go_on_in_the_next_record() {
        let first = [&[2, 0, 0, 0, 2, 0, 0, 0][..], &[3, 0, 0], b"abc", &[4, 0, 0], b"de"].concat();
        let second = [&[1][..], &[0x16, 0x04, 0x35, 0x04]].concat();
        assert_eq!(shared(vec![&first, &second]), ["abc", "deЖе"]);
        assert_eq!(shared(vec![&first]), ["abc", "de"]);
        assert_eq!(shared(vec![&[0, 0, 0, 0, 255, 255, 255, 255]]), Vec::<String>::new());
    }
}
