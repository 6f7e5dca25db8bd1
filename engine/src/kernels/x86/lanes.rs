//! The float registers of AVX2 and AVX-512.

use std::arch::x86_64::*;

use half::f16;

use super::gemv::total;
use crate::kernels::lanes::Lanes;

/// 8 floats.
#[derive(Clone, Copy)]
pub(super) struct F32x8(__m256);

impl Lanes for F32x8 {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: AVX2 and FMA by the caller, here and below.
        Self(unsafe { _mm256_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: readable by the contract.
        Self(unsafe { _mm256_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: writable by the contract.
        unsafe { _mm256_storeu_ps(p, self.0) };
    }

    #[inline(always)]
    unsafe fn load_halves(p: *const f16) -> Self {
        // SAFETY: readable by the contract; F16C is enabled with AVX2 by the caller.
        Self(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bytes(p: *const i8) -> Self {
        // SAFETY: eight bytes by the contract.
        Self(unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))) })
    }

    #[inline(always)]
    unsafe fn splat_half(p: *const f16) -> Self {
        // SAFETY: two bytes by the contract; F16C as above.
        Self(unsafe { _mm256_cvtph_ps(_mm_set1_epi16(p.cast::<i16>().read_unaligned())) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm256_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { total(self.0) }
    }

    #[inline(always)]
    unsafe fn add_scaled(self, x: f32, v: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm256_fmadd_ps(_mm256_set1_ps(x), v.0, self.0) })
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm256_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm256_add_ps(self.0, other.0) })
    }
}

/// 16 floats.
#[derive(Clone, Copy)]
pub(super) struct F32x16(__m512);

impl Lanes for F32x16 {
    const N: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: AVX-512F by the caller, here and below.
        Self(unsafe { _mm512_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: readable by the contract.
        Self(unsafe { _mm512_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: writable by the contract.
        unsafe { _mm512_storeu_ps(p, self.0) };
    }

    #[inline(always)]
    unsafe fn load_halves(p: *const f16) -> Self {
        // SAFETY: readable by the contract; AVX-512F by the caller.
        Self(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bytes(p: *const i8) -> Self {
        // SAFETY: sixteen bytes by the contract.
        Self(unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) })
    }

    #[inline(always)]
    unsafe fn splat_half(p: *const f16) -> Self {
        // SAFETY: two bytes by the contract.
        Self(unsafe { _mm512_cvtph_ps(_mm256_set1_epi16(p.cast::<i16>().read_unaligned())) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as in `zero`.
        unsafe { _mm512_reduce_add_ps(self.0) }
    }

    #[inline(always)]
    unsafe fn add_scaled(self, x: f32, v: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm512_fmadd_ps(_mm512_set1_ps(x), v.0, self.0) })
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as in `zero`.
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }
}
