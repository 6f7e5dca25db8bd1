//! Sums of products of signed bytes, exact, in 32 bits.
//!
//! `sdot` and `smmla` stand in inline assembly, one instruction each, because their intrinsics are not in the stable
//! compiler. The directive before them tells the assembler, whatever it was told to expect; that the processor has the
//! instruction is what the table's being handed out proves.

use std::arch::aarch64::*;
use std::arch::asm;

use super::unpack::centred;
use crate::quant::Format;

/// How an instruction set multiplies bytes.
pub(super) trait Bytes {
    /// Four sums, of four products each.
    ///
    /// # Safety
    /// The processor has the instructions. `w` is as [`super::unpack`] gives it for some format, `q` an activation.
    unsafe fn dot16(w: int8x16_t, q: int8x16_t) -> int32x4_t;

    /// Four sums, of eight products each.
    ///
    /// # Safety
    /// As [`Bytes::dot16`], `w` being of format `F`.
    unsafe fn dot32<F: Format>(w: [int8x16_t; 2], q: [int8x16_t; 2]) -> int32x4_t;
}

/// Every processor: products in 16 bits.
pub(super) struct Widening;

/// Products of format `F` that a sum in 16 bits holds, whatever they are: 17 for weights up to 15, 8 up to 31, 4 up to
/// 63, 2 up to magnitude 128.
pub(super) const fn chain<F: Format>() -> usize {
    let weight = if centred::<F>() { 128 } else { F::TYPE.max() as usize };
    i16::MAX as usize / (127 * weight)
}

impl Bytes for Widening {
    #[inline(always)]
    unsafe fn dot16(w: int8x16_t, q: int8x16_t) -> int32x4_t {
        // Two products a sum, which every format may have: see `chain`.
        // SAFETY: NEON is part of every AArch64 processor.
        unsafe { vpaddlq_s16(vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(q)), w, q)) }
    }

    #[inline(always)]
    unsafe fn dot32<F: Format>(w: [int8x16_t; 2], q: [int8x16_t; 2]) -> int32x4_t {
        // SAFETY: as above.
        unsafe {
            let pairs = vmlal_high_s8(vmull_s8(vget_low_s8(w[0]), vget_low_s8(q[0])), w[0], q[0]);
            if chain::<F>() >= 4 {
                let pairs = vmlal_s8(pairs, vget_low_s8(w[1]), vget_low_s8(q[1]));
                return vpaddlq_s16(vmlal_high_s8(pairs, w[1], q[1]));
            }
            let others = vmlal_high_s8(vmull_s8(vget_low_s8(w[1]), vget_low_s8(q[1])), w[1], q[1]);
            vpadalq_s16(vpaddlq_s16(pairs), others)
        }
    }
}

/// `sdot`.
pub(super) struct DotProduct;

impl Bytes for DotProduct {
    #[inline(always)]
    unsafe fn dot16(w: int8x16_t, q: int8x16_t) -> int32x4_t {
        // SAFETY: forwarded.
        unsafe { sdot(vdupq_n_s32(0), w, q) }
    }

    #[inline(always)]
    unsafe fn dot32<F: Format>(w: [int8x16_t; 2], q: [int8x16_t; 2]) -> int32x4_t {
        // SAFETY: forwarded.
        unsafe { sdot(sdot(vdupq_n_s32(0), w[0], q[0]), w[1], q[1]) }
    }
}

/// Adds four products to each of four sums.
///
/// # Safety
/// The processor has `dotprod`.
#[inline(always)]
pub(super) unsafe fn sdot(mut sums: int32x4_t, w: int8x16_t, q: int8x16_t) -> int32x4_t {
    // SAFETY: registers only; the instruction exists by the contract.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sums:v}.4s, {w:v}.16b, {q:v}.16b",
            sums = inout(vreg) sums, w = in(vreg) w, q = in(vreg) q,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// The same with the four bytes of lane `LANE` of `q` for all sums.
///
/// # Safety
/// As [`sdot`].
#[inline(always)]
pub(super) unsafe fn sdot_lane<const LANE: usize>(mut sums: int32x4_t, w: int8x16_t, q: int8x16_t) -> int32x4_t {
    const { assert!(LANE < 4) };
    // SAFETY: as in `sdot`.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sums:v}.4s, {w:v}.16b, {q:v}.4b[{lane}]",
            sums = inout(vreg) sums, w = in(vreg) w, q = in(vreg) q, lane = const LANE,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Adds eight products to each of four sums: of the low half of `w` with the low and with the high half of `q`, then of
/// the high half of `w` with both.
///
/// # Safety
/// The processor has `i8mm`.
#[inline(always)]
pub(super) unsafe fn smmla(mut sums: int32x4_t, w: int8x16_t, q: int8x16_t) -> int32x4_t {
    // SAFETY: registers only; the instruction exists by the contract.
    unsafe {
        asm!(
            ".arch_extension i8mm",
            "smmla {sums:v}.4s, {w:v}.16b, {q:v}.16b",
            sums = inout(vreg) sums, w = in(vreg) w, q = in(vreg) q,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// The function `peak` of a table, see [`Kernels::peak`](crate::kernels::Kernels::peak): chains of one instruction, which
/// makes `$products` products.
macro_rules! peak {
    ($features:literal, $instruction:ident, $products:literal) => {
        #[target_feature(enable = $features)]
        fn peak(rounds: usize) -> usize {
            const CHAINS: usize = 24;
            let (mut w, q) = (std::hint::black_box(vdupq_n_s8(3)), std::hint::black_box(vdupq_n_s8(5)));
            let mut sums = [vdupq_n_s32(0); CHAINS];
            for _ in 0..rounds {
                for sum in &mut sums {
                    // SAFETY: the instruction is enabled here.
                    *sum = unsafe { $instruction(*sum, w, q) };
                }
                // Opaque, or all rounds would be the same and computed once.
                w = std::hint::black_box(w);
            }
            std::hint::black_box(sums);
            rounds * CHAINS * $products
        }
    };
}
pub(super) use peak;
