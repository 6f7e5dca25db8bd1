//! The KV cache: keys and values of all positions computed so far, as halves, of a capacity fixed at the start.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use crate::model::Config;

/// Keys and values, each `(layers, kv_heads, capacity, head_dim)`.
///
/// The whole capacity is reserved at once, so that a context that was admitted cannot run out of memory half-way; the
/// system commits pages as positions are written.
#[derive(Debug)]
pub struct KvCache {
    k: Vec<f16>,
    v: Vec<f16>,
    layer: usize,
    capacity: usize,
    head_dim: usize,
    len: usize,
}

impl KvCache {
    /// A cache for `capacity` positions.
    #[must_use]
    pub fn new(config: &Config, capacity: usize) -> Self {
        let layer = config.kv_heads * capacity * config.head_dim;
        let zeros = || vec![f16::ZERO; layer * config.layers];
        Self { k: zeros(), v: zeros(), layer, capacity, head_dim: config.head_dim, len: 0 }
    }

    /// Positions that it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Positions computed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was computed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all positions from `len` on; later ones are overwritten as they come.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Bytes reserved.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.k.len() + self.v.len()) * size_of::<f16>()
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.len <= self.capacity);
    }

    /// Keys and values of a layer, `(kv_heads, capacity, head_dim)`.
    pub(crate) fn layer(&self, i: usize) -> (&[f16], &[f16]) {
        let range = i * self.layer..(i + 1) * self.layer;
        (&self.k[range.clone()], &self.v[range])
    }

    /// Writes the key and value of one head at one position.
    pub(crate) fn write(&mut self, layer: usize, head: usize, position: usize, k: &[f32], v: &[f32]) {
        let at = layer * self.layer + (head * self.capacity + position) * self.head_dim;
        self.k[at..at + self.head_dim].convert_from_f32_slice(k);
        self.v[at..at + self.head_dim].convert_from_f32_slice(v);
    }
}
