//! The loops that take the time, once per instruction set, chosen when the process starts.
//!
//! [`Kernels`] is a table of function pointers; [`Kernels::detect`] gives the best one that this machine runs and
//! [`Kernels::available`] all of them, for tests and benchmarks. Entries are whole loops: a function compiled for an
//! instruction set does not inline into one that is not, so small helpers behind pointers would cost more than they
//! save.
//!
//! How a matrix product works. Weights stay as they are in the file; activations are quantized to int8 once and shared
//! by all products that read them ([`ActMatrix`]). Every integer type unpacks to unsigned bytes with a scale and an
//! offset a group, `w = scale * u + min`, so
//!
//! ```text
//! sum(w * a) = sum over groups of  a_scale * scale * isum(u * q)  +  min * (a_scale * isum(q))
//! ```
//! with exact integer sums, the second factor of the last term coming with the activations. Up to
//! [`GEMV_COLUMNS`](crate::quant::GEMV_COLUMNS) tokens go row by row ([`Kernels::gemv`]); more go by panels of 16 rows,
//! unpacked once and interleaved, then multiplied with all tokens ([`Kernels::gemm`]).

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod attention;
mod cached;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod columns;
mod elementwise;
mod float;
mod gemm;
mod lanes;
mod scalar;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod table;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;
use std::sync::OnceLock;

pub use attention::{Attention, AttentionScratch};
pub use cached::{CACHE_BLOCK, Cached, to_bytes};
pub use gemm::{PANEL_ROWS, Panel};

use crate::pool::Disjoint;
use crate::quant::{ActMatrix, ActTileMut, TensorType};

/// A weight matrix in its file format, `(rows, columns)`: outputs by inputs.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// Storage type.
    pub ty: TensorType,
    /// Outputs.
    pub rows: usize,
    /// Inputs; a multiple of the type's block length.
    pub columns: usize,
    /// `rows` rows of `ty.row_bytes(columns)` bytes.
    pub data: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// Row `r` as stored.
    #[inline(always)]
    #[must_use]
    pub fn row(&self, r: usize) -> &'a [u8] {
        let n = self.ty.row_bytes(self.columns);
        &self.data[r * n..(r + 1) * n]
    }
}

/// Where products go: `(tokens, stride)` floats, written by rows of the weight matrix, several threads at once.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// The floats.
    pub data: Disjoint<f32>,
    /// Floats from one token to the next.
    pub stride: usize,
}

impl Output {
    /// Rows `row..row + n` of token `c`.
    ///
    /// # Safety
    /// As [`Disjoint::part`].
    #[inline(always)]
    pub(crate) unsafe fn part<'b>(self, c: usize, row: usize, n: usize) -> &'b mut [f32] {
        // SAFETY: forwarded to the caller.
        unsafe { self.data.part(c * self.stride + row, n) }
    }
}

/// An activation function applied to the gate of a feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// The tanh approximation of GELU (Gemma).
    GeluTanh,
    /// GELU by the error function (BERT).
    GeluErf,
}

