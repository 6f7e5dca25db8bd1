//! Rankings and their fusion.

use std::collections::HashMap;

use rusqlite::Connection;

use crate::dot::{dot_f32, dot_rows};
use crate::error::Error;
use crate::graph::Graph;
use crate::limits::{FUSION_DEPTH, HITS_MAX, QUERY_POSTINGS_MAX, QUERY_TERMS_MAX};
use crate::resident::Resident;
use crate::store::fulltext::{self, TIERS};
use crate::store::vectors::Quantized;
use crate::terms::{Group, query_groups};

/// BM25: how soon more of the same word stops counting.
const K1: f32 = 0.9;
/// BM25: how much a long passage is held against it. Passages are of like size, so little.
const B: f32 = 0.4;
/// Reciprocal rank fusion's constant.
const RRF_K: f32 = 60.0;

/// A ranked slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    pub slot: usize,
    pub score: f32,
}

/// Ranks by BM25. A word of the query counts once, whichever of its forms a passage has.
pub(crate) fn lexical(
    connection: &Connection,
    resident: &Resident,
    text: &str,
    allowed: Option<&[bool]>,
    depth: usize,
) -> Result<Vec<Ranked>, Error> {
    let mut groups = query_groups(text, &resident.languages());
    // Long words and pairs of characters are rarer than short words and single characters: they come first, so that the
    // budget is not spent on what decides least.
    groups.sort_by_key(|g| std::cmp::Reverse(g.forms.first().map_or(0, |f| f.chars().count())));
    groups.truncate(QUERY_TERMS_MAX);
    let mut scores = vec![0.0_f32; resident.slots()];
    let mut matches = Matches::new(resident.slots());
    let searched = Searched::of(resident, allowed);
    let mut skipped = Vec::new();
    let mut budget = QUERY_POSTINGS_MAX;
    // A word that a third of a large index has decides little and costs most: it is read only if nothing rarer matched.
    let common = (resident.live() / 3).max(QUERY_POSTINGS_MAX / 6);
    for group in &groups {
        matches.read(connection, resident, group, common.min(budget.max(1)))?;
        if matches.cut {
            skipped.push(group);
        } else {
            matches.add_scores(resident, group, &searched, &mut scores);
        }
        budget = budget.saturating_sub(matches.touched.len());
    }
    if skipped.len() == groups.len() {
        for group in skipped {
            matches.read(connection, resident, group, QUERY_POSTINGS_MAX)?;
            matches.add_scores(resident, group, &searched, &mut scores);
        }
    }
    let candidates =
        scores.iter().enumerate().filter(|(slot, score)| **score > 0.0 && allowed.is_none_or(|a| a[*slot]));
    Ok(top(candidates.map(|(slot, score)| Ranked { slot, score: *score }), depth))
}

/// What BM25's statistics are of: the passages that the filter allows. A folder in one language would else be weighed by
/// the words of another.
struct Searched<'a> {
    allowed: Option<&'a [bool]>,
    passages: f32,
    mean_length: f32,
}

impl<'a> Searched<'a> {
    fn of(resident: &Resident, allowed: Option<&'a [bool]>) -> Self {
        let (passages, mean_length) = resident.passages_and_mean_length(allowed);
        Self { allowed, passages, mean_length }
    }

    fn holds(&self, slot: usize) -> bool {
        self.allowed.is_none_or(|allowed| allowed[slot])
    }
}

/// Passages that have a word, with its count; the arrays are used again for the next word.
struct Matches {
    counts: Vec<u16>,
    touched: Vec<usize>,
    /// Whether there were more than were read.
    cut: bool,
}

impl Matches {
    fn new(slots: usize) -> Self {
        Self { counts: vec![0; slots], touched: Vec::new(), cut: false }
    }

    fn read(&mut self, connection: &Connection, resident: &Resident, group: &Group, limit: usize) -> Result<(), Error> {
        for slot in self.touched.drain(..) {
            self.counts[slot] = 0;
        }
        self.cut = false;
        for form in &group.forms {
            let mut before = 0_u16;
            for (tier, least) in TIERS.iter().enumerate() {
                let gain = u16::try_from(*least).unwrap_or(u16::MAX) - before;
                before = u16::try_from(*least).unwrap_or(u16::MAX);
                let mut cursor = 0;
                let read = fulltext::postings(connection, form, tier, limit, |id| {
                    let Some(slot) = resident.slot_from(id, cursor) else { return };
                    cursor = slot;
                    if self.counts[slot] == 0 {
                        self.touched.push(slot);
                    }
                    self.counts[slot] = self.counts[slot].saturating_add(gain);
                })?;
                self.cut |= read >= limit;
                if read == 0 || self.cut {
                    break;
                }
            }
        }
        Ok(())
    }

    fn add_scores(&self, resident: &Resident, group: &Group, searched: &Searched<'_>, scores: &mut [f32]) {
        let df = self.touched.iter().filter(|slot| searched.holds(**slot)).count() as f32;
        let idf = (1.0 + (searched.passages - df + 0.5).max(0.0) / (df + 0.5)).ln();
        let mean = searched.mean_length;
        for &slot in &self.touched {
            let tf = f32::from(self.counts[slot]);
            let norm = K1 * (1.0 - B + B * resident.length(slot) as f32 / mean);
            scores[slot] += group.count as f32 * idf * tf * (K1 + 1.0) / (tf + norm);
        }
    }
}

