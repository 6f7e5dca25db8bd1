//! Matrix-vector products: each row straight from the file's bytes, no unpacked copy.
//!
//! Four groups (of 16 or 32 elements that share a scale) go together: their sums are added pairwise until one register
//! holds one sum a group, which is then converted and scaled at once.

use std::arch::aarch64::*;
use std::ops::Range;

use super::bytes::Bytes;
use super::halves;
use super::unpack::{block32, centred, scales256, stretch256};
use crate::kernels::columns::{Column, by_columns, offset_factor, unrolled};
use crate::kernels::{Matrix, Output};
use crate::quant::{ActMatrix, Format};

/// Rows of `m` times the columns of `a`.
///
/// # Safety
/// As [`crate::kernels::Kernels::gemv`], on a processor with the instructions of `B`.
#[inline(always)]
pub(super) unsafe fn rows<B: Bytes, F: Format>(m: &Matrix<'_>, rows: Range<usize>, a: &ActMatrix, out: Output) {
    by_columns!(F, a, |first, columns| for r in rows.clone() {
        // SAFETY: the row holds as many blocks as the columns are wide, which `Kernels::gemv` compared; the caller owns
        // these rows of `out`.
        unsafe {
            let row = m.row(r).as_ptr();
            let sums = match F::TYPE.block_len() {
                256 => row256::<B, F, _>(row, a.width() / 256, &columns),
                _ => row32::<B, F, _>(row, a.width() / 32, &columns),
            };
            for (i, sum) in sums.into_iter().enumerate() {
                out.part(first + i, r, 1)[0] = sum;
            }
        }
    });
}

/// One row of blocks of 32.
#[inline(always)]
unsafe fn row32<B: Bytes, F: Format, const C: usize>(row: *const u8, blocks: usize, columns: &[Column; C]) -> [f32; C] {
    // SAFETY: the caller vouches for the instructions and for `blocks` blocks of the row and of each column.
    unsafe {
        let (mut sums, mut offset) = ([vdupq_n_f32(0.0); C], [vdupq_n_f32(0.0); C]);
        let mut block = 0;
        while block + 4 <= blocks {
            let b: [_; 4] = std::array::from_fn(|i| row.add((block + i) * F::TYPE.block_bytes()));
            let scale = halves::four(b);
            let minimum = if F::TYPE.has_min() { halves::four(b.map(|b| b.add(2))) } else { scale };
            let w = b.map(|b| block32::<F>(b));
            for (i, column) in columns.iter().enumerate() {
                let q = column.q.add(block * 32);
                let ints = std::array::from_fn(|j| B::dot32::<F>(w[j], load(q.add(32 * j))));
                let both = vmulq_f32(scale, vld1q_f32(column.scale.add(block)));
                sums[i] = vfmaq_f32(sums[i], vcvtq_f32_s32(fold(ints)), both);
                if !centred::<F>() {
                    offset[i] = vfmaq_f32(offset[i], minimum, vld1q_f32(column.sums.add(block)));
                }
            }
            block += 4;
        }
        let mut out = std::array::from_fn(|i| vaddvq_f32(sums[i]) + vaddvq_f32(offset[i]) * offset_factor::<F>());
        // The last one to three.
        while block < blocks {
            let b = row.add(block * F::TYPE.block_bytes());
            let scale = halves::one(b);
            let minimum = if F::TYPE.has_min() { halves::one(b.add(2)) } else { scale };
            let w = block32::<F>(b);
            for (out, column) in out.iter_mut().zip(columns) {
                let ints = vaddvq_s32(B::dot32::<F>(w, load(column.q.add(block * 32))));
                *out += ints as f32 * (scale * *column.scale.add(block));
                if !centred::<F>() {
                    *out += minimum * *column.sums.add(block) * offset_factor::<F>();
                }
            }
            block += 1;
        }
        out
    }
}

