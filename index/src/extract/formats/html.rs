//! HTML: readable text, taken from the tokenizer's stream. No tree is built, so nesting costs nothing.

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::extract::{Extracted, Heading, Limits, Refusal, charset, short};
use crate::limits::TITLE_BYTES_MAX;

/// Elements whose text is never for reading.
const HIDDEN: &[&str] = &["script", "style", "noscript", "template", "svg", "iframe", "object", "select", "noframes"];

/// Attributes of one element; pages have some dozen.
const ATTRIBUTES_MAX: usize = 1000;

/// Bytes in which a page's charset is looked for.
const META_BYTES: usize = 64 << 10;

/// Elements around the text of a page: menus and the like.
const FURNITURE: &[&str] = &["nav", "footer", "aside", "menu", "form"];

/// Elements that end a line.
const BLOCKS: &[&str] = &[
    "p",
    "div",
    "section",
    "article",
    "main",
    "header",
    "blockquote",
    "pre",
    "ul",
    "ol",
    "dl",
    "table",
    "figure",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "address",
    "details",
    "body",
];

/// Elements that break the line without a gap.
const LINES: &[&str] = &["br", "li", "tr", "dt", "dd", "caption", "figcaption", "summary", "option"];

/// Scripts, styles and page furniture left out; a page that is nothing but furniture is read whole.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let decoded = match declared_charset(bytes) {
        Some(encoding) if std::str::from_utf8(bytes).is_err() => {
            let (text, _) = encoding.decode_without_bom_handling(bytes);
            charset::Decoded { text: text.into_owned().into(), in_file: false, charset: encoding.name() }
        }
        _ => charset::decode(bytes, limits)?,
    };
    let page = with_short_tags(&decoded.text);
    let mut out = read(&page, limits, true);
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    if letters(&out.text) < 200 {
        let whole = read(&page, limits, false);
        // An unclosed <nav> swallows the page: then the furniture is the page.
        if letters(&whole.text) > 4 * letters(&out.text) {
            out = whole;
        }
    }
    if out.text.len() > limits.text_bytes_max {
        return Err(Refusal::failed(format!("its text has more than {} bytes", limits.text_bytes_max)));
    }
    out.charset = decoded.charset;
    Ok(out)
}

