//! Named tensors of a model, found and checked before anything is computed. Matrices stay in the mapping; vectors are
//! copied as floats.

use std::sync::Arc;

use super::config::{Architecture, Config};
use super::linear::{Linear, floats};
use crate::error::LoadError;
use crate::gguf::Gguf;
use crate::mapping::Mapping;

/// A norm's weight and, for LayerNorm, its bias: `(width)` each.
#[derive(Debug, Clone)]
pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// One block.
#[derive(Debug)]
pub(super) struct Layer {
    /// Before attention (decoders), after attention's residual (encoders).
    pub(super) attn_norm: Norm,
    pub(super) q: Linear,
    pub(super) k: Linear,
    pub(super) v: Linear,
    /// Per-head norms of queries and keys, `(head_dim)`: Gemma 3.
    pub(super) q_norm: Option<Norm>,
    pub(super) k_norm: Option<Norm>,
    pub(super) out: Linear,
    /// On the attention's output, before the residual is added: Gemma 3.
    pub(super) attn_post_norm: Option<Norm>,
    /// Before the feed-forward block (decoders), after its residual (encoders).
    pub(super) ffn_norm: Norm,
    /// Absent in encoders, whose feed-forward block is `down(f(up(x)))`.
    pub(super) gate: Option<Linear>,
    pub(super) up: Linear,
    pub(super) down: Linear,
    pub(super) ffn_post_norm: Option<Norm>,
}

impl Layer {
    fn matrices(&self) -> impl Iterator<Item = &Linear> {
        let all = [Some(&self.q), Some(&self.k), Some(&self.v), Some(&self.out), self.gate.as_ref()];
        all.into_iter().chain([Some(&self.up), Some(&self.down)]).flatten()
    }
}

/// All tensors of a model.
#[derive(Debug)]
pub struct Weights {
    pub(super) mapping: Arc<Mapping>,
    /// `(vocab, width)`.
    pub(super) embedding: Linear,
    /// `(context, width)`, encoders only.
    pub(super) positions: Option<Vec<f32>>,
    /// Row 0 of the token types, encoders only.
    pub(super) token_type: Option<Vec<f32>>,
    pub(super) embedding_norm: Option<Norm>,
    pub(super) layers: Vec<Layer>,
    pub(super) output_norm: Option<Norm>,
    /// `(vocab, width)`; the embedding where the file ties them.
    pub(super) output: Linear,
    /// Divisors of RoPE frequencies (Llama 3 scaling), `(dims / 2)`.
    pub(super) rope_divisors: Option<Vec<f32>>,
}

struct Finder<'a> {
    gguf: &'a Gguf,
    config: &'a Config,
}

impl Finder<'_> {
    fn norm(&self, name: &str, n: usize) -> Result<Norm, LoadError> {
        let weight = floats(self.gguf, &format!("{name}.weight"), n)?;
        let bias = format!("{name}.bias");
        let bias = match self.gguf.tensor(&bias) {
            Some(_) => floats(self.gguf, &bias, n)?,
            None if self.config.is_encoder() => return Err(LoadError::MissingTensor(bias)),
            None => Vec::new(),
        };
        Ok(Norm { weight, bias })
    }

    fn maybe_norm(&self, wanted: bool, name: &str, n: usize) -> Result<Option<Norm>, LoadError> {
        wanted.then(|| self.norm(name, n)).transpose()
    }

    fn layer(&self, i: usize) -> Result<Layer, LoadError> {
        let c = self.config;
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_heads * c.head_dim);
        let name = |part: &str| format!("blk.{i}.{part}");
        let linear = |part: &str, rows, columns| Linear::find(self.gguf, &name(part), rows, columns);
        let encoder = c.is_encoder();
        let gemma = c.arch == Architecture::Gemma3;
        let (attn_norm, ffn_norm) =
            if encoder { ("attn_output_norm", "layer_output_norm") } else { ("attn_norm", "ffn_norm") };
        Ok(Layer {
            attn_norm: self.norm(&name(attn_norm), c.width)?,
            q: linear("attn_q", q_width, c.width)?,
            k: linear("attn_k", kv_width, c.width)?,
            v: linear("attn_v", kv_width, c.width)?,
            q_norm: self.maybe_norm(gemma, &name("attn_q_norm"), c.head_dim)?,
            k_norm: self.maybe_norm(gemma, &name("attn_k_norm"), c.head_dim)?,
            out: linear("attn_output", c.width, q_width)?,
            attn_post_norm: self.maybe_norm(gemma, &name("post_attention_norm"), c.width)?,
            ffn_norm: self.norm(&name(ffn_norm), c.width)?,
            gate: (!encoder).then(|| linear("ffn_gate", c.ffn, c.width)).transpose()?,
            up: linear("ffn_up", c.ffn, c.width)?,
            down: linear("ffn_down", c.width, c.ffn)?,
            ffn_post_norm: self.maybe_norm(gemma, &name("post_ffw_norm"), c.width)?,
        })
    }
}

