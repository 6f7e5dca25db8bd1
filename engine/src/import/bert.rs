//! A folder as `transformers` saves it, of BERT, RoBERTa or XLM-RoBERTa, to GGUF: matrices as Q8_0, the rest as floats.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use serde_json::Value as Json;

use super::encoder::Encoder;
use super::safetensors::{Safetensors, View};
use super::vocabulary::Vocabulary;
use super::{ImportError, ModelCard, read_bounded, read_json, unsupported};
use crate::gguf::Value;
use crate::limits::{MAX_CONFIG_JSON, MAX_STRING_BYTES};
use crate::quant::{TensorType, quantize_q8_0};

/// One tensor to write.
struct Job<'a> {
    view: &'a View,
    /// Elements left out at the front: the positions that RoBERTa reserves.
    skip: usize,
    ty: TensorType,
}

/// Converts the folder.
pub(super) fn import(folder: &Path, card: &ModelCard, out: &mut dyn Write) -> Result<(), ImportError> {
    let config_path = folder.join("config.json");
    let config = read_json(&config_path, MAX_CONFIG_JSON)?;
    let reserved = reserved_positions(&config, &config_path)?;
    let encoder = Encoder { pooling: pooling(folder)?, ..encoder(&config, reserved, &config_path)? };
    encoder.check(&config_path)?;
    let weights = Safetensors::open(&folder.join("model.safetensors"))?;

    let mut file = encoder.header(&with_prompts(folder, card)?, TensorType::Q8_0);
    let tokenizer_path = folder.join("tokenizer.json");
    let tokenizer = read_bounded(&tokenizer_path, MAX_STRING_BYTES)?;
    Vocabulary::from_json(&tokenizer, encoder.vocab, &tokenizer_path)?.write(&mut file);
    let tokenizer = String::from_utf8(tokenizer).map_err(|_| unsupported(&tokenizer_path, "not UTF-8"))?;
    file.set("tokenizer.huggingface.json", &Value::String(tokenizer));

    let mut jobs = Vec::new();
    for (name, source, shape) in tensors(&encoder, reserved) {
        let view = weights.find(&spellings(&source))?;
        if view.shape != shape {
            let what = format!("the tensor {source} has the shape {:?}, expected {shape:?}", view.shape);
            return Err(unsupported(&folder.join("model.safetensors"), what));
        }
        let skip = if name == "position_embd.weight" { reserved * encoder.width } else { 0 };
        let mut dims: Vec<u64> = shape.iter().rev().copied().collect();
        if name == "position_embd.weight" {
            dims[1] = encoder.context;
        }
        let ty = if is_matrix(&name) && dims[0].is_multiple_of(32) { TensorType::Q8_0 } else { TensorType::F32 };
        file.tensor(&name, &dims, ty);
        jobs.push(Job { view, skip: skip as usize, ty });
    }
    file.write(out, |i| {
        let floats = weights.floats(jobs[i].view, jobs[i].skip);
        Cow::Owned(match jobs[i].ty {
            TensorType::Q8_0 => quantize_q8_0(&floats),
            _ => floats.iter().flat_map(|v| v.to_le_bytes()).collect(),
        })
    })?;
    Ok(())
}

/// Whether a tensor takes part in matrix products, and so is worth packing.
fn is_matrix(name: &str) -> bool {
    let vectors = ["position_embd", "token_types", "norm", "bias"];
    !vectors.iter().any(|part| name.contains(part))
}

/// Every tensor: its name here, its name in the source, and its shape there, slowest first.
fn tensors(e: &Encoder, reserved: u64) -> Vec<(String, String, Vec<u64>)> {
    let mut all = vec![
        ("token_embd.weight".into(), "embeddings.word_embeddings.weight".into(), vec![e.vocab, e.width]),
        (
            "position_embd.weight".into(),
            "embeddings.position_embeddings.weight".into(),
            vec![e.context + reserved, e.width],
        ),
        ("token_types.weight".into(), "embeddings.token_type_embeddings.weight".into(), vec![e.token_types, e.width]),
        ("token_embd_norm.weight".into(), "embeddings.LayerNorm.weight".into(), vec![e.width]),
        ("token_embd_norm.bias".into(), "embeddings.LayerNorm.bias".into(), vec![e.width]),
    ];
    let parts = [
        ("attn_q", "attention.self.query", e.width, e.width),
        ("attn_k", "attention.self.key", e.width, e.width),
        ("attn_v", "attention.self.value", e.width, e.width),
        ("attn_output", "attention.output.dense", e.width, e.width),
        ("attn_output_norm", "attention.output.LayerNorm", e.width, 0),
        ("ffn_up", "intermediate.dense", e.ffn, e.width),
        ("ffn_down", "output.dense", e.width, e.ffn),
        ("layer_output_norm", "output.LayerNorm", e.width, 0),
    ];
    for i in 0..e.layers {
        for (name, source, rows, columns) in parts {
            let shape = if columns == 0 { vec![rows] } else { vec![rows, columns] };
            all.push((format!("blk.{i}.{name}.weight"), format!("encoder.layer.{i}.{source}.weight"), shape));
            all.push((format!("blk.{i}.{name}.bias"), format!("encoder.layer.{i}.{source}.bias"), vec![rows]));
        }
    }
    all
}

