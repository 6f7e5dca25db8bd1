//! Quantized vectors end to end, and the means that groups of them gather around.

use crate::dot::{dot, dot_rows};
use crate::store::vectors::Quantized;

/// Rounds of k-means. Later ones move the means little, and a list is a hint, not a verdict.
const ROUNDS: usize = 5;

/// Vectors of `dim` bytes each; component i of vector n is `scales[n] * bytes[n * dim + i]`.
pub(crate) struct Rows {
    pub dim: usize,
    scales: Vec<f32>,
    bytes: Vec<i8>,
}

impl Rows {
    pub(crate) fn new(dim: usize) -> Self {
        Self { dim, scales: Vec::new(), bytes: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(crate) fn push(&mut self, scale: f32, bytes: &[i8]) {
        debug_assert_eq!(bytes.len(), self.dim);
        self.scales.push(scale);
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds all of another's.
    pub(crate) fn append(&mut self, other: &Self) {
        self.scales.extend(&other.scales);
        self.bytes.extend(&other.bytes);
    }

    pub(crate) fn row(&self, n: usize) -> (f32, &[i8]) {
        (self.scales[n], &self.bytes[n * self.dim..][..self.dim])
    }

    /// Cosines, up to a factor that all have in common, of a vector with these rows.
    pub(crate) fn cosines(&self, vector: &[i8], rows: std::ops::Range<usize>, out: &mut Vec<f32>, dots: &mut Vec<i32>) {
        dots.resize(rows.len(), 0);
        dot_rows(vector, &self.bytes[rows.start * self.dim..rows.end * self.dim], dots);
        out.clear();
        out.extend(dots.iter().zip(&self.scales[rows]).map(|(dot, scale)| *dot as f32 * scale));
    }

    /// Replaces a row by one of length 1 in the direction of `sum`; a sum of 0 changes nothing.
    fn point(&mut self, n: usize, sum: &[f32]) {
        let quantized = Quantized::of(sum);
        let length = (dot(&quantized.bytes, &quantized.bytes) as f32).sqrt();
        if length > 0.0 && length.is_finite() {
            self.scales[n] = 1.0 / length;
            self.bytes[n * self.dim..][..self.dim].copy_from_slice(&quantized.bytes);
        }
    }
}

/// Working memory of comparisons.
#[derive(Default)]
pub(crate) struct Scratch {
    pub cosines: Vec<f32>,
    dots: Vec<i32>,
}

impl Scratch {
    /// The row among `rows` of `means` that is nearest to a vector, with its cosine up to the vector's scale; the first of
    /// equals. `None` where there is no row.
    pub(crate) fn nearest(
        &mut self,
        means: &Rows,
        rows: std::ops::Range<usize>,
        vector: &[i8],
    ) -> Option<(usize, f32)> {
        let first = rows.start;
        means.cosines(vector, rows, &mut self.cosines, &mut self.dots);
        let mut best = None;
        for (i, cosine) in self.cosines.iter().enumerate() {
            if best.is_none_or(|(_, highest)| *cosine > highest) {
                best = Some((first + i, *cosine));
            }
        }
        best
    }

    /// Cosines of a vector with all means, up to its scale.
    pub(crate) fn with_all(&mut self, means: &Rows, vector: &[i8]) -> &[f32] {
        means.cosines(vector, 0..means.len(), &mut self.cosines, &mut self.dots);
        &self.cosines
    }
}

/// At most `k` means of the sample, by k-means on the unit sphere; `None` if told to stop. Starts from vectors spread evenly over
/// the sample's order, so that the same sample gives the same means.
pub(crate) fn means(sample: &Rows, k: usize, go_on: &dyn Fn() -> bool) -> Option<Rows> {
    let k = k.min(sample.len());
    let starts: Vec<usize> = (0..k).map(|i| i * sample.len() / k).collect();
    improve(sample, &starts, go_on)
}

/// Two means that part the sample; starts from its first vector and the one that is farthest from it.
pub(crate) fn halves(sample: &Rows) -> Option<Rows> {
    if sample.len() < 2 {
        return None;
    }
    let mut scratch = Scratch::default();
    let cosines = scratch.with_all(sample, sample.row(0).1).iter().enumerate();
    let (farthest, _) = cosines.min_by(|a, b| a.1.total_cmp(b.1))?;
    improve(sample, &[0, farthest], &|| true)
}

fn improve(sample: &Rows, starts: &[usize], go_on: &dyn Fn() -> bool) -> Option<Rows> {
    let k = starts.len();
    let mut means = Rows::new(sample.dim);
    for start in starts {
        let (_, bytes) = sample.row(*start);
        let length = (dot(bytes, bytes) as f32).sqrt().max(1.0);
        means.push(1.0 / length, bytes);
    }
    let mut scratch = Scratch::default();
    for _ in 0..ROUNDS {
        let mut sums = vec![0.0_f32; k * sample.dim];
        for n in 0..sample.len() {
            // Once in about a millisecond.
            if n % 256 == 0 && !go_on() {
                return None;
            }
            let (scale, bytes) = sample.row(n);
            let Some((nearest, _)) = scratch.nearest(&means, 0..k, bytes) else { continue };
            let sum = &mut sums[nearest * sample.dim..][..sample.dim];
            sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum += scale * f32::from(*byte));
        }
        // A mean that nothing is near to stays where it is.
        sums.chunks_exact(sample.dim.max(1)).enumerate().for_each(|(n, sum)| means.point(n, sum));
    }
    Some(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    #[test]
    fn means_stand_where_the_groups_are() {
        let mut rng = Rng::new(21);
        let dim = 64;
        let centres: Vec<Vec<f32>> = (0..4).map(|_| rng.unit(dim)).collect();
        let mut sample = Rows::new(dim);
        for n in 0..400 {
            let own = rng.unit(dim);
            let near: Vec<f32> = centres[n % 4].iter().zip(own).map(|(c, own)| c + 0.3 * own).collect();
            let quantized = Quantized::of(&near);
            sample.push(quantized.scale, &quantized.bytes);
        }
        // Starts are every 25th of an order in which groups take turns, so that all four have some.
        let found = means(&sample, 16, &|| true).unwrap();
        let mut scratch = Scratch::default();
        for centre in &centres {
            let quantized = Quantized::of(centre);
            let (_, cosine) = scratch.nearest(&found, 0..found.len(), &quantized.bytes).unwrap();
            assert!(cosine * quantized.scale > 0.97, "the nearest mean has {}", cosine * quantized.scale);
        }
        assert!(means(&sample, 4, &|| false).is_none());
        assert_eq!(means(&Rows::new(dim), 4, &|| true).unwrap().len(), 0);
    }

    #[test]
    fn equal_vectors_are_no_trouble() {
        let mut sample = Rows::new(8);
        (0..50).for_each(|_| sample.push(0.01, &[3, 1, 4, 1, 5, 9, 2, 6]));
        (0..50).for_each(|_| sample.push(0.01, &[0; 8]));
        let found = means(&sample, 7, &|| true).unwrap();
        assert_eq!(found.len(), 7);
        assert!(found.scales.iter().all(|s| s.is_finite()));
    }
}
