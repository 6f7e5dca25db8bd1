//! Text to token ids and back, from the vocabulary in the file.
//!
//! Control tokens never come out of text: they are left out of what text is matched with, and are parsed only from
//! template literals ([`Special::Template`]).

mod bytes;
mod special;
mod splitter;
mod spm;
mod utf8;
mod vocabulary;

use std::sync::Arc;

use tokenizers::models::bpe::BPE;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::Precompiled;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
use tokenizers::{SplitDelimiterBehavior, Tokenizer as HfTokenizer};

pub use utf8::Utf8Stream;

use crate::error::{LoadError, RunError};
use crate::gguf::Metadata;
use special::Matcher;
use spm::Spm;
use vocabulary::{TokenKind, Vocabulary};

/// Whether control tokens may be parsed from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A person's or a document's words: never a control token.
    Text,
    /// Literal parts of the model's own template.
    Template,
}

/// Merged words cached by the BPE model: enough for the words of one answer, a few hundred KiB.
const BPE_CACHE: usize = 4096;

/// A tokenizer. Cheap to clone and to share.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    model: Model,
    vocabulary: Vocabulary,
    user_defined: Matcher,
    control: Matcher,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    ends: Vec<u32>,
}

#[derive(Debug)]
enum Model {
    /// Byte-level BPE.
    Bpe(Box<HfTokenizer>),
    /// SentencePiece BPE.
    Spm(Spm),
    /// Unigram, or a tokenizer kept as JSON by an import.
    Words(Box<HfTokenizer>),
}

impl Tokenizer {
    /// Builds the tokenizer that the metadata describes.
    ///
    /// # Errors
    /// [`LoadError::Tokenizer`] for unknown or inconsistent descriptions, and the errors of [`Metadata`].
    pub fn from_gguf(m: &Metadata) -> Result<Self, LoadError> {
        let vocabulary = Vocabulary::read(m)?;
        let kept = m.str("tokenizer.huggingface.json")?;
        let kind = m.need_str("tokenizer.ggml.model")?;
        let model = match (kept, kind) {
            (Some(json), _) => Model::Words(Box::new(kept_json(json, &vocabulary)?)),
            (None, "gpt2") => Model::Bpe(Box::new(bpe(m, &vocabulary)?)),
            (None, "llama") => Model::Spm(spm(m, &vocabulary)?),
            (None, "t5") => Model::Words(Box::new(unigram(m, &vocabulary)?)),
            (None, other) => return Err(LoadError::Tokenizer(format!("the model {other:?} is not supported"))),
        };
        let (bos, eos) = (vocabulary.id(m, "bos")?, vocabulary.id(m, "eos")?);
        let spm = matches!(model, Model::Spm(_));
        let inner = Inner {
            user_defined: Matcher::new(vocabulary.of_kind(TokenKind::UserDefined)),
            control: Matcher::new(vocabulary.of_kind(TokenKind::Control)),
            ends: ends(m, &vocabulary, eos)?,
            add_bos: m.bool("tokenizer.ggml.add_bos_token")?.unwrap_or(spm),
            add_eos: m.bool("tokenizer.ggml.add_eos_token")?.unwrap_or(false),
            model,
            vocabulary,
            bos,
            eos,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Ids of a text, without begin and end tokens.
    ///
    /// # Errors
    /// [`RunError::Text`] when the tokenizer fails.
    pub fn encode(&self, text: &str, special: Special) -> Result<Vec<u32>, RunError> {
        let inner = &*self.inner;
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        let mut parts = vec![special::Part::Text(text)];
        if special == Special::Template {
            parts = inner.control.split(parts);
        }
        if !matches!(inner.model, Model::Words(_)) {
            parts = inner.user_defined.split(parts);
        }
        for (i, part) in parts.iter().enumerate() {
            match part {
                special::Part::Token(id) => ids.push(*id),
                special::Part::Text(text) => self.words(text, i == 0, &mut ids)?,
            }
        }
        Ok(ids)
    }

    fn words(&self, text: &str, first: bool, ids: &mut Vec<u32>) -> Result<(), RunError> {
        match &self.inner.model {
            Model::Spm(spm) => spm.encode(text, first, ids),
            Model::Bpe(hf) | Model::Words(hf) => {
                let encoding = hf.encode_fast(text, false).map_err(|e| RunError::Text(format!("tokenizer: {e}")))?;
                ids.extend_from_slice(encoding.get_ids());
            }
        }
        Ok(())
    }

    /// Ids of a text framed as the model wants a whole sequence: with its begin and end tokens, where it adds them.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_framed(&self, text: &str, special: Special) -> Result<Vec<u32>, RunError> {
        let mut ids: Vec<u32> = self.bos().filter(|_| self.inner.add_bos).into_iter().collect();
        ids.extend(self.encode(text, special)?);
        ids.extend(self.inner.eos.filter(|_| self.inner.add_eos));
        Ok(ids)
    }

    /// The bytes that a token stands for; control tokens and ids outside the vocabulary stand for none.
    #[must_use]
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        let v = &self.inner.vocabulary;
        let Some((token, kind)) = v.tokens.get(id as usize).zip(v.kinds.get(id as usize)) else {
            return Vec::new();
        };
        match (&self.inner.model, kind) {
            (_, TokenKind::Control | TokenKind::Unknown | TokenKind::Unused) => Vec::new(),
            (_, TokenKind::UserDefined) => token.clone().into_bytes(),
            (Model::Bpe(_), _) => bytes::decode(token),
            (_, TokenKind::Byte) => byte_token(token).into_iter().collect(),
            _ => token.replace('\u{2581}', " ").into_bytes(),
        }
    }

