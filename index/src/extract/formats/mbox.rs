//! Mailboxes (mbox): mails one after another, each behind a line that starts with `From `.

use std::borrow::Cow;

use crate::extract::draft::{Draft, Gap};
use crate::extract::{Context, Extracted, PartKind, Refusal};

use super::mail;

/// Mails read of one mailbox.
const MAILS_MAX: usize = 100_000;

/// Every mail is a part of its own; one that is broken is left out and the others are read.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut draft = Draft::new(context.limits);
    let (mut read, mut encrypted) = (0_usize, 0_usize);
    for (number, raw) in (1..).zip(mails(bytes).take(MAILS_MAX)) {
        draft.part(PartKind::Message, number, None);
        // The subject is a heading, so that every passage of a long mail says which it is of.
        if let Ok(Some(seen)) = mail::read(&unquoted(raw), context, &mut draft) {
            read += 1;
            encrypted += usize::from(seen.is_encrypted && !seen.has_text);
        }
        draft.separate(Gap::Blank);
        if draft.is_full() {
            break;
        }
    }
    match read {
        0 => super::plain::extract(bytes, context.limits),
        _ if encrypted == read => Err(Refusal { reason: "its mails are encrypted".to_owned(), ..Refusal::locked() }),
        _ => draft.finish(),
    }
}

/// The mails' bytes, without the lines between them.
fn mails(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::iter::from_fn(move || {
        // The line before the mail.
        if rest.starts_with(b"From ") {
            rest = &rest[line_len(rest)..];
        }
        if rest.is_empty() {
            return None;
        }
        let mut at = 0;
        while at < rest.len() && !is_separator(&rest[at..]) {
            at += line_len(&rest[at..]);
        }
        let (mail, more) = rest.split_at(at);
        rest = more;
        Some(mail)
    })
}

fn line_len(bytes: &[u8]) -> usize {
    bytes.iter().position(|&b| b == b'\n').map_or(bytes.len(), |end| end + 1)
}

/// `From ann@example.org Thu Jan  1 00:00:00 1970`: text that begins with that word has no time of day.
fn is_separator(bytes: &[u8]) -> bool {
    if !bytes.starts_with(b"From ") {
        return false;
    }
    let line = &bytes[..line_len(bytes)];
    let is_time = |w: &[u8]| w[0].is_ascii_digit() && w[1].is_ascii_digit() && w[2] == b':' && w[3].is_ascii_digit();
    line.len() < 500 && line.windows(4).any(is_time)
}

/// Lines that start like a separator are quoted by a `>` when they are written.
fn unquoted(mail: &[u8]) -> Cow<'_, [u8]> {
    let is_quoted = |line: &[u8]| {
        let marks = line.iter().take_while(|&&b| b == b'>').count();
        marks > 0 && line[marks..].starts_with(b"From ")
    };
    if !mail.split_inclusive(|&b| b == b'\n').any(is_quoted) {
        return Cow::Borrowed(mail);
    }
    let lines = mail.split_inclusive(|&b| b == b'\n');
    Cow::Owned(lines.flat_map(|line| if is_quoted(line) { &line[1..] } else { line }).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;

    #[test]
    fn mails_are_parts_and_a_broken_one_loses_itself_only() {
        let mbox = "From a@b Thu Jan  1 00:00:00 1970\nSubject: one\n\nFrom what I know\n>From the start\n\n\
                    From a@b Thu Jan  1 00:00:00 1970\n\n\
                    From a@b Thu Jan  1 00:00:00 1970\nSubject: three\n\nlast\n";
        let got = extract(mbox.as_bytes(), &Context::new(&Limits::default(), &[])).unwrap();
        assert_eq!(got.text, "Subject: one\n\nFrom what I know\nFrom the start\n\nSubject: three\n\nlast\n");
        let parts: Vec<_> = got.parts.iter().map(|p| (p.kind, p.number)).collect();
        assert_eq!(parts, [(PartKind::Message, 1), (PartKind::Message, 3)]);
    }

    #[test]
    fn empty_separators_end() {
        let limits = Limits::default();
        let _ = extract("From \n".repeat(100_000).as_bytes(), &Context::new(&limits, &[]));
    }
}
