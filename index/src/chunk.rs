//! Text → passages.
//!
//! A passage is a run of whole units: the text is cut at headings into sections, a section at blank lines into paragraphs,
//! a paragraph that is too long into sentences, a sentence that is too long into words, a word that is too long into
//! characters. Units are then joined, in order and within one section, until the next one would pass the target.
//!
//! Spans tile the text: they are in order, do not overlap, and only white space lies between them.

use unicode_segmentation::UnicodeSegmentation;

use crate::extract::{Heading, Part, PartKind, floor_boundary, short};
use crate::limits::{HEADING_PATH_BYTES_MAX, PASSAGES_PER_DOCUMENT_MAX};

/// Sizes in tokens of the embedder.
pub(crate) struct Sizes<'a> {
    /// Joining stops here.
    pub target: usize,
    /// No passage has more, by the sum of its parts.
    pub max: usize,
    /// The embedder's count of tokens.
    pub count: &'a dyn Fn(&str) -> usize,
}

/// A passage before it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// First byte in the text.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// First line, from 1.
    pub line_start: u32,
    /// Last line, inclusive.
    pub line_end: u32,
    /// Headings above, outermost first, joined by ` > `.
    pub heading: String,
    /// Tokens, by the sum of its parts.
    pub tokens: usize,
}

/// A piece that is not cut further.
#[derive(Clone, Copy)]
struct Unit {
    start: usize,
    end: usize,
    tokens: usize,
}

/// Where a section begins.
#[derive(Clone, Copy)]
enum Cut<'a> {
    /// At a heading.
    Heading(&'a Heading),
    /// At a page: passages keep to their page, so that it can be cited, but headings go on.
    Page(usize),
    /// At a sheet, a message, a file of an archive: something of its own, under no heading of what came before.
    Own(usize),
    End(usize),
}

impl Cut<'_> {
    fn start(self) -> usize {
        match self {
            Self::Heading(heading) => heading.start,
            Self::Page(start) | Self::Own(start) | Self::End(start) => start,
        }
    }
}

/// Headings and parts in the order of the text; where both begin at the same place, the part comes first.
fn cuts<'a>(text: &str, headings: &'a [Heading], parts: &'a [Part]) -> Vec<Cut<'a>> {
    let parts = parts.iter().map(|part| match part.kind {
        PartKind::Page | PartKind::Slide => Cut::Page(part.start),
        _ => Cut::Own(part.start),
    });
    let mut cuts: Vec<Cut<'_>> = parts.chain(headings.iter().map(Cut::Heading)).collect();
    cuts.sort_by_key(|cut| cut.start());
    cuts.push(Cut::End(text.len()));
    cuts
}

/// Cuts the text. Outline and parts must be in the order of the text.
pub(crate) fn chunk(text: &str, headings: &[Heading], parts: &[Part], sizes: &Sizes<'_>) -> Vec<Chunk> {
    let mut out: Vec<Chunk> = Vec::new();
    let mut lines = Lines::new(text);
    let mut path: Vec<&Heading> = Vec::new();
    let mut from = 0;
    // Crumbs are joined within their part, from this passage on.
    let mut own = 0;
    // A section runs from its heading to the next one; the text before the first heading has none.
    for next in cuts(text, headings, parts) {
        let to = floor_boundary(text, next.start()).max(from);
        let heading = heading_path(&path);
        section(text, from, to, sizes, &heading, &mut lines, &mut out);
        from = to;
        match next {
            Cut::Heading(heading) => {
                while path.last().is_some_and(|h| h.level >= heading.level) {
                    path.pop();
                }
                path.push(heading);
            }
            Cut::Own(_) => path.clear(),
            Cut::Page(_) | Cut::End(_) => {}
        }
        if !matches!(next, Cut::Heading(_)) {
            join_small(&mut out, own, sizes);
            own = out.len();
        }
    }
    out.truncate(PASSAGES_PER_DOCUMENT_MAX);
    out
}

