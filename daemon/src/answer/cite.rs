//! Puts citations into an answer as it is written: whenever a sentence is complete, its support is looked for and a
//! number is set behind it.

use std::collections::HashSet;

use super::support::{Evidence, Support, find};
use super::text::sentence_end;

/// What the writer of the stream should do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Show this text.
    Text(String),
    /// A sentence is complete and supported here; number it.
    Cite(Support),
}

/// Cuts a stream of text into sentences and finds the support of each.
#[derive(Debug)]
pub struct Citer {
    question: HashSet<String>,
    evidence: Vec<Evidence>,
    /// The sentence in work.
    sentence: String,
    /// Bytes of it that were handed out.
    shown: usize,
    supported: usize,
    unsupported: usize,
}

impl Citer {
    /// A citer for an answer from these passages.
    pub fn new(question: HashSet<String>, passages: &[&str]) -> Self {
        let evidence = passages.iter().map(|p| Evidence::new(p)).collect();
        Self { question, evidence, sentence: String::new(), shown: 0, supported: 0, unsupported: 0 }
    }

    /// Takes text as it is generated.
    pub fn push(&mut self, text: &str) -> Vec<Step> {
        self.sentence.push_str(text);
        self.steps(false)
    }

    /// Takes the end of the answer.
    pub fn finish(&mut self) -> Vec<Step> {
        let mut steps = self.steps(true);
        let rest = std::mem::take(&mut self.sentence);
        let end = rest.trim_end().len().max(self.shown);
        if self.shown < end {
            steps.push(Step::Text(rest[self.shown..end].to_owned()));
        }
        self.shown = 0;
        steps.extend(self.judge(&rest));
        steps
    }

    /// Sentences with support, and without.
    pub fn counts(&self) -> (usize, usize) {
        (self.supported, self.unsupported)
    }

    fn steps(&mut self, complete: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(end) = sentence_end(&self.sentence, complete) {
            let rest = self.sentence.split_off(end);
            let sentence = std::mem::replace(&mut self.sentence, rest);
            if self.shown < sentence.len() {
                steps.push(Step::Text(sentence[self.shown..].to_owned()));
            }
            self.shown = 0;
            steps.extend(self.judge(&sentence));
        }
        // White space at the end waits: a number goes before it.
        let end = self.sentence.trim_end().len();
        if self.shown < end && !self.sentence.is_empty() {
            steps.push(Step::Text(self.sentence[self.shown..end].to_owned()));
            self.shown = end;
        }
        steps
    }

    fn judge(&mut self, sentence: &str) -> Option<Step> {
        if sentence.trim().is_empty() {
            return None;
        }
        match find(sentence, &self.question, &self.evidence) {
            Some(support) => {
                self.supported += 1;
                Some(Step::Cite(support))
            }
            None => {
                self.unsupported += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::terms;
    use super::*;

    #[test]
    fn numbers_stand_behind_their_sentences_however_the_text_is_cut() {
        let passages = ["The rent is 1,200 euro.", "The deposit is 3,600 euro."];
        let answer = "The rent is 1,200 euro. The deposit is 3,600 euro.\nThe sky is green today.";
        for width in [1, 3, 7, 100] {
            let mut citer = Citer::new(terms("What must I pay?"), &passages);
            let chars: Vec<char> = answer.chars().collect();
            let mut steps: Vec<Step> =
                chars.chunks(width).flat_map(|c| citer.push(&c.iter().collect::<String>())).collect();
            steps.extend(citer.finish());
            let shown: String = steps
                .iter()
                .map(|s| match s {
                    Step::Text(t) => t.clone(),
                    Step::Cite(s) => format!(" [{}]", s.passage + 1),
                })
                .collect();
            assert_eq!(
                shown, "The rent is 1,200 euro. [1] The deposit is 3,600 euro. [2]\nThe sky is green today.",
                "cut by {width}"
            );
            assert_eq!(citer.counts(), (2, 1));
        }
    }
}