/// One row of blocks of 256.
#[inline(always)]
unsafe fn row256<B: Bytes, F: Format, const C: usize>(
    row: *const u8,
    blocks: usize,
    columns: &[Column; C],
) -> [f32; C] {
    // SAFETY: as in `row32`.
    unsafe {
        let (mut sums, mut offset) = ([vdupq_n_f32(0.0); C], [vdupq_n_f32(0.0); C]);
        let (mut scale, mut minimum) = ([0f32; 16], [0f32; 16]);
        for block in 0..blocks {
            let b = row.add(block * F::TYPE.block_bytes());
            scales256::<F>(b, &mut scale, &mut minimum);
            let offsets = if F::TYPE.has_min() { &minimum } else { &scale };
            if F::TYPE.group() == 32 {
                unrolled!([0, 1], four => groups32::<B, F, C>(b, block, four, columns, (&scale, &mut sums)));
            } else {
                unrolled!([0, 1, 2, 3], four => groups16::<B, F, C>(b, block, four, columns, (&scale, &mut sums)));
            }
            if !centred::<F>() {
                let groups = 256 / F::TYPE.group();
                for (offset, column) in offset.iter_mut().zip(columns) {
                    for g in (0..groups).step_by(4) {
                        let sums = vld1q_f32(column.sums.add(block * groups + g));
                        *offset = vfmaq_f32(*offset, vld1q_f32(offsets.as_ptr().add(g)), sums);
                    }
                }
            }
        }
        std::array::from_fn(|i| vaddvq_f32(sums[i]) + vaddvq_f32(offset[i]) * offset_factor::<F>())
    }
}

/// Adds the products of groups `4 * four..4 * four + 4`, of 32 elements each, of a block of 256.
#[inline(always)]
unsafe fn groups32<B: Bytes, F: Format, const C: usize>(
    b: *const u8,
    block: usize,
    four: usize,
    columns: &[Column; C],
    (scale, sums): (&[f32; 16], &mut [float32x4_t; C]),
) {
    // SAFETY: as in `row32`; `four` is below 2.
    unsafe {
        let w: [_; 4] = std::array::from_fn(|j| stretch256::<F>(b, 4 * four + j));
        let scale = vld1q_f32(scale.as_ptr().add(4 * four));
        for (sum, column) in sums.iter_mut().zip(columns) {
            let q = column.q.add(block * 256 + four * 128);
            let ints = std::array::from_fn(|j| B::dot32::<F>(w[j], load(q.add(32 * j))));
            let both = vmulq_f32(scale, vld1q_f32(column.scale.add(block * 8 + 4 * four)));
            *sum = vfmaq_f32(*sum, vcvtq_f32_s32(fold(ints)), both);
        }
    }
}

/// The same for groups of 16 elements.
#[inline(always)]
unsafe fn groups16<B: Bytes, F: Format, const C: usize>(
    b: *const u8,
    block: usize,
    four: usize,
    columns: &[Column; C],
    (scale, sums): (&[f32; 16], &mut [float32x4_t; C]),
) {
    // SAFETY: as in `row32`; `four` is below 4.
    unsafe {
        let w: [_; 2] = std::array::from_fn(|j| stretch256::<F>(b, 2 * four + j));
        let scale = vld1q_f32(scale.as_ptr().add(4 * four));
        for (sum, column) in sums.iter_mut().zip(columns) {
            let q = column.q.add(block * 256 + four * 64);
            let ints = std::array::from_fn(|j| B::dot16(w[j / 2][j % 2], vld1q_s8(q.add(16 * j))));
            // One scale of activations for two groups.
            let a = vld1_f32(column.scale.add(block * 8 + 2 * four));
            let both = vmulq_f32(scale, vcombine_f32(vdup_lane_f32::<0>(a), vdup_lane_f32::<1>(a)));
            *sum = vfmaq_f32(*sum, vcvtq_f32_s32(fold(ints)), both);
        }
    }
}

/// The 32 bytes at `q`.
#[inline(always)]
unsafe fn load(q: *const i8) -> [int8x16_t; 2] {
    // SAFETY: the caller's column has them.
    unsafe { [vld1q_s8(q), vld1q_s8(q.add(16))] }
}

/// The sum of each of four registers.
#[inline(always)]
fn fold(v: [int32x4_t; 4]) -> int32x4_t {
    // SAFETY: NEON is part of every AArch64 processor.
    unsafe { vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])) }
}
