//! Roots, and what lies in them that is no ordinary file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use satchel_index::{Error, Event, RootState, State};

use crate::harness::Bench;

#[test]
fn a_root_must_be_a_folder() {
    let bench = Bench::new();
    bench.write("file.txt", "x");
    assert!(matches!(bench.index.add_root(&bench.path("none")), Err(Error::RootMissing { .. })));
    assert!(matches!(bench.index.add_root(&bench.path("file.txt")), Err(Error::RootNotAFolder { .. })));
    assert!(matches!(bench.index.add_root(&bench.dir.path().join("index")), Err(Error::RootHoldsIndex { .. })));
    assert!(matches!(bench.index.remove_root(&bench.path("none")), Err(Error::NotARoot { .. })));
}

#[test]
fn nested_roots_are_one() {
    let mut bench = Bench::new();
    bench.write("inner/a.txt", "lemur");
    bench.index.add_root(&bench.path("inner")).unwrap();
    bench.index.add_root(&bench.path("inner/../inner")).unwrap();
    assert_eq!(bench.index.roots().unwrap().len(), 1);
    bench.index.add_root(bench.dir.path()).unwrap();
    let roots = bench.index.roots().unwrap();
    assert_eq!(roots.iter().map(|r| r.path.clone()).collect::<Vec<_>>(), [bench.dir.path().canonicalize().unwrap()]);
    bench.start();
    assert_eq!(bench.find("lemur"), ["inner/a.txt"]);
    // The index lies inside the root by now; it does not index itself.
    assert!(
        bench
            .index
            .files(&satchel_index::FilesQuery::default())
            .unwrap()
            .iter()
            .all(|f| !f.path.ends_with("index.sqlite"))
    );
}

#[test]
fn a_removed_root_takes_its_documents_with_it() {
    let mut bench = Bench::new();
    bench.write("a.txt", "tapir");
    bench.start();
    assert_eq!(bench.index.remove_root(&bench.root()).unwrap(), 1);
    assert!(bench.find("tapir").is_empty());
    bench.indexer.as_ref().unwrap().rescan();
    bench.settle();
    assert_eq!(bench.index.counts().unwrap().documents, 0);
}

#[test]
fn a_vanished_root_is_not_a_deleted_one() {
    let mut bench = Bench::new();
    bench.write("a.txt", "okapi");
    bench.start();
    let away = bench.dir.path().join("away");
    let root = bench.root();
    std::fs::rename(&root, &away).unwrap();
    let rescan = |bench: &Bench| {
        bench.indexer.as_ref().unwrap().rescan();
        bench.settle();
    };
    rescan(&bench);
    assert_eq!(bench.index.roots().unwrap()[0].state, RootState::Missing);
    assert_eq!(bench.index.search(&satchel_index::Query::new("okapi", 5), None).unwrap().hits.len(), 1);
    // An empty folder in its place is a mount point without its file system.
    std::fs::create_dir(&root).unwrap();
    rescan(&bench);
    assert_eq!(bench.index.roots().unwrap()[0].state, RootState::Missing);
    assert_eq!(bench.find("okapi"), ["a.txt"]);
    std::fs::remove_dir(&root).unwrap();
    std::fs::rename(&away, &root).unwrap();
    rescan(&bench);
    assert_eq!(bench.index.roots().unwrap()[0].state, RootState::Present);
    assert_eq!(bench.find("okapi"), ["a.txt"]);
    let told = bench.events.lock().unwrap();
    assert!(told.iter().any(|e| matches!(e, Event::Root { state: RootState::Missing, .. })));
    drop(told);
    // Emptied by its owner, it is the same folder.
    std::fs::remove_file(bench.path("a.txt")).unwrap();
    bench.until("the file is gone", |b| b.find("okapi").is_empty());
}