/// Cuts elements with more than [`ATTRIBUTES_MAX`] attributes: the tokenizer compares each with all others.
fn with_short_tags(html: &str) -> Cow<'_, str> {
    let (bytes, mut out, mut copied, mut at) = (html.as_bytes(), String::new(), 0, 0);
    while at < bytes.len() {
        at += 1;
        if bytes[at - 1] != b'<' || !bytes.get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let (mut attributes, mut quote, mut cut) = (0, None, None);
        while at < bytes.len() && (quote.is_some() || !matches!(bytes[at], b'>' | b'<')) {
            match (bytes[at], quote) {
                (b'"' | b'\'', None) if bytes[at - 1] == b'=' => quote = Some(bytes[at]),
                (byte, Some(open)) if byte == open => quote = None,
                (byte, None) if byte.is_ascii_whitespace() || byte == b'/' => {
                    attributes += 1;
                    if attributes > ATTRIBUTES_MAX && cut.is_none() {
                        cut = Some(at);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if let Some(cut) = cut {
            out.push_str(&html[copied..cut]);
            copied = at;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(html);
    }
    out.push_str(&html[copied..]);
    Cow::Owned(out)
}

/// The charset that a `<meta>` element declares. Browsers look at the first kilobyte; pages with long scripts before it
/// are read by what they say too.
fn declared_charset(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = bytes[..bytes.len().min(META_BYTES)].to_ascii_lowercase();
    let mut rest = &head[..];
    while let Some(at) = find(rest, b"<meta") {
        rest = &rest[at + 5..];
        let tag = &rest[..rest.iter().position(|&b| b == b'>').unwrap_or(rest.len())];
        let Some(at) = find(tag, b"charset=") else { continue };
        let label: Vec<u8> = tag[at + 8..]
            .iter()
            .copied()
            .skip_while(|b| matches!(b, b'"' | b'\'' | b' '))
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':'))
            .take(40)
            .collect();
        if let Some(encoding) = encoding_rs::Encoding::for_label(&label) {
            return Some(encoding);
        }
    }
    None
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|w| w == word)
}

fn read(html: &str, limits: &Limits, skip_furniture: bool) -> Extracted {
    let sink = Reader {
        state: RefCell::new(Reading::default()),
        skip_furniture,
        text_bytes_max: limits.text_bytes_max,
        headings_max: limits.headings_max,
    };
    let input = BufferQueue::default();
    let mut rest = html;
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    // In pieces, because a tendril holds at most 4 GiB and the queue is consumed as it is fed.
    while !rest.is_empty() {
        let cut = crate::extract::floor_boundary(rest, 1 << 20);
        input.push_back(StrTendril::from(&rest[..cut]));
        let _ = tokenizer.feed(&input);
        rest = &rest[cut..];
    }
    tokenizer.end();
    tokenizer.sink.state.into_inner().finish()
}

#[derive(Default)]
struct Reading {
    text: String,
    title: String,
    in_title: bool,
    /// How many open elements of each name hide what is in them.
    hidden: Vec<(String, u32)>,
    preformatted: u32,
    headings: Vec<Heading>,
    /// Level and start of the heading being read.
    heading: Option<(u8, usize)>,
    full: bool,
}

struct Reader {
    state: RefCell<Reading>,
    skip_furniture: bool,
    text_bytes_max: usize,
    headings_max: usize,
}

impl TokenSink for Reader {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut state = self.state.borrow_mut();
        match token {
            Token::TagToken(tag) => return self.tag(&mut state, &tag),
            Token::CharacterTokens(text) => state.characters(&text, self.text_bytes_max),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Reader {
    fn tag(&self, state: &mut Reading, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let start = tag.kind == TagKind::StartTag;
        let hides = HIDDEN.contains(&name) || (self.skip_furniture && FURNITURE.contains(&name));
        if hides && !tag.self_closing {
            state.hide(name, start);
        }
        if state.hidden.is_empty() {
            state.structure(name, start, self.headings_max);
        }
        if name == "title" && state.hidden.is_empty() {
            state.in_title = start && state.title.is_empty();
        }
        if !start || tag.self_closing {
            return TokenSinkResult::Continue;
        }
        match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "iframe" | "noframes" | "xmp" => TokenSinkResult::RawData(RawKind::Rawtext),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Reading {
    fn hide(&mut self, name: &str, start: bool) {
        let at = self.hidden.iter().position(|(n, _)| n == name);
        match (at, start) {
            (Some(i), true) => self.hidden[i].1 = self.hidden[i].1.saturating_add(1),
            (None, true) => self.hidden.push((name.to_owned(), 1)),
            (Some(i), false) if self.hidden[i].1 > 1 => self.hidden[i].1 -= 1,
            (Some(i), false) => {
                self.hidden.remove(i);
            }
            (None, false) => {}
        }
    }

    fn structure(&mut self, name: &str, start: bool, headings_max: usize) {
        if BLOCKS.contains(&name) {
            self.break_line(2);
        } else if LINES.contains(&name) {
            if start || name != "br" {
                self.break_line(1);
            }
        } else if matches!(name, "td" | "th") && !self.text.ends_with(['\n', '\t']) && !self.text.is_empty() {
            self.text.push('\t');
        }
        if name == "pre" {
            self.preformatted =
                if start { self.preformatted.saturating_add(1) } else { self.preformatted.saturating_sub(1) };
        }
        let level = match name.as_bytes() {
            [b'h', digit @ b'1'..=b'6'] => digit - b'0',
            _ => return,
        };
        if start {
            self.heading = (self.headings.len() < headings_max).then_some((level, self.text.len()));
        } else if let Some((level, from)) = self.heading.take() {
            let text = short(&self.text[from..], TITLE_BYTES_MAX);
            if !text.is_empty() {
                self.headings.push(Heading { start: from, level, text });
            }
        }
    }

    fn break_line(&mut self, newlines: usize) {
        let kept = self.text.trim_end_matches([' ', '\t']).len();
        // A heading that starts here must not point past the end.
        if self.heading.is_none_or(|(_, from)| kept >= from) {
            self.text.truncate(kept);
        }
        if self.text.is_empty() {
            return;
        }
        let have = self.text.bytes().rev().take(2).take_while(|&b| b == b'\n').count();
        for _ in have..newlines {
            self.text.push('\n');
        }
    }

    fn characters(&mut self, text: &str, text_bytes_max: usize) {
        if self.in_title {
            if self.title.len() < 4 * TITLE_BYTES_MAX {
                self.title.push_str(text);
            }
            return;
        }
        if !self.hidden.is_empty() || self.full {
            return;
        }
        if self.preformatted > 0 {
            self.text.push_str(text);
        } else {
            for c in text.chars() {
                if !c.is_whitespace() || c == '\u{A0}' {
                    self.text.push(if c == '\u{A0}' { ' ' } else { c });
                } else if !self.text.is_empty() && !self.text.ends_with([' ', '\n', '\t']) {
                    self.text.push(' ');
                }
            }
        }
        // One over the limit, so that the caller sees that it was passed.
        self.full = self.text.len() > text_bytes_max;
    }

    fn finish(mut self) -> Extracted {
        self.break_line(1);
        let title = Some(short(&self.title, TITLE_BYTES_MAX)).filter(|t| !t.is_empty());
        let title = title.or_else(|| self.headings.iter().find(|h| h.level == 1).map(|h| h.text.clone()));
        Extracted { text: self.text, title, headings: self.headings, ..Extracted::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_str(html: &str) -> Extracted {
        extract(html.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn text_is_read_and_the_rest_left_out() {
        let got = read_str(
            "<!doctype html><html><head><title>A &amp; B</title><style>p{color:red}</style></head><body>\
             <nav><a href=x>Home</a></nav><h1>Head <em>line</em></h1><p>One\n  two&nbsp;three.<br>Four</p>\
             <script>if (a < b) { document.write('<p>no</p>') }</script><ul><li>x<li>y</ul>\
             <table><tr><td>1</td><td>2</td></tr></table><footer>imprint</footer></body></html>",
        );
        assert_eq!(got.title.as_deref(), Some("A & B"));
        assert_eq!(got.text, "Head line\n\nOne two three.\nFour\n\nx\ny\n\n1\t2\n\n");
        assert_eq!(got.headings, [Heading { start: 0, level: 1, text: "Head line".into() }]);
        assert!(!got.in_file);
    }

    #[test]
    fn an_unclosed_nav_does_not_swallow_the_page() {
        let got = read_str(&format!("<nav><p>{}</p>", "words of the page ".repeat(30)));
        assert!(got.text.contains("words of the page"));
    }

    #[test]
    fn the_declared_charset_counts() {
        let mut bytes = b"<meta charset=\"windows-1251\"><p>".to_vec();
        bytes.extend(encoding_rs::WINDOWS_1251.encode("Мир").0.iter());
        assert_eq!(extract(&bytes, &Limits::default()).unwrap().text.trim(), "Мир");
    }

    #[test]
    fn a_charset_behind_long_scripts_counts_too() {
        let mut bytes =
            format!("<script>var charset=\"x\";{}</script><meta charset=koi8-r><p>", " ".repeat(9000)).into_bytes();
        bytes.extend(encoding_rs::KOI8_R.encode("Мир").0.iter());
        assert_eq!(extract(&bytes, &Limits::default()).unwrap().text.trim(), "Мир");
    }

    #[test]
    fn many_attributes_are_cut() {
        let many: String = (0..100_000).map(|i| format!(" a{i}=1")).collect();
        assert_eq!(read_str(&format!("<p{many}>one</p><p title=\"a > b\">two</p>")).text, "one\n\ntwo\n\n");
    }

    #[test]
    fn preformatted_text_keeps_its_lines() {
        assert_eq!(read_str("<p>a</p><pre>x\n  y</pre>b").text, "a\n\nx\n  y\n\nb\n");
    }

    #[test]
    fn depth_and_unclosed_things_are_survived() {
        for html in ["<div>".repeat(300_000), "<b><i>".repeat(100_000), "<!--".repeat(10_000), "<a ".repeat(100_000)] {
            let _ = extract(format!("{html}end").as_bytes(), &Limits::default());
        }
    }

    #[test]
    fn text_beyond_the_limit_is_refused() {
        let limits = Limits { text_bytes_max: 100, ..Limits::default() };
        assert!(extract("<p>word</p>".as_bytes(), &limits).is_ok());
        let refusal = read_limited(&"word ".repeat(40), 100);
        assert!(refusal.is_err());
    }

    fn read_limited(text: &str, text_bytes_max: usize) -> Result<Extracted, Refusal> {
        extract(text.as_bytes(), &Limits { text_bytes_max, ..Limits::default() })
    }
}
