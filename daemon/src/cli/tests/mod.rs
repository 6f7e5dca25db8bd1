//! Commands against a fake daemon on a real socket, and a real process started in the background.

mod daemon;
mod fake;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use satchel_ipc::wire::AskReply;
use satchel_ipc::{CancelReason, ErrorReply, Socket};
use tokio::sync::oneshot;

use super::args::{Cli, Command};
use super::session::Session;
use super::terminal::Terminal;
use super::{call, exit, run_here};
use crate::paths::Paths;
use fake::{Fake, FakeBackend};

/// What a command did.
struct Ran {
    code: u8,
    out: String,
    err: String,
}

/// A home with a fake daemon in this process, or with none.
struct World {
    folder: tempfile::TempDir,
    fake: Arc<Fake>,
    _stop: Option<oneshot::Sender<()>>,
    _socket: Option<Socket>,
}

impl World {
    fn silent() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("notes")).unwrap();
        Self { folder, fake: Arc::default(), _stop: None, _socket: None }
    }

    fn with(fake: Fake) -> Self {
        let mut world = Self::silent();
        let (socket, listener) = Socket::bind(&world.paths().socket).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        world.fake = Arc::new(fake);
        tokio::spawn(satchel_ipc::serve(listener, Arc::clone(&world.fake), async {
            let _ = stopped.await;
        }));
        world._stop = Some(stop);
        world._socket = Some(socket);
        world
    }

    fn paths(&self) -> Paths {
        Paths::new(Some(&self.folder.path().join("home")), |_| None).unwrap()
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    /// Runs one command as typed; `NOTES` stands for the folder of notes.
    async fn run(&self, line: &[&str]) -> Ran {
        let notes = self.notes();
        let words = line.iter().map(|word| if *word == "NOTES" { notes.to_str().unwrap() } else { word });
        let cli = Cli::try_parse_from(std::iter::once("satchel").chain(words)).unwrap();
        let (mut terminal, capture) = Terminal::captured(cli.global.json);
        let paths = self.paths();
        let result = match cli.command {
            Command::Local(command) => run_here(
                command,
                cli.global.deadline.map(|time| Instant::now() + time),
                &paths,
                &FakeBackend,
                &mut terminal,
            ),
            Command::Remote(command) => {
                let session = Session::new(&paths.socket, cli.global.deadline);
                session.run(call(command, &session, &paths, &mut terminal)).await
            }
        };
        let code = exit::conclude(result, &mut terminal);
        Ran { code, out: capture.out(), err: capture.err() }
    }
}

