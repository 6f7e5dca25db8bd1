//! The encoder pass: texts in, one vector each. Texts stand one after the other in a batch, without padding; only
//! attention keeps them apart.

use std::ops::Range;

use super::config::{Config, Pooling};
use super::linear::Compute;
use super::weights::{Layer, Norm, Weights};
use crate::kernels::{Attention, Cached, Output};
use crate::pool::Disjoint;
use crate::quant::ActMatrix;

/// Tokens of an attention job.
const ATTENTION_TOKENS: usize = 32;

/// All buffers of the pass; `n` is the number of tokens of all texts of a batch.
#[derive(Debug, Default)]
pub struct EncoderScratch {
    /// Residual stream, `(n, width)`.
    x: Vec<f32>,
    /// A block's output, `(n, width)`.
    h: Vec<f32>,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    att: Vec<f32>,
    /// Feed-forward block, `(n, ffn)`.
    up: Vec<f32>,
    act: ActMatrix,
}

/// An encoder at work.
pub(crate) struct Encoder<'a> {
    config: &'a Config,
    weights: &'a Weights,
    compute: Compute<'a>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(config: &'a Config, weights: &'a Weights, compute: Compute<'a>) -> Self {
        Self { config, weights, compute }
    }

    /// Unit vectors of `texts`, each a non-empty run of token ids no longer than the model's context.
    pub(crate) fn encode(&self, texts: &[&[u32]], s: &mut EncoderScratch) -> Vec<Vec<f32>> {
        let c = self.config;
        let mut spans = Vec::with_capacity(texts.len());
        let mut n = 0;
        for text in texts {
            debug_assert!(!text.is_empty() && text.len() <= c.context);
            spans.push(n..n + text.len());
            n += text.len();
        }
        for (buffer, width) in [
            (&mut s.x, c.width),
            (&mut s.h, c.width),
            (&mut s.q, c.width),
            (&mut s.k, c.width),
            (&mut s.v, c.width),
            (&mut s.att, c.width),
            (&mut s.up, c.ffn),
        ] {
            buffer.resize(n * width, 0.0);
        }
        self.embed(texts, &mut s.x);
        for layer in &self.weights.layers {
            self.block(layer, &spans, s);
        }
        spans.iter().map(|span| self.pool(&s.x[span.start * c.width..span.end * c.width])).collect()
    }

    /// `x = norm(token + position + type)`.
    fn embed(&self, texts: &[&[u32]], x: &mut [f32]) {
        let (w, width) = (self.weights, self.config.width);
        let tokens: Vec<(usize, u32)> = texts.iter().flat_map(|text| text.iter().copied().enumerate()).collect();
        let rows = Disjoint::new(x);
        self.compute.pool.run(tokens.len(), |_, t| {
            let (p, token) = tokens[t];
            // SAFETY: a job has its own row, and `x` stays borrowed during `run`.
            let row = unsafe { rows.part(t * width, width) };
            w.embed(token, row);
            let position = w.positions.as_deref().map(|t| &t[p * width..(p + 1) * width]).unwrap_or_default();
            row.iter_mut().zip(position).for_each(|(x, p)| *x += p);
            row.iter_mut().zip(w.token_type.iter().flatten()).for_each(|(x, t)| *x += t);
            if let Some(norm) = &w.embedding_norm {
                self.layer_norm(norm, row);
            }
        });
    }

    fn layer_norm(&self, norm: &Norm, row: &mut [f32]) {
        self.compute.kernels.layer_norm(row, &norm.weight, &norm.bias, self.config.eps);
    }

    /// `x = norm(x + out(attention(x)))`, then `x = norm(x + down(f(up(x))))`.
    fn block(&self, layer: &Layer, spans: &[Range<usize>], s: &mut EncoderScratch) {
        let (c, map) = (self.config, &self.weights.mapping);
        self.compute.quantize(&s.x, c.width, &mut s.act);
        let products = &mut [(&layer.q, &mut s.q[..]), (&layer.k, &mut s.k[..]), (&layer.v, &mut s.v[..])];
        self.compute.project(map, &s.x, &s.act, products);
        self.attend(spans, s);
        self.compute.quantize(&s.att, c.width, &mut s.act);
        self.compute.project(map, &s.att, &s.act, &mut [(&layer.out, &mut s.h[..])]);
        self.add_and_norm(&layer.attn_norm, &mut s.x, &s.h);
        self.compute.quantize(&s.x, c.width, &mut s.act);
        self.compute.project(map, &s.x, &s.act, &mut [(&layer.up, &mut s.up[..])]);
        let rows = Disjoint::new(&mut s.up);
        self.compute.pool.run(s.x.len() / c.width, |_, t| {
            // SAFETY: a job has its own row, and `up` stays borrowed during `run`.
            self.compute.kernels.activate(c.activation, unsafe { rows.part(t * c.ffn, c.ffn) });
        });
        self.compute.quantize(&s.up, c.ffn, &mut s.act);
        self.compute.project(map, &s.up, &s.act, &mut [(&layer.down, &mut s.h[..])]);
        self.add_and_norm(&layer.ffn_norm, &mut s.x, &s.h);
    }

    fn add_and_norm(&self, norm: &Norm, x: &mut [f32], h: &[f32]) {
        let width = self.config.width;
        let n = x.len() / width;
        let rows = Disjoint::new(x);
        self.compute.pool.run(n, |_, t| {
            // SAFETY: a job has its own row, and `x` stays borrowed during `run`.
            let row = unsafe { rows.part(t * width, width) };
            row.iter_mut().zip(&h[t * width..(t + 1) * width]).for_each(|(x, h)| *x += h);
            self.layer_norm(norm, row);
        });
    }

    fn attend(&self, spans: &[Range<usize>], s: &mut EncoderScratch) {
        let c = self.config;
        let jobs: Vec<(usize, usize, usize)> = spans
            .iter()
            .enumerate()
            .flat_map(|(i, span)| {
                let tiles = span.len().div_ceil(ATTENTION_TOKENS);
                (0..tiles).flat_map(move |tile| (0..c.heads).map(move |head| (i, tile, head)))
            })
            .collect();
        let out = Disjoint::new(&mut s.att);
        let (q, k, v) = (&s.q, &s.k, &s.v);
        self.compute.each(jobs.len(), |scratch, job| {
            let (i, tile, head) = jobs[job];
            let floats = spans[i].start * c.width..spans[i].end * c.width;
            let a = Attention {
                q: &q[floats.clone()],
                scale: c.query_scale,
                k: Cached::F32(&k[floats.clone()]),
                v: Cached::F32(&v[floats.clone()]),
                heads: c.heads,
                kv_heads: c.heads,
                head_dim: c.head_dim,
                head_stride: c.head_dim,
                row_stride: c.width,
                capacity: spans[i].len(),
                start: 0,
                causal: false,
                window: None,
            };
            let tokens = tile * ATTENTION_TOKENS..((tile + 1) * ATTENTION_TOKENS).min(spans[i].len());
            let out = Output { data: out.sub(floats.start, floats.len()), stride: c.width };
            // SAFETY: a job has its own head and tokens of its text, and `att` stays borrowed during `each`.
            unsafe { self.compute.kernels.attention(&a, head, tokens, out, &mut scratch.attention) };
        });
    }

    /// The text's vector, of unit length.
    fn pool(&self, rows: &[f32]) -> Vec<f32> {
        let width = self.config.width;
        let n = rows.len() / width;
        let mut out = match self.config.pooling {
            Pooling::Cls => rows[..width].to_vec(),
            Pooling::Last => rows[(n - 1) * width..].to_vec(),
            Pooling::Mean => {
                let mut sum = vec![0f32; width];
                for row in rows.chunks_exact(width) {
                    sum.iter_mut().zip(row).for_each(|(s, v)| *s += v);
                }
                sum
            }
        };
        let norm = out.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt() as f32;
        if norm > 0.0 {
            out.iter_mut().for_each(|v| *v /= norm);
        }
        out
    }
}
