//! x86-64: AVX2, which nearly every machine has, and the two forms of VNNI.

use super::Kernel;

/// What this machine runs, slowest first.
pub(super) fn available() -> Vec<Kernel> {
    let mut all = Vec::new();
    if !is_x86_feature_detected!("avx2") {
        return all;
    }
    all.push(avx2::KERNEL);
    if is_x86_feature_detected!("avxvnni") {
        all.push(vnni::KERNEL);
    }
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
    {
        all.push(vnni512::KERNEL);
    }
    all
}

/// Brings `len` bytes near.
#[inline(always)]
fn fetch(start: *const i8, len: usize) {
    for at in (0..len).step_by(64) {
        // SAFETY: a hint; every processor has it, and no address is wrong for it.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(start.wrapping_add(at)) };
    }
}

/// Sums of eight lanes, one for each vector of sums.
#[target_feature(enable = "avx2")]
#[inline]
fn add_up<const N: usize>(sums: [std::arch::x86_64::__m256i; N]) -> [i32; N] {
    use std::arch::x86_64::{
        _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_castsi256_si128, _mm256_extracti128_si256,
    };
    sums.map(|sum| {
        let four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
    })
}

mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16, _mm256_setzero_si256,
    };

    use super::super::dot_plain;

    /// Components taken at once.
    const WIDTH: usize = 16;

    super::super::kernel!(
        "avx2",
        #[target_feature(enable = "avx2")]
        compare,
        super::fetch
    );

    #[target_feature(enable = "avx2")]
    #[inline]
    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        let (heads, tail) = query.as_chunks::<WIDTH>();
        let rows = rows.map(|row| row.as_chunks::<WIDTH>());
        let mut sums = [_mm256_setzero_si256(); N];
        for (i, q) in heads.iter().enumerate() {
            let q = widen(q);
            for n in 0..N {
                // Products of bytes fit 16 bits, pairs of them 32.
                sums[n] = _mm256_add_epi32(sums[n], _mm256_madd_epi16(q, widen(&rows[n].0[i])));
            }
        }
        let mut out = super::add_up(sums);
        for n in 0..N {
            out[n] += dot_plain(tail, rows[n].1);
        }
        out
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn widen(bytes: &[i8; WIDTH]) -> __m256i {
        // SAFETY: the array is 16 bytes long, which is what is read; the load asks for no alignment.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
    }
}

/// `vpdpbusd` adds four products of an unsigned and a signed byte in 32 bits. A row's bytes become unsigned by flipping their
/// highest bit, which adds 128 to each; 128 times the sum of the query's is taken off at the end.
mod vnni {
    use std::arch::x86_64::{
        __m256i, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_xor_si256,
    };

    use super::super::dot_plain;

    /// Components taken at once.
    const WIDTH: usize = 32;

    super::super::kernel!(
        "avxvnni",
        #[target_feature(enable = "avx2,avxvnni")]
        compare,
        super::fetch
    );

    #[target_feature(enable = "avx2,avxvnni")]
    #[inline]
    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        let (heads, tail) = query.as_chunks::<WIDTH>();
        let rows = rows.map(|row| row.as_chunks::<WIDTH>());
        let flip = _mm256_set1_epi8(-128);
        let (mut sums, mut surplus) = ([_mm256_setzero_si256(); N], _mm256_setzero_si256());
        for (i, q) in heads.iter().enumerate() {
            let q = load(q);
            surplus = _mm256_dpbusd_avx_epi32(surplus, flip, q);
            for n in 0..N {
                sums[n] = _mm256_dpbusd_avx_epi32(sums[n], _mm256_xor_si256(load(&rows[n].0[i]), flip), q);
            }
        }
        let [surplus] = super::add_up([surplus]);
        let mut out = super::add_up(sums);
        for n in 0..N {
            out[n] += dot_plain(tail, rows[n].1) - surplus;
        }
        out
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[i8; WIDTH]) -> __m256i {
        // SAFETY: the array is 32 bytes long, which is what is read; the load asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }
}

/// As [`vnni`], 64 bytes at once; the last ones under a mask.
mod vnni512 {
    use std::arch::x86_64::{
        _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_reduce_add_epi32, _mm512_set1_epi8,
        _mm512_setzero_si512, _mm512_xor_si512,
    };

    /// Components taken at once.
    const WIDTH: usize = 64;

    super::super::kernel!(
        "avx512vnni",
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        compare,
        super::fetch
    );

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        let (heads, tail) = query.as_chunks::<WIDTH>();
        let rows = rows.map(|row| row.as_chunks::<WIDTH>());
        let flip = _mm512_set1_epi8(-128);
        let (mut sums, mut surplus) = ([_mm512_setzero_si512(); N], _mm512_setzero_si512());
        for (i, q) in heads.iter().enumerate() {
            // SAFETY: the array is 64 bytes long, which is what is read; the load asks for no alignment.
            let q = unsafe { _mm512_loadu_si512(q.as_ptr().cast()) };
            surplus = _mm512_dpbusd_epi32(surplus, flip, q);
            for n in 0..N {
                // SAFETY: as above.
                let row = unsafe { _mm512_loadu_si512(rows[n].0[i].as_ptr().cast()) };
                sums[n] = _mm512_dpbusd_epi32(sums[n], _mm512_xor_si512(row, flip), q);
            }
        }
        if !tail.is_empty() {
            let mask = u64::MAX >> (WIDTH - tail.len());
            // SAFETY: the mask lets through as many bytes as the tail has; the others are not read and become 0.
            let q = unsafe { _mm512_maskz_loadu_epi8(mask, tail.as_ptr()) };
            surplus = _mm512_dpbusd_epi32(surplus, flip, q);
            for n in 0..N {
                let tail = &rows[n].1[..tail.len()];
                // SAFETY: as above; the row's tail is as long as the query's.
                let row = unsafe { _mm512_maskz_loadu_epi8(mask, tail.as_ptr()) };
                sums[n] = _mm512_dpbusd_epi32(sums[n], _mm512_xor_si512(row, flip), q);
            }
        }
        let surplus = _mm512_reduce_add_epi32(surplus);
        sums.map(|sum| _mm512_reduce_add_epi32(sum) - surplus)
    }
}
