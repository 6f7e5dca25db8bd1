//! The prompt: passages first, then the question. Its wording stands in `prompts/`.

use satchel_engine::chat::{ChatTemplate, Message};
use satchel_engine::error::RunError;
use satchel_engine::{Special, Tokenizer};
use satchel_ipc::wire::{Role, Turn};

const QUESTION: &str = include_str!("../../prompts/question.txt");
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

/// Token ids of the prompt, and how many passages went into it: as many of the first as fit into `room` tokens.
///
/// # Errors
/// [`RunError::TooLong`] when not even the question fits; the template's errors.
pub fn encode(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    question: &str,
    passages: &[Shown<'_>],
    conversation: &[Turn],
    room: usize,
) -> Result<(Vec<u32>, usize), RunError> {
    let before: Vec<Message> = turns(conversation);
    let render = |n: usize| {
        let mut messages = before.clone();
        messages.push(Message::user(user_turn(question, &passages[..n])));
        template.encode(tokenizer, &messages, true)
    };
    let bare = render(0)?;
    if bare.len() > room {
        return Err(RunError::TooLong { needed: bare.len(), limit: room });
    }
    // Passages are counted one by one, then the whole is rendered; joints may cost a token or two more or less.
    let mut left = room - bare.len();
    let mut fitting = 0;
    for (i, p) in passages.iter().enumerate() {
        let n = tokenizer.encode(&passage(i, p), Special::Text)?.len() + 2;
        if n > left {
            break;
        }
        left -= n;
        fitting += 1;
    }
    loop {
        let ids = render(fitting)?;
        if ids.len() <= room || fitting == 0 {
            return Ok((ids, fitting));
        }
        fitting -= 1;
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

fn user_turn(question: &str, passages: &[Shown<'_>]) -> String {
    let mut text: String = passages.iter().enumerate().map(|(i, p)| passage(i, p)).collect();
    text.push_str(&QUESTION.replace("{question}", question.trim()));
    text
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
    fn a_question_cannot_replace_the_wording() {
        let turn = user_turn("{question} or {x}?", &[Shown { title: "Lease", text: "The rent is 5." }]);
        assert!(turn.starts_with("Passage 1:\nLease\nThe rent is 5.\n\nUsing"));
        assert!(turn.contains("Question: {question} or {x}?"));
    }
}
