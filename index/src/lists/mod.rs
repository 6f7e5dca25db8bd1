//! Lists of passages that are alike, so that a search of many compares with few.
//!
//! From [`LISTS_PASSAGES_MIN`](crate::limits::LISTS_PASSAGES_MIN) vectors on, each belongs to the list of the mean that it is
//! nearest to. A search looks at the lists in the order in which their means are near to the query, until it has compared
//! with a twentieth of all that it might find. What is new stands in the list of loose ones, which every search looks at, until a
//! thread finds it a place ([`tend()`]); so there is no moment at which a passage cannot be found, and nothing to be done
//! while a commit waits but to write down a number. The lists are derived: made anew at each start, while an exact scan
//! serves.
//!
//! Lists and the table of vectors change together, under one lock. Each slot with a vector is in exactly one list.

mod build;
mod rows;
mod tend;
#[cfg(test)]
mod tests;

use crate::graph::Graph;
use crate::limits::{LIST_FULL, LIST_PASSAGES};
use crate::store::vectors::Quantized;
use rows::{Rows, Scratch};
pub(crate) use tend::{pressing, tend};

/// Of a slot without a vector.
const NONE: u32 = u32::MAX;
/// Of a slot that waits for a list.
const LOOSE: u32 = u32::MAX - 1;

/// A list: the slots in it.
#[derive(Default)]
struct List {
    slots: Vec<u32>,
    /// Length from which it is cut in two.
    full: usize,
    /// It was cut, and stays empty: the graph cannot forget its mean.
    closed: bool,
}

/// All lists.
pub(crate) struct Lists {
    /// The mean of each list.
    means: Rows,
    lists: Vec<List>,
    loose: Vec<u32>,
    /// List of each slot, or [`LOOSE`], or [`NONE`].
    of: Vec<u32>,
    /// Over the means, where they are many.
    graph: Option<Graph>,
}

impl Lists {
    /// Lists as `of` says, for slots that may have changed since: see [`Lists::settle`].
    fn new(means: Rows, graph: Option<Graph>, of: Vec<u32>) -> Self {
        let mut lists: Vec<List> = Vec::new();
        lists.resize_with(means.len(), || List { full: LIST_FULL, ..List::default() });
        for (slot, list) in (0_u32..).zip(&of) {
            if let Some(list) = lists.get_mut(*list as usize) {
                list.slots.push(slot);
            }
        }
        Self { means, lists, loose: Vec::new(), of, graph }
    }

    /// Brings lists that were made aside in step with the table: `scales` is 0 where a slot has no vector.
    pub(crate) fn settle(&mut self, scales: &[f32]) {
        self.of.resize(scales.len(), NONE);
        for (slot, scale) in scales.iter().enumerate() {
            match (*scale != 0.0, self.of[slot] != NONE) {
                (true, false) => self.put(slot),
                (false, true) => self.remove(slot),
                _ => {}
            }
        }
    }

    /// A new slot, without a vector as yet.
    pub(crate) fn extend(&mut self) {
        self.of.push(NONE);
    }

    /// A slot got a vector, or another one.
    pub(crate) fn put(&mut self, slot: usize) {
        self.remove(slot);
        self.of[slot] = LOOSE;
        self.loose.push(number(slot));
    }

    /// A slot lost its vector.
    pub(crate) fn remove(&mut self, slot: usize) {
        let list = match std::mem::replace(&mut self.of[slot], NONE) {
            NONE => return,
            LOOSE => &mut self.loose,
            list => &mut self.lists[list as usize].slots,
        };
        let slot = number(slot);
        if let Some(at) = list.iter().position(|s| *s == slot) {
            list.swap_remove(at);
        }
    }

    /// Slots have other numbers: slot `kept[i]` became `i`, the others are gone and in no list.
    pub(crate) fn renumber(&mut self, kept: &[u32]) {
        let of: Vec<u32> = kept.iter().map(|slot| self.of[*slot as usize]).collect();
        self.loose.clear();
        self.lists.iter_mut().for_each(|list| list.slots.clear());
        for (slot, list) in (0..).zip(&of) {
            match *list {
                NONE => {}
                LOOSE => self.loose.push(slot),
                list => self.lists[list as usize].slots.push(slot),
            }
        }
        self.of = of;
    }

