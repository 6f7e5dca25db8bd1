//! The HNSW graph: derived from the vectors, never written to disk, never required. The only file that names hnsw_rs.
//!
//! hnsw_rs cannot delete, panics on a NaN distance and can end the process when it reloads a bad dump. So: only finite
//! vectors enter (they are made from checked ones), nothing is ever reloaded, points that are gone are filtered out of the
//! results, and the graph is built anew when too many are gone.

use std::sync::atomic::{AtomicUsize, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};

use crate::dot::dot;
use crate::limits::GRAPH_PASSAGES_MIN;
use crate::resident::Resident;
use crate::search::Ranked;
use crate::store::vectors::Quantized;

/// Neighbours of a point on each layer.
const NEIGHBOURS: usize = 16;
/// Candidates looked at while a point is added.
const BUILD_WIDTH: usize = 200;
/// Candidates looked at in a search, at least.
const SEARCH_WIDTH: usize = 256;
/// Layers; 16 is what the library allows, and far more than a million points need.
const LAYERS: usize = 16;

/// `1 - cosine` of quantized unit vectors, each scaled by its own length: equal for both sides up to rounding.
#[derive(Clone, Copy, Default)]
struct Cosine;

impl Distance<i8> for Cosine {
    fn eval(&self, a: &[i8], b: &[i8]) -> f32 {
        let norm = (dot(a, a) as f32 * dot(b, b) as f32).sqrt();
        // Never NaN, never negative: both would panic in the library.
        if norm <= 0.0 { 1.0 } else { (1.0 - dot(a, b) as f32 / norm).max(0.0) }
    }
}

/// The graph over passage ids.
pub(crate) struct Graph {
    hnsw: Hnsw<'static, i8, Cosine>,
    dim: usize,
    /// Points added, those that are gone included.
    points: AtomicUsize,
}

impl Graph {
    /// Whether a graph is worth having.
    pub(crate) fn wanted(resident: &Resident) -> bool {
        resident.embedded() >= GRAPH_PASSAGES_MIN
    }

    /// Builds it over these vectors, `dim` bytes for each id. Takes about a millisecond for each of them, on one core;
    /// gives `None` if told to stop.
    pub(crate) fn build(ids: &[i64], bytes: &[i8], dim: usize, stop: &dyn Fn() -> bool) -> Option<Self> {
        let hnsw = Hnsw::new(NEIGHBOURS, ids.len().max(1), LAYERS, BUILD_WIDTH, Cosine);
        let graph = Self { hnsw, dim, points: AtomicUsize::new(0) };
        for (id, vector) in ids.iter().zip(bytes.chunks_exact(dim.max(1))) {
            if stop() {
                return None;
            }
            graph.add(*id, vector);
        }
        Some(graph)
    }

    /// Adds a passage. Searches may go on meanwhile.
    pub(crate) fn add(&self, id: i64, bytes: &[i8]) {
        if let (Ok(id), true) = (usize::try_from(id), bytes.len() == self.dim) {
            self.hnsw.insert((bytes, id));
            self.points.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether so many points are gone, or lacking, that it is built anew.
    pub(crate) fn stale(&self, resident: &Resident) -> bool {
        self.dim != resident.dim || self.points.load(Ordering::Relaxed) > resident.embedded() + resident.embedded() / 4
    }

    /// The nearest passages, or `None` where a scan is better: a filter that leaves few passages would make the graph walk
    /// far and find little.
    pub(crate) fn search(
        &self,
        resident: &Resident,
        query: &[f32],
        allowed: Option<&[bool]>,
        depth: usize,
    ) -> Option<Vec<Ranked>> {
        if query.len() != self.dim || self.stale(resident) {
            return None;
        }
        if let Some(allowed) = allowed
            && allowed.iter().filter(|a| **a).count() < GRAPH_PASSAGES_MIN
        {
            return None;
        }
        let query = Quantized::of(query);
        let keep = |id: &usize| slot_of(resident, *id).is_some_and(|slot| allowed.is_none_or(|a| a[slot]));
        let found = self.hnsw.search_filter(&query.bytes, depth, SEARCH_WIDTH.max(depth), Some(&keep));
        let ranked = found
            .into_iter()
            .filter_map(|n| Some(Ranked { slot: slot_of(resident, n.d_id)?, score: 1.0 - n.distance }));
        Some(ranked.collect())
    }
}

fn slot_of(resident: &Resident, id: usize) -> Option<usize> {
    resident.slot_from(i64::try_from(id).ok()?, 0)
}