impl Weights {
    /// Finds every tensor that `config` calls for.
    ///
    /// # Errors
    /// [`LoadError::MissingTensor`], [`LoadError::Shape`], [`LoadError::TensorLayout`].
    pub fn find(gguf: &Gguf, config: &Config) -> Result<Self, LoadError> {
        let f = Finder { gguf, config };
        let (c, encoder) = (config, config.is_encoder());
        let embedding = Linear::find(gguf, "token_embd", c.vocab, c.width)?;
        let output = match gguf.tensor("output.weight") {
            Some(_) if !encoder => Linear::find(gguf, "output", c.vocab, c.width)?,
            _ => embedding.clone(),
        };
        let divisors = match c.rope {
            Some(rope) if gguf.tensor("rope_freqs.weight").is_some() => {
                Some(floats(gguf, "rope_freqs.weight", rope.dims / 2)?)
            }
            _ => None,
        };
        Ok(Self {
            mapping: Arc::clone(gguf.mapping()),
            embedding,
            positions: encoder.then(|| table(gguf, "position_embd.weight", c.context, c.width)).transpose()?,
            token_type: encoder.then(|| first_row(gguf, "token_types.weight", c.width)).transpose()?,
            embedding_norm: f.maybe_norm(encoder, "token_embd_norm", c.width)?,
            layers: (0..c.layers).map(|i| f.layer(i)).collect::<Result<_, _>>()?,
            output_norm: f.maybe_norm(!encoder, "output_norm", c.width)?,
            output,
            rope_divisors: divisors,
        })
    }

    /// Bytes of weights that one decoded token reads: all matrices, the output once, and no embedding table of its own.
    #[must_use]
    pub fn bytes_per_token(&self) -> usize {
        self.layers.iter().flat_map(Layer::matrices).map(Linear::bytes).sum::<usize>() + self.output.bytes()
    }

    /// Multiplications with weights for one token of a prompt: all matrices of the layers, attention and output apart.
    #[must_use]
    pub fn macs_per_token(&self) -> usize {
        self.layers.iter().flat_map(Layer::matrices).map(Linear::elements).sum()
    }

    /// Row `token` of the embedding table as floats.
    pub(super) fn embed(&self, token: u32, out: &mut [f32]) {
        let m = self.embedding.matrix(&self.mapping);
        m.ty.dequantize(m.row(token as usize), out);
    }
}

/// A table of at least `rows` rows, of which the first `rows` are read.
fn table(gguf: &Gguf, name: &str, rows: usize, width: usize) -> Result<Vec<f32>, LoadError> {
    let info = gguf.tensor(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))?;
    if info.dims.len() != 2 || info.dims[0] != width as u64 || info.dims[1] < rows as u64 {
        let expected = vec![width as u64, rows as u64];
        return Err(LoadError::Shape { tensor: name.to_owned(), found: info.dims.clone(), expected });
    }
    let mut out = vec![0.0; rows * width];
    let n = info.ty.row_bytes(width);
    for (row, out) in gguf.data(info).chunks_exact(n).zip(out.chunks_exact_mut(width)) {
        info.ty.dequantize(row, out);
    }
    Ok(out)
}

/// Row 0 of a table that may be stored flat when it has one row.
fn first_row(gguf: &Gguf, name: &str, width: usize) -> Result<Vec<f32>, LoadError> {
    let info = gguf.tensor(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))?;
    if info.dims[0] != width as u64 {
        let expected = vec![width as u64, 1];
        return Err(LoadError::Shape { tensor: name.to_owned(), found: info.dims.clone(), expected });
    }
    let mut out = vec![0.0; width];
    info.ty.dequantize(&gguf.data(info)[..info.ty.row_bytes(width)], &mut out);
    Ok(out)
}
