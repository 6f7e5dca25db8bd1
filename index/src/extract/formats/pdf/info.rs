//! Title, author, date and language of a PDF.

use hayro_syntax::Pdf;
use hayro_syntax::object::{DateTime, Dict, Stream, String as PdfString};

use super::{stream, string};
use crate::extract::date::{Day, days_of};
use crate::extract::{Extracted, short};
use crate::limits::TITLE_BYTES_MAX;

/// Bytes of XMP that are looked through.
const XMP_BYTES_MAX: usize = 1 << 20;

/// What the document says of itself: its information dictionary first, its XMP where that is silent.
pub(super) fn read(pdf: &Pdf, catalog: &Dict<'_>) -> Extracted {
    let info = pdf.metadata();
    let word = |bytes: &Option<Box<[u8]>>| {
        let text = bytes.as_ref().map(|bytes| short(&string::decode(bytes), TITLE_BYTES_MAX));
        text.filter(|text| text.chars().any(char::is_alphanumeric))
    };
    let xmp = catalog.get::<Stream<'_>>("Metadata").and_then(|s| stream::unpack(&s));
    let xmp = xmp.map(|xmp| String::from_utf8_lossy(&xmp[..xmp.len().min(XMP_BYTES_MAX)]).into_owned());
    let said = |element: &str| xmp.as_deref().and_then(|xmp| element_of(xmp, element));
    let keywords = word(&info.keywords).unwrap_or_default();
    Extracted {
        title: word(&info.title).or_else(|| said("dc:title")).map(without_program).filter(|t| !t.is_empty()),
        author: word(&info.author).or_else(|| said("dc:creator")),
        dated: info.creation_date.or(info.modification_date).and_then(milliseconds),
        language: catalog
            .get::<PdfString<'_>>("Lang")
            .map(|l| short(&string::decode(l.as_bytes()), 40))
            .filter(|l| !l.is_empty()),
        keywords: keywords
            .split([',', ';'])
            .map(|k| short(k, TITLE_BYTES_MAX))
            .filter(|k| !k.is_empty())
            .take(100)
            .collect(),
        ..Extracted::default()
    }
}

/// `Microsoft Word - letter.doc` is the name of a file and of the program that printed it.
fn without_program(title: String) -> String {
    for program in ["Microsoft Word - ", "Microsoft PowerPoint - ", "Microsoft Excel - "] {
        if let Some(rest) = title.strip_prefix(program) {
            return rest.to_owned();
        }
    }
    title
}

/// The words of the first such element of an XMP packet, whatever is nested in it.
fn element_of(xmp: &str, element: &str) -> Option<String> {
    let open = xmp.find(&format!("<{element}"))?;
    let rest = &xmp[open..];
    let inner = &rest[rest.find('>')? + 1..];
    let inner = &inner[..inner.find(&format!("</{element}"))?];
    let mut text = String::new();
    let mut in_tag = false;
    for c in inner.chars() {
        match c {
            '<' => in_tag = true,
            '>' => (in_tag, _) = (false, text.push(' ')),
            _ if !in_tag => text.push(c),
            _ => {}
        }
    }
    for (entity, c) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")] {
        text = text.replace(entity, c);
    }
    Some(short(&text, TITLE_BYTES_MAX)).filter(|text| !text.is_empty())
}

/// Milliseconds since 1970.
fn milliseconds(date: DateTime) -> Option<i64> {
    // Years outside of these are slips of the program that wrote them.
    if !(1900..=2200).contains(&date.year) {
        return None;
    }
    let day = Day { year: i64::from(date.year), month: u32::from(date.month), day: u32::from(date.day) };
    let offset = i64::from(date.utc_offset_hour) * 60
        + i64::from(date.utc_offset_hour.signum()) * i64::from(date.utc_offset_minute);
    let minutes = days_of(day) * 1440 + i64::from(date.hour) * 60 + i64::from(date.minute) - offset;
    Some((minutes * 60 + i64::from(date.second)) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        let date = |year, month, day, hour, utc_offset_hour| DateTime {
            year,
            month,
            day,
            hour,
            minute: 0,
            second: 0,
            utc_offset_hour,
            utc_offset_minute: 0,
        };
        assert_eq!(milliseconds(date(1970, 1, 1, 0, 0)), Some(0));
        assert_eq!(milliseconds(date(2000, 2, 29, 12, 0)), Some(951_825_600_000));
        assert_eq!(milliseconds(date(2024, 3, 1, 1, 1)), Some(1_709_251_200_000));
        assert_eq!(milliseconds(date(0, 1, 1, 0, 0)), None);
    }

    #[test]
    fn xmp_says_the_title() {
        let xmp = "<x><dc:title><rdf:Alt><rdf:li xml:lang='x'>A &amp; B</rdf:li></rdf:Alt></dc:title></x>";
        assert_eq!(element_of(xmp, "dc:title").as_deref(), Some("A & B"));
        assert_eq!(element_of(xmp, "dc:creator"), None);
    }
}
