//! WordPiece, as of BERT, with the parts of the `tokenizers` crate.

use tokenizers::models::wordpiece::WordPiece as Pieces;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

use super::vocabulary::{Kind, Vocabulary};
use crate::error::{LoadError, RunError};

/// Cleaning, splitting and the pieces.
#[derive(Debug)]
pub(super) struct WordPiece {
    normalizer: BertNormalizer,
    pieces: Pieces,
}

impl WordPiece {
    /// From a vocabulary in GGUF's form: tokens that start a word begin with a space, others do not.
    pub(super) fn new(vocabulary: &Vocabulary, unknown: Option<u32>) -> Result<Self, LoadError> {
        let unknown = unknown.ok_or_else(|| LoadError::Tokenizer("WordPiece needs a token for the unknown".into()))?;
        let text = |id| String::from_utf8_lossy(vocabulary.text(id)).into_owned();
        let mut map = ahash::AHashMap::with_capacity(vocabulary.len());
        for id in vocabulary.of_kind(Kind::Normal) {
            let token = text(id);
            let piece = match token.strip_prefix(' ') {
                Some(word) => word.to_owned(),
                None => format!("##{token}"),
            };
            map.insert(piece, id);
        }
        // The format does not say whether capitals matter; a vocabulary without any knows.
        let lowercase = !map.keys().any(|piece| piece.bytes().any(|b| b.is_ascii_uppercase()));
        map.insert(text(unknown), unknown);
        let pieces = Pieces::builder()
            .vocab(map)
            .unk_token(text(unknown))
            .build()
            .map_err(|e| LoadError::Tokenizer(e.to_string()))?;
        Ok(Self { normalizer: BertNormalizer::new(true, true, None, lowercase), pieces })
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), RunError> {
        let failed = |e: tokenizers::Error| RunError::Text(format!("tokenizer: {e}"));
        let mut normalized = NormalizedString::from(text);
        self.normalizer.normalize(&mut normalized).map_err(failed)?;
        let mut words = PreTokenizedString::from(normalized);
        BertPreTokenizer.pre_tokenize(&mut words).map_err(failed)?;
        for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            out.extend(self.pieces.tokenize(word).map_err(failed)?.iter().map(|token| token.id));
        }
        Ok(())
    }
}