    /// How many there are, closed ones included.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Slots that wait for a list.
    pub(crate) fn loose(&self) -> &[u32] {
        &self.loose
    }

    /// Gives a loose slot a list; any other stays where it is.
    fn assign(&mut self, slot: usize, list: usize) {
        if self.of.get(slot) == Some(&LOOSE) && !self.lists[list].closed {
            self.remove(slot);
            self.of[slot] = number(list);
            self.lists[list].slots.push(number(slot));
        }
    }

    /// The list that a vector belongs to.
    fn place(&self, scale: f32, bytes: &[i8], scratch: &mut Scratch) -> Option<usize> {
        let open = |list: &usize| !self.lists[*list].closed;
        if let Some(list) = self.graph.as_ref().and_then(|graph| graph.nearest(scale, bytes).find(open)) {
            return Some(list);
        }
        let cosines = scratch.with_all(&self.means, bytes).iter().zip(0..);
        cosines.filter(|(_, list)| open(list)).max_by(|a, b| a.0.total_cmp(b.0)).map(|(_, list)| list)
    }

    fn slots(&self, list: usize) -> &[u32] {
        &self.lists[list].slots
    }

    /// A list that is too long.
    fn full(&self) -> Option<usize> {
        self.lists.iter().position(|list| list.slots.len() >= list.full)
    }

    /// Closes a list; its slots go to new lists with the first or the second of two means, as `second` tells of each. Where
    /// the means part next to none of them, they are alike, and the list stays until it is twice as long.
    fn split(&mut self, list: usize, halves: &Rows, mut second: impl FnMut(u32) -> bool) {
        let slots = std::mem::take(&mut self.lists[list].slots);
        let (b, a): (Vec<u32>, Vec<u32>) = slots.iter().copied().partition(|slot| second(*slot));
        if halves.len() != 2 || a.len().min(b.len()) < slots.len() / 16 {
            self.lists[list].full = 2 * slots.len();
            self.lists[list].slots = slots;
            return;
        }
        self.lists[list].closed = true;
        for (n, slots) in [a, b].into_iter().enumerate() {
            let (scale, bytes) = halves.row(n);
            let new = self.lists.len();
            if let Some(graph) = &self.graph {
                graph.add(new, scale, bytes);
            }
            self.means.push(scale, bytes);
            slots.iter().for_each(|slot| self.of[*slot as usize] = number(new));
            self.lists.push(List { full: LIST_FULL, slots, closed: false });
        }
    }

    /// Whether so much was cut, or taken out, that they are better made anew.
    pub(crate) fn stale(&self, embedded: usize) -> bool {
        let ideal = embedded.div_ceil(LIST_PASSAGES);
        self.lists.len() > 2 * ideal
    }

    /// Hands the slots of list after list to `look`, the nearest to the query first, until it has had enough.
    pub(crate) fn visit(&self, query: &Quantized, first: usize, mut look: impl FnMut(&[u32]) -> bool) {
        let mut scratch = Scratch::default();
        let cosines = scratch.with_all(&self.means, &query.bytes);
        let mut order: Vec<(f32, usize)> = cosines.iter().copied().zip(0..).collect();
        // Sorted by and by: most are never looked at.
        let (mut rest, mut step) = (order.as_mut_slice(), first.max(1));
        while !rest.is_empty() {
            let nearest = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0);
            if step < rest.len() {
                rest.select_nth_unstable_by(step, nearest);
            }
            let (part, others) = rest.split_at_mut(step.min(rest.len()));
            part.sort_unstable_by(nearest);
            for (_, list) in part {
                if !look(&self.lists[*list].slots) {
                    return;
                }
            }
            (rest, step) = (others, 2 * step);
        }
    }
}

/// A slot or list as it is kept. There are fewer than four billion: each vector has hundreds of bytes.
fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(NONE)
}
