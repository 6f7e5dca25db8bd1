//! RTF: its text with footnotes, headers and text boxes; pictures, embedded objects and lists of styles left out.
//!
//! The formats' libraries were for writing or gave no charsets; the format itself is simple: groups, words and bytes.
//! Groups are kept on a list of bounded length, not on the stack.

mod tokens;
mod words;

use std::collections::HashMap;

use tokens::{Token, Tokens};
use words::{character, destination};

use crate::extract::codepage::Codepage;
use crate::extract::date::{Day, days_of};
use crate::extract::{Extracted, Heading, Limits, Refusal, short};
use crate::limits::TITLE_BYTES_MAX;

/// Groups within groups whose state is kept; deeper ones share that of the last.
const GROUPS_MAX: usize = 4096;

/// Fonts of the table that are kept.
const FONTS_MAX: usize = 10_000;

/// Bytes collected before they are decoded; a text run is far shorter, and a character is not cut more often than that.
const PENDING_BYTES_MAX: usize = 64 << 10;

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Body,
    /// Footnotes, headers, comments: behind the body.
    Aside,
    Title,
    Author,
    Keywords,
    /// The names of fonts and the like.
    Nowhere,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    place: Place,
    hidden: bool,
    font: i32,
    /// Characters that stand for one `\u` in readers that do not know it.
    alternatives: u32,
    in_fonts: bool,
    dates: bool,
}

/// Reads the file. Broken groups and charsets are read as far as they make sense.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    if !bytes.starts_with(b"{\\rtf") {
        return Err(Refusal::failed("it does not begin as an RTF file"));
    }
    let mut reader = Reader::new(limits);
    let mut tokens = Tokens::new(bytes);
    while let Some(token) = tokens.next() {
        if let Token::Word(b"bin", length) = token {
            tokens.pass_over(usize::try_from(length.unwrap_or(0)).unwrap_or(0));
            reader.skip = reader.skip.saturating_sub(1);
            continue;
        }
        reader.token(token);
        if reader.body.len() + reader.aside.len() > limits.text_bytes_max {
            return Err(Refusal::failed(format!("its text has more than {} bytes", limits.text_bytes_max)));
        }
    }
    Ok(reader.finish())
}

struct Reader<'l> {
    limits: &'l Limits,
    group: Group,
    stack: Vec<Group>,
    /// Groups opened beyond those that are kept.
    deeper: usize,
    /// `\*` was seen: a destination that is not known is passed over.
    ignorable: bool,
    /// Alternatives of a `\u` still to pass over.
    skip: u32,
    /// The first half of a character of two units.
    high: Option<u16>,
    pending: Vec<u8>,
    pending_page: Codepage,
    page: Codepage,
    fonts: HashMap<i32, Codepage>,
    font_at_hand: i32,
    default_font: i32,
    body: String,
    aside: String,
    title: String,
    author: String,
    keywords: String,
    date: [Option<i32>; 5],
    outline: Option<u8>,
    line_start: usize,
    headings: Vec<Heading>,
}

