//! The `.bin` file of 4-bit multilingual-e5, to GGUF. Its blocks are Q4_0 bit for bit, and are copied.
//!
//! ```text
//! "E5S1" | u32 version | i32 width, layers, heads, ffn, vocabulary, positions, token types | f32 eps | i32 block length
//! vocabulary:    i32 pieces, bos, eos, pad, unk | u64 text bytes | u32 offset[pieces + 1] | f32 score[pieces] | text
//! normalisation: i32 rules | u32 bytes | rules: u32 character, u8 n, u32 replacement[n]; sorted by character
//! directory:     i32 tensors | each: u16 name length, name, u8 type (0 f32, 1 blocks), u32 elements, u64 offset, u64 bytes
//! data:          anywhere after; offsets count from the start of the file
//! ```
//! Integers are little-endian. Positions are cut to those in use. Layout from the C source beside the file (MIT).

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use super::charsmap::CharsMap;
use super::encoder::Encoder;
use super::vocabulary::Vocabulary;
use super::{ImportError, ModelCard, unsupported};
use crate::error::LoadError;
use crate::gguf::reader::Reader;
use crate::limits::{MAX_NORMALIZATION_RULES, MAX_TENSORS, MAX_VOCAB};
use crate::mapping::Mapping;
use crate::quant::TensorType;

/// The first bytes of a file.
pub(super) const MAGIC: &[u8] = b"E5S1";

/// The version described above.
const VERSION: u32 = 1;

/// A tensor of the directory.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    ty: TensorType,
    elements: u64,
    bytes: Range<usize>,
}

/// Converts the file.
pub(super) fn import(path: &Path, card: &ModelCard, out: &mut dyn Write) -> Result<(), ImportError> {
    let damaged = |source| ImportError::Damaged { path: path.to_owned(), source };
    let mapping = Mapping::open(path).map_err(damaged)?;
    let mut r = Reader::new(mapping.bytes());
    let encoder = header(&mut r).map_err(damaged)?;
    encoder.check(path)?;
    let vocabulary = vocabulary(&mut r, encoder.vocab).map_err(damaged)?;
    let rules = rules(&mut r).map_err(damaged)?;
    let entries = directory(&mut r, mapping.bytes().len() as u64).map_err(damaged)?;

    // What e5 was trained with, wherever its file comes from.
    let mut card = card.clone();
    card.query_prefix = card.query_prefix.or_else(|| Some("query: ".to_owned()));
    card.passage_prefix = card.passage_prefix.or_else(|| Some("passage: ".to_owned()));
    let mut file = encoder.header(&card, TensorType::Q4_0);
    vocabulary.write(&mut file);
    let charsmap = rules.to_bytes().ok_or_else(|| unsupported(path, "its normalisation rules are too many"))?;
    file.set_bytes("tokenizer.ggml.precompiled_charsmap", &charsmap);

    let mut data = Vec::new();
    for (name, source, dims) in tensors(&encoder) {
        let entry = entries.get(&source).ok_or_else(|| unsupported(path, format!("the tensor {source} is missing")))?;
        if entry.elements != dims.iter().product::<u64>() {
            let what = format!("the tensor {source} has {} elements, expected {dims:?}", entry.elements);
            return Err(unsupported(path, what));
        }
        if !dims[0].is_multiple_of(entry.ty.block_len() as u64) {
            return Err(unsupported(path, format!("rows of the tensor {source} are not whole blocks: {dims:?}")));
        }
        file.tensor(&name, &dims, entry.ty);
        data.push(entry.bytes.clone());
    }
    Ok(file.write(out, |i| Cow::Borrowed(&mapping.bytes()[data[i].clone()]))?)
}

fn malformed(what: String, at: u64) -> LoadError {
    LoadError::Malformed { what, at }
}

fn header(r: &mut Reader<'_>) -> Result<Encoder, LoadError> {
    r.take(MAGIC.len() as u64, "magic")?;
    let version = r.u32("version")?;
    if version != VERSION {
        return Err(malformed(format!("version {version}, only {VERSION} is known"), 4));
    }
    let mut next = |what| r.u32(what).map(u64::from);
    let encoder = Encoder {
        width: next("width")?,
        layers: next("layers")?,
        heads: next("heads")?,
        ffn: next("feed-forward width")?,
        vocab: next("vocabulary size")?,
        context: next("positions")?,
        token_types: next("token types")?,
        eps: f32::from_bits(next("epsilon")? as u32),
        pooling: 1,
    };
    let block = r.u32("block length")?;
    if block as usize != TensorType::Q4_0.block_len() {
        return Err(malformed(format!("blocks of {block} weights, only 32 are known"), r.position() - 4));
    }
    Ok(encoder)
}

/// Most rows of the table that belong to no piece: the published file has 35.
const MAX_SPARE_ROWS: u64 = 1024;

