//! Lists made from all vectors: means of means, so that a million vectors take seconds on one core.
//!
//! A sample is grouped around about as many coarse means as each of them will have lists. Each coarse group is divided by means
//! of a sample of its own. Then each vector goes to the nearest mean of the few coarse groups that are nearest to it. No copy of
//! all vectors is made: the table is read in short turns, and what changes meanwhile is put right at the end.

use std::sync::{PoisonError, RwLock};

use super::rows::{Rows, Scratch, means};
use super::{Lists, NONE};
use crate::graph::Graph;
use crate::limits::{GRAPH_LISTS_MIN, LIST_PASSAGES};
use crate::resident::Resident;

/// Vectors looked at in one turn; about a millisecond, for which commits wait.
const TURN: usize = 256;
/// Vectors of a sample for each mean.
const SAMPLED: usize = 32;
/// Coarse groups in which a vector's list is looked for. With one alone, vectors at a border end up far from their mean.
const GROUPS: usize = 3;

/// The table while lists are made of it.
struct Source<'a> {
    table: &'a RwLock<Resident>,
    layout: u64,
    go_on: &'a dyn Fn() -> bool,
}

/// Makes lists of all vectors of the table, and tells for which layout of it. `None` if told to stop, or if the table's slots
/// were renumbered meanwhile.
pub(super) fn build(table: &RwLock<Resident>, go_on: &dyn Fn() -> bool) -> Option<(u64, Lists)> {
    let (layout, dim, slots, embedded) = {
        let resident = table.read().unwrap_or_else(PoisonError::into_inner);
        (resident.layout(), resident.dim, resident.slots(), resident.embedded())
    };
    let source = Source { table, layout, go_on };
    let all: Vec<u32> = (0..u32::try_from(slots).ok()?).collect();
    let coarse_groups = embedded.div_ceil(LIST_PASSAGES).isqrt().max(1);
    let coarse = means(&source.sample(&all, 4 * SAMPLED * coarse_groups, dim)?, coarse_groups, go_on)?;
    let groups = source.group(&all, &coarse)?;
    let (mut fine, mut ranges) = (Rows::new(dim), Vec::new());
    for group in groups {
        let first = fine.len();
        let wanted = group.len().div_ceil(LIST_PASSAGES);
        fine.append(&means(&source.sample(&group, SAMPLED * wanted, dim)?, wanted, go_on)?);
        ranges.push(first..fine.len());
    }
    let of = source.place(&all, &coarse, &fine, &ranges)?;
    let graph = if fine.len() < GRAPH_LISTS_MIN { None } else { Some(graph(&fine, go_on)?) };
    Some((layout, Lists::new(fine, graph, of)))
}

fn graph(means: &Rows, go_on: &dyn Fn() -> bool) -> Option<Graph> {
    let graph = Graph::new(means.len());
    for n in 0..means.len() {
        if !go_on() {
            return None;
        }
        let (scale, bytes) = means.row(n);
        graph.add(n, scale, bytes);
    }
    Some(graph)
}

impl Source<'_> {
    /// Hands the vectors of some slots to `look`, in turns.
    fn each(&self, slots: &[u32], mut look: impl FnMut(u32, f32, &[i8])) -> Option<()> {
        for turn in slots.chunks(TURN) {
            if !(self.go_on)() {
                return None;
            }
            let resident = self.table.read().unwrap_or_else(PoisonError::into_inner);
            if resident.layout() != self.layout {
                return None;
            }
            for slot in turn {
                if let Some((scale, bytes)) = resident.vector(*slot as usize) {
                    look(*slot, scale, bytes);
                }
            }
        }
        Some(())
    }

    /// A copy of about `n` vectors of these slots, evenly spread.
    fn sample(&self, slots: &[u32], n: usize, dim: usize) -> Option<Rows> {
        let n = n.min(slots.len());
        let picked: Vec<u32> = (0..n).map(|i| slots[i * slots.len() / n]).collect();
        let mut sample = Rows::new(dim);
        self.each(&picked, |_, scale, bytes| sample.push(scale, bytes))?;
        Some(sample)
    }

    /// The slots that are nearest to each mean.
    fn group(&self, slots: &[u32], means: &Rows) -> Option<Vec<Vec<u32>>> {
        let mut groups = vec![Vec::new(); means.len()];
        let mut scratch = Scratch::default();
        self.each(slots, |slot, _, bytes| {
            if let Some((nearest, _)) = scratch.nearest(means, 0..means.len(), bytes) {
                groups[nearest].push(slot);
            }
        })?;
        Some(groups)
    }

    /// For each slot the nearest of the fine means; `ranges` tells which of them each coarse group has.
    fn place(&self, slots: &[u32], coarse: &Rows, fine: &Rows, ranges: &[std::ops::Range<usize>]) -> Option<Vec<u32>> {
        let mut of = vec![NONE; slots.len()];
        let (mut scratch, mut order) = (Scratch::default(), Vec::new());
        self.each(slots, |slot, _, bytes| {
            order.clear();
            order.extend(scratch.with_all(coarse, bytes).iter().copied().zip(0_usize..));
            let near = GROUPS.min(order.len());
            if near < order.len() {
                order.select_nth_unstable_by(near, |a, b| b.0.total_cmp(&a.0));
            }
            let candidates = order[..near].iter().filter_map(|(_, g)| scratch.nearest(fine, ranges[*g].clone(), bytes));
            if let Some((nearest, _)) = candidates.max_by(|a, b| a.1.total_cmp(&b.1)) {
                of[slot as usize] = super::number(nearest);
            }
        })?;
        Some(of)
    }
}