fn heading_path(path: &[&Heading]) -> String {
    let joined = path.iter().map(|h| h.text.as_str()).filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" > ");
    short(&joined, HEADING_PATH_BYTES_MAX)
}

fn section(
    text: &str,
    from: usize,
    to: usize,
    sizes: &Sizes<'_>,
    heading: &str,
    lines: &mut Lines<'_>,
    out: &mut Vec<Chunk>,
) {
    let units = units(text, from, to, sizes);
    let total: usize = units.iter().map(|u| u.tokens).sum();
    // Even parts read better than a full one and a crumb; the count of parts is the same.
    let parts = total.div_ceil(sizes.target.max(1)).max(1);
    let target = total.div_ceil(parts).max(1);
    let mut open: Option<Unit> = None;
    for unit in units {
        open = match open {
            Some(o) if o.tokens < target && fits(o, unit, target, sizes) => {
                Some(Unit { end: unit.end, tokens: o.tokens + unit.tokens, ..o })
            }
            Some(o) => {
                push(text, o, heading, lines, out);
                Some(unit)
            }
            None => Some(unit),
        };
    }
    if let Some(o) = open {
        push(text, o, heading, lines, out);
    }
}

/// Whether the unit goes to the open passage: below the target always, a little beyond it if that ends nearer to it.
fn fits(open: Unit, unit: Unit, target: usize, sizes: &Sizes<'_>) -> bool {
    let joined = open.tokens + unit.tokens;
    joined <= sizes.max && (joined <= target || joined - target <= target - open.tokens)
}

fn push(text: &str, unit: Unit, heading: &str, lines: &mut Lines<'_>, out: &mut Vec<Chunk>) {
    let raw = &text[unit.start..unit.end];
    let trimmed = raw.trim_start();
    let start = unit.end - trimmed.len();
    let end = start + trimmed.trim_end().len();
    if start == end {
        return;
    }
    let line_start = lines.at(start);
    let line_end = lines.at(end - 1);
    out.push(Chunk { start, end, line_start, line_end, heading: heading.to_owned(), tokens: unit.tokens });
}

/// Joins a section that is a crumb (a lone heading, a line) to what follows, when both together are still one passage.
fn join_small(chunks: &mut Vec<Chunk>, from: usize, sizes: &Sizes<'_>) {
    let crumb = sizes.target / 8;
    let mut joined: Vec<Chunk> = Vec::with_capacity(chunks.len() - from);
    for next in chunks.drain(from..) {
        match joined.last_mut() {
            Some(last) if last.tokens <= crumb && last.tokens + next.tokens <= sizes.target => {
                last.end = next.end;
                last.line_end = next.line_end;
                last.tokens += next.tokens;
                last.heading = common_heading(&last.heading, next.heading);
            }
            _ => joined.push(next),
        }
    }
    chunks.append(&mut joined);
}

/// A crumb lends its own heading only where the rest has none: the longer text decides.
fn common_heading(crumb: &str, next: String) -> String {
    if next.is_empty() { crumb.to_owned() } else { next }
}

fn units(text: &str, from: usize, to: usize, sizes: &Sizes<'_>) -> Vec<Unit> {
    let mut out = Vec::new();
    let mut at = from;
    for paragraph in paragraphs(&text[from..to]) {
        let (start, end) = (at, at + paragraph.len());
        at = end;
        if paragraph.trim().is_empty() {
            continue;
        }
        let tokens = (sizes.count)(paragraph.trim());
        if tokens <= sizes.max {
            out.push(Unit { start, end, tokens });
        } else {
            cut(text, start, paragraph, sizes, &mut out);
        }
    }
    out
}

/// Pieces that end after a run of blank lines; together they are the text.
fn paragraphs(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut at = 0;
    let mut blank = false;
    for line in text.split_inclusive('\n') {
        let empty = line.trim().is_empty();
        if blank && !empty && at > start {
            out.push(&text[start..at]);
            start = at;
        }
        blank = empty;
        at += line.len();
    }
    if start < text.len() {
        out.push(&text[start..]);
    }
    out
}

