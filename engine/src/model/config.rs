//! Hyperparameters, validated when a file is opened. What differs between architectures is data here, not code in the
//! forward pass.

use crate::cache::CacheType;
use crate::error::LoadError;
use crate::gguf::{Gguf, Metadata};
use crate::kernels::Activation;
use crate::limits::{MAX_CONTEXT, MAX_HEADS, MAX_LAYERS, MAX_VOCAB, MAX_WIDTH};

/// The families that this engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Llama and what is built like it: Mistral, SmolLM2, TinyLlama.
    Llama,
    /// Qwen 2 and 2.5.
    Qwen2,
    /// Gemma 3, text.
    Gemma3,
    /// BERT-family encoders: MiniLM, bge, e5.
    Bert,
}

/// Which dimensions RoPE rotates together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopePairs {
    /// `(2i, 2i + 1)`; the q and k rows of `llama` files are permuted for it.
    Adjacent,
    /// `(i, i + n/2)`.
    Halves,
}

/// Rotary position embedding of a kind of layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// Pairing.
    pub pairs: RopePairs,
    /// Dimensions rotated; the rest of a head is left alone.
    pub dims: usize,
    /// Base of the geometric series of wavelengths.
    pub base: f32,
    /// Linear scaling: positions are multiplied by this.
    pub scale: f32,
}

/// How token vectors become one text vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all tokens.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
}

/// Hyperparameters of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Family.
    pub arch: Architecture,
    /// Blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Dimensions of a head.
    pub head_dim: usize,
    /// Width of the feed-forward block.
    pub ffn: usize,
    /// Tokens in the vocabulary.
    pub vocab: usize,
    /// Longest context that the model was made for.
    pub context: usize,
    /// Added to the mean square (or variance) in norms.
    pub eps: f32,
    /// Rotation of layers that see the whole context; none for learned positions.
    pub rope: Option<Rope>,
    /// Rotation of layers with a sliding window.
    pub rope_local: Option<Rope>,
    /// Positions that a sliding-window layer sees.
    pub window: Option<usize>,
    /// Every how manyth layer sees everything; 1 when all do.
    pub global_every: usize,
    /// Factor on token embeddings.
    pub embedding_scale: f32,
    /// Factor on queries: `1 / sqrt(head_dim)` for all of these.
    pub query_scale: f32,
    /// The feed-forward nonlinearity.
    pub activation: Activation,
    /// Pooling, for encoders.
    pub pooling: Pooling,
}

