//! NEON with byte dot products: `sdot` adds four products in 32 bits, so that every format takes the same path.

use std::arch::aarch64::*;
use std::ops::Range;

use super::bytes::{DotProduct, peak, sdot, sdot_lane};
use super::gemv;
use super::lanes::F32x8;
use super::unpack::{NeonUnpack, centred};
use crate::kernels::gemm::{PANEL_ROWS, Panel, TileSums};
use crate::kernels::table::kernels;
use crate::kernels::{Activation, Attention, AttentionScratch, Kernels, Matrix, Output, attention, elementwise, float};
use crate::quant::{ActMatrix, ActTile, ActTileMut, Format, GEMM_TILE, with_format};

kernels!(
    "neon-dotprod",
    "neon,dotprod",
    rows: rows,
    tile: tile,
    run: 4,
    unpack: NeonUnpack,
    lanes: F32x8
);

peak!("neon,dotprod", sdot, 16);

/// # Safety
/// As [`Kernels::gemv`], with `dotprod` there.
#[inline(always)]
pub(super) unsafe fn rows<F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    // SAFETY: forwarded.
    unsafe { gemv::rows::<DotProduct, F>(m, rows, a, out) };
}

/// Sums of eight rows of a panel, four to a register, for all columns of a tile: 24 registers, which with two of weights
/// and three of activations leaves three of the 32.
type Sums = [[int32x4_t; 2]; GEMM_TILE];

/// A panel times a tile of tokens.
#[target_feature(enable = "neon,dotprod")]
fn tile<F: Format>(panel: &Panel, a: &ActTile<'_>) -> TileSums {
    let group = F::TYPE.group();
    let sums = if group == 32 { a.sum32 } else { a.sum16 };
    let mut out: TileSums = [[0.0; PANEL_ROWS]; GEMM_TILE];
    for g in 0..panel.scale.len() / PANEL_ROWS {
        for half in 0..2 {
            let row = g * PANEL_ROWS + half * 8;
            // SAFETY: the panel and the tile have the same width, checked by `Kernels::gemm`; scales and minima are
            // `[groups][16]`, activation scales `[width / 32][12]`, sums `[groups][12]`.
            unsafe {
                let ints = group_sums::<F>(panel, a, g, half);
                let scale = panel.scale.as_ptr().add(row);
                let scale = [vld1q_f32(scale), vld1q_f32(scale.add(4))];
                let min = panel.min.as_ptr().add(row);
                let min = [vld1q_f32(min), vld1q_f32(min.add(4))];
                for c in 0..GEMM_TILE {
                    let a_scale = *a.scale.get_unchecked(g * group / 32 * GEMM_TILE + c);
                    let sum = *sums.get_unchecked(g * GEMM_TILE + c);
                    for j in 0..2 {
                        let o = out[c].as_mut_ptr().add(half * 8 + j * 4);
                        let mut v = vfmaq_f32(vld1q_f32(o), vcvtq_f32_s32(ints[c][j]), vmulq_n_f32(scale[j], a_scale));
                        if !centred::<F>() {
                            v = vfmaq_n_f32(v, min[j], sum);
                        }
                        vst1q_f32(o, v);
                    }
                }
            }
        }
    }
    out
}

/// Integer sums of group `g` for eight rows and all columns.
///
/// # Safety
/// The processor has `dotprod`; the group is one of the panel's and of the tile's, and `half` is 0 or 1.
#[inline(always)]
unsafe fn group_sums<F: Format>(panel: &Panel, a: &ActTile<'_>, g: usize, half: usize) -> Sums {
    let steps = F::TYPE.group() / 4;
    // SAFETY: by the contract: the panel is `[width / 4][16][4]` and the tile `[width / 4][12][4]`.
    unsafe {
        let mut ints: Sums = [[vdupq_n_s32(0); 2]; GEMM_TILE];
        for k in g * steps..(g + 1) * steps {
            let w = panel.u.as_ptr().cast::<i8>().add(k * PANEL_ROWS * 4 + half * 32);
            let w = [vld1q_s8(w), vld1q_s8(w.add(16))];
            for c in (0..GEMM_TILE).step_by(4) {
                let q = vld1q_s8(a.q.as_ptr().add((k * GEMM_TILE + c) * 4));
                for j in 0..2 {
                    ints[c][j] = sdot_lane::<0>(ints[c][j], w[j], q);
                    ints[c + 1][j] = sdot_lane::<1>(ints[c + 1][j], w[j], q);
                    ints[c + 2][j] = sdot_lane::<2>(ints[c + 2][j], w[j], q);
                    ints[c + 3][j] = sdot_lane::<3>(ints[c + 3][j], w[j], q);
                }
            }
        }
        ints
    }
}
