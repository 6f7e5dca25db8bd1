//! Matrix-vector products with 512-bit registers and VNNI.
//!
//! A register takes 64 elements: two stretches of a block of 256, or a block of 32 of each of two rows.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gemv::{prefetch, total};
use super::unpack::{block32, scales256, stretch256};
use crate::kernels::columns::{Column, by_columns, offset_factor, unrolled};
use crate::kernels::{Matrix, Output};
use crate::quant::{ActMatrix, Format, TensorType};

/// Rows of `m` times the columns of `a`.
///
/// # Safety
/// As [`crate::kernels::Kernels::gemv`], with AVX-512 F, BW, VL, VNNI, AVX2, FMA and F16C enabled.
#[inline(always)]
pub(super) unsafe fn rows<F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    by_columns!(F, a, |first, columns| if F::TYPE.block_len() == 256 {
        for r in rows.clone() {
            // SAFETY: the row holds as many blocks as the columns are wide, which `Kernels::gemv` compared; the caller
            // owns these rows of `out`.
            unsafe {
                let sums = row256::<F, _>(m.row(r).as_ptr(), a.width() / 256, &columns);
                for (i, sum) in sums.into_iter().enumerate() {
                    out.part(first + i, r, 1)[0] = sum;
                }
            }
        }
    } else {
        // The last row of an odd number goes twice.
        for r in rows.clone().step_by(2) {
            let other = (r + 1).min(rows.end - 1);
            // SAFETY: as above.
            unsafe {
                let (one, two) = (m.row(r).as_ptr(), m.row(other).as_ptr());
                let sums = rows32::<F, _>([one, two], a.width() / 32, &columns);
                for (i, sums) in sums.into_iter().enumerate() {
                    out.part(first + i, r, 1)[0] = sums[0];
                    out.part(first + i, other, 1)[0] = sums[1];
                }
            }
        }
    });
}

/// Two rows of blocks of 32, one in each half of the registers.
#[inline(always)]
unsafe fn rows32<F: Format, const C: usize>(
    rows: [*const u8; 2],
    blocks: usize,
    columns: &[Column; C],
) -> [[f32; 2]; C] {
    // SAFETY: the instructions by the caller, which also vouches for `blocks` blocks of each row and column.
    unsafe {
        // Two chains of additions: one alone would wait for itself.
        let (mut even, mut odd) = ([_mm512_setzero_ps(); C], [_mm512_setzero_ps(); C]);
        let mut offset = [_mm512_setzero_ps(); C];
        let mut block = 0;
        while block + 2 <= blocks {
            add_blocks32::<F, C>(rows, block, columns, &mut even, &mut offset);
            add_blocks32::<F, C>(rows, block + 1, columns, &mut odd, &mut offset);
            block += 2;
        }
        if block < blocks {
            add_blocks32::<F, C>(rows, block, columns, &mut even, &mut offset);
        }
        let mut out = [[0.0; 2]; C];
        for (i, out) in out.iter_mut().enumerate() {
            // Of a row's eight offsets one is taken: the second, where `scales32` leaves the minimum.
            let offset = _mm512_maskz_mul_ps(0x0202, offset[i], _mm512_set1_ps(offset_factor::<F>()));
            let sums = _mm512_add_ps(_mm512_add_ps(even[i], odd[i]), offset);
            *out = [total(_mm512_castps512_ps256(sums)), total(upper(sums))];
        }
        out
    }
}

/// Adds the products of one block of 32 of each row.
#[inline(always)]
unsafe fn add_blocks32<F: Format, const C: usize>(
    rows: [*const u8; 2],
    block: usize,
    columns: &[Column; C],
    sums: &mut [__m512; C],
    offset: &mut [__m512; C],
) {
    // SAFETY: as in `rows32`.
    unsafe {
        let b = rows.map(|row| row.add(block * F::TYPE.block_bytes()));
        prefetch(b[0]);
        prefetch(b[1]);
        let u = blocks32::<F>(b);
        let (scale, minimum) = scales32::<F>(b);
        for (i, column) in columns.iter().enumerate() {
            let q = _mm512_broadcast_i64x4(_mm256_loadu_si256(column.q.add(block * 32).cast()));
            let ints = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u, q);
            let both = _mm512_mul_ps(scale, _mm512_set1_ps(*column.scale.add(block)));
            sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(ints), both, sums[i]);
            offset[i] = _mm512_fmadd_ps(minimum, _mm512_set1_ps(*column.sums.add(block)), offset[i]);
        }
    }
}

