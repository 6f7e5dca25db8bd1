//! Rotary position embedding.

use super::config::{Rope, RopePairs};

/// Cosine and sine of each pair for a run of positions, `(positions, dims / 2)`.
#[derive(Debug, Default)]
pub(super) struct RopeTable {
    angles: Vec<(f32, f32)>,
    half: usize,
    pairs: Option<RopePairs>,
}

impl RopeTable {
    /// Computes the table for `n` positions from `start`. `theta_i = position * scale * base^(-2i/dims) / divisor_i`.
    pub(super) fn fill(&mut self, rope: &Rope, divisors: Option<&[f32]>, start: usize, n: usize) {
        self.half = rope.dims / 2;
        self.pairs = Some(rope.pairs);
        self.angles.clear();
        for p in start..start + n {
            for i in 0..self.half {
                let wave = rope.base.powf(-2.0 * i as f32 / rope.dims as f32) / divisors.map_or(1.0, |d| d[i]);
                let (sin, cos) = (p as f32 * rope.scale * wave).sin_cos();
                self.angles.push((cos, sin));
            }
        }
    }

    /// Rotates one head of the `t`th position.
    pub(super) fn rotate(&self, t: usize, head: &mut [f32]) {
        let angles = &self.angles[t * self.half..(t + 1) * self.half];
        match self.pairs {
            Some(RopePairs::Adjacent) => {
                for (pair, (cos, sin)) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                    *pair = [pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos];
                }
            }
            Some(RopePairs::Halves) => {
                let (low, high) = head.split_at_mut(self.half);
                for ((a, b), (cos, sin)) in low.iter_mut().zip(high).zip(angles) {
                    (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                }
            }
            None => {}
        }
    }
}
