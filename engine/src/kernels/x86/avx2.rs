//! AVX2 with FMA and F16C.
//!
//! `vpmaddubsw` multiplies unsigned by signed bytes and adds pairs in 16 bits with saturation. For bytes up to 15, 31
//! and 63, eight, four and two such products stay below 32,768 and may be chained before they are widened. Bytes up to
//! 255 would saturate at once: they are centred to -128..=127 and their sign moved to the activation, so that the
//! product of magnitudes, at most 2 * 128 * 127, fits.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gemv::{centred_pairs, rows};
use super::lanes::F32x8;
use super::unpack::Avx2Unpack;
use crate::kernels::gemm::{PANEL_ROWS, Panel, TileSums};
use crate::kernels::table::kernels;
use crate::kernels::{Activation, Attention, AttentionScratch, Kernels, Matrix, Output, attention, elementwise, float};
use crate::quant::{ActMatrix, ActTile, ActTileMut, Format, GEMM_TILE, with_format};

kernels!(
    "avx2",
    "avx2,fma,f16c",
    rows: rows,
    tile: tile,
    run: 4,
    unpack: Avx2Unpack,
    lanes: F32x8
);

/// See [`Kernels::peak`]: chains of eight products in 16 bits, then one widening, as for formats up to 15.
#[target_feature(enable = "avx2")]
fn peak(rounds: usize) -> usize {
    const CHAINS: usize = 4;
    let ones = _mm256_set1_epi16(1);
    let (w, q) = (std::hint::black_box(_mm256_set1_epi8(1)), std::hint::black_box(_mm256_set1_epi8(1)));
    let mut wide = [_mm256_setzero_si256(); CHAINS];
    for _ in 0..rounds / 8 {
        let mut pairs = [_mm256_setzero_si256(); CHAINS];
        // Opaque, or all rounds would be the same and computed once.
        let q = std::hint::black_box(q);
        for step in 0..8 {
            let w = _mm256_xor_si256(w, _mm256_set1_epi8(step));
            for pairs in &mut pairs {
                *pairs = _mm256_add_epi16(*pairs, _mm256_maddubs_epi16(w, q));
            }
        }
        for (wide, pairs) in wide.iter_mut().zip(pairs) {
            *wide = _mm256_add_epi32(*wide, _mm256_madd_epi16(pairs, ones));
        }
    }
    std::hint::black_box(wide);
    rounds / 8 * 8 * CHAINS * 32
}

/// Columns taken at once: four sums in 16 bits, four in 32, a weight, an activation and the ones make 11 registers.
const COLUMNS: usize = 4;

/// A panel times a tile of tokens.
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<F: Format>(panel: &Panel, a: &ActTile<'_>) -> TileSums {
    let group = F::TYPE.group();
    let centred = F::TYPE.max() == 255;
    let sums = if group == 32 { a.sum32 } else { a.sum16 };
    let mut out: TileSums = [[0.0; PANEL_ROWS]; GEMM_TILE];
    for g in 0..panel.scale.len() / PANEL_ROWS {
        for half in 0..2 {
            let rows = g * PANEL_ROWS + half * 8;
            // SAFETY: scales and minima are `[groups][16]`, `rows + 8` lies within group `g`.
            let (scale, min) = unsafe {
                (_mm256_loadu_ps(panel.scale.as_ptr().add(rows)), _mm256_loadu_ps(panel.min.as_ptr().add(rows)))
            };
            for c in (0..GEMM_TILE).step_by(COLUMNS) {
                // SAFETY: the panel and the tile have the same width, checked by `Kernels::gemm`.
                let ints = unsafe { group_sums::<F>(panel, a, g, half, c) };
                for (i, ints) in ints.into_iter().enumerate() {
                    let a_scale = _mm256_set1_ps(a.scale[g * group / 32 * GEMM_TILE + c + i]);
                    // SAFETY: eight floats of a row of sixteen, `half` being 0 or 1.
                    unsafe {
                        let o = out[c + i].as_mut_ptr().add(half * 8);
                        let mut v = _mm256_loadu_ps(o);
                        v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints), _mm256_mul_ps(scale, a_scale), v);
                        if !centred {
                            v = _mm256_fmadd_ps(min, _mm256_set1_ps(sums[g * GEMM_TILE + c + i]), v);
                        }
                        _mm256_storeu_ps(o, v);
                    }
                }
            }
        }
    }
    out
}

/// Integer sums of group `g` for eight rows and four columns.
#[inline(always)]
unsafe fn group_sums<F: Format>(panel: &Panel, a: &ActTile<'_>, g: usize, half: usize, c: usize) -> [__m256i; COLUMNS] {
    let steps = F::TYPE.group() / 4;
    let chain = match F::TYPE.max() {
        0..=15 => 8,
        16..=31 => 4,
        32..=63 => 2,
        _ => 1,
    };
    // SAFETY: AVX2 by the caller; offsets lie within the panel's and the tile's `[width / 4]` steps.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let mut wide = [_mm256_setzero_si256(); COLUMNS];
        let mut s = 0;
        while s < steps {
            let mut pairs = [_mm256_setzero_si256(); COLUMNS];
            for _ in 0..chain {
                if s == steps {
                    break;
                }
                let k = g * steps + s;
                let w = _mm256_loadu_si256(panel.u.as_ptr().add(k * PANEL_ROWS * 4 + half * 32).cast());
                for i in 0..COLUMNS {
                    let q = a.q.as_ptr().add((k * GEMM_TILE + c + i) * 4).cast::<i32>();
                    let q = _mm256_set1_epi32(q.read_unaligned());
                    let p = if F::TYPE.max() == 255 { centred_pairs(w, q) } else { _mm256_maddubs_epi16(w, q) };
                    pairs[i] = _mm256_add_epi16(pairs[i], p);
                }
                s += 1;
            }
            for i in 0..COLUMNS {
                wide[i] = _mm256_add_epi32(wide[i], _mm256_madd_epi16(pairs[i], ones));
            }
        }
        wide
    }
}
