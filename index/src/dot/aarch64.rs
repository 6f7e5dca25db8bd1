//! AArch64: NEON, which is always there, and its byte dot products.

use super::Kernel;

/// What this machine runs, slowest first.
pub(super) fn available() -> Vec<Kernel> {
    let mut all = vec![neon::KERNEL];
    if std::arch::is_aarch64_feature_detected!("dotprod") {
        all.push(dotprod::KERNEL);
    }
    all
}

/// Components taken at once.
const WIDTH: usize = 16;

/// Brings `len` bytes near.
#[inline(always)]
fn fetch(start: *const i8, len: usize) {
    for at in (0..len).step_by(64) {
        // SAFETY: a hint; every processor has it, and no address is wrong for it.
        unsafe { std::arch::asm!("prfm pldl1keep, [{}]", in(reg) start.wrapping_add(at), options(nostack, readonly)) };
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[i8; WIDTH]) -> std::arch::aarch64::int8x16_t {
    // SAFETY: the array is 16 bytes long, which is what is read.
    unsafe { std::arch::aarch64::vld1q_s8(bytes.as_ptr()) }
}

mod neon {
    use std::arch::aarch64::{vaddvq_s32, vdupq_n_s32, vget_low_s8, vmull_high_s8, vmull_s8, vpadalq_s16};

    use super::super::dot_plain;
    use super::{WIDTH, load};

    super::super::kernel!(
        "neon",
        #[target_feature(enable = "neon")]
        compare,
        super::fetch
    );

    #[target_feature(enable = "neon")]
    #[inline]
    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        let (heads, tail) = query.as_chunks::<WIDTH>();
        let rows = rows.map(|row| row.as_chunks::<WIDTH>());
        let mut sums = [vdupq_n_s32(0); N];
        for (i, q) in heads.iter().enumerate() {
            let q = load(q);
            for n in 0..N {
                let row = load(&rows[n].0[i]);
                // One product of bytes fits 16 bits, whatever they are; two need not.
                sums[n] = vpadalq_s16(sums[n], vmull_s8(vget_low_s8(q), vget_low_s8(row)));
                sums[n] = vpadalq_s16(sums[n], vmull_high_s8(q, row));
            }
        }
        std::array::from_fn(|n| vaddvq_s32(sums[n]) + dot_plain(tail, rows[n].1))
    }
}

mod dotprod {
    use std::arch::aarch64::{int8x16_t, int32x4_t, vaddvq_s32, vdupq_n_s32};
    use std::arch::asm;

    use super::super::dot_plain;
    use super::{WIDTH, load};

    super::super::kernel!(
        "neon-dotprod",
        #[target_feature(enable = "neon,dotprod")]
        compare,
        super::fetch
    );

    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    fn compare<const N: usize>(query: &[i8], rows: [&[i8]; N]) -> [i32; N] {
        let (heads, tail) = query.as_chunks::<WIDTH>();
        let rows = rows.map(|row| row.as_chunks::<WIDTH>());
        let mut sums = [vdupq_n_s32(0); N];
        for (i, q) in heads.iter().enumerate() {
            let q = load(q);
            for n in 0..N {
                sums[n] = sdot(sums[n], load(&rows[n].0[i]), q);
            }
        }
        std::array::from_fn(|n| vaddvq_s32(sums[n]) + dot_plain(tail, rows[n].1))
    }

    /// Adds four products to each of four sums. The intrinsic is not in the stable compiler; the directive tells the
    /// assembler of the instruction.
    #[target_feature(enable = "neon,dotprod")]
    #[inline]
    fn sdot(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
        // SAFETY: one instruction on registers, of a feature that this function asks for.
        unsafe {
            asm!(
                ".arch_extension dotprod",
                "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
                sums = inout(vreg) sums,
                a = in(vreg) a,
                b = in(vreg) b,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        sums
    }
}
