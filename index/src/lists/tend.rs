//! Looks after the lists, on a thread of its own: makes them once they are worth having, gives loose passages a place, cuts
//! lists that grew long, and lets go of lists that are no longer wanted.

use std::sync::{PoisonError, RwLock};

use super::build::build;
use super::rows::{Rows, Scratch, halves};
use crate::limits::{LISTS_PASSAGES_MIN, LOOSE_BATCH, LOOSE_MANY};
use crate::resident::Resident;

/// What is to be done next.
enum Task {
    Build,
    Drop,
    Place(Vec<u32>),
    Split(usize),
    Nothing,
}

/// Whether there is so much to be done that it should not wait for a quiet moment.
pub(crate) fn pressing(resident: &Resident) -> bool {
    match resident.lists() {
        None => resident.embedded() >= LISTS_PASSAGES_MIN,
        Some(lists) => lists.loose().len() >= LOOSE_MANY,
    }
}

/// Does all that is to be done; lists are worth having from `least` vectors on. `go_on` is asked about once a millisecond,
/// while nothing is locked; it may wait, and tells to stop by `false`.
pub(crate) fn tend(table: &RwLock<Resident>, least: usize, go_on: &dyn Fn() -> bool) {
    while go_on() {
        let task = next(&read(table), least);
        match task {
            Task::Nothing => return,
            Task::Build => {
                let Some((layout, lists)) = build(table, go_on) else { continue };
                write(table).set_lists(layout, lists);
            }
            Task::Drop => write(table).drop_lists(),
            Task::Place(slots) => place(table, &slots),
            Task::Split(list) => split(table, list),
        }
    }
}

fn read(table: &RwLock<Resident>) -> std::sync::RwLockReadGuard<'_, Resident> {
    table.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(table: &RwLock<Resident>) -> std::sync::RwLockWriteGuard<'_, Resident> {
    table.write().unwrap_or_else(PoisonError::into_inner)
}

fn next(resident: &Resident, least: usize) -> Task {
    let embedded = resident.embedded();
    match resident.lists() {
        None if embedded >= least => Task::Build,
        None => Task::Nothing,
        // Not at the same number, lest lists be made and dropped by turns.
        Some(_) if embedded < least / 2 => Task::Drop,
        Some(lists) if lists.stale(embedded) => Task::Build,
        Some(lists) => match (lists.loose(), lists.full()) {
            ([], None) => Task::Nothing,
            ([], Some(list)) => Task::Split(list),
            (loose, _) => Task::Place(loose.iter().rev().take(LOOSE_BATCH).copied().collect()),
        },
    }
}

/// Finds a list for some slots. Their vectors are looked at while only other readers may, the lists change after.
fn place(table: &RwLock<Resident>, slots: &[u32]) {
    let (layout, placed) = {
        let resident = read(table);
        let Some(lists) = resident.lists() else { return };
        let mut scratch = Scratch::default();
        let placed = slots.iter().filter_map(|slot| {
            let (scale, bytes) = resident.vector(*slot as usize)?;
            Some((*slot as usize, lists.place(scale, bytes, &mut scratch)?))
        });
        (resident.layout(), placed.collect::<Vec<_>>())
    };
    let mut resident = write(table);
    if resident.layout() == layout {
        resident.change_lists(|lists, _| placed.iter().for_each(|(slot, list)| lists.assign(*slot, *list)));
    }
}

/// Cuts a list in two. Nobody may look meanwhile, for which a list is short enough.
fn split(table: &RwLock<Resident>, list: usize) {
    write(table).change_lists(|lists, resident| {
        let mut vectors = Rows::new(resident.dim);
        for slot in lists.slots(list) {
            if let Some((scale, bytes)) = resident.vector(*slot as usize) {
                vectors.push(scale, bytes);
            }
        }
        let Some(halves) = halves(&vectors) else { return };
        let mut scratch = Scratch::default();
        lists.split(list, &halves, |slot| {
            let vector = resident.vector(slot as usize);
            vector.and_then(|(_, bytes)| scratch.nearest(&halves, 0..halves.len(), bytes)).is_some_and(|(n, _)| n == 1)
        });
    });
}