/// Ranks by cosine. Exact below the graph's size and wherever a filter leaves few passages.
pub(crate) fn vector(
    resident: &Resident,
    graph: Option<&Graph>,
    query: &[f32],
    allowed: Option<&[bool]>,
    depth: usize,
) -> Vec<Ranked> {
    let candidates = match graph.and_then(|g| g.search(resident, query, allowed, 2 * depth)) {
        Some(found) => found,
        None => scan(resident, query, allowed, 2 * depth),
    };
    // The scan compares quantized with quantized; the final order uses the query as it is.
    let exact = candidates.into_iter().filter_map(|r| {
        let (scale, bytes) = resident.vector(r.slot)?;
        Some(Ranked { slot: r.slot, score: dot_f32(query, scale, bytes) })
    });
    top(exact, depth)
}

/// Vectors compared in one call.
const SCAN_BLOCK: usize = 256;

/// Compares with every vector.
pub(crate) fn scan(resident: &Resident, query: &[f32], allowed: Option<&[bool]>, depth: usize) -> Vec<Ranked> {
    let query = Quantized::of(query);
    let mut best = Best::new(depth);
    let mut dots = [0; SCAN_BLOCK];
    for from in (0..resident.slots()).step_by(SCAN_BLOCK) {
        let to = (from + SCAN_BLOCK).min(resident.slots());
        if allowed.is_some_and(|a| !a[from..to].contains(&true)) {
            continue;
        }
        let dots = &mut dots[..to - from];
        let (scales, rows) = resident.vectors(from..to);
        dot_rows(&query.bytes, rows, dots);
        for (i, (scale, dot)) in scales.iter().zip(dots).enumerate() {
            let slot = from + i;
            if *scale != 0.0 && allowed.is_none_or(|a| a[slot]) {
                best.offer(Ranked { slot, score: *dot as f32 * scale * query.scale });
            }
        }
    }
    best.into_sorted()
}

/// The best `depth`, best first; of equals the earlier slot.
pub(crate) fn top(all: impl Iterator<Item = Ranked>, depth: usize) -> Vec<Ranked> {
    let mut best = Best::new(depth);
    all.for_each(|ranked| best.offer(ranked));
    best.into_sorted()
}

/// Keeps the best of a stream.
struct Best {
    depth: usize,
    /// At most twice as long as wanted: selecting then costs a constant for each candidate.
    kept: Vec<Ranked>,
    /// Scores below do not enter any more.
    floor: f32,
}

impl Best {
    fn new(depth: usize) -> Self {
        let depth = depth.clamp(1, 2 * HITS_MAX);
        Self { depth, kept: Vec::with_capacity(2 * depth + 1), floor: f32::NEG_INFINITY }
    }

    fn order(a: &Ranked, b: &Ranked) -> std::cmp::Ordering {
        b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot))
    }

    fn offer(&mut self, ranked: Ranked) {
        if ranked.score < self.floor {
            return;
        }
        self.kept.push(ranked);
        if self.kept.len() > 2 * self.depth {
            self.kept.select_nth_unstable_by(self.depth, Self::order);
            self.kept.truncate(self.depth);
            self.floor = self.kept.iter().map(|r| r.score).fold(f32::INFINITY, f32::min);
        }
    }

    fn into_sorted(mut self) -> Vec<Ranked> {
        self.kept.sort_unstable_by(Self::order);
        self.kept.truncate(self.depth);
        self.kept
    }
}

/// Reciprocal rank fusion: each ranking gives 1 / (60 + rank) to what it holds, rank counted from 1.
pub(crate) fn fuse(rankings: &[&[Ranked]], depth: usize) -> Vec<Ranked> {
    let mut scores: HashMap<usize, f32> = HashMap::new();
    for ranking in rankings {
        for (rank, ranked) in (1_u16..).zip(ranking.iter().take(FUSION_DEPTH.max(depth))) {
            *scores.entry(ranked.slot).or_insert(0.0) += 1.0 / (RRF_K + f32::from(rank));
        }
    }
    top(scores.into_iter().map(|(slot, score)| Ranked { slot, score }), depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn ranking(slots: &[usize]) -> Vec<Ranked> {
        slots.iter().enumerate().map(|(i, slot)| Ranked { slot: *slot, score: 100.0 - i as f32 }).collect()
    }

    #[test]
    fn fusion_prefers_what_both_rankings_hold() {
        let (a, b) = (ranking(&[1, 2, 3]), ranking(&[9, 3, 8]));
        let fused = fuse(&[&a, &b], 10);
        assert_eq!(fused[0].slot, 3);
        assert!((fused[0].score - (1.0 / 63.0 + 1.0 / 62.0)).abs() < 1e-6);
        let order: Vec<usize> = fused.iter().map(|r| r.slot).collect();
        assert_eq!(order, [3, 1, 9, 2, 8]);
        assert_eq!(fuse(&[&a], 2), [Ranked { slot: 1, score: 1.0 / 61.0 }, Ranked { slot: 2, score: 1.0 / 62.0 }]);
        assert!(fuse(&[], 5).is_empty());
    }

    #[test]
    fn top_equals_a_full_sort() {
        let mut rng = Rng::new(3);
        for _ in 0..200 {
            let n = rng.below(400);
            let all: Vec<Ranked> = (0..n).map(|slot| Ranked { slot, score: rng.below(50) as f32 }).collect();
            let depth = 1 + rng.below(60);
            let mut sorted = all.clone();
            sorted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot)));
            sorted.truncate(depth);
            assert_eq!(top(all.into_iter(), depth), sorted);
        }
    }
}
