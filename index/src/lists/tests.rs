use std::cell::Cell;
use std::sync::RwLock;

use super::*;
use crate::limits::COMPARED_SHARE;
use crate::nearest::{look_up, scan};
use crate::resident::tests::{DIM, add, table};
use crate::resident::{Change, Resident};
use crate::testing::Rng;

const LEAST: usize = 500;

/// Around one of `centres`.
fn near(centres: &[Vec<f32>], rng: &mut Rng) -> Vec<f32> {
    let centre = &centres[rng.below(centres.len())];
    centre.iter().zip(rng.unit(DIM)).map(|(c, own)| c + 0.7 * own).collect()
}

fn clustered(documents: i64, rng: &mut Rng) -> (RwLock<Resident>, Vec<Vec<f32>>) {
    let centres: Vec<Vec<f32>> = (0..40).map(|_| rng.unit(DIM)).collect();
    let mut resident = table(0, rng);
    add(&mut resident, 1, documents, || near(&centres, rng));
    (RwLock::new(resident), centres)
}

/// Each slot with a vector is in one list, that which is written down for it, and no other is in any.
fn check(resident: &Resident) {
    let Some(lists) = resident.lists() else { return };
    assert_eq!(lists.of.len(), resident.slots());
    let mut found = vec![NONE; resident.slots()];
    let all = lists.lists.iter().map(|l| &l.slots).zip(0..).chain([(&lists.loose, LOOSE)]);
    for (slots, list) in all {
        for slot in slots {
            assert_eq!(std::mem::replace(&mut found[*slot as usize], list), NONE, "slot {slot} is in two lists");
        }
    }
    assert_eq!(found, lists.of);
    for slot in 0..resident.slots() {
        assert_eq!(resident.vector(slot).is_some(), found[slot] != NONE, "slot {slot}");
    }
    assert!(lists.lists.iter().all(|l| !l.closed || l.slots.is_empty()));
    assert_eq!(lists.means.len(), lists.lists.len());
}

fn recall(resident: &Resident, allowed: Option<&[bool]>, wanted: usize, mut query: impl FnMut() -> Vec<f32>) -> f32 {
    let mut found = 0;
    for _ in 0..50 {
        let query = query();
        let exact = scan(resident, &query, allowed, 10);
        let lists = look_up(resident, resident.lists().unwrap(), &query, allowed, wanted, 10);
        assert!(lists.iter().all(|r| allowed.is_none_or(|a| a[r.slot]) && resident.vector(r.slot).is_some()));
        found += exact.iter().filter(|e| lists.contains(e)).count();
    }
    found as f32 / 500.0
}

#[test]
fn a_twelfth_of_clustered_vectors_holds_the_nearest() {
    let mut rng = Rng::new(31);
    let (table, centres) = clustered(1500, &mut rng);
    tend(&table, LEAST, &|| true);
    let resident = table.read().unwrap();
    check(&resident);
    assert!(resident.lists().unwrap().loose().is_empty());
    let all = recall(&resident, None, resident.embedded() / 12, || near(&centres, &mut rng));
    assert!(all >= 0.98, "recall {all}");
    // A filter that leaves a third of the documents, compared with as large a share of them.
    let third: Vec<bool> = (0..resident.slots()).map(|slot| slot / 10 % 3 == 0).collect();
    let filtered = recall(&resident, Some(&third), resident.embedded() / 36, || near(&centres, &mut rng));
    assert!(filtered >= 0.98, "recall under a filter {filtered}");
}

#[test]
fn vectors_that_point_anywhere_need_more() {
    let mut rng = Rng::new(32);
    let table = RwLock::new(table(600, &mut rng));
    tend(&table, LEAST, &|| true);
    let resident = table.read().unwrap();
    check(&resident);
    let half = recall(&resident, None, 3000, || rng.unit(DIM));
    assert!((0.9..1.0).contains(&half), "recall {half} of a half");
    assert_eq!(recall(&resident, None, 6000, || rng.unit(DIM)), 1.0);
    let few: Vec<bool> = (0..6000).map(|slot| slot % 100 == 0).collect();
    assert_eq!(recall(&resident, Some(&few), 60, || rng.unit(DIM)), 1.0);
}

#[test]
fn any_order_of_changes_leaves_each_vector_in_one_list() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let (table, centres) = clustered(60, &mut rng);
        let mut documents: Vec<i64> = (1..=60).collect();
        let mut next = 61;
        for _ in 0..60 {
            match rng.below(8) {
                0 | 1 => {
                    let n = 1 + rng.below(20) as i64;
                    add(&mut table.write().unwrap(), next, n, || near(&centres, &mut rng));
                    documents.extend(next..next + n);
                    next += n;
                }
                2 | 3 if !documents.is_empty() => {
                    let gone = (0..1 + rng.below(8)).filter_map(|_| documents.pop()).collect::<Vec<_>>();
                    table.write().unwrap().apply(gone.into_iter().map(|id| Change::RemoveDocument { id }).collect(), 2);
                    let left = documents.len();
                    documents.rotate_left(rng.below(left + 1));
                }
                4 if !documents.is_empty() => {
                    let passage_id = documents[rng.below(documents.len())] * 10 + rng.below(10) as i64;
                    let vector = Quantized::of(&near(&centres, &mut rng));
                    table.write().unwrap().apply(vec![Change::SetVector { passage_id, vector }], 3);
                }
                5 if rng.below(20) == 0 => table.write().unwrap().apply(vec![Change::ResetVectors { dim: DIM }], 4),
                _ => {
                    let patience = Cell::new(if rng.below(3) == 0 { rng.below(30) } else { usize::MAX });
                    tend(&table, LEAST, &|| {
                        patience.set(patience.get().saturating_sub(1));
                        patience.get() > 0
                    });
                }
            }
            let resident = table.read().unwrap();
            check(&resident);
            if let Some(lists) = resident.lists() {
                let query = near(&centres, &mut rng);
                let all = look_up(&resident, lists, &query, None, usize::MAX, 10);
                assert_eq!(all, scan(&resident, &query, None, 10), "seed {seed}");
            }
        }
    }
}

