//! Whether the passages answer the question at all, by the model's own view before it writes.
//!
//! A small model that is asked to answer answers, whether or not the passages do. Asked whether they can answer, it knows better
//! than it writes: the probability of "yes" tells questions apart that only look answerable (docs/answers.md, "Refusing").

use satchel_engine::error::RunError;
use satchel_engine::{Special, Tokenizer};

/// Models whose view was measured, and the least log odds of "yes" at which they answer (docs/answers.md, "Refusing"). `None`:
/// it is worth nothing, as for SmolLM2, which tells the questions apart no better than a coin.
const MEASURED: [(&str, Option<f32>); 2] =
    [("qwen2.5-coder-1.5b-instruct", Some(2.2)), ("smollm2-135m-instruct", None)];

/// For models that were not measured: "no" is likelier than "yes".
const UNMEASURED: f32 = 0.0;

/// How a model begins when it agrees, and when it does not.
const YES: [&str; 2] = ["Yes", "yes"];
const NO: [&str; 2] = ["No", "no"];

/// The least log odds of "yes" for an answer by the model of this name; none where it is not worth asking.
pub fn least(model: &str) -> Option<f32> {
    MEASURED.iter().find(|(name, _)| *name == model).map_or(Some(UNMEASURED), |(_, least)| *least)
}

/// Log odds of "yes" against "no" as the next token; `logits` are those behind the probe, one a token.
///
/// # Errors
/// The tokenizer's.
pub fn log_odds(logits: &[f32], tokenizer: &Tokenizer) -> Result<f32, RunError> {
    Ok(log_sum(logits, tokenizer, YES)? - log_sum(logits, tokenizer, NO)?)
}

fn log_sum(logits: &[f32], tokenizer: &Tokenizer, words: [&str; 2]) -> Result<f32, RunError> {
    let mut found = Vec::new();
    for word in words {
        let first = tokenizer.encode(word, Special::Text)?.first().copied();
        found.extend(first.and_then(|id| logits.get(id as usize)));
    }
    let most = found.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    Ok(most + found.iter().map(|l| (l - most).exp()).sum::<f32>().ln())
}
