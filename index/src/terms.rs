//! Text → the terms of the full-text index. One function serves documents and queries, so that both sides always agree.
//!
//! - Text is brought to NFKC and lower case; soft hyphens and joiners go, combining marks stay (Hindi is unreadable to a
//!   search that drops them).
//! - Words of spaced scripts become their Snowball stem. A document is stemmed in its own language; a query word is looked
//!   up by its stems in all languages that the index has, as one group.
//! - Han, kana, hangul, Thai and other scripts without spaces become characters and pairs of characters, and so do emoji.
//! - Words joined by `-`, `_`, `.` and the like, and words of letters and digits or of mixed case, are indexed in parts and
//!   whole: `QK7-2231` is found by `2231`, by `qk7`, and best by itself.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::extract::floor_boundary;
use crate::language::{Language, stem, stems};
use crate::limits::{PREFIX_LETTERS_MIN, TERM_BYTES_MAX};

/// Changes whenever [`document_terms`] would give other terms than before; the full-text table is then rebuilt.
pub(crate) const VERSION: i64 = 4;

/// Stands for any joiner inside a whole identifier.
const JOINER: char = '\u{E000}';

/// Terms of a text with their counts, and the text's length in terms (whole identifiers not counted again).
#[derive(Debug, Default, Clone)]
pub(crate) struct Terms {
    pub counts: HashMap<String, u32>,
    pub length: u32,
}

/// Terms of document text, in the document's language.
pub(crate) fn document_terms(text: &str, language: Language, out: &mut Terms) {
    tokens(text, &mut |token| match token {
        Token::Word(word) => {
            out.add(stem(word, language));
            out.length = out.length.saturating_add(1);
        }
        Token::Gram(gram) => {
            out.add(gram.to_owned());
            out.length = out.length.saturating_add(1);
        }
        Token::Whole(whole) => out.add(whole.to_owned()),
    });
}

impl Terms {
    fn add(&mut self, term: String) {
        let count = self.counts.entry(term).or_insert(0);
        *count = count.saturating_add(1);
    }
}

/// A word of a query: any of its forms counts as the word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub forms: Vec<String>,
    pub role: Role,
}

/// What a group stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// A word, by its stems.
    Word,
    /// Characters of a script without spaces, or an identifier as a whole.
    Exact,
    /// All words that begin so: `boil*`.
    Beginning,
}

/// Groups of a query, in the order of the query, without repeats: a word that a question has twice is no more wanted.
pub(crate) fn query_groups(text: &str, languages: &[Language]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: HashSet<Group> = HashSet::new();
    let mut add = |group: Group| {
        if known.insert(group.clone()) {
            groups.push(group);
        }
    };
    tokens(text, &mut |token| {
        add(match token {
            Token::Word(word) => Group { forms: stems(word, languages), role: Role::Word },
            Token::Gram(one) | Token::Whole(one) => Group { forms: vec![one.to_owned()], role: Role::Exact },
        });
    });
    for beginning in text.split_whitespace().filter_map(beginning) {
        add(Group { forms: vec![beginning], role: Role::Beginning });
    }
    groups
}

/// The beginning that `boil*` stands for. `**bold**` and `*` alone stand for none.
fn beginning(word: &str) -> Option<String> {
    let beginning = word.strip_suffix('*').filter(|w| w.chars().count() >= PREFIX_LETTERS_MIN)?;
    let plain: Vec<char> = beginning.nfkc().collect();
    plain.iter().all(|c| is_word(*c)).then(|| cap(&lower(&plain)).to_owned())
}

/// A text for comparing phrases: the letters of its words as [`document_terms`] sees them, with one space between words.
pub(crate) fn fold(text: &str) -> String {
    let mut letters: Vec<char> = Vec::with_capacity(text.len());
    for c in text.nfkc().filter(|c| !is_ignored(*c)) {
        match is_word(c) || is_dense(c) {
            true => letters.push(c),
            false if letters.last().is_some_and(|last| *last != ' ') => letters.push(' '),
            false => {}
        }
    }
    let mut folded = lower(&letters);
    folded.truncate(folded.trim_end().len());
    folded
}

enum Token<'a> {
    /// A word of a spaced script.
    Word(&'a str),
    /// A character or a pair of a script without spaces.
    Gram(&'a str),
    /// An identifier as a whole, besides its parts.
    Whole(&'a str),
}

/// Whether words of this script are not set apart by spaces (or, for hangul, carry particles that grams see through).
pub(crate) fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2FDF}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{30FF}'
        | '\u{3100}'..='\u{318F}' | '\u{31A0}'..='\u{31FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}'
        | '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}')
        && (c.is_alphanumeric() || is_combining_mark(c) || c == 'ー')
        || is_emoji(c)
}

