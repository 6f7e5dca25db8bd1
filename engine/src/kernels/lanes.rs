//! A vector register of floats, so that the float loops are written once and still use every instruction set's own.

use half::f16;

/// Floats computed together.
pub(super) trait Lanes: Copy {
    /// How many.
    const N: usize;

    /// All zero.
    ///
    /// # Safety
    /// Here and below: the caller runs with the instruction set enabled.
    unsafe fn zero() -> Self;

    /// The floats at `p`.
    ///
    /// # Safety
    /// `N` floats are readable there.
    unsafe fn load(p: *const f32) -> Self;

    /// Writes the floats to `p`.
    ///
    /// # Safety
    /// `N` floats are writable there.
    unsafe fn store(self, p: *mut f32);

    /// The `N` halves at `p`, as floats.
    ///
    /// # Safety
    /// `N` halves are readable there.
    unsafe fn load_halves(p: *const f16) -> Self;

    /// The `N` signed bytes at `p`, as floats.
    ///
    /// # Safety
    /// `N` bytes are readable there.
    unsafe fn load_bytes(p: *const i8) -> Self;

    /// The half at `p` in all lanes.
    ///
    /// # Safety
    /// A half is readable there.
    unsafe fn splat_half(p: *const f16) -> Self;

    /// Lane by lane the product.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn mul(self, other: Self) -> Self;

    /// The sum of all lanes.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn sum(self) -> f32;

    /// `self + x * v`.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn add_scaled(self, x: f32, v: Self) -> Self;

    /// `self + a * b`.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn add_product(self, a: Self, b: Self) -> Self;

    /// Lane by lane the larger one.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn max(self, other: Self) -> Self;

    /// Lane by lane the sum.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    unsafe fn add(self, other: Self) -> Self;
}

/// Plain floats.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Lanes for Plain {
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 8])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: eight floats by the contract.
        Self(unsafe { p.cast::<[f32; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: eight floats by the contract.
        unsafe { p.cast::<[f32; 8]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn load_halves(p: *const f16) -> Self {
        // SAFETY: eight halves by the contract.
        Self(unsafe { p.cast::<[f16; 8]>().read_unaligned() }.map(f16::to_f32_const))
    }

    #[inline(always)]
    unsafe fn load_bytes(p: *const i8) -> Self {
        // SAFETY: eight bytes by the contract.
        Self(unsafe { p.cast::<[i8; 8]>().read_unaligned() }.map(f32::from))
    }

    #[inline(always)]
    unsafe fn splat_half(p: *const f16) -> Self {
        // SAFETY: a half by the contract.
        Self([unsafe { p.read_unaligned() }.to_f32_const(); 8])
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.0.iter().sum()
    }

    #[inline(always)]
    unsafe fn add_scaled(self, x: f32, v: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + x * v.0[i]))
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + a.0[i] * b.0[i]))
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

/// All lanes folded to one float by `f`, in the order of the lanes.
///
/// # Safety
/// As [`Lanes::zero`].
#[inline(always)]
pub(super) unsafe fn fold<V: Lanes>(v: V, f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut out = [0f32; 16];
    // SAFETY: no vector has more than sixteen lanes.
    unsafe { v.store(out.as_mut_ptr()) };
    let mut total = out[0];
    for x in &out[1..V::N] {
        total = f(total, *x);
    }
    total
}
