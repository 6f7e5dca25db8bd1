//! Starting a daemon in the background. The daemon is this test binary, told to run the one test that serves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use satchel_ipc::Code;

use super::super::exit::{self, Failure};
use super::super::serve::{self, ServeArgs};
use super::super::session::Session;
use super::super::spawn::Starter;
use super::super::terminal::Terminal;
use super::{FakeBackend, Paths, World};

/// How the home reaches the daemon: as a further filter of the test runner, which matches no test.
const HOME_ARGUMENT: &str = "daemon-home=";

fn home_argument() -> Option<PathBuf> {
    std::env::args().find_map(|argument| argument.strip_prefix(HOME_ARGUMENT).map(PathBuf::from))
}

/// Not a test by itself: it serves when another test starts it as a daemon.
#[test]
#[ignore = "run by other tests as their daemon"]
fn daemon_of_a_test() {
    let Some(home) = home_argument() else { return };
    let paths = Paths::new(Some(&home), |_| None).unwrap();
    let mut terminal = Terminal::of_process(false);
    let result = serve::run(&ServeArgs::default(), &paths, &FakeBackend, &mut terminal);
    std::process::exit(exit::conclude(result, &mut terminal).into());
}

fn starter(paths: &Paths) -> Starter {
    let mut home = OsString::from(HOME_ARGUMENT);
    home.push(&paths.home);
    let test = "cli::tests::daemon::daemon_of_a_test";
    Starter {
        program: std::env::current_exe().unwrap(),
        arguments: [test, "--exact", "--ignored", "--nocapture"]
            .map(OsString::from)
            .into_iter()
            .chain([home])
            .collect(),
        socket: paths.socket.clone(),
        log: paths.log.clone(),
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_alive(pid: u32) -> bool {
    // A zombie has no command line; a daemon of ours has one.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn terminate(pid: u32) {
    // SAFETY: kill takes two numbers and touches no memory; the process is the daemon this test started.
    unsafe { libc::kill(pid.try_into().unwrap(), libc::SIGTERM) };
}

#[tokio::test]
async fn a_daemon_is_started_once_outlives_its_starter_and_ends_in_order() {
    let world = World::silent();
    let paths = world.paths();
    let session = Session::new(&paths.socket, None);
    let (mut terminal, _) = Terminal::captured(false);
    // Two commands at once: one child serves, the other finds it.
    let (mut other, _) = Terminal::captured(false);
    let (first, second) = tokio::join!(async { starter(&paths).ensure(&session, &mut terminal).await }, async {
        starter(&paths).ensure(&session, &mut other).await
    });
    first.unwrap();
    second.unwrap();
    let pid = session.client.status().await.unwrap().pid;
    assert_ne!(pid, std::process::id());
    starter(&paths).ensure(&session, &mut terminal).await.unwrap();
    assert_eq!(session.client.status().await.unwrap().pid, pid);
    assert_eq!(session_of(pid), pid, "a session of its own");
    terminate(pid);
    until("the daemon ends", || !is_alive(pid)).await;
    until("the socket is removed", || !paths.socket.exists()).await;
    let log = std::fs::read_to_string(&paths.log).unwrap();
    assert!(log.contains("listens on") && log.contains("satchel stopped"), "{log}");
}

fn session_of(pid: u32) -> u32 {
    // SAFETY: getsid takes a number and touches no memory.
    unsafe { libc::getsid(pid.try_into().unwrap()) }.try_into().unwrap()
}

async fn fails(starter: &Starter, paths: &Paths) -> satchel_ipc::ErrorBody {
    let (mut terminal, _) = Terminal::captured(false);
    match starter.ensure(&Session::new(&paths.socket, None), &mut terminal).await {
        Err(Failure::Told(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_daemon_that_dies_at_its_start_tells_why_and_with_its_code() {
    let world = World::silent();
    let paths = world.paths();
    std::fs::create_dir_all(&paths.home).unwrap();
    std::fs::write(&paths.log, "an old complaint\n").unwrap();
    std::fs::write(paths.home.join("refuse"), "").unwrap();
    let error = fails(&starter(&paths), &paths).await;
    assert_eq!(error.code, Code::ModelMissing);
    assert!(error.message.contains("no model for this test"), "{error}");
    assert!(!error.message.contains("old complaint"), "{error}");
    assert!(error.hint.unwrap().contains("daemon.log"));
}

#[tokio::test]
async fn a_program_or_a_home_that_cannot_be_used_is_told() {
    let world = World::silent();
    let paths = world.paths();
    let missing = Starter { program: "/no/such/program".into(), ..starter(&paths) };
    assert!(fails(&missing, &paths).await.message.contains("cannot start /no/such/program"));
    let homeless = Starter { log: Path::new("/dev/null/daemon.log").into(), ..starter(&paths) };
    assert!(fails(&homeless, &paths).await.message.contains("cannot open the log"));
}
