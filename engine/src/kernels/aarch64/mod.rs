//! AArch64: NEON as every such processor has it (ARMv8.0), with byte dot products (`sdot`, ARMv8.2), and with byte matrix
//! products (`smmla`, ARMv8.6).
//!
//! All three multiply signed bytes by signed bytes: activations are within -127..=127, unpacked weights within 0..=63, or
//! centred to -128..=127 for the formats that use all of a byte (see [`unpack::centred`]). No correction is needed beyond
//! the one that minima and zero points have anyway.

mod bytes;
mod dotprod;
mod gemv;
mod halves;
mod i8mm;
mod lanes;
mod neon;
mod unpack;

use super::Kernels;

/// The tables that this machine runs, slowest first.
pub(super) fn available() -> Vec<&'static Kernels> {
    // NEON is part of the target: nothing to ask for.
    let mut all = vec![&neon::KERNELS];
    let dotprod = std::arch::is_aarch64_feature_detected!("dotprod");
    if dotprod {
        all.push(&dotprod::KERNELS);
    }
    if dotprod && std::arch::is_aarch64_feature_detected!("i8mm") {
        all.push(&i8mm::KERNELS);
    }
    all
}