#[test]
fn what_changes_while_lists_are_made_is_put_right() {
    let mut rng = Rng::new(33);
    let (table, centres) = clustered(300, &mut rng);
    let calls = Cell::new(0);
    let count = |table: &RwLock<Resident>, at: usize, change: &mut dyn FnMut(&mut Resident)| {
        let change = std::cell::RefCell::new(change);
        calls.set(0);
        build::build(table, &|| {
            calls.set(calls.get() + 1);
            if calls.get() == at {
                (change.borrow_mut())(&mut table.write().unwrap());
            }
            true
        })
    };
    let lists = count(&table, usize::MAX, &mut |_| {}).unwrap();
    let turns = calls.get();
    assert!(turns > 20, "asked {turns} times");
    drop(lists);
    for (n, at) in [2, turns / 2, turns - 2, turns].into_iter().enumerate() {
        let id = 300 + 10 * n as i64;
        let lists = count(&table, at, &mut |resident| {
            resident.apply((id - 9..id).map(|id| Change::RemoveDocument { id }).collect(), 2);
            add(resident, id + 1, 10, || near(&centres, &mut rng));
        });
        let (layout, lists) = lists.unwrap();
        table.write().unwrap().set_lists(layout, lists);
        let resident = table.read().unwrap();
        check(&resident);
        assert!(resident.lists().is_some());
    }
    // Renumbered slots are another matter: what was made is of no use.
    let gone = || (1..=250).map(|id| Change::RemoveDocument { id }).collect();
    assert!(count(&table, turns / 2, &mut |r| r.apply(gone(), 3)).is_none());
    check(&table.read().unwrap());
    assert!(build::build(&table, &|| false).is_none());
}

#[test]
fn lists_of_a_table_that_was_read_anew_or_renumbered_since_are_not_taken() {
    let mut rng = Rng::new(36);
    let (table, _) = clustered(300, &mut rng);
    tend(&table, LEAST, &|| true);
    let (layout, lists) = build::build(&table, &|| true).unwrap();
    table.write().unwrap().apply((1..=200).map(|id| Change::RemoveDocument { id }).collect(), 2);
    assert_eq!(table.read().unwrap().slots(), 1000, "renumbered");
    check(&table.read().unwrap());
    table.write().unwrap().drop_lists();
    table.write().unwrap().set_lists(layout, lists);
    assert!(table.read().unwrap().lists().is_none());
    // A store without tables: reading it fails.
    let empty = rusqlite::Connection::open_in_memory().unwrap();
    tend(&table, LEAST, &|| true);
    let (layout, lists) = build::build(&table, &|| true).unwrap();
    let mut resident = table.write().unwrap();
    assert!(resident.lists().is_some() && resident.reload(&empty).is_err());
    assert!(resident.lists().is_none() && resident.slots() == 0 && resident.outdated());
    resident.set_lists(layout, lists);
    assert!(resident.lists().is_none());
}

#[test]
fn a_list_that_grows_is_cut_and_lists_that_shrink_are_let_go() {
    let mut rng = Rng::new(34);
    let (table, _) = clustered(100, &mut rng);
    tend(&table, LEAST, &|| true);
    let first = table.read().unwrap().lists().unwrap().lists.len();
    // A hundred times the same vector, which no cut can part, and then many around one point.
    let centre = vec![rng.unit(DIM)];
    let same = rng.unit(DIM);
    add(&mut table.write().unwrap(), 101, 100, || same.clone());
    add(&mut table.write().unwrap(), 201, 200, || near(&centre, &mut rng));
    assert_eq!(table.read().unwrap().lists().unwrap().loose().len(), 3000);
    tend(&table, LEAST, &|| true);
    {
        let resident = table.read().unwrap();
        check(&resident);
        let lists = resident.lists().unwrap();
        assert!(lists.loose().is_empty() && lists.full().is_none());
        assert!(lists.lists.len() >= first + 8, "{} lists, {first} before", lists.lists.len());
        let found = recall(&resident, None, 4000 / COMPARED_SHARE * 4, || near(&centre, &mut rng));
        assert!(found >= 0.9, "recall {found}");
    }
    let mut resident = table.write().unwrap();
    resident.apply((1..=380).map(|id| Change::RemoveDocument { id }).collect(), 2);
    drop(resident);
    tend(&table, LEAST, &|| true);
    assert!(table.read().unwrap().lists().is_none());
}

#[test]
fn a_graph_over_many_means_finds_lists_too() {
    let mut rng = Rng::new(35);
    let (table, centres) = clustered(300, &mut rng);
    let (layout, mut lists) = build::build(&table, &|| true).unwrap();
    assert!(lists.graph.is_none());
    let graph = Graph::new(lists.means.len());
    (0..lists.means.len()).for_each(|n| graph.add(n, lists.means.row(n).0, lists.means.row(n).1));
    lists.graph = Some(graph);
    table.write().unwrap().set_lists(layout, lists);
    add(&mut table.write().unwrap(), 301, 300, || near(&centres, &mut rng));
    tend(&table, LEAST, &|| true);
    let resident = table.read().unwrap();
    check(&resident);
    let lists = resident.lists().unwrap();
    assert!(lists.loose().is_empty() && lists.lists.iter().any(|l| l.closed), "some were cut");
    let found = recall(&resident, None, 500, || near(&centres, &mut rng));
    assert!(found >= 0.95, "recall {found}");
}
