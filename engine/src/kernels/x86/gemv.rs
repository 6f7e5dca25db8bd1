//! Matrix-vector products with 256-bit registers: each row straight from the file's bytes, no unpacked copy.

use std::arch::x86_64::*;
use std::ops::Range;

use super::unpack::{block32, scales256, stretch256};
use crate::kernels::columns::{Column, by_columns, offset_factor, unrolled};
use crate::kernels::{Matrix, Output};
use crate::quant::{ActMatrix, Format};

/// Rows of `m` times the columns of `a`.
///
/// # Safety
/// As [`crate::kernels::Kernels::gemv`], with AVX2, FMA and F16C enabled.
#[inline(always)]
pub(super) unsafe fn rows<F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    by_columns!(F, a, |first, columns| for r in rows.clone() {
        // SAFETY: the row holds as many blocks as the columns are wide, which `Kernels::gemv` compared; the caller owns
        // these rows of `out`.
        unsafe {
            let row = m.row(r).as_ptr();
            let sums = match F::TYPE.block_len() {
                256 => row256::<F, _>(row, a.width() / 256, &columns),
                _ => row32::<F, _>(row, a.width() / 32, &columns),
            };
            for (i, sum) in sums.into_iter().enumerate() {
                out.part(first + i, r, 1)[0] = sum;
            }
        }
    });
}

/// One row of blocks of 32.
#[inline(always)]
unsafe fn row32<F: Format, const C: usize>(row: *const u8, blocks: usize, columns: &[Column; C]) -> [f32; C] {
    // SAFETY: AVX2, FMA and F16C by the caller, which also vouches for `blocks` blocks of the row and of each column.
    unsafe {
        // Two chains of additions: one alone would wait for itself.
        let (mut even, mut odd) = ([_mm256_setzero_ps(); C], [_mm256_setzero_ps(); C]);
        let mut offset = [_mm256_setzero_ps(); C];
        let mut block = 0;
        while block + 2 <= blocks {
            add_block32::<F, C>(row, block, columns, &mut even, &mut offset);
            add_block32::<F, C>(row, block + 1, columns, &mut odd, &mut offset);
            block += 2;
        }
        if block < blocks {
            add_block32::<F, C>(row, block, columns, &mut even, &mut offset);
        }
        let mut out = [0.0; C];
        for (i, out) in out.iter_mut().enumerate() {
            // Of the eight offsets one is taken: the second, where the minimum is.
            let offset = _mm256_cvtss_f32(_mm256_movehdup_ps(offset[i])) * offset_factor::<F>();
            *out = total(_mm256_add_ps(even[i], odd[i])) + offset;
        }
        out
    }
}

/// Adds the products of one block of 32.
#[inline(always)]
unsafe fn add_block32<F: Format, const C: usize>(
    row: *const u8,
    block: usize,
    columns: &[Column; C],
    sums: &mut [__m256; C],
    offset: &mut [__m256; C],
) {
    // SAFETY: as in `row32`.
    unsafe {
        let b = row.add(block * F::TYPE.block_bytes());
        prefetch(b);
        let u = block32::<F>(b);
        // Both halves are broadcast together, since that costs no shuffle; minima, where there are any, are in odd lanes.
        let floats = _mm256_cvtph_ps(_mm_set1_epi32(b.cast::<i32>().read_unaligned()));
        let scale = _mm256_moveldup_ps(floats);
        let minimum = if F::TYPE.has_min() { floats } else { scale };
        for (i, column) in columns.iter().enumerate() {
            let ints = dot::<F>(u, column.q.add(block * 32));
            let both = _mm256_mul_ps(scale, _mm256_broadcast_ss(&*column.scale.add(block)));
            sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints), both, sums[i]);
            if !centred::<F>() {
                offset[i] = _mm256_fmadd_ps(minimum, _mm256_broadcast_ss(&*column.sums.add(block)), offset[i]);
            }
        }
    }
}

/// Bytes that weights are asked for ahead of their use: some tens of lines, as far as memory latency reaches. Rows follow
/// one another, so what comes after a row's end is the next one.
const AHEAD: usize = 8192;

/// Asks for the weights that come `AHEAD` bytes after these.
#[inline(always)]
pub(super) unsafe fn prefetch(b: *const u8) {
    // SAFETY: SSE is part of x86-64; a prefetch of an address that is not mapped does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD).cast()) };
}

