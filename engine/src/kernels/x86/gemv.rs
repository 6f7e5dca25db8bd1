//! Matrix-vector products with 256-bit registers, and conversions of halves.

use std::arch::x86_64::*;
use std::ops::Range;

use half::f16;

use super::unpack::Avx2Unpack;
use crate::kernels::gemv::{STEP, Stretch};
use crate::kernels::{Matrix, Output};
use crate::quant::{ActMatrix, ActTile, Format};

/// The integer dot product of an instruction set.
pub(super) trait Dot {
    /// Whether bytes above 127 are taken as `u - 128`, which makes the format's offset vanish.
    const CENTERS_BYTES: bool;

    /// Eight sums of four products each: `sum(u * q)`, exact.
    ///
    /// # Safety
    /// The caller runs with the instruction set enabled; no byte of `u` exceeds `MAX`.
    unsafe fn dot<const MAX: u8>(u: __m256i, q: __m256i) -> __m256i;
}

/// Rows of `m` times the columns of `a`, two columns at a time.
///
/// # Safety
/// As [`crate::kernels::Kernels::gemv`], with AVX2, FMA and what `D` needs enabled.
#[inline(always)]
pub(super) unsafe fn rows<D: Dot, F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    for c in (0..a.columns()).step_by(2) {
        for r in rows.clone() {
            // SAFETY: forwarded contract.
            unsafe {
                if c + 1 < a.columns() {
                    let sums = row::<D, F, 2>(m.row(r), a, c);
                    out.part(c, r, 1)[0] = sums[0];
                    out.part(c + 1, r, 1)[0] = sums[1];
                } else {
                    out.part(c, r, 1)[0] = row::<D, F, 1>(m.row(r), a, c)[0];
                }
            }
        }
    }
}

