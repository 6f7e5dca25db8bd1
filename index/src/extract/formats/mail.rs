//! Mails (EML): who wrote what to whom and when, the text, and what hangs on it by the rules of its own kind.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use mail_parser::{Address, Encoding, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, PartKind, Refusal, charset, short};
use crate::limits::TITLE_BYTES_MAX;

use super::html;

/// Bytes of one header that are kept; a mail to a large list names some hundred people.
const HEADER_BYTES_MAX: usize = 4 << 10;

/// Attachments of one mail that are read.
const ATTACHMENTS_MAX: usize = 1000;

/// How a text begins that is encrypted.
const PGP_MARK: &str = "-----BEGIN PGP MESSAGE-----";

/// Parts that may hold further parts. The parser builds them in one another and takes them down by recursion, so that
/// their number bounds the stack it needs.
const NESTED_MAX: usize = 2000;

/// Headers, text, attachments. Title, author and date are the mail's.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let raw = raw_mail(bytes);
    let mut draft = Draft::new(context.limits);
    let Some(seen) = read(&raw, context, &mut draft)? else { return super::plain::extract(bytes, context.limits) };
    if seen.is_encrypted && !seen.has_text {
        return Err(Refusal { reason: "the mail is encrypted".to_owned(), ..Refusal::locked() });
    }
    let about = draft.about();
    (about.title, about.author, about.dated) = (seen.subject, seen.author, seen.dated);
    draft.finish()
}

/// The mail's own bytes: some programs save mails as UTF-16, and Apple's puts a line with their number before them.
fn raw_mail(bytes: &[u8]) -> Cow<'_, [u8]> {
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(bytes) {
        let text = encoding.decode_without_bom_handling(&bytes[mark..]).0;
        return Cow::Owned(text.into_owned().into_bytes());
    }
    let line = bytes.iter().take(20).position(|&b| b == b'\n').unwrap_or(0);
    let first = String::from_utf8_lossy(&bytes[..line]);
    match first.trim().parse::<usize>() {
        Ok(len) => Cow::Borrowed(&bytes[line + 1..bytes.len().min((line + 1).saturating_add(len))]),
        Err(_) => Cow::Borrowed(bytes),
    }
}

/// What a mail says about itself.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub subject: Option<String>,
    pub author: Option<String>,
    pub dated: Option<i64>,
    /// Whether its body or what hangs on it gave any text.
    pub has_text: bool,
    pub is_encrypted: bool,
}

/// Reads one mail into the draft; `None` where the bytes are no mail.
///
/// # Errors
/// Its parts are nested beyond reason.
pub(crate) fn read(raw: &[u8], context: &Context<'_>, draft: &mut Draft<'_>) -> Result<Option<Seen>, Refusal> {
    refuse_nesting(raw)?;
    let Some(message) = MessageParser::default().parse(raw) else { return Ok(None) };
    Ok(Some(mail(&message, raw, context, draft)))
}

/// Refuses what the parser would build too deep.
///
/// # Errors
/// Its parts are nested beyond reason.
pub(crate) fn refuse_nesting(raw: &[u8]) -> Result<(), Refusal> {
    match nested_parts(raw) {
        0..=NESTED_MAX => Ok(()),
        _ => Err(Refusal::failed(format!("the mail nests more than {NESTED_MAX} parts"))),
    }
}

/// How often a type is named that holds further parts.
fn nested_parts(raw: &[u8]) -> usize {
    let starts = |at: usize, word: &[u8]| raw[at..].get(..word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word));
    let colons = raw.iter().enumerate().filter(|(_, b)| matches!(b, b'm' | b'M'));
    colons.filter(|&(at, _)| starts(at, b"multipart/") || starts(at, b"message/")).count()
}

fn mail(message: &Message<'_>, raw: &[u8], context: &Context<'_>, draft: &mut Draft<'_>) -> Seen {
    let mut seen = Seen {
        subject: message.subject().map(|s| short(s, TITLE_BYTES_MAX)).filter(|s| !s.is_empty()),
        author: message.from().map(|from| addresses(from, TITLE_BYTES_MAX)).filter(|a| !a.is_empty()),
        dated: message.date().map(|date| date.to_timestamp().saturating_mul(1000)),
        is_encrypted: message.parts.iter().any(is_encrypted),
        has_text: false,
    };
    headers(message, draft);
    let before = draft.len();
    body(message, raw, context, draft);
    seen.has_text = draft.len() > before;
    seen.has_text |= attachments(message, raw, context, draft);
    seen
}

fn headers(message: &Message<'_>, draft: &mut Draft<'_>) {
    let address = |a: Option<&Address<'_>>| a.map(|a| addresses(a, HEADER_BYTES_MAX)).unwrap_or_default();
    let lines = [
        ("Subject", short(message.subject().unwrap_or_default(), HEADER_BYTES_MAX)),
        ("From", address(message.from())),
        ("To", address(message.to())),
        ("Cc", address(message.cc())),
        ("Date", short(message.header_raw("Date").unwrap_or_default(), 100)),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        draft.separate(Gap::Line);
        draft.push(&format!("{name}: {value}"));
    }
    draft.separate(Gap::Blank);
}

