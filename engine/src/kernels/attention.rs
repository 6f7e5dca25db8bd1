//! Attention over a half-precision KV cache, tiled so that each block of keys and values is converted once for all
//! query rows of a job.
//!
//! A job is one KV head and a few consecutive tokens; the query heads that share the KV head are further rows of the
//! same products. The softmax is computed online over blocks of keys (Milakov and Gimelshein 2018): a running maximum
//! and sum per row, and a rescaled accumulator.

use std::ops::Range;

use half::f16;

use super::Output;
use super::elementwise::exp;
use super::float::{accumulate, dot};
use super::lanes::{Lanes, fold};

/// Keys of a block: with 128 dimensions, keys and values of a block take 64 KiB as floats.
pub const KEY_BLOCK: usize = 64;
/// From this many query rows on, a transposed block of keys pays off.
const TRANSPOSE_ROWS: usize = 8;

/// What all jobs of a layer share.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// Queries, `(tokens, heads * head_dim)`, rotated and scaled.
    pub q: &'a [f32],
    /// Keys of the layer, `(kv_heads, capacity, head_dim)`.
    pub k: &'a [f16],
    /// Values, like the keys.
    pub v: &'a [f16],
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Dimensions of a head.
    pub head_dim: usize,
    /// Positions that the cache holds.
    pub capacity: usize,
    /// Position of the batch's first token.
    pub start: usize,
    /// Whether token `t` sees positions up to its own only; else it sees all of `0..end`.
    pub causal: bool,
    /// How many positions back a token sees, its own included.
    pub window: Option<usize>,
}

impl Attention<'_> {
    /// Tokens in the batch.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.q.len() / (self.heads * self.head_dim)
    }

    pub(super) fn check(&self, head: usize, tokens: &Range<usize>) {
        let cache = self.kv_heads * self.capacity * self.head_dim;
        assert!(self.k.len() == cache && self.v.len() == cache, "cache of {cache}");
        assert!(head < self.kv_heads && self.heads.is_multiple_of(self.kv_heads));
        assert!(tokens.end <= self.tokens() && self.start + self.tokens() <= self.capacity);
    }

    /// Positions that the token `t` of the batch sees.
    #[inline(always)]
    fn visible(&self, t: usize) -> Range<usize> {
        let end = if self.causal { self.start + t + 1 } else { self.start + self.tokens() };
        let start = self.window.map_or(0, |w| (self.start + t + 1).saturating_sub(w));
        start..end
    }
}

/// Buffers of one worker.
#[derive(Debug, Default)]
pub struct AttentionScratch {
    /// Query rows of the job, `(rows, head_dim)`.
    q: Vec<f32>,
    /// A block of keys, `(head_dim, KEY_BLOCK)` or `(KEY_BLOCK, head_dim)`.
    k: Vec<f32>,
    /// A block of values, `(KEY_BLOCK, head_dim)`.
    v: Vec<f32>,
    /// Scores, `(rows, KEY_BLOCK)`.
    s: Vec<f32>,
    /// Accumulated output, `(rows, head_dim)`.
    o: Vec<f32>,
    /// Running maximum and sum of each row.
    max_sum: Vec<(f32, f32)>,
}

impl AttentionScratch {
    fn prepare(&mut self, rows: usize, hd: usize) {
        self.q.resize(rows * hd, 0.0);
        self.k.resize(KEY_BLOCK * hd, 0.0);
        self.v.resize(KEY_BLOCK * hd, 0.0);
        self.s.resize(rows * KEY_BLOCK, 0.0);
        self.o.clear();
        self.o.resize(rows * hd, 0.0);
        self.max_sum.clear();
        self.max_sum.resize(rows, (f32::NEG_INFINITY, 0.0));
    }
}

/// # Safety
/// As [`super::Kernels::attention`].
#[inline(always)]
pub(super) unsafe fn attention<V: Lanes, const FUSED: bool>(
    a: &Attention<'_>,
    head: usize,
    tokens: Range<usize>,
    out: Output,
    s: &mut AttentionScratch,
    to_float: impl Fn(&[f16], &mut [f32]),
) {
    let (hd, group) = (a.head_dim, a.heads / a.kv_heads);
    let rows = tokens.len() * group;
    s.prepare(rows, hd);
    // Row r is token r / group, head r % group of this KV head.
    for r in 0..rows {
        let from = ((tokens.start + r / group) * a.heads + head * group + r % group) * hd;
        s.q[r * hd..(r + 1) * hd].copy_from_slice(&a.q[from..from + hd]);
    }
    let cache = head * a.capacity * hd..(head + 1) * a.capacity * hd;
    let (k, v) = (&a.k[cache.clone()], &a.v[cache]);
    let end = a.visible(tokens.end - 1).end;
    let first = a.visible(tokens.start).start / KEY_BLOCK * KEY_BLOCK;
    for block in (first..end).step_by(KEY_BLOCK) {
        let n = KEY_BLOCK.min(end - block);
        to_float(&v[block * hd..(block + n) * hd], &mut s.v[..n * hd]);
        // SAFETY: the instruction set is enabled by the caller, here and below.
        unsafe { scores::<V>(s, &k[block * hd..(block + n) * hd], (rows, n, hd), &to_float) };
        for r in 0..rows {
            let seen = a.visible(tokens.start + r / group);
            let from = seen.start.saturating_sub(block).min(n);
            let to = seen.end.saturating_sub(block).min(n);
            let row = &mut s.s[r * KEY_BLOCK..r * KEY_BLOCK + n];
            let acc = &mut s.o[r * hd..(r + 1) * hd];
            // SAFETY: as above.
            unsafe { softmax_step::<V, FUSED>(row, from..to.max(from), &mut s.max_sum[r], acc) };
        }
        // SAFETY: as above.
        unsafe { accumulate::<V>((rows, hd, n), (&s.s, KEY_BLOCK), (&s.v, hd), (&mut s.o, hd)) };
    }
    for r in 0..rows {
        let inverse = 1.0 / s.max_sum[r].1;
        // SAFETY: this job owns the heads of this KV head for its tokens.
        let o = unsafe { out.part(tokens.start + r / group, (head * group + r % group) * hd, hd) };
        for (o, x) in o.iter_mut().zip(&s.o[r * hd..(r + 1) * hd]) {
            *o = x * inverse;
        }
    }
}

