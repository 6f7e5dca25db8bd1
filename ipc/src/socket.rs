//! The socket as a file: where it lies, who may open it, and that only one daemon serves it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use tokio::net::UnixStream;

use crate::limits::{HANDOVER_POLL_INTERVAL, HANDOVER_TIMEOUT};

/// Bytes of a lock file that are read for the pid in it; a pid has at most 10 digits.
const PID_BYTES_MAX: u64 = 32;

/// Why the socket cannot be served or reached.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path does not fit into a socket address.
    #[error("the socket path {path:?} has {length} bytes, the system allows {max}")]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        length: usize,
        /// The most there may be.
        max: usize,
    },
    /// Another daemon serves this socket.
    #[error("a daemon already serves {path:?}{}", pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
        /// The other daemon's process, where it is known.
        pid: Option<u32>,
    },
    /// The folder belongs to someone else, or others may write in it.
    #[error("the socket's folder {path:?} {why}")]
    UnsafeFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something that is no socket has the socket's name. It is left alone.
    #[error("{path:?} exists and is not a socket")]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path:?}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl SocketError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::PathTooLong { .. } => "name a shorter path with SATCHEL_SOCKET or --home",
            Self::AlreadyRunning { .. } => "use the daemon that runs, or stop it first",
            Self::UnsafeFolder { .. } => "name a folder of your own (chmod 700) with SATCHEL_SOCKET or --home",
            Self::NotASocket { .. } => "move the file away, or name another path with SATCHEL_SOCKET",
            Self::Io { .. } => "check the folder's owner and permissions, and the free space",
        }
    }
}

/// A socket that this process serves. Dropping it removes the file and lets another daemon start.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    /// Device and inode of the socket file: what a successor made under the name is not ours to remove.
    identity: (u64, u64),
    /// Locked for as long as it is open. Never removed: that would let two daemons lock two files of one name.
    _lock: File,
}

impl Socket {
    /// Makes the folder (0700) and the socket (0600), and takes the place of a daemon that is no more.
    ///
    /// An existing folder must be the user's own and closed to writing by others; it is not changed. A daemon that has
    /// stopped listening but is still closing its index is waited for, up to `HANDOVER_TIMEOUT`.
    ///
    /// # Errors
    /// See [`SocketError`]; a socket that is served gives `AlreadyRunning` at once.
    pub fn bind(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        check_path(path)?;
        make_folder(path)?;
        let lock = lock_after_handover(path)?;
        remove_stale(path)?;
        let io = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
        let listener = UnixListener::bind(path).map_err(io("bind"))?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(io("set the permissions of"))?;
        let metadata = std::fs::symlink_metadata(path).map_err(io("inspect"))?;
        let socket = Self { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()), _lock: lock };
        Ok((socket, listener))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if ours {
            // A socket left behind is replaced by the next daemon.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The socket's place when no home is named: `$SATCHEL_SOCKET`, else `satchel/satchel.sock` in the first of
/// `$XDG_RUNTIME_DIR`, Termux's `$PREFIX/var/run`, macOS's per-user `$TMPDIR`, `/run/user/UID`, or
/// `/tmp/satchel-UID/satchel.sock`. `env` looks up a variable.
pub fn default_path(env: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("SATCHEL_SOCKET") {
        return path;
    }
    let termux = || set("PREFIX").filter(|prefix| prefix.as_os_str().as_bytes().ends_with(b"com.termux/files/usr"));
    let uid = own_uid();
    let in_runtime = set("XDG_RUNTIME_DIR")
        .or_else(|| termux().map(|prefix| prefix.join("var/run")))
        .or_else(|| if cfg!(target_os = "macos") { set("TMPDIR") } else { None })
        .or_else(|| Some(PathBuf::from(format!("/run/user/{uid}"))).filter(|folder| is_own_folder(folder)));
    match in_runtime {
        Some(folder) => folder.join("satchel/satchel.sock"),
        None => PathBuf::from(format!("/tmp/satchel-{uid}/satchel.sock")),
    }
}

/// Whether a socket address can hold the path.
///
/// # Errors
/// `PathTooLong`.
pub fn check_path(path: &Path) -> Result<(), SocketError> {
    // The system's array holds the path and a closing zero.
    let max = size_of::<libc::sockaddr_un>() - std::mem::offset_of!(libc::sockaddr_un, sun_path) - 1;
    let length = path.as_os_str().len();
    if length > max {
        return Err(SocketError::PathTooLong { path: path.to_owned(), length, max });
    }
    Ok(())
}

/// Whether the process at the other end runs as our user.
pub(crate) fn is_own_peer(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own_uid())
}

fn own_uid() -> u32 {
    // SAFETY: geteuid takes nothing, touches no memory of ours and cannot fail.
    unsafe { libc::geteuid() }
}

fn is_own_folder(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own_uid())
}

fn make_folder(socket: &Path) -> Result<(), SocketError> {
    let folder = match socket.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let io = |action| move |source| SocketError::Io { action, path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io("create"))?;
    let metadata = std::fs::metadata(folder).map_err(io("inspect"))?;
    let refuse = |why| Err(SocketError::UnsafeFolder { path: folder.to_owned(), why });
    if metadata.uid() != own_uid() {
        return refuse("belongs to another user");
    }
    if metadata.mode() & 0o022 != 0 {
        return refuse("can be written by other users");
    }
    Ok(())
}

/// Takes the lock, waiting while its holder does not listen: such a daemon is just stopping, or just starting.
fn lock_after_handover(socket: &Path) -> Result<File, SocketError> {
    let end = Instant::now() + HANDOVER_TIMEOUT;
    loop {
        match lock(socket) {
            Err(SocketError::AlreadyRunning { .. }) if StdStream::connect(socket).is_err() && Instant::now() < end => {
                std::thread::sleep(HANDOVER_POLL_INTERVAL);
            }
            other => return other,
        }
    }
}

/// The lock is what makes the daemon single: the system lets go of it when its holder ends, however it ends.
fn lock(socket: &Path) -> Result<File, SocketError> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let io = |action| {
        let path = path.clone();
        move |source| SocketError::Io { action, path, source }
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(SocketError::AlreadyRunning { path: socket.to_owned(), pid: read_pid(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
    }
    let pid = std::process::id().to_string();
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes())).map_err(io("write"))?;
    Ok(file)
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Removes a socket that nobody serves. The lock says that already, unless someone removed the lock file: so ask.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io("inspect")(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(SocketError::NotASocket { path: path.to_owned() });
    }
    match StdStream::connect(path) {
        Ok(_) => Err(SocketError::AlreadyRunning { path: path.to_owned(), pid: None }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(io("remove"))
        }
        Err(error) => Err(io("connect to")(error)),
    }
}