type Gemv = unsafe fn(&Matrix<'_>, Range<usize>, &ActMatrix, Output);
type Gemm = unsafe fn(&Matrix<'_>, Range<usize>, &ActMatrix, Output, &mut Panel);
type FloatProduct = unsafe fn(&Matrix<'_>, Range<usize>, &[f32], Output, &mut Vec<f32>);

/// The kernels of one instruction set. Holding one proves that the machine runs it.
pub struct Kernels {
    name: &'static str,
    quantize: unsafe fn(&mut ActTileMut<'_>, &[f32], usize),
    gemv: Gemv,
    gemm: Gemm,
    float: FloatProduct,
    attention: unsafe fn(&Attention<'_>, usize, Range<usize>, Output, &mut AttentionScratch),
    rms_norm: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    layer_norm: unsafe fn(&mut [f32], &[f32], &[f32], f32),
    gate: unsafe fn(Activation, &mut [f32], &[f32]),
    activate: unsafe fn(Activation, &mut [f32]),
    peak: unsafe fn(usize) -> usize,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Kernels {
    /// The best table that this machine runs; looked up once.
    #[must_use]
    pub fn detect() -> &'static Kernels {
        static BEST: OnceLock<&'static Kernels> = OnceLock::new();
        BEST.get_or_init(|| Self::available().last().copied().unwrap_or(&scalar::KERNELS))
    }

    /// Every table that this machine runs, slowest first; the scalar one is always there.
    #[must_use]
    pub fn available() -> Vec<&'static Kernels> {
        let mut all = vec![&scalar::KERNELS];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::available());
        #[cfg(target_arch = "aarch64")]
        all.extend(aarch64::available());
        all
    }

    /// Name of the instruction set.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Quantizes one tile of activations; `x` is `(columns present, width)`.
    pub fn quantize(&self, tile: &mut ActTileMut<'_>, x: &[f32], width: usize) {
        assert!(width > 0 && x.len().is_multiple_of(width));
        // SAFETY: the table was handed out, so the machine has its instructions.
        unsafe { (self.quantize)(tile, x, width) }
    }

    /// `out[c][rows] = m[rows] . a[c]` for a few columns.
    ///
    /// # Safety
    /// No other thread touches these rows of `out` meanwhile, and its slice stays borrowed.
    pub unsafe fn gemv(&self, m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
        check(m, &rows, a.width());
        assert!(a.tile_columns() == 1 && !m.ty.is_float());
        // SAFETY: instructions as above; shapes were checked; exclusivity is the caller's.
        unsafe { (self.gemv)(m, rows, a, out) }
    }

    /// The same for many columns; `rows.start` must be a multiple of [`PANEL_ROWS`].
    ///
    /// # Safety
    /// As [`Kernels::gemv`].
    pub unsafe fn gemm(&self, m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output, panel: &mut Panel) {
        check(m, &rows, a.width());
        assert!(a.tile_columns() == crate::quant::GEMM_TILE && !m.ty.is_float());
        // SAFETY: as in `gemv`.
        unsafe { (self.gemm)(m, rows, a, out, panel) }
    }

    /// The same for weights of a float type and float activations `x`, `(tokens, columns)`.
    ///
    /// # Safety
    /// As [`Kernels::gemv`].
    pub unsafe fn float(&self, m: &Matrix<'_>, rows: Range<usize>, x: &[f32], out: Output, scratch: &mut Vec<f32>) {
        check(m, &rows, m.columns);
        assert!(m.ty.is_float() && x.len().is_multiple_of(m.columns));
        // SAFETY: as in `gemv`.
        unsafe { (self.float)(m, rows, x, out, scratch) }
    }

    /// Attention of the query heads of KV head `head` for tokens `tokens` of the batch; see [`Attention`].
    ///
    /// # Safety
    /// No other thread touches the same heads of the same tokens of `out`.
    pub unsafe fn attention(
        &self,
        a: &Attention<'_>,
        head: usize,
        tokens: Range<usize>,
        out: Output,
        scratch: &mut AttentionScratch,
    ) {
        a.check(head, &tokens);
        // SAFETY: as in `gemv`.
        unsafe { (self.attention)(a, head, tokens, out, scratch) }
    }

    /// `out = x / rms(x) * weight`, rms with `eps` added to the mean square.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        assert!(x.len() == weight.len() && x.len() == out.len());
        // SAFETY: the machine has the instructions.
        unsafe { (self.rms_norm)(x, weight, eps, out) }
    }

    /// `x = (x - mean) / sqrt(variance + eps) * weight + bias`, in place.
    pub fn layer_norm(&self, x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
        assert!(x.len() == weight.len() && x.len() == bias.len());
        // SAFETY: the machine has the instructions.
        unsafe { (self.layer_norm)(x, weight, bias, eps) }
    }

    /// `gate = f(gate) * up`.
    pub fn gate(&self, f: Activation, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len());
        // SAFETY: the machine has the instructions.
        unsafe { (self.gate)(f, gate, up) }
    }

    /// Runs the fastest chain of 8-bit products of this instruction set, in registers alone, and gives how many products it
    /// made: timed, it is the arithmetic peak that a matrix product can be held against.
    #[must_use]
    pub fn peak(&self, rounds: usize) -> usize {
        // SAFETY: the machine has the instructions.
        unsafe { (self.peak)(rounds) }
    }

    /// `x = f(x)`.
    pub fn activate(&self, f: Activation, x: &mut [f32]) {
        // SAFETY: the machine has the instructions.
        unsafe { (self.activate)(f, x) }
    }
}

/// Rounds of [`Kernels::peak`] that are measured at a time.
pub const PEAK_ROUNDS: usize = 1 << 20;

fn check(m: &Matrix<'_>, rows: &Range<usize>, width: usize) {
    assert!(rows.start <= rows.end && rows.end <= m.rows, "rows {rows:?} of {}", m.rows);
    assert_eq!(m.columns, width, "inputs of the matrix and width of the activations");
    assert_eq!(m.data.len(), m.rows * m.ty.row_bytes(m.columns), "bytes of the matrix");
}
