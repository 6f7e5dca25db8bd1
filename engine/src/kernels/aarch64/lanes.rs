//! The float registers of NEON.

use std::arch::aarch64::*;

use half::f16;

use super::halves;
use crate::kernels::lanes::Lanes;

/// Eight floats in two registers: with one of four, the shared loops would have too few sums in flight for the latency
/// of a multiplication and addition, and half of the 32 registers would stay empty.
#[derive(Clone, Copy)]
pub(super) struct F32x8(float32x4_t, float32x4_t);

impl Lanes for F32x8 {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: NEON is part of every AArch64 processor.
        unsafe { Self(vdupq_n_f32(0.0), vdupq_n_f32(0.0)) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: eight floats by the contract.
        unsafe { Self(vld1q_f32(p), vld1q_f32(p.add(4))) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: eight floats by the contract.
        unsafe {
            vst1q_f32(p, self.0);
            vst1q_f32(p.add(4), self.1);
        }
    }

    #[inline(always)]
    unsafe fn load_halves(p: *const f16) -> Self {
        // SAFETY: eight halves by the contract.
        unsafe {
            let h = vld1q_u16(p.cast());
            Self(halves::floats(vget_low_u16(h)), halves::floats(vget_high_u16(h)))
        }
    }

    #[inline(always)]
    unsafe fn load_bytes(p: *const i8) -> Self {
        // SAFETY: eight bytes by the contract.
        unsafe {
            let wide = vmovl_s8(vld1_s8(p));
            Self(vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))), vcvtq_f32_s32(vmovl_high_s16(wide)))
        }
    }

    #[inline(always)]
    unsafe fn splat_half(p: *const f16) -> Self {
        // SAFETY: a half by the contract.
        let v = unsafe { halves::splat(p.cast()) };
        Self(v, v)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Self(vmulq_f32(self.0, other.0), vmulq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { vaddvq_f32(vaddq_f32(self.0, self.1)) }
    }

    #[inline(always)]
    unsafe fn add_scaled(self, x: f32, v: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Self(vfmaq_n_f32(self.0, v.0, x), vfmaq_n_f32(self.1, v.1, x)) }
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Self(vfmaq_f32(self.0, a.0, b.0), vfmaq_f32(self.1, a.1, b.1)) }
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Self(vmaxq_f32(self.0, other.0), vmaxq_f32(self.1, other.1)) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        unsafe { Self(vaddq_f32(self.0, other.0), vaddq_f32(self.1, other.1)) }
    }
}
