//! A `tokenizer.json`, which imported embedders keep, run by the `tokenizers` crate.
//!
//! The crate would cut the names of special tokens out of any text. So its list of added tokens is emptied before it
//! sees the file: what frames a text is asked for once, and text stays text.

use serde::Deserialize;
use serde_json::Value as Json;

use super::vocabulary::{Kind, Spelling, Vocabulary};
use crate::error::{LoadError, RunError};
use crate::limits::MAX_VOCAB;

/// The crate's tokenizer, without added tokens, padding and truncation.
#[derive(Debug)]
pub(super) struct HuggingFace {
    inner: tokenizers::Tokenizer,
}

impl HuggingFace {
    /// From the JSON; gives the vocabulary too.
    pub(super) fn new(json: &str) -> Result<(Self, Vocabulary), LoadError> {
        let mut json: Json = serde_json::from_str(json).map_err(|e| fault(&e))?;
        if !json.is_object() {
            return Err(fault(&"it is no object"));
        }
        // The crate's reader of this model's rules indexes by what the file says, so a damaged file would be a panic.
        if json["model"]["type"] == "Unigram" || charsmap_of(&json["normalizer"]).is_some() {
            return Err(fault(&"a unigram model needs tokenizer.ggml.model = t5"));
        }
        let added = json["added_tokens"].take();
        json["added_tokens"] = Json::Array(Vec::new());
        json["padding"] = Json::Null;
        json["truncation"] = Json::Null;
        let unknown = json["model"]["unk_token"].as_str().map(str::to_owned);
        let bytes = serde_json::to_vec(&json).map_err(|e| fault(&e))?;
        drop(json);
        let inner = tokenizers::Tokenizer::from_bytes(&bytes).map_err(|e| fault(&e))?;
        let vocabulary = vocabulary(&inner, &added, unknown.as_deref())?;
        Ok((Self { inner }, vocabulary))
    }

    /// What the file's post-processor puts before and after a text.
    pub(super) fn frame(&self) -> Result<(Vec<u32>, Vec<u32>), LoadError> {
        let encode = |special| self.inner.encode_fast("a", special).map_err(|e| fault(&e));
        let (framed, bare) = (encode(true)?, encode(false)?);
        let (framed, bare) = (framed.get_ids(), bare.get_ids());
        let at = framed
            .windows(bare.len().max(1))
            .position(|w| w == bare)
            .ok_or_else(|| fault(&"its post-processor does not keep the text"))?;
        Ok((framed[..at].to_vec(), framed[at + bare.len()..].to_vec()))
    }

    /// Appends the tokens of a text.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), RunError> {
        let encoding = self.inner.encode_fast(text, false).map_err(|e| RunError::Text(format!("tokenizer: {e}")))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }
}

fn fault(e: &dyn std::fmt::Display) -> LoadError {
    LoadError::Tokenizer(format!("tokenizer.huggingface.json: {e}"))
}

/// The tokens by id; added tokens that are special are control tokens, but for the one that stands for the unknown.
fn vocabulary(inner: &tokenizers::Tokenizer, added: &Json, unknown: Option<&str>) -> Result<Vocabulary, LoadError> {
    let map = inner.get_vocab(false);
    let added: Vec<(u64, &str, bool)> = added
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(|t| Some((t["id"].as_u64()?, t["content"].as_str()?, t["special"].as_bool().unwrap_or(true))))
        .collect();
    let last = map.values().map(|id| u64::from(*id)).chain(added.iter().map(|t| t.0)).max();
    let len = last.map_or(0, |id| id.saturating_add(1));
    if len == 0 || len > MAX_VOCAB as u64 {
        return Err(fault(&format!("{len} tokens, outside 1..={MAX_VOCAB}")));
    }
    let mut tokens = vec![String::new(); len as usize];
    let mut kinds = vec![Kind::Unused; len as usize];
    for (token, id) in map {
        // Not normal: the vocabulary shows these, and the crate alone looks them up.
        kinds[id as usize] = Kind::UserDefined;
        tokens[id as usize] = token;
    }
    for (id, content, special) in added {
        tokens[id as usize] = content.to_owned();
        kinds[id as usize] = match special {
            _ if unknown == Some(content) => Kind::Unknown,
            true => Kind::Control,
            false => Kind::UserDefined,
        };
    }
    Vocabulary::new(&tokens, kinds, Spelling::WordStart)
}

/// The part of the JSON that tells how text is normalised.
#[derive(Deserialize)]
struct Normalisation {
    #[serde(default)]
    normalizer: Json,
}

/// The base64 text of SentencePiece's rules, where the JSON has them.
pub(super) fn charsmap(json: &str) -> Result<Option<String>, LoadError> {
    let parsed: Normalisation = serde_json::from_str(json).map_err(|e| fault(&e))?;
    Ok(charsmap_of(&parsed.normalizer).map(str::to_owned))
}

/// The rules of a normalizer, or of the first in a sequence that has any.
fn charsmap_of(normalizer: &Json) -> Option<&str> {
    let steps = normalizer["normalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    std::iter::once(normalizer).chain(steps).find_map(|step| step["precompiled_charsmap"].as_str())
}
