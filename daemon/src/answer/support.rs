//! Which passage supports a sentence of an answer, by the passage's own words and never by the model's claim.

use std::collections::HashSet;
use std::ops::Range;

use super::text::{denies, is_filler, is_number, names, sentences, terms};

/// Share of a sentence's content terms that one passage must hold: below it the sentence says something else.
const MIN_SHARE: f32 = 0.6;

/// Text that may support an answer, prepared once.
#[derive(Debug)]
pub struct Evidence {
    terms: HashSet<String>,
    sentences: Vec<Sentence>,
}

#[derive(Debug)]
struct Sentence {
    /// Bytes of the passage.
    range: Range<usize>,
    terms: HashSet<String>,
    denies: bool,
}

impl Evidence {
    /// Prepares a passage.
    pub fn new(passage: &str) -> Self {
        let sentences = sentences(passage).into_iter().map(|range| {
            let text = &passage[range.clone()];
            Sentence { terms: terms(text), denies: denies(text), range }
        });
        Self { terms: terms(passage), sentences: sentences.collect() }
    }

    /// Whether it has this term, or a form of it.
    fn has(&self, term: &str) -> bool {
        self.terms.contains(term) || !is_number(term) && self.terms.iter().any(|other| is_form(term, other))
    }
}

/// The place that supports a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Support {
    /// Which passage.
    pub passage: usize,
    /// The passage's sentence that says it, as bytes of the passage.
    pub quote: Range<usize>,
    /// Share of the sentence's content terms in the passage, 0 to 1.
    pub share: f32,
}

/// Whether two words are forms of one: one is the other with an end of up to three letters, as `Olsens` for `Olsen`.
fn is_form(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|end| end.chars().count() <= 3) && short.chars().nth(3).is_some()
}

/// Finds the passage that supports `sentence` best, and the sentence there that says it.
///
/// - The passage must have at least [`MIN_SHARE`] of the sentence's content terms, by weight. Words of the question prove
///   nothing by themselves, so they count less.
/// - Every number and every name of the sentence must stand in the passage or in the question.
/// - A sentence that denies something needs one there that denies.
pub fn find(sentence: &str, question: &HashSet<String>, passages: &[Evidence]) -> Option<Support> {
    let all = terms(sentence);
    let content: Vec<&String> = all.iter().filter(|t| !is_filler(t)).collect();
    if content.is_empty() {
        return None;
    }
    let weight = |t: &str| match (question.contains(t), is_number(t)) {
        (true, _) => 0.3,
        (false, true) => 2.0,
        (false, false) => 1.0,
    };
    let total: f32 = content.iter().map(|t| weight(t)).sum();
    let numbers: Vec<&String> = content.iter().copied().filter(|t| is_number(t) && !question.contains(*t)).collect();
    let mut names = names(sentence);
    names.retain(|name| !question.contains(name));
    let denied = denies(sentence);
    let mut best: Option<Support> = None;
    for (passage, evidence) in passages.iter().enumerate() {
        let share = content.iter().filter(|t| evidence.has(t)).map(|t| weight(t)).sum::<f32>() / total;
        let known = numbers.iter().all(|n| evidence.has(n)) && names.iter().all(|n| evidence.has(n));
        if !known || share < MIN_SHARE || best.as_ref().is_some_and(|b| b.share >= share) {
            continue;
        }
        let overlap = |s: &Sentence| content.iter().filter(|t| s.terms.contains(**t)).map(|t| weight(t)).sum::<f32>();
        let saying = evidence
            .sentences
            .iter()
            .map(|s| (overlap(s), s))
            .fold((0f32, None), |best, (score, s)| if score > best.0 { (score, Some(s)) } else { best });
        if let (_, Some(said)) = saying
            && (said.denies || !denied)
        {
            best = Some(Support { passage, quote: said.range.clone(), share });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: &str = "The lease began on 1 May 2021. The monthly rent is 1,200 euro. Pets are not allowed.";
    const OTHER: &str = "The garden has 1,200 roses and a small pond.";

    fn found(sentence: &str, question: &str) -> Option<(usize, &'static str)> {
        let passages = [OTHER, LEASE];
        let evidence = passages.map(Evidence::new);
        find(sentence, &terms(question), &evidence).map(|s| (s.passage, &passages[s.passage][s.quote]))
    }

    #[test]
    fn the_sentence_that_says_it_is_quoted() {
        let question = "How much is the rent?";
        assert_eq!(found("The rent is 1200 euro a month.", question), Some((1, "The monthly rent is 1,200 euro.")));
        assert_eq!(found("It began on 1 May 2021.", "When?"), Some((1, "The lease began on 1 May 2021.")));
    }

    #[test]
    fn pronouns_of_the_question_are_no_content() {
        let note = ["Dentist: Dr. Fields, next visit on 12 March."].map(Evidence::new);
        let answer = "You will see your dentist on 12 March.";
        assert!(find(answer, &terms("When do I see the dentist?"), &note).is_some());
        assert!(
            find(
                "The next dentist appointment is on March 12th.",
                &terms("When is my next dentist appointment?"),
                &note
            )
            .is_some()
        );
        assert!(find("You will see your dentist on 13 March.", &terms("When do I see the dentist?"), &note).is_none());
    }

    #[test]
    fn wrong_numbers_and_other_words_have_no_support() {
        assert_eq!(found("The rent is 1300 euro a month.", "How much is the rent?"), None);
        assert_eq!(found("The landlord lives in Vienna near the station.", "Where does the landlord live?"), None);
        assert_eq!(found("It is the.", "What?"), None);
    }

    #[test]
    fn names_must_stand_in_the_passage_or_the_question() {
        let question = "Since when does Marta rent the flat?";
        assert!(found("Marta rents it since 1 May 2021; the lease began then.", question).is_some());
        assert_eq!(found("The lease with Peter Holm began on 1 May 2021.", question), None);
        let german = ["Die Miete des Hauses Olsen beträgt 900 Euro."].map(Evidence::new);
        assert!(
            find("Die Miete für Olsens Haus beträgt 900 Euro.", &terms("Wie hoch ist die Miete?"), &german).is_some()
        );
    }

    #[test]
    fn what_denies_needs_a_denial() {
        assert!(found("Pets are not allowed.", "Are pets allowed?").is_some());
        assert_eq!(found("The monthly rent is not 1,200 euro.", "How much is the rent?"), None);
    }
}
