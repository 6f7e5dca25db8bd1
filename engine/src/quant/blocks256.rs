//! The formats with blocks of 256: Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_XS.

use super::blocks32::{IQ4_VALUES, half_at};

/// Blocks of a row with their 256 output bytes and the index of their first group.
macro_rules! each_block {
    ($row:expr, $bytes:literal, $u:expr, $groups:literal, |$g:ident, $b:ident, $out:ident| $body:block) => {
        for (i, ($b, $out)) in
            $row.as_chunks::<$bytes>().0.iter().zip($u.as_chunks_mut::<256>().0.iter_mut()).enumerate()
        {
            let $g = i * $groups;
            $body
        }
    };
}

/// `scales[16] (low nibble scale, high nibble min) | qs[64] | d | dmin`; `d*sc*q - dmin*m`.
/// Each half of 128 uses 32 bytes of `qs`; shifts 0, 2, 4, 6 give four runs of 32.
#[inline(always)]
pub(super) fn q2_k(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
    each_block!(row, 84, u, 16, |g, b, out| {
        let (d, dmin) = (half_at(b, 80), half_at(b, 82));
        for j in 0..16 {
            scale[g + j] = d * f32::from(b[j] & 15);
            min[g + j] = -dmin * f32::from(b[j] >> 4);
        }
        two_bits(&b[16..80], out);
    });
}

#[inline(always)]
fn two_bits(qs: &[u8], out: &mut [u8; 256]) {
    for half in 0..2 {
        for run in 0..4 {
            for l in 0..32 {
                out[half * 128 + run * 32 + l] = qs[half * 32 + l] >> (2 * run) & 3;
            }
        }
    }
}

/// `hmask[32] | qs[64] | scales[12] | d`; `d*(sc-32)*(q + 4*high - 4)`, the high bit of run `r` (0..8) being bit `r`
/// of `hmask[l]`. Scale `i`: low 4 bits in a nibble of the first 8 bytes, high 2 bits packed in the last 4.
#[inline(always)]
pub(super) fn q3_k(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 110, u, 16, |g, b, out| {
        let d = half_at(b, 108);
        let s = &b[96..108];
        for i in 0..16 {
            let low = if i < 8 { s[i] & 15 } else { s[i - 8] >> 4 };
            let high = s[8 + i % 4] >> (2 * (i / 4)) & 3;
            scale[g + i] = d * (i32::from(low | high << 4) - 32) as f32;
        }
        two_bits(&b[32..96], out);
        for run in 0..8 {
            for l in 0..32 {
                out[run * 32 + l] |= (b[l] >> run & 1) << 2;
            }
        }
    });
}

/// The 6-bit scales and minima of Q4_K and Q5_K.
#[inline(always)]
fn six_bit_scales(s: &[u8], d: f32, dmin: f32, scale: &mut [f32], min: &mut [f32]) {
    for j in 0..4 {
        scale[j] = d * f32::from(s[j] & 63);
        min[j] = -dmin * f32::from(s[j + 4] & 63);
        scale[j + 4] = d * f32::from((s[j + 8] & 15) | (s[j] >> 6) << 4);
        min[j + 4] = -dmin * f32::from((s[j + 8] >> 4) | (s[j + 4] >> 6) << 4);
    }
}

/// Four chunks of 64 elements, 32 bytes each: low nibbles first.
#[inline(always)]
fn nibble_chunks(qs: &[u8], out: &mut [u8; 256]) {
    for c in 0..4 {
        for l in 0..32 {
            out[c * 64 + l] = qs[c * 32 + l] & 15;
            out[c * 64 + 32 + l] = qs[c * 32 + l] >> 4;
        }
    }
}

/// `d | dmin | scales[12] | qs[128]`; `d*sc*q - dmin*m` in groups of 32.
#[inline(always)]
pub(super) fn q4_k(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
    each_block!(row, 144, u, 8, |g, b, out| {
        six_bit_scales(&b[4..16], half_at(b, 0), half_at(b, 2), &mut scale[g..g + 8], &mut min[g..g + 8]);
        nibble_chunks(&b[16..144], out);
    });
}

/// `d | dmin | scales[12] | qh[32] | qs[128]`; the fifth bit of group `g` is bit `g` of `qh[l]`.
#[inline(always)]
pub(super) fn q5_k(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
    each_block!(row, 176, u, 8, |g, b, out| {
        six_bit_scales(&b[4..16], half_at(b, 0), half_at(b, 2), &mut scale[g..g + 8], &mut min[g..g + 8]);
        nibble_chunks(&b[48..176], out);
        for run in 0..8 {
            for l in 0..32 {
                out[run * 32 + l] |= (b[16 + l] >> run & 1) << 4;
            }
        }
    });
}

/// `ql[128] | qh[64] | i8 scales[16] | d`; `d*sc*(q-32)` in groups of 16. A half of 128 takes 64 bytes of `ql` and 32 of
/// `qh`, whose bit pairs belong to the four quarters.
#[inline(always)]
pub(super) fn q6_k(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 210, u, 16, |g, b, out| {
        let d = half_at(b, 208);
        for i in 0..16 {
            scale[g + i] = d * f32::from(b[192 + i] as i8);
        }
        for half in 0..2 {
            let (ql, qh) = (&b[half * 64..half * 64 + 64], &b[128 + half * 32..160 + half * 32]);
            let out = &mut out[half * 128..half * 128 + 128];
            for l in 0..32 {
                out[l] = (ql[l] & 15) | (qh[l] & 3) << 4;
                out[l + 32] = (ql[l + 32] & 15) | (qh[l] >> 2 & 3) << 4;
                out[l + 64] = (ql[l] >> 4) | (qh[l] >> 4 & 3) << 4;
                out[l + 96] = (ql[l + 32] >> 4) | (qh[l] >> 6) << 4;
            }
        }
    });
}

/// `d | u16 scales_h | scales_l[4] | qs[128]`; `d*(sc-32)*table[q]` in groups of 32, each 16 bytes: low nibbles first.
#[inline(always)]
pub(super) fn iq4_xs(row: &[u8], u: &mut [u8], scale: &mut [f32]) {
    each_block!(row, 136, u, 8, |g, b, out| {
        let d = half_at(b, 0);
        let high = u16::from_le_bytes([b[2], b[3]]);
        for j in 0..8 {
            let low = b[4 + j / 2] >> (4 * (j % 2)) & 15;
            scale[g + j] = d * (i32::from(low) + i32::from(high >> (2 * j) & 3) * 16 - 32) as f32;
            for l in 0..16 {
                let q = b[8 + j * 16 + l];
                out[j * 32 + l] = IQ4_VALUES[usize::from(q & 15)];
                out[j * 32 + 16 + l] = IQ4_VALUES[usize::from(q >> 4)];
            }
        }
    });
}