/// The block of 32 at each of two places.
#[inline(always)]
unsafe fn blocks32<F: Format>(b: [*const u8; 2]) -> __m512i {
    // SAFETY: whole blocks, and the instructions, by the caller.
    unsafe {
        match F::TYPE {
            TensorType::Q4_0 => nibbles(b.map(|b| b.add(2))),
            TensorType::Q4_1 => nibbles(b.map(|b| b.add(4))),
            TensorType::Q5_0 => fifth(b.map(|b| b.add(2)), nibbles(b.map(|b| b.add(6)))),
            TensorType::Q5_1 => fifth(b.map(|b| b.add(4)), nibbles(b.map(|b| b.add(8)))),
            _ => join(block32::<F>(b[0]), block32::<F>(b[1])),
        }
    }
}

/// Sixteen bytes at each of two places to 64 nibbles: of each place the low ones, then the high ones.
#[inline(always)]
unsafe fn nibbles(qs: [*const u8; 2]) -> __m512i {
    // SAFETY: 16 bytes at each place by the caller.
    unsafe {
        let (one, two) = (_mm_loadu_si128(qs[0].cast()), _mm_loadu_si128(qs[1].cast()));
        let q = _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(one), 0xff00, two);
        let shifted = _mm512_srlv_epi64(q, _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4));
        _mm512_and_si512(shifted, _mm512_set1_epi8(15))
    }
}

/// Adds the fifth bits, 32 at each of two places.
#[inline(always)]
unsafe fn fifth(qh: [*const u8; 2], nibbles: __m512i) -> __m512i {
    // SAFETY: four bytes at each place by the caller.
    unsafe {
        let one = u64::from(qh[0].cast::<u32>().read_unaligned());
        let two = u64::from(qh[1].cast::<u32>().read_unaligned());
        _mm512_mask_add_epi8(nibbles, one | two << 32, nibbles, _mm512_set1_epi8(16))
    }
}

/// The scale of the block at each of two places, eight times each; and a register whose odd lanes hold the minimum of
/// formats that have one, of others the scale. (Both halves are broadcast together, since that costs no shuffle.)
#[inline(always)]
unsafe fn scales32<F: Format>(b: [*const u8; 2]) -> (__m512, __m512) {
    // SAFETY: four bytes of each block by the caller.
    unsafe {
        let (one, two) = (b[0].cast::<i32>().read_unaligned(), b[1].cast::<i32>().read_unaligned());
        let halves = _mm256_mask_set1_epi32(_mm256_set1_epi32(one), 0xf0, two);
        let floats = _mm512_cvtph_ps(halves);
        let scale = _mm512_moveldup_ps(floats);
        (scale, if F::TYPE.has_min() { floats } else { scale })
    }
}

