//! Activations in int8: what the integer kernels multiply weights with.

/// Elements of an activation block: one f32 scale each.
pub const ACT_BLOCK: usize = 32;
/// Columns that the matrix-matrix kernels take at once. Twelve int32 and twelve float accumulators, a weight and a
/// scale fill 26 of the 32 registers of AVX-512; AVX2 takes them in three steps of four.
pub const GEMM_TILE: usize = 12;
/// Up to this many columns the matrix-vector kernels are used: a weight panel would not pay off.
pub const GEMV_COLUMNS: usize = 8;

/// A matrix of quantized activations, `(columns, width)`: one column per token.
///
/// `x = scale * q` with `q` in -127..=127, one scale per 32 elements. Columns are kept in tiles of `n` columns, `n`
/// being 1 for few columns and [`GEMM_TILE`] for many; inside a tile four consecutive elements of a column stand
/// together, then those of the next column: `q[element / 4][column][element % 4]`, `scale[block][column]`. The last
/// tile is filled up with zero columns.
#[derive(Debug, Default)]
pub struct ActMatrix {
    width: usize,
    columns: usize,
    tile: usize,
    q: Vec<i8>,
    scale: Vec<f32>,
    sum32: Vec<f32>,
    sum16: Vec<f32>,
}

/// One tile: `n` columns.
#[derive(Debug, Clone, Copy)]
pub struct ActTile<'a> {
    /// `[width / 4][n][4]`.
    pub q: &'a [i8],
    /// `[width / 32][n]`: the scale of each block.
    pub scale: &'a [f32],
    /// `[width / 32][n]`: scale times the sum of the block's `q`; meets the minima of the weights.
    pub sum32: &'a [f32],
    /// `[width / 16][n]`: the same for each half block.
    pub sum16: &'a [f32],
}

/// One tile, to be written.
#[derive(Debug)]
pub struct ActTileMut<'a> {
    n: usize,
    q: &'a mut [i8],
    scale: &'a mut [f32],
    sum32: &'a mut [f32],
    sum16: &'a mut [f32],
}

impl ActMatrix {
    /// Sets the shape; the contents are unspecified until every tile was written. Grows as needed, never shrinks.
    ///
    /// # Panics
    /// When `width` is not a multiple of 32.
    pub fn resize(&mut self, columns: usize, width: usize) {
        assert!(width.is_multiple_of(ACT_BLOCK), "activation width {width} is not a multiple of {ACT_BLOCK}");
        (self.columns, self.width) = (columns, width);
        self.tile = if columns <= GEMV_COLUMNS { 1 } else { GEMM_TILE };
        let n = columns.next_multiple_of(self.tile) * width;
        grow(&mut self.q, n);
        grow(&mut self.scale, n / ACT_BLOCK);
        grow(&mut self.sum32, n / ACT_BLOCK);
        grow(&mut self.sum16, n / 16);
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

    /// Columns of a tile.
    #[must_use]
    pub fn tile_columns(&self) -> usize {
        self.tile
    }

    /// Number of tiles.
    #[must_use]
    pub fn tiles(&self) -> usize {
        self.columns.div_ceil(self.tile.max(1))
    }

    /// Tile `t`.
    #[inline(always)]
    #[must_use]
    pub fn tile(&self, t: usize) -> ActTile<'_> {
        let n = self.tile * self.width;
        ActTile {
            q: &self.q[t * n..(t + 1) * n],
            scale: &self.scale[t * n / 32..(t + 1) * n / 32],
            sum32: &self.sum32[t * n / 32..(t + 1) * n / 32],
            sum16: &self.sum16[t * n / 16..(t + 1) * n / 16],
        }
    }

    /// Splits the matrix into its tiles, for parallel quantization.
    pub fn tiles_mut(&mut self) -> impl Iterator<Item = ActTileMut<'_>> {
        let (n, tiles) = (self.tile * self.width, self.tiles());
        self.q
            .chunks_exact_mut(n)
            .zip(self.scale.chunks_exact_mut(n / 32))
            .zip(self.sum32.chunks_exact_mut(n / 32).zip(self.sum16.chunks_exact_mut(n / 16)))
            .take(tiles)
            .map(|((q, scale), (sum32, sum16))| ActTileMut { n: self.tile, q, scale, sum32, sum16 })
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.q.capacity() + 4 * (self.scale.capacity() + self.sum32.capacity() + self.sum16.capacity())
    }
}

fn grow<T: Clone + Default>(v: &mut Vec<T>, n: usize) {
    if v.len() < n {
        v.resize(n, T::default());
    }
}

impl ActTileMut<'_> {
    /// Quantizes `x`, `(columns, width)` with at most a tile's columns; absent columns become zero.
    /// `scale = max|x| / 127` per 32 elements, round to nearest even. Values that are not finite become 0 here and are
    /// caught where logits are read.
    #[inline(always)]
    pub fn quantize(&mut self, x: &[f32], width: usize) {
        let present = x.len() / width;
        for c in 0..self.n {
            if c < present {
                self.quantize_column(c, &x[c * width..(c + 1) * width]);
            } else {
                self.zero_column(c, width);
            }
        }
    }

    #[inline(always)]
    fn quantize_column(&mut self, c: usize, x: &[f32]) {
        let n = self.n;
        for (i, block) in x.as_chunks::<ACT_BLOCK>().0.iter().enumerate() {
            let mut peaks = [0f32; 8];
            for part in block.as_chunks::<8>().0 {
                for j in 0..8 {
                    let v = part[j].abs();
                    peaks[j] = if v > peaks[j] { v } else { peaks[j] };
                }
            }
            let peak = peaks.iter().fold(0f32, |m, v| m.max(*v));
            let scale = peak / 127.0;
            // A subnormal scale would make the inverse infinite.
            let inverse = if scale > f32::MIN_POSITIVE && scale.is_finite() { 1.0 / scale } else { 0.0 };
            let mut q = [0i8; ACT_BLOCK];
            let mut ints = [0i32; ACT_BLOCK];
            for j in 0..ACT_BLOCK {
                // Adding and removing 1.5 * 2^23 rounds to nearest even and vectorizes everywhere; the low mantissa
                // bits of the sum are the integer itself.
                let bits = (block[j] * inverse + 12_582_912.0).to_bits() as i32;
                ints[j] = bits.wrapping_sub(0x4b40_0000);
                q[j] = ints[j] as i8;
            }
            let low: i32 = ints[..16].iter().sum();
            let high: i32 = ints[16..].iter().sum();
            for (k, four) in q.as_chunks::<4>().0.iter().enumerate() {
                let at = ((i * 8 + k) * n + c) * 4;
                self.q[at..at + 4].copy_from_slice(four);
            }
            self.scale[i * n + c] = scale;
            self.sum16[2 * i * n + c] = scale * low as f32;
            self.sum16[(2 * i + 1) * n + c] = scale * high as f32;
            self.sum32[i * n + c] = scale * (low + high) as f32;
        }
    }

    fn zero_column(&mut self, c: usize, width: usize) {
        let n = self.n;
        for k in 0..width / 4 {
            let at = (k * n + c) * 4;
            self.q[at..at + 4].fill(0);
        }
        for i in 0..width / 32 {
            self.scale[i * n + c] = 0.0;
            self.sum32[i * n + c] = 0.0;
            self.sum16[2 * i * n + c] = 0.0;
            self.sum16[(2 * i + 1) * n + c] = 0.0;
        }
    }
}
