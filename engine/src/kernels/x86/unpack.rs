//! Unpacking with AVX2: the same meaning as [`Format::unpack`], 32 elements a step, straight from the file's bytes into a
//! register.

use std::arch::x86_64::*;

use crate::kernels::columns::unrolled;
use crate::kernels::gemm::Unpack;
use crate::quant::{Format, TensorType};

/// The unpacker of all x86 tables.
pub(super) struct Avx2Unpack;

impl Unpack for Avx2Unpack {
    #[inline(always)]
    unsafe fn unpack<F: Format>(row: &[u8], u: &mut [u8], scale: &mut [f32; 16], min: &mut [f32; 16]) {
        debug_assert!(row.len() == F::TYPE.row_bytes(u.len()) && u.len() <= 256);
        // SAFETY: AVX2, FMA and F16C by the caller. Whole blocks are read, which `row` holds, and as many elements
        // written; `scale` and `min` have room for the 16 groups of 256.
        unsafe {
            let (from, to) = (row.as_ptr(), u.as_mut_ptr());
            if F::TYPE.block_len() == 256 {
                scales256::<F>(from, scale, min);
                unrolled!([0, 1, 2, 3, 4, 5, 6, 7], j => store(to.add(32 * j), stretch256::<F>(from, j)));
                return;
            }
            for i in 0..(u.len() / 32).min(8) {
                let block = from.add(i * F::TYPE.block_bytes());
                scale[i] = half_at(block);
                if F::TYPE.has_min() {
                    min[i] = half_at(block.add(2));
                }
                store(to.add(32 * i), block32::<F>(block));
            }
        }
    }
}

#[inline(always)]
unsafe fn load(p: *const u8) -> __m256i {
    // SAFETY: the caller's block has 32 bytes here.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

#[inline(always)]
unsafe fn store(p: *mut u8, v: __m256i) {
    // SAFETY: the caller's output has 32 bytes here.
    unsafe { _mm256_storeu_si256(p.cast(), v) }
}

#[inline(always)]
unsafe fn half_at(p: *const u8) -> f32 {
    // SAFETY: two bytes of the caller's block; F16C by the caller.
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(p.cast::<u16>().read_unaligned())))) }
}

/// The 32 elements of a block of a format with blocks of 32.
///
/// # Safety
/// `b` points to a whole block of the format, and AVX2 is enabled.
#[inline(always)]
pub(super) unsafe fn block32<F: Format>(b: *const u8) -> __m256i {
    // SAFETY: offsets lie within the block.
    unsafe {
        match F::TYPE {
            TensorType::Q4_0 => nibbles(b.add(2)),
            TensorType::Q4_1 => nibbles(b.add(4)),
            TensorType::Q5_0 => fifth(b.add(2), b.add(6)),
            TensorType::Q5_1 => fifth(b.add(4), b.add(8)),
            TensorType::Q8_0 => _mm256_xor_si256(load(b.add(2)), _mm256_set1_epi8(-128)),
            TensorType::IQ4_NL => table(nibbles(b.add(2))),
            other => unreachable!("{other} has no blocks of 32"),
        }
    }
}

/// Elements `32 * j..32 * j + 32` of a block of a format with blocks of 256.
///
/// # Safety
/// As [`block32`].
#[inline(always)]
pub(super) unsafe fn stretch256<F: Format>(b: *const u8, j: usize) -> __m256i {
    let (half, run) = (j / 4, j % 4);
    // SAFETY: offsets lie within the block.
    unsafe {
        match F::TYPE {
            TensorType::Q4_K => nibble(load(b.add(16 + 32 * (j / 2))), j % 2 == 1),
            TensorType::Q5_K => {
                let low = nibble(load(b.add(48 + 32 * (j / 2))), j % 2 == 1);
                _mm256_or_si256(low, bits(load(b.add(16)), j as i32 - 4, 16))
            }
            TensorType::Q6_K => {
                let low = nibble(load(b.add(64 * half + 32 * (run % 2))), run >= 2);
                _mm256_or_si256(low, bits(load(b.add(128 + 32 * half)), 2 * run as i32 - 4, 0x30))
            }
            TensorType::Q3_K => {
                let low = bits(load(b.add(32 + 32 * half)), 2 * run as i32, 3);
                _mm256_or_si256(low, bits(load(b), j as i32 - 2, 4))
            }
            TensorType::Q2_K => bits(load(b.add(16 + 32 * half)), 2 * run as i32, 3),
            TensorType::IQ4_XS => table(nibbles(b.add(8 + 16 * j))),
            other => unreachable!("{other} has no blocks of 256"),
        }
    }
}