impl Config {
    /// Reads and checks the metadata.
    ///
    /// # Errors
    /// [`LoadError::Architecture`], [`LoadError::MissingKey`], [`LoadError::BadKey`].
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, LoadError> {
        let m = gguf.metadata();
        let name = gguf.architecture()?;
        let arch = match name {
            "llama" => Architecture::Llama,
            "qwen2" => Architecture::Qwen2,
            "gemma3" => Architecture::Gemma3,
            "bert" => Architecture::Bert,
            other => return Err(LoadError::Architecture(other.to_owned())),
        };
        let key = |k: &str| format!("{name}.{k}");
        let width = m.need_u32(&key("embedding_length"), MAX_WIDTH)? as usize;
        let heads = m.need_u32(&key("attention.head_count"), MAX_HEADS)? as usize;
        let kv_heads = m.u32(&key("attention.head_count_kv"))?.map_or(heads, |v| v as usize);
        let head_dim = m.u32(&key("attention.key_length"))?.map_or(width / heads, |v| v as usize);
        let value_dim = m.u32(&key("attention.value_length"))?.map_or(head_dim, |v| v as usize);
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(bad(&key("attention.head_count_kv"), format!("{kv_heads} does not divide {heads}")));
        }
        if head_dim == 0 || head_dim % 2 != 0 || head_dim > 1024 || value_dim != head_dim {
            let what = format!("head dimensions {head_dim} and {value_dim} are not supported");
            return Err(bad(&key("attention.key_length"), what));
        }
        let eps_key = if arch == Architecture::Bert { "layer_norm_epsilon" } else { "layer_norm_rms_epsilon" };
        let eps_key = key(&format!("attention.{eps_key}"));
        let eps = m.f32(&eps_key)?.ok_or(LoadError::MissingKey(eps_key))?;
        let mut config = Self {
            arch,
            layers: m.need_u32(&key("block_count"), MAX_LAYERS)? as usize,
            width,
            heads,
            kv_heads,
            head_dim,
            ffn: m.need_u32(&key("feed_forward_length"), MAX_WIDTH)? as usize,
            vocab: vocab(gguf)?,
            context: m.need_u32(&key("context_length"), MAX_CONTEXT as u32)? as usize,
            eps,
            rope: None,
            rope_local: None,
            window: None,
            global_every: 1,
            embedding_scale: 1.0,
            query_scale: 1.0 / (head_dim as f32).sqrt(),
            activation: Activation::Silu,
            pooling: Pooling::Mean,
        };
        match arch {
            Architecture::Llama => config.rope = Some(rope(m, name, RopePairs::Adjacent, head_dim)?),
            Architecture::Qwen2 => config.rope = Some(rope(m, name, RopePairs::Halves, head_dim)?),
            Architecture::Gemma3 => config.gemma3(m, name)?,
            Architecture::Bert => config.bert(m, name)?,
        }
        Ok(config)
    }

    /// Five local layers with base 10,000, then one global layer with the file's base and scale.
    fn gemma3(&mut self, m: &Metadata, name: &str) -> Result<(), LoadError> {
        let global = rope(m, name, RopePairs::Halves, self.head_dim)?;
        self.rope = Some(global);
        self.window = m.u32(&format!("{name}.attention.sliding_window"))?.filter(|w| *w > 0).map(|w| w as usize);
        if self.window.is_some() {
            self.global_every = 6;
            self.rope_local = Some(Rope { base: 10_000.0, scale: 1.0, ..global });
        }
        self.embedding_scale = (self.width as f32).sqrt();
        self.activation = Activation::GeluTanh;
        Ok(())
    }

    fn bert(&mut self, m: &Metadata, name: &str) -> Result<(), LoadError> {
        if m.bool(&format!("{name}.attention.causal"))? == Some(true) {
            return Err(bad(&format!("{name}.attention.causal"), "a causal encoder is not supported".into()));
        }
        self.activation = Activation::GeluErf;
        let key = format!("{name}.pooling_type");
        self.pooling = match m.u32(&key)?.unwrap_or(1) {
            1 => Pooling::Mean,
            2 => Pooling::Cls,
            3 => Pooling::Last,
            other => return Err(bad(&key, format!("pooling type {other} is not supported"))),
        };
        Ok(())
    }

    /// Whether layer `i` sees only a window.
    #[must_use]
    pub fn is_local(&self, layer: usize) -> bool {
        self.window.is_some() && !(layer + 1).is_multiple_of(self.global_every)
    }

    /// Whether this is an encoder for embeddings.
    #[must_use]
    pub fn is_encoder(&self) -> bool {
        self.arch == Architecture::Bert
    }

    /// Bytes of buffers that a session takes besides its KV cache, computing `batch` tokens a pass.
    #[must_use]
    pub fn scratch_bytes(&self, batch: usize) -> usize {
        super::forward::Scratch::bytes(self, batch)
    }

    /// Bytes of the KV cache for one token: keys and values of all layers.
    #[must_use]
    pub fn kv_bytes_per_token(&self, ty: CacheType) -> usize {
        let ty = if ty.fits(self.head_dim) { ty } else { CacheType::F16 };
        2 * ty.bytes(self.layers * self.kv_heads * self.head_dim)
    }
}

fn vocab(gguf: &Gguf) -> Result<usize, LoadError> {
    let n = gguf.metadata().strings("tokenizer.ggml.tokens")?.map(<[String]>::len);
    // An imported encoder keeps its tokenizer as JSON; then the embedding table tells.
    let rows = gguf.tensor("token_embd.weight").and_then(|t| t.dims.get(1)).map(|d| *d as usize);
    let n = n.or(rows).unwrap_or(0);
    if n == 0 || n > MAX_VOCAB {
        return Err(bad("tokenizer.ggml.tokens", format!("{n} tokens, outside 1..={MAX_VOCAB}")));
    }
    Ok(n)
}

fn rope(m: &Metadata, name: &str, pairs: RopePairs, head_dim: usize) -> Result<Rope, LoadError> {
    let key = |k: &str| format!("{name}.rope.{k}");
    let dims = m.u32(&key("dimension_count"))?.map_or(head_dim, |v| v as usize);
    if dims == 0 || dims % 2 != 0 || dims > head_dim {
        return Err(bad(&key("dimension_count"), format!("{dims} of {head_dim} dimensions")));
    }
    let base = m.f32(&key("freq_base"))?.unwrap_or(10_000.0);
    if base <= 1.0 {
        return Err(bad(&key("freq_base"), format!("{base} is not above 1")));
    }
    let factor = m.f32(&key("scaling.factor"))?.or(m.f32(&key("scale_linear"))?).filter(|f| *f > 0.0).unwrap_or(1.0);
    match m.str(&key("scaling.type"))?.unwrap_or("linear") {
        "none" => Ok(Rope { pairs, dims, base, scale: 1.0 }),
        "linear" => Ok(Rope { pairs, dims, base, scale: 1.0 / factor }),
        other => Err(bad(&key("scaling.type"), format!("RoPE scaling {other:?} is not supported"))),
    }
}

fn bad(key: &str, what: String) -> LoadError {
    LoadError::BadKey { key: key.to_owned(), what }
}
