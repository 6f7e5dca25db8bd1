//! Dot products of quantized vectors: the inner loop of the exact scan.

/// Sum of `a[i] * b[i]`. Slices must be of one length; with up to `DIMENSIONS_MAX` dimensions the sum fits easily.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    debug_assert_eq!(a.len(), b.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above found AVX2 on this machine; the function has no other requirement.
        return unsafe { dot_avx2(a, b) };
    }
    dot_plain(a, b)
}

/// The same loop, compiled for wider registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dot_avx2(a: &[i8], b: &[i8]) -> i32 {
    dot_plain(a, b)
}

#[inline(always)]
fn dot_plain(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
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
        for len in 0..200 {
            let a: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
            let b: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
            let naive: i64 = a.iter().zip(&b).map(|(x, y)| i64::from(*x) * i64::from(*y)).sum();
            assert_eq!(i64::from(dot(&a, &b)), naive);
        }
    }
}
