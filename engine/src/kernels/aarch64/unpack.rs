//! Unpacking with NEON: the same meaning as [`Format::unpack`], 32 elements a step, straight from the file's bytes into
//! two registers; except that bytes are signed, those of formats that use all of a byte being centred.

use std::arch::aarch64::*;

use super::halves;
use crate::kernels::columns::unrolled;
use crate::kernels::gemm::Unpack;
use crate::quant::{Format, TensorType};

/// Whether the format's bytes are taken as `u - 128`, which makes its offset vanish.
pub(super) const fn centred<F: Format>() -> bool {
    F::TYPE.max() == 255
}

/// The unpacker of all AArch64 tables. Of centred formats it writes `u - 128`, in two's complement.
pub(super) struct NeonUnpack;

impl Unpack for NeonUnpack {
    #[inline(always)]
    unsafe fn unpack<F: Format>(row: &[u8], u: &mut [u8], scale: &mut [f32; 16], min: &mut [f32; 16]) {
        debug_assert!(row.len() == F::TYPE.row_bytes(u.len()) && u.len() <= 256);
        let (from, to) = (row.as_ptr(), u.as_mut_ptr());
        // SAFETY: whole blocks are read, which `row` holds, and as many elements written; `scale` and `min` have room for
        // the 16 groups of 256.
        unsafe {
            if F::TYPE.block_len() == 256 {
                scales256::<F>(from, scale, min);
                unrolled!([0, 1, 2, 3, 4, 5, 6, 7], j => store(to.add(32 * j), stretch256::<F>(from, j)));
                return;
            }
            for i in 0..(u.len() / 32).min(8) {
                let block = from.add(i * F::TYPE.block_bytes());
                scale[i] = halves::one(block);
                if F::TYPE.has_min() {
                    min[i] = halves::one(block.add(2));
                }
                store(to.add(32 * i), block32::<F>(block));
            }
        }
    }
}

#[inline(always)]
unsafe fn store(p: *mut u8, w: [int8x16_t; 2]) {
    // SAFETY: the caller's output has 32 bytes here.
    unsafe {
        vst1q_s8(p.cast(), w[0]);
        vst1q_s8(p.add(16).cast(), w[1]);
    }
}

/// The 32 bytes at `p`.
#[inline(always)]
unsafe fn load(p: *const u8) -> [uint8x16_t; 2] {
    // SAFETY: the caller's block has 32 bytes here.
    unsafe { [vld1q_u8(p), vld1q_u8(p.add(16))] }
}

#[inline(always)]
fn signed(u: [uint8x16_t; 2]) -> [int8x16_t; 2] {
    // SAFETY: NEON is part of every AArch64 processor; here and below.
    u.map(|u| unsafe { vreinterpretq_s8_u8(u) })
}

