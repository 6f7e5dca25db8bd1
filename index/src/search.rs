//! The ranking by meaning, and its fusion with the one by words (`lexical.rs`).

use std::collections::HashMap;

use crate::limits::{FUSION_DEPTH, HITS_MAX};

/// What meaning counts in the fusion; the rest is for words. From 0.6 to 0.8 the mean over the sets tried changes by 0.005
/// (docs/retrieval.md).
const MEANING: f32 = 0.7;

/// A ranked slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    pub slot: usize,
    pub score: f32,
}

/// The best `depth`, best first; of equals the earlier slot.
pub(crate) fn top(all: impl Iterator<Item = Ranked>, depth: usize) -> Vec<Ranked> {
    let mut best = Best::new(depth);
    all.for_each(|ranked| best.offer(ranked));
    best.into_sorted()
}

/// Keeps the best of a stream.
pub(crate) struct Best {
    depth: usize,
    /// At most twice as long as wanted: selecting then costs a constant for each candidate.
    kept: Vec<Ranked>,
    /// Scores below do not enter any more.
    floor: f32,
}

impl Best {
    pub(crate) fn new(depth: usize) -> Self {
        let depth = depth.clamp(1, 2 * HITS_MAX);
        Self { depth, kept: Vec::with_capacity(2 * depth + 1), floor: f32::NEG_INFINITY }
    }

    fn order(a: &Ranked, b: &Ranked) -> std::cmp::Ordering {
        b.score.total_cmp(&a.score).then(a.slot.cmp(&b.slot))
    }

    pub(crate) fn offer(&mut self, ranked: Ranked) {
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

    pub(crate) fn into_sorted(mut self) -> Vec<Ranked> {
        self.kept.sort_unstable_by(Self::order);
        self.kept.truncate(self.depth);
        self.kept
    }
}

/// Fuses the rankings by words and by meaning into scores of 0 to 1: a weighted sum, each ranking brought to 0 to 1 first.
/// BM25 has a natural 0, a passage without any of the words, so its scores are divided by the best. Cosines of one model all
/// lie close together, and where differs from query to query, so they count from the last of the first hundred to the first;
/// what a caller wants beyond those falls below 0 and leaves the others as they are. Unlike ranks, scores tell a first place
/// with a wide lead from one among equals (Bruch, Gai and Ingber, 2023).
pub(crate) fn fuse(by_words: &[Ranked], by_vector: &[Ranked], depth: usize) -> Vec<Ranked> {
    let mut scores: HashMap<usize, f32> = HashMap::new();
    let last = by_vector.get(FUSION_DEPTH - 1).or(by_vector.last()).map_or(0.0, |r| r.score);
    for (ranking, floor, weight) in [(by_words, 0.0, 1.0 - MEANING), (by_vector, last, MEANING)] {
        let span = ranking.first().map_or(0.0, |r| r.score - floor);
        for ranked in ranking {
            // A single candidate, or equals, are all the best.
            let share = if span > 0.0 { (ranked.score - floor) / span } else { 1.0 };
            *scores.entry(ranked.slot).or_insert(0.0) += weight * share;
        }
    }
    top(scores.into_iter().map(|(slot, score)| Ranked { slot, score }), depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rng;

    fn ranking(scores: &[(usize, f32)]) -> Vec<Ranked> {
        scores.iter().map(|(slot, score)| Ranked { slot: *slot, score: *score }).collect()
    }

    #[test]
    fn fusion_weighs_leads_not_ranks() {
        let by_words = ranking(&[(1, 12.0), (2, 9.0), (3, 3.0)]);
        let by_vector = ranking(&[(9, 0.90), (3, 0.86), (2, 0.80)]);
        let fused = fuse(&by_words, &by_vector, 10);
        let expected = [(9, MEANING), (3, 0.6 * MEANING + 0.25 * (1.0 - MEANING)), (1, 1.0 - MEANING)];
        for (found, (slot, score)) in fused.iter().zip(expected) {
            assert_eq!(found.slot, slot);
            assert!((found.score - score).abs() < 1e-5, "{found:?}, not {score}");
        }
        assert_eq!(fused.len(), 4);
        // First in both, with any lead: first of all, with the highest score there is.
        let both = fuse(&by_words, &ranking(&[(1, 0.81), (9, 0.80)]), 1);
        assert_eq!(both, ranking(&[(1, 1.0)]));
    }

    #[test]
    fn a_longer_list_begins_as_a_shorter_one() {
        let by_words = ranking(&[(130, 12.0), (5, 11.0)]);
        let all: Vec<(usize, f32)> = (0..150_u16).map(|i| (usize::from(i), 1.0 - f32::from(i) / 200.0)).collect();
        let long = fuse(&by_words, &ranking(&all), 150);
        let short = fuse(&by_words, &ranking(&all[..FUSION_DEPTH]), 20);
        assert_eq!(long[..20], short[..]);
        assert_eq!(long.len(), 150);
    }

    #[test]
    fn fusion_of_one_or_none() {
        let one = ranking(&[(7, 0.5)]);
        assert_eq!(fuse(&one, &[], 5), ranking(&[(7, 1.0 - MEANING)]));
        assert_eq!(fuse(&[], &one, 5), ranking(&[(7, MEANING)]));
        assert_eq!(fuse(&one, &one, 5), ranking(&[(7, 1.0)]));
        assert!(fuse(&[], &[], 5).is_empty());
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
