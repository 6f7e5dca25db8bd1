//! Norms and activations: plain loops, compiled once per instruction set.

use super::Activation;

/// `a * b + c`, fused where the instruction set has it (`mul_add` without it would call a library function).
#[inline(always)]
pub(super) fn fma<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// e^x. Reduction by `x = n ln 2 + r`, then a degree-6 polynomial for e^r on |r| <= ln2/2 (Taylor coefficients, error
/// below 1.2e-7 relative); clamped to the normal range, so the result is never infinite or subnormal.
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = fma::<FUSED>(x, std::f32::consts::LOG2_E, 12_582_912.0);
    let n = shifted - 12_582_912.0;
    // ln 2 in two parts, so that r keeps its low bits.
    let r = fma::<FUSED>(n, -0.693_359_4, x);
    let r = fma::<FUSED>(n, 2.121_944_4e-4, r);
    let p = fma::<FUSED>(r, 1.0 / 720.0, 1.0 / 120.0);
    let p = fma::<FUSED>(p, r, 1.0 / 24.0);
    let p = fma::<FUSED>(p, r, 1.0 / 6.0);
    let p = fma::<FUSED>(p, r, 0.5);
    let p = fma::<FUSED>(p, r, 1.0);
    let p = fma::<FUSED>(p, r, 1.0);
    let scale = f32::from_bits(((shifted.to_bits() as i32).wrapping_sub(0x4b40_0000 - 127) << 23) as u32);
    p * scale
}

#[inline(always)]
fn silu<const FUSED: bool>(x: f32) -> f32 {
    x / (1.0 + exp::<FUSED>(-x))
}

/// `0.5 x (1 + tanh(y))` with `y = sqrt(2/pi) (x + 0.044715 x^3)` is `x * sigmoid(2y)`.
#[inline(always)]
fn gelu_tanh<const FUSED: bool>(x: f32) -> f32 {
    let y2 = 1.595_769 * x * fma::<FUSED>(0.044_715, x * x, 1.0);
    x / (1.0 + exp::<FUSED>(-y2))
}

/// `0.5 x (1 + erf(x / sqrt 2))`; erf by Abramowitz and Stegun 7.1.26, absolute error below 1.5e-7.
#[inline(always)]
fn gelu_erf<const FUSED: bool>(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / fma::<FUSED>(0.327_591_1, z, 1.0);
    let p = fma::<FUSED>(t, 1.061_405_4, -1.453_152_1);
    let p = fma::<FUSED>(p, t, 1.421_413_8);
    let p = fma::<FUSED>(p, t, -0.284_496_72);
    let p = fma::<FUSED>(p, t, 0.254_829_6);
    let tail = p * t * exp::<FUSED>(-z * z);
    let erf = (1.0 - tail).copysign(x);
    0.5 * x * (1.0 + erf)
}

#[inline(always)]
fn map<const FUSED: bool>(f: Activation, x: &mut [f32], mut finish: impl FnMut(usize, f32) -> f32) {
    match f {
        Activation::Silu => x.iter_mut().enumerate().for_each(|(i, v)| *v = finish(i, silu::<FUSED>(*v))),
        Activation::GeluTanh => x.iter_mut().enumerate().for_each(|(i, v)| *v = finish(i, gelu_tanh::<FUSED>(*v))),
        Activation::GeluErf => x.iter_mut().enumerate().for_each(|(i, v)| *v = finish(i, gelu_erf::<FUSED>(*v))),
    }
}

#[inline(always)]
pub(super) fn gate<const FUSED: bool>(f: Activation, gate: &mut [f32], up: &[f32]) {
    let up = &up[..gate.len()];
    map::<FUSED>(f, gate, |i, v| v * up[i]);
}

#[inline(always)]
pub(super) fn activate<const FUSED: bool>(f: Activation, x: &mut [f32]) {
    map::<FUSED>(f, x, |_, v| v);
}

/// Sum over 16 lanes, then the lanes in order: the same on every instruction set up to fused rounding.
#[inline(always)]
fn sum_by(x: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0f32; 16];
    let (blocks, rest) = x.as_chunks::<16>();
    for b in blocks {
        for j in 0..16 {
            lanes[j] = f(lanes[j], b[j]);
        }
    }
    for (j, v) in rest.iter().enumerate() {
        lanes[j] = f(lanes[j], *v);
    }
    lanes.iter().sum()
}

#[inline(always)]
pub(super) fn rms_norm<const FUSED: bool>(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let squares = sum_by(x, |acc, v| fma::<FUSED>(v, v, acc));
    let scale = 1.0 / (squares / x.len() as f32 + eps).sqrt();
    for ((o, v), w) in out.iter_mut().zip(x).zip(weight) {
        *o = v * scale * w;
    }
}

#[inline(always)]
pub(super) fn layer_norm<const FUSED: bool>(x: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
    let n = x.len() as f32;
    let mean = sum_by(x, |acc, v| acc + v) / n;
    let variance = sum_by(x, |acc, v| fma::<FUSED>(v - mean, v - mean, acc)) / n;
    let scale = 1.0 / (variance + eps).sqrt();
    for ((v, w), b) in x.iter_mut().zip(weight).zip(bias) {
        *v = fma::<FUSED>((*v - mean) * scale, *w, *b);
    }
}