/// `Ann Example <ann@example.org>, …`
fn addresses(addresses: &Address<'_>, bytes_max: usize) -> String {
    let mut out = String::new();
    for one in addresses.iter() {
        let (name, address) = (one.name().unwrap_or_default().trim(), one.address().unwrap_or_default().trim());
        let comma = if out.is_empty() { "" } else { ", " };
        match (name, address) {
            ("", address) => out.push_str(&format!("{comma}{address}")),
            (name, "") => out.push_str(&format!("{comma}{name}")),
            (name, address) => out.push_str(&format!("{comma}{name} <{address}>")),
        }
        if out.len() > bytes_max {
            break;
        }
    }
    short(&out, bytes_max)
}

/// The plain text, or that of the HTML where there is no other or where the plain text is but a hint at it.
fn body(message: &Message<'_>, raw: &[u8], context: &Context<'_>, draft: &mut Draft<'_>) {
    let texts = |ids: &[u32]| {
        let parts = ids.iter().filter_map(|&id| message.part(id)).map(|part| body_text(part, raw, context));
        parts.filter(|text| !text.trim().is_empty()).collect::<Vec<String>>()
    };
    let letters = |texts: &[String]| texts.iter().flat_map(|t| t.chars()).filter(|c| c.is_alphanumeric()).count();
    let mut read = texts(&message.text_body);
    if message.html_body != message.text_body {
        let html = texts(&message.html_body);
        if letters(&html) > 2 * letters(&read) {
            read = html;
        } else {
            let more = lines_with_new_words(&html, &read);
            read.push(more);
        }
    }
    for text in read {
        draft.push(text.trim());
        draft.separate(Gap::Blank);
    }
}

/// Lines that have a word which the other text lacks: what the two forms of a mail do not have in common.
fn lines_with_new_words(texts: &[String], known: &[String]) -> String {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
    };
    let known: HashSet<String> = known.iter().flat_map(|text| words(text)).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter(|line| words(line).iter().any(|word| !known.contains(word))).collect::<Vec<_>>().join("\n")
}

fn body_text(part: &MessagePart<'_>, raw: &[u8], context: &Context<'_>) -> String {
    match &part.body {
        PartType::Html(html) => {
            html::extract(html.as_bytes(), context.limits).map(|read| read.text).unwrap_or_default()
        }
        PartType::Text(text) if !text.trim_start().starts_with(PGP_MARK) => {
            // A part that does not say in which charset it is, or says it wrong, is read as a file would be.
            let start = usize::try_from(part.raw_body_offset()).unwrap_or(usize::MAX);
            let end = usize::try_from(part.raw_end_offset()).unwrap_or(usize::MAX);
            match raw.get(start..end).filter(|_| text.contains('\u{FFFD}') && part.encoding == Encoding::None) {
                Some(bytes) => charset::decode(bytes, context.limits).map(|d| d.text.into_owned()).unwrap_or_default(),
                None => text.clone().into_owned(),
            }
        }
        _ => String::new(),
    }
}

fn is_encrypted(part: &MessagePart<'_>) -> bool {
    let Some(kind) = part.content_type() else {
        return matches!(&part.body, PartType::Text(text) if text.contains(PGP_MARK));
    };
    match (kind.ctype(), kind.subtype().unwrap_or_default()) {
        ("multipart", "encrypted") => true,
        ("application", "pkcs7-mime" | "x-pkcs7-mime") => {
            !kind.attribute("smime-type").is_some_and(|t| t.eq_ignore_ascii_case("signed-data"))
        }
        _ => matches!(&part.body, PartType::Text(text) if text.contains(PGP_MARK)),
    }
}

/// Whether any of them gave text.
fn attachments(message: &Message<'_>, raw: &[u8], context: &Context<'_>, draft: &mut Draft<'_>) -> bool {
    let mut any = false;
    for (number, part) in (1..).zip(message.attachments().take(ATTACHMENTS_MAX)) {
        let Some(inner) = context.inner() else { return any };
        if let PartType::Message(attached) = &part.body {
            draft.part(PartKind::Attachment, number, attached.subject());
            any |= mail(attached, raw, &inner, draft).has_text;
            continue;
        }
        any |= attachment(part, number, &inner, draft);
    }
    any
}

