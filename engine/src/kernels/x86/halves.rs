//! Floats to halves with F16C.

use std::arch::x86_64::*;

use half::f16;

/// Floats to halves, nearest even.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn floats_to_halves(f: &[f32], h: &mut [f16]) {
    let ((f8, f_rest), (h8, h_rest)) = (f.as_chunks::<8>(), h.as_chunks_mut::<8>());
    for (f, h) in f8.iter().zip(h8) {
        // SAFETY: both chunks have eight elements.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(f.as_ptr()));
            _mm_storeu_si128(h.as_mut_ptr().cast(), halves);
        }
    }
    for (f, h) in f_rest.iter().zip(h_rest) {
        *h = f16::from_f32_const(*f);
    }
}
