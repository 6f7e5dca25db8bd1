//! Lets an answer through sentence by sentence, as it is written: what has support is said and numbered, the rest is withheld.

use std::collections::HashSet;

use super::support::{Evidence, Support, find};
use super::text::{is_filler, sentence_end, terms};

/// A part of the answer that may be said.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    /// The text, white space before it included.
    pub text: String,
    /// What supports it.
    pub support: Support,
}

/// Cuts a stream of text into sentences and finds the support of each.
#[derive(Debug)]
pub struct Citer<'a> {
    question: &'a str,
    asked: HashSet<String>,
    evidence: &'a [Evidence],
    /// The sentence in work.
    sentence: String,
    /// What says nothing by itself and waits for the sentence that it leads to: "Yes.", "The steps are:".
    lead: String,
    said: usize,
    withheld: usize,
}

impl<'a> Citer<'a> {
    /// A citer for an answer to `question` from these passages.
    pub fn new(question: &'a str, evidence: &'a [Evidence]) -> Self {
        let (sentence, lead) = (String::new(), String::new());
        Self { question, asked: terms(question), evidence, sentence, lead, said: 0, withheld: 0 }
    }

    /// Takes text as it is generated.
    pub fn push(&mut self, text: &str) -> Vec<Said> {
        self.sentence.push_str(text);
        self.complete(false)
    }

    /// Takes the end of the answer.
    pub fn finish(&mut self) -> Vec<Said> {
        let mut said = self.complete(true);
        let rest = std::mem::take(&mut self.sentence);
        said.extend(self.judge(rest.trim_end()));
        let lead = std::mem::take(&mut self.lead);
        if self.said == 0 && self.withheld == 0 && !lead.trim().is_empty() {
            // A bare yes or no: the passage that speaks of what was asked lets a person judge it.
            match find(self.question, &HashSet::new(), self.evidence) {
                Some(support) => {
                    self.said += 1;
                    said.push(Said { text: lead.trim_end().to_owned(), support });
                }
                None => self.withheld += 1,
            }
        }
        said
    }

    /// Sentences without support.
    pub fn withheld(&self) -> usize {
        self.withheld
    }

    fn complete(&mut self, ended: bool) -> Vec<Said> {
        let mut said = Vec::new();
        while let Some(end) = sentence_end(&self.sentence, ended) {
            let rest = self.sentence.split_off(end);
            let sentence = std::mem::replace(&mut self.sentence, rest);
            said.extend(self.judge(&sentence));
        }
        said
    }

    fn judge(&mut self, sentence: &str) -> Option<Said> {
        let sentence = without_marks(sentence);
        if sentence.trim().is_empty() {
            return None;
        }
        let leads = sentence.trim_end().ends_with([':', '：']) || terms(&sentence).iter().all(|term| is_filler(term));
        if leads {
            self.lead.push_str(&sentence);
            return None;
        }
        let lead = std::mem::take(&mut self.lead);
        if let Some(support) = find(without_passage_number(&sentence), &self.asked, self.evidence) {
            self.said += 1;
            return Some(Said { text: lead + &sentence, support });
        }
        self.withheld += 1;
        None
    }
}

/// The sentence without numbers in brackets: only this program numbers sources, and never because a text says so.
fn without_marks(sentence: &str) -> String {
    let mut kept = String::with_capacity(sentence.len());
    let mut rest = sentence;
    while let Some(at) = rest.find('[') {
        let inside = rest[at + 1..].find(']').map(|end| &rest[at + 1..at + 1 + end]);
        match inside {
            Some(inside) if inside.split(',').all(|n| matches!(n.trim().parse::<u8>(), Ok(0..100))) => {
                kept.push_str(rest[..at].trim_end());
                rest = &rest[at + inside.len() + 2..];
            }
            _ => {
                kept.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// The sentence behind "According to passage 2,": that number is none of the document's.
fn without_passage_number(sentence: &str) -> &str {
    let lower = sentence.to_ascii_lowercase();
    let Some(at) = lower.find("passage ") else { return sentence };
    let behind = lower[at + "passage ".len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    let before = lower[..at].trim_start();
    let digits = lower.len() - at - "passage ".len() - behind.len();
    if digits == 0 || !(before.is_empty() || before == "according to ") {
        sentence
    } else {
        &sentence[lower.len() - behind.len()..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: [&str; 3] =
        ["The rent is 1,200 euro.", "The deposit is 3,600 euro.", "Pets are not allowed in the flat."];

    /// What is said, with the number of the passage behind each part, and how many sentences are not.
    fn said(question: &str, answer: &str, width: usize) -> (String, usize) {
        let evidence = LEASE.map(Evidence::new);
        let mut citer = Citer::new(question, &evidence);
        let chars: Vec<char> = answer.chars().collect();
        let mut parts: Vec<Said> =
            chars.chunks(width).flat_map(|c| citer.push(&c.iter().collect::<String>())).collect();
        parts.extend(citer.finish());
        let text = parts.iter().map(|s| format!("{} [{}]", s.text, s.support.passage + 1)).collect();
        (text, citer.withheld())
    }

    #[test]
    fn only_sentences_with_support_are_said_however_the_text_is_cut() {
        let answer = "The rent is 1,200 euro. The sky is green today. The deposit is 3,600 euro.\nIt is 1,300 euro.";
        for width in [1, 3, 7, 100] {
            let expected = ("The rent is 1,200 euro. [1] The deposit is 3,600 euro. [2]".to_owned(), 2);
            assert_eq!(said("What must I pay?", answer, width), expected, "cut by {width}");
        }
    }

    #[test]
    fn what_leads_to_a_sentence_is_said_with_it_or_not_at_all() {
        let question = "What must I pay?";
        let both = "These are the amounts:\n- Rent: 1,200 euro\n- Deposit: 3,600 euro";
        assert_eq!(
            said(question, both, 5).0,
            "These are the amounts:\n- Rent: 1,200 euro [1]\n- Deposit: 3,600 euro [2]"
        );
        assert_eq!(said(question, "Yes. The moon is made of cheese.", 5), (String::new(), 1));
        assert_eq!(said("Are pets allowed in the flat?", "No.", 5), ("No. [3]".to_owned(), 0));
        assert_eq!(said("Is the moon made of cheese?", "Yes.", 5), (String::new(), 1));
    }

    #[test]
    fn numbers_of_sources_are_not_taken_from_the_model() {
        let question = "How much is the rent?";
        assert_eq!(said(question, "The rent is 1,200 euro [2][3].", 4).0, "The rent is 1,200 euro. [1]");
        assert_eq!(said(question, "According to passage 7, the rent is 1,200 euro.", 4).0.len(), 51);
        assert_eq!(said(question, "The rent is [1,300] euro [a].", 4).1, 1);
    }
}