/// One row of blocks of 256.
#[inline(always)]
unsafe fn row256<F: Format, const C: usize>(row: *const u8, blocks: usize, columns: &[Column; C]) -> [f32; C] {
    let group = F::TYPE.group();
    // SAFETY: as in `rows32`.
    unsafe {
        let (mut sums, mut offset) = ([[_mm512_setzero_ps(); 2]; C], [_mm512_setzero_ps(); C]);
        let (mut scale, mut minimum) = ([0f32; 16], [0f32; 16]);
        for block in 0..blocks {
            let b = row.add(block * F::TYPE.block_bytes());
            for line in 0..F::TYPE.block_bytes().div_ceil(64) {
                prefetch(b.add(64 * line));
            }
            scales256::<F>(b, &mut scale, &mut minimum);
            let offsets = if F::TYPE.has_min() { &minimum } else { &scale };
            // The scales of both sides, multiplied; eight of them twice where groups have 32 elements.
            let mut both = [_mm512_setzero_ps(); C];
            for (both, column) in both.iter_mut().zip(columns) {
                let a = _mm256_loadu_ps(column.scale.add(block * 8));
                *both = if group == 32 {
                    _mm512_castps256_ps512(_mm256_mul_ps(_mm256_loadu_ps(scale.as_ptr()), a))
                } else {
                    let twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
                    let a = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(a));
                    _mm512_mul_ps(_mm512_loadu_ps(scale.as_ptr()), a)
                };
            }
            for (i, column) in columns.iter().enumerate() {
                let at = column.sums.add(block * 256 / group);
                offset[i] = if group == 32 {
                    // The upper half stays zero.
                    let eight = |p| _mm512_zextps256_ps512(_mm256_loadu_ps(p));
                    _mm512_fmadd_ps(eight(offsets.as_ptr()), eight(at), offset[i])
                } else {
                    _mm512_fmadd_ps(_mm512_loadu_ps(offsets.as_ptr()), _mm512_loadu_ps(at), offset[i])
                };
            }
            unrolled!([0, 1, 2, 3], j => {
                let u = stretches256::<F>(b, j);
                // Where the scales of the four or two groups stand.
                let lanes = if group == 32 {
                    _mm512_add_epi32(
                        _mm512_set1_epi32(2 * j as i32),
                        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                    )
                } else {
                    _mm512_add_epi32(
                        _mm512_set1_epi32(4 * j as i32),
                        _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
                    )
                };
                for (i, column) in columns.iter().enumerate() {
                    let q = _mm512_loadu_si512(column.q.add(block * 256 + j * 64).cast());
                    let ints = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u, q);
                    let scale = _mm512_permutexvar_ps(lanes, both[i]);
                    sums[i][j % 2] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(ints), scale, sums[i][j % 2]);
                }
            });
        }
        let mut out = [0.0; C];
        for (i, out) in out.iter_mut().enumerate() {
            let sums = _mm512_add_ps(sums[i][0], sums[i][1]);
            let both = _mm512_fmadd_ps(offset[i], _mm512_set1_ps(offset_factor::<F>()), sums);
            *out = total(_mm256_add_ps(_mm512_castps512_ps256(both), upper(both)));
        }
        out
    }
}

/// Elements `64 * j..64 * j + 64` of a block of 256.
#[inline(always)]
unsafe fn stretches256<F: Format>(b: *const u8, j: usize) -> __m512i {
    // SAFETY: offsets lie within the block.
    unsafe {
        match F::TYPE {
            TensorType::Q4_K => low_then_high(b.add(16 + 32 * j)),
            TensorType::Q5_K => {
                let high = _mm512_broadcast_i64x4(_mm256_loadu_si256(b.add(16).cast()));
                let (at, next) = (2 * j as i64, 2 * j as i64 + 1);
                let bit = _mm512_srlv_epi64(high, _mm512_setr_epi64(at, at, at, at, next, next, next, next));
                let bit = _mm512_and_si512(bit, _mm512_set1_epi8(1));
                _mm512_or_si512(low_then_high(b.add(48 + 32 * j)), _mm512_slli_epi16(bit, 4))
            }
            TensorType::Q6_K => {
                let (half, high) = (j / 2, j % 2 == 1);
                let q = _mm512_loadu_si512(b.add(64 * half).cast());
                let q = if high { _mm512_srli_epi16(q, 4) } else { q };
                let pairs = _mm512_broadcast_i64x4(_mm256_loadu_si256(b.add(128 + 32 * half).cast()));
                let pairs = if high {
                    _mm512_srlv_epi64(pairs, _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2))
                } else {
                    _mm512_sllv_epi64(pairs, _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2))
                };
                let q = _mm512_and_si512(q, _mm512_set1_epi8(15));
                _mm512_or_si512(q, _mm512_and_si512(pairs, _mm512_set1_epi8(0x30)))
            }
            _ => join(stretch256::<F>(b, 2 * j), stretch256::<F>(b, 2 * j + 1)),
        }
    }
}

/// The low nibbles of 32 bytes, then the high ones.
#[inline(always)]
unsafe fn low_then_high(qs: *const u8) -> __m512i {
    // SAFETY: 32 bytes by the caller.
    unsafe {
        let q = _mm512_broadcast_i64x4(_mm256_loadu_si256(qs.cast()));
        let shifted = _mm512_srlv_epi64(q, _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4));
        _mm512_and_si512(shifted, _mm512_set1_epi8(15))
    }
}

#[inline(always)]
unsafe fn join(low: __m256i, high: __m256i) -> __m512i {
    // SAFETY: AVX-512F by the caller.
    unsafe { _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1) }
}

#[inline(always)]
unsafe fn upper(v: __m512) -> __m256 {
    // SAFETY: AVX-512F by the caller.
    unsafe { _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)) }
}
