//! The formats with blocks of 32: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL.
//!
//! In all 4- and 5-bit ones the low nibbles of `qs[16]` are elements 0..16 and the high nibbles 16..32; bit `e` of the
//! 32-bit `qh` is the fifth bit of element `e`.

use super::plain::f16_to_f32;
use half::f16;

/// Value table of the non-linear 4-bit types, shifted by 128 to be unsigned.
pub(super) const IQ4_VALUES: [u8; 16] = [1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241];

#[inline(always)]
pub(super) fn half_at(block: &[u8], at: usize) -> f32 {
    f16_to_f32([block[at], block[at + 1]])
}

/// Blocks of a row with their 32 output bytes and group index.
macro_rules! each_block {
    ($row:expr, $bytes:literal, $u:expr, |$i:ident, $b:ident, $out:ident| $body:block) => {
        for ($i, ($b, $out)) in
            $row.as_chunks::<$bytes>().0.iter().zip($u.as_chunks_mut::<32>().0.iter_mut()).enumerate()
        $body
    };
}

#[inline(always)]
fn nibbles(qs: &[u8], out: &mut [u8; 32]) {
    for j in 0..16 {
        out[j] = qs[j] & 15;
        out[j + 16] = qs[j] >> 4;
    }
}

#[inline(always)]
fn fifth_bits(qh: [u8; 4], out: &mut [u8; 32]) {
    let qh = u32::from_le_bytes(qh);
    for (j, o) in out.iter_mut().enumerate() {
        *o |= ((qh >> j & 1) << 4) as u8;
    }
}

/// `d | qs[16]`, `d * (q - 8)`.
#[inline(always)]
pub(super) fn q4_0(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 18, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        nibbles(&b[2..18], out);
    });
}

/// `d | m | qs[16]`, `d * q + m`.
#[inline(always)]
pub(super) fn q4_1(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
    each_block!(row, 20, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        min[i] = half_at(b, 2);
        nibbles(&b[4..20], out);
    });
}

/// `d | qh[4] | qs[16]`, `d * (q - 16)`.
#[inline(always)]
pub(super) fn q5_0(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 22, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        nibbles(&b[6..22], out);
        fifth_bits([b[2], b[3], b[4], b[5]], out);
    });
}

/// `d | m | qh[4] | qs[16]`, `d * q + m`.
#[inline(always)]
pub(super) fn q5_1(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
    each_block!(row, 24, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        min[i] = half_at(b, 2);
        nibbles(&b[8..24], out);
        fifth_bits([b[4], b[5], b[6], b[7]], out);
    });
}

/// `d | i8[32]`, `d * q`; the byte is shifted by 128 to be unsigned.
#[inline(always)]
pub(super) fn q8_0(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 34, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        for j in 0..32 {
            out[j] = b[j + 2] ^ 0x80;
        }
    });
}

/// `d | qs[16]`, `d * table[q]`.
#[inline(always)]
pub(super) fn iq4_nl(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 18, u, |i, b, out| {
        scale[i] = half_at(b, 0);
        for j in 0..16 {
            out[j] = IQ4_VALUES[usize::from(b[j + 2] & 15)];
            out[j + 16] = IQ4_VALUES[usize::from(b[j + 2] >> 4)];
        }
    });
}

/// Encodes floats as Q8_0 (used when an embedder is imported): `d = max|x| / 127`, round to nearest, ties away.
///
/// # Panics
/// When `x` is not a multiple of 32 long.
#[must_use]
pub fn quantize_q8_0(x: &[f32]) -> Vec<u8> {
    assert!(x.len().is_multiple_of(32), "Q8_0 rows are multiples of 32");
    let mut out = Vec::with_capacity(x.len() / 32 * 34);
    for block in x.chunks_exact(32) {
        let peak = block.iter().fold(0f32, |m, v| m.max(v.abs()));
        let d = peak / 127.0;
        let inverse = if d > 0.0 { 1.0 / d } else { 0.0 };
        out.extend_from_slice(&f16::from_f32(d).to_le_bytes());
        out.extend(block.iter().map(|v| (v * inverse).round() as i8 as u8));
    }
    out
}
