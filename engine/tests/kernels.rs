//! Every available table of kernels against floats and against the scalar reference, for every format and odd shapes.
//!
//! A program of its own, without threads and without the test harness, which would start them: so it also runs under an
//! emulator of another processor (`.ci/aarch64.sh`). Arguments are parts of the names of checks to run; without any, all
//! run. It ends with a failure at the first check that fails, which panics with what differed.
#![allow(clippy::print_stdout, reason = "a program for the shell")]

use satchel_engine::kernels::{
    Activation, Attention, AttentionScratch, CACHE_BLOCK, Cached, Kernels, Matrix, Output, Panel, to_bytes,
};
use satchel_engine::pool::Disjoint;
use satchel_engine::quant::{ActMatrix, GEMV_COLUMNS, TensorType};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let tables: Vec<&str> = Kernels::available().iter().map(|k| k.name()).collect();
    println!("tables: {}", tables.join(" "));
    // As a test of the workspace this program is also asked for a list of its tests: it has none that can be picked.
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    macro_rules! checks {
        ($($name:ident)*) => { [$((stringify!($name), $name as fn())),*] };
    }
    let checks = checks!(
        products_of_every_format_agree_with_floats_on_every_instruction_set
        the_largest_products_do_not_saturate
        attention_agrees_with_the_definition
        activations_stay_within_their_stated_errors
        quantized_activations_are_the_same_everywhere
        the_extremes_of_every_format_do_not_overflow
        results_do_not_depend_on_the_number_of_columns
        norms_and_gates_agree_with_their_definitions
    );
    for (name, check) in checks {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            check();
            println!("{name}: ok");
        }
    }
}

/// A small generator (xorshift) so that cases can be repeated by seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }
}

/// Where a block has its halves: scales and minima.
fn half_places(ty: TensorType) -> &'static [usize] {
    match ty {
        TensorType::Q2_K => &[80, 82],
        TensorType::Q3_K => &[108],
        TensorType::Q6_K => &[208],
        TensorType::Q4_K | TensorType::Q5_K | TensorType::Q4_1 | TensorType::Q5_1 => &[0, 2],
        _ => &[0],
    }
}

/// Random blocks with small, finite scales.
fn random_rows(ty: TensorType, rows: usize, columns: usize, rng: &mut Random) -> Vec<u8> {
    let mut data: Vec<u8> = (0..rows * ty.row_bytes(columns)).map(|_| rng.next() as u8).collect();
    for block in data.chunks_exact_mut(ty.block_bytes()) {
        if ty == TensorType::F32 {
            block.copy_from_slice(&rng.float().to_le_bytes());
            continue;
        }
        for &at in half_places(ty) {
            let v = rng.float() * 0.1;
            let bytes = if ty == TensorType::BF16 {
                half::bf16::from_f32(v).to_le_bytes()
            } else {
                half::f16::from_f32(v).to_le_bytes()
            };
            block[at..at + 2].copy_from_slice(&bytes);
        }
    }
    data
}

fn product(k: &Kernels, m: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let tokens = x.len() / m.columns;
    let mut out = vec![f32::NAN; tokens * m.rows];
    let output = Output { data: Disjoint::new(&mut out), stride: m.rows };
    if m.ty.is_float() {
        // SAFETY: one thread, `out` is borrowed above.
        unsafe { k.float(m, 0..m.rows, x, output, &mut Vec::new()) };
        return out;
    }
    let mut a = ActMatrix::default();
    a.resize(tokens, m.columns);
    let n = a.tile_columns();
    for (mut tile, x) in a.tiles_mut().zip(x.chunks(n * m.columns)) {
        k.quantize(&mut tile, x, m.columns);
    }
    // SAFETY: one thread, `out` is borrowed above.
    unsafe {
        if n == 1 { k.gemv(m, 0..m.rows, &a, output) } else { k.gemm(m, 0..m.rows, &a, output, &mut Panel::default()) }
    }
    out
}

/// Products of dequantized weights and rounded activations, in f64.
fn reference(m: &Matrix<'_>, x: &[f32]) -> Vec<f64> {
    let mut w = vec![0f32; m.columns];
    let mut out = vec![0f64; x.len() / m.columns * m.rows];
    for r in 0..m.rows {
        m.ty.dequantize(m.row(r), &mut w);
        for (c, x) in x.chunks_exact(m.columns).enumerate() {
            out[c * m.rows + r] = w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
        }
    }
    out
}

/// Activations that int8 blocks hold exactly: multiples of 1/127 of a peak that is always present.
fn exact_activations(n: usize, rng: &mut Random) -> Vec<f32> {
    (0..n).map(|i| if i % 32 == 5 { 127.0 } else { (rng.next() % 255) as f32 - 127.0 }).collect()
}