/// Fits the screen and cannot drive it.
fn assert_tame(ran: &Ran) {
    for line in ran.out.lines().chain(ran.err.lines()) {
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[tokio::test]
async fn ask_in_a_folder_adds_it_waits_and_answers_with_numbered_sources() {
    let world = World::with(Fake { looks: 3, ..Fake::default() });
    let ran = world.run(&["ask", "--in", "NOTES", "When does", "the lease end?"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("It ends in May. [1][2]\\u{1b}[2J"), "{}", ran.out);
    assert!(
        ran.out.contains("\n[1] /notes/lease\\u{1b}[2J\\u{1b}]0;owned\\u{7}.md:12-14\n    \"The lease ends"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("[2] ") && ran.out.contains("has changed since"), "{}", ran.out);
    assert_tame(&ran);
    let asked = world.fake.asked.lock().unwrap();
    let notes = world.notes().canonicalize().unwrap().to_str().unwrap().to_string();
    assert_eq!(asked[0].question, "When does the lease end?");
    assert_eq!(asked[0].filter.as_ref().unwrap().path_prefix, std::slice::from_ref(&notes));
    assert_eq!(*world.fake.roots.lock().unwrap(), [(notes, 0)]);
}

#[tokio::test]
async fn a_folder_inside_a_watched_one_is_not_added_again() {
    let world = World::with(Fake::default());
    let notes = world.notes().canonicalize().unwrap();
    std::fs::create_dir(notes.join("sub")).unwrap();
    world.fake.roots.lock().unwrap().push((notes.to_str().unwrap().into(), 0));
    let sub = notes.join("sub");
    let ran = world.run(&["ask", "--short", "--in", sub.to_str().unwrap(), "q"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(!ran.out.contains("[1] /notes"), "short means the answer alone: {}", ran.out);
    assert_eq!(world.fake.roots.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn ask_as_json_is_the_reply_and_nothing_else() {
    let world = World::with(Fake::default());
    let ran = world.run(&["ask", "--json", "--in", "NOTES", "q"]).await;
    let reply: AskReply = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, reply.citations.len()), (0, 2));
}

#[tokio::test]
async fn not_in_the_documents_is_exit_3() {
    let world = World::with(Fake::default());
    let ran = world.run(&["ask", "--in", "NOTES", "unknown"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, "The documents do not say.\n"));
}

#[tokio::test]
async fn what_cannot_be_indexed_is_exit_4_with_its_reason() {
    let world = World::with(Fake { unavailable: true, ..Fake::default() });
    let ran = world.run(&["ask", "--in", "NOTES", "q"]).await;
    assert_eq!(ran.code, 4);
    assert!(ran.err.contains("is not available: not mounted"), "{}", ran.err);
    let empty = World::with(Fake::default());
    let ran = empty.run(&["ask", "q"]).await;
    assert_eq!(ran.code, 4);
    assert!(ran.err.contains("no folder is watched yet\n  hint: "), "{}", ran.err);
}

#[tokio::test]
async fn a_question_over_a_growing_index_says_what_it_may_miss() {
    let world = World::with(Fake::default());
    world.fake.roots.lock().unwrap().push(("/notes".into(), 9));
    let ran = world.run(&["ask", "q"]).await;
    assert_eq!(ran.code, 0);
    assert_eq!(ran.err, "9 files are not indexed yet; the answer may miss them\n");
}

#[tokio::test]
async fn the_deadline_cancels_the_daemons_work() {
    let world = World::with(Fake::default());
    let started = Instant::now();
    let ran = world.run(&["ask", "--deadline", "0.2", "--in", "NOTES", "block"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("deadline"), "{}", ran.err);
    assert!(started.elapsed() < Duration::from_secs(10));
    let mut ends = world.fake.ends.subscribe();
    let ended = tokio::time::timeout(Duration::from_secs(10), ends.wait_for(|ends| !ends.is_empty())).await;
    assert_eq!(*ended.unwrap().unwrap(), [CancelReason::Deadline]);
}

#[tokio::test]
async fn wrong_paths_are_exit_2_and_start_no_daemon() {
    let world = World::silent();
    let file = world.notes().join("a.txt");
    std::fs::write(&file, "x").unwrap();
    for (line, part) in [
        (["ask", "--in", "/no/such/folder", "q"].as_slice(), "cannot open /no/such/folder"),
        (["ask", "--in", file.to_str().unwrap(), "q"].as_slice(), "is not a folder"),
        (["add", file.to_str().unwrap()].as_slice(), "is not a folder"),
    ] {
        let ran = world.run(line).await;
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(part), "{}", ran.err);
    }
    assert!(!world.paths().home.exists());
}

#[tokio::test]
async fn names_that_are_not_utf8_are_told_and_not_mangled() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::silent();
    let folder = world.notes().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    let error = super::session::absolute_folder(&folder).unwrap_err();
    assert!(error.message.contains("is not UTF-8"), "{error}");
}

#[tokio::test]
async fn without_a_daemon_commands_end_with_7_and_say_how_to_start_one() {
    let world = World::silent();
    for line in [&["search", "q"][..], &["status"], &["roots"], &["files"], &["forget", "/a"], &["add", "NOTES"]] {
        let ran = world.run(line).await;
        assert_eq!(ran.code, 7, "{line:?}");
        assert!(ran.err.contains("no daemon listens on") && ran.err.contains("satchel serve"), "{}", ran.err);
    }
    let ran = world.run(&["status", "--json"]).await;
    let reply: ErrorReply = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((reply.error.code.name(), ran.err.as_str()), ("no_daemon", ""));
}

#[tokio::test]
async fn tables_fit_the_screen_and_hostile_names_do_not_drive_it() {
    let world = World::with(Fake::default());
    world.fake.roots.lock().unwrap().push((format!("/notes/{}", fake::HOSTILE), 0));
    for line in [&["search", "the notice period"][..], &["status"], &["roots"], &["files"]] {
        let ran = world.run(line).await;
        assert_eq!(ran.code, 0, "{line:?}: {}", ran.err);
        assert_tame(&ran);
        assert!(ran.out.lines().all(|line| super::render::width(line) <= 80), "{}", ran.out);
    }
}

#[tokio::test]
async fn search_shows_place_score_title_and_a_short_excerpt() {
    let world = World::with(Fake::default());
    let ran = world.run(&["search", "notice", "period"]).await;
    assert!(ran.out.contains("lease.pdf, page 2  (0.750)\n    Lease"), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 7, "{}", ran.out);
    let ran = world.run(&["search", "nothing"]).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (3, "", "no passage matches\n"));
}

#[tokio::test]
async fn status_counts_every_state_and_never_says_done_early() {
    let world = World::with(Fake::default());
    let ran = world.run(&["status"]).await;
    assert!(ran.out.contains("1,234 indexed, 3 pending, 2 failed\n"), "{}", ran.out);
    assert!(ran.out.contains("indexing, version 0.1.0"), "{}", ran.out);
    assert!(ran.out.contains("1.5 s behind"), "{}", ran.out);
    assert!(ran.err.contains("--state failed"), "{}", ran.err);
}

#[tokio::test]
async fn files_follows_the_pages_and_ends() {
    let world = World::with(Fake::default());
    let ran = world.run(&["files"]).await;
    assert!(ran.out.contains("indexed") && ran.out.contains("no text\\u{a}in it"), "{}", ran.out);
    assert_eq!(ran.err, "2 files\n");
    let ran = world.run(&["files", "--json"]).await;
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["files"].as_array().unwrap().len(), 2);
    let world = World::with(Fake { endless_files: true, ..Fake::default() });
    let ran = world.run(&["files"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("does not end"), "{}", ran.err);
}

#[tokio::test]
async fn roots_come_and_go() {
    let world = World::with(Fake::default());
    let notes = world.notes().canonicalize().unwrap();
    assert_eq!(world.run(&["add", "NOTES"]).await.out, format!("watching {}\n", notes.display()));
    assert!(world.run(&["roots"]).await.out.contains(notes.to_str().unwrap()));
    std::fs::remove_dir(&notes).unwrap();
    assert_eq!(world.run(&["remove", notes.to_str().unwrap()]).await.code, 0);
    assert!(world.run(&["roots"]).await.err.contains("no folder is watched"));
}

#[tokio::test]
async fn forget_is_only_done_when_nothing_is_left() {
    let world = World::with(Fake::default());
    let ran = world.run(&["forget", "/notes/a.txt"]).await;
    assert_eq!((ran.code, ran.out.contains("1 documents, 2 passages removed; 0 traces left")), (0, true));
    let ran = world.run(&["forget", "/notes/sticky"]).await;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("1 traces of /notes/sticky"), "{}", ran.err);
}

#[tokio::test]
async fn commands_without_a_daemon_print_rows_or_json() {
    let world = World::silent();
    let ran = world.run(&["doctor"]).await;
    assert!(ran.out.starts_with("isa  avx2\n") && ran.out.contains("satchel.sock"), "{}", ran.out);
    for line in [&["doctor", "--json"][..], &["bench", "--json"], &["model", "show", "m", "--json"]] {
        assert_eq!(world.run(line).await.out, "{\"isa\":\"avx2\"}\n");
    }
    let ran = world.run(&["complete", "--model", "m", "--prompt", "-p"]).await;
    assert_eq!(ran.out, "one\ntwo\\u{1b}\n");
    let ran = world.run(&["model", "list"]).await;
    assert!(ran.out.contains("* smollm2-135m-instruct"), "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.len() <= 80), "{}", ran.out);
    assert_eq!(world.run(&["model", "pull", "m"]).await.out, "fetched m (llm, 1.0 GiB)\n");
    assert_eq!(world.run(&["model", "pull", "absent"]).await.code, 8);
}

#[tokio::test]
async fn a_second_daemon_is_told_of_the_first() {
    let world = World::with(Fake::default());
    let ran = world.run(&["serve"]).await;
    assert_eq!(ran.code, 1);
    let pid = std::process::id();
    assert!(ran.err.contains("a daemon already serves") && ran.err.contains(&format!("process {pid}")), "{}", ran.err);
}

#[tokio::test]
async fn deadlines_end_a_download_and_a_completion_too() {
    let world = World::silent();
    for line in [&["model", "pull", "slow"][..], &["complete", "--model", "m", "--prompt", "slow"]] {
        let ran = world.run(&[line, &["--deadline", "0.05"]].concat()).await;
        assert_eq!(ran.code, 1, "{line:?}");
        assert!(ran.err.contains("the deadline passed"), "{}", ran.err);
    }
}

#[test]
fn wrong_usage_is_exit_2() {
    for line in [&["satchel"][..], &["satchel", "ask"], &["satchel", "search", "q", "--k", "x"], &["satchel", "dance"]]
    {
        let error = Cli::try_parse_from(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line:?}");
    }
}