/// Its name, and its text where its kind has one; whether it has.
fn attachment(part: &MessagePart<'_>, number: u32, context: &Context<'_>, draft: &mut Draft<'_>) -> bool {
    let kind = part.content_type();
    let is = |name: &str| kind.is_some_and(|k| k.ctype().eq_ignore_ascii_case(name));
    let subtype = kind.and_then(|k| k.subtype()).unwrap_or_default().to_ascii_lowercase();
    let hangs_on = part.content_disposition().is_some_and(|d| d.is_attachment());
    // Pictures of the text itself, signatures and the marks of encryption are nothing a person looks for.
    if (is("image") && !hangs_on) || subtype.contains("signature") || subtype == "pgp-encrypted" {
        return false;
    }
    if part.contents().starts_with(PGP_MARK.as_bytes()) {
        return false;
    }
    let name = part.attachment_name().map(|n| short(n, TITLE_BYTES_MAX)).unwrap_or_default();
    let read_as = match subtype.as_str() {
        _ if Path::new(&name).extension().is_some() => name.clone(),
        "html" => "a.html".to_owned(),
        "calendar" => "a.ics".to_owned(),
        "plain" | "delivery-status" | "rfc822-headers" | "disposition-notification" => "a.txt".to_owned(),
        other => format!("a.{other}"),
    };
    draft.part(PartKind::Attachment, number, Some(&name));
    draft.push(&name);
    let Ok(read) = crate::extract::extract(Path::new(&read_as), part.contents(), context) else { return false };
    draft.separate(Gap::Line);
    draft.append(&read);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;

    fn read_mail(mail: &[u8]) -> Result<Extracted, Refusal> {
        extract(mail, &Context::new(&Limits::default(), &[]))
    }

    const MIXED: &str = "From: Ann <ann@example.org>\nTo: b@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\
        Date: Fri, 02 Jan 1970 00:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: multipart/alternative; boundary=c\n\n--c\nContent-Type: text/plain; charset=iso-8859-1\n\
        Content-Transfer-Encoding: quoted-printable\n\nsch=F6ner Text\n--c\nContent-Type: text/html\n\n\
        <p>schoener Text</p>\n--c--\n--b\nContent-Type: text/plain; name=notes.txt\n\
        Content-Disposition: attachment; filename=notes.txt\nContent-Transfer-Encoding: base64\n\naGFuZ3Mgb24=\n--b\n\
        Content-Type: message/rfc822\n\nSubject: inner\nFrom: c@example.org\n\ninner text\n--b--\n";

    #[test]
    fn headers_text_and_attachments_are_read() {
        let got = read_mail(MIXED.as_bytes()).unwrap();
        assert_eq!(
            got.text,
            "Subject: Grüße\nFrom: Ann <ann@example.org>\nTo: b@example.org\nDate: Fri, 02 Jan 1970 00:00:00 +0000\n\n\
             schöner Text\n\nschoener Text\n\nnotes.txt\n\nhangs on\n\nSubject: inner\nFrom: c@example.org\n\ninner text\n"
        );
        assert_eq!(got.title.as_deref(), Some("Grüße"));
        assert_eq!((got.author.as_deref(), got.dated), (Some("Ann <ann@example.org>"), Some(86_400_000)));
        let parts: Vec<_> = got.parts.iter().map(|p| (p.kind, p.name.as_deref())).collect();
        assert_eq!(parts, [(PartKind::Attachment, Some("notes.txt")), (PartKind::Attachment, Some("inner"))]);
    }

    #[test]
    fn html_is_read_where_the_plain_text_is_a_hint() {
        let mail = "Subject: s\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\
            Content-Type: text/plain\n\nUse a better program.\n--c\nContent-Type: text/html\n\n\
            <p>All that we wanted to tell you stands here, and it is a lot more.</p>\n--c--\n";
        let got = read_mail(mail.as_bytes()).unwrap();
        assert!(got.text.contains("stands here") && !got.text.contains("better program"), "{}", got.text);
    }

    #[test]
    fn what_is_encrypted_is_locked() {
        let mail = "Subject: s\nMIME-Version: 1.0\nContent-Type: multipart/encrypted; boundary=c\n\n--c\n\
            Content-Type: application/pgp-encrypted\n\nVersion: 1\n--c--\n";
        assert_eq!(read_mail(mail.as_bytes()).unwrap_err().state, crate::State::Locked);
    }

    #[test]
    fn mails_saved_as_utf16_or_by_apple_are_mails() {
        let plain = "Subject: s\n\nText für dich\n";
        let mut utf16 = vec![0xFF, 0xFE];
        utf16.extend(plain.encode_utf16().flat_map(u16::to_le_bytes));
        let apple = format!("{}\n{plain}<plist>no</plist>", plain.len());
        for bytes in [utf16, apple.into_bytes()] {
            let got = read_mail(&bytes).unwrap();
            assert_eq!(got.text, "Subject: s\n\nText für dich\n");
        }
    }

    #[test]
    fn nesting_beyond_reason_is_refused() {
        let deep = format!("{}Subject: x\n\ntext", "Content-Type: message/rfc822\n\n".repeat(NESTED_MAX + 1));
        assert!(read_mail(deep.as_bytes()).is_err());
        let near = format!("{}Subject: x\n\ntext", "Content-Type: message/rfc822\n\n".repeat(NESTED_MAX - 1));
        let _ = read_mail(near.as_bytes());
    }
}