/// The names under which a tensor may be found: older files call a norm's weight gamma and its bias beta, and files
/// with a task head put the encoder's name in front.
fn spellings(name: &str) -> Vec<String> {
    let old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
    ["", "bert.", "roberta."].iter().flat_map(|prefix| [format!("{prefix}{name}"), format!("{prefix}{old}")]).collect()
}

/// Positions that come before the first one in use: RoBERTa counts from the padding token's id + 1.
fn reserved_positions(config: &Json, path: &Path) -> Result<u64, ImportError> {
    match config["model_type"].as_str() {
        Some("bert") => Ok(0),
        Some("roberta" | "xlm-roberta") => Ok(config["pad_token_id"].as_u64().unwrap_or(1).min(16) + 1),
        other => Err(unsupported(path, format!("model_type {other:?}: bert, roberta and xlm-roberta are supported"))),
    }
}

fn encoder(config: &Json, reserved: u64, path: &Path) -> Result<Encoder, ImportError> {
    let number = |key: &str| config[key].as_u64().ok_or_else(|| unsupported(path, format!("{key} is missing")));
    let activation = config["hidden_act"].as_str().unwrap_or("gelu");
    if activation != "gelu" {
        return Err(unsupported(path, format!("hidden_act {activation:?}: only gelu is supported")));
    }
    let positions = config["position_embedding_type"].as_str().unwrap_or("absolute");
    if positions != "absolute" {
        return Err(unsupported(path, format!("position_embedding_type {positions:?}: only absolute is supported")));
    }
    Ok(Encoder {
        width: number("hidden_size")?,
        layers: number("num_hidden_layers")?,
        heads: number("num_attention_heads")?,
        ffn: number("intermediate_size")?,
        vocab: number("vocab_size")?,
        context: number("max_position_embeddings")?.saturating_sub(reserved),
        token_types: number("type_vocab_size")?,
        eps: config["layer_norm_eps"].as_f64().unwrap_or(1e-12) as f32,
        pooling: 1,
    })
}

/// How the folder says that tokens are pooled; the mean when it says nothing.
fn pooling(folder: &Path) -> Result<u64, ImportError> {
    let path = folder.join("1_Pooling").join("config.json");
    if !path.is_file() {
        return Ok(1);
    }
    let config = read_json(&path, MAX_CONFIG_JSON)?;
    let on = |key: &str| config[key].as_bool().unwrap_or(false);
    match (on("pooling_mode_mean_tokens"), on("pooling_mode_cls_token"), on("pooling_mode_lasttoken")) {
        (true, false, false) => Ok(1),
        (false, true, false) => Ok(2),
        (false, false, true) => Ok(3),
        _ => Err(unsupported(&path, "only pooling by mean, first or last token is supported")),
    }
}

/// The card with the prefixes that the folder names, where the caller named none.
fn with_prompts(folder: &Path, card: &ModelCard) -> Result<ModelCard, ImportError> {
    let mut card = card.clone();
    let path = folder.join("config_sentence_transformers.json");
    if path.is_file() {
        let config = read_json(&path, MAX_CONFIG_JSON)?;
        let prompt = |keys: &[&str]| keys.iter().find_map(|k| config["prompts"][*k].as_str().map(str::to_owned));
        card.query_prefix = card.query_prefix.or_else(|| prompt(&["query"]));
        card.passage_prefix = card.passage_prefix.or_else(|| prompt(&["passage", "document"]));
    }
    Ok(card)
}

#[cfg(test)]
mod tests;
