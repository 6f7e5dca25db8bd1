//! Matrix products by storage type and instruction set, on one thread.
//!
//! Guards the kernels apart from the models: `gemv` is what decode is made of (reported as bytes of weights a second,
//! to hold against the machine's read rate, and as multiplications a nanosecond), `gemm` what prefill is made of. Two
//! sizes: a matrix that stays in the cache shows the arithmetic, one that does not shows the memory.
//!
//! `cargo bench -p satchel-engine --bench products [-- TYPE...]`
#![allow(clippy::print_stdout, reason = "a program for the shell")]

use std::time::Instant;

use satchel_engine::kernels::{Kernels, Matrix, Output, Panel};
use satchel_engine::pool::Disjoint;
use satchel_engine::quant::{ActMatrix, TensorType};

const COLUMNS: usize = 1536;
/// Rows that fit the second-level cache with any type, and rows that fit no cache.
const ROWS: [usize; 2] = [256, 65536];
/// Rows of a job of the engine in matrix-vector products.
const JOB_ROWS: usize = 64;
const ROUNDS: usize = 9;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let types = TensorType::ALL.into_iter().filter(|t| !t.is_float());
    println!("{:8} {:12} {:>6} {:>8}  {:>8} {:>9}", "type", "kernels", "rows", "tokens", "GB/s", "MAC/ns");
    for ty in types.filter(|t| wanted.is_empty() || wanted.contains(&t.to_string())) {
        for kernels in Kernels::available() {
            if kernels.name() == "scalar" {
                continue;
            }
            for (rows, tokens) in [(ROWS[0], 1), (ROWS[1], 1), (ROWS[0], 4), (ROWS[0], 8), (ROWS[0], 48), (1024, 504)] {
                let seconds = measure(kernels, ty, rows, tokens);
                let bytes = (rows * ty.row_bytes(COLUMNS)) as f64 / seconds / 1e9;
                let macs = (rows * COLUMNS * tokens) as f64 / seconds / 1e9;
                println!("{:8} {:12} {rows:6} {tokens:8}  {bytes:8.1} {macs:9.1}", ty.to_string(), kernels.name());
            }
        }
    }
}

/// Seconds of a product, the least of several.
fn measure(kernels: &Kernels, ty: TensorType, rows: usize, tokens: usize) -> f64 {
    // Any bytes are valid blocks; their values do not matter for time. Scales are kept from being subnormal.
    let data: Vec<u8> = (0..rows * ty.row_bytes(COLUMNS)).map(|i| (i % 61) as u8 + 1).collect();
    let m = Matrix { ty, rows, columns: COLUMNS, data: &data };
    let x: Vec<f32> = (0..tokens * COLUMNS).map(|i| ((i * 37) % 255) as f32 - 127.0).collect();
    let mut a = ActMatrix::default();
    a.resize(tokens, COLUMNS);
    let n = a.tile_columns();
    for (mut tile, x) in a.tiles_mut().zip(x.chunks(n * COLUMNS)) {
        kernels.quantize(&mut tile, x, COLUMNS);
    }
    let mut out = vec![0f32; tokens * rows];
    let mut panel = Panel::default();
    let repeats = (50_000_000 / (rows * COLUMNS * tokens)).max(1);
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..repeats {
                let output = Output { data: Disjoint::new(&mut out), stride: rows };
                // SAFETY: one thread; `out` is borrowed above.
                unsafe {
                    if n == 1 {
                        // As the engine does: jobs of a few rows.
                        for from in (0..rows).step_by(JOB_ROWS) {
                            kernels.gemv(&m, from..(from + JOB_ROWS).min(rows), &a, output);
                        }
                    } else {
                        kernels.gemm(&m, 0..rows, &a, output, &mut panel);
                    }
                }
            }
            start.elapsed().as_secs_f64() / repeats as f64
        })
        .fold(f64::INFINITY, f64::min)
}
