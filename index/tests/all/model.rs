//! Random changes, by seed, against a map of what the files hold.

use std::collections::BTreeMap;

use satchel_index::{FilesQuery, State};

use crate::harness::{Bench, Rng};

/// One word that only this version of this file has.
fn mark(version: usize) -> String {
    format!("mark{version}x")
}

#[test]
fn random_changes_leave_the_index_like_the_folder() {
    for seed in 0..6 {
        run(seed, 60);
    }
}

fn run(seed: u64, steps: usize) {
    let mut rng = Rng(seed.wrapping_mul(7919) + 1);
    let mut bench = Bench::new();
    let mut model: BTreeMap<String, usize> = BTreeMap::new();
    let mut running = false;
    for version in 0..steps {
        let name = format!("d{}/f{}.md", rng.below(3), rng.below(6));
        match rng.below(8) {
            0..=3 => {
                let filler = "some more words to fill the text up. ".repeat(rng.below(80));
                bench.write(&name, format!("# Head {version}\n\n{filler}\n\n{}\n", mark(version)));
                model.insert(name, version);
            }
            4 => {
                if model.remove(&name).is_some() {
                    std::fs::remove_file(bench.path(&name)).unwrap();
                }
            }
            5 => {
                let to = format!("d{}/f{}.md", rng.below(3), rng.below(6));
                if let Some(version) = model.remove(&name) {
                    std::fs::create_dir_all(bench.path(&to).parent().unwrap()).unwrap();
                    std::fs::rename(bench.path(&name), bench.path(&to)).unwrap();
                    model.insert(to, version);
                }
            }
            6 => {
                let (from, to) = (format!("d{}", rng.below(3)), format!("d{}", rng.below(3)));
                if bench.path(&from).exists() && !bench.path(&to).exists() {
                    std::fs::rename(bench.path(&from), bench.path(&to)).unwrap();
                    let moved: Vec<String> = model.keys().filter(|k| k.starts_with(&from)).cloned().collect();
                    for name in moved {
                        let version = model.remove(&name).unwrap();
                        model.insert(name.replacen(&from, &to, 1), version);
                    }
                }
            }
            _ if running => {
                bench.stop();
                running = false;
            }
            _ => {
                bench.start();
                running = true;
            }
        }
    }
    if !running {
        bench.start();
    }
    bench.until(&format!("seed {seed} is in step"), |b| in_step(b, &model));
    bench.settle();
    check(&bench, &model, steps, seed);
}

fn in_step(bench: &Bench, model: &BTreeMap<String, usize>) -> bool {
    let files = bench.index.files(&FilesQuery::default()).unwrap();
    files.len() == model.len()
        && files.iter().all(|f| f.state == State::Indexed)
        && model.iter().all(|(name, version)| bench.find(&mark(*version)) == [name.as_str()])
}

fn check(bench: &Bench, model: &BTreeMap<String, usize>, steps: usize, seed: u64) {
    for version in 0..steps {
        let wanted: Vec<&String> = model.iter().filter(|(_, v)| **v == version).map(|(n, _)| n).collect();
        assert_eq!(bench.find(&mark(version)).iter().collect::<Vec<_>>(), wanted, "seed {seed}, version {version}");
    }
    let counts = bench.index.counts().unwrap();
    assert_eq!(counts.unembedded, 0);
    let listed: u64 = bench.index.files(&FilesQuery::default()).unwrap().iter().map(|f| f.passages).sum();
    assert_eq!(counts.passages, listed);
}
