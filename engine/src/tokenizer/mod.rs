//! Text to tokens and back, by the vocabulary that a model file carries.
//!
//! The one rule above all: text never becomes a control token. Normal tokens are reachable through an index that holds
//! no control tokens, and what a text gave is checked once more before it is handed out ([`Special::Text`]). Only
//! literals of the chat template are read with [`Special::Template`].
//!
//! Byte-level BPE, SentencePiece's BPE and Unigram are written out here, over one compact vocabulary, because the
//! `tokenizers` crate takes many times the memory for them. Its patterns, WordPiece and JSON are in use, and its models
//! are what ours are tested against.

mod bpe;
mod charsmap;
mod huggingface;
mod merge;
mod named;
mod specials;
mod split;
mod spm;
#[cfg(test)]
mod tests;
mod unigram;
mod utf8;
mod vocabulary;
mod wordpiece;

use std::sync::Arc;

use bpe::Bpe;
use charsmap::CharsMap;
use huggingface::HuggingFace;
use named::Named;
use specials::{Part, Specials};
use spm::Spm;
use unigram::Unigram;
pub use utf8::Utf8Stream;
use vocabulary::{Kind, Spelling, Vocabulary};
use wordpiece::WordPiece;

use crate::error::{LoadError, RunError};
use crate::gguf::Metadata;
use crate::limits::MAX_TEXT_BYTES;

/// What the names of control tokens in a text mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Nothing: they are text like any other. For everything that a person or a document says.
    Text,
    /// The tokens themselves. For the literals of a model's own template only.
    Template,
}

/// A model's tokenizer. Cheap to clone and to share.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vocabulary: Vocabulary,
    specials: Specials,
    model: Model,
    bos: Option<u32>,
    eos: Option<u32>,
    /// Sorted.
    ends: Vec<u32>,
    /// Put before and after a whole sequence.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
}

/// The way from a text to tokens.
#[derive(Debug)]
enum Model {
    Bpe(Bpe),
    Spm(Spm),
    Unigram(Unigram),
    WordPiece(WordPiece),
    HuggingFace(Box<HuggingFace>),
}

impl Tokenizer {
    /// Builds the tokenizer that the file describes.
    ///
    /// # Errors
    /// [`LoadError::MissingKey`], [`LoadError::BadKey`] or [`LoadError::Tokenizer`], with the reason.
    pub fn from_gguf(metadata: &Metadata) -> Result<Self, LoadError> {
        let json = metadata.str("tokenizer.huggingface.json")?;
        let inner = match (json, metadata.str("tokenizer.ggml.model")?) {
            // Ours is the leaner one, and the file has the vocabulary in both forms.
            (Some(json), Some("t5")) => Inner::from_keys(metadata, Some(json))?,
            (Some(json), _) => Inner::from_json(json)?,
            (None, _) => Inner::from_keys(metadata, None)?,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The tokens of a text, without any that begin or end a sequence.
    ///
    /// # Errors
    /// [`RunError::Text`] when the text is too long or, for a damaged file, cannot be expressed.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>, RunError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(RunError::Text(format!("too long: a text of {} bytes > {MAX_TEXT_BYTES}", text.len())));
        }
        let inner = &*self.inner;
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        let wanted = |kind| kind == Kind::UserDefined || special == Special::Template;
        for part in inner.specials.split(text, &inner.vocabulary, wanted) {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text) => inner.encode_plain(text, &mut ids)?,
            }
        }
        Ok(ids)
    }

    /// The tokens of a whole sequence as the model wants it: `[CLS] .. [SEP]`, `<s> .. </s>`, `<bos> ..`.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_framed(&self, text: &str, special: Special) -> Result<Vec<u32>, RunError> {
        let ids = self.encode(text, special)?;
        Ok([self.inner.prefix.as_slice(), &ids, &self.inner.suffix].concat())
    }

    /// Cuts a template's literal at its control tokens: texts, and the token that follows each but the last.
    pub(crate) fn controls<'t>(&self, literal: &'t str) -> Vec<(&'t str, Option<u32>)> {
        let inner = &*self.inner;
        let mut cut = Vec::new();
        let mut text = "";
        for part in inner.specials.split(literal, &inner.vocabulary, |kind| kind == Kind::Control) {
            match part {
                Part::Text(t) => text = t,
                Part::Token(id) => cut.push((std::mem::take(&mut text), Some(id))),
            }
        }
        cut.push((text, None));
        cut
    }

    /// The bytes that a token adds to the output: none for control tokens and for ids outside the vocabulary. A
    /// character may take several tokens; see [`Utf8Stream`].
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        match self.inner.vocabulary.kind(id) {
            Some(Kind::Normal | Kind::UserDefined | Kind::Byte) => self.inner.vocabulary.text(id),
            Some(Kind::Control | Kind::Unknown | Kind::Unused) | None => &[],
        }
    }

    /// What a token is called, such as `<|im_end|>`; none outside the vocabulary.
    #[must_use]
    pub fn token_name(&self, id: u32) -> Option<String> {
        self.inner.vocabulary.kind(id)?;
        Some(String::from_utf8_lossy(self.inner.vocabulary.text(id)).into_owned())
    }

    /// The text of tokens, with the space that encoding may have put first; bytes that are no UTF-8 become U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| self.token_bytes(*id)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The token that begins a sequence.
    #[must_use]
    pub fn bos(&self) -> Option<u32> {
        self.inner.bos
    }

    /// The token that ends a sequence, as the file names it; see also [`Tokenizer::is_end`].
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        self.inner.eos
    }

    /// Whether a generated token ends the answer.
    #[must_use]
    pub fn is_end(&self, id: u32) -> bool {
        self.inner.ends.binary_search(&id).is_ok()
    }

    /// Whether a token is a control token, which no text can contain.
    #[must_use]
    pub fn is_control(&self, id: u32) -> bool {
        self.inner.vocabulary.kind(id) == Some(Kind::Control)
    }

    /// Number of tokens. The model's output may have more rows; those belong to no token.
    #[must_use]
    pub fn vocab_len(&self) -> usize {
        self.inner.vocabulary.len()
    }

    /// Whether a sequence begins with [`Tokenizer::bos`].
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        !self.inner.prefix.is_empty()
    }

    /// Bytes of memory held, without what the `tokenizers` crate holds inside: patterns, and all of WordPiece and JSON.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let model = match &self.inner.model {
            Model::Bpe(m) => m.memory_bytes(),
            Model::Spm(m) => m.memory_bytes(),
            Model::Unigram(m) => m.memory_bytes(),
            Model::WordPiece(_) | Model::HuggingFace(_) => 0,
        };
        self.inner.vocabulary.memory_bytes() + self.inner.specials.memory_bytes() + model
    }
}

