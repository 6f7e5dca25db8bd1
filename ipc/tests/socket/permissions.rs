use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use satchel_ipc::{Socket, SocketError, check_path, default_path};

use crate::harness::Server;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

#[test]
fn the_folder_is_0700_and_the_socket_0600() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/satchel.sock");
    let (socket, _listener) = Socket::bind(&path).unwrap();
    assert_eq!((mode(&home.path().join("a/b")), mode(&path)), (0o700, 0o600));
    assert_eq!(mode(&home.path().join("a/b/satchel.sock.lock")), 0o600);
    drop(socket);
    assert!(!path.exists());
}

#[test]
fn a_second_daemon_is_told_who_is_there() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s");
    let (first, _listener) = Socket::bind(&path).unwrap();
    let Err(SocketError::AlreadyRunning { pid, .. }) = Socket::bind(&path) else { panic!("two daemons") };
    assert_eq!(pid, Some(std::process::id()));
    drop(first);
    Socket::bind(&path).unwrap();
}

#[test]
fn a_served_socket_is_not_replaced_even_without_its_lock() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s");
    let (_first, _listener) = Socket::bind(&path).unwrap();
    fs::remove_file(home.path().join("s.lock")).unwrap();
    assert!(matches!(Socket::bind(&path), Err(SocketError::AlreadyRunning { pid: None, .. })));
}

#[test]
fn a_stale_socket_is_replaced_and_other_files_are_not() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Socket::bind(&path).unwrap());
    fs::write(&path, "a letter").unwrap();
    assert!(matches!(Socket::bind(&path), Err(SocketError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a letter");
}

#[test]
fn a_successors_socket_is_not_removed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("s");
    let (first, _listener) = Socket::bind(&path).unwrap();
    fs::rename(&path, home.path().join("moved")).unwrap();
    let _successor = UnixListener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
}

#[test]
fn a_folder_open_to_writing_is_refused_and_left_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("shared");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Socket::bind(&folder.join("s")), Err(SocketError::UnsafeFolder { .. })));
    assert_eq!(mode(&folder), 0o777);
}

#[test]
fn a_path_too_long_is_said_with_both_lengths() {
    let path = Path::new("/tmp").join("x".repeat(120));
    let Err(SocketError::PathTooLong { length, max, .. }) = check_path(&path) else { panic!("accepted") };
    assert_eq!(length, 125);
    assert!((100..=107).contains(&max));
    let home = tempfile::tempdir().unwrap();
    let longest = home.path().join("y".repeat(max - home.path().as_os_str().len() - 1));
    Socket::bind(&longest).unwrap();
}

#[test]
fn the_default_place_follows_the_platform() {
    let place = |variables: &[(&str, &str)]| {
        let variables: Vec<(String, String)> = variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        default_path(move |name| variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.into()))
    };
    assert_eq!(place(&[("SATCHEL_SOCKET", "/s"), ("XDG_RUNTIME_DIR", "/r")]), Path::new("/s"));
    assert_eq!(place(&[("SATCHEL_SOCKET", ""), ("XDG_RUNTIME_DIR", "/r")]), Path::new("/r/satchel/satchel.sock"));
    let termux = "/data/data/com.termux/files/usr";
    assert_eq!(place(&[("PREFIX", termux)]), Path::new(termux).join("var/run/satchel/satchel.sock"));
    let other = place(&[("PREFIX", "/usr/local")]);
    assert!(other.ends_with("satchel.sock") && !other.starts_with("/usr/local"), "{other:?}");
}

/// Another user reaches the socket when its folder and mode are opened by hand, and is then not heard.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_gets_no_word() {
    let server = Server::start();
    if fs::metadata(&server.path).unwrap().uid() != 0 {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    fs::set_permissions(server.path.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&server.path, Permissions::from_mode(0o666)).unwrap();
    let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                  s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n'); print(len(s.recv(9)))";
    let ask = |uid: u32| {
        use std::os::unix::process::CommandExt;
        Command::new("python3").args(["-c", script]).arg(&server.path).uid(uid).gid(uid).current_dir("/").output()
    };
    let Ok(own) = ask(0) else {
        eprintln!("skipped: no python3 to connect with");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&own.stdout).trim(), "9", "{own:?}");
    let foreign = ask(65534).unwrap();
    let said = String::from_utf8_lossy(&foreign.stdout).trim().to_owned();
    let reset = String::from_utf8_lossy(&foreign.stderr).contains("Error");
    assert!(said == "0" || (said.is_empty() && reset), "{foreign:?}");
}
