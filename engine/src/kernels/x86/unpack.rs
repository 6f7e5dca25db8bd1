//! Unpacking with AVX2: the same meaning as [`Format::unpack`], 32 elements a step. Formats without an entry of their
//! own use the plain loop.

use std::arch::x86_64::*;

use crate::kernels::gemm::Unpack;
use crate::quant::{Format, TensorType};

/// The unpacker of all x86 tables.
pub(super) struct Avx2Unpack;

impl Unpack for Avx2Unpack {
    #[inline(always)]
    unsafe fn unpack<F: Format>(row: &[u8], u: &mut [u8], scale: &mut [f32; 16], min: &mut [f32; 16]) {
        debug_assert!(row.len() == F::TYPE.row_bytes(u.len()) && u.len() <= 256);
        // SAFETY: AVX2, FMA and F16C by the caller. Each function reads whole blocks, `u.len() / block_len` of them,
        // which `row` holds, and writes as many elements; `scale` and `min` have room for the 16 groups of 256.
        unsafe {
            let (from, to) = (row.as_ptr(), u.as_mut_ptr());
            let blocks = u.len() / F::TYPE.block_len();
            match F::TYPE {
                TensorType::Q4_0 => blocks32::<18>(from, to, blocks, scale, None, |b| nibbles(b.add(2))),
                TensorType::Q4_1 => blocks32::<20>(from, to, blocks, scale, Some(min), |b| nibbles(b.add(4))),
                TensorType::Q5_0 => blocks32::<22>(from, to, blocks, scale, None, |b| fifth(b.add(2), b.add(6))),
                TensorType::Q5_1 => blocks32::<24>(from, to, blocks, scale, Some(min), |b| fifth(b.add(4), b.add(8))),
                TensorType::Q8_0 => blocks32::<34>(from, to, blocks, scale, None, |b| {
                    _mm256_xor_si256(load(b.add(2)), _mm256_set1_epi8(-128))
                }),
                TensorType::IQ4_NL => blocks32::<18>(from, to, blocks, scale, None, |b| table(nibbles(b.add(2)))),
                TensorType::Q4_K => q4_k(from, to, scale, min),
                TensorType::Q5_K => q5_k(from, to, scale, min),
                TensorType::Q6_K => q6_k(from, to, scale),
                TensorType::Q3_K => q3_k(from, to, scale),
                TensorType::Q2_K => q2_k(from, to, scale, min),
                _ => F::unpack(row, u, scale, min),
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
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(p.cast::<u16>().read_unaligned().into()))) }
}

/// Blocks of 32 elements and `BYTES` bytes that begin with a scale (and a minimum, if asked for).
#[inline(always)]
unsafe fn blocks32<const BYTES: usize>(
    mut from: *const u8,
    mut to: *mut u8,
    blocks: usize,
    scale: &mut [f32; 16],
    mut min: Option<&mut [f32; 16]>,
    elements: impl Fn(*const u8) -> __m256i,
) {
    for i in 0..blocks.min(8) {
        // SAFETY: block `i` lies within the input and its 32 elements within the output.
        unsafe {
            scale[i] = half_at(from);
            if let Some(min) = &mut min {
                min[i] = half_at(from.add(2));
            }
            store(to, elements(from));
            (from, to) = (from.add(BYTES), to.add(32));
        }
    }
}

