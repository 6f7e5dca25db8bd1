//! Keys and values as attention reads them.

use half::f16;

use super::lanes::Lanes;

/// Elements that share a scale in the 8-bit form.
pub const CACHE_BLOCK: usize = 32;

/// Keys or values of a layer; [`Attention`](super::Attention) says in which order.
#[derive(Debug, Clone, Copy)]
pub enum Cached<'a> {
    /// Floats, of an encoder: computed and used at once.
    F32(&'a [f32]),
    /// Halves.
    F16(&'a [f16]),
    /// Signed bytes, one scale for each [`CACHE_BLOCK`] of a row; `head_dim` is a multiple of that.
    Q8(&'a [i8], &'a [f16]),
}

impl<'a> Cached<'a> {
    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(x) => x.len(),
            Self::F16(x) => x.len(),
            Self::Q8(q, _) => q.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a scale for every block, and blocks do not cross rows of `head_dim`.
    pub(super) fn is_whole(&self, head_dim: usize) -> bool {
        match self {
            Self::F32(_) | Self::F16(_) => true,
            Self::Q8(q, scale) => head_dim.is_multiple_of(CACHE_BLOCK) && q.len() == scale.len() * CACHE_BLOCK,
        }
    }
}

/// A way to read elements of a cache as floats.
pub(super) trait Rows: Copy {
    /// Elements.
    fn len(self) -> usize;

    /// Elements `at..at + V::N`; in the 8-bit form these lie in one block when `at` is a multiple of `V::N`.
    ///
    /// # Safety
    /// They exist, and the instruction set of `V` is enabled.
    unsafe fn load<V: Lanes>(self, at: usize) -> V;

    /// Element `at`.
    fn one(self, at: usize) -> f32;

    /// Elements from `at` on as floats.
    ///
    /// # Safety
    /// As [`Lanes::zero`].
    #[inline(always)]
    unsafe fn floats<V: Lanes>(self, at: usize, out: &mut [f32]) {
        assert!(at + out.len() <= self.len());
        let whole = if at.is_multiple_of(V::N) { out.len() / V::N * V::N } else { 0 };
        for i in (0..whole).step_by(V::N) {
            // SAFETY: within the cache and `out` by the assertion.
            unsafe { self.load::<V>(at + i).store(out.as_mut_ptr().add(i)) };
        }
        for (i, out) in out.iter_mut().enumerate().skip(whole) {
            *out = self.one(at + i);
        }
    }
}

impl Rows for &[f32] {
    #[inline(always)]
    fn len(self) -> usize {
        <[f32]>::len(self)
    }

    #[inline(always)]
    unsafe fn load<V: Lanes>(self, at: usize) -> V {
        debug_assert!(at + V::N <= self.len());
        // SAFETY: by the contract.
        unsafe { V::load(self.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn one(self, at: usize) -> f32 {
        self[at]
    }
}

impl Rows for &[f16] {
    #[inline(always)]
    fn len(self) -> usize {
        <[f16]>::len(self)
    }

    #[inline(always)]
    unsafe fn load<V: Lanes>(self, at: usize) -> V {
        debug_assert!(at + V::N <= self.len());
        // SAFETY: by the contract.
        unsafe { V::load_halves(self.as_ptr().add(at)) }
    }

    #[inline(always)]
    fn one(self, at: usize) -> f32 {
        self[at].to_f32_const()
    }
}

/// Bytes and their scales.
impl Rows for (&[i8], &[f16]) {
    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    unsafe fn load<V: Lanes>(self, at: usize) -> V {
        const { assert!(CACHE_BLOCK.is_multiple_of(V::N)) };
        debug_assert!(at + V::N <= self.0.len() && at.is_multiple_of(V::N));
        // SAFETY: by the contract; a scale for each block is there as `Cached::is_whole` checked.
        unsafe {
            let scale = V::splat_half(self.1.as_ptr().add(at / CACHE_BLOCK));
            V::load_bytes(self.0.as_ptr().add(at)).mul(scale)
        }
    }

    #[inline(always)]
    fn one(self, at: usize) -> f32 {
        f32::from(self.0[at]) * self.1[at / CACHE_BLOCK].to_f32_const()
    }
}

/// Rounds a row to bytes: `scale = max|x| / 127` for each block, itself rounded to a half first, so that what is stored
/// and what is read agree.
pub fn to_bytes(x: &[f32], q: &mut [i8], scale: &mut [f16]) {
    assert!(x.len() == q.len() && x.len() == scale.len() * CACHE_BLOCK);
    let blocks = x.as_chunks::<CACHE_BLOCK>().0.iter().zip(q.as_chunks_mut::<CACHE_BLOCK>().0);
    for ((x, q), scale) in blocks.zip(scale) {
        let peak = x.iter().fold(0f32, |m, v| if v.abs() > m { v.abs() } else { m });
        *scale = f16::from_f32(peak / 127.0);
        let s = scale.to_f32();
        let inverse = if s > 0.0 && s.is_finite() { 1.0 / s } else { 0.0 };
        for (q, x) in q.iter_mut().zip(x) {
            // Adding 1.5 * 2^23 rounds to nearest even, the integer being in the low bits of the sum. The scale may have
            // been rounded down: the largest then stay at 127.
            let bits = (x * inverse).clamp(-127.0, 127.0) + 12_582_912.0;
            *q = bits.to_bits() as i8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_within_half_a_step() {
        let x: Vec<f32> = (0..96).map(|i| ((i * 37 % 101) as f32 - 50.0) * [0.01, 3.0, 0.0][i / 32]).collect();
        let (mut q, mut scale) = (vec![0i8; 96], vec![f16::ZERO; 3]);
        to_bytes(&x, &mut q, &mut scale);
        for (i, x) in x.iter().enumerate() {
            let got = (&q[..], &scale[..]).one(i);
            // Half a step of rounding, and the last byte of a peak whose scale was rounded down.
            assert!((got - x).abs() <= scale[i / 32].to_f32() * 0.57, "{i}: {got} and {x}");
        }
        assert_eq!(&q[64..], &[0; 32]);
    }
}
