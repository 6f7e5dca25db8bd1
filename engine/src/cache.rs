//! The KV cache: keys and values of all positions computed so far, of a capacity fixed at the start.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use crate::kernels::{CACHE_BLOCK, Cached, to_bytes};
use crate::model::Config;

/// How the cache stores keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheType {
    /// Halves.
    #[default]
    F16,
    /// Signed bytes with a half as scale for each 32: 53 % of the memory of halves.
    Q8,
}

impl CacheType {
    /// All types.
    pub const ALL: [Self; 2] = [Self::F16, Self::Q8];

    /// The name used on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Q8 => "q8_0",
        }
    }

    /// Bytes of `n` elements.
    #[must_use]
    pub fn bytes(self, n: usize) -> usize {
        match self {
            Self::F16 => 2 * n,
            Self::Q8 => n + n / CACHE_BLOCK * 2,
        }
    }

    /// Whether rows of a head can be stored so.
    #[must_use]
    pub fn fits(self, head_dim: usize) -> bool {
        self == Self::F16 || head_dim.is_multiple_of(CACHE_BLOCK)
    }
}

/// Keys and values, each `(layers, kv_heads, capacity, head_dim)`.
///
/// The whole capacity is reserved at once, so that a context that was admitted cannot run out of memory half-way; the
/// system commits pages as positions are written.
#[derive(Debug)]
pub struct KvCache {
    k: Store,
    v: Store,
    ty: CacheType,
    layer: usize,
    capacity: usize,
    head_dim: usize,
    len: usize,
}

impl KvCache {
    /// A cache for `capacity` positions. Heads that cannot be stored as `ty` are stored as halves.
    #[must_use]
    pub fn new(config: &Config, capacity: usize, ty: CacheType) -> Self {
        let ty = if ty.fits(config.head_dim) { ty } else { CacheType::F16 };
        let layer = config.kv_heads * capacity * config.head_dim;
        let store = || Store::new(ty, layer * config.layers);
        Self { k: store(), v: store(), ty, layer, capacity, head_dim: config.head_dim, len: 0 }
    }

    /// Positions that it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How keys and values are stored.
    #[must_use]
    pub fn ty(&self) -> CacheType {
        self.ty
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
        self.k.bytes() + self.v.bytes()
    }

    pub(crate) fn advance(&mut self, n: usize) {
        self.len += n;
        debug_assert!(self.len <= self.capacity);
    }

    /// Keys and values of a layer, `(kv_heads, capacity, head_dim)`.
    pub(crate) fn layer(&self, i: usize) -> (Cached<'_>, Cached<'_>) {
        (self.k.part(i * self.layer, self.layer), self.v.part(i * self.layer, self.layer))
    }

    /// Writes the key and value of one head at one position.
    pub(crate) fn write(&mut self, layer: usize, head: usize, position: usize, k: &[f32], v: &[f32]) {
        let at = layer * self.layer + (head * self.capacity + position) * self.head_dim;
        self.k.write(at, k);
        self.v.write(at, v);
    }
}

/// Keys, or values.
#[derive(Debug)]
enum Store {
    F16(Vec<f16>),
    Q8(Vec<i8>, Vec<f16>),
}

impl Store {
    fn new(ty: CacheType, n: usize) -> Self {
        match ty {
            CacheType::F16 => Self::F16(vec![f16::ZERO; n]),
            CacheType::Q8 => Self::Q8(vec![0; n], vec![f16::ZERO; n / CACHE_BLOCK]),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::F16(x) => CacheType::F16.bytes(x.len()),
            Self::Q8(q, _) => CacheType::Q8.bytes(q.len()),
        }
    }

    fn part(&self, from: usize, n: usize) -> Cached<'_> {
        match self {
            Self::F16(x) => Cached::F16(&x[from..from + n]),
            Self::Q8(q, scale) => Cached::Q8(&q[from..from + n], &scale[from / CACHE_BLOCK..(from + n) / CACHE_BLOCK]),
        }
    }

    fn write(&mut self, at: usize, x: &[f32]) {
        match self {
            Self::F16(to) => to[at..at + x.len()].convert_from_f32_slice(x),
            Self::Q8(q, scale) => {
                let blocks = at / CACHE_BLOCK..(at + x.len()) / CACHE_BLOCK;
                to_bytes(x, &mut q[at..at + x.len()], &mut scale[blocks]);
            }
        }
    }
}
