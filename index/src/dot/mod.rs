//! Dot products of quantized vectors: the inner loop of every comparison by meaning.
//!
//! Vectors lie end to end, `query.len()` bytes each. Which instructions are used is chosen when they are first needed, and
//! the loop over the vectors is inside the specialised code. Sums are exact: all kernels give the same numbers, which with up
//! to [`DIMENSIONS_MAX`](crate::limits::DIMENSIONS_MAX) dimensions fit 32 bits easily. This folder holds all unsafe code of the
//! package but a few system calls.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::sync::OnceLock;

/// Vectors compared in one step of a kernel: loads of the query serve all of them.
const STEP: usize = 4;

/// Bytes between what is compared and what is asked for. What the processor fetches by itself stops at each page of 4 KiB:
/// without this a scan takes more than twice as long (2.6 instead of 1.1 ms for 100,000 vectors of 384; 4 KiB 1.3, 16 KiB 1.1).
const AHEAD: usize = 8 << 10;

type Rows = unsafe fn(&[i8], &[i8], &mut [i32]);
type Picked = unsafe fn(&[i8], &[i8], &[u32], &mut [i32]);

/// The loops for one instruction set. Holding one proves that the machine runs it.
#[derive(Clone, Copy)]
struct Kernel {
    /// What the tests say of a kernel that fails.
    #[cfg(test)]
    name: &'static str,
    rows: Rows,
    picked: Picked,
}

impl Kernel {
    fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(plain::KERNEL))
    }

    /// All that this machine runs, slowest first.
    fn available() -> Vec<Self> {
        let mut all = vec![plain::KERNEL];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::available());
        #[cfg(target_arch = "aarch64")]
        all.extend(aarch64::available());
        all
    }

    fn rows(self, query: &[i8], rows: &[i8], out: &mut [i32]) {
        debug_assert_eq!(rows.len(), query.len() * out.len());
        // SAFETY: kernels are handed out only where the machine has their instructions, and ask for nothing else.
        unsafe { (self.rows)(query, rows, out) };
    }

    fn picked(self, query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
        debug_assert_eq!(picks.len(), out.len());
        // SAFETY: as above.
        unsafe { (self.picked)(query, rows, picks, out) };
    }
}

/// Dot product of `query` with each row; `out` has one place for each.
pub(crate) fn dot_rows(query: &[i8], rows: &[i8], out: &mut [i32]) {
    Kernel::best().rows(query, rows, out);
}

/// Dot product of `query` with the rows of these numbers, which may lie anywhere; `out` has one place for each.
///
/// # Panics
/// A number is beyond the last row.
pub(crate) fn dot_picked(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
    Kernel::best().picked(query, rows, picks, out);
}

/// Sum of `a[i] * b[i]`.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let mut out = [0];
    dot_rows(a, b, &mut out);
    out[0]
}

/// Dot product of a float vector and a quantized one.
pub(crate) fn dot_f32(query: &[f32], scale: f32, bytes: &[i8]) -> f32 {
    // As many sums as a register has lanes, for floats may not be added in another order by the compiler.
    let (heads, tail) = query.as_chunks::<8>();
    let (byte_heads, byte_tail) = bytes.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (q, b) in heads.iter().zip(byte_heads) {
        for i in 0..8 {
            sums[i] += q[i] * f32::from(b[i]);
        }
    }
    let rest: f32 = tail.iter().zip(byte_tail).map(|(q, b)| q * f32::from(*b)).sum();
    scale * (sums.iter().sum::<f32>() + rest)
}

/// Row `n` of vectors of `dim` bytes.
#[inline(always)]
fn row(rows: &[i8], dim: usize, n: usize) -> &[i8] {
    &rows[n * dim..][..dim]
}

