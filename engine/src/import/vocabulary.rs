//! The vocabulary as the `tokenizer.ggml.*` keys carry it, from a `tokenizer.json` or an e5 file.

use std::path::Path;

use serde_json::Value as Json;

use super::{ImportError, unsupported};
use crate::gguf::{GgufWriter, Value};

/// Marks the start of a word.
const WORD_START: char = '\u{2581}';

const NORMAL: i64 = 1;
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const UNUSED: i64 = 5;

/// Tokens that have a key of their own, by the names that BERT and XLM-RoBERTa give them.
const SPECIAL: [(&str, &[&str]); 5] = [
    ("unknown", &["[UNK]", "<unk>"]),
    ("padding", &["[PAD]", "<pad>"]),
    ("mask", &["[MASK]", "<mask>"]),
    ("bos", &["[CLS]", "<s>"]),
    ("eos", &["[SEP]", "</s>"]),
];

/// Tokens in the order of their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    /// `bert` (WordPiece), `t5` (Unigram), or none where only the JSON can tell.
    model: Option<&'static str>,
    tokens: Vec<String>,
    /// Log probabilities, for Unigram.
    scores: Vec<f32>,
    types: Vec<i64>,
}

impl Vocabulary {
    /// A Unigram vocabulary, for an embedding table of `rows` rows.
    pub(super) fn unigram(tokens: Vec<String>, scores: Vec<f32>, rows: u64) -> Self {
        let types = tokens.iter().map(|token| token_type(token)).collect();
        let mut vocabulary = Self { model: Some("t5"), tokens, scores, types };
        vocabulary.fill(rows);
        vocabulary
    }

    /// From `tokenizer.json`, for an embedding table of `rows` rows.
    pub(super) fn from_json(json: &[u8], rows: u64, path: &Path) -> Result<Self, ImportError> {
        let json: Json =
            serde_json::from_slice(json).map_err(|source| ImportError::Json { path: path.to_owned(), source })?;
        let mut vocabulary = match json["model"]["type"].as_str() {
            Some("Unigram") => Self::from_unigram(&json["model"]["vocab"], rows),
            Some("WordPiece") => Self::from_word_piece(&json["model"]["vocab"], rows),
            Some("BPE") => Ok(Self::default()),
            other => Err(format!("tokenizer model {other:?} is not supported")),
        }
        .map_err(|what| unsupported(path, what))?;
        vocabulary.fill(rows);
        Ok(vocabulary)
    }

    fn from_unigram(vocab: &Json, rows: u64) -> Result<Self, String> {
        let list = vocab.as_array().filter(|list| !list.is_empty()).ok_or("it has no vocabulary")?;
        if list.len() as u64 > rows {
            return Err(format!("{} tokens for {rows} embeddings", list.len()));
        }
        let mut all = Self { model: Some("t5"), ..Self::default() };
        for (i, entry) in list.iter().enumerate() {
            let (Some(token), Some(score)) = (entry[0].as_str(), entry[1].as_f64()) else {
                return Err(format!("token {i} is no pair of text and score"));
            };
            all.push(token.to_owned(), token_type(token));
            all.scores.push(score as f32);
        }
        Ok(all)
    }

    /// In the form of the format: a token that starts a word has the mark, one that continues has lost its `##`.
    fn from_word_piece(vocab: &Json, rows: u64) -> Result<Self, String> {
        let map = vocab.as_object().filter(|map| !map.is_empty()).ok_or("it has no vocabulary")?;
        let mut by_id: Vec<Option<&str>> = Vec::new();
        for (token, id) in map {
            let id = id.as_u64().filter(|id| *id < rows).ok_or_else(|| format!("token {token:?} has the id {id}"))?;
            if by_id.len() <= id as usize {
                by_id.resize(id as usize + 1, None);
            }
            by_id[id as usize] = Some(token);
        }
        let mut all = Self { model: Some("bert"), ..Self::default() };
        for (id, token) in by_id.into_iter().enumerate() {
            let token = token.ok_or_else(|| format!("no token has the id {id}"))?;
            let ty = token_type(token);
            all.push(
                match token.strip_prefix("##") {
                    _ if ty != NORMAL => token.to_owned(),
                    Some(rest) => rest.to_owned(),
                    None => format!("{WORD_START}{token}"),
                },
                ty,
            );
        }
        Ok(all)
    }

    fn push(&mut self, token: String, ty: i64) {
        self.tokens.push(token);
        self.types.push(ty);
    }

    /// Embedding tables are often padded to a round size; their last rows belong to no token.
    fn fill(&mut self, rows: u64) {
        if self.model.is_some() {
            for id in self.tokens.len() as u64..rows {
                self.push(format!("[PAD{id}]"), UNUSED);
            }
        }
        if !self.scores.is_empty() {
            self.scores.resize(self.tokens.len(), 0.0);
        }
    }