/// The scales and minima of a block of 256: one for each group; `min` is left alone by formats without.
///
/// # Safety
/// As [`block32`].
#[inline(always)]
pub(super) unsafe fn scales256<F: Format>(b: *const u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: offsets lie within the block.
    unsafe {
        match F::TYPE {
            TensorType::Q4_K | TensorType::Q5_K => six_bit_scales(b, scale, min),
            TensorType::Q6_K => signed_scales(_mm_loadu_si128(b.add(192).cast()), half_at(b.add(208)), scale),
            TensorType::Q3_K => {
                let s: [u8; 16] = std::array::from_fn(|i| {
                    let byte = |at: usize| *b.add(96 + at);
                    let low = if i < 8 { byte(i) & 15 } else { byte(i - 8) >> 4 };
                    (low | (byte(8 + i % 4) >> (2 * (i / 4)) & 3) << 4).wrapping_sub(32)
                });
                signed_scales(_mm_loadu_si128(s.as_ptr().cast()), half_at(b.add(108)), scale);
            }
            TensorType::Q2_K => {
                let s = _mm_loadu_si128(b.cast());
                let low = _mm_set1_epi8(15);
                signed_scales(_mm_and_si128(s, low), half_at(b.add(80)), scale);
                signed_scales(_mm_and_si128(_mm_srli_epi16(s, 4), low), -half_at(b.add(82)), min);
            }
            TensorType::IQ4_XS => {
                let (d, high) = (half_at(b), b.add(2).cast::<u16>().read_unaligned());
                for (j, scale) in scale[..8].iter_mut().enumerate() {
                    let low = *b.add(4 + j / 2) >> (4 * (j % 2)) & 15;
                    *scale = d * (i32::from(low) + i32::from(high >> (2 * j) & 3) * 16 - 32) as f32;
                }
            }
            other => unreachable!("{other} has no blocks of 256"),
        }
    }
}

/// The low or high nibbles of 32 bytes.
#[inline(always)]
unsafe fn nibble(q: __m256i, high: bool) -> __m256i {
    // SAFETY: AVX2 by the caller.
    unsafe { _mm256_and_si256(if high { _mm256_srli_epi16(q, 4) } else { q }, _mm256_set1_epi8(15)) }
}

/// The bits of `mask` in each byte, after a shift to the right (to the left where `shift` is negative). The mask lets no
/// bit of a neighbouring byte through.
#[inline(always)]
unsafe fn bits(q: __m256i, shift: i32, mask: i8) -> __m256i {
    // SAFETY: AVX2 by the caller; `shift` is a constant after inlining.
    unsafe {
        let count = _mm_cvtsi32_si128(shift.abs());
        let moved = if shift < 0 { _mm256_sll_epi16(q, count) } else { _mm256_srl_epi16(q, count) };
        _mm256_and_si256(moved, _mm256_set1_epi8(mask))
    }
}

/// Sixteen bytes to 32 nibbles, low ones first.
#[inline(always)]
unsafe fn nibbles(qs: *const u8) -> __m256i {
    // SAFETY: the caller's block has 16 bytes here.
    unsafe {
        let q = _mm256_broadcastsi128_si256(_mm_loadu_si128(qs.cast()));
        let both = _mm256_srlv_epi64(q, _mm256_setr_epi64x(0, 0, 4, 4));
        _mm256_and_si256(both, _mm256_set1_epi8(15))
    }
}

/// Nibbles with their fifth bits.
#[inline(always)]
unsafe fn fifth(qh: *const u8, qs: *const u8) -> __m256i {
    // SAFETY: the caller's block has 4 and 16 bytes here.
    unsafe {
        let bits = _mm256_set1_epi32(qh.cast::<i32>().read_unaligned());
        let spread = _mm256_setr_epi8(
            0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3,
        );
        let mask = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        let set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(bits, spread), mask), mask);
        _mm256_or_si256(nibbles(qs), _mm256_and_si256(set, _mm256_set1_epi8(16)))
    }
}

/// Nibbles to the values of the non-linear types, shifted by 128.
#[inline(always)]
unsafe fn table(nibbles: __m256i) -> __m256i {
    // SAFETY: AVX2 by the caller.
    unsafe {
        let values = _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, -127, -115, -103, -90, -75, -59, -39, -15);
        _mm256_shuffle_epi8(_mm256_set_m128i(values, values), nibbles)
    }
}

/// The 6-bit scales and minima of Q4_K and Q5_K, multiplied out.
#[inline(always)]
unsafe fn six_bit_scales(block: *const u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: 16 bytes of the caller's block.
    unsafe {
        let word = |i: usize| block.add(4 + 4 * i).cast::<u32>().read_unaligned();
        let (a, b, c) = (word(0), word(1), word(2));
        let pack = |low: u32, high: u32| _mm_set1_epi64x((u64::from(low) | u64::from(high) << 32) as i64);
        let s = pack(a & 0x3f3f_3f3f, (c & 0x0f0f_0f0f) | (a >> 6 & 0x0303_0303) << 4);
        let m = pack(b & 0x3f3f_3f3f, (c >> 4 & 0x0f0f_0f0f) | (b >> 6 & 0x0303_0303) << 4);
        let floats = |v| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v));
        let (d, dmin) = (_mm256_set1_ps(half_at(block)), _mm256_set1_ps(-half_at(block.add(2))));
        _mm256_storeu_ps(scale.as_mut_ptr(), _mm256_mul_ps(d, floats(s)));
        _mm256_storeu_ps(min.as_mut_ptr(), _mm256_mul_ps(dmin, floats(m)));
    }
}

/// Sixteen signed scales times `d`.
#[inline(always)]
unsafe fn signed_scales(s: __m128i, d: f32, scale: &mut [f32; 16]) {
    // SAFETY: AVX2 by the caller; 16 floats are written.
    unsafe {
        let d = _mm256_set1_ps(d);
        let floats = |v| _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)));
        _mm256_storeu_ps(scale.as_mut_ptr(), floats(s));
        _mm256_storeu_ps(scale.as_mut_ptr().add(8), floats(_mm_unpackhi_epi64(s, s)));
    }
}
