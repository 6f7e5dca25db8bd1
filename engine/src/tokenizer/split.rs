//! How byte-level models cut text into words before they merge: one or two patterns for each `tokenizer.ggml.pre`.
//!
//! The patterns are those of the models' own `tokenizer.json`. A name that is not in the table is an error: a wrong
//! pattern gives a model other tokens than it was trained on, and nobody would notice but by its worse answers.

use tokenizers::utils::SysRegex;

use crate::error::LoadError;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";

/// Cuts text into words.
#[derive(Debug)]
pub(super) struct Splitter {
    /// Each cuts what the one before left; what lies between two matches is a word too.
    patterns: Vec<SysRegex>,
}

/// The patterns of a pre-tokenizer name, and whether words that are tokens are taken whole; none if not known.
pub(super) fn patterns(name: &str) -> Option<(&'static [&'static str], bool)> {
    Some(match name {
        "gpt-2" | "gpt2" | "jina-v2-en" | "jina-v2-es" | "jina-v2-de" | "jina-v2-code" | "jina-es" | "jina-de"
        | "roberta-bpe" | "modern-bert" | "exaone4" | "olmo" | "mpt" | "phi-2" => (&[GPT2], false),
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => (&[DIGIT, GPT2], false),
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "pixtral" | "lfm2" => (&[LLAMA3], true),
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => (&[LLAMA3], false),
        "qwen2" | "deepseek-r1-qwen" | "megrez" | "stablelm2" | "hunyuan" => (&[QWEN2], false),
        "qwen35" => (&[QWEN35], false),
        _ => return None,
    })
}

impl Splitter {
    /// The splitter of a pre-tokenizer name, and whether words that are tokens are taken whole.
    pub(super) fn named(name: &str) -> Result<(Self, bool), LoadError> {
        let (patterns, whole_words) =
            patterns(name).ok_or_else(|| LoadError::Tokenizer(format!("the pre-tokenizer {name:?} is not known")))?;
        let patterns = patterns
            .iter()
            .map(|p| SysRegex::new(p).map_err(|e| LoadError::Tokenizer(format!("pattern {p:?}: {e}"))))
            .collect::<Result<_, _>>()?;
        Ok((Self { patterns }, whole_words))
    }

    /// Calls `word` for each word, in order; together they are the text.
    pub(super) fn split(&self, text: &str, word: &mut dyn FnMut(&str)) {
        split_by(&self.patterns, text, word);
    }
}

/// Recursion is as deep as there are patterns: two.
fn split_by(patterns: &[SysRegex], text: &str, word: &mut dyn FnMut(&str)) {
    let Some((first, rest)) = patterns.split_first() else {
        if !text.is_empty() {
            word(text);
        }
        return;
    };
    let mut done = 0;
    for (start, end) in first.find_iter(text) {
        split_by(rest, &text[done..start], word);
        split_by(rest, &text[start..end], word);
        done = end;
    }
    split_by(rest, &text[done..], word);
}
