//! Attention over the KV cache.
//!
//! A job is one KV head and a few consecutive tokens; the query heads that share the KV head are further rows of the
//! same products. The softmax is computed online over blocks of keys (Milakov and Gimelshein 2018): a running maximum
//! and sum per row, and a rescaled accumulator.
//!
//! With many rows (prefill) each block of keys and values is converted to floats once and then meets all rows; with few
//! (decode) keys and values go from the cache to registers, and nothing is written but scores.

use std::ops::Range;

use super::Output;
use super::cached::{Cached, Rows};
use super::elementwise::exp;
use super::float::accumulate;
use super::lanes::{Lanes, fold};

/// Keys of a block: with 128 dimensions, keys and values of a block take 64 KiB as floats.
pub const KEY_BLOCK: usize = 64;
/// From this many query rows on, converted blocks pay off.
const TILED_ROWS: usize = 8;
/// Rows whose sums stay in registers together where blocks are not converted.
const ROWS: usize = 4;

/// What all jobs of a layer share.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// Queries, `(tokens, heads * head_dim)`, rotated.
    pub q: &'a [f32],
    /// What queries are multiplied with.
    pub scale: f32,
    /// Keys of the layer: `head_dim` elements at `head * head_stride + position * row_stride`.
    pub k: Cached<'a>,
    /// Values, like the keys.
    pub v: Cached<'a>,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Dimensions of a head.
    pub head_dim: usize,
    /// Elements of keys or values from one KV head to the next.
    pub head_stride: usize,
    /// Elements from one position to the next.
    pub row_stride: usize,
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
        let end = (self.kv_heads - 1) * self.head_stride + (self.capacity - 1) * self.row_stride + self.head_dim;
        assert!(self.k.len() >= end && self.v.len() >= end, "keys and values of {end}");
        assert!(self.head_stride.is_multiple_of(self.head_dim) && self.row_stride.is_multiple_of(self.head_dim));
        assert!(self.k.is_whole(self.head_dim) && self.v.is_whole(self.head_dim));
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
    /// A block of keys, `(head_dim, KEY_BLOCK)`.
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
) {
    // SAFETY: forwarded.
    unsafe {
        match (a.k, a.v) {
            (Cached::F32(k), Cached::F32(v)) => job::<V, FUSED, _>(a, (k, v), head, tokens, out, s),
            (Cached::F16(k), Cached::F16(v)) => job::<V, FUSED, _>(a, (k, v), head, tokens, out, s),
            (Cached::Q8(k, ks), Cached::Q8(v, vs)) => job::<V, FUSED, _>(a, ((k, ks), (v, vs)), head, tokens, out, s),
            _ => unreachable!("keys and values are stored alike"),
        }
    }
}

