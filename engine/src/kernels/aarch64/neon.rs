//! NEON as every AArch64 processor has it: products of bytes are widened to 16 bits and added there as long as they must
//! fit, see [`chain`].

use std::arch::aarch64::*;
use std::ops::Range;

use super::bytes::{Widening, chain};
use super::gemv;
use super::lanes::F32x8;
use super::unpack::{NeonUnpack, centred};
use crate::kernels::gemm::{PANEL_ROWS, Panel, TileSums};
use crate::kernels::table::kernels;
use crate::kernels::{Activation, Attention, AttentionScratch, Kernels, Matrix, Output, attention, elementwise, float};
use crate::quant::{ActMatrix, ActTile, ActTileMut, Format, GEMM_TILE, with_format};

kernels!(
    "neon",
    "neon",
    rows: rows,
    tile: tile,
    run: 4,
    unpack: NeonUnpack,
    lanes: F32x8
);

/// See [`Kernels::peak`]: chains of eight products in 16 bits, then one widening, as for formats up to 31.
#[target_feature(enable = "neon")]
fn peak(rounds: usize) -> usize {
    const CHAINS: usize = 12;
    let (w, q) = (std::hint::black_box(vdup_n_s8(1)), std::hint::black_box(vdup_n_s8(1)));
    let mut wide = [vdupq_n_s32(0); CHAINS];
    for _ in 0..rounds / 8 {
        let mut pairs = [vdupq_n_s16(0); CHAINS];
        // Opaque, or all rounds would be the same and computed once.
        let q = std::hint::black_box(q);
        for step in 0..8 {
            let w = veor_s8(w, vdup_n_s8(step));
            for pairs in &mut pairs {
                *pairs = vmlal_s8(*pairs, w, q);
            }
        }
        for (wide, pairs) in wide.iter_mut().zip(pairs) {
            *wide = vpadalq_s16(*wide, pairs);
        }
    }
    std::hint::black_box(wide);
    rounds / 8 * 8 * CHAINS * 8
}

/// # Safety
/// As [`Kernels::gemv`].
#[inline(always)]
unsafe fn rows<F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    // SAFETY: forwarded; every processor has the instructions.
    unsafe { gemv::rows::<Widening, F>(m, rows, a, out) };
}

/// A panel times a tile of tokens.
#[target_feature(enable = "neon")]
fn tile<F: Format>(panel: &Panel, a: &ActTile<'_>) -> TileSums {
    let mut out: TileSums = [[0.0; PANEL_ROWS]; GEMM_TILE];
    for g in 0..panel.scale.len() / PANEL_ROWS {
        for half in 0..2 {
            // SAFETY: the panel and the tile have the same width, checked by `Kernels::gemm`; `g` is one of its groups.
            // Where a group needs more than one chain, its sums in 32 bits take registers too: fewer columns go at once.
            unsafe {
                if chain::<F>() >= F::TYPE.group() / 4 {
                    (0..GEMM_TILE).step_by(4).for_each(|c| columns::<F, 4>(panel, a, (g, half, c), &mut out));
                } else {
                    (0..GEMM_TILE).step_by(2).for_each(|c| columns::<F, 2>(panel, a, (g, half, c), &mut out));
                }
            }
        }
    }
    out
}

/// Adds group `g` of eight rows and `C` columns.
///
/// # Safety
/// The group is one of the panel's and of the tile's, `half` is 0 or 1, and `c + C` at most a tile's columns.
#[inline(always)]
unsafe fn columns<F: Format, const C: usize>(
    panel: &Panel,
    a: &ActTile<'_>,
    (g, half, c): (usize, usize, usize),
    out: &mut TileSums,
) {
    let group = F::TYPE.group();
    let row = g * PANEL_ROWS + half * 8;
    let sums = if group == 32 { a.sum32 } else { a.sum16 };
    // SAFETY: by the contract: scales and minima are `[groups][16]`, activation scales `[width / 32][12]`, sums
    // `[groups][12]`.
    unsafe {
        let ints = group_sums::<F, C>(panel, a, (g, half, c));
        for i in 0..C {
            let a_scale = *a.scale.get_unchecked(g * group / 32 * GEMM_TILE + c + i);
            let sum = *sums.get_unchecked(g * GEMM_TILE + c + i);
            for j in 0..2 {
                let o = out[c + i].as_mut_ptr().add(half * 8 + j * 4);
                let scale = vmulq_n_f32(vld1q_f32(panel.scale.as_ptr().add(row + j * 4)), a_scale);
                let mut v = vfmaq_f32(vld1q_f32(o), vcvtq_f32_s32(ints[i][j]), scale);
                if !centred::<F>() {
                    v = vfmaq_n_f32(v, vld1q_f32(panel.min.as_ptr().add(row + j * 4)), sum);
                }
                vst1q_f32(o, v);
            }
        }
    }
}

/// Integer sums of a group for eight rows and `C` columns.
///
/// # Safety
/// As [`columns`].
#[inline(always)]
unsafe fn group_sums<F: Format, const C: usize>(
    panel: &Panel,
    a: &ActTile<'_>,
    (g, half, c): (usize, usize, usize),
) -> [[int32x4_t; 2]; C] {
    let steps = F::TYPE.group() / 4;
    // SAFETY: by the contract: the panel is `[width / 4][16][4]` and the tile `[width / 4][12][4]`.
    unsafe {
        let mut wide = [[vdupq_n_s32(0); 4]; C];
        let mut s = 0;
        while s < steps {
            // A register holds two rows, of each four elements: two sums a row.
            let mut pairs = [[vdupq_n_s16(0); 4]; C];
            for k in g * steps + s..g * steps + steps.min(s + chain::<F>()) {
                let w = panel.u.as_ptr().cast::<i8>().add(k * PANEL_ROWS * 4 + half * 32);
                let w = [vld1q_s8(w), vld1q_s8(w.add(16))];
                for i in 0..C {
                    let q = a.q.as_ptr().add((k * GEMM_TILE + c + i) * 4).cast::<i32>();
                    let q = vreinterpretq_s8_s32(vdupq_n_s32(q.read_unaligned()));
                    for j in 0..2 {
                        pairs[i][2 * j] = vmlal_s8(pairs[i][2 * j], vget_low_s8(w[j]), vget_low_s8(q));
                        pairs[i][2 * j + 1] = vmlal_high_s8(pairs[i][2 * j + 1], w[j], q);
                    }
                }
            }
            for i in 0..C {
                for j in 0..4 {
                    wide[i][j] = vpadalq_s16(wide[i][j], pairs[i][j]);
                }
            }
            s += chain::<F>();
        }
        let mut ints = [[vdupq_n_s32(0); 2]; C];
        for i in 0..C {
            ints[i] = [vpaddq_s32(wide[i][0], wide[i][1]), vpaddq_s32(wide[i][2], wide[i][3])];
        }
        ints
    }
}
