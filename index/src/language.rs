//! The language of a text, and the stems of its words.

use snowball_stemmers_rs::{Algorithm, Stemmer};

use crate::extract::floor_boundary;

/// A language that texts are told by. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Language(u8);

/// whatlang's code, and the stemmer with the script whose words it is for. The place is the number stored, so new ones go to the
/// end. The first of a script is taken where the language is in doubt.
const KNOWN: &[(&str, Option<(Algorithm, Script)>)] = &[
    ("eng", Some((Algorithm::English, Script::Latin))),
    ("deu", Some((Algorithm::German, Script::Latin))),
    ("fra", Some((Algorithm::French, Script::Latin))),
    ("spa", Some((Algorithm::Spanish, Script::Latin))),
    ("ita", Some((Algorithm::Italian, Script::Latin))),
    ("por", Some((Algorithm::Portuguese, Script::Latin))),
    ("nld", Some((Algorithm::Dutch, Script::Latin))),
    ("swe", Some((Algorithm::Swedish, Script::Latin))),
    ("dan", Some((Algorithm::Danish, Script::Latin))),
    ("nob", Some((Algorithm::Norwegian, Script::Latin))),
    ("fin", Some((Algorithm::Finnish, Script::Latin))),
    ("hun", Some((Algorithm::Hungarian, Script::Latin))),
    ("ron", Some((Algorithm::Romanian, Script::Latin))),
    ("tur", Some((Algorithm::Turkish, Script::Latin))),
    ("rus", Some((Algorithm::Russian, Script::Cyrillic))),
    ("ell", Some((Algorithm::Greek, Script::Greek))),
    ("ara", Some((Algorithm::Arabic, Script::Arabic))),
    ("tam", Some((Algorithm::Tamil, Script::Tamil))),
    ("hin", Some((Algorithm::Hindi, Script::Devanagari))),
    ("hye", Some((Algorithm::Armenian, Script::Armenian))),
    ("yid", Some((Algorithm::Yiddish, Script::Hebrew))),
    ("ukr", Some((Algorithm::Ukrainian, Script::Cyrillic))),
    ("pes", Some((Algorithm::Persian, Script::Arabic))),
    ("nep", Some((Algorithm::Nepali, Script::Devanagari))),
    ("pol", Some((Algorithm::Polish, Script::Latin))),
    ("ces", Some((Algorithm::Czech, Script::Latin))),
    ("cat", Some((Algorithm::Catalan, Script::Latin))),
    ("est", Some((Algorithm::Estonian, Script::Latin))),
    ("lit", Some((Algorithm::Lithuanian, Script::Latin))),
    ("ind", Some((Algorithm::Indonesian, Script::Latin))),
    ("cmn", None),
    ("jpn", None),
    ("kor", None),
    ("tha", None),
    ("vie", None),
    ("heb", None),
    ("ben", None),
    ("mar", None),
    ("bul", None),
    ("bel", None),
    ("mkd", None),
    ("srp", None),
    ("hrv", None),
    ("slv", None),
    ("slk", None),
    ("lav", None),
    ("kat", None),
    ("tel", None),
    ("mal", None),
    ("kan", None),
    ("guj", None),
    ("pan", None),
    ("urd", None),
    ("mya", None),
    ("khm", None),
    ("tgl", None),
    ("epo", None),
];

/// A script whose words are stemmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Tamil,
    Devanagari,
    Armenian,
    Hebrew,
}

impl Script {
    fn of(c: char) -> Option<Self> {
        Some(match c {
            'a'..='z' | '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => Self::Latin,
            '\u{400}'..='\u{52F}' => Self::Cyrillic,
            '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Self::Greek,
            '\u{600}'..='\u{6FF}' | '\u{750}'..='\u{77F}' => Self::Arabic,
            '\u{B80}'..='\u{BFF}' => Self::Tamil,
            '\u{900}'..='\u{97F}' => Self::Devanagari,
            '\u{530}'..='\u{58F}' => Self::Armenian,
            '\u{590}'..='\u{5FF}' => Self::Hebrew,
            _ => return None,
        })
    }
}

impl Language {
    /// Also stands for a language that is in doubt.
    pub(crate) const ENGLISH: Self = Self(0);

    /// The language of a document, by its beginning.
    pub(crate) fn of(text: &str) -> Self {
        let found = detect(text).filter(whatlang::Info::is_reliable);
        found.and_then(|info| Self::known(info.lang())).unwrap_or(Self::ENGLISH)
    }

    /// The language of a query, which may be too short to be sure.
    pub(crate) fn guess(query: &str) -> Option<Self> {
        detect(query).and_then(|info| Self::known(info.lang()))
    }

    fn known(found: whatlang::Lang) -> Option<Self> {
        let at = KNOWN.iter().position(|(code, _)| *code == found.code())?;
        u8::try_from(at).ok().map(Self)
    }

