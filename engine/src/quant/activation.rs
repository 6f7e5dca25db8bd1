//! Activations in int8: what the integer kernels multiply weights with.

/// Elements of an activation block: one f32 scale each.
pub const ACT_BLOCK: usize = 32;

/// A matrix of quantized activations, `(columns, width)`: one column per token.
///
/// `x = scale * q` with `q` in -127..=127, scale per 32 elements. The integer sums of each 16 elements serve the
/// zero points and minima of the weights.
#[derive(Debug, Default)]
pub struct ActMatrix {
    width: usize,
    columns: usize,
    q: Vec<i8>,
    scale: Vec<f32>,
    sum16: Vec<i32>,
}

impl ActMatrix {
    /// Room for `columns` tokens of `width` elements, which must be a multiple of 32.
    #[must_use]
    pub fn with_capacity(columns: usize, width: usize) -> Self {
        let n = columns * width;
        Self {
            width: 0,
            columns: 0,
            q: Vec::with_capacity(n),
            scale: Vec::with_capacity(n / ACT_BLOCK),
            sum16: Vec::with_capacity(n / 16),
        }
    }

    /// Sets the shape; the contents are unspecified until every [`ActColumn`] was written.
    pub fn resize(&mut self, columns: usize, width: usize) {
        debug_assert!(width.is_multiple_of(ACT_BLOCK));
        (self.columns, self.width) = (columns, width);
        self.q.resize(columns * width, 0);
        self.scale.resize(columns * width / ACT_BLOCK, 0.0);
        self.sum16.resize(columns * width / 16, 0);
    }

    /// Elements of a column.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Parts of column `c`: values, scales per 32, integer sums per 16.
    #[inline(always)]
    #[must_use]
    pub fn column(&self, c: usize) -> (&[i8], &[f32], &[i32]) {
        let w = self.width;
        (
            &self.q[c * w..(c + 1) * w],
            &self.scale[c * w / ACT_BLOCK..(c + 1) * w / ACT_BLOCK],
            &self.sum16[c * w / 16..(c + 1) * w / 16],
        )
    }

    /// Splits the matrix into its columns for parallel quantization.
    pub fn columns_mut(&mut self) -> Vec<ActColumn<'_>> {
        let w = self.width;
        self.q
            .chunks_exact_mut(w)
            .zip(self.scale.chunks_exact_mut(w / ACT_BLOCK))
            .zip(self.sum16.chunks_exact_mut(w / 16))
            .map(|((q, scale), sum16)| ActColumn { q, scale, sum16 })
            .collect()
    }
}

/// One column, to be written.
#[derive(Debug)]
pub struct ActColumn<'a> {
    q: &'a mut [i8],
    scale: &'a mut [f32],
    sum16: &'a mut [i32],
}

impl ActColumn<'_> {
    /// Quantizes `x`: `scale = max|x| / 127` per 32 elements, round to nearest even. Values that are not finite become
    /// 0 here and are caught where logits are read.
    #[inline(always)]
    pub fn quantize(&mut self, x: &[f32]) {
        debug_assert_eq!(x.len(), self.q.len());
        for (i, block) in x.as_chunks::<ACT_BLOCK>().0.iter().enumerate() {
            let mut peak = [0f32; 8];
            for (j, v) in block.iter().enumerate() {
                peak[j % 8] = peak[j % 8].max(v.abs());
            }
            let peak = peak.iter().fold(0f32, |m, v| m.max(*v));
            let scale = peak / 127.0;
            // A subnormal scale would make the inverse infinite.
            let inverse = if scale > f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
            self.scale[i] = scale;
            let out = &mut self.q[i * ACT_BLOCK..(i + 1) * ACT_BLOCK];
            let mut sums = [0i32; 2];
            for (j, v) in block.iter().enumerate() {
                // Adding and removing 1.5 * 2^23 rounds to nearest even and vectorizes everywhere.
                let rounded = (v * inverse + 12_582_912.0) - 12_582_912.0;
                let q = rounded as i32 as i8;
                out[j] = q;
                sums[j / 16] += i32::from(q);
            }
            self.sum16[2 * i] = sums[0];
            self.sum16[2 * i + 1] = sums[1];
        }
    }
}