/// One row of blocks of 256.
#[inline(always)]
unsafe fn row256<F: Format, const C: usize>(row: *const u8, blocks: usize, columns: &[Column; C]) -> [f32; C] {
    let group = F::TYPE.group();
    // SAFETY: as in `row32`.
    unsafe {
        let (mut sums, mut offset) = ([[_mm256_setzero_ps(); 2]; C], [_mm256_setzero_ps(); C]);
        let (mut scale, mut minimum) = ([0f32; 16], [0f32; 16]);
        for block in 0..blocks {
            let b = row.add(block * F::TYPE.block_bytes());
            for line in 0..F::TYPE.block_bytes().div_ceil(64) {
                prefetch(b.add(64 * line));
            }
            scales256::<F>(b, &mut scale, &mut minimum);
            let offsets = if F::TYPE.has_min() { &minimum } else { &scale };
            // The scales of both sides, multiplied: of groups 0..8 and, where there are 16, of groups 8..16.
            let mut both = [[_mm256_setzero_ps(); 2]; C];
            for (i, column) in columns.iter().enumerate() {
                let a = _mm256_loadu_ps(column.scale.add(block * 8));
                for half in 0..32 / group {
                    let of_groups = if group == 32 { a } else { doubled(a, half) };
                    both[i][half] = _mm256_mul_ps(_mm256_loadu_ps(scale.as_ptr().add(half * 8)), of_groups);
                    if !centred::<F>() {
                        let sums = _mm256_loadu_ps(column.sums.add((block * 32 / group + half) * 8));
                        offset[i] = _mm256_fmadd_ps(_mm256_loadu_ps(offsets.as_ptr().add(half * 8)), sums, offset[i]);
                    }
                }
            }
            unrolled!([0, 1, 2, 3, 4, 5, 6, 7], j => {
                let u = stretch256::<F>(b, j);
                for (i, column) in columns.iter().enumerate() {
                    let ints = dot::<F>(u, column.q.add(block * 256 + j * 32));
                    let scale = if group == 32 {
                        _mm256_permutevar8x32_ps(both[i][0], _mm256_set1_epi32(j as i32))
                    } else {
                        let (low, high) = ((2 * j % 8) as i32, (2 * j % 8 + 1) as i32);
                        _mm256_permutevar8x32_ps(
                            both[i][j / 4],
                            _mm256_setr_epi32(low, low, low, low, high, high, high, high),
                        )
                    };
                    sums[i][j % 2] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints), scale, sums[i][j % 2]);
                }
            });
        }
        let mut out = [0.0; C];
        for (i, out) in out.iter_mut().enumerate() {
            *out = total(_mm256_add_ps(sums[i][0], sums[i][1])) + total(offset[i]) * offset_factor::<F>();
        }
        out
    }
}

/// Four of eight floats, each twice: the first four, or the last.
#[inline(always)]
unsafe fn doubled(v: __m256, half: usize) -> __m256 {
    let at = 4 * half as i32;
    // SAFETY: AVX2 by the caller.
    unsafe { _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(at, at, at + 1, at + 1, at + 2, at + 2, at + 3, at + 3)) }
}

/// Whether the format's bytes are taken as `u - 128`, which makes its offset vanish.
const fn centred<F: Format>() -> bool {
    F::TYPE.max() == 255
}

/// Eight sums of four products each, exact: `sum(u * q)`, of centred formats `sum((u - 128) * q)`.
#[inline(always)]
unsafe fn dot<F: Format>(u: __m256i, q: *const i8) -> __m256i {
    // SAFETY: AVX2 by the caller; 32 bytes are readable at `q`. Pairs of products: 2 * 63 * 127 < 32768.
    unsafe {
        let q = _mm256_loadu_si256(q.cast());
        let pairs = if centred::<F>() { centred_pairs(u, q) } else { _mm256_maddubs_epi16(u, q) };
        _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
    }
}

/// Pairs of `(u - 128) * q` in 16 bits: of magnitudes, the sign moved to `q`, because bytes above 127 would saturate.
#[inline(always)]
pub(super) unsafe fn centred_pairs(u: __m256i, q: __m256i) -> __m256i {
    // SAFETY: AVX2 by the caller. 2 * 128 * 127 = 32512 fits.
    unsafe {
        let w = _mm256_xor_si256(u, _mm256_set1_epi8(-128));
        _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w))
    }
}

/// The sum of eight floats.
#[inline(always)]
pub(super) unsafe fn total(v: __m256) -> f32 {
    // SAFETY: AVX by the caller.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)))
    }
}
