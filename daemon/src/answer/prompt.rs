//! The prompt: passages first, then the question. Its wording stands in `prompts/`.

use satchel_engine::chat::{ChatTemplate, Message};
use satchel_engine::error::RunError;
use satchel_engine::{Special, Tokenizer};
use satchel_ipc::wire::{Role, Turn};

const QUESTION: &str = include_str!("../../prompts/question.txt");
const ANSWERABLE: &str = include_str!("../../prompts/answerable.txt");
const REFUSALS: &str = include_str!("../../prompts/refusals.txt");

/// Turns of a conversation that go into the prompt: the last two exchanges. Older ones cost prefill and help little.
const MAX_TURNS: usize = 4;

/// A passage as the model sees it.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// Title of its document; may be empty.
    pub title: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// What the model is asked about the passages. The passages come first in both, so that their keys and values serve twice.
#[derive(Debug, Clone, Copy)]
pub enum Wording {
    /// For the answer.
    Answer,
    /// Whether they answer the question, to be said in a word.
    Answerable,
}

/// A question with as many of the best passages as fit the context.
#[derive(Debug)]
pub struct Prompt<'a> {
    tokenizer: &'a Tokenizer,
    template: &'a ChatTemplate,
    question: &'a str,
    passages: Vec<String>,
    before: Vec<Message>,
}

impl<'a> Prompt<'a> {
    /// Takes as many of the first passages as fit into `room` tokens with the question and the end of the conversation.
    ///
    /// # Errors
    /// [`RunError::TooLong`] when not even the question fits; the template's errors.
    pub fn fit(
        tokenizer: &'a Tokenizer,
        template: &'a ChatTemplate,
        question: &'a str,
        passages: &[Shown<'_>],
        conversation: &[Turn],
        room: usize,
    ) -> Result<Self, RunError> {
        let mut prompt = Self { tokenizer, template, question, passages: Vec::new(), before: turns(conversation) };
        let bare = prompt.longest()?;
        if bare > room {
            return Err(RunError::TooLong { needed: bare, limit: room });
        }
        // Passages are counted one by one, then the whole is rendered; joints may cost a token or two more or less.
        let mut left = room - bare;
        for (i, shown) in passages.iter().enumerate() {
            let text = passage(i, shown);
            let n = tokenizer.encode(&text, Special::Text)?.len() + 2;
            if n > left {
                break;
            }
            left -= n;
            prompt.passages.push(text);
        }
        while !prompt.passages.is_empty() && prompt.longest()? > room {
            prompt.passages.pop();
        }
        Ok(prompt)
    }

    /// How many passages went in.
    pub fn passages(&self) -> usize {
        self.passages.len()
    }

    /// Its token ids, with the wording at the end.
    ///
    /// # Errors
    /// The template's.
    pub fn encode(&self, wording: Wording) -> Result<Vec<u32>, RunError> {
        let wording = match wording {
            Wording::Answer => QUESTION,
            Wording::Answerable => ANSWERABLE,
        };
        let mut turn = self.passages.concat();
        turn.push_str(wording.trim_end().replace("{question}", self.question.trim()).as_str());
        let mut messages = self.before.clone();
        messages.push(Message::user(turn));
        self.template.encode(self.tokenizer, &messages, true)
    }

    /// Tokens of the longer wording.
    fn longest(&self) -> Result<usize, RunError> {
        Ok(self.encode(Wording::Answer)?.len().max(self.encode(Wording::Answerable)?.len()))
    }
}

fn turns(conversation: &[Turn]) -> Vec<Message> {
    let from = conversation.len().saturating_sub(MAX_TURNS);
    let kept = conversation[from..].iter().skip_while(|t| t.role == Role::Assistant);
    kept.map(|t| match t.role {
        Role::User => Message::user(t.text.clone()),
        Role::Assistant => Message::assistant(t.text.clone()),
    })
    .collect()
}

fn passage(i: usize, p: &Shown<'_>) -> String {
    let title =
        if p.title.is_empty() || p.text.starts_with(p.title) { String::new() } else { format!("{}\n", p.title) };
    format!("Passage {}:\n{title}{}\n\n", i + 1, p.text.trim())
}

/// Whether an answer says that the passages hold none.
pub fn is_refusal(answer: &str) -> bool {
    let answer = answer.to_lowercase();
    REFUSALS.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).any(|phrase| answer.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_recognized_and_answers_are_not() {
        assert!(is_refusal("The passages do not contain this."));
        assert!(is_refusal("文中没有提到他的年龄。"));
        assert!(!is_refusal("The rent is 1,200 euro."));
    }

    #[test]
    fn a_passage_stands_under_its_title_unless_it_begins_with_it() {
        let shown = |title, text| passage(1, &Shown { title, text });
        assert_eq!(shown("Lease", "The rent is 5. "), "Passage 2:\nLease\nThe rent is 5.\n\n");
        assert_eq!(shown("Lease", "Lease of a flat"), "Passage 2:\nLease of a flat\n\n");
    }
}
