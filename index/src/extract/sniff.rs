//! What the first bytes say about a file, where its name says something else or nothing.

use std::path::Path;

use super::charset;
use super::format::Format;
use super::formats::ole;
use super::formats::ooxml::locked;
use super::package::Package;
use super::{Budget, Limits};

/// Bytes looked at for signs of a page or a mail.
const HEAD_BYTES: usize = 4 << 10;

/// Headers of which a mail has some; a text that happens to start with one of them has not three.
const MAIL_HEADERS: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "received",
    "return-path",
    "content-type",
    "delivered-to",
    "reply-to",
];

/// The format by its bytes, for those that have a signature.
pub(crate) fn format_of(name: &Path, bytes: &[u8]) -> Option<Format> {
    let by_name = Format::of_name(name);
    if bytes.starts_with(b"PK\x03\x04") {
        // A broken one is told of as what its name says.
        return packed_format(bytes).or(by_name.ok().filter(|format| format.is_packed()));
    }
    if locked::is_locked(bytes) {
        return Some(Format::LockedOffice);
    }
    if let Some(format) = ole::format_of(bytes) {
        return Some(format);
    }
    if bytes.starts_with(b"%PDF-") {
        return Some(Format::Pdf);
    }
    if bytes.starts_with(b"{\\rtf") {
        return Some(Format::Rtf);
    }
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    match by_name {
        // A private key, or the translations of a program.
        Ok(Format::IWork) => Some(Format::Text),
        // Programs save pages as documents and sheets for others to open; a page that says "not found" is saved under
        // the name of what was asked for.
        Ok(Format::Docx | Format::Xlsx | Format::Pdf | Format::Rtf) | Err(_) if is_page(head) => Some(Format::Html),
        Ok(Format::Doc | Format::Xls | Format::Ppt | Format::Msg | Format::Rtf)
            if !bytes.starts_with(ole::SIGNATURE) =>
        {
            Some(old_format(head)).filter(|_| is_text(head))
        }
        Ok(Format::Text) if is_mailbox(head) => Some(Format::Mbox),
        Ok(Format::Text) if is_mail(head) => Some(Format::Eml),
        Ok(Format::Text) if is_page(head) => Some(Format::Html),
        _ => None,
    }
}

/// Which document is packed: by the member that only such a document has.
fn packed_format(bytes: &[u8]) -> Option<Format> {
    let mut package = Package::open(bytes, &Budget::default()).ok()?;
    let kinds = [
        ("word/document.xml", Format::Docx),
        ("ppt/presentation.xml", Format::Pptx),
        ("xl/workbook.xml", Format::Xlsx),
        ("META-INF/container.xml", Format::Epub),
        ("Index/Document.iwa", Format::IWork),
        ("Index.zip", Format::IWork),
        ("index.apxl", Format::IWork),
    ];
    if let Some(&(_, format)) = kinds.iter().find(|(member, _)| package.has(member)) {
        return Some(format);
    }
    let kind = package.read("mimetype").ok().flatten().unwrap_or_default();
    let kind = String::from_utf8_lossy(&kind);
    let kind = kind.trim().strip_prefix("application/vnd.oasis.opendocument.")?;
    Some(match kind.split('-').next() {
        Some("text") => Format::Odt,
        Some("spreadsheet") => Format::Ods,
        _ => Format::Odp,
    })
}

/// What programs save under the names of old documents for others to open: pages, mails with pages in them, and text.
fn old_format(head: &[u8]) -> Format {
    if is_page(head) {
        Format::Html
    } else if is_mail(head) {
        Format::Eml
    } else {
        Format::Text
    }
}

fn is_text(head: &[u8]) -> bool {
    charset::decode(head, &Limits::default()).is_ok()
}

fn is_page(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let head = head.trim_start_matches('\u{FEFF}').trim_start();
    ["<!doctype html", "<html"]
        .iter()
        .any(|mark| head.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark)))
}

fn is_mailbox(head: &[u8]) -> bool {
    let line_end = head.iter().position(|&b| b == b'\n').unwrap_or(head.len());
    head.starts_with(b"From ") && is_mail(&head[(line_end + 1).min(head.len())..])
}

fn is_mail(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    let mut known = 0;
    for line in head.lines() {
        if line.is_empty() {
            break;
        }
        // A header goes on in lines that start with space.
        if line.starts_with([' ', '\t']) && known > 0 {
            continue;
        }
        let Some((name, _)) = line.split_once(':') else { return false };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return false;
        }
        known += usize::from(name.eq_ignore_ascii_case("mime-version"));
        known += usize::from(MAIL_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header)));
    }
    known >= 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::package::tests::packed;

    #[test]
    fn names_of_old_documents_cover_much() {
        for name in ["a.doc", "a.xls", "a.rtf"] {
            assert_eq!(format_of(Path::new(name), b"<html><table>"), Some(Format::Html));
            assert_eq!(format_of(Path::new(name), b"plain text"), Some(Format::Text));
            assert_eq!(format_of(Path::new(name), b"{\\rtf1 x}"), Some(Format::Rtf));
            assert_eq!(format_of(Path::new(name), b"\0\x01\x02\x03\0\0\x07"), None);
        }
    }

    #[test]
    fn pdf_and_what_only_calls_itself_so() {
        assert_eq!(format_of(Path::new("a.txt"), b"%PDF-1.7\n"), Some(Format::Pdf));
        assert_eq!(format_of(Path::new("a.pdf"), b"\n<!DOCTYPE HTML><p>404"), Some(Format::Html));
        assert_eq!(format_of(Path::new("a.txt"), b"It begins with %PDF-1.7"), None);
    }

    #[test]
    fn packed_documents_are_told_by_their_members() {
        let word = packed(&[("[Content_Types].xml", ""), ("word/document.xml", "<a/>")]);
        for name in ["a", "a.txt", "a.xlsx", "a.docx", "a.zip"] {
            assert_eq!(format_of(Path::new(name), &word), Some(Format::Docx));
        }
        let broken = &word[..word.len() - 20];
        assert_eq!(format_of(Path::new("a.docx"), broken), Some(Format::Docx));
        assert_eq!(format_of(Path::new("a.docx"), b"text"), None);
        let text = packed(&[("mimetype", "application/vnd.oasis.opendocument.text-template")]);
        assert_eq!(format_of(Path::new("a.bin"), &text), Some(Format::Odt));
        let other = packed(&[("a.txt", "")]);
        assert_eq!(format_of(Path::new("a.zip"), &other), Some(Format::Zip));
        // A program packed so is none of the documents, and its name says to leave it out.
        assert_eq!(format_of(Path::new("a.jar"), &other), None);
    }

    #[test]
    fn mails_and_pages_are_told_where_the_name_says_nothing() {
        let mail = b"Received: by x\n\twith y\nFrom: a@b\nSubject: s\nX-Other: 1\n\ntext";
        assert_eq!(format_of(Path::new("1234"), mail), Some(Format::Eml));
        let mailbox = [&b"From a@b Thu Jan 1 00:00:00 1970\n"[..], mail].concat();
        assert_eq!(format_of(Path::new("Inbox"), &mailbox), Some(Format::Mbox));
        assert_eq!(format_of(Path::new("notes.txt"), b"From: me\nTo: you\n\nNo mail."), None);
        assert_eq!(format_of(Path::new("report.xlsx"), b"\n<!DOCTYPE HTML><html>"), Some(Format::Html));
        assert_eq!(format_of(Path::new("server.key"), b"-----BEGIN PRIVATE KEY-----"), Some(Format::Text));
        assert_eq!(format_of(Path::new("page.rs"), b"<html>"), None);
    }
}