impl<'l> Reader<'l> {
    fn new(limits: &'l Limits) -> Self {
        let group =
            Group { place: Place::Body, hidden: false, font: -1, alternatives: 1, in_fonts: false, dates: false };
        Self {
            limits,
            group,
            stack: Vec::new(),
            deeper: 0,
            ignorable: false,
            skip: 0,
            high: None,
            pending: Vec::new(),
            pending_page: Codepage::WESTERN,
            page: Codepage::WESTERN,
            fonts: HashMap::new(),
            font_at_hand: 0,
            default_font: 0,
            body: String::new(),
            aside: String::new(),
            title: String::new(),
            author: String::new(),
            keywords: String::new(),
            date: [None; 5],
            outline: None,
            line_start: 0,
            headings: Vec::new(),
        }
    }

    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Open => self.open(),
            Token::Close => self.close(),
            Token::Text(text) => {
                let passed = text.len().min(self.skip as usize);
                self.skip -= passed as u32;
                self.bytes(&text[passed..]);
            }
            // What stands for a character that is known is passed over, whatever it is.
            Token::Byte(_) | Token::Word(..) | Token::Symbol(_) if self.skip > 0 && !is_unicode(token) => {
                self.skip -= 1;
            }
            Token::Byte(byte) => self.bytes(&[byte]),
            Token::Symbol(symbol) => self.symbol(symbol),
            Token::Word(word, number) => self.word(word, number),
        }
    }

    fn open(&mut self) {
        self.flush();
        self.skip = 0;
        if self.stack.len() < GROUPS_MAX {
            self.stack.push(self.group);
        } else {
            self.deeper += 1;
        }
    }

    fn close(&mut self) {
        self.flush();
        self.skip = 0;
        self.ignorable = false;
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(group) = self.stack.pop() {
            if self.group.place == Place::Aside && group.place != Place::Aside {
                self.aside.push('\n');
            }
            self.group = group;
        }
    }

    fn symbol(&mut self, symbol: u8) {
        match symbol {
            b'*' => self.ignorable = true,
            b'~' => self.text(" "),
            b'_' => self.text("-"),
            b'\\' | b'{' | b'}' => self.bytes(&[symbol]),
            b'\r' | b'\n' => self.paragraph(),
            b'\t' => self.text("\t"),
            // `\-` is where a word may be cut, `\:` and `\|` are of indexes.
            _ => {}
        }
    }

    fn word(&mut self, word: &[u8], number: Option<i32>) {
        let ignorable = std::mem::take(&mut self.ignorable);
        if let Some(place) = destination(word) {
            self.flush();
            self.group.place =
                if self.group.place == Place::Nowhere && place == Place::Body { Place::Nowhere } else { place };
            self.group.in_fonts = word == b"fonttbl";
            self.group.dates = word == b"creatim";
            return;
        }
        match word {
            // Within what is left out, these are text again.
            b"ud" | b"shpinst" | b"shptxt" | b"dptxbxtext" | b"do" | b"fldrslt" | b"result" => {
                self.flush();
                if word != b"do" && word != b"shpinst" && word != b"fldrslt" {
                    self.group.place = Place::Body;
                }
                return;
            }
            _ if ignorable => {
                self.flush();
                self.group.place = Place::Nowhere;
                return;
            }
            _ => {}
        }
        if let Some(text) = character(word) {
            self.text(text);
            return;
        }
        self.property(word, number);
    }

    fn property(&mut self, word: &[u8], number: Option<i32>) {
        match word {
            b"par" | b"line" | b"row" | b"sect" | b"page" | b"column" | b"nestrow" => self.paragraph(),
            b"cell" | b"nestcell" => self.text("\t"),
            b"u" => self.unicode(number.unwrap_or(0)),
            b"uc" => self.group.alternatives = u32::try_from(number.unwrap_or(1)).unwrap_or(0).min(16),
            b"f" => {
                self.flush();
                self.group.font = number.unwrap_or(0);
                self.font_at_hand = self.group.font;
            }
            b"plain" => {
                self.flush();
                (self.group.font, self.group.hidden) = (self.default_font, false);
            }
            b"v" | b"deleted" => {
                self.flush();
                self.group.hidden = number != Some(0);
            }
            b"pard" => self.outline = None,
            b"outlinelevel" => self.outline = number.and_then(|n| u8::try_from(n).ok()).filter(|n| *n < 9),
            b"deff" => self.default_font = number.unwrap_or(0),
            b"ansicpg" | b"cpg" | b"fcharset" | b"mac" | b"pc" | b"pca" => self.charset(word, number),
            b"yr" | b"mo" | b"dy" | b"hr" | b"min" if self.group.dates => {
                let field = [&b"yr"[..], b"mo", b"dy", b"hr", b"min"].iter().position(|f| *f == word);
                if let Some(field) = field {
                    self.date[field] = number;
                }
            }
            _ => {}
        }
    }

    fn charset(&mut self, word: &[u8], number: Option<i32>) {
        let number = u32::try_from(number.unwrap_or(0)).unwrap_or(0);
        let page = match word {
            b"mac" => Codepage::of(10000),
            b"pc" => Codepage::of(437),
            b"pca" => Codepage::of(850),
            b"fcharset" => Codepage::of_charset(number),
            _ => Codepage::of(number),
        };
        let Some(page) = page else { return };
        if self.group.in_fonts {
            if self.fonts.len() < FONTS_MAX {
                self.fonts.insert(self.font_at_hand, page);
            }
        } else {
            self.flush();
            self.page = page;
        }
    }

    fn unicode(&mut self, number: i32) {
        self.flush_bytes();
        self.skip = self.group.alternatives;
        let unit = match u32::try_from(number) {
            Ok(n) if n <= 0xFFFF => n as u16,
            // Some programs write a whole character; the standard has numbers of 16 bits with a sign.
            Ok(n) => {
                if let Some(c) = char::from_u32(n) {
                    self.text(c.encode_utf8(&mut [0; 4]));
                }
                return;
            }
            Err(_) => number as u16,
        };
        match (self.high.take(), unit) {
            (Some(high), 0xDC00..=0xDFFF) => {
                let pair = char::decode_utf16([high, unit]).next().and_then(Result::ok);
                self.text(pair.unwrap_or('\u{FFFD}').encode_utf8(&mut [0; 4]));
            }
            (_, 0xD800..=0xDBFF) => self.high = Some(unit),
            (_, 0xDC00..=0xDFFF) => {}
            // Letters of the fonts of symbols, moved out of the way.
            (_, 0xF020..=0xF0FF) => self.bytes(&[(unit - 0xF000) as u8]),
            (_, unit) => {
                if let Some(c) = char::from_u32(u32::from(unit)).filter(|c| !c.is_control() || c.is_whitespace()) {
                    self.text(c.encode_utf8(&mut [0; 4]));
                }
            }
        }
    }

    /// Bytes in the charset of the font at hand. A character may be written as several of them, each in its own way.
    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.group.place == Place::Nowhere || self.group.hidden {
            return;
        }
        self.high = None;
        let page = self
            .fonts
            .get(&self.group.font)
            .or_else(|| self.fonts.get(&self.default_font).filter(|_| self.group.font < 0));
        let page = page.copied().unwrap_or(self.page);
        if page != self.pending_page || self.pending.len() > PENDING_BYTES_MAX {
            self.flush_bytes();
            self.pending_page = page;
        }
        self.pending.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        self.flush_bytes();
        self.high = None;
    }

    fn flush_bytes(&mut self) {
        if !self.pending.is_empty() {
            let text = self.pending_page.decode(&std::mem::take(&mut self.pending));
            self.write(&text);
        }
    }

    fn text(&mut self, text: &str) {
        self.flush_bytes();
        if !self.group.hidden {
            self.write(text);
        }
    }

    fn write(&mut self, text: &str) {
        let out = match self.group.place {
            Place::Body => &mut self.body,
            Place::Aside => &mut self.aside,
            Place::Title => &mut self.title,
            Place::Author => &mut self.author,
            Place::Keywords => &mut self.keywords,
            Place::Nowhere => return,
        };
        out.push_str(text);
    }

    fn paragraph(&mut self) {
        self.text("\n");
        if self.group.place != Place::Body {
            return;
        }
        let level = self.outline.filter(|_| self.headings.len() < self.limits.headings_max);
        if let Some(level) = level {
            let text = short(&self.body[self.line_start.min(self.body.len())..], TITLE_BYTES_MAX);
            if !text.is_empty() {
                self.headings.push(Heading { start: self.line_start, level: level + 1, text });
            }
        }
        self.line_start = self.body.len();
    }

    fn finish(mut self) -> Extracted {
        self.flush();
        let word = |text: &str| Some(short(text, TITLE_BYTES_MAX)).filter(|text| !text.is_empty());
        if !self.aside.trim().is_empty() {
            self.body.push_str("\n\n");
            self.body.push_str(self.aside.trim());
        }
        let keywords = self.keywords.split([',', ';']).filter_map(word).take(100).collect();
        Extracted {
            title: word(&self.title),
            author: word(&self.author),
            dated: dated(self.date),
            keywords,
            headings: self.headings,
            text: self.body,
            charset: "RTF",
            ..Extracted::default()
        }
    }
}

fn is_unicode(token: Token<'_>) -> bool {
    matches!(token, Token::Word(b"u", Some(_)))
}

fn dated([year, month, day, hour, minute]: [Option<i32>; 5]) -> Option<i64> {
    let year = year.filter(|y| (1900..=2200).contains(y))?;
    let within = |n: Option<i32>, from: i32, to: i32| n.filter(|n| (from..=to).contains(n)).unwrap_or(from);
    let part = |n: Option<i32>, to| u32::try_from(within(n, 1, to)).unwrap_or(1);
    let days = days_of(Day { year: i64::from(year), month: part(month, 12), day: part(day, 31) });
    Some(((days * 24 + i64::from(within(hour, 0, 23))) * 60 + i64::from(within(minute, 0, 59))) * 60_000)
}

#[cfg(test)]
mod tests;