#[test]
fn links_lead_nowhere() {
    let mut bench = Bench::new();
    let outside = bench.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "wolverine").unwrap();
    bench.write("real.txt", "badger");
    symlink(&outside, bench.path("link_to_folder")).unwrap();
    symlink(outside.join("secret.txt"), bench.path("link.txt")).unwrap();
    symlink(bench.root(), bench.path("loop")).unwrap();
    bench.start();
    assert!(bench.find("wolverine").is_empty());
    assert_eq!(bench.find("badger"), ["real.txt"]);
    assert_eq!(bench.index.counts().unwrap().documents, 1);
}

#[test]
fn a_file_that_turns_into_a_link_is_gone() {
    let mut bench = Bench::new();
    bench.write("a.txt", "stoat");
    bench.start();
    std::fs::remove_file(bench.path("a.txt")).unwrap();
    symlink("/etc/hostname", bench.path("a.txt")).unwrap();
    bench.until("the link is not read", |b| b.file("a.txt").is_none());
}

#[test]
fn names_need_not_be_text() {
    let mut bench = Bench::new();
    let name = OsStr::from_bytes(b"bad\xFF\xFEname.txt");
    std::fs::write(bench.root().join(name), "ocelot").unwrap();
    bench.write("new\nline.txt", "jaguar");
    bench.start();
    let hit = bench.index.search(&satchel_index::Query::new("ocelot", 5), None).unwrap().hits.remove(0);
    assert_eq!(hit.path, bench.root().join(name));
    assert!(hit.document_id.ends_with("bad\\xFF\\xFEname.txt"), "{}", hit.document_id);
    assert_eq!(bench.find("jaguar"), ["new\nline.txt"]);
}

#[test]
fn what_cannot_be_read_is_listed_with_a_reason() {
    let mut bench = Bench::new();
    bench.write("empty.txt", "");
    bench.write("blank.md", "\n \n");
    bench.write("picture.png", b"\x89PNG\r\n\x1a\n");
    bench.write("paper.pdf", b"%PDF-1.7");
    bench.write("noise.txt", (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect::<Vec<_>>());
    let huge = std::fs::File::create(bench.path("huge.txt")).unwrap();
    huge.set_len(1 << 40).unwrap();
    bench.write("good.txt", "puma");
    bench.start();
    for (name, state, reason) in [
        ("empty.txt", State::Empty, "no text"),
        ("blank.md", State::Empty, "no text"),
        ("picture.png", State::Excluded, "not a text document"),
        ("paper.pdf", State::Failed, "too damaged"),
        ("noise.txt", State::Excluded, "not text"),
        ("huge.txt", State::Failed, "larger than the limit"),
    ] {
        let file = bench.file(name).unwrap();
        assert_eq!(file.state, state, "{name}");
        assert!(file.reason.as_deref().unwrap().contains(reason), "{name}: {:?}", file.reason);
    }
    let counts = bench.index.counts().unwrap();
    assert_eq!((counts.empty, counts.excluded, counts.failed, counts.indexed, counts.pending), (2, 2, 2, 1, 0));
    bench.write("empty.txt", "no longer");
    bench.until("a filled file is indexed", |b| b.state("empty.txt") == Some(State::Indexed));
}

#[test]
fn litter_and_ignored_files_are_not_listed() {
    let mut bench = Bench::new();
    for name in
        [".git/x.txt", "node_modules/p/x.txt", "target/debug/x.txt", ".hidden.txt", "~$a.docx", "b.txt~", "c.part"]
    {
        bench.write(name, "litter");
    }
    bench.write("target.txt", "sales target");
    bench.write("plans/target/a.txt", "sales target");
    bench.write(".gitignore", "build/\n");
    bench.write("build/out.txt", "litter");
    bench.start();
    assert!(bench.find("litter").is_empty());
    assert_eq!(bench.find("sales").len(), 2);
    assert_eq!(bench.index.counts().unwrap().documents, 2);
}

#[test]
fn fifos_and_deep_folders_do_not_stop_the_scan() {
    let mut bench = Bench::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("fifo.txt"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let mut deep = "d/".repeat(300);
    deep.push_str("f.txt");
    bench.write(&deep, "marmot");
    bench.start();
    assert_eq!(bench.find("marmot"), [deep]);
    assert_eq!(bench.index.counts().unwrap().documents, 1);
}
