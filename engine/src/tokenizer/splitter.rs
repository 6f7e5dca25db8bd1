//! How byte-level BPE models cut text before merging: one rule for each `tokenizer.ggml.pre`. The patterns are those of
//! the models' own `tokenizer.json`. A name that is not listed is an error: a wrong splitter gives plausible, worse text.

use crate::error::LoadError;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DIGITS: &str = r"\p{N}";

/// A splitter: patterns applied one after the other, and whether a whole piece that is a token is taken unmerged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Splitter {
    pub(super) patterns: &'static [&'static str],
    pub(super) ignore_merges: bool,
}

/// The splitter of that name.
pub(super) fn find(pre: &str) -> Result<Splitter, LoadError> {
    let (patterns, ignore_merges): (&[&str], bool) = match pre {
        "gpt-2" | "gpt2" | "olmo" | "mpt" | "modern-bert" | "exaone4" | "roberta-bpe" | "jina-v2-en" | "jina-es"
        | "jina-de" | "jina-v2-code" => (&[GPT2], false),
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => (&[DIGITS, GPT2], false),
        "llama-bpe" | "llama3" | "llama-v3" | "falcon3" | "pixtral" | "lfm2" => (&[LLAMA3], true),
        "dbrx" | "smaug-bpe" | "glm4" | "chatglm-bpe" => (&[LLAMA3], false),
        "qwen2" | "deepseek-r1-qwen" | "megrez" | "stablelm2" | "hunyuan" => (&[QWEN2], false),
        other => return Err(LoadError::Tokenizer(format!("the pre-tokenizer {other:?} is not known"))),
    };
    Ok(Splitter { patterns, ignore_merges })
}
