//! Glyphs → lines of text.
//!
//! Most programs write a page in the order of reading, column by column; that order is kept, and geometry only says
//! where a word and a line end, which runs belong to one line, and what was drawn twice.

use std::collections::HashMap;

use super::content::Glyph;
use super::{accents, bidi};

/// How far, in parts of the font's size, glyphs may be apart and still be one word.
const WORD_GAP: f32 = 0.13;

/// Chinese, Japanese and Korean letters stand apart by nature; only a wide gap is one.
const WORD_GAP_WIDE: f32 = 0.45;

/// A gap that is no space between words but between the columns of a table.
const COLUMN_GAP: f32 = 2.0;

/// Lines before the current one that a run may belong to: programs that write one font at a time come back to a line.
const LOOK_BACK: usize = 60;

/// Runs of one line among which room for one more is looked for, and marks of one line that are put to their letters;
/// no printed line has as many, and both cost their square.
const PIECES_MAX: usize = 1000;

/// A line of the page.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub text: String,
    /// Along the line: where it begins and ends.
    pub start: f32,
    pub end: f32,
    /// Across the lines: its height on the page as seen by one who reads it. Falls from line to line.
    pub base: f32,
    /// The size of its largest letters.
    pub size: f32,
    /// The direction it runs.
    pub way: (f32, f32),
}

impl Line {
    /// Whether both run in the same direction.
    pub fn is_along(&self, other: &Self) -> bool {
        same_way(self.way, other.way)
    }
}

/// A stretch of glyphs drawn one after the other on one line.
struct Run {
    glyphs: std::ops::Range<usize>,
    start: f32,
    end: f32,
    base: f32,
    em: f32,
    height: f32,
    way: (f32, f32),
}

struct Draft {
    runs: Vec<Run>,
    start: f32,
    end: f32,
    base: f32,
    em: f32,
    height: f32,
    way: (f32, f32),
}

/// The lines of a page, in the order drawn.
pub(super) fn lines(glyphs: &[Glyph]) -> Vec<Line> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut seen: HashMap<String, Vec<(f32, f32)>> = HashMap::new();
    for run in runs(glyphs) {
        if is_repeated(glyphs, &run, &mut seen) {
            continue;
        }
        let from = drafts.len().saturating_sub(LOOK_BACK);
        let last = drafts.len().wrapping_sub(1);
        let place = (from..drafts.len()).rev().find(|&i| belongs(&drafts[i], &run, i == last));
        match place {
            Some(i) => drafts[i].take(run),
            None => drafts.push(Draft::of(run)),
        }
    }
    drafts.into_iter().map(|draft| draft.finish(glyphs)).filter(|line| !line.text.is_empty()).collect()
}

fn same_way(a: (f32, f32), b: (f32, f32)) -> bool {
    a.0 * b.0 + a.1 * b.1 > 0.995
}

pub(super) fn along(glyph: &Glyph, way: (f32, f32)) -> f32 {
    glyph.x * way.0 + glyph.y * way.1
}

fn across(glyph: &Glyph, way: (f32, f32)) -> f32 {
    glyph.y * way.0 - glyph.x * way.1
}

fn runs(glyphs: &[Glyph]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for (i, glyph) in glyphs.iter().enumerate() {
        if let Some(run) = out.last_mut()
            && same_way(run.way, (glyph.dx, glyph.dy))
        {
            let (start, base) = (along(glyph, run.way), across(glyph, run.way));
            let gap = start - run.end;
            let em = run.em.max(glyph.em);
            // An accent is set first, lifted over a capital, and its letter drawn back under it.
            let accent = accents::mark_of(glyph).is_some();
            let accented =
                accent || glyphs.get(i.wrapping_sub(1)).is_some_and(|before| accents::mark_of(before).is_some());
            let lift = if accented { 0.35 } else { 0.1 };
            let level = (base - run.base).abs() < lift * run.height.min(glyph.height);
            let back = if accented { -0.8 } else { -0.35 };
            let alike = glyph.em < 1.6 * run.em && run.em < 1.6 * glyph.em;
            if level && alike && gap > back * em && gap < COLUMN_GAP * em {
                run.glyphs.end = i + 1;
                if !is_space(glyph) && !accent {
                    run.end = run.end.max(start + glyph.width);
                }
                continue;
            }
        }
        let way = (glyph.dx, glyph.dy);
        let start = along(glyph, way);
        out.push(Run {
            glyphs: i..i + 1,
            start,
            end: start + glyph.width,
            base: across(glyph, way),
            em: glyph.em,
            height: glyph.height,
            way,
        });
    }
    out
}

/// Text drawn twice, a little apart, looks bold; it is read once.
fn is_repeated(glyphs: &[Glyph], run: &Run, seen: &mut HashMap<String, Vec<(f32, f32)>>) -> bool {
    let text: String = glyphs[run.glyphs.clone()].iter().map(|g| &*g.text).collect();
    let first = &glyphs[run.glyphs.start];
    let near = 0.2 * run.em;
    let places = seen.entry(text).or_default();
    let recent = &places[places.len().saturating_sub(LOOK_BACK)..];
    let repeated = recent.iter().any(|(x, y)| (x - first.x).abs() < near && (y - first.y).abs() < near);
    places.push((first.x, first.y));
    repeated
}