    /// The text of some tokens; bytes that are no UTF-8 become U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| self.token_bytes(*id)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The token's name in the file, such as `<|im_end|>`.
    #[must_use]
    pub fn token_name(&self, id: u32) -> Option<&str> {
        self.inner.vocabulary.tokens.get(id as usize).map(String::as_str)
    }

    /// The begin token.
    #[must_use]
    pub fn bos(&self) -> Option<u32> {
        self.inner.bos
    }

    /// The end token.
    #[must_use]
    pub fn eos(&self) -> Option<u32> {
        self.inner.eos
    }

    /// Whether a sequence begins with the begin token.
    #[must_use]
    pub fn adds_bos(&self) -> bool {
        self.inner.add_bos
    }

    /// Whether generation ends with this token.
    #[must_use]
    pub fn is_end(&self, id: u32) -> bool {
        self.inner.ends.contains(&id)
    }

    /// Whether this is a control token.
    #[must_use]
    pub fn is_control(&self, id: u32) -> bool {
        self.inner.vocabulary.kinds.get(id as usize) == Some(&TokenKind::Control)
    }

    /// Tokens in the vocabulary.
    #[must_use]
    pub fn vocab_len(&self) -> usize {
        self.inner.vocabulary.tokens.len()
    }
}

fn fault(e: impl std::fmt::Display) -> LoadError {
    LoadError::Tokenizer(e.to_string())
}

fn bpe(m: &Metadata, v: &Vocabulary) -> Result<HfTokenizer, LoadError> {
    let splitter = splitter::find(m.str("tokenizer.ggml.pre")?.unwrap_or("default"))?;
    let key = "tokenizer.ggml.merges";
    let merges = m.strings(key)?.ok_or_else(|| LoadError::MissingKey(key.into()))?;
    let words: ahash::AHashMap<String, u32> = v.words().map(|(id, token)| (token.to_owned(), id)).collect();
    let mut pairs = Vec::with_capacity(merges.len());
    for merge in merges {
        let (a, b) = merge.split_once(' ').ok_or_else(|| fault(format!("the merge {merge:?} is no pair")))?;
        let joined = [a, b].concat();
        // A merge towards a control token would let text become one.
        if words.contains_key(&joined) {
            pairs.push((a.to_owned(), b.to_owned()));
        } else if !v.tokens.contains(&joined) {
            return Err(fault(format!("the merge {merge:?} gives no token")));
        }
    }
    let model = BPE::builder()
        .vocab_and_merges(words, pairs)
        .ignore_merges(splitter.ignore_merges)
        .cache_capacity(BPE_CACHE)
        .build()
        .map_err(fault)?;
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in splitter.patterns {
        let pattern = SplitPattern::Regex((*pattern).to_owned());
        steps.push(Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(fault)?.into());
    }
    steps.push(ByteLevel::new(false, false, false).into());
    let mut hf = HfTokenizer::new(model);
    hf.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(hf)
}

