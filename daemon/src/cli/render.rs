//! Text for people: escaping, wrapping, sizes, times. Pure functions.
//!
//! Paths, passages and answers come from documents, and a document may hold control characters that move the
//! cursor, recolour or rewrite a terminal. Everything printed passes through `escape` or `escape_text`.

use std::fmt::Write;
use std::time::Duration;

/// One line's worth of foreign text: every control and direction character is shown as `\u{..}`.
pub fn escape(text: &str) -> String {
    escape_unless(text, |_| false)
}

/// Like `escape`, with newlines and tabs left as they are.
pub fn escape_text(text: &str) -> String {
    escape_unless(text, |character| matches!(character, '\n' | '\t'))
}

fn escape_unless(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hostile(character) && !keep(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), and the marks that turn the direction of text, which can make a path read as
/// another one. The joiners U+200C and U+200D stay: Persian, Hindi and emoji need them.
fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Columns a character takes. East Asian wide and emoji blocks take two, as terminals draw them.
fn columns(character: char) -> usize {
    match character {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Columns a text takes.
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// The text's words in at most `lines` lines of `width` columns, each after `indent`; an ellipsis where it is cut.
/// White space of any kind counts as one space; a word too long for a line is broken.
pub fn wrap(text: &str, indent: &str, width_max: usize, lines: usize) -> String {
    let room = width_max.saturating_sub(width(indent)).max(1);
    let mut rows: Vec<String> = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let word = escape(word);
        let gap = usize::from(used > 0);
        if used + gap + width(&word) > room && used > 0 {
            rows.push(String::new());
            used = 0;
        } else if gap == 1 {
            push(&mut rows, ' ');
            used += 1;
        }
        for character in word.chars() {
            if used + columns(character) > room {
                rows.push(String::new());
                used = 0;
            }
            push(&mut rows, character);
            used += columns(character);
        }
        if rows.len() > lines {
            break;
        }
    }
    if rows.len() > lines {
        rows.truncate(lines);
        if let Some(last) = rows.last_mut() {
            while width(last) + 1 > room {
                last.pop();
            }
            last.push('…');
        }
    }
    rows.iter().fold(String::new(), |mut out, row| {
        out.push_str(indent);
        out.push_str(row.trim_end());
        out.push('\n');
        out
    })
}

fn push(rows: &mut [String], character: char) {
    if let Some(row) = rows.last_mut() {
        row.push(character);
    }
}

/// `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit_name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {unit_name}") }
}

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `850 ms`, `12.3 s`, `4 min 05 s`, `3 h 12 min`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `path, page 3` where there are pages, else `path:12` or `path:12-18`; the path escaped.
pub fn place(path: &str, page: Option<u32>, line_start: u32, line_end: u32) -> String {
    let mut out = escape(path);
    // Writing to a String cannot fail.
    let _ = match page {
        // Lines of a paged document are those of its extracted text, which nobody sees.
        Some(page) => write!(out, ", page {page}"),
        None if line_end > line_start => write!(out, ":{line_start}-{line_end}"),
        None => write!(out, ":{line_start}"),
    };
    out
}

/// Rows of a label and a value, the values aligned.
pub fn pairs<L: AsRef<str>, V: AsRef<str>>(rows: &[(L, V)]) -> String {
    let label_width = rows.iter().map(|(label, _)| width(label.as_ref())).max().unwrap_or(0);
    rows.iter().fold(String::new(), |mut out, (label, value)| {
        let label = label.as_ref();
        out.push_str(label);
        out.push_str(&" ".repeat(label_width - width(label) + 2));
        out.push_str(&escape(value.as_ref()));
        out.push('\n');
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_that_could_drive_it() {
        let hostile = "a\x1b]0;title\x07\x1b[31m\r\u{9b}2J\u{202e}gpj.exe\u{feff}\u{7f}\0\nb";
        let shown = escape(hostile);
        assert!(shown.chars().all(|character| !is_hostile(character)), "{shown}");
        assert!(shown.starts_with("a\\u{1b}]0;title\\u{7}"), "{shown}");
        assert_eq!(escape_text("one\ttwo\nthree\r"), "one\ttwo\nthree\\u{d}");
        assert_eq!(escape("नमस्ते می‌خواهم 資料 👨‍👩‍👧"), "नमस्ते می‌خواهم 資料 👨‍👩‍👧");
    }

    #[test]
    fn lines_keep_their_width_and_their_number() {
        let text = "The notice period is three months. ".repeat(20) + &"長い文章".repeat(30) + &"x".repeat(300);
        for width_max in [20, 41, 80] {
            for lines in [1, 3, 100] {
                let wrapped = wrap(&text, "   ", width_max, lines);
                assert!(wrapped.lines().count() <= lines);
                assert!(wrapped.lines().all(|line| width(line) <= width_max), "{wrapped}");
                assert_eq!(wrapped.contains('…'), lines < 100);
            }
        }
        let kept: String = wrap(&text, "", 80, 1000).split_whitespace().collect();
        assert_eq!(kept, text.split_whitespace().collect::<String>());
        assert_eq!(wrap(" ", "  ", 80, 4), "  \n");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [0, 1023, 1024, 3 << 30, u64::MAX].map(bytes),
            ["0 B", "1023 B", "1.0 KiB", "3.0 GiB", "16777216.0 TiB"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let times = [850, 12_340, 245_000, 11_520_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(times, ["850 ms", "12.3 s", "4 min 05 s", "3 h 12 min"]);
    }

    #[test]
    fn places_and_pairs() {
        assert_eq!(place("/a\n", None, 3, 3), "/a\\u{a}:3");
        assert_eq!(place("/a", None, 3, 5), "/a:3-5");
        assert_eq!(place("/a", Some(2), 3, 5), "/a, page 2");
        assert_eq!(pairs(&[("a", "1"), ("long", "2")]), "a     1\nlong  2\n");
    }
}
