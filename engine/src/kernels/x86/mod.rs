//! x86-64: AVX2, and AVX-512 with VNNI.

mod avx2;
mod avx512;
mod gemv;
mod gemv512;
mod lanes;
mod unpack;

use super::Kernels;

/// The tables that this machine runs, slowest first.
pub(super) fn available() -> Vec<&'static Kernels> {
    let mut all = Vec::new();
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    if avx2 {
        all.push(&avx2::KERNELS);
    }
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    if avx2 && wide {
        all.push(&avx512::KERNELS);
    }
    all
}
