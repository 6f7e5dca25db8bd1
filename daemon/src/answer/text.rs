//! Sentences and terms of a text, in any script.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// Ends of sentences that need no space behind them.
const FULL_STOPS: [char; 4] = ['。', '！', '？', '।'];

/// What makes a number an ordinal in English, French, Spanish and Portuguese; elsewhere it is a full stop or nothing.
const ORDINALS: [&str; 8] = ["st", "nd", "rd", "th", "er", "ème", "º", "ª"];

/// Byte ranges of the sentences of a text, white space around them left out. Lines end sentences too.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut from = 0;
    while let Some(end) = sentence_end(&text[from..], true) {
        push_trimmed(text, from..from + end, &mut out);
        from += end;
    }
    push_trimmed(text, from..text.len(), &mut out);
    out
}

fn push_trimmed(text: &str, range: Range<usize>, out: &mut Vec<Range<usize>>) {
    let part = &text[range.clone()];
    let trimmed = part.trim();
    if !trimmed.is_empty() {
        let start = range.start + (part.len() - part.trim_start().len());
        out.push(start..start + trimmed.len());
    }
}

/// Where the first sentence of `text` ends, if it does: after its mark, or before a line end. `complete` says that
/// nothing follows; else a mark at the very end is not decided yet.
pub fn sentence_end(text: &str, complete: bool) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    let mut seen = false;
    while let Some((at, c)) = chars.next() {
        let after = at + c.len_utf8();
        if c == '\n' && seen {
            return Some(at);
        }
        seen |= !c.is_whitespace();
        if FULL_STOPS.contains(&c) {
            return Some(after);
        }
        if matches!(c, '.' | '!' | '?' | '؟') {
            match chars.peek() {
                None => return complete.then_some(after),
                Some((_, next)) if next.is_whitespace() && !is_abbreviation(&text[..at]) => return Some(after),
                _ => {}
            }
        }
    }
    None
}

/// A full stop after a single letter or a listing number ("J. R.", "1.") ends no sentence.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let letters = word.chars().count();
    letters <= 1 || matches!(word, "Mr" | "Mrs" | "Ms" | "Dr" | "St" | "vs" | "No" | "e.g" | "i.e" | "etc" | "approx")
}

/// The terms that carry a sentence's content: words (lower case), numbers as they are written, and pairs of characters
/// for scripts without spaces.
pub fn terms(text: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    let mut word = String::new();
    let mut previous: Option<char> = None;
    for c in text.chars().chain(Some(' ')) {
        if is_unspaced(c) {
            flush(&mut word, &mut out);
            if let Some(p) = previous {
                out.insert([p, c].iter().collect());
            }
            previous = Some(c);
            continue;
        }
        previous = None;
        // Digits keep the marks inside them: 3.14, 1,000, 2:30.
        let inside_number = matches!(c, '.' | ',' | ':') && word.ends_with(|d: char| d.is_ascii_digit());
        if c.is_alphanumeric() || is_mark(c) || inside_number {
            word.extend(c.to_lowercase());
        } else {
            flush(&mut word, &mut out);
        }
    }
    out
}

fn flush(word: &mut String, out: &mut HashSet<String>) {
    let trimmed = word.trim_end_matches(['.', ',', ':']);
    if !trimmed.is_empty() {
        out.insert(cardinal(trimmed).replace(',', ""));
    }
    word.clear();
}

/// `12` of `12th`: documents and answers write the same day either way.
fn cardinal(word: &str) -> &str {
    let digits = ORDINALS.iter().find_map(|suffix| word.strip_suffix(suffix));
    digits.filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())).unwrap_or(word)
}

/// Whether a term holds a digit: such terms must match exactly to support anything.
pub fn is_number(term: &str) -> bool {
    term.contains(|c: char| c.is_ascii_digit())
}

/// Han, kana and Thai: written without spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{e00}'..='\u{e7f}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Combining marks of Indic and Arabic scripts belong to their word.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}'
        | '\u{962}'..='\u{963}')
}

/// Characters that deny, in Chinese and Japanese. Others that can (未, 非) stand more often in other words.
const DENYING: [char; 5] = ['不', '没', '沒', '无', '無'];

/// Whether a text denies something.
pub fn denies(text: &str) -> bool {
    static NEGATIONS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| include_str!("negations.txt").lines().flat_map(str::split_whitespace).collect());
    let text = text.to_lowercase().replace('’', "'");
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || is_mark(c) || c == '\''));
    text.contains(DENYING) || words.any(|word| NEGATIONS.contains(word))
}

/// The names in a sentence, in lower case: words written with a capital letter that do not begin it.
pub fn names(sentence: &str) -> Vec<String> {
    let words = sentence.split(|c: char| !(c.is_alphanumeric() || is_mark(c))).filter(|word| !word.is_empty());
    let capital = |word: &&str| word.starts_with(char::is_uppercase) && word.chars().nth(1).is_some();
    words.skip(1).filter(capital).map(str::to_lowercase).filter(|word| !is_filler(word)).collect()
}

/// Words that occur in any sentence and so support nothing: articles, prepositions, pronouns, auxiliaries.
pub fn is_filler(term: &str) -> bool {
    static FILLERS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| include_str!("fillers.txt").lines().flat_map(str::split_whitespace).collect());
    FILLERS.contains(term)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|r| &text[r]).collect()
    }

    #[test]
    fn sentences_end_at_marks_and_lines() {
        assert_eq!(
            cut("Rent is 3.50 a day. Dr. No pays!  Why?\nA list\n- one"),
            ["Rent is 3.50 a day.", "Dr. No pays!", "Why?", "A list", "- one"]
        );
        assert_eq!(cut("他住在北京。他多大？二十"), ["他住在北京。", "他多大？", "二十"]);
        assert_eq!(cut(" \n "), [""; 0]);
    }

    #[test]
    fn an_open_mark_is_decided_by_what_follows() {
        assert_eq!(sentence_end("It costs 3.", false), None);
        assert_eq!(sentence_end("It costs 3.", true), Some(11));
        assert_eq!(sentence_end("It costs 3.5 euro", false), None);
        assert_eq!(sentence_end("Done. Next", false), Some(5));
    }

    #[test]
    fn ordinals_are_their_numbers() {
        assert_eq!(terms("March 12th, le 1er mai, 2º"), terms("March 12, le 1 mai, 2"));
        assert_eq!(terms("th 5x 12thx A1st").len(), 4);
        assert!(terms("A1st").contains("a1st"));
    }

    #[test]
    fn names_begin_with_a_capital_and_no_sentence() {
        assert_eq!(names("The landlord is Marta O'Brien of Ålesund, I think."), ["marta", "brien", "ålesund"]);
        assert_eq!(names("Rent is due."), [""; 0]);
    }

    #[test]
    fn denials_are_words_or_characters() {
        for text in
            ["Pets are not allowed.", "They don’t pay", "Haustiere sind NICHT erlaubt", "不能养宠物", "यह नहीं है"]
        {
            assert!(denies(text), "{text}");
        }
        for text in ["Pets are allowed.", "A knot in Nottingham", "可以养宠物", "The notice is due"] {
            assert!(!denies(text), "{text}");
        }
    }

    #[test]
    fn terms_of_words_numbers_and_characters() {
        let t = terms("The Fee: 1,200.50 EUR, 北京市");
        for term in ["the", "fee", "1200.50", "eur", "北京", "京市"] {
            assert!(t.contains(term), "{term} in {t:?}");
        }
        assert_eq!(t.len(), 6);
    }
}
