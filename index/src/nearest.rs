//! The ranking by meaning.

use crate::dot::{dot_f32, dot_picked, dot_rows};
use crate::limits::{COMPARED_MIN, COMPARED_SHARE, LIST_PASSAGES, LISTS_PASSAGES_MIN};
use crate::lists::Lists;
use crate::resident::Resident;
use crate::search::{Best, Ranked, top};
use crate::store::vectors::Quantized;

/// Ranks by cosine. Exact where there are no lists, and wherever a filter leaves few passages.
pub(crate) fn nearest(resident: &Resident, query: &[f32], allowed: Option<&[bool]>, depth: usize) -> Vec<Ranked> {
    let searched = match allowed {
        None => resident.embedded(),
        Some(allowed) => allowed.iter().filter(|a| **a).count(),
    };
    let candidates = match resident.lists() {
        Some(lists) if searched >= LISTS_PASSAGES_MIN / 2 => {
            look_up(resident, lists, query, allowed, (searched / COMPARED_SHARE).max(COMPARED_MIN), 2 * depth)
        }
        _ => scan(resident, query, allowed, 2 * depth),
    };
    // The scan compares quantized with quantized; the final order uses the query as it is.
    let exact = candidates.into_iter().filter_map(|r| {
        let (scale, bytes) = resident.vector(r.slot)?;
        Some(Ranked { slot: r.slot, score: dot_f32(query, scale, bytes) })
    });
    top(exact, depth)
}

/// Vectors compared in one call.
const BLOCK: usize = 256;

/// Compares with every vector that the filter allows.
pub(crate) fn scan(resident: &Resident, query: &[f32], allowed: Option<&[bool]>, depth: usize) -> Vec<Ranked> {
    let query = Quantized::of(query);
    let mut best = Best::new(depth);
    for from in (0..resident.slots()).step_by(BLOCK) {
        let to = (from + BLOCK).min(resident.slots());
        match allowed {
            None => compare_all(resident, &query, from..to, &mut best),
            Some(allowed) => {
                let picks: Vec<u32> =
                    (from..to).filter(|slot| allowed[*slot]).filter_map(|s| s.try_into().ok()).collect();
                compare(resident, &query, &picks, &mut best);
            }
        }
    }
    best.into_sorted()
}

/// Compares with the vectors of the nearest lists, at least `wanted` of those that the filter allows, and with all loose ones.
pub(crate) fn look_up(
    resident: &Resident,
    lists: &Lists,
    query: &[f32],
    allowed: Option<&[bool]>,
    wanted: usize,
    depth: usize,
) -> Vec<Ranked> {
    let query = Quantized::of(query);
    let mut best = Best::new(depth);
    let mut picks: Vec<u32> = Vec::new();
    let mut compared = 0;
    let mut look = |slots: &[u32]| {
        picks.extend(slots.iter().filter(|slot| allowed.is_none_or(|a| a[**slot as usize])));
        if picks.len() >= BLOCK {
            compare(resident, &query, &picks, &mut best);
            compared += picks.len();
            picks.clear();
        }
        compared < wanted
    };
    look(lists.loose());
    lists.visit(&query, wanted.div_ceil(LIST_PASSAGES), look);
    compare(resident, &query, &picks, &mut best);
    best.into_sorted()
}

/// Compares with the vectors of neighbouring slots, [`BLOCK`] at most.
fn compare_all(resident: &Resident, query: &Quantized, slots: std::ops::Range<usize>, best: &mut Best) {
    let (scales, rows) = resident.vectors(slots.clone());
    let mut dots = [0; BLOCK];
    let dots = &mut dots[..slots.len()];
    dot_rows(&query.bytes, rows, dots);
    for ((slot, scale), dot) in slots.zip(scales).zip(dots) {
        if *scale != 0.0 {
            best.offer(Ranked { slot, score: *dot as f32 * scale * query.scale });
        }
    }
}

/// Compares with the vectors of some slots.
fn compare(resident: &Resident, query: &Quantized, picks: &[u32], best: &mut Best) {
    let (scales, rows) = resident.vectors(0..resident.slots());
    let mut dots = [0; BLOCK];
    for picks in picks.chunks(BLOCK) {
        let dots = &mut dots[..picks.len()];
        dot_picked(&query.bytes, rows, picks, dots);
        for (slot, dot) in picks.iter().map(|p| *p as usize).zip(dots) {
            if scales[slot] != 0.0 {
                best.offer(Ranked { slot, score: *dot as f32 * scales[slot] * query.scale });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::tests::table;
    use crate::testing::Rng;

    #[test]
    fn a_scan_finds_the_nearest_that_are_allowed() {
        let mut rng = Rng::new(5);
        let resident = table(70, &mut rng);
        for keep in [1, 2, 7, 300] {
            let allowed: Vec<bool> = (0..resident.slots()).map(|slot| slot % keep == 0).collect();
            let query = rng.unit(resident.dim);
            let quantized = Quantized::of(&query);
            let score = |slot: usize| {
                let (scale, bytes) = resident.vector(slot)?;
                Some(Ranked { slot, score: crate::dot::dot(&quantized.bytes, bytes) as f32 * scale * quantized.scale })
            };
            let expected = top((0..resident.slots()).step_by(keep).filter_map(score), 10);
            assert_eq!(scan(&resident, &query, Some(&allowed), 10), expected);
            if keep == 1 {
                assert_eq!(scan(&resident, &query, None, 10), expected);
            }
        }
    }
}