/// The two loops of a kernel, over a function that compares the query with one vector or with [`STEP`] of them, compiled for
/// its features. `$fetch` asks for bytes that are needed soon; no address is wrong for it.
macro_rules! kernel {
    ($name:literal, $(#[$feature:meta])? $compare:ident, $fetch:expr) => {
        pub(super) const KERNEL: $crate::dot::Kernel =
            $crate::dot::Kernel { #[cfg(test)] name: $name, rows, picked };

        $(#[$feature])?
        fn rows(query: &[i8], rows: &[i8], out: &mut [i32]) {
            let dim = query.len();
            let (steps, rest) = out.as_chunks_mut::<{ $crate::dot::STEP }>();
            let done = steps.len() * $crate::dot::STEP;
            for (i, out) in steps.iter_mut().enumerate() {
                let first = i * $crate::dot::STEP;
                $fetch(rows.as_ptr().wrapping_add(first * dim + $crate::dot::AHEAD), $crate::dot::STEP * dim);
                *out = $compare(query, std::array::from_fn(|j| $crate::dot::row(rows, dim, first + j)));
            }
            for (i, out) in rest.iter_mut().enumerate() {
                [*out] = $compare(query, [$crate::dot::row(rows, dim, done + i)]);
            }
        }

        $(#[$feature])?
        fn picked(query: &[i8], rows: &[i8], picks: &[u32], out: &mut [i32]) {
            let dim = query.len();
            let (steps, rest) = out.as_chunks_mut::<{ $crate::dot::STEP }>();
            let (picks, picks_rest) = picks.as_chunks::<{ $crate::dot::STEP }>();
            for (i, (out, pick)) in steps.iter_mut().zip(picks).enumerate() {
                // What is two steps ahead is on its way while this one is computed.
                for ahead in picks.get(i + 2).into_iter().flatten() {
                    $fetch(rows.as_ptr().wrapping_add(*ahead as usize * dim), dim);
                }
                *out = $compare(query, pick.map(|p| $crate::dot::row(rows, dim, p as usize)));
            }
            for (out, pick) in rest.iter_mut().zip(picks_rest) {
                [*out] = $compare(query, [$crate::dot::row(rows, dim, *pick as usize)]);
            }
        }
    };
}
use kernel;

/// The meaning of the others, and the way for machines without them.
mod plain {
    super::kernel!("plain", compare, |_: *const i8, _: usize| ());

    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        rows.map(|row| super::dot_plain(query, row))
    }
}

#[inline(always)]
fn dot_plain(a: &[i8], b: &[i8]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DIMENSIONS_MAX;
    use crate::testing::Rng;

    fn naive(query: &[i8], rows: &[i8]) -> Vec<i32> {
        let dot = |row: &[i8]| query.iter().zip(row).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
        rows.chunks(query.len()).map(dot).collect()
    }

    #[test]
    fn all_lengths_and_numbers_of_rows_equal_the_naive_sum() {
        let mut rng = Rng::new(7);
        for kernel in Kernel::available() {
            for len in (1..200).chain([384, 768, 1023]) {
                let n = rng.below(11);
                let query: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
                let rows: Vec<i8> = (0..len * n).map(|_| rng.next() as i8).collect();
                let expected = naive(&query, &rows);
                let mut out = vec![1; n];
                kernel.rows(&query, &rows, &mut out);
                assert_eq!(out, expected, "{}, length {len}", kernel.name);
                let picks: Vec<u32> = (0..2 * n).map(|_| rng.below(n) as u32).collect();
                let mut out = vec![1; picks.len()];
                kernel.picked(&query, &rows, &picks, &mut out);
                let picked: Vec<i32> = picks.iter().map(|p| expected[*p as usize]).collect();
                assert_eq!(out, picked, "{}, length {len}", kernel.name);
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        for kernel in Kernel::available() {
            for (a, b) in [(-128, -128), (-128, 127), (127, 127)] {
                let (query, row) = (vec![a; DIMENSIONS_MAX], vec![b; DIMENSIONS_MAX]);
                let mut out = [0];
                kernel.rows(&query, &row, &mut out);
                assert_eq!(out[0], i32::from(a) * i32::from(b) * DIMENSIONS_MAX as i32, "{}", kernel.name);
            }
        }
    }

    #[test]
    #[should_panic(expected = "range")]
    fn a_row_beyond_the_last_is_refused() {
        dot_picked(&[1; 64], &[1; 128], &[0, 2], &mut [0; 2]);
    }

    #[test]
    fn a_float_query_gives_the_same() {
        let mut rng = Rng::new(8);
        for len in 1..70 {
            let query: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
            let row: Vec<i8> = (0..len).map(|_| rng.next() as i8).collect();
            let floats: Vec<f32> = query.iter().map(|q| f32::from(*q)).collect();
            assert_eq!(dot_f32(&floats, 0.5, &row), 0.5 * dot(&query, &row) as f32);
        }
    }
}