fn products_of_every_format_agree_with_floats_on_every_instruction_set() {
    let mut rng = Random(0x5eed);
    for k in Kernels::available() {
        for ty in TensorType::ALL {
            for (rows, blocks, tokens) in
                [(1, 1, 1), (17, 3, 1), (5, 2, 2), (19, 5, 3), (33, 3, 13), (16, 9, 5), (50, 2, 29)]
            {
                let columns = if ty.block_len() == 256 { 256 * blocks } else { 96 * blocks };
                let data = random_rows(ty, rows, columns, &mut rng);
                let m = Matrix { ty, rows, columns, data: &data };
                let x = exact_activations(tokens * columns, &mut rng);
                let (got, want) = (product(k, &m, &x), reference(&m, &x));
                // The integers are exact; floats round: a bound relative to the sum of magnitudes.
                let mut w = vec![0f32; columns];
                for (i, (g, e)) in got.iter().zip(&want).enumerate() {
                    ty.dequantize(m.row(i % rows), &mut w);
                    let size: f64 = w.iter().map(|w| f64::from(w.abs()) * 127.0).sum();
                    let error = (f64::from(*g) - e).abs();
                    assert!(error <= size * 1e-5, "{k:?} {ty} {rows}x{columns} x{tokens} [{i}]: {g} and {e}");
                }
            }
        }
    }
}

fn the_largest_products_do_not_saturate() {
    for k in Kernels::available() {
        for (fill, sign) in [(0xffu8, 1.0f32), (0xff, -1.0), (0x80, 1.0), (0x7f, -1.0), (0x00, 1.0)] {
            let mut block = vec![fill; 34];
            block[..2].copy_from_slice(&half::f16::from_f32(1.0).to_le_bytes());
            let m = Matrix { ty: TensorType::Q8_0, rows: 1, columns: 32, data: &block };
            for tokens in [1, 12] {
                let x = vec![127.0 * sign; 32 * tokens];
                let want = f64::from(fill as i8) * 127.0 * f64::from(sign) * 32.0;
                for got in product(k, &m, &x) {
                    assert!((f64::from(got) - want).abs() < 1.0, "{k:?} {fill:#x}: {got} and {want}");
                }
            }
        }
    }
}

/// `k` and `v` as floats, laid out as in the cache.
fn naive_attention(a: &Attention<'_>, k: &[f32], values: &[f32]) -> Vec<f64> {
    let (hd, tokens) = (a.head_dim, a.tokens());
    let mut out = vec![0f64; a.q.len()];
    for t in 0..tokens {
        let end = if a.causal { a.start + t + 1 } else { a.start + tokens };
        let from = a.window.map_or(0, |w| (a.start + t + 1).saturating_sub(w));
        for h in 0..a.heads {
            let q = &a.q[(t * a.heads + h) * hd..][..hd];
            let at = |p: usize| (h / (a.heads / a.kv_heads) * a.capacity + p) * hd;
            let s: Vec<f64> = (from..end)
                .map(|p| {
                    q.iter()
                        .zip(&k[at(p)..at(p) + hd])
                        .map(|(q, k)| f64::from(*q) * f64::from(a.scale) * f64::from(*k))
                        .sum()
                })
                .collect();
            let max = s.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
            let total: f64 = s.iter().map(|v| (v - max).exp()).sum();
            for (p, v) in (from..end).zip(&s) {
                for d in 0..hd {
                    out[(t * a.heads + h) * hd + d] += (v - max).exp() / total * f64::from(values[at(p) + d]);
                }
            }
        }
    }
    out
}

