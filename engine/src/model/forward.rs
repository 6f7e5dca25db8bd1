//! The decoder pass: tokens in, logits out.

use super::config::Config;
use super::linear::Compute;
use super::rope::RopeTable;
use super::weights::{Layer, Norm, Weights};
use crate::cache::KvCache;
use crate::kernels::{Attention, Output};
use crate::limits::PREFILL_BATCH;
use crate::pool::Disjoint;
use crate::quant::ActMatrix;

/// Which positions of a batch get logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// None: a prompt goes on.
    None,
    /// The last position only.
    Last,
    /// Every position.
    All,
}

/// All buffers of the pass, allocated once for the largest batch. `n` is the number of tokens in the batch.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Residual stream, `(n, width)`.
    x: Vec<f32>,
    /// Normed input of a block, and its output, `(n, width)`.
    h: Vec<f32>,
    /// Queries, `(n, heads * head_dim)`.
    q: Vec<f32>,
    /// Keys and values, `(n, kv_heads * head_dim)`.
    k: Vec<f32>,
    v: Vec<f32>,
    /// Attention's output, `(n, heads * head_dim)`.
    att: Vec<f32>,
    /// Feed-forward block, `(n, ffn)`.
    gate: Vec<f32>,
    up: Vec<f32>,
    /// The quantized input of the next products.
    act: ActMatrix,
    /// Rotations of global and local layers.
    rope: RopeTable,
    rope_local: RopeTable,
    /// Logits of the positions asked for, `(positions, vocab)`.
    pub(crate) logits: Vec<f32>,
}

impl Scratch {
    /// Bytes that the buffers take for a batch of `n` tokens.
    #[must_use]
    pub fn bytes(config: &Config, n: usize) -> usize {
        let (q, kv) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let widest = config.ffn.max(q).max(config.width);
        4 * n * (2 * config.width + 2 * q + 2 * kv + 2 * config.ffn) + n * widest * 3 / 2 + 4 * config.vocab
    }

    fn resize(&mut self, c: &Config, n: usize) {
        let (q, kv) = (n * c.heads * c.head_dim, n * c.kv_heads * c.head_dim);
        for (buffer, len) in [
            (&mut self.x, n * c.width),
            (&mut self.h, n * c.width),
            (&mut self.q, q),
            (&mut self.k, kv),
            (&mut self.v, kv),
            (&mut self.att, q),
            (&mut self.gate, n * c.ffn),
            (&mut self.up, n * c.ffn),
        ] {
            buffer.resize(len, 0.0);
        }
    }
}

/// Tokens of an attention job: with the query heads of a group they make 16 to 112 rows.
const ATTENTION_TOKENS: usize = 16;