/// # Safety
/// As [`super::Kernels::attention`].
#[inline(always)]
unsafe fn job<V: Lanes, const FUSED: bool, R: Rows>(
    a: &Attention<'_>,
    (k, v): (R, R),
    head: usize,
    tokens: Range<usize>,
    out: Output,
    s: &mut AttentionScratch,
) {
    let (hd, group) = (a.head_dim, a.heads / a.kv_heads);
    let rows = tokens.len() * group;
    s.prepare(rows, hd);
    // Row r is token r / group, head r % group of this KV head.
    for r in 0..rows {
        let from = ((tokens.start + r / group) * a.heads + head * group + r % group) * hd;
        for (to, from) in s.q[r * hd..(r + 1) * hd].iter_mut().zip(&a.q[from..from + hd]) {
            *to = from * a.scale;
        }
    }
    let end = a.visible(tokens.end - 1).end;
    let first = a.visible(tokens.start).start / KEY_BLOCK * KEY_BLOCK;
    let tiled = rows >= TILED_ROWS || !hd.is_multiple_of(V::N);
    for block in (first..end).step_by(KEY_BLOCK) {
        let n = KEY_BLOCK.min(end - block);
        let at = Block { start: head * a.head_stride + block * a.row_stride, stride: a.row_stride, n, hd };
        // SAFETY: the instruction set is enabled by the caller, here and below; the block's rows are in the cache.
        unsafe { if tiled { scores_tiled::<V, R>(s, k, at, rows) } else { scores::<V, R>(s, k, at, rows) } };
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
        unsafe {
            if tiled {
                at.floats::<V, R>(v, &mut s.v);
                accumulate::<V>((rows, hd, n), (&s.s, KEY_BLOCK), (&s.v, hd), (&mut s.o, hd));
            } else {
                add_values::<V, R>(s, v, at, rows);
            }
        }
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

/// Rows of neighbouring positions, `hd` elements each, `stride` apart.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    stride: usize,
    n: usize,
    hd: usize,
}

impl Block {
    /// All of it as floats, `(n, hd)`.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    #[inline(always)]
    unsafe fn floats<V: Lanes, R: Rows>(self, from: R, out: &mut [f32]) {
        for (j, out) in out[..self.n * self.hd].chunks_exact_mut(self.hd).enumerate() {
            // SAFETY: forwarded.
            unsafe { from.floats::<V>(self.start + j * self.stride, out) };
        }
    }

    fn end(self) -> usize {
        self.start + (self.n - 1) * self.stride + self.hd
    }
}

/// `s.s = q . k^T` for a block of keys, converted and transposed.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
unsafe fn scores_tiled<V: Lanes, R: Rows>(s: &mut AttentionScratch, keys: R, at: Block, rows: usize) {
    let Block { n, hd, .. } = at;
    // The values' place is free until the scores are known.
    // SAFETY: forwarded, here and below.
    unsafe { at.floats::<V, R>(keys, &mut s.v) };
    for (j, key) in s.v[..n * hd].chunks_exact(hd).enumerate() {
        for (d, x) in key.iter().enumerate() {
            s.k[d * KEY_BLOCK + j] = *x;
        }
    }
    if n < KEY_BLOCK {
        for d in 0..hd {
            s.k[d * KEY_BLOCK + n..(d + 1) * KEY_BLOCK].fill(0.0);
        }
    }
    s.s[..rows * KEY_BLOCK].fill(0.0);
    // SAFETY: as above.
    unsafe { accumulate::<V>((rows, KEY_BLOCK, hd), (&s.q, hd), (&s.k, KEY_BLOCK), (&mut s.s, KEY_BLOCK)) };
}

/// Calls `$body` for all rows, [`ROWS`] or one at a time: `$n` is how many, a constant, `$first` the number of the first.
macro_rules! by_rows {
    ($rows:expr, |$first:ident, $n:ident| $body:expr) => {{
        let mut $first = 0;
        while $first + ROWS <= $rows {
            const $n: usize = ROWS;
            $body;
            $first += ROWS;
        }
        while $first < $rows {
            const $n: usize = 1;
            $body;
            $first += 1;
        }
    }};
}

/// The same with keys straight from the cache.
///
/// # Safety
/// As [`Lanes::zero`]; `hd` is a multiple of `V::N`, and the keys are in the cache.
#[inline(always)]
unsafe fn scores<V: Lanes, R: Rows>(s: &mut AttentionScratch, keys: R, at: Block, rows: usize) {
    let Block { start, stride, n, hd } = at;
    assert!(at.end() <= keys.len() && s.q.len() >= rows * hd);
    // SAFETY: by the assertion and the contract.
    unsafe {
        by_rows!(rows, |first, N| for j in 0..n {
            let mut sums = [V::zero(); N];
            for d in (0..hd).step_by(V::N) {
                let key = keys.load::<V>(start + j * stride + d);
                for i in 0..N {
                    sums[i] = sums[i].add_product(V::load(s.q.as_ptr().add((first + i) * hd + d)), key);
                }
            }
            for i in 0..N {
                s.s[(first + i) * KEY_BLOCK + j] = sums[i].sum();
            }
        });
    }
}

/// `s.o += s.s . v` with values straight from the cache.
///
/// # Safety
/// As [`scores`].
#[inline(always)]
unsafe fn add_values<V: Lanes, R: Rows>(s: &mut AttentionScratch, values: R, at: Block, rows: usize) {
    let Block { start, stride, n, hd } = at;
    assert!(at.end() <= values.len() && s.o.len() >= rows * hd);
    // SAFETY: by the assertion and the contract.
    unsafe {
        by_rows!(rows, |first, N| {
            let weights = &s.s[first * KEY_BLOCK..(first + N) * KEY_BLOCK];
            let mut d = 0;
            // Two vectors of dimensions at a time, where there are two: with four rows that makes eight sums in flight.
            while d < hd {
                let second = if d + 2 * V::N <= hd { V::N } else { 0 };
                let (mut low, mut high) = ([V::zero(); N], [V::zero(); N]);
                for j in 0..n {
                    let (v0, v1) =
                        (values.load::<V>(start + j * stride + d), values.load::<V>(start + j * stride + d + second));
                    for i in 0..N {
                        low[i] = low[i].add_scaled(weights[i * KEY_BLOCK + j], v0);
                        high[i] = high[i].add_scaled(weights[i * KEY_BLOCK + j], v1);
                    }
                }
                for i in 0..N {
                    let o = s.o.as_mut_ptr().add((first + i) * hd + d);
                    V::load(o).add(low[i]).store(o);
                    if second > 0 {
                        V::load(o.add(second)).add(high[i]).store(o.add(second));
                    }
                }
                d += V::N + second;
            }
        });
    }
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
