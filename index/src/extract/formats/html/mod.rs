//! HTML: readable text, taken from the tokenizer's stream. No tree is built, so nesting costs nothing.

mod about;
mod hiding;
mod source;

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use crate::extract::{Extracted, Heading, Limits, Refusal, charset, short};
use crate::limits::TITLE_BYTES_MAX;

use hiding::Hiding;

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
    let decoded = match source::declared_charset(bytes) {
        Some(encoding) if std::str::from_utf8(bytes).is_err() => {
            let (text, _) = encoding.decode_without_bom_handling(bytes);
            charset::Decoded { text: text.into_owned().into(), in_file: false, charset: encoding.name() }
        }
        _ => charset::decode(bytes, limits)?,
    };
    let page = source::with_short_tags(&decoded.text);
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
    /// What the head says.
    about: Extracted,
    hiding: Hiding,
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
        state.hiding.tag(tag, start, BLOCKS.contains(&name), self.skip_furniture);
        if start {
            about::read(tag, &mut state.about);
        }
        if !state.hiding.is_on() {
            state.structure(name, start, self.headings_max);
            if name == "img" {
                state.picture(tag, self.text_bytes_max);
            }
        }
        if name == "title" && !state.hiding.is_on() {
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

    /// The words in place of a picture. One or two are those of a symbol: "Menu", "Share this".
    fn picture(&mut self, tag: &Tag, text_bytes_max: usize) {
        let Some(alt) = tag.attrs.iter().find(|a| &*a.name.local == "alt") else { return };
        if alt.value.len() < 2000 && alt.value.split_whitespace().count() > 2 {
            let alt = alt.value.to_string();
            self.characters(&format!(" {alt} "), text_bytes_max);
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
        if self.hiding.is_on() || self.full {
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
        Extracted { text: self.text, title, headings: self.headings, ..self.about }
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
    fn what_is_hidden_is_left_out() {
        let got = read_str(
            "<html lang=de><meta name=author content=Ann><meta name=keywords content='a, b'><body style='display:none'>\
             <p>seen</p><p style='display: NONE'>no<p>seen too</p><div hidden><div>no</div>no</div><div role=navigation>no</div>\
             <span aria-hidden=true>no</span><ul><li hidden>no<li>item</ul><img alt='A photo of a lake' src=x><img alt=Menu></body>",
        );
        assert_eq!(got.text, "seen\n\nseen too\n\nitem\n\nA photo of a lake\n\n");
        assert_eq!((got.author.as_deref(), got.language.as_deref()), (Some("Ann"), Some("de")));
        assert_eq!(got.keywords, ["a", "b"]);
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
