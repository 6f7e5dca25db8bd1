//! Dot products of quantized vectors: the inner loop of the exact scan.
//!
//! `rows` is many vectors end to end. The choice of instructions is made once for all rows of a call, so that the loop over
//! the rows is inside the specialised code.

/// Dot product of `query` with each row; `out` has one place for each.
pub(crate) fn dot_rows(query: &[i8], rows: &[i8], out: &mut [i32]) {
    debug_assert_eq!(rows.len(), query.len() * out.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above found AVX2 on this machine; the function has no other requirement.
        return unsafe { avx2::dot_rows(query, rows, out) };
    }
    dot_rows_plain(query, rows, out);
}

/// Sum of `a[i] * b[i]`. With up to `DIMENSIONS_MAX` dimensions the sum fits easily.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let mut out = [0];
    dot_rows(a, b, &mut out);
    out[0]
}

/// The meaning of the others, and the way for machines without them.
fn dot_rows_plain(query: &[i8], rows: &[i8], out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(query.len().max(1)).zip(out) {
        *out = dot_plain(query, row);
    }
}

#[inline(always)]
fn dot_plain(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16,
        _mm256_setzero_si256, _mm256_storeu_si256,
    };

    /// Components taken at once.
    const STEP: usize = 16;

    #[target_feature(enable = "avx2")]
    pub(super) fn dot_rows(query: &[i8], rows: &[i8], out: &mut [i32]) {
        for (row, out) in rows.chunks_exact(query.len().max(1)).zip(out) {
            let (heads, tail) = query.as_chunks::<STEP>();
            let (row_heads, row_tail) = row.as_chunks::<STEP>();
            let mut sums = _mm256_setzero_si256();
            for (a, b) in heads.iter().zip(row_heads) {
                // Products of bytes fit 16 bits, pairs of them 32.
                sums = _mm256_add_epi32(sums, _mm256_madd_epi16(widen(a), widen(b)));
            }
            *out = add_up(sums) + super::dot_plain(tail, row_tail);
        }
    }

    #[target_feature(enable = "avx2")]
    fn widen(bytes: &[i8; STEP]) -> __m256i {
        // SAFETY: the array is 16 bytes long, which is what is read; the load asks for no alignment.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>()) };
        _mm256_cvtepi8_epi16(bytes)
    }

    #[target_feature(enable = "avx2")]
    fn add_up(sums: __m256i) -> i32 {
        let mut lanes = [0_i32; 8];
        // SAFETY: the array is 32 bytes long, which is what is written; the store asks for no alignment.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast::<__m256i>(), sums) };
        lanes.iter().sum()
    }
}

/// Dot product of a float vector and a quantized one.
pub(crate) fn dot_f32(query: &[f32], scale: f32, bytes: &[i8]) -> f32 {
    scale * query.iter().zip(bytes).map(|(q, b)| q * f32::from(*b)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn all_lengths_equal_the_naive_sum() {
        let mut rng = Rng::new(7);
        for len in 1..200 {
            let query: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
            let rows: Vec<i8> = (0..len * 3).map(|_| rng.next() as i8).collect();
            let naive: Vec<i32> = rows
                .chunks(len)
                .map(|r| query.iter().zip(r).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum())
                .collect();
            let (mut fast, mut plain) = ([0; 3], [0; 3]);
            dot_rows(&query, &rows, &mut fast);
            dot_rows_plain(&query, &rows, &mut plain);
            assert_eq!((fast.to_vec(), plain.to_vec()), (naive.clone(), naive), "length {len}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let ends = vec![-128_i8; crate::limits::DIMENSIONS_MAX];
        assert_eq!(dot(&ends, &ends), 128 * 128 * 4096);
    }
}
