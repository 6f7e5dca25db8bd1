//! The token list of a file, checked once.

use crate::error::LoadError;
use crate::gguf::Metadata;
use crate::limits::MAX_VOCAB;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Normal,
    Unknown,
    /// Means something to the model's template; text never becomes one.
    Control,
    /// A word that is always one token, in any text.
    UserDefined,
    Unused,
    Byte,
}

/// Tokens by id.
#[derive(Debug)]
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) kinds: Vec<TokenKind>,
    pub(super) scores: Vec<f32>,
}

impl Vocabulary {
    pub(super) fn read(m: &Metadata) -> Result<Self, LoadError> {
        let key = "tokenizer.ggml.tokens";
        let tokens = m.strings(key)?.ok_or_else(|| LoadError::MissingKey(key.into()))?;
        if tokens.is_empty() || tokens.len() > MAX_VOCAB {
            return Err(LoadError::Tokenizer(format!("{} tokens, outside 1..={MAX_VOCAB}", tokens.len())));
        }
        let kinds = match m.integers("tokenizer.ggml.token_type")? {
            None => vec![TokenKind::Normal; tokens.len()],
            Some(types) if types.len() == tokens.len() => types.iter().map(|t| kind(*t)).collect(),
            Some(types) => {
                let what = format!("{} token types for {} tokens", types.len(), tokens.len());
                return Err(LoadError::Tokenizer(what));
            }
        };
        let scores = m.floats("tokenizer.ggml.scores")?.unwrap_or_default().to_vec();
        if !scores.is_empty() && (scores.len() != tokens.len() || scores.iter().any(|s| s.is_nan())) {
            return Err(LoadError::Tokenizer(format!("{} scores for {} tokens", scores.len(), tokens.len())));
        }
        Ok(Self { tokens: tokens.to_vec(), kinds, scores })
    }

    /// The token of an id key, checked against the vocabulary; none when the key is absent.
    pub(super) fn id(&self, m: &Metadata, name: &str) -> Result<Option<u32>, LoadError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        match m.u32(&key)? {
            Some(id) if id as usize >= self.tokens.len() => {
                let what = format!("{id} is outside the vocabulary of {}", self.tokens.len());
                Err(LoadError::BadKey { key, what })
            }
            id => Ok(id),
        }
    }

    /// Tokens that text may become, with their ids.
    pub(super) fn words(&self) -> impl Iterator<Item = (u32, &str)> {
        let usable = |kind: &TokenKind| !matches!(kind, TokenKind::Control | TokenKind::Unused | TokenKind::Unknown);
        (0..).zip(&self.tokens).zip(&self.kinds).filter(move |(_, k)| usable(k)).map(|((id, t), _)| (id, t.as_str()))
    }

    /// Tokens of that kind, longest first, so that the first match is the longest.
    pub(super) fn of_kind(&self, wanted: TokenKind) -> Vec<(String, u32)> {
        let mut found: Vec<(String, u32)> = (0..)
            .zip(&self.tokens)
            .zip(&self.kinds)
            .filter(|((_, token), kind)| **kind == wanted && !token.is_empty())
            .map(|((id, token), _)| (token.clone(), id))
            .collect();
        found.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then(a.1.cmp(&b.1)));
        found
    }
}

fn kind(number: i64) -> TokenKind {
    match number {
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        _ => TokenKind::Normal,
    }
}