    /// Adds the keys.
    pub(super) fn write(self, file: &mut GgufWriter) {
        let Some(model) = self.model else { return };
        file.set("tokenizer.ggml.model", &Value::String(model.to_owned()));
        file.set("tokenizer.ggml.pre", &Value::String("default".to_owned()));
        let find = |names: &[&str]| self.tokens.iter().position(|token| names.contains(&token.as_str()));
        for (key, names) in SPECIAL {
            if let Some(id) = find(names) {
                file.set(&format!("tokenizer.ggml.{key}_token_id"), &Value::Unsigned(id as u64));
                // Encoders are framed by these two, which have names of their own besides.
                let alias = match key {
                    "bos" => "cls",
                    // The format's own spelling.
                    "eos" => "seperator",
                    _ => continue,
                };
                file.set(&format!("tokenizer.ggml.{alias}_token_id"), &Value::Unsigned(id as u64));
            }
        }
        let space = model == "t5";
        for (key, value) in [
            ("add_bos_token", true),
            ("add_eos_token", true),
            ("add_space_prefix", space),
            ("remove_extra_whitespaces", space),
        ] {
            file.set(&format!("tokenizer.ggml.{key}"), &Value::Bool(value));
        }
        file.set("tokenizer.ggml.token_type", &Value::Integers(self.types));
        file.set("tokenizer.ggml.tokens", &Value::Strings(self.tokens));
        if !self.scores.is_empty() {
            file.set("tokenizer.ggml.scores", &Value::Floats(self.scores));
        }
    }
}

/// By name: text must never become one of these tokens.
fn token_type(token: &str) -> i64 {
    match SPECIAL.iter().find(|(_, names)| names.contains(&token)) {
        Some(("unknown", _)) => UNKNOWN,
        Some(_) => CONTROL,
        None => NORMAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{Metadata, parse};

    fn keys(json: &Json, rows: u64) -> Result<Metadata, ImportError> {
        let mut file = GgufWriter::new("bert");
        Vocabulary::from_json(json.to_string().as_bytes(), rows, Path::new("tokenizer.json"))?.write(&mut file);
        let mut out = Vec::new();
        file.write(&mut out, |_| unreachable!("there are no tensors")).unwrap();
        Ok(parse(&out).unwrap().0)
    }

    #[test]
    fn word_pieces_are_rewritten_and_padded_rows_filled() {
        let vocab = serde_json::json!({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "play": 4, "##ing": 5});
        let json = serde_json::json!({"model": {"type": "WordPiece", "vocab": vocab}});
        let m = keys(&json, 7).unwrap();
        let tokens = m.strings("tokenizer.ggml.tokens").unwrap().unwrap();
        assert_eq!(tokens, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁play", "ing", "[PAD6]"]);
        assert_eq!(m.integers("tokenizer.ggml.token_type").unwrap().unwrap(), [3, 2, 3, 3, 1, 1, 5]);
        assert_eq!(m.need_str("tokenizer.ggml.model").unwrap(), "bert");
        for (key, id) in [("cls", 2), ("bos", 2), ("seperator", 3), ("eos", 3), ("unknown", 1), ("padding", 0)] {
            assert_eq!(m.u32(&format!("tokenizer.ggml.{key}_token_id")).unwrap(), Some(id), "{key}");
        }
    }

    #[test]
    fn unigram_scores_are_kept() {
        let vocab = serde_json::json!([["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["▁a", -3.5]]);
        let json = serde_json::json!({"model": {"type": "Unigram", "vocab": vocab}});
        let m = keys(&json, 5).unwrap();
        assert_eq!(m.floats("tokenizer.ggml.scores").unwrap().unwrap(), [0.0, 0.0, 0.0, 0.0, -3.5]);
        assert_eq!(m.integers("tokenizer.ggml.token_type").unwrap().unwrap(), [3, 3, 3, 2, 1]);
        assert_eq!(m.need_str("tokenizer.ggml.model").unwrap(), "t5");
    }

    #[test]
    fn broken_vocabularies_are_refused_with_the_reason() {
        let word_piece = |vocab: Json| serde_json::json!({"model": {"type": "WordPiece", "vocab": vocab}});
        let unigram = |vocab: Json| serde_json::json!({"model": {"type": "Unigram", "vocab": vocab}});
        for (json, reason) in [
            (serde_json::json!([]), "tokenizer model None"),
            (serde_json::json!({"model": {"type": "Other"}}), "tokenizer model Some(\"Other\")"),
            (word_piece(serde_json::json!({})), "no vocabulary"),
            (word_piece(serde_json::json!({"a": 1})), "no token has the id 0"),
            (word_piece(serde_json::json!({"a": 1_000_000_000})), "has the id 1000000000"),
            (word_piece(serde_json::json!({"a": -1})), "has the id -1"),
            (unigram(serde_json::json!([])), "no vocabulary"),
            (unigram(serde_json::json!([["a", 0.0], "b"])), "token 1"),
            (unigram(serde_json::json!([["a", 0], ["b", 0], ["c", 0], ["d", 0], ["e", 0]])), "5 tokens for 4"),
        ] {
            let error = keys(&json, 4).unwrap_err().to_string();
            assert!(error.contains(reason), "{error:?} does not say {reason:?}");
        }
    }
}
