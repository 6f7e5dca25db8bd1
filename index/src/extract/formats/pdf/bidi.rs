//! Letters in the order seen → letters in the order read.
//!
//! A page says where each letter stands, not which comes first. Lines of Arabic or Hebrew are put together from left to
//! right as seen and turned here; numbers and Latin words within them keep their own direction.

/// How a letter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Left,
    Right,
    Number,
    /// Between two numbers it belongs to them.
    Separator,
    Neutral,
}

/// Whether the text has any letter that runs to the left.
pub(super) fn has_leftward(text: &str) -> bool {
    text.chars().any(is_leftward)
}

/// The pieces of a line, from left to right as seen, in the order of reading.
pub(super) fn reading_order(mut pieces: Vec<String>) -> String {
    let ways = resolve(&pieces);
    let left = ways.iter().filter(|w| **w == Way::Left).count();
    let right = ways.iter().filter(|w| **w == Way::Right).count();
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    if 4 * left >= right {
        order.reverse();
        turn_back(&mut order, |i| matches!(ways[i], Way::Right | Way::Number));
    } else {
        // Words that run to the left within a line that runs to the right, the numbers within them turned back.
        turn_back(&mut order, |i| ways[i] == Way::Left);
    }
    let mut out = String::new();
    for i in order {
        let mirror = ways[i] == Way::Left || (4 * left >= right && ways[i] == Way::Neutral);
        if mirror {
            out.extend(pieces[i].chars().map(mirrored));
        } else {
            out.push_str(&std::mem::take(&mut pieces[i]));
        }
    }
    out
}

/// Turns the stretches of pieces for which `belongs` holds.
fn turn_back(order: &mut [usize], belongs: impl Fn(usize) -> bool) {
    let mut at = 0;
    while at < order.len() {
        let length = order[at..].iter().take_while(|i| belongs(**i)).count();
        order[at..at + length].reverse();
        at += length.max(1);
    }
}

/// The way of each piece, what is neutral taken with what it stands between.
fn resolve(pieces: &[String]) -> Vec<Way> {
    let mut ways: Vec<Way> = pieces
        .iter()
        .map(|p| p.chars().map(way).find(|w| *w != Way::Neutral))
        .map(|w| w.unwrap_or(Way::Neutral))
        .collect();
    for i in 0..ways.len() {
        if ways[i] == Way::Separator {
            let number = |at: Option<usize>| at.and_then(|at| ways.get(at)).is_some_and(|w| *w == Way::Number);
            ways[i] = if number(i.checked_sub(1)) && number(Some(i + 1)) { Way::Number } else { Way::Neutral };
        }
    }
    let mut at = 0;
    while at < ways.len() {
        let length = ways[at..].iter().take_while(|w| **w == Way::Neutral).count();
        if length > 0 && at > 0 && at + length < ways.len() {
            let (before, after) = (ways[at - 1], ways[at + length]);
            let joined = match (before, after) {
                (Way::Right, Way::Right | Way::Number) | (Way::Number, Way::Right) => Some(Way::Right),
                (Way::Left, Way::Left) => Some(Way::Left),
                _ => None,
            };
            if let Some(way) = joined {
                ways[at..at + length].fill(way);
            }
        }
        at += length.max(1);
    }
    ways
}

fn way(c: char) -> Way {
    match c {
        '0'..='9' | '\u{660}'..='\u{669}' | '\u{6F0}'..='\u{6F9}' | '%' => Way::Number,
        '.' | ',' | ':' | '/' | '\u{66B}' | '\u{66C}' => Way::Separator,
        _ if is_leftward(c) => Way::Left,
        _ if c.is_alphabetic() => Way::Right,
        _ => Way::Neutral,
    }
}

fn is_leftward(c: char) -> bool {
    matches!(c, '\u{591}'..='\u{65F}' | '\u{66A}' | '\u{66D}'..='\u{6EF}' | '\u{6FA}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}'
        | '\u{FE70}'..='\u{FEFC}' | '\u{200F}' | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && c != '\u{60C}'
}

/// Whether it is written over or under the letter before it.
pub(super) fn is_mark(c: char) -> bool {
    unicode_normalization::char::is_combining_mark(c)
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '«' => '»',
        '»' => '«',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(seen: &str) -> String {
        reading_order(seen.chars().map(String::from).collect())
    }

    #[test]
    fn lines_are_turned() {
        assert_eq!(read("ةيبرعلا"), "العربية");
        assert_eq!(read(".םולש"), "שלום.");
        // A number and a Latin word keep their direction.
        assert_eq!(read("2024 ماع"), "عام 2024");
        assert_eq!(read("12.5 نمث"), "ثمن 12.5");
        assert_eq!(read("Python ةغل"), "لغة Python");
        assert_eq!(read("(Open Source) ةغل"), "لغة (Open Source)");
    }

    #[test]
    fn foreign_words_are_turned_within_a_line() {
        assert_eq!(read("the long word םולש means peace"), "the long word שלום means peace");
    }

    #[test]
    fn what_runs_to_the_right_is_left_alone() {
        assert_eq!(read("plain (text) 12"), "plain (text) 12");
    }
}
