//! Float products: weights of float types, and the small products inside attention.

use std::ops::Range;

use super::lanes::Lanes;
use super::{Matrix, Output};

/// Rows of the register block of [`accumulate`]; with two vectors a row that makes eight sums in flight.
const MR: usize = 4;

/// `c += a . b`, `(m, n) += (m, k) . (k, n)`, all row-major with the given strides.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
pub(super) unsafe fn accumulate<V: Lanes>(
    (m, n, k): (usize, usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
) {
    assert!(m > 0 && k > 0 && n <= ldb && n <= ldc && k <= lda);
    assert!(a.len() >= (m - 1) * lda + k && b.len() >= (k - 1) * ldb + n && c.len() >= (m - 1) * ldc + n);
    let wide = n / (2 * V::N) * (2 * V::N);
    for j in (0..wide).step_by(2 * V::N) {
        // SAFETY: rows `i..i + M` and columns `j..j + 2 N` lie within the matrices by the assertions.
        unsafe {
            let (a, b, c) = (a.as_ptr(), b.as_ptr().add(j), c.as_mut_ptr().add(j));
            let mut i = 0;
            while i + MR <= m {
                block::<V, MR>(k, (a.add(i * lda), lda), (b, ldb), (c.add(i * ldc), ldc));
                i += MR;
            }
            while i < m {
                block::<V, 1>(k, (a.add(i * lda), lda), (b, ldb), (c.add(i * ldc), ldc));
                i += 1;
            }
        }
    }
    for i in 0..m {
        for j in wide..n {
            c[i * ldc + j] += (0..k).map(|p| a[i * lda + p] * b[p * ldb + j]).sum::<f32>();
        }
    }
}

/// `M` rows and two vectors of columns.
#[inline(always)]
unsafe fn block<V: Lanes, const M: usize>(
    k: usize,
    (a, lda): (*const f32, usize),
    (b, ldb): (*const f32, usize),
    (c, ldc): (*mut f32, usize),
) {
    // SAFETY: the caller keeps all of the block within its matrices.
    unsafe {
        let (mut low, mut high) = ([V::zero(); M], [V::zero(); M]);
        for p in 0..k {
            let (b0, b1) = (V::load(b.add(p * ldb)), V::load(b.add(p * ldb + V::N)));
            for i in 0..M {
                let x = *a.add(i * lda + p);
                low[i] = low[i].add_scaled(x, b0);
                high[i] = high[i].add_scaled(x, b1);
            }
        }
        for i in 0..M {
            let (c0, c1) = (c.add(i * ldc), c.add(i * ldc + V::N));
            V::load(c0).add(low[i]).store(c0);
            V::load(c1).add(high[i]).store(c1);
        }
    }
}

/// Dot product of equally long slices.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
unsafe fn dot<V: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    // SAFETY: whole vectors within both slices.
    unsafe {
        let (mut s0, mut s1) = (V::zero(), V::zero());
        let mut i = 0;
        while i + 2 * V::N <= a.len() {
            s0 = s0.add_product(V::load(a.as_ptr().add(i)), V::load(b.as_ptr().add(i)));
            s1 = s1.add_product(V::load(a.as_ptr().add(i + V::N)), V::load(b.as_ptr().add(i + V::N)));
            i += 2 * V::N;
        }
        let rest: f32 = a[i..].iter().zip(&b[i..]).map(|(x, y)| x * y).sum();
        s0.add(s1).sum() + rest
    }
}

/// Products of float weights: each row is decoded once, then meets every token.
///
/// # Safety
/// As [`super::Kernels::gemv`].
#[inline(always)]
pub(super) unsafe fn product<V: Lanes>(
    m: &Matrix<'_>,
    rows: Range<usize>,
    x: &[f32],
    out: Output,
    scratch: &mut Vec<f32>,
) {
    scratch.resize(m.columns, 0.0);
    for r in rows {
        m.ty.dequantize(m.row(r), scratch);
        for (c, token) in x.chunks_exact(m.columns).enumerate() {
            // SAFETY: the caller owns these rows of `out`.
            unsafe { out.part(c, r, 1)[0] = dot::<V>(scratch, token) };
        }
    }
}
