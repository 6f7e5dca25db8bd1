//! What the matrix-vector kernels of all instruction sets share.

use super::gemm::Unpack;
use crate::quant::Format;

/// Elements unpacked at a time: the longest block.
pub(super) const STEP: usize = 256;

/// One unpacked stretch of a row: `w = scale * u + min`.
pub(super) struct Stretch {
    pub(super) u: [u8; STEP],
    pub(super) scale: [f32; 16],
    pub(super) min: [f32; 16],
}

impl Stretch {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { u: [0; STEP], scale: [0.0; 16], min: [0.0; 16] }
    }

    /// Unpacks `n` elements.
    ///
    /// # Safety
    /// As [`Unpack::unpack`].
    #[inline(always)]
    pub(super) unsafe fn unpack<U: Unpack, F: Format>(&mut self, bytes: &[u8], n: usize) {
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