/// `s.s = q . k^T` for one block of `n` keys.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
unsafe fn scores<V: Lanes>(
    s: &mut AttentionScratch,
    keys: &[f16],
    (rows, n, hd): (usize, usize, usize),
    to_float: &impl Fn(&[f16], &mut [f32]),
) {
    if rows < TRANSPOSE_ROWS {
        to_float(keys, &mut s.k[..n * hd]);
        for r in 0..rows {
            for j in 0..n {
                // SAFETY: forwarded.
                let score = unsafe { dot::<V>(&s.q[r * hd..(r + 1) * hd], &s.k[j * hd..(j + 1) * hd]) };
                s.s[r * KEY_BLOCK + j] = score;
            }
        }
        return;
    }
    let mut line = [0f32; 512];
    for j in 0..n {
        for (part, from) in keys[j * hd..(j + 1) * hd].chunks(line.len()).zip((0..hd).step_by(line.len())) {
            to_float(part, &mut line[..part.len()]);
            for (d, x) in line[..part.len()].iter().enumerate() {
                s.k[(from + d) * KEY_BLOCK + j] = *x;
            }
        }
    }
    if n < KEY_BLOCK {
        for d in 0..hd {
            s.k[d * KEY_BLOCK + n..(d + 1) * KEY_BLOCK].fill(0.0);
        }
    }
    s.s[..rows * KEY_BLOCK].fill(0.0);
    // SAFETY: forwarded.
    unsafe { accumulate::<V>((rows, KEY_BLOCK, hd), (&s.q, hd), (&s.k, KEY_BLOCK), (&mut s.s, KEY_BLOCK)) };
}

/// Turns the scores of a block into weights, `seen` being the visible part of it, and rescales what was accumulated.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
unsafe fn softmax_step<V: Lanes, const FUSED: bool>(
    row: &mut [f32],
    seen: Range<usize>,
    max_sum: &mut (f32, f32),
    acc: &mut [f32],
) {
    row[..seen.start].fill(0.0);
    row[seen.end..].fill(0.0);
    let row = &mut row[seen];
    if row.is_empty() {
        return;
    }
    // SAFETY: forwarded.
    let peak = unsafe { reduce::<V>(row, max_sum.0, |a: V, b| a.max(b), |a, b| if b > a { b } else { a }) };
    if peak > max_sum.0 {
        // exp is clamped, so a first block (maximum minus infinity) needs its own case.
        let shrink = if max_sum.1 == 0.0 { 0.0 } else { exp::<FUSED>(max_sum.0 - peak) };
        acc.iter_mut().for_each(|o| *o *= shrink);
        *max_sum = (peak, max_sum.1 * shrink);
    }
    for v in row.iter_mut() {
        *v = exp::<FUSED>(*v - peak);
    }
    // SAFETY: forwarded.
    max_sum.1 = unsafe { reduce::<V>(row, max_sum.1, |a: V, b| a.add(b), |a, b| a + b) };
}

/// Folds `row` onto `start` with the same operation on vectors and on floats.
#[inline(always)]
unsafe fn reduce<V: Lanes>(row: &[f32], start: f32, wide: impl Fn(V, V) -> V, one: impl Fn(f32, f32) -> f32) -> f32 {
    if row.len() < V::N {
        return row.iter().fold(start, |a, b| one(a, *b));
    }
    let whole = row.len() / V::N * V::N;
    // SAFETY: whole vectors within the row.
    let all = unsafe {
        let mut all = V::load(row.as_ptr());
        for i in (V::N..whole).step_by(V::N) {
            all = wide(all, V::load(row.as_ptr().add(i)));
        }
        fold(all, &one)
    };
    row[whole..].iter().fold(one(start, all), |a, b| one(a, *b))
}
