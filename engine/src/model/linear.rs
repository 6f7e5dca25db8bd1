//! A weight matrix of the file, and products with it on all threads.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::LoadError;
use crate::gguf::Gguf;
use crate::kernels::{AttentionScratch, Kernels, Matrix, Output, PANEL_ROWS, Panel};
use crate::mapping::Mapping;
use crate::pool::{Disjoint, Pool};
use crate::quant::{ActMatrix, TensorType};

/// Where a matrix lies, `(rows, columns)`: outputs by inputs, with an optional bias of `rows` floats.
#[derive(Debug, Clone)]
pub struct Linear {
    ty: TensorType,
    rows: usize,
    columns: usize,
    bytes: Range<usize>,
    bias: Option<Vec<f32>>,
}

impl Linear {
    /// Finds `{name}.weight` and checks its shape; takes `{name}.bias` along when it is there.
    ///
    /// # Errors
    /// [`LoadError::MissingTensor`] and [`LoadError::Shape`].
    pub fn find(gguf: &Gguf, name: &str, rows: usize, columns: usize) -> Result<Self, LoadError> {
        let full = format!("{name}.weight");
        let info = gguf.tensor(&full).ok_or_else(|| LoadError::MissingTensor(full.clone()))?;
        let expected = [columns as u64, rows as u64];
        if info.dims != expected {
            return Err(LoadError::Shape { tensor: full, found: info.dims.clone(), expected: expected.to_vec() });
        }
        if !info.ty.is_float() && !columns.is_multiple_of(32) {
            let what = format!("rows of {columns} are not a multiple of 32");
            return Err(LoadError::TensorLayout { tensor: full, what });
        }
        let bias = format!("{name}.bias");
        let bias = gguf.tensor(&bias).map(|_| floats(gguf, &bias, rows)).transpose()?;
        let bytes = info.start as usize..(info.start + info.bytes) as usize;
        Ok(Self { ty: info.ty, rows, columns, bytes, bias })
    }

    /// Bytes of the weights.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Elements of the weights.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.rows * self.columns
    }

    pub(super) fn bias(&self) -> Option<&[f32]> {
        self.bias.as_deref()
    }

    pub(super) fn matrix<'a>(&self, mapping: &'a Mapping) -> Matrix<'a> {
        let data = &mapping.bytes()[self.bytes.clone()];
        Matrix { ty: self.ty, rows: self.rows, columns: self.columns, data }
    }
}

/// Reads a float vector of `n` elements.
pub(super) fn floats(gguf: &Gguf, name: &str, n: usize) -> Result<Vec<f32>, LoadError> {
    let info = gguf.tensor(name).ok_or_else(|| LoadError::MissingTensor(name.to_owned()))?;
    if info.dims.iter().product::<u64>() != n as u64 || info.dims[0] != n as u64 {
        return Err(LoadError::Shape { tensor: name.to_owned(), found: info.dims.clone(), expected: vec![n as u64] });
    }
    let mut out = vec![0.0; n];
    info.ty.dequantize(gguf.data(info), &mut out);
    Ok(out)
}

/// Buffers of one worker; they grow to the largest matrix and stay.
#[derive(Debug, Default)]
pub(crate) struct WorkerScratch {
    pub(super) panel: Panel,
    pub(super) row: Vec<f32>,
    pub(super) attention: AttentionScratch,
}

/// What computing needs besides weights: kernels, threads, and a scratch each.
#[derive(Debug)]
pub(crate) struct Compute<'a> {
    pub(crate) kernels: &'static Kernels,
    pub(crate) pool: &'a Pool,
    pub(crate) workers: &'a [Mutex<WorkerScratch>],
}

/// One scratch for each thread of a pool.
pub(crate) fn workers(pool: &Pool) -> Vec<Mutex<WorkerScratch>> {
    (0..pool.threads()).map(|_| Mutex::default()).collect()
}

/// Rows of a job in matrix-vector products: a few microseconds of work, so that the counter is no bottleneck and a
/// slow core delays the others little.
const GEMV_ROWS: usize = 64;

impl Compute<'_> {
    /// Calls `work(scratch, job)` for all jobs on all threads.
    pub(super) fn each(&self, jobs: usize, work: impl Fn(&mut WorkerScratch, usize) + Sync) {
        self.pool.run(jobs, |worker, job| {
            // Uncontended: a worker runs one job at a time.
            let mut scratch = self.workers[worker].lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut scratch, job);
        });
    }

    /// Quantizes `x`, `(tokens, width)`, into `a`.
    pub(super) fn quantize(&self, x: &[f32], width: usize, a: &mut ActMatrix) {
        a.resize(x.len() / width, width);
        let n = a.tile_columns() * width;
        let tiles: Vec<Mutex<_>> = a.tiles_mut().map(Mutex::new).collect();
        let job = |t: usize| {
            let mut tile = tiles[t].lock().unwrap_or_else(PoisonError::into_inner);
            self.kernels.quantize(&mut tile, &x[t * n..((t + 1) * n).min(x.len())], width);
        };
        if tiles.len() == 1 { job(0) } else { self.pool.run(tiles.len(), |_, t| job(t)) }
    }

    /// `out = x . w^T + bias` for several matrices with the same input, in one parallel region. `a` is `x` quantized;
    /// outputs are `(tokens, rows)`.
    pub(super) fn project(&self, mapping: &Mapping, x: &[f32], a: &ActMatrix, products: &mut [(&Linear, &mut [f32])]) {
        let tokens = a.columns();
        let step = if a.tile_columns() == 1 { GEMV_ROWS } else { PANEL_ROWS };
        let parts: Vec<(&Linear, Output)> = products
            .iter_mut()
            .map(|(w, out)| (*w, Output { data: Disjoint::new(&mut out[..tokens * w.rows]), stride: w.rows }))
            .collect();
        let jobs = parts.iter().map(|(w, _)| w.rows.div_ceil(step)).sum();
        self.each(jobs, |scratch, mut job| {
            for (w, out) in &parts {
                let n = w.rows.div_ceil(step);
                if job >= n {
                    job -= n;
                    continue;
                }
                let rows = job * step..((job + 1) * step).min(w.rows);
                // SAFETY: jobs have disjoint rows of disjoint outputs, which stay borrowed during `each`.
                unsafe { self.product(&w.matrix(mapping), rows.clone(), x, a, *out, scratch) };
                if let Some(bias) = w.bias() {
                    for t in 0..tokens {
                        // SAFETY: the same rows of the same job.
                        let o = unsafe { out.data.part(t * out.stride + rows.start, rows.len()) };
                        o.iter_mut().zip(&bias[rows.clone()]).for_each(|(o, b)| *o += b);
                    }
                }
                return;
            }
        });
    }

    /// # Safety
    /// As [`Kernels::gemv`].
    unsafe fn product(
        &self,
        m: &Matrix<'_>,
        rows: Range<usize>,
        x: &[f32],
        a: &ActMatrix,
        out: Output,
        scratch: &mut WorkerScratch,
    ) {
        // SAFETY: forwarded.
        unsafe {
            if m.ty.is_float() {
                self.kernels.float(m, rows, x, out, &mut scratch.row);
            } else if a.tile_columns() == 1 {
                self.kernels.gemv(m, rows, a, out);
            } else {
                self.kernels.gemm(m, rows, a, out, &mut scratch.panel);
            }
        }
    }
}