fn attention_agrees_with_the_definition() {
    let mut rng = Random(77);
    for (tokens, start, causal, window) in [
        (1, 0, true, None),
        (1, 130, true, Some(70)),
        (1, 150, true, None),
        (70, 0, true, None),
        (33, 100, true, None),
        (40, 90, true, Some(50)),
        (65, 0, false, None),
    ] {
        for (heads, kv_heads, head_dim) in [(6, 2, 32), (5, 1, 64), (14, 2, 96)] {
            let capacity = 200;
            let q: Vec<f32> = (0..tokens * heads * head_dim).map(|_| rng.float() * 2.0).collect();
            let mut cache = || (0..kv_heads * capacity * head_dim).map(|_| half::f16::from_f32(rng.float())).collect();
            let (k, v): (Vec<half::f16>, Vec<half::f16>) = (cache(), cache());
            let to_floats = |x: &[half::f16]| x.iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
            let (k8, v8) = (bytes(&to_floats(&k)), bytes(&to_floats(&v)));
            let halves = (Cached::F16(&k), Cached::F16(&v), to_floats(&k), to_floats(&v));
            let rounded = (Cached::Q8(&k8.0, &k8.1), Cached::Q8(&v8.0, &v8.1), from_bytes(&k8), from_bytes(&v8));
            let (kf, vf) = (to_floats(&k), to_floats(&v));
            let floats = (Cached::F32(&kf), Cached::F32(&vf), kf.clone(), vf.clone());
            for (k, v, k_floats, v_floats) in [floats, halves, rounded] {
                let a = Attention {
                    q: &q,
                    scale: 0.7,
                    k,
                    v,
                    heads,
                    kv_heads,
                    head_dim,
                    head_stride: capacity * head_dim,
                    row_stride: head_dim,
                    capacity,
                    start,
                    causal,
                    window,
                };
                let want = naive_attention(&a, &k_floats, &v_floats);
                for kernels in Kernels::available() {
                    let mut out = vec![f32::NAN; q.len()];
                    let output = Output { data: Disjoint::new(&mut out), stride: heads * head_dim };
                    for head in 0..kv_heads {
                        for t in (0..tokens).step_by(16) {
                            let range = t..(t + 16).min(tokens);
                            // SAFETY: one thread.
                            unsafe { kernels.attention(&a, head, range, output, &mut AttentionScratch::default()) };
                        }
                    }
                    for (g, e) in out.iter().zip(&want) {
                        assert!(
                            (f64::from(*g) - e).abs() < 2e-5,
                            "{kernels:?} {tokens} tokens from {start}: {g} and {e}"
                        );
                    }
                }
            }
        }
    }
}

/// Rows as the 8-bit cache holds them.
fn bytes(x: &[f32]) -> (Vec<i8>, Vec<half::f16>) {
    let (mut q, mut scale) = (vec![0; x.len()], vec![half::f16::ZERO; x.len() / CACHE_BLOCK]);
    to_bytes(x, &mut q, &mut scale);
    (q, scale)
}

fn from_bytes((q, scale): &(Vec<i8>, Vec<half::f16>)) -> Vec<f32> {
    q.iter().enumerate().map(|(i, q)| f32::from(*q) * scale[i / CACHE_BLOCK].to_f32()).collect()
}

fn activations_stay_within_their_stated_errors() {
    let erf = |x: f64| {
        // Series for small arguments, continued fraction is not needed in the tested range.
        let (mut term, mut total) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            total += term / f64::from(2 * n + 1);
        }
        total * 2.0 / std::f64::consts::PI.sqrt()
    };
    let xs: Vec<f32> = (-4000..=4000).map(|i| i as f32 / 1000.0).collect();
    for k in Kernels::available() {
        for (f, want) in [
            (Activation::Silu, (&|x: f64| x / (1.0 + (-x).exp())) as &dyn Fn(f64) -> f64),
            (Activation::GeluTanh, &|x| {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
            }),
            (Activation::GeluErf, &|x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()))),
        ] {
            let mut got = xs.clone();
            k.activate(f, &mut got);
            for (x, g) in xs.iter().zip(&got) {
                let e = want(f64::from(*x));
                assert!((f64::from(*g) - e).abs() < 2e-6, "{k:?} {f:?}({x}): {g} and {e}");
            }
        }
    }
}

fn quantized(k: &Kernels, x: &[f32], tokens: usize) -> ActMatrix {
    let (mut a, width) = (ActMatrix::default(), x.len() / tokens);
    a.resize(tokens, width);
    let n = a.tile_columns();
    for (mut tile, x) in a.tiles_mut().zip(x.chunks(n * width)) {
        k.quantize(&mut tile, x, width);
    }
    a
}

fn quantized_activations_are_the_same_everywhere() {
    let mut rng = Random(0xac7);
    let width = 160;
    for tokens in [1, 4, 13, 30] {
        let mut x: Vec<f32> =
            (0..tokens * width).map(|_| rng.float() * 10f32.powi((rng.next() % 60) as i32 - 30)).collect();
        // Ties, a block of zeros, one of subnormals, and values that are not finite.
        x[..32].fill(0.0);
        x[32..64].fill(f32::MIN_POSITIVE / 3.0);
        (64..96).for_each(|i| x[i] = (i as f32 - 80.0) * 0.5);
        x[64] = 127.0;
        (x[96], x[130]) = (f32::NAN, f32::INFINITY);
        let tables = Kernels::available();
        let want = quantized(tables[0], &x, tokens);
        for k in &tables[1..] {
            let got = quantized(k, &x, tokens);
            for t in 0..want.tiles() {
                let (g, w) = (got.tile(t), want.tile(t));
                assert!(g.q == w.q, "{k:?}: tile {t} of {tokens} tokens");
                for (g, w) in [(g.scale, w.scale), (g.sum32, w.sum32), (g.sum16, w.sum16)] {
                    let same = g.iter().zip(w).all(|(g, w)| g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan()));
                    assert!(same, "{k:?}: scales or sums of tile {t} of {tokens} tokens");
                }
            }
        }
    }
}