/// The 32 elements of a block of a format with blocks of 32.
///
/// # Safety
/// `b` points to a whole block of the format.
#[inline(always)]
pub(super) unsafe fn block32<F: Format>(b: *const u8) -> [int8x16_t; 2] {
    // SAFETY: offsets lie within the block.
    unsafe {
        match F::TYPE {
            TensorType::Q4_0 => signed(nibbles(b.add(2))),
            TensorType::Q4_1 => signed(nibbles(b.add(4))),
            TensorType::Q5_0 => signed(fifth(b.add(2), b.add(6))),
            TensorType::Q5_1 => signed(fifth(b.add(4), b.add(8))),
            // The file has them signed.
            TensorType::Q8_0 => signed(load(b.add(2))),
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
pub(super) unsafe fn stretch256<F: Format>(b: *const u8, j: usize) -> [int8x16_t; 2] {
    let (half, run) = (j / 4, j % 4);
    // SAFETY: offsets lie within the block.
    unsafe {
        signed(match F::TYPE {
            TensorType::Q4_K => nibble(load(b.add(16 + 32 * (j / 2))), j % 2 == 1),
            TensorType::Q5_K => {
                let low = nibble(load(b.add(48 + 32 * (j / 2))), j % 2 == 1);
                either(low, bits(load(b.add(16)), j as i8 - 4, 16))
            }
            TensorType::Q6_K => {
                let low = nibble(load(b.add(64 * half + 32 * (run % 2))), run >= 2);
                either(low, bits(load(b.add(128 + 32 * half)), 2 * run as i8 - 4, 0x30))
            }
            TensorType::Q3_K => {
                let low = bits(load(b.add(32 + 32 * half)), 2 * run as i8, 3);
                either(low, bits(load(b), j as i8 - 2, 4))
            }
            TensorType::Q2_K => bits(load(b.add(16 + 32 * half)), 2 * run as i8, 3),
            TensorType::IQ4_XS => return table(nibbles(b.add(8 + 16 * j))),
            other => unreachable!("{other} has no blocks of 256"),
        })
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
            TensorType::Q6_K => signed_scales(vld1q_s8(b.add(192).cast()), halves::splat(b.add(208)), scale),
            TensorType::Q3_K => signed_scales(q3_scales(b.add(96)), halves::splat(b.add(108)), scale),
            TensorType::Q2_K => {
                let s = vld1q_u8(b);
                let (low, high) = (vandq_u8(s, vdupq_n_u8(15)), vshrq_n_u8::<4>(s));
                signed_scales(vreinterpretq_s8_u8(low), halves::splat(b.add(80)), scale);
                signed_scales(vreinterpretq_s8_u8(high), vnegq_f32(halves::splat(b.add(82))), min);
            }
            TensorType::IQ4_XS => iq4_scales(b, scale),
            other => unreachable!("{other} has no blocks of 256"),
        }
    }
}

/// The low or high nibbles of 32 bytes.
#[inline(always)]
fn nibble(q: [uint8x16_t; 2], high: bool) -> [uint8x16_t; 2] {
    // SAFETY: as in `signed`.
    q.map(|q| unsafe { if high { vshrq_n_u8::<4>(q) } else { vandq_u8(q, vdupq_n_u8(15)) } })
}

/// The bits of `mask` in each byte, after a shift to the right (to the left where `shift` is negative).
#[inline(always)]
fn bits(q: [uint8x16_t; 2], shift: i8, mask: u8) -> [uint8x16_t; 2] {
    // SAFETY: as in `signed`.
    q.map(|q| unsafe { vandq_u8(vshlq_u8(q, vdupq_n_s8(-shift)), vdupq_n_u8(mask)) })
}

#[inline(always)]
fn either(a: [uint8x16_t; 2], b: [uint8x16_t; 2]) -> [uint8x16_t; 2] {
    // SAFETY: as in `signed`.
    unsafe { [vorrq_u8(a[0], b[0]), vorrq_u8(a[1], b[1])] }
}

/// Sixteen bytes to 32 nibbles, low ones first.
#[inline(always)]
unsafe fn nibbles(qs: *const u8) -> [uint8x16_t; 2] {
    // SAFETY: the caller's block has 16 bytes here.
    unsafe {
        let q = vld1q_u8(qs);
        [vandq_u8(q, vdupq_n_u8(15)), vshrq_n_u8::<4>(q)]
    }
}

/// Nibbles with their fifth bits.
#[inline(always)]
unsafe fn fifth(qh: *const u8, qs: *const u8) -> [uint8x16_t; 2] {
    // SAFETY: the caller's block has 4 and 16 bytes here.
    unsafe {
        let bits = vreinterpretq_u8_u32(vdupq_n_u32(qh.cast::<u32>().read_unaligned()));
        let mask = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        // Byte `e / 8` of the bits for element `e`.
        let spread = |first: u8| {
            let which = vcombine_u8(vdup_n_u8(first), vdup_n_u8(first + 1));
            vandq_u8(vtstq_u8(vqtbl1q_u8(bits, which), mask), vdupq_n_u8(16))
        };
        either(nibbles(qs), [spread(0), spread(2)])
    }
}

/// Nibbles to the values of the non-linear types.
#[inline(always)]
fn table(nibbles: [uint8x16_t; 2]) -> [int8x16_t; 2] {
    const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
    // SAFETY: sixteen bytes.
    unsafe {
        let values = vld1q_s8(VALUES.as_ptr());
        nibbles.map(|n| vqtbl1q_s8(values, n))
    }
}

/// The 6-bit scales and minima of Q4_K and Q5_K, multiplied out.
#[inline(always)]
unsafe fn six_bit_scales(block: *const u8, scale: &mut [f32; 16], min: &mut [f32; 16]) {
    // SAFETY: 16 bytes of the caller's block.
    unsafe {
        let word = |i: usize| block.add(4 + 4 * i).cast::<u32>().read_unaligned();
        let (a, b, c) = (word(0), word(1), word(2));
        let pack = |low: u32, high: u32| vcreate_s8(u64::from(low) | u64::from(high) << 32);
        let s = pack(a & 0x3f3f_3f3f, (c & 0x0f0f_0f0f) | (a >> 6 & 0x0303_0303) << 4);
        let m = pack(b & 0x3f3f_3f3f, (c >> 4 & 0x0f0f_0f0f) | (b >> 6 & 0x0303_0303) << 4);
        eight_scales(vmovl_s8(s), halves::splat(block), &mut scale[..8]);
        eight_scales(vmovl_s8(m), vnegq_f32(halves::splat(block.add(2))), &mut min[..8]);
    }
}

/// The 6-bit scales of Q3_K: four low bits in a nibble of the first 8 bytes, two high ones packed in the last 4.
#[inline(always)]
unsafe fn q3_scales(s: *const u8) -> int8x16_t {
    // SAFETY: 12 bytes of the caller's block.
    unsafe {
        let (low, high) = (vld1_u8(s), vdupq_n_u32(s.add(8).cast::<u32>().read_unaligned()));
        let low = vcombine_u8(vand_u8(low, vdup_n_u8(15)), vshr_n_u8::<4>(low));
        // Each copy of the four bytes gives the high bits of four scales.
        let shifts = vcombine_s8(vcreate_s8(0xfefe_fefe_0000_0000), vcreate_s8(0xfafa_fafa_fcfc_fcfc));
        let high = vandq_u8(vshlq_u8(vreinterpretq_u8_u32(high), shifts), vdupq_n_u8(3));
        vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, vshlq_n_u8::<4>(high))), vdupq_n_s8(32))
    }
}