fn spm(m: &Metadata, v: &Vocabulary) -> Result<Spm, LoadError> {
    if v.scores.is_empty() {
        return Err(LoadError::MissingKey("tokenizer.ggml.scores".into()));
    }
    let mut bytes = [None; 256];
    for (id, token) in (0..).zip(&v.tokens) {
        if let (TokenKind::Byte, Some(byte)) = (v.kinds[id as usize], byte_token(token)) {
            bytes[usize::from(byte)] = Some(id);
        }
    }
    let unknown = v.id(m, "unknown")?.unwrap_or(0);
    let prefix_space = m.bool("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let words = v.words().map(|(id, token)| (token.to_owned(), id, v.scores[id as usize]));
    Ok(Spm::new(words, bytes, unknown, prefix_space))
}

fn unigram(m: &Metadata, v: &Vocabulary) -> Result<HfTokenizer, LoadError> {
    if v.scores.is_empty() {
        return Err(LoadError::MissingKey("tokenizer.ggml.scores".into()));
    }
    let unknown = v.id(m, "unknown")?.ok_or_else(|| LoadError::MissingKey("tokenizer.ggml.unknown_token_id".into()))?;
    // Ids are positions, so control tokens keep their places under names that no text has.
    let words = (0..).zip(&v.tokens).map(|(id, token)| {
        let score = f64::from(v.scores[id as usize]);
        match v.kinds[id as usize] {
            TokenKind::Control | TokenKind::Unused | TokenKind::Unknown => (format!("\u{0}{id}"), score),
            TokenKind::UserDefined => (token.clone(), 0.0),
            _ => (token.clone(), score),
        }
    });
    let model = Unigram::from(words.collect(), Some(unknown as usize), false).map_err(fault)?;
    let mut hf = HfTokenizer::new(model);
    if let Some(map) = m.integers("tokenizer.ggml.precompiled_charsmap")?.filter(|map| !map.is_empty()) {
        let map: Vec<u8> = map.iter().map(|b| *b as u8).collect();
        hf.with_normalizer(Some(Precompiled::from(&map).map_err(|e| fault(format!("the normalisation map: {e:?}")))?));
    }
    let steps: Vec<PreTokenizerWrapper> =
        vec![WhitespaceSplit.into(), Metaspace::new('\u{2581}', PrependScheme::Always, true).into()];
    hf.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(hf)
}

/// A tokenizer that an import kept as it was; padding, truncation and framing are not its business here.
fn kept_json(json: &str, v: &Vocabulary) -> Result<HfTokenizer, LoadError> {
    let mut hf = HfTokenizer::from_bytes(json.as_bytes()).map_err(fault)?;
    hf.with_padding(None);
    hf.with_truncation(None).map_err(fault)?;
    // Control tokens in a text are text.
    hf.set_encode_special_tokens(true);
    if hf.get_vocab_size(true) > v.tokens.len() {
        let what = format!("{} tokens in the kept tokenizer, {} in the file", hf.get_vocab_size(true), v.tokens.len());
        return Err(LoadError::Tokenizer(what));
    }
    Ok(hf)
}

/// `<0x41>` is the byte 0x41.
fn byte_token(token: &str) -> Option<u8> {
    u8::from_str_radix(token.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok()
}

/// Every token that ends an answer: those of the keys, and control tokens with names known to do so.
fn ends(m: &Metadata, v: &Vocabulary, eos: Option<u32>) -> Result<Vec<u32>, LoadError> {
    const NAMES: [&str; 8] = [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<EOT>",
        "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    ];
    let mut ends: Vec<u32> = eos.into_iter().collect();
    ends.extend(v.id(m, "eot")?);
    ends.extend(v.id(m, "eom")?);
    ends.extend((0..).zip(&v.tokens).filter(|(_, t)| NAMES.contains(&t.as_str())).map(|(id, _): (u32, _)| id));
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}
