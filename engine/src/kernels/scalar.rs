//! The reference: plain Rust, any machine.

use std::ops::Range;

use super::gemm::{Panel, Unpack};
use super::{Kernels, Matrix, Output, attention, elementwise, float, lanes};
use crate::quant::{ActMatrix, Format, with_format};

pub(super) static KERNELS: Kernels = Kernels {
    name: "scalar",
    quantize: |tile, x, width| tile.quantize(x, width),
    gemv: rows,
    gemm: |m, r, a, out, _: &mut Panel| {
        // SAFETY: forwarded contract.
        unsafe { rows(m, r, a, out) }
    },
    float: float::product::<lanes::Plain>,
    attention: attention::attention::<lanes::Plain, false>,
    rms_norm: elementwise::rms_norm::<false>,
    layer_norm: elementwise::layer_norm::<false>,
    gate: elementwise::gate::<false>,
    activate: elementwise::activate::<false>,
    peak,
};

/// See [`Kernels::peak`]: what the compiler makes of plain products.
fn peak(rounds: usize) -> usize {
    let (a, mut b, mut sums) = (std::hint::black_box([3u8; 64]), std::hint::black_box([5i8; 64]), [0i32; 64]);
    for _ in 0..rounds {
        for i in 0..64 {
            sums[i] = sums[i].wrapping_add(i32::from(a[i]) * i32::from(b[i]));
        }
        b = std::hint::black_box(b);
    }
    std::hint::black_box(sums);
    rounds * 64
}

struct Plain;

impl Unpack for Plain {
    unsafe fn unpack<F: Format>(row: &[u8], u: &mut [u8], scale: &mut [f32; 16], min: &mut [f32; 16]) {
        F::unpack(row, u, scale, min);
    }
}

/// Elements unpacked at a time: the longest block.
const STEP: usize = 256;

/// One unpacked stretch of a row: `w = scale * u + min`.
struct Stretch {
    u: [u8; STEP],
    scale: [f32; 16],
    min: [f32; 16],
}

impl Stretch {
    #[inline(always)]
    fn new() -> Self {
        Self { u: [0; STEP], scale: [0.0; 16], min: [0.0; 16] }
    }

    /// Unpacks `n` elements.
    ///
    /// # Safety
    /// As [`Unpack::unpack`].
    #[inline(always)]
    unsafe fn unpack<U: Unpack, F: Format>(&mut self, bytes: &[u8], n: usize) {
        // SAFETY: forwarded.
        unsafe { U::unpack::<F>(bytes, &mut self.u[..n], &mut self.scale, &mut self.min) };
        if !F::TYPE.has_min() {
            let zero = F::TYPE.zero() as f32;
            for (m, s) in self.min.iter_mut().zip(&self.scale) {
                *m = -zero * s;
            }
        }
    }
}

/// # Safety
/// As [`Kernels::gemv`].
unsafe fn rows(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    with_format!(m.ty, F => for r in rows {
        for c in 0..a.columns() {
            // SAFETY: the caller owns these rows of `out`.
            let o = unsafe { out.part(c, r, 1) };
            o[0] = dot::<F>(m.row(r), a, c);
        }
    });
}

fn dot<F: Format>(row: &[u8], a: &ActMatrix, c: usize) -> f32 {
    let (n, group) = (a.tile_columns(), F::TYPE.group());
    let (tile, c) = (a.tile(c / n), c % n);
    let sums = if group == 32 { tile.sum32 } else { tile.sum16 };
    let mut s = Stretch::new();
    let mut total = 0f32;
    for from in (0..a.width()).step_by(STEP) {
        let len = STEP.min(a.width() - from);
        // SAFETY: plain Rust.
        unsafe { s.unpack::<Plain, F>(&row[F::TYPE.row_bytes(from)..F::TYPE.row_bytes(from + len)], len) };
        for g in 0..len / group {
            let at = from + g * group;
            let mut isum = 0i32;
            for i in 0..group {
                let q = tile.q[((at + i) / 4 * n + c) * 4 + (at + i) % 4];
                isum += i32::from(s.u[g * group + i]) * i32::from(q);
            }
            total += s.scale[g] * tile.scale[at / 32 * n + c] * isum as f32;
            total += s.min[g] * sums[at / group * n + c];
        }
    }
    total
}