    pub(crate) fn number(self) -> i64 {
        i64::from(self.0)
    }

    pub(crate) fn from_number(number: i64) -> Self {
        u8::try_from(number).ok().filter(|n| usize::from(*n) < KNOWN.len()).map_or(Self::ENGLISH, Self)
    }
}

fn detect(text: &str) -> Option<whatlang::Info> {
    whatlang::detect(&text[..floor_boundary(text, 4096)])
}

/// The stem of a lower-case word in a text of this language. A word of another script is stemmed as that script's own; a
/// word with digits, or of a script without a stemmer, stays as it is.
pub(crate) fn stem(word: &str, language: Language) -> String {
    let script = word.chars().find(|c| c.is_alphabetic()).and_then(Script::of);
    let own = usize::from(language.0);
    let at = match script {
        None => return word.to_owned(),
        _ if word.chars().any(char::is_numeric) => return word.to_owned(),
        Some(script) if is_of(own, script) => Some(own),
        Some(script) => (0..KNOWN.len()).find(|at| is_of(*at, script)),
    };
    let stemmer = at.and_then(|at| stemmers().get(at)).and_then(Option::as_ref);
    stemmer.map_or_else(|| word.to_owned(), |s| s.stem(word).into_owned())
}

/// Whether the stemmer of a language is for this script.
fn is_of(at: usize, script: Script) -> bool {
    KNOWN.get(at).and_then(|(_, stemmer)| stemmer.as_ref()).is_some_and(|(_, own)| *own == script)
}

/// The stems that a word has in texts of these languages, or of one in doubt; no two are the same.
pub(crate) fn stems(word: &str, languages: &[Language]) -> Vec<String> {
    let mut stems = Vec::new();
    for language in [Language::ENGLISH].iter().chain(languages) {
        let stem = stem(word, *language);
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

/// Made once: making one is cheap, asking for one a million times is not.
fn stemmers() -> &'static [Option<Stemmer>] {
    static STEMMERS: std::sync::OnceLock<Vec<Option<Stemmer>>> = std::sync::OnceLock::new();
    let make =
        |&(_, stemmer): &(_, Option<(Algorithm, Script)>)| stemmer.map(|(algorithm, _)| Stemmer::create(algorithm));
    STEMMERS.get_or_init(|| KNOWN.iter().map(make).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn language(code: &str) -> Language {
        let at = KNOWN.iter().position(|(known, ..)| *known == code).unwrap();
        Language::from_number(i64::try_from(at).unwrap())
    }

    #[test]
    fn a_text_is_told_by_its_words() {
        for (code, text) in [
            ("eng", "The landlord must repair the boiler within two weeks of being told that it does not heat."),
            ("pol", "Wynajmujący musi naprawić kocioł w ciągu dwóch tygodni od zgłoszenia, że nie grzeje."),
            ("ukr", "Орендодавець повинен полагодити котел протягом двох тижнів після повідомлення про несправність."),
            ("ces", "Pronajímatel musí opravit kotel do dvou týdnů od oznámení, že netopí."),
        ] {
            assert_eq!(Language::of(text), language(code), "{text}");
        }
        assert_eq!(Language::of("12345"), Language::ENGLISH);
        assert_eq!(Language::of("请在收到货物之后的三十天之内把发票寄到我们公司的财务部门。"), language("cmn"));
        assert_eq!(Language::guess("which team won the football world cup?"), Some(Language::ENGLISH));
        assert_eq!(Language::guess("谁赢得了世界杯"), Some(language("cmn")));
        assert_eq!(Language::guess("?!"), None);
    }

    #[test]
    fn the_script_of_a_word_comes_before_the_language_of_the_text() {
        assert_eq!(stem("houses", language("rus")), "hous");
        assert_eq!(stem("договора", language("deu")), stem("договор", language("rus")));
        assert_eq!(stem("qk7", language("eng")), "qk7");
        assert_eq!(stem("किताबें", language("eng")), stem("किताब", language("hin")));
        assert_eq!(stems("umowy", &[language("pol")]), ["umowi", "umow"]);
    }

    #[test]
    fn no_word_whatever_makes_a_stemmer_fail() {
        let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyzäößéèçñőțğıəабвгджзиійклмнопрстуєїґαβγδεάίاأبتثجحخدگپیअआइउकखगचजटािीुे्தமிழ்אבגדաբգ'\u{301}\u{64E}"
            .chars()
            .collect();
        let mut rng = Rng::new(5);
        for _ in 0..20_000 {
            let word: String = (0..1 + rng.below(18)).map(|_| letters[rng.below(letters.len())]).collect();
            for number in 0..KNOWN.len() {
                let stem = stem(&word, Language::from_number(i64::try_from(number).unwrap()));
                assert!(stem.len() <= word.len() + 8, "{word} gives {stem}");
            }
        }
    }
}
