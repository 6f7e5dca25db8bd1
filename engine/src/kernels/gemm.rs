//! Weight panels: sixteen rows, unpacked and interleaved once, then multiplied with all tokens.

use crate::quant::{Format, GEMM_TILE};

use super::Matrix;

/// Rows of a panel: one AVX-512 register of int32, two of AVX2.
pub const PANEL_ROWS: usize = 16;
/// Elements unpacked at a time: the longest block.
const STEP: usize = 256;

/// How an instruction set unpacks blocks; the plain loop of [`Format`] is the reference.
pub(super) trait Unpack {
    /// As [`Format::unpack`], for at most 256 elements.
    ///
    /// # Safety
    /// The caller runs with the instruction set enabled.
    unsafe fn unpack<F: Format>(row: &[u8], u: &mut [u8], scale: &mut [f32; 16], min: &mut [f32; 16]);
}

/// Sixteen rows of weights, `w = scale * u + min`.
#[derive(Debug, Default)]
pub struct Panel {
    /// `[columns / RUN][16][RUN]`, `RUN` being what the instruction set multiplies at once.
    pub(super) u: Vec<u8>,
    /// `[columns / group][16]`.
    pub(super) scale: Vec<f32>,
    /// `[columns / group][16]`.
    pub(super) min: Vec<f32>,
}

/// Sums of one tile of tokens, `(GEMM_TILE, 16)`.
pub(super) type TileSums = [[f32; PANEL_ROWS]; GEMM_TILE];

impl Panel {
    /// Unpacks rows `row..row + 16` of `m`; rows past its end become zero.
    ///
    /// # Safety
    /// As [`Unpack::unpack`].
    #[inline(always)]
    pub(super) unsafe fn fill<U: Unpack, F: Format, const RUN: usize>(&mut self, m: &Matrix<'_>, row: usize) {
        let (group, zero) = (F::TYPE.group(), F::TYPE.zero() as f32);
        let groups = m.columns / group;
        self.u.resize(m.columns * PANEL_ROWS, 0);
        self.scale.resize(groups * PANEL_ROWS, 0.0);
        self.min.resize(groups * PANEL_ROWS, 0.0);
        let mut lines = [[0u8; STEP]; PANEL_ROWS];
        let (mut scale, mut min) = ([0f32; 16], [0f32; 16]);
        for from in (0..m.columns).step_by(STEP) {
            let n = STEP.min(m.columns - from);
            for r in 0..PANEL_ROWS {
                if row + r < m.rows {
                    let bytes = F::TYPE.row_bytes(from)..F::TYPE.row_bytes(from + n);
                    // SAFETY: forwarded.
                    unsafe { U::unpack::<F>(&m.row(row + r)[bytes], &mut lines[r][..n], &mut scale, &mut min) };
                } else {
                    lines[r].fill(0);
                    (scale, min) = ([0.0; 16], [0.0; 16]);
                }
                for g in 0..n / group {
                    let at = (from / group + g) * PANEL_ROWS + r;
                    self.scale[at] = scale[g];
                    self.min[at] = if F::TYPE.has_min() { min[g] } else { -zero * scale[g] };
                }
            }
            interleave::<RUN>(&lines, &mut self.u[from * PANEL_ROWS..(from + n) * PANEL_ROWS]);
        }
    }
}

/// `out[k][r] = lines[r][k]` in units of `RUN` bytes.
#[inline(always)]
fn interleave<const RUN: usize>(lines: &[[u8; STEP]; PANEL_ROWS], out: &mut [u8]) {
    for (k, out) in out.chunks_exact_mut(PANEL_ROWS * RUN).enumerate() {
        for r in 0..PANEL_ROWS {
            out[r * RUN..(r + 1) * RUN].copy_from_slice(&lines[r][k * RUN..(k + 1) * RUN]);
        }
    }
}