/// One row times `C` columns.
#[inline(always)]
unsafe fn row<D: Dot, F: Format, const C: usize>(bytes: &[u8], a: &ActMatrix, c: usize) -> [f32; C] {
    let tiles: [ActTile<'_>; C] = std::array::from_fn(|i| a.tile(c + i));
    let mut s = Stretch::new();
    // SAFETY: AVX2 and FMA are enabled by the caller. Reads of `q`, `scale` and the sums lie within the width, which
    // `Kernels::gemv` compared with the matrix.
    unsafe {
        // Two chains of additions, in registers: one alone would wait for itself.
        let (mut even, mut odd) = ([_mm256_setzero_ps(); C], [_mm256_setzero_ps(); C]);
        let mut offset = [_mm256_setzero_ps(); C];
        let mut from = 0;
        while from < a.width() {
            let n = STEP.min(a.width() - from);
            let packed = &bytes[F::TYPE.row_bytes(from)..F::TYPE.row_bytes(from + n)];
            prefetch(packed);
            s.unpack::<Avx2Unpack, F>(packed, n);
            let mut j = 0;
            while j + 2 <= n / 32 {
                stretch::<D, F, C>(&s, j, &tiles, from / 32 + j, &mut even);
                stretch::<D, F, C>(&s, j + 1, &tiles, from / 32 + j + 1, &mut odd);
                j += 2;
            }
            if j < n / 32 {
                stretch::<D, F, C>(&s, j, &tiles, from / 32 + j, &mut even);
            }
            if !(D::CENTERS_BYTES && F::TYPE.max() == 255) {
                for i in 0..C {
                    offset[i] = offsets::<F>(&s.min, if_32::<F>(tiles[i].sum32, tiles[i].sum16), from, n, offset[i]);
                }
            }
            from += n;
        }
        std::array::from_fn(|i| sum(_mm256_add_ps(_mm256_add_ps(even[i], odd[i]), offset[i])))
    }
}

/// Bytes that weights are asked for ahead of their use: some tens of lines, as far as memory latency reaches.
const AHEAD: usize = 2048;

/// Asks for the weights that come `AHEAD` bytes after these; rows follow one another, so they are the next ones.
#[inline(always)]
unsafe fn prefetch(packed: &[u8]) {
    for line in (0..packed.len()).step_by(64) {
        let ahead = packed.as_ptr().wrapping_add(AHEAD + line);
        // SAFETY: SSE is part of x86-64; a prefetch of an address that is not mapped does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
}

/// Adds the products of 32 elements: stretch `j` of the unpacked weights, block `block` of the activations.
#[inline(always)]
unsafe fn stretch<D: Dot, F: Format, const C: usize>(
    s: &Stretch,
    j: usize,
    tiles: &[ActTile<'_>; C],
    block: usize,
    acc: &mut [__m256; C],
) {
    // SAFETY: AVX2 and FMA by the caller, which also keeps `j` and `block` within the stretch and the width.
    unsafe {
        let u = _mm256_loadu_si256(s.u.as_ptr().add(j * 32).cast());
        let scale = group_scale::<F>(&s.scale, j);
        for i in 0..C {
            let q = _mm256_loadu_si256(tiles[i].q.as_ptr().add(block * 32).cast());
            let sum = _mm256_cvtepi32_ps(dot::<D, F>(u, q));
            let both = _mm256_mul_ps(scale, _mm256_broadcast_ss(&*tiles[i].scale.as_ptr().add(block)));
            acc[i] = _mm256_fmadd_ps(sum, both, acc[i]);
        }
    }
}

#[inline(always)]
fn if_32<'a, F: Format>(sum32: &'a [f32], sum16: &'a [f32]) -> &'a [f32] {
    if F::TYPE.group() == 32 { sum32 } else { sum16 }
}

/// Calls the dot product with the format's largest byte.
#[inline(always)]
unsafe fn dot<D: Dot, F: Format>(u: __m256i, q: __m256i) -> __m256i {
    // SAFETY: forwarded; a constant match folds away.
    unsafe {
        match F::TYPE.max() {
            255 => D::dot::<255>(u, q),
            _ => D::dot::<127>(u, q),
        }
    }
}

/// The scale of each of the eight sums of 32-element stretch `j`.
#[inline(always)]
unsafe fn group_scale<F: Format>(scale: &[f32; 16], j: usize) -> __m256 {
    // SAFETY: AVX by the caller.
    unsafe {
        if F::TYPE.group() == 32 {
            _mm256_set1_ps(scale[j])
        } else {
            _mm256_set_m128(_mm_set1_ps(scale[2 * j + 1]), _mm_set1_ps(scale[2 * j]))
        }
    }
}

/// `acc += min * sums` over the groups of `n` elements from `from`.
#[inline(always)]
unsafe fn offsets<F: Format>(min: &[f32; 16], sums: &[f32], from: usize, n: usize, mut acc: __m256) -> __m256 {
    let group = F::TYPE.group();
    let sums = &sums[from / group..(from + n) / group];
    // SAFETY: AVX and FMA by the caller; eight floats are read where the chunk has eight.
    unsafe {
        let (eights, rest) = sums.as_chunks::<8>();
        for (g, eight) in eights.iter().enumerate() {
            acc = _mm256_fmadd_ps(_mm256_loadu_ps(min.as_ptr().add(g * 8)), _mm256_loadu_ps(eight.as_ptr()), acc);
        }
        if !rest.is_empty() {
            let mut last = [0f32; 8];
            last[..rest.len()].copy_from_slice(rest);
            acc = _mm256_fmadd_ps(
                _mm256_loadu_ps(min.as_ptr().add(eights.len() * 8)),
                _mm256_loadu_ps(last.as_ptr()),
                acc,
            );
        }
    }
    acc
}

#[inline(always)]
unsafe fn sum(v: __m256) -> f32 {
    // SAFETY: AVX by the caller.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)))
    }
}

/// Halves to floats, eight at a time.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn halves_to_floats(h: &[f16], f: &mut [f32]) {
    let ((h8, h_rest), (f8, f_rest)) = (h.as_chunks::<8>(), f.as_chunks_mut::<8>());
    for (h, f) in h8.iter().zip(f8) {
        // SAFETY: both chunks have eight elements.
        unsafe { _mm256_storeu_ps(f.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(h.as_ptr().cast()))) };
    }
    for (h, f) in h_rest.iter().zip(f_rest) {
        *f = h.to_f32_const();
    }
}

/// Floats to halves, nearest even.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn floats_to_halves(f: &[f32], h: &mut [f16]) {
    let ((f8, f_rest), (h8, h_rest)) = (f.as_chunks::<8>(), h.as_chunks_mut::<8>());
    for (f, h) in f8.iter().zip(h8) {
        // SAFETY: both chunks have eight elements.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(f.as_ptr()));
            _mm_storeu_si128(h.as_mut_ptr().cast(), halves);
        }
    }
    for (f, h) in f_rest.iter().zip(h_rest) {
        *h = f16::from_f32_const(*f);
    }
}