fn vocabulary(r: &mut Reader<'_>, rows: u64) -> Result<Vocabulary, LoadError> {
    let at = r.position();
    let pieces = u64::from(r.u32("pieces")?);
    if !(pieces..=pieces.saturating_add(MAX_SPARE_ROWS)).contains(&rows) || pieces > MAX_VOCAB as u64 {
        return Err(malformed(format!("{pieces} pieces for {rows} embeddings"), at));
    }
    // The ids of special tokens; their names tell the same.
    r.take(16, "special tokens")?;
    let text_bytes = r.u64("text length")?;
    let offsets = words(r.take((pieces + 1) * 4, "offsets")?);
    let scores: Vec<f32> = words(r.take(pieces * 4, "scores")?).map(f32::from_bits).collect();
    let at = r.position();
    let text = r.take(text_bytes, "text of the pieces")?;
    let offsets: Vec<usize> = offsets.map(|v| v as usize).collect();
    let piece = |span: &[usize]| text.get(span[0]..span[1]).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let tokens = offsets.windows(2).enumerate().map(|(i, span)| match piece(span) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(malformed(format!("piece {i} at {span:?} is no text"), at)),
    });
    let tokens = tokens.collect::<Result<Vec<String>, LoadError>>()?;
    if let Some(i) = scores.iter().position(|score| !score.is_finite()) {
        return Err(malformed(format!("the score of piece {i} is {}", scores[i]), at));
    }
    Ok(Vocabulary::unigram(tokens, scores, rows))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn rules(r: &mut Reader<'_>) -> Result<CharsMap, LoadError> {
    let at = r.position();
    let count = u64::from(r.u32("normalisation rules")?);
    if count > MAX_NORMALIZATION_RULES {
        let what = "normalisation rules".to_owned();
        return Err(LoadError::TooLarge { what, at, value: count, limit: MAX_NORMALIZATION_RULES });
    }
    let bytes = u64::from(r.u32("normalisation length")?);
    let end = r.position().saturating_add(bytes);
    let mut rules = CharsMap::default();
    for _ in 0..count {
        let at = r.position();
        let character = |code: u32| {
            let known = char::from_u32(code).filter(|c| *c != '\0');
            known.ok_or_else(|| malformed(format!("a normalisation rule has the character {code:#x}"), at))
        };
        let from = character(r.u32("normalised character")?)?;
        let n = r.u8("replacement length")?;
        let to = words(r.take(u64::from(n) * 4, "replacement")?).map(character).collect::<Result<String, _>>()?;
        rules.insert(from, to);
    }
    if r.position() != end {
        return Err(malformed(format!("the normalisation rules end at {}, not {end}", r.position()), at));
    }
    Ok(rules)
}

fn directory(r: &mut Reader<'_>, file_bytes: u64) -> Result<HashMap<String, Entry>, LoadError> {
    let at = r.position();
    let count = u64::from(r.u32("tensor count")?);
    if count > MAX_TENSORS {
        return Err(LoadError::TooLarge { what: "tensor count".to_owned(), at, value: count, limit: MAX_TENSORS });
    }
    let mut entries = HashMap::new();
    for _ in 0..count {
        let at = r.position();
        let length = r.u16("tensor name length")?;
        let name = std::str::from_utf8(r.take(u64::from(length), "tensor name")?)
            .map_err(|e| malformed(format!("a tensor name is not UTF-8 ({e})"), at))?
            .to_owned();
        let ty = match r.u8(&name)? {
            0 => TensorType::F32,
            1 => TensorType::Q4_0,
            other => return Err(malformed(format!("tensor {name} has the unknown type {other}"), at)),
        };
        let elements = u64::from(r.u32(&name)?);
        let (start, bytes) = (r.u64(&name)?, r.u64(&name)?);
        let needed = elements / ty.block_len() as u64 * ty.block_bytes() as u64;
        let end = start.checked_add(bytes).filter(|end| *end <= file_bytes);
        let (Some(end), true) = (end, bytes == needed) else {
            let what = format!("{elements} elements in {bytes} bytes at {start} do not fit a file of {file_bytes}");
            return Err(LoadError::TensorLayout { tensor: name, what });
        };
        entries.insert(name, Entry { ty, elements, bytes: start as usize..end as usize });
    }
    Ok(entries)
}

/// Every tensor: its name here, its name in the source, and its dimensions, fastest first.
fn tensors(e: &Encoder) -> Vec<(String, String, Vec<u64>)> {
    let mut all: Vec<(String, String, Vec<u64>)> = vec![
        ("token_embd.weight".into(), "emb.word".into(), vec![e.width, e.vocab]),
        ("position_embd.weight".into(), "emb.pos".into(), vec![e.width, e.context]),
        ("token_types.weight".into(), "emb.type".into(), vec![e.width, e.token_types]),
        ("token_embd_norm.weight".into(), "emb.ln.w".into(), vec![e.width]),
        ("token_embd_norm.bias".into(), "emb.ln.b".into(), vec![e.width]),
    ];
    let parts = [
        ("attn_q", "q", vec![e.width, e.width]),
        ("attn_k", "k", vec![e.width, e.width]),
        ("attn_v", "v", vec![e.width, e.width]),
        ("attn_output", "ao", vec![e.width, e.width]),
        ("attn_output_norm", "aln", vec![e.width]),
        ("ffn_up", "fi", vec![e.width, e.ffn]),
        ("ffn_down", "fo", vec![e.ffn, e.width]),
        ("layer_output_norm", "oln", vec![e.width]),
    ];
    for i in 0..e.layers {
        for (name, source, dims) in &parts {
            let outputs = dims[dims.len() - 1];
            all.push((format!("blk.{i}.{name}.weight"), format!("l{i}.{source}.w"), dims.clone()));
            all.push((format!("blk.{i}.{name}.bias"), format!("l{i}.{source}.b"), vec![outputs]));
        }
    }
    all
}

#[cfg(test)]
mod tests;