/// The 6-bit scales of IQ4_XS: low nibbles in 4 bytes, the high bits of all in 2.
#[inline(always)]
unsafe fn iq4_scales(b: *const u8, scale: &mut [f32; 16]) {
    // SAFETY: 8 bytes of the caller's block.
    unsafe {
        let low = vcreate_u8(u64::from(b.add(4).cast::<u32>().read_unaligned()));
        let low = vzip1_u8(vand_u8(low, vdup_n_u8(15)), vshr_n_u8::<4>(low));
        let shifts: [i16; 8] = [0, -2, -4, -6, -8, -10, -12, -14];
        let high = vshlq_u16(vdupq_n_u16(b.add(2).cast::<u16>().read_unaligned()), vld1q_s16(shifts.as_ptr()));
        let high = vshlq_n_u16::<4>(vandq_u16(high, vdupq_n_u16(3)));
        let all = vreinterpretq_s16_u16(vorrq_u16(vmovl_u8(low), high));
        eight_scales(vsubq_s16(all, vdupq_n_s16(32)), halves::splat(b), &mut scale[..8]);
    }
}

/// Sixteen signed scales times `d`.
#[inline(always)]
fn signed_scales(s: int8x16_t, d: float32x4_t, scale: &mut [f32; 16]) {
    // SAFETY: as in `signed`.
    let (low, high) = unsafe { (vmovl_s8(vget_low_s8(s)), vmovl_high_s8(s)) };
    eight_scales(low, d, &mut scale[..8]);
    eight_scales(high, d, &mut scale[8..]);
}

/// Eight scales times `d`.
#[inline(always)]
fn eight_scales(s: int16x8_t, d: float32x4_t, scale: &mut [f32]) {
    let scale = &mut scale[..8];
    // SAFETY: eight floats are written.
    unsafe {
        vst1q_f32(scale.as_mut_ptr(), vmulq_f32(d, vcvtq_f32_s32(vmovl_s16(vget_low_s16(s)))));
        vst1q_f32(scale.as_mut_ptr().add(4), vmulq_f32(d, vcvtq_f32_s32(vmovl_high_s16(s))));
    }
}