/// Whether the run is a part of that line.
fn belongs(line: &Draft, run: &Run, is_last: bool) -> bool {
    if !same_way(line.way, run.way) {
        return false;
    }
    let em = line.em.max(run.em);
    // Raised and lowered letters are smaller and stay within the line; all others stand on it.
    let small = run.em < 0.85 * line.em || line.em < 0.85 * run.em;
    let off = (run.base - line.base).abs();
    if off > line.height.max(run.height) * if small { 0.55 } else { 0.2 } {
        return false;
    }
    let (behind, before) = (run.start - line.end, line.start - run.end);
    let gap = behind.max(before);
    if gap < -0.35 * em {
        // It stands within the line: a word put into a gap that was left for it, as forms and lists are filled in.
        return is_last && line.has_room_for(run);
    }
    if is_last { off < 0.2 * em || gap < 0.5 * em } else { gap < 0.4 * em }
}

impl Draft {
    fn of(run: Run) -> Self {
        let Run { start, end, base, em, height, way, .. } = run;
        Self { runs: vec![run], start, end, base, em, height, way }
    }

    fn has_room_for(&self, run: &Run) -> bool {
        let slack = 0.2 * run.em;
        // What is raised leaves the line below it free: a comma under the star of a footnote.
        let blocks = |other: &&Run| (other.base - run.base).abs() < 0.15 * run.height;
        let free = |other: &Run| run.start > other.end - slack || run.end < other.start + slack;
        self.runs.len() < PIECES_MAX && self.runs.iter().filter(blocks).all(free)
    }

    fn take(&mut self, run: Run) {
        if run.em > 1.05 * self.em {
            (self.em, self.height, self.base) = (run.em, run.height, run.base);
        }
        (self.start, self.end) = (self.start.min(run.start), self.end.max(run.end));
        self.runs.push(run);
    }

    fn finish(mut self, glyphs: &[Glyph]) -> Line {
        self.runs.sort_by(|a, b| a.start.total_cmp(&b.start));
        let mut all: Vec<&Glyph> = self.runs.iter().flat_map(|run| &glyphs[run.glyphs.clone()]).collect();
        let leftward = all.iter().any(|glyph| bidi::has_leftward(&glyph.text));
        if leftward {
            sort_as_seen(&mut all, self.way);
        }
        let pieces = with_spaces(&all, self.way, leftward);
        let text = if leftward { bidi::reading_order(pieces) } else { pieces.concat() };
        Line {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            start: self.start,
            end: self.end,
            base: self.base,
            size: self.height,
            way: self.way,
        }
    }
}

/// From left to right; a mark stays behind the letter it stands over.
fn sort_as_seen(glyphs: &mut Vec<&Glyph>, way: (f32, f32)) {
    let is_mark = |glyph: &Glyph| glyph.text.chars().next().is_some_and(bidi::is_mark);
    let (mut letters, mut marks): (Vec<&Glyph>, Vec<&Glyph>) = glyphs.iter().partition(|g| !is_mark(g));
    letters.sort_by(|a, b| along(a, way).total_cmp(&along(b, way)));
    marks.sort_by(|a, b| along(b, way).total_cmp(&along(a, way)));
    let more = marks.split_off(marks.len().min(PIECES_MAX));
    for mark in marks {
        let middle = along(mark, way) + mark.width / 2.0;
        let behind = letters.partition_point(|letter| along(letter, way) <= middle);
        letters.insert(behind, mark);
    }
    letters.extend(more);
    *glyphs = letters;
}

/// The texts of the glyphs with spaces between words. For lines that are turned afterwards, marks go with their letter.
fn with_spaces(glyphs: &[&Glyph], way: (f32, f32), leftward: bool) -> Vec<String> {
    // A space that is drawn counts where it has room; some programs put one behind each letter and go back over it.
    let glyphs = accents::put_on(glyphs, way);
    let mut spaced = Vec::new();
    let mut letters: Vec<&Glyph> = Vec::new();
    for glyph in &glyphs {
        if !is_space(glyph) {
            letters.push(glyph.as_ref());
            spaced.push(false);
        } else if let Some(last) = spaced.last_mut() {
            *last = true;
        }
    }
    let gap =
        |pair: &[&Glyph]| (along(pair[1], way) - along(pair[0], way) - pair[0].width) / pair[0].em.max(pair[1].em);
    let mut gaps: Vec<f32> = letters.windows(2).map(gap).collect();
    let tracking = tracking(&mut gaps.clone());
    gaps.push(0.0);
    let mut out: Vec<String> = Vec::new();
    for (i, glyph) in letters.iter().enumerate() {
        let joins = leftward && glyph.text.chars().next().is_some_and(bidi::is_mark);
        match out.last_mut() {
            Some(last) if joins => last.push_str(&glyph.text),
            _ => out.push(glyph.text.to_string()),
        }
        let Some(next) = letters.get(i + 1) else { break };
        let wide = is_wide(&glyph.text) && is_wide(&next.text);
        let limit = if wide { WORD_GAP_WIDE } else { WORD_GAP };
        let drawn = spaced[i] && gaps[i] > if wide { 0.1 } else { -0.1 };
        if gaps[i] > COLUMN_GAP {
            out.push("\t".to_owned());
        } else if drawn || gaps[i] > limit + tracking {
            out.push(" ".to_owned());
        }
    }
    out
}

fn is_space(glyph: &Glyph) -> bool {
    !glyph.text.is_empty() && glyph.text.chars().all(char::is_whitespace)
}

/// Letters set apart on purpose: how far, where that is more than a word's gap for most of them.
fn tracking(gaps: &mut [f32]) -> f32 {
    if gaps.len() < 4 {
        return 0.0;
    }
    let middle = gaps.len() / 2;
    let (_, median, _) = gaps.select_nth_unstable_by(middle, f32::total_cmp);
    if *median > 0.04 && *median < 1.0 { *median } else { 0.0 }
}

fn is_wide(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| {
        matches!(c, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FF60}' | '\u{20000}'..='\u{3FFFF}')
    })
}
