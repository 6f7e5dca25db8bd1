//! Passages that say again what a better one says: a copy of the file, the same contract as PDF and as DOCX.

use crate::terms::fold;

/// Share of the better passage that a repeat must be. A short passage that happens to stand in a long one is a find of its own.
const SHARE_MIN: f32 = 0.8;

/// The texts of hits, best first.
#[derive(Default)]
pub(crate) struct Texts {
    folded: Vec<String>,
}

impl Texts {
    /// The earlier text that this one repeats; else it is kept as the next. Letter case, punctuation and white space aside,
    /// a repeat stands in the earlier one word for word: texts that differ in one word or number may say opposite things.
    pub(crate) fn repeated(&mut self, text: &str) -> Option<usize> {
        let text = fold(text);
        let repeats = |earlier: &String| {
            text.len() <= earlier.len()
                && text.len() as f32 >= SHARE_MIN * earlier.len() as f32
                && earlier.contains(&text)
        };
        let at = self.folded.iter().position(repeats);
        if at.is_none() {
            self.folded.push(text);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_says_nothing_new() {
        let mut texts = Texts::default();
        let lease = "The rent is 1,200 euro a month. It is due on the first day.";
        assert_eq!(texts.repeated("Something else altogether"), None);
        assert_eq!(texts.repeated(lease), None);
        assert_eq!(texts.repeated("the RENT is 1,200 euro a\nmonth; it is due on the first day"), Some(1));
        assert_eq!(texts.repeated("The rent is 1,200 euro a month. It is due on the first"), Some(1));
        for other in [
            "The rent is 1,300 euro a month. It is due on the first day.",
            "The rent is not 1,200 euro a month. It is due on the first day.",
            "The rent is 1,200 euro a month. It is due on the first day. Pets are allowed.",
            "The rent is 1,200 euro",
        ] {
            assert_eq!(texts.repeated(other), None, "{other}");
        }
    }
}