impl Inner {
    /// From the keys `tokenizer.ggml.*`; `json` may have what the keys lack.
    fn from_keys(metadata: &Metadata, json: Option<&str>) -> Result<Self, LoadError> {
        let kind = metadata.need_str("tokenizer.ggml.model")?;
        let spelling = match kind {
            "gpt2" => Spelling::ByteLevel,
            "llama" | "t5" | "bert" => Spelling::WordStart,
            other => return Err(LoadError::Tokenizer(format!("the model {other:?} is not supported"))),
        };
        let named = Named::read(metadata)?;
        let vocabulary = Vocabulary::read(metadata, spelling, |id, name| named.is_structural(id, name))?;
        named.check(vocabulary.len())?;
        let unknown = named.unknown.or_else(|| vocabulary.of_kind(Kind::Unknown).next());
        let model = match kind {
            "gpt2" => Model::Bpe(Bpe::read(metadata, &vocabulary)?),
            "llama" => Model::Spm(Spm::read(metadata, &vocabulary, unknown)?),
            "t5" => {
                let charsmap = CharsMap::read(metadata, json)?;
                Model::Unigram(Unigram::read(metadata, &vocabulary, unknown, charsmap)?)
            }
            _ => Model::WordPiece(WordPiece::new(&vocabulary, unknown)?),
        };
        let (prefix, suffix) = frame(metadata, kind, &named)?;
        Ok(Self {
            specials: Specials::new(&vocabulary),
            bos: named.bos,
            eos: named.eos,
            ends: named.ends(&vocabulary),
            prefix,
            suffix,
            vocabulary,
            model,
        })
    }

    /// From the `tokenizer.json` that an imported embedder keeps.
    fn from_json(json: &str) -> Result<Self, LoadError> {
        let (model, vocabulary) = HuggingFace::new(json)?;
        let (prefix, suffix) = model.frame()?;
        Ok(Self {
            specials: Specials::none(),
            bos: prefix.first().copied(),
            eos: suffix.last().copied(),
            ends: suffix.clone(),
            prefix,
            suffix,
            vocabulary,
            model: Model::HuggingFace(Box::new(model)),
        })
    }

    /// Appends the tokens of a text in which no special token is named.
    fn encode_plain(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), RunError> {
        let start = ids.len();
        match &self.model {
            Model::Bpe(m) => m.encode(text, &self.vocabulary, ids),
            Model::Spm(m) => m.encode(text, &self.vocabulary, ids),
            Model::Unigram(m) => m.encode(text, &self.vocabulary, ids),
            Model::WordPiece(m) => m.encode(text, ids)?,
            Model::HuggingFace(m) => m.encode(text, ids)?,
        }
        for id in &ids[start..] {
            match self.vocabulary.kind(*id) {
                None => return Err(RunError::BadToken { id: *id, vocab: self.vocabulary.len() }),
                Some(Kind::Control) => {
                    return Err(RunError::Text(format!("this model's file makes text into the control token {id}")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// The tokens before and after a whole sequence, by the keys or the habit of the kind.
fn frame(metadata: &Metadata, kind: &str, named: &Named) -> Result<(Vec<u32>, Vec<u32>), LoadError> {
    let flag = |key: &str, default| metadata.bool(key).map(|v| v.unwrap_or(default));
    let llama3 = kind == "gpt2" && metadata.str("tokenizer.ggml.pre")? == Some("llama-bpe");
    let add_bos = flag("tokenizer.ggml.add_bos_token", matches!(kind, "llama" | "bert") || llama3)?;
    let add_eos = flag("tokenizer.ggml.add_eos_token", matches!(kind, "t5" | "bert"))?;
    let (first, last) = match kind {
        "bert" => (named.cls.or(named.bos), named.separator.or(named.eos)),
        _ => (named.bos, named.eos),
    };
    if (add_bos && first.is_none()) || (add_eos && last.is_none()) {
        return Err(LoadError::Tokenizer("a sequence is to be framed by tokens that the file does not name".into()));
    }
    let list = |id: Option<u32>, add: bool| id.filter(|_| add).into_iter().collect();
    Ok((list(first, add_bos), list(last, add_eos)))
}
