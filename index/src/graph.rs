//! The HNSW graph over the means of lists: finds a new passage its list where there are many. The only file that names hnsw_rs.
//!
//! hnsw_rs cannot delete, panics on a NaN distance and can end the process when it reloads a bad dump. So: only finite
//! vectors enter (they are made from checked ones), nothing is ever written or reloaded, and lists that are closed are left out
//! of what is found. A point takes about 3 KB, which is why the means are its points and not the passages.

use hnsw_rs::prelude::{Distance, Hnsw};

use crate::dot::dot;

/// Neighbours of a point on each layer.
const NEIGHBOURS: usize = 16;
/// Candidates looked at while a point is added.
const BUILD_WIDTH: usize = 100;
/// Candidates looked at in a search.
const SEARCH_WIDTH: usize = 64;
/// Points found by a search: some may be closed.
const FOUND: usize = 8;
/// Layers; 16 is what the library allows, and far more than a million points need.
const LAYERS: usize = 16;

/// `1 - cosine`. A point is the bytes of a quantized vector and then its scale as four bytes, so that one dot product is
/// enough.
#[derive(Clone, Copy, Default)]
struct Cosine;

/// Bytes of the scale behind those of the vector.
const SCALE_BYTES: usize = 4;

impl Distance<i8> for Cosine {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        let (Some((a, scale_a)), Some((b, scale_b))) = (a.split_last_chunk(), b.split_last_chunk()) else { return 2.0 };
        let cosine = dot(a, b) as f32 * scale(*scale_a) * scale(*scale_b);
        // Never NaN, never negative: both would panic in the library. Scales come from checked vectors and are finite.
        (1.0 - cosine).max(0.0)
    }
}

fn scale(bytes: [i8; SCALE_BYTES]) -> f32 {
    f32::from_le_bytes(bytes.map(i8::cast_unsigned))
}

/// What the library holds of a vector.
fn point(scale: f32, bytes: &[i8]) -> Vec<i8> {
    let mut point = bytes.to_vec();
    point.extend(scale.to_le_bytes().map(u8::cast_signed));
    point
}

/// A graph of numbered vectors of one length.
pub(crate) struct Graph {
    hnsw: Hnsw<'static, i8, Cosine>,
}

impl Graph {
    /// An empty one, for about `points` points.
    pub(crate) fn new(points: usize) -> Self {
        let mut hnsw = Hnsw::new(NEIGHBOURS, points.max(1), LAYERS, BUILD_WIDTH, Cosine);
        // Means lie in clusters too: without this, points between clusters lose the edges that lead from one to another.
        hnsw.set_keeping_pruned(true);
        Self { hnsw }
    }

    /// Adds point `n`.
    pub(crate) fn add(&self, n: usize, scale: f32, bytes: &[i8]) {
        self.hnsw.insert((&point(scale, bytes), n));
    }

    /// Some points that are near, the nearest first.
    pub(crate) fn nearest(&self, scale: f32, bytes: &[i8]) -> impl Iterator<Item = usize> {
        self.hnsw.search(&point(scale, bytes), FOUND, SEARCH_WIDTH).into_iter().map(|found| found.d_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::vectors::Quantized;
    use crate::testing::Rng;

    #[test]
    fn it_finds_what_is_near() {
        let mut rng = Rng::new(11);
        let vectors: Vec<Quantized> = (0..3000).map(|_| Quantized::of(&rng.unit(64))).collect();
        let graph = Graph::new(vectors.len());
        vectors.iter().enumerate().for_each(|(n, v)| graph.add(n, v.scale, &v.bytes));
        let mut found = 0;
        for _ in 0..200 {
            let query = Quantized::of(&rng.unit(64));
            let cosine = |n: &usize| dot(&query.bytes, &vectors[*n].bytes) as f32 * vectors[*n].scale;
            let exact = (0..vectors.len()).max_by(|a, b| cosine(a).total_cmp(&cosine(b)));
            found += usize::from(graph.nearest(query.scale, &query.bytes).next() == exact);
        }
        assert!(found >= 160, "{found} of 200");
        assert_eq!(Graph::new(0).nearest(1.0, &[1; 64]).count(), 0);
    }
}
