//! Title, author, keywords and date of a document of the old office formats.

use super::{Compound, milliseconds, place_at, u16_at, u32_at, utf16};
use crate::extract::codepage::Codepage;
use crate::extract::{Extracted, short};
use crate::limits::TITLE_BYTES_MAX;

/// Properties of one set that are looked at.
const PROPERTIES_MAX: usize = 1000;

const TITLE: u32 = 2;
const AUTHOR: u32 = 4;
const KEYWORDS: u32 = 5;
const CREATED: u32 = 12;
const SAVED: u32 = 13;

/// Fills in what the document says of itself.
pub(super) fn read(file: &mut Compound<'_>, out: &mut Extracted) {
    let Some(set) = file.read("\u{5}SummaryInformation") else { return };
    let Some(properties) = Properties::of(&set) else { return };
    out.title = properties.text(TITLE);
    out.author = properties.text(AUTHOR);
    out.dated = properties.time(CREATED).or_else(|| properties.time(SAVED));
    let keywords = properties.text(KEYWORDS).unwrap_or_default();
    out.keywords = keywords.split([',', ';']).map(|k| short(k, TITLE_BYTES_MAX)).filter(|k| !k.is_empty()).collect();
}

struct Properties<'a> {
    section: &'a [u8],
    page: Codepage,
}

impl<'a> Properties<'a> {
    fn of(set: &'a [u8]) -> Option<Self> {
        let section = set.get(place_at(set, 44)?..)?;
        let mut out = Self { section, page: Codepage::WESTERN };
        let page = out.find(1).and_then(|value| u16_at(value, 4));
        out.page = page.and_then(|page| Codepage::of(u32::from(page))).unwrap_or(Codepage::WESTERN);
        Some(out)
    }

    /// The value of a property, from its type on.
    fn find(&self, id: u32) -> Option<&'a [u8]> {
        let count = place_at(self.section, 4)?.min(PROPERTIES_MAX);
        let at = (0..count).map(|i| 8 + 8 * i).find(|&at| u32_at(self.section, at) == Some(id))?;
        self.section.get(place_at(self.section, at + 4)?..)
    }

    fn text(&self, id: u32) -> Option<String> {
        let value = self.find(id)?;
        let length = place_at(value, 4)?.min(4 * TITLE_BYTES_MAX);
        let text = match u32_at(value, 0)? {
            0x1E => self.page.decode(value.get(8..8 + length).or_else(|| value.get(8..))?),
            0x1F => utf16(value.get(8..8 + 2 * length).or_else(|| value.get(8..))?),
            _ => return None,
        };
        let text = text.split('\0').next().unwrap_or_default();
        Some(short(text, TITLE_BYTES_MAX)).filter(|text| !text.is_empty())
    }

    fn time(&self, id: u32) -> Option<i64> {
        let value = self.find(id).filter(|value| u32_at(value, 0) == Some(0x40))?;
        milliseconds(u64::from(u32_at(value, 8)?) << 32 | u64::from(u32_at(value, 4)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_found() {
        let mut set = vec![0; 44];
        set.extend(48_u32.to_le_bytes());
        // Section: size, count, then id and place of each.
        for number in [0_u32, 2, 1, 24, 2, 32, 2, 0xFDE9, 0x1E, 5] {
            set.extend(number.to_le_bytes());
        }
        set.extend(b"T\xC3\xA4g\0");
        let properties = Properties::of(&set).unwrap();
        assert_eq!(properties.text(TITLE).as_deref(), Some("Täg"));
        assert_eq!(properties.text(AUTHOR), None);
        for end in 0..set.len() {
            let _ = Properties::of(&set[..end]).map(|p| p.text(TITLE));
        }
    }
}
