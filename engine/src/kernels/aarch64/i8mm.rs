//! NEON with byte matrix products: `smmla` multiplies two rows of eight by two columns of eight. It serves whole tiles of
//! tokens; a few columns are bound by memory and take `sdot`.

use std::arch::aarch64::*;
use std::ops::Range;

use super::bytes::{peak, smmla};
use super::dotprod::rows;
use super::lanes::F32x8;
use super::unpack::{NeonUnpack, centred};
use crate::kernels::gemm::{PANEL_ROWS, Panel, TileSums};
use crate::kernels::table::kernels;
use crate::kernels::{Activation, Attention, AttentionScratch, Kernels, Matrix, Output, attention, elementwise, float};
use crate::quant::{ActMatrix, ActTile, ActTileMut, Format, GEMM_TILE, with_format};

kernels!(
    "neon-i8mm",
    "neon,dotprod,i8mm",
    rows: rows,
    tile: tile,
    run: 8,
    unpack: NeonUnpack,
    lanes: F32x8
);

peak!("neon,dotprod,i8mm", smmla, 32);

/// Pairs of rows in half a panel, and pairs of columns in a tile.
const ROWS: usize = 4;
const COLUMNS: usize = GEMM_TILE / 2;

/// A register for each pair of rows and pair of columns: `[row 0, column 0], [0, 1], [1, 0], [1, 1]`. Those of half a
/// panel take 24 registers, which with one of weights and six of activations leaves one of the 32.
type Pairs<T> = [[T; COLUMNS]; ROWS];

/// A panel times a tile of tokens.
#[target_feature(enable = "neon,dotprod,i8mm")]
fn tile<F: Format>(panel: &Panel, a: &ActTile<'_>) -> TileSums {
    let mut out: TileSums = [[0.0; PANEL_ROWS]; GEMM_TILE];
    for half in 0..2 {
        let mut floats: Pairs<float32x4_t> = [[vdupq_n_f32(0.0); COLUMNS]; ROWS];
        for g in 0..panel.scale.len() / PANEL_ROWS {
            // SAFETY: the panel and the tile have the same width, checked by `Kernels::gemm`; `g` is one of its groups.
            unsafe { add_group::<F>(panel, a, g, half, &mut floats) };
        }
        for (i, floats) in floats.iter().enumerate() {
            for (j, floats) in floats.iter().enumerate() {
                let row = half * 8 + 2 * i;
                out[2 * j][row] = vgetq_lane_f32::<0>(*floats);
                out[2 * j + 1][row] = vgetq_lane_f32::<1>(*floats);
                out[2 * j][row + 1] = vgetq_lane_f32::<2>(*floats);
                out[2 * j + 1][row + 1] = vgetq_lane_f32::<3>(*floats);
            }
        }
    }
    out
}

/// Adds group `g` of eight rows and all columns.
///
/// # Safety
/// The processor has `i8mm`; the group is one of the panel's and of the tile's, and `half` is 0 or 1.
#[inline(always)]
unsafe fn add_group<F: Format>(panel: &Panel, a: &ActTile<'_>, g: usize, half: usize, floats: &mut Pairs<float32x4_t>) {
    let group = F::TYPE.group();
    let row = g * PANEL_ROWS + half * 8;
    let sums = if group == 32 { a.sum32 } else { a.sum16 };
    // SAFETY: by the contract: scales and minima are `[groups][16]`, activation scales `[width / 32][12]`, sums
    // `[groups][12]`.
    unsafe {
        let ints = group_sums::<F>(panel, a, g, half);
        let (scale, min) = (by_pairs(panel.scale.as_ptr().add(row)), by_pairs(panel.min.as_ptr().add(row)));
        for j in 0..COLUMNS {
            // Those of two columns, twice.
            let twice = |p: *const f32| {
                let v = vld1_f32(p);
                vcombine_f32(v, v)
            };
            let a_scale = twice(a.scale.as_ptr().add(g * group / 32 * GEMM_TILE + 2 * j));
            let sum = twice(sums.as_ptr().add(g * GEMM_TILE + 2 * j));
            for i in 0..ROWS {
                let both = vmulq_f32(scale[i], a_scale);
                let mut v = vfmaq_f32(floats[i][j], vcvtq_f32_s32(ints[i][j]), both);
                if !centred::<F>() {
                    v = vfmaq_f32(v, min[i], sum);
                }
                floats[i][j] = v;
            }
        }
    }
}

/// Eight floats, each twice, in pairs.
///
/// # Safety
/// Eight floats are readable at `p`.
#[inline(always)]
unsafe fn by_pairs(p: *const f32) -> [float32x4_t; ROWS] {
    // SAFETY: by the contract.
    unsafe {
        let (low, high) = (vld1q_f32(p), vld1q_f32(p.add(4)));
        [vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high), vzip2q_f32(high, high)]
    }
}

/// Integer sums of a group for eight rows and all columns.
///
/// # Safety
/// As [`add_group`].
#[inline(always)]
unsafe fn group_sums<F: Format>(panel: &Panel, a: &ActTile<'_>, g: usize, half: usize) -> Pairs<int32x4_t> {
    let steps = F::TYPE.group() / 8;
    // SAFETY: by the contract: the panel is `[width / 8][16][8]` and the tile `[width / 4][12][4]`.
    unsafe {
        let mut ints: Pairs<int32x4_t> = [[vdupq_n_s32(0); COLUMNS]; ROWS];
        for k in g * steps..(g + 1) * steps {
            let w = panel.u.as_ptr().cast::<i8>().add(k * PANEL_ROWS * 8 + half * 64);
            let q = eights(a.q.as_ptr().add(2 * k * GEMM_TILE * 4));
            for (i, ints) in ints.iter_mut().enumerate() {
                let w = vld1q_s8(w.add(16 * i));
                for (ints, q) in ints.iter_mut().zip(q) {
                    *ints = smmla(*ints, w, q);
                }
            }
        }
        ints
    }
}

/// Eight elements of each column, two columns to a register, from two times four elements of all columns.
///
/// # Safety
/// `2 * 4 * GEMM_TILE` bytes are readable at `q`.
#[inline(always)]
unsafe fn eights(q: *const i8) -> [int8x16_t; COLUMNS] {
    // SAFETY: by the contract.
    unsafe {
        let mut out = [vdupq_n_s8(0); COLUMNS];
        for i in 0..COLUMNS / 2 {
            let q = q.add(16 * i).cast::<i32>();
            let (low, high) = (vld1q_s32(q), vld1q_s32(q.add(GEMM_TILE)));
            out[2 * i] = vreinterpretq_s8_s32(vzip1q_s32(low, high));
            out[2 * i + 1] = vreinterpretq_s8_s32(vzip2q_s32(low, high));
        }
        out
    }
}
