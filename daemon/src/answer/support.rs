//! Which passage supports a sentence of an answer, by the passage's own words and never by the model's claim.

use std::collections::HashSet;
use std::ops::Range;

use super::text::{is_filler, is_number, sentences, terms};

/// Share of a sentence's content terms that one passage must hold: below it the sentence says something else.
const MIN_SHARE: f32 = 0.6;

/// Text that may support an answer, prepared once.
#[derive(Debug)]
pub struct Evidence {
    terms: HashSet<String>,
    sentences: Vec<(Range<usize>, HashSet<String>)>,
}

impl Evidence {
    /// Prepares a passage.
    pub fn new(passage: &str) -> Self {
        let sentences = sentences(passage).into_iter().map(|r| (r.clone(), terms(&passage[r]))).collect();
        Self { terms: terms(passage), sentences }
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

/// Finds the passage that supports `sentence` best. Words of the question prove nothing by themselves: they count less,
/// and every number of the sentence must stand in the passage or in the question.
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
    let mut best: Option<Support> = None;
    for (passage, evidence) in passages.iter().enumerate() {
        let unknown_number =
            content.iter().any(|t| is_number(t) && !question.contains(*t) && !evidence.terms.contains(*t));
        let share = content.iter().filter(|t| evidence.terms.contains(**t)).map(|t| weight(t)).sum::<f32>() / total;
        if unknown_number || share < MIN_SHARE || best.as_ref().is_some_and(|b| b.share >= share) {
            continue;
        }
        let overlap = |terms: &HashSet<String>| content.iter().filter(|t| terms.contains(**t)).map(|t| weight(t)).sum();
        let quote = evidence
            .sentences
            .iter()
            .map(|(range, terms)| (overlap(terms), range))
            .fold((0f32, None), |best, (score, range)| if score > best.0 { (score, Some(range)) } else { best });
        if let (_, Some(range)) = quote {
            best = Some(Support { passage, quote: range.clone(), share });
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
}