/// A decoder at work: weights, kernels and threads for one pass.
pub(crate) struct Decoder<'a> {
    config: &'a Config,
    weights: &'a Weights,
    compute: Compute<'a>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(config: &'a Config, weights: &'a Weights, compute: Compute<'a>) -> Self {
        Self { config, weights, compute }
    }

    /// Computes the next `tokens` (at most [`PREFILL_BATCH`]) and appends them to the cache, which has room.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut KvCache, s: &mut Scratch, logits: Logits) {
        let (c, n, start) = (self.config, tokens.len(), cache.len());
        debug_assert!(n > 0 && n <= PREFILL_BATCH && start + n <= cache.capacity());
        s.resize(c, n);
        self.embed(tokens, &mut s.x);
        self.rotations(start, n, s);
        for (i, layer) in self.weights.layers.iter().enumerate() {
            self.attention_block(i, layer, cache, s);
            self.feed_forward_block(layer, s);
        }
        cache.advance(n);
        self.logits(s, n, logits);
    }

    /// `x[t] = embedding[token] * scale`.
    fn embed(&self, tokens: &[u32], x: &mut [f32]) {
        for (token, row) in tokens.iter().zip(x.chunks_exact_mut(self.config.width)) {
            self.weights.embed(*token, row);
            if self.config.embedding_scale != 1.0 {
                row.iter_mut().for_each(|v| *v *= self.config.embedding_scale);
            }
        }
    }

    fn rotations(&self, start: usize, n: usize, s: &mut Scratch) {
        if let Some(rope) = &self.config.rope {
            s.rope.fill(rope, self.weights.rope_divisors.as_deref(), start, n);
        }
        if let Some(rope) = &self.config.rope_local {
            s.rope_local.fill(rope, None, start, n);
        }
    }

    /// `x += out(attention(norm(x)))`.
    fn attention_block(&self, i: usize, layer: &Layer, cache: &mut KvCache, s: &mut Scratch) {
        let (c, map) = (self.config, &self.weights.mapping);
        self.norm(&layer.attn_norm, &s.x, &mut s.h);
        self.compute.quantize(&s.h, c.width, &mut s.act);
        let products = &mut [(&layer.q, &mut s.q[..]), (&layer.k, &mut s.k[..]), (&layer.v, &mut s.v[..])];
        self.compute.project(map, &s.h, &s.act, products);
        self.rotate_and_store(i, layer, cache, s);
        self.attend(i, cache, s);
        self.compute.quantize(&s.att, c.heads * c.head_dim, &mut s.act);
        self.compute.project(map, &s.att, &s.act, &mut [(&layer.out, &mut s.h[..])]);
        self.add_residual(layer.attn_post_norm.as_ref(), s);
    }

    /// `x += down(f(gate(h)) * up(h))`, `h = norm(x)`.
    fn feed_forward_block(&self, layer: &Layer, s: &mut Scratch) {
        let (c, map) = (self.config, &self.weights.mapping);
        self.norm(&layer.ffn_norm, &s.x, &mut s.h);
        self.compute.quantize(&s.h, c.width, &mut s.act);
        if let Some(gate) = &layer.gate {
            let products = &mut [(gate, &mut s.gate[..]), (&layer.up, &mut s.up[..])];
            self.compute.project(map, &s.h, &s.act, products);
            self.rows(&mut s.gate, &s.up, c.ffn, |g, u| self.compute.kernels.gate(c.activation, g, u));
        }
        self.compute.quantize(&s.gate, c.ffn, &mut s.act);
        self.compute.project(map, &s.gate, &s.act, &mut [(&layer.down, &mut s.h[..])]);
        self.add_residual(layer.ffn_post_norm.as_ref(), s);
    }

    /// Applies `f` to each row of `a` with the same row of `b`, rows spread over the threads.
    fn rows(&self, a: &mut [f32], b: &[f32], width: usize, f: impl Fn(&mut [f32], &[f32]) + Sync) {
        let n = a.len() / width;
        let all = Disjoint::new(a);
        self.compute.pool.run(n, |_, t| {
            // SAFETY: a job has its own row of `a`, which stays borrowed during `run`.
            f(unsafe { all.part(t * width, width) }, &b[t * width..(t + 1) * width]);
        });
    }

    /// `out = norm(x)`, row by row.
    fn norm(&self, norm: &Norm, x: &[f32], out: &mut [f32]) {
        let eps = self.config.eps;
        self.rows(out, x, self.config.width, |o, x| self.compute.kernels.rms_norm(x, &norm.weight, eps, o));
    }

    /// `x += h`, or `x += norm(h)`.
    fn add_residual(&self, norm: Option<&Norm>, s: &mut Scratch) {
        let (k, eps) = (self.compute.kernels, self.config.eps);
        self.rows(&mut s.x, &s.h, self.config.width, |x, h| match norm {
            None => x.iter_mut().zip(h).for_each(|(x, h)| *x += h),
            Some(norm) => {
                let mut normed = vec![0.0; h.len()];
                k.rms_norm(h, &norm.weight, eps, &mut normed);
                x.iter_mut().zip(&normed).for_each(|(x, h)| *x += h);
            }
        });
    }

    /// Norms (where the model has them) and rotates queries and keys, and stores keys and values.
    fn rotate_and_store(&self, i: usize, layer: &Layer, cache: &mut KvCache, s: &mut Scratch) {
        let (c, k) = (self.config, self.compute.kernels);
        let (hd, start, n) = (c.head_dim, cache.len(), s.x.len() / c.width);
        let table = if c.is_local(i) { &s.rope_local } else { &s.rope };
        let head = |t: usize, head: &mut [f32], norm: Option<&Norm>| {
            if let Some(norm) = norm {
                let raw = head.to_vec();
                k.rms_norm(&raw, &norm.weight, c.eps, head);
            }
            table.rotate(t, head);
        };
        let queries = Disjoint::new(&mut s.q);
        let keys = Disjoint::new(&mut s.k);
        self.compute.pool.run(n, |_, t| {
            let (qw, kw) = (c.heads * hd, c.kv_heads * hd);
            // SAFETY: a job has its own token.
            let (q, key) = unsafe { (queries.part(t * qw, qw), keys.part(t * kw, kw)) };
            q.chunks_exact_mut(hd).for_each(|h| head(t, h, layer.q_norm.as_ref()));
            key.chunks_exact_mut(hd).for_each(|h| head(t, h, layer.k_norm.as_ref()));
        });
        for t in 0..n {
            for h in 0..c.kv_heads {
                let at = (t * c.kv_heads + h) * hd;
                cache.write(i, h, start + t, &s.k[at..at + hd], &s.v[at..at + hd]);
            }
        }
    }

    fn attend(&self, i: usize, cache: &KvCache, s: &mut Scratch) {
        let c = self.config;
        let (k, v) = cache.layer(i);
        let a = Attention {
            q: &s.q,
            scale: c.query_scale,
            k,
            v,
            heads: c.heads,
            kv_heads: c.kv_heads,
            head_dim: c.head_dim,
            head_stride: cache.capacity() * c.head_dim,
            row_stride: c.head_dim,
            capacity: cache.capacity(),
            start: cache.len(),
            causal: true,
            window: c.window.filter(|_| c.is_local(i)),
        };
        let n = a.tokens();
        let tiles = n.div_ceil(ATTENTION_TOKENS);
        let out = Output { data: Disjoint::new(&mut s.att), stride: c.heads * c.head_dim };
        self.compute.each(c.kv_heads * tiles, |scratch, job| {
            // Later tiles see more keys: handing them out first keeps the threads even at the end.
            let (head, tile) = (job % c.kv_heads, tiles - 1 - job / c.kv_heads);
            let tokens = tile * ATTENTION_TOKENS..((tile + 1) * ATTENTION_TOKENS).min(n);
            // SAFETY: a job has its own heads and tokens of `att`, which stays borrowed during `each`.
            unsafe { self.compute.kernels.attention(&a, head, tokens, out, &mut scratch.attention) };
        });
    }

    /// `logits = output(norm(x))` for the positions asked for.
    fn logits(&self, s: &mut Scratch, n: usize, which: Logits) {
        let (c, w) = (self.config, self.weights);
        let first = match which {
            Logits::None => return,
            Logits::Last => n - 1,
            Logits::All => 0,
        };
        let (Some(norm), rows) = (&w.output_norm, n - first) else { return };
        self.norm(norm, &s.x[first * c.width..], &mut s.h[..rows * c.width]);
        let h = &s.h[..rows * c.width];
        self.compute.quantize(h, c.width, &mut s.act);
        s.logits.resize(rows * c.vocab, 0.0);
        self.compute.project(&w.mapping, h, &s.act, &mut [(&w.output, &mut s.logits[..])]);
    }
}
