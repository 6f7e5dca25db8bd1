//! A vector register of floats, so that the float loops are written once and still use every instruction set's own.

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