/// Pictures among text, which a person may look for as for a word: emoji, dingbats, weather and the like.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2600}'..='\u{27BF}' | '\u{1F300}'..='\u{1FAFF}')
}

/// Whether a character belongs to a word that spaces set apart.
pub(crate) fn is_word(c: char) -> bool {
    !is_dense(c) && (c.is_alphanumeric() || is_combining_mark(c))
}

/// Characters that vanish: soft hyphen, zero-width joiners and spaces, direction marks, Arabic tatweel, BOM.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{640}' | '\u{FEFF}')
}

fn is_joiner(c: char) -> bool {
    matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | '#' | '\u{2010}' | '\u{2011}')
}

fn tokens(text: &str, emit: &mut dyn FnMut(Token<'_>)) {
    // One line at a time keeps the copy small; no token crosses a line end (a Chinese word broken over two lines loses one pair).
    let mut line: Vec<char> = Vec::new();
    for c in text.nfkc().filter(|c| !is_ignored(*c)) {
        if c == '\n' || line.len() >= 1 << 16 {
            line_tokens(&line, emit);
            line.clear();
        }
        line.push(c);
    }
    line_tokens(&line, emit);
}

fn line_tokens(line: &[char], emit: &mut dyn FnMut(Token<'_>)) {
    let mut at = 0;
    while at < line.len() {
        if is_dense(line[at]) {
            let end = run(line, at, is_dense);
            grams(&line[at..end], emit);
            at = end;
        } else if is_word(line[at]) {
            at = compound(line, at, emit);
        } else {
            at += 1;
        }
    }
}

fn run(line: &[char], from: usize, belongs: impl Fn(char) -> bool) -> usize {
    line[from..].iter().position(|&c| !belongs(c)).map_or(line.len(), |n| from + n)
}

/// Characters with their marks, and pairs of them.
fn grams(run: &[char], emit: &mut dyn FnMut(Token<'_>)) {
    let mut before: Option<&[char]> = None;
    let mut at = 0;
    while at < run.len() {
        let marks = run[at + 1..].iter().take_while(|c| is_combining_mark(**c)).take(4).count();
        let one = &run[at..at + 1 + marks];
        let text: String = one.iter().collect();
        emit(Token::Gram(&text));
        if let Some(before) = before {
            let pair: String = before.iter().chain(one).collect();
            emit(Token::Gram(&pair));
        }
        before = Some(one);
        at += one.len();
    }
}

/// Words joined without spaces, from `from`; gives the end.
fn compound(line: &[char], from: usize, emit: &mut dyn FnMut(Token<'_>)) -> usize {
    let mut whole = String::new();
    let mut parts = 0;
    let mut at = from;
    loop {
        let end = run(line, at, |c| is_word(c) || c == '\'' || c == '\u{2019}');
        let word = &line[at..end];
        parts += word_parts(word, emit);
        if whole.len() <= TERM_BYTES_MAX {
            whole.push_str(&lower(word));
        }
        at = end;
        let joins = line.get(at).is_some_and(|&c| is_joiner(c)) && line.get(at + 1).is_some_and(|&c| is_word(c));
        if !joins {
            break;
        }
        whole.push(JOINER);
        at += 1;
    }
    if parts > 1 {
        emit(Token::Whole(cap(&whole)));
    }
    at
}

/// The word itself, and its parts where case changes inside it; gives how many words it emitted.
fn word_parts(word: &[char], emit: &mut dyn FnMut(Token<'_>)) -> usize {
    let text = lower(word);
    let text = strip_possessive(&text);
    if text.is_empty() {
        return 0;
    }
    emit(Token::Word(cap(text)));
    let mut from = 0;
    let mut humps = Vec::new();
    for i in 1..word.len() {
        if word[i].is_uppercase() && word[i - 1].is_lowercase() {
            humps.push(&word[from..i]);
            from = i;
        }
    }
    if from > 0 {
        humps.push(&word[from..]);
        for hump in humps.iter().filter(|h| h.len() > 1) {
            emit(Token::Word(cap(&lower(hump))));
        }
    }
    1
}

fn lower(word: &[char]) -> String {
    let mut out = String::with_capacity(word.len());
    for &c in word {
        match c {
            'ß' | 'ẞ' => out.push_str("ss"),
            'ς' => out.push('σ'),
            '\u{2019}' => out.push('\''),
            _ => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// `Anna's` is `Anna`, `don't` stays one word.
fn strip_possessive(word: &str) -> &str {
    let word = word.trim_matches('\'');
    word.strip_suffix("'s").unwrap_or(word)
}

fn cap(term: &str) -> &str {
    &term[..floor_boundary(term, TERM_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut out = Terms::default();
        document_terms(text, Language::of(text), &mut out);
        let mut all: Vec<String> = out.counts.into_keys().map(|t| t.replace(JOINER, "+")).collect();
        all.sort();
        all
    }

    /// Share of the query's groups that the document has.
    fn share(query: &str, document: &str) -> f32 {
        let mut out = Terms::default();
        let language = Language::of(document);
        document_terms(document, language, &mut out);
        let groups = query_groups(query, &[Language::ENGLISH, language]);
        let found = groups.iter().filter(|g| g.forms.iter().any(|f| out.counts.contains_key(f))).count();
        found as f32 / groups.len() as f32
    }

    #[test]
    fn emoji_are_found() {
        assert_eq!(terms("a 🤠😅!"), ["a", "😅", "🤠", "🤠😅"]);
        assert_eq!(share("🤠", "yes 🤠"), 1.0);
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        assert_eq!(terms("The Heat PUMPS were running"), ["heat", "pump", "run", "the", "were"]);
        assert_eq!(terms("ﬁle Ｆｕｌｌ co\u{AD}operate"), ["cooper", "file", "full"]);
        assert_eq!(terms("Anna's don't"), ["anna", "don't"]);
    }

    #[test]
    fn identifiers_are_found_in_parts_and_whole() {
        assert_eq!(terms("QK7-2231"), ["2231", "qk7", "qk7+2231"]);
        assert_eq!(terms("gen-itgc后"), ["gen", "gen+itgc", "itgc", "后"]);
        assert_eq!(terms("parseFile"), ["file", "pars", "parsefil"]);
        assert_eq!(share("gen-itgc后", "说明：gen-itgc后 需要重新生成"), 1.0);
    }

    #[test]
    fn two_characters_inside_a_long_sentence() {
        assert_eq!(share("发票", "请在收到货物之后的三十天之内把发票寄到我们公司的财务部门"), 1.0);
        assert!(share("发票", "请在收到货物之后把清单寄到公司") < 0.5);
        assert_eq!(share("東京", "来週は東京タワーに行きます"), 1.0);
    }

    #[test]
    fn each_script_finds_its_inflected_words() {
        assert_eq!(
            share("Wärmepumpen", "Die Wärmepumpe ist im Keller und sie ist nicht laut, sagt der Hausmeister heute"),
            1.0
        );
        assert_eq!(share("ค่าเช่า", "กรุณาชำระค่าเช่าก่อนวันที่ห้าของเดือน"), 1.0);
        assert_eq!(share("किराया", "इस महीने का किराया पाँच तारीख तक देना है"), 1.0);
        assert_eq!(share("المكتبة", "ذهبت إلى مكتبة المدينة أمس"), 1.0);
        assert_eq!(share("임대료", "이번 달 임대료를 납부하세요"), 1.0);
        assert_eq!(share("договор", "условия договора аренды"), 1.0);
    }

    #[test]
    fn marks_stay_with_their_letters() {
        assert_eq!(terms("বাংলা কি"), ["কি", "বাংলা"]);
        assert_eq!(terms("हिन्दी").len(), 1);
        assert!(terms("e\u{301}te\u{301}").contains(&"été".to_owned()) || terms("été")[0].starts_with("ét"));
    }

    #[test]
    fn long_words_are_cut_alike() {
        let long = "x".repeat(500);
        assert_eq!(terms(&long)[0].len(), TERM_BYTES_MAX);
        assert_eq!(share(&long, &format!("a {long} b")), 1.0);
    }

    #[test]
    fn repeats_in_a_query_do_not_count() {
        assert_eq!(query_groups("data about data", &[]).len(), 2);
    }

    #[test]
    fn a_star_after_a_word_makes_it_a_beginning() {
        let beginnings = |query| -> Vec<String> {
            let groups = query_groups(query, &[]);
            groups.into_iter().filter(|g| g.role == Role::Beginning).flat_map(|g| g.forms).collect()
        };
        assert_eq!(beginnings("Boil* the ÄRZT*"), ["boil", "ärzt"]);
        assert!(beginnings("* a* **bold** 2*3 x-y* boil").is_empty());
    }

    #[test]
    fn folding_leaves_words_and_single_spaces() {
        assert_eq!(fold("  ﬁne—“Print”,\n\n(b) 2.5\u{AD}%"), "fine print b 2 5");
        assert_eq!(fold("?!"), "");
    }
}
