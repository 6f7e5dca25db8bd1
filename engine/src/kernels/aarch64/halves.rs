//! Halves to floats: `fcvtl`, in inline assembly because the intrinsic's type is not in the stable compiler.

use std::arch::aarch64::*;
use std::arch::asm;

/// Four halves as floats.
#[inline(always)]
pub(super) fn floats(halves: uint16x4_t) -> float32x4_t {
    let out: float32x4_t;
    // SAFETY: registers only; the instruction is in every AArch64 processor.
    unsafe {
        asm!(
            "fcvtl {out:v}.4s, {halves:v}.4h",
            out = lateout(vreg) out, halves = in(vreg) halves,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    out
}

/// The half at `p` in all lanes.
///
/// # Safety
/// Two bytes are readable at `p`.
#[inline(always)]
pub(super) unsafe fn splat(p: *const u8) -> float32x4_t {
    // SAFETY: by the contract.
    floats(unsafe { vdup_n_u16(p.cast::<u16>().read_unaligned()) })
}

/// The half at `p`.
///
/// # Safety
/// As [`splat`].
#[inline(always)]
pub(super) unsafe fn one(p: *const u8) -> f32 {
    // SAFETY: by the contract.
    unsafe { vgetq_lane_f32::<0>(splat(p)) }
}

/// The halves at four places.
///
/// # Safety
/// As [`splat`], for each.
#[inline(always)]
pub(super) unsafe fn four(p: [*const u8; 4]) -> float32x4_t {
    // SAFETY: by the contract.
    unsafe {
        let h = p.map(|p| p.cast::<u16>().read_unaligned());
        let v = vset_lane_u16::<1>(h[1], vdup_n_u16(h[0]));
        floats(vset_lane_u16::<3>(h[3], vset_lane_u16::<2>(h[2], v)))
    }
}
