//! Float products: weights of float types, and the small products inside attention.

use std::ops::Range;

use super::elementwise::fma;
use super::{Matrix, Output};

/// Rows of the register block of [`accumulate`].
const MR: usize = 4;
/// Columns of the register block: two AVX2 registers or one of AVX-512.
const NR: usize = 16;

/// `c += a . b`, `(m, n) += (m, k) . (k, n)`, all row-major with the given strides.
#[inline(always)]
pub(super) fn accumulate<const FUSED: bool>(
    (m, n, k): (usize, usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
) {
    for j in (0..n).step_by(NR) {
        let nr = NR.min(n - j);
        let mut i = 0;
        while i < m {
            let mr = MR.min(m - i);
            if mr == MR && nr == NR {
                block::<FUSED, MR>(k, (&a[i * lda..], lda), (&b[j..], ldb), (&mut c[i * ldc + j..], ldc));
            } else {
                edge::<FUSED>((mr, nr, k), (&a[i * lda..], lda), (&b[j..], ldb), (&mut c[i * ldc + j..], ldc));
            }
            i += mr;
        }
    }
}

#[inline(always)]
fn block<const FUSED: bool, const M: usize>(
    k: usize,
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
) {
    let mut acc = [[0f32; NR]; M];
    for p in 0..k {
        let Some(row) = b[p * ldb..].first_chunk::<NR>() else { return };
        for i in 0..M {
            let x = a[i * lda + p];
            for j in 0..NR {
                acc[i][j] = fma::<FUSED>(x, row[j], acc[i][j]);
            }
        }
    }
    for i in 0..M {
        for j in 0..NR {
            c[i * ldc + j] += acc[i][j];
        }
    }
}

#[inline(always)]
fn edge<const FUSED: bool>(
    (m, n, k): (usize, usize, usize),
    (a, lda): (&[f32], usize),
    (b, ldb): (&[f32], usize),
    (c, ldc): (&mut [f32], usize),
) {
    for i in 0..m {
        let row = &mut c[i * ldc..i * ldc + n];
        for p in 0..k {
            let x = a[i * lda + p];
            for (o, w) in row.iter_mut().zip(&b[p * ldb..p * ldb + n]) {
                *o = fma::<FUSED>(x, *w, *o);
            }
        }
    }
}

/// Dot product with 16 lanes.
#[inline(always)]
pub(super) fn dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let ((a16, a_rest), (b16, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (x, y) in a16.iter().zip(b16) {
        for j in 0..16 {
            lanes[j] = fma::<FUSED>(x[j], y[j], lanes[j]);
        }
    }
    for (j, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[j] = fma::<FUSED>(*x, *y, lanes[j]);
    }
    lanes.iter().sum()
}

/// Products of float weights: each row is decoded once, then meets every token.
///
/// # Safety
/// As [`super::Kernels::gemv`].
#[inline(always)]
pub(super) unsafe fn product<const FUSED: bool>(
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
            let o = unsafe { out.part(c, r, 1) };
            o[0] = dot::<FUSED>(scratch, token);
        }
    }
}
