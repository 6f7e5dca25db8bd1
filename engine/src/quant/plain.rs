//! F32, F16 and BF16: one element a block.

use half::f16;

/// An IEEE half as f32; NaN and infinities are kept.
#[inline(always)]
#[must_use]
pub fn f16_to_f32(bytes: [u8; 2]) -> f32 {
    let h = u32::from(u16::from_le_bytes(bytes));
    // Shift exponent and mantissa into place, then rescale by 2^112: exact for normals and subnormals, and without
    // the branches that keep `half`'s conversion from vectorizing.
    let magnitude = f32::from_bits((h & 0x7fff) << 13) * f32::from_bits(0x7780_0000);
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 | (h & 0x3ff) << 13 } else { magnitude.to_bits() };
    f32::from_bits(special | (h & 0x8000) << 16)
}

/// A bfloat16 as f32.
#[inline(always)]
#[must_use]
pub fn bf16_to_f32(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

pub(super) fn f32_row(row: &[u8], out: &mut [f32]) {
    for (o, b) in out.iter_mut().zip(row.as_chunks::<4>().0) {
        *o = f32::from_le_bytes(*b);
    }
}

pub(super) fn f16_row(row: &[u8], out: &mut [f32]) {
    for (o, b) in out.iter_mut().zip(row.as_chunks::<2>().0) {
        *o = f16::from_le_bytes(*b).to_f32();
    }
}

pub(super) fn bf16_row(row: &[u8], out: &mut [f32]) {
    for (o, b) in out.iter_mut().zip(row.as_chunks::<2>().0) {
        *o = bf16_to_f32(*b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits.to_le_bytes()), f16::from_bits(bits).to_f32());
            assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{bits:#06x}: {ours} and {theirs}");
        }
    }
}