/// Rows whose bytes are all `fill`, with scales of 1.
fn filled_rows(ty: TensorType, rows: usize, columns: usize, fill: u8) -> Vec<u8> {
    let mut data = vec![fill; rows * ty.row_bytes(columns)];
    let one = half::f16::ONE.to_le_bytes();
    for block in data.chunks_exact_mut(ty.block_bytes()) {
        for &at in half_places(ty) {
            block[at..at + 2].copy_from_slice(&one);
        }
    }
    data
}

fn the_extremes_of_every_format_do_not_overflow() {
    for k in Kernels::available() {
        for ty in TensorType::ALL.into_iter().filter(|t| !t.is_float()) {
            for fill in [0x00u8, 0xff, 0x80, 0x7f, 0x88, 0x77, 0xf0, 0x0f] {
                for tokens in [1, 4, 13] {
                    let (rows, columns) = (17, 512);
                    let data = filled_rows(ty, rows, columns, fill);
                    let m = Matrix { ty, rows, columns, data: &data };
                    // Blocks of one sign, and of both: sums at their largest, and at nothing.
                    for signs in [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]] {
                        let x: Vec<f32> = (0..tokens * columns).map(|i| 127.0 * signs[i % 2]).collect();
                        let (got, want) = (product(k, &m, &x), reference(&m, &x));
                        let mut w = vec![0f32; columns];
                        ty.dequantize(m.row(0), &mut w);
                        // The offset is a term of its own: its size is that of the largest weight.
                        let size = w.iter().fold(f64::from(ty.zero()), |s, w| s.max(f64::from(w.abs())));
                        let bound = size * 64.0 * 127.0 * columns as f64 * 1e-6;
                        for (g, e) in got.iter().zip(&want) {
                            let error = (f64::from(*g) - e).abs();
                            assert!(error <= bound, "{k:?} {ty} {fill:#x} {signs:?} x{tokens}: {g} and {e}");
                        }
                    }
                }
            }
        }
    }
}

fn results_do_not_depend_on_the_number_of_columns() {
    let mut rng = Random(0xc01);
    for k in Kernels::available() {
        for ty in TensorType::ALL.into_iter().filter(|t| !t.is_float()) {
            let (rows, columns) = (5, if ty.block_len() == 256 { 512 } else { 224 });
            let data = random_rows(ty, rows, columns, &mut rng);
            let m = Matrix { ty, rows, columns, data: &data };
            let x: Vec<f32> = (0..GEMV_COLUMNS * columns).map(|_| rng.float()).collect();
            let all = product(k, &m, &x);
            for n in 1..GEMV_COLUMNS {
                let some = product(k, &m, &x[..n * columns]);
                assert!(some == all[..n * rows], "{k:?} {ty}: {n} columns and {GEMV_COLUMNS}");
            }
        }
    }
}

fn norms_and_gates_agree_with_their_definitions() {
    let mut rng = Random(0x4042);
    let floats = |n: usize, rng: &mut Random| (0..n).map(|_| rng.float() * 3.0).collect::<Vec<f32>>();
    for n in [1, 31, 576] {
        let (x, w, b) = (floats(n, &mut rng), floats(n, &mut rng), floats(n, &mut rng));
        let wide: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        let mean = wide.iter().sum::<f64>() / n as f64;
        let square = wide.iter().map(|x| x * x).sum::<f64>() / n as f64;
        let variance = wide.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
        for k in Kernels::available() {
            let mut rms = vec![0f32; n];
            k.rms_norm(&x, &w, 1e-5, &mut rms);
            let mut layer = x.clone();
            k.layer_norm(&mut layer, &w, &b, 1e-5);
            let mut gated = x.clone();
            k.gate(Activation::Silu, &mut gated, &w);
            for i in 0..n {
                let (xi, wi, bi) = (wide[i], f64::from(w[i]), f64::from(b[i]));
                for (got, want) in [
                    (rms[i], xi / (square + 1e-5).sqrt() * wi),
                    (layer[i], (xi - mean) / (variance + 1e-5).sqrt() * wi + bi),
                    (gated[i], xi / (1.0 + (-xi).exp()) * wi),
                ] {
                    assert!((f64::from(got) - want).abs() < 1e-5, "{k:?} {n} [{i}]: {got} and {want}");
                }
            }
        }
    }
}
