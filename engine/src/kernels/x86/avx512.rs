//! AVX-512 with VNNI: `vpdpbusd` multiplies unsigned by signed bytes and adds four products in 32 bits, without
//! saturation, so that every format takes the same path.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gemv512::rows;
use super::lanes::F32x16;
use super::unpack::Avx2Unpack;
use crate::kernels::gemm::{PANEL_ROWS, Panel, TileSums};
use crate::kernels::table::kernels;
use crate::kernels::{Activation, Attention, AttentionScratch, Kernels, Matrix, Output, attention, elementwise, float};
use crate::quant::{ActMatrix, ActTile, ActTileMut, Format, GEMM_TILE, with_format};

kernels!(
    "avx512-vnni",
    "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c",
    rows: rows,
    tile: tile,
    run: 4,
    unpack: Avx2Unpack,
    lanes: F32x16
);

/// See [`Kernels::peak`].
#[target_feature(enable = "avx512f,avx512vnni")]
fn peak(rounds: usize) -> usize {
    let mut w = std::hint::black_box(_mm512_set1_epi8(3));
    let q = std::hint::black_box(_mm512_set1_epi8(5));
    let mut sums = [_mm512_setzero_si512(); GEMM_TILE];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_dpbusd_epi32(*sum, w, q);
        }
        // Opaque, or all rounds would be the same and computed once.
        w = std::hint::black_box(w);
    }
    std::hint::black_box(sums);
    rounds * GEMM_TILE * 64
}

/// A panel times a tile of tokens: twelve int32 accumulators of sixteen rows, and twelve float ones.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")]
fn tile<F: Format>(panel: &Panel, a: &ActTile<'_>) -> TileSums {
    let group = F::TYPE.group();
    let steps = group / 4;
    let sums = if group == 32 { a.sum32 } else { a.sum16 };
    let mut out = [_mm512_setzero_ps(); GEMM_TILE];
    for g in 0..panel.scale.len() / PANEL_ROWS {
        let mut ints = [_mm512_setzero_si512(); GEMM_TILE];
        for s in 0..steps {
            let k = g * steps + s;
            // SAFETY: the panel is `[width / 4][16][4]` and the tile `[width / 4][12][4]`, widths being equal as
            // `Kernels::gemm` checked.
            unsafe {
                let w = _mm512_loadu_si512(panel.u.as_ptr().add(k * PANEL_ROWS * 4).cast());
                let q = a.q.as_ptr().add(k * GEMM_TILE * 4).cast::<i32>();
                for (c, ints) in ints.iter_mut().enumerate() {
                    *ints = _mm512_dpbusd_epi32(*ints, w, _mm512_set1_epi32(q.add(c).read_unaligned()));
                }
            }
        }
        // SAFETY: scales and minima are `[groups][16]`, activation scales `[width / 32][12]`, sums `[groups][12]`.
        unsafe {
            let scale = _mm512_loadu_ps(panel.scale.as_ptr().add(g * PANEL_ROWS));
            let min = _mm512_loadu_ps(panel.min.as_ptr().add(g * PANEL_ROWS));
            let a_scale = a.scale.as_ptr().add(g * group / 32 * GEMM_TILE);
            let sums = sums.as_ptr().add(g * GEMM_TILE);
            for c in 0..GEMM_TILE {
                let both = _mm512_mul_ps(scale, _mm512_set1_ps(*a_scale.add(c)));
                out[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(ints[c]), both, out[c]);
                out[c] = _mm512_fmadd_ps(min, _mm512_set1_ps(*sums.add(c)), out[c]);
            }
        }
    }
    let mut result: TileSums = [[0.0; PANEL_ROWS]; GEMM_TILE];
    for (row, v) in result.iter_mut().zip(out) {
        // SAFETY: a row has sixteen floats.
        unsafe { _mm512_storeu_ps(row.as_mut_ptr(), v) };
    }
    result
}