/// Cuts a paragraph that is too long. Pieces are joined up to the target here, so that a paragraph of a thousand short
/// sentences does not become a thousand units.
fn cut(text: &str, base: usize, paragraph: &str, sizes: &Sizes<'_>, out: &mut Vec<Unit>) {
    let mut pieces: Vec<&str> = Vec::new();
    for sentence in sentences(paragraph) {
        if (sizes.count)(sentence) <= sizes.target {
            pieces.push(sentence);
        } else {
            words(sentence, sizes, &mut pieces);
        }
    }
    let mut start = base;
    let mut at = base;
    let mut tokens = 0;
    for piece in pieces {
        let more = (sizes.count)(piece);
        if at > start && tokens + more > sizes.target {
            out.push(Unit { start, end: at, tokens });
            (start, tokens) = (at, 0);
        }
        at += piece.len();
        tokens += more;
    }
    if at > start && !text[start..at].trim().is_empty() {
        out.push(Unit { start, end: at, tokens });
    }
}

/// Sentences, and lines where a text has no sentences (logs, tables, code).
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    paragraph.split_inclusive('\n').flat_map(|line| line.split_sentence_bounds())
}

/// Words joined up to the target; a word that is itself too long is cut at characters.
fn words<'a>(sentence: &'a str, sizes: &Sizes<'_>, out: &mut Vec<&'a str>) {
    let mut start = 0;
    let mut at = 0;
    let mut tokens = 0;
    for word in sentence.split_word_bounds() {
        let mut rest = word;
        let mut more = (sizes.count)(word);
        while more > sizes.target && rest.chars().nth(1).is_some() {
            if at > start {
                out.push(&sentence[start..at]);
            }
            // Tokens are spread evenly enough over one word to cut it by proportion.
            let share = floor_boundary(rest, (rest.len() * sizes.target / more / 2).max(4)).max(first_char(rest));
            out.push(&rest[..share]);
            at += share;
            start = at;
            tokens = 0;
            rest = &rest[share..];
            more = (sizes.count)(rest);
        }
        if at > start && tokens + more > sizes.target {
            out.push(&sentence[start..at]);
            start = at;
            tokens = 0;
        }
        at += rest.len();
        tokens += more;
    }
    if at > start {
        out.push(&sentence[start..at]);
    }
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Line numbers of rising offsets.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { text: text.as_bytes(), at: 0, line: 1 }
    }

    /// The line of the byte; `offset` must not be below the one asked for before.
    fn at(&mut self, offset: usize) -> u32 {
        let newlines = self.text[self.at..offset].iter().filter(|&&b| b == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        self.at = offset;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn by_chars(text: &str) -> usize {
        text.chars().filter(|c| !c.is_whitespace()).count().div_ceil(4)
    }

    fn cut_at(text: &str, headings: &[Heading], target: usize, max: usize) -> Vec<Chunk> {
        chunk(text, headings, &[], &Sizes { target, max, count: &by_chars })
    }

    fn heading(text: &str, line: &str, level: u8) -> Heading {
        Heading { start: text.find(line).unwrap(), level, text: line.trim_start_matches(['#', ' ']).into() }
    }

    fn check_tiles(text: &str, chunks: &[Chunk]) {
        let mut at = 0;
        for c in chunks {
            assert!(c.start >= at && c.start < c.end, "span {}..{} after {at}", c.start, c.end);
            assert!(text[at..c.start].trim().is_empty(), "lost text {:?}", &text[at..c.start]);
            assert_eq!(text[c.start..c.end].trim().len(), c.end - c.start);
            assert_eq!(c.line_start as usize, text[..c.start].matches('\n').count() + 1);
            assert_eq!(c.line_end as usize, text[..c.end].matches('\n').count() + 1);
            at = c.end;
        }
        assert!(text[at..].trim().is_empty(), "lost the end {:?}", &text[at..]);
    }

    #[test]
    fn a_paragraph_that_fits_stays_whole() {
        let text = "A sentence of words. ".repeat(40);
        let got = cut_at(&text, &[], 100, 400);
        assert_eq!(got.len(), 1);
        check_tiles(&text, &got);
    }

    #[test]
    fn sections_carry_their_heading_path() {
        let body = "Words that fill the section well enough. ".repeat(4);
        let text = format!("# A\n\n{body}\n\n## B\n\n{body}\n\n## C\n\n{body}\n\n# D\n\n{body}\n");
        let outline =
            [heading(&text, "# A", 1), heading(&text, "## B", 2), heading(&text, "## C", 2), heading(&text, "# D", 1)];
        let got = cut_at(&text, &outline, 60, 120);
        let paths: Vec<_> = got.iter().map(|c| c.heading.as_str()).collect();
        assert_eq!(paths, ["A", "A > B", "A > C", "D"]);
        check_tiles(&text, &got);
    }

    #[test]
    fn a_crumb_joins_what_follows() {
        let body = "Words that fill the section. ".repeat(6);
        let text = format!("# Title\n\n## First\n\n{body}\n");
        let got = cut_at(&text, &[heading(&text, "# Title", 1), heading(&text, "## First", 2)], 100, 200);
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].heading, "Title > First");
    }

    #[test]
    fn passages_keep_to_their_page_and_sheet() {
        let body = "Words that fill the page well enough. ".repeat(4);
        let text = format!("# A\n{body}\n{body}\nsmall\n{body}\n");
        let at = |n: usize| text.match_indices(&body[..5]).nth(4 * n).unwrap().0;
        let part = |start, kind| Part { start, kind, number: 1, name: None };
        let outline = [heading(&text, "# A", 1)];
        let small = text.find("small").unwrap();
        for (kind, paths) in [(PartKind::Page, ["A", "A", "A"]), (PartKind::Sheet, ["A", "", ""])] {
            let parts = [part(at(1), kind), part(small, kind), part(small + 6, kind)];
            let sizes = Sizes { target: 200, max: 400, count: &by_chars };
            let got = chunk(&text, &outline, &parts, &sizes);
            check_tiles(&text, &got);
            // The crumb between two parts stays alone.
            assert_eq!(got.len(), 4, "{got:?}");
            assert_eq!(got.iter().map(|c| c.heading.as_str()).take(3).collect::<Vec<_>>(), paths);
            assert_eq!(got[1].start, at(1));
        }
    }

    #[test]
    fn no_passage_passes_the_maximum() {
        let text = format!("{} {}", "x".repeat(20_000), "日本語の長い文字列".repeat(800));
        let got = cut_at(&text, &[], 50, 100);
        check_tiles(&text, &got);
        for c in &got {
            assert!(by_chars(&text[c.start..c.end]) <= 100, "{} tokens", by_chars(&text[c.start..c.end]));
        }
    }

    #[test]
    fn spans_tile_random_text() {
        const PIECES: &[&str] = &[
            "word ",
            "a sentence ends. ",
            "\n",
            "\n\n",
            "\r\n\r\n",
            "  \t",
            "日本語。",
            "ไทย",
            "हिन्दी ",
            "e\u{301}",
            "😀",
            "x",
            "unbreakablelongwordunbreakablelongword",
            "\u{FEFF}",
            "\u{2029}",
            "后",
            "مرحبا ",
        ];
        for seed in 0..400 {
            let mut rng = Rng::new(seed);
            let mut text = String::new();
            let mut outline = Vec::new();
            for _ in 0..rng.below(300) {
                if rng.below(25) == 0 {
                    let level = rng.below(6) as u8 + 1;
                    outline.push(Heading { start: text.len(), level, text: format!("h{}", rng.below(9)) });
                    text.push_str("# head\n");
                }
                text.push_str(PIECES[rng.below(PIECES.len())]);
            }
            let target = 1 + rng.below(60);
            let got = cut_at(&text, &outline, target, target + rng.below(60));
            check_tiles(&text, &got);
        }
    }
}
