//! What the matrix-vector kernels of all instruction sets share: columns of activations, and loops over a few of them.

use crate::quant::{ActMatrix, Format};

/// One column of activations, as pointers; see [`crate::quant::ActTile`] with one column a tile.
#[derive(Clone, Copy)]
pub(super) struct Column {
    /// `[width]`.
    pub(super) q: *const i8,
    /// `[width / 32]`.
    pub(super) scale: *const f32,
    /// `[width / group]`: scale times the sum of the group's `q`.
    pub(super) sums: *const f32,
}

impl Column {
    pub(super) fn new<F: Format>(a: &ActMatrix, c: usize) -> Self {
        let tile = a.tile(c);
        let sums = if F::TYPE.group() == 32 { tile.sum32 } else { tile.sum16 };
        Self { q: tile.q.as_ptr(), scale: tile.scale.as_ptr(), sums: sums.as_ptr() }
    }
}

/// Calls `$body` for all columns of `$a`, four, two or one at a time: `$columns` is an array of that many, `$first` the
/// number of the first.
macro_rules! by_columns {
    ($f:ident, $a:expr, |$first:ident, $columns:ident| $body:expr) => {{
        let mut $first = 0;
        while $first < $a.columns() {
            let column = |i| crate::kernels::columns::Column::new::<$f>($a, $first + i);
            match $a.columns() - $first {
                4.. => {
                    let $columns: [_; 4] = std::array::from_fn(column);
                    $body;
                    $first += 4;
                }
                2 | 3 => {
                    let $columns: [_; 2] = std::array::from_fn(column);
                    $body;
                    $first += 2;
                }
                _ => {
                    let $columns: [_; 1] = std::array::from_fn(column);
                    $body;
                    $first += 1;
                }
            }
        }
    }};
}
pub(super) use by_columns;

/// What the sum of `minimum or scale * sums` is multiplied with at the end: minima are as they are, zero points are the
/// same for all groups.
pub(super) const fn offset_factor<F: Format>() -> f32 {
    if F::TYPE.has_min() { 1.0 } else { -F::TYPE.zero() as f32 }
}

/// Repeats a statement for each of some numbers, `$j` being a constant in each copy: shifts and permutations by `$j` are
/// then single instructions, whatever the optimizer thinks of the length of the loop.
macro_rules! unrolled {
    ([$($n:literal),*], $j:ident => $body:expr) => {
        $({
            let $j: usize = $n;
            $body;
        })*
    };
}
pub(super) use unrolled;
