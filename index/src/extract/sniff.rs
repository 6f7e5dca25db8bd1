//! What the first bytes say about a file, where its name says something else or nothing.

use std::path::Path;

use super::Budget;
use super::format::Format;
use super::formats::ooxml::locked;
use super::package::Package;

/// The format by its bytes, for those that have a signature.
pub(crate) fn format_of(name: &Path, bytes: &[u8]) -> Option<Format> {
    let by_name = Format::of_name(name).ok();
    if bytes.starts_with(b"PK\x03\x04") {
        return packed_format(bytes).or(by_name);
    }
    if locked::is_locked(bytes) {
        return Some(Format::LockedOffice);
    }
    if bytes.starts_with(b"%PDF-") {
        return Some(Format::Pdf);
    }
    // A page that says "not found", saved under the name of what was asked for.
    (by_name == Some(Format::Pdf) && is_html(bytes)).then_some(Format::Html)
}

/// Whether it begins like a page of the web.
fn is_html(bytes: &[u8]) -> bool {
    let head = bytes[..bytes.len().min(1024)].trim_ascii_start();
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).to_ascii_lowercase();
    head.starts_with(b"<!doctype html") || head.starts_with(b"<html")
}

/// Which document is packed: by the member that only such a document has.
fn packed_format(bytes: &[u8]) -> Option<Format> {
    let package = Package::open(bytes, &Budget::default()).ok()?;
    let kinds = [
        ("word/document.xml", Format::Docx),
        ("ppt/presentation.xml", Format::Pptx),
        ("xl/workbook.xml", Format::Xlsx),
    ];
    kinds.iter().find(|(member, _)| package.has(member)).map(|&(_, format)| format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::package::tests::packed;

    #[test]
    fn pdf_and_what_only_calls_itself_so() {
        assert_eq!(format_of(Path::new("a.txt"), b"%PDF-1.7\n"), Some(Format::Pdf));
        assert_eq!(format_of(Path::new("a.pdf"), b"\n<!DOCTYPE HTML><p>404"), Some(Format::Html));
        assert_eq!(format_of(Path::new("a.txt"), b"It begins with %PDF-1.7"), None);
    }

    #[test]
    fn packed_documents_are_told_by_their_members() {
        let word = packed(&[("[Content_Types].xml", ""), ("word/document.xml", "<a/>")]);
        for name in ["a", "a.txt", "a.xlsx", "a.docx"] {
            assert_eq!(format_of(Path::new(name), &word), Some(Format::Docx));
        }
        let broken = &word[..word.len() - 20];
        assert_eq!(format_of(Path::new("a.docx"), broken), Some(Format::Docx));
        assert_eq!(format_of(Path::new("a.docx"), b"text"), None);
    }
}
