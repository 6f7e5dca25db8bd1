//! Documents are read in a confined process: places are cited, and a file that does harm fails by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Home, SOON, eventually, finish, signal};

/// A PDF of these pages, each one line of text.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|i| format!("{} 0 R", 4 + 2 * i)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (i, text) in pages.iter().enumerate() {
        let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * i
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", i + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

#[test]
fn a_passage_of_a_pdf_says_its_page() {
    let home = Home::bare();
    let path = home.write("lease.pdf", pdf(&["The lease begins in amber.", "The rent falls due in beryl."]));
    let daemon = home.daemon();
    daemon.expect("beryl", &[&path]);
    let found = daemon.post("/v1/search", json!({"query": "beryl", "mode": "lexical"}));
    let hit = &found["hits"][0];
    assert_eq!(hit["page"], 2, "{hit}");
    assert!(!hit["text"].as_str().unwrap().contains("amber"), "a passage keeps to its page: {hit}");
    assert_eq!(daemon.file(&path).unwrap()["kind"], "pdf");
    let shown = home.run(["search", "beryl"]).ok();
    assert!(shown.out.contains("lease.pdf p. 2:"), "{}", shown.out);
}

/// The processes that read files for this daemon.
fn readers(daemon: u32) -> Vec<i32> {
    let children = fs::read_dir(format!("/proc/{daemon}/task")).unwrap().flatten();
    let lists = children.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()).collect()
}

#[test]
fn a_reader_that_is_killed_is_replaced() {
    let home = Home::bare();
    let first = home.write("first.txt", "amethyst\n");
    let daemon = home.daemon();
    daemon.expect("amethyst", &[&first]);
    let pids = readers(daemon.pid());
    assert_eq!(pids.len(), 1, "one process reads");
    let status = fs::read_to_string(format!("/proc/{}/status", pids[0])).unwrap();
    assert!(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"), "{status}");
    signal(pids[0], libc::SIGKILL);
    let second = home.write("second.txt", "beryl\n");
    daemon.expect("beryl", &[&second]);
    assert_ne!(readers(daemon.pid()), pids);
    daemon.stop();
    eventually("the reader ends with its daemon", SOON, || {
        if pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) { Err(String::new()) } else { Ok(()) }
    });
}

/// Every file below a folder with its size and time.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                all.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
            }
        }
    }
    all
}

#[test]
fn hostile_files_fail_by_themselves() {
    let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus/hostile/make_hostile.py");
    if !maker.is_file() {
        // Outside of continuous integration the generator may not be there; the formats' own tests have their hostile files.
        return;
    }
    let home = Home::bare();
    let mut make = Command::new("python3");
    make.arg(&maker).arg(home.docs.join("hostile"));
    finish(make).ok();
    let good = home.write("good.txt", "amethyst\n");
    let before = snapshot(&home.docs);
    let daemon = home.daemon();
    daemon.settled();
    daemon.expect("amethyst", &[&good]);
    let files = daemon.files();
    assert!(files.len() > 150, "{} files", files.len());
    for file in &files {
        let state = file["state"].as_str().unwrap();
        assert_ne!(state, "pending", "{file}");
        assert!(state == "indexed" || file["reason"].as_str().is_some_and(|r| !r.is_empty()), "{file}");
        let reason = file["reason"].as_str().unwrap_or_default();
        assert!(!reason.contains("longer than") && !reason.contains("crashed"), "{file}");
    }
    assert_eq!(snapshot(&home.docs), before, "nothing is written beside the documents");
    daemon.stop();
}