/// Sixteen bytes to 32 nibbles, low ones first.
#[inline(always)]
unsafe fn nibbles(qs: *const u8) -> __m256i {
    // SAFETY: the caller's block has 16 bytes here.
    unsafe {
        let q = _mm_loadu_si128(qs.cast());
        let both = _mm256_set_m128i(_mm_srli_epi16(q, 4), q);
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

#[inline(always)]
unsafe fn q4_k(b: *const u8, to: *mut u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: a block of 144 bytes, 256 elements.
    unsafe {
        six_bit_scales(b, scale, min);
        let low = _mm256_set1_epi8(15);
        for c in 0..4 {
            let q = load(b.add(16 + 32 * c));
            store(to.add(64 * c), _mm256_and_si256(q, low));
            store(to.add(64 * c + 32), _mm256_and_si256(_mm256_srli_epi16(q, 4), low));
        }
    }
}

#[inline(always)]
unsafe fn q5_k(b: *const u8, to: *mut u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: a block of 176 bytes, 256 elements.
    unsafe {
        six_bit_scales(b, scale, min);
        let (low, bit) = (_mm256_set1_epi8(15), _mm256_set1_epi8(16));
        let mut high = load(b.add(16));
        for c in 0..4 {
            let q = load(b.add(48 + 32 * c));
            // Bit 2c of each byte comes to bit 4, then bit 2c + 1.
            let first = _mm256_and_si256(_mm256_slli_epi16(high, 4), bit);
            let second = _mm256_and_si256(_mm256_slli_epi16(high, 3), bit);
            store(to.add(64 * c), _mm256_or_si256(_mm256_and_si256(q, low), first));
            store(to.add(64 * c + 32), _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(q, 4), low), second));
            high = _mm256_srli_epi16(high, 2);
        }
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

#[inline(always)]
unsafe fn q6_k(b: *const u8, to: *mut u8, scale: &mut [f32; 16]) {
    // SAFETY: a block of 210 bytes, 256 elements.
    unsafe {
        signed_scales(_mm_loadu_si128(b.add(192).cast()), half_at(b.add(208)), scale);
        let (low, pair) = (_mm256_set1_epi8(15), _mm256_set1_epi8(0x30));
        for half in 0..2 {
            let (q0, q1) = (load(b.add(64 * half)), load(b.add(64 * half + 32)));
            let high = load(b.add(128 + 32 * half));
            let to = to.add(128 * half);
            let join = |q, h| _mm256_or_si256(_mm256_and_si256(q, low), _mm256_and_si256(h, pair));
            store(to, join(q0, _mm256_slli_epi16(high, 4)));
            store(to.add(32), join(q1, _mm256_slli_epi16(high, 2)));
            store(to.add(64), join(_mm256_srli_epi16(q0, 4), high));
            store(to.add(96), join(_mm256_srli_epi16(q1, 4), _mm256_srli_epi16(high, 2)));
        }
    }
}

#[inline(always)]
unsafe fn q3_k(b: *const u8, to: *mut u8, scale: &mut [f32; 16]) {
    // SAFETY: a block of 110 bytes, 256 elements.
    unsafe {
        let s: [u8; 16] = std::array::from_fn(|i| {
            let byte = |at: usize| *b.add(96 + at);
            let low = if i < 8 { byte(i) & 15 } else { byte(i - 8) >> 4 };
            (low | (byte(8 + i % 4) >> (2 * (i / 4)) & 3) << 4).wrapping_sub(32)
        });
        signed_scales(_mm_loadu_si128(s.as_ptr().cast()), half_at(b.add(108)), scale);
        let (two, bit) = (_mm256_set1_epi8(3), _mm256_set1_epi8(4));
        let mut mask = load(b);
        for half in 0..2 {
            let mut q = load(b.add(32 + 32 * half));
            for run in 0..4 {
                let high = _mm256_and_si256(_mm256_slli_epi16(mask, 2), bit);
                store(to.add(128 * half + 32 * run), _mm256_or_si256(_mm256_and_si256(q, two), high));
                q = _mm256_srli_epi16(q, 2);
                mask = _mm256_srli_epi16(mask, 1);
            }
        }
    }
}

#[inline(always)]
unsafe fn q2_k(b: *const u8, to: *mut u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: a block of 84 bytes, 256 elements.
    unsafe {
        let s = _mm_loadu_si128(b.cast());
        let low = _mm_set1_epi8(15);
        signed_scales(_mm_and_si128(s, low), half_at(b.add(80)), scale);
        signed_scales(_mm_and_si128(_mm_srli_epi16(s, 4), low), -half_at(b.add(82)), min);
        let two = _mm256_set1_epi8(3);
        for half in 0..2 {
            let mut q = load(b.add(16 + 32 * half));
            for run in 0..4 {
                store(to.add(128 * half + 32 * run), _mm256_and_si256(q, two));
                q = _mm256_srli_epi16(q, 2);
            }
        }
    }
}
