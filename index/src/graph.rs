//! The HNSW graph: derived from the vectors, never written to disk, never required. The only file that names hnsw_rs.
//!
//! hnsw_rs cannot delete, panics on a NaN distance and can end the process when it reloads a bad dump. So: only finite
//! vectors enter (they are made from checked ones), nothing is ever reloaded, points that are gone are filtered out of the
//! results, and the graph is built anew when too many are gone.
//!
//! The exact scan of 384 dimensions took (p50, two busy cores with AVX2, `examples/vectors.rs`, whole search) 1.2 ms at 20,000
//! vectors, 4.1 ms at 48,000 and 8 to 10 ms at 100,000: the graph starts where the scan passes 5 ms.

use std::sync::atomic::{AtomicUsize, Ordering};

use hnsw_rs::prelude::{Distance, Hnsw};

use crate::dot::dot;
use crate::limits::GRAPH_PASSAGES_MIN;
use crate::resident::{Resident, Vectors};
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

/// The graph over passage ids.
pub(crate) struct Graph {
    hnsw: Hnsw<'static, i8, Cosine>,
    dim: usize,
    /// Points added, those that are gone included.
    points: AtomicUsize,
    /// A filter that leaves fewer passages than this is answered by a scan.
    scan_below: usize,
}

impl Graph {
    /// Whether a graph is worth having.
    pub(crate) fn wanted(resident: &Resident) -> bool {
        resident.embedded() >= GRAPH_PASSAGES_MIN
    }

    /// Builds it over these vectors, `dim` bytes for each id. On one core;
    /// gives `None` if told to stop.
    pub(crate) fn build(all: &Vectors, scan_below: usize, stop: &dyn Fn() -> bool) -> Option<Self> {
        let hnsw = Hnsw::new(NEIGHBOURS, all.ids.len().max(1), LAYERS, BUILD_WIDTH, Cosine);
        let graph = Self { hnsw, dim: all.dim, points: AtomicUsize::new(0), scan_below };
        for (id, scale, bytes) in all.iter() {
            if stop() {
                return None;
            }
            graph.add(id, scale, bytes);
        }
        Some(graph)
    }

    /// Adds a passage. Searches may go on meanwhile.
    pub(crate) fn add(&self, id: i64, scale: f32, bytes: &[i8]) {
        if let (Ok(id), true) = (usize::try_from(id), bytes.len() == self.dim) {
            self.hnsw.insert((&point(scale, bytes), id));
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
            && allowed.iter().filter(|a| **a).count() < self.scan_below
        {
            return None;
        }
        let query = Quantized::of(query);
        let keep = |id: &usize| slot_of(resident, *id).is_some_and(|slot| allowed.is_none_or(|a| a[slot]));
        let found =
            self.hnsw.search_filter(&point(query.scale, &query.bytes), depth, SEARCH_WIDTH.max(depth), Some(&keep));
        let ranked = found
            .into_iter()
            .filter_map(|n| Some(Ranked { slot: slot_of(resident, n.d_id)?, score: 1.0 - n.distance }));
        Some(ranked.collect())
    }
}

fn slot_of(resident: &Resident, id: usize) -> Option<usize> {
    resident.slot_from(i64::try_from(id).ok()?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::resident::{Change, Meta};
    use crate::search::scan;
    use crate::testing::Rng;
    use crate::types::Kind;

    const DIM: usize = 64;

    fn random(rng: &mut Rng) -> Vec<f32> {
        let mut v: Vec<f32> = (0..DIM).map(|_| rng.below(2001) as f32 / 1000.0 - 1.0).collect();
        let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        v
    }

    /// Documents of ten passages each.
    fn table(documents: i64, rng: &mut Rng) -> Resident {
        let mut changes = vec![Change::ResetVectors { dim: DIM }];
        for document_id in 1..=documents {
            let path = format!("/{document_id}").into_bytes().into_boxed_slice();
            let meta = Meta { path, kind: Kind::Text, modified: 0, language: Language::ENGLISH };
            changes.push(Change::AddDocument { id: document_id, meta });
            for i in 0..10 {
                let vector = Some(Quantized::of(&random(rng)));
                changes.push(Change::AddPassage { id: document_id * 10 + i, document_id, length: 1, vector });
            }
        }
        let mut resident = Resident::default();
        resident.apply(changes, 1);
        resident
    }

    fn recall(graph: &Graph, resident: &Resident, allowed: Option<&[bool]>, rng: &mut Rng) -> f32 {
        let mut found = 0;
        for _ in 0..50 {
            let query = random(rng);
            let exact = scan(resident, &query, allowed, 10);
            let near = graph.search(resident, &query, allowed, 10).unwrap();
            assert!(near.iter().all(|r| allowed.is_none_or(|a| a[r.slot]) && resident.vector(r.slot).is_some()));
            found += exact.iter().filter(|e| near.iter().any(|n| n.slot == e.slot)).count();
        }
        found as f32 / 500.0
    }

    #[test]
    fn it_finds_what_the_scan_finds() {
        let mut rng = Rng::new(11);
        let mut resident = table(300, &mut rng);
        let graph = Graph::build(&resident.all_vectors(), 0, &|| false).unwrap();
        let all = recall(&graph, &resident, None, &mut rng);
        assert!(all >= 0.98, "recall {all}");
        let half: Vec<bool> = (0..resident.slots()).map(|slot| slot % 2 == 0).collect();
        let filtered = recall(&graph, &resident, Some(&half), &mut rng);
        assert!(filtered >= 0.95, "recall under a filter {filtered}");
        // A fifth of the documents goes: none of them is found any more, and the others still are.
        resident.apply((1..=60).map(|id| Change::RemoveDocument { id }).collect(), 2);
        let left = recall(&graph, &resident, None, &mut rng);
        assert!(left >= 0.95, "recall after deletions {left}");
        assert!(!graph.stale(&resident));
        resident.apply((61..=120).map(|id| Change::RemoveDocument { id }).collect(), 3);
        assert!(graph.stale(&resident) && graph.search(&resident, &random(&mut rng), None, 10).is_none());
    }

    #[test]
    fn a_narrow_filter_and_a_stop_leave_it_to_the_scan() {
        let mut rng = Rng::new(12);
        let resident = table(20, &mut rng);
        assert!(Graph::build(&resident.all_vectors(), 0, &|| true).is_none());
        let graph = Graph::build(&resident.all_vectors(), 50, &|| false).unwrap();
        let few: Vec<bool> = (0..resident.slots()).map(|slot| slot < 49).collect();
        assert!(graph.search(&resident, &random(&mut rng), Some(&few), 10).is_none());
        assert!(graph.search(&resident, &random(&mut rng), None, 10).is_some());
    }
}
