//! Saved web pages (MHTML): a mail that holds a page and its pictures; the page is read.

use mail_parser::{MessageParser, PartType};

use crate::extract::{Context, Extracted, Refusal, short};
use crate::limits::TITLE_BYTES_MAX;

use super::{html, mail};

/// The first page that is in it.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    mail::refuse_nesting(bytes)?;
    let message = MessageParser::default().parse(bytes);
    let message = message.ok_or_else(|| Refusal::failed("it is broken: it holds no page"))?;
    let page = message.parts.iter().find_map(|part| match &part.body {
        PartType::Html(page) => Some(page),
        _ => None,
    });
    let Some(page) = page else { return mail::extract(bytes, context) };
    let mut out = html::extract(page.as_bytes(), context.limits)?;
    if out.title.is_none() {
        out.title = message.subject().map(|s| short(s, TITLE_BYTES_MAX)).filter(|s| !s.is_empty());
    }
    out.dated = out.dated.or_else(|| message.date().map(|date| date.to_timestamp().saturating_mul(1000)));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Limits;

    #[test]
    fn the_page_is_read() {
        let saved = "From: <Saved>\nSubject: S\nMIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n\
            Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
            <p>Gr=FC=DFe an=\n alle</p>\n--b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0K\n--b--\n";
        let got = extract(saved.as_bytes(), &Context::new(&Limits::default(), &[])).unwrap();
        assert_eq!((got.text.as_str(), got.title.as_deref()), ("Grüße an alle\n\n", Some("S")));
    }
}
