//! A command's way to the daemon: the client, the time it has, and Ctrl-C.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use satchel_ipc::{Client, Code, ErrorBody};
use tokio::time::Instant;

use super::exit::{Exit, Failure};

/// How long a command waits past its deadline for the daemon's own word on it.
const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// A client with a deadline.
#[derive(Debug, Clone)]
pub struct Session {
    /// Calls the daemon.
    pub client: Client,
    /// When the command must have ended.
    pub deadline: Option<Instant>,
}

impl Session {
    /// A session for the daemon on `socket`.
    pub fn new(socket: &Path, deadline: Option<Duration>) -> Self {
        Self { client: Client::new(socket), deadline: deadline.map(|time| Instant::now() + time) }
    }

    /// The time left, in milliseconds, for a request that takes one.
    pub fn deadline_ms(&self) -> Option<u64> {
        let left = self.deadline?.saturating_duration_since(Instant::now());
        Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
    }

    /// Runs `work` until it ends, the deadline passes, or Ctrl-C. Dropping the work closes its connections,
    /// which cancels it in the daemon.
    pub async fn run(&self, work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
        let expired = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline + DEADLINE_GRACE).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = work => result,
            () = expired => Err(deadline_passed().into()),
            _ = tokio::signal::ctrl_c() => Err(ErrorBody::new(Code::Cancelled, "interrupted").into()),
        }
    }
}

/// The error of a command that ran out of time.
pub fn deadline_passed() -> ErrorBody {
    ErrorBody::new(Code::Cancelled, "the deadline passed before the command was done")
        .with_hint("allow more time with --deadline")
}

/// The path as the daemon knows it: absolute, links resolved, UTF-8.
///
/// # Errors
/// `bad_request` when there is no such file or folder, or its name is not UTF-8.
pub fn absolute(path: &Path) -> Result<String, ErrorBody> {
    let full = path
        .canonicalize()
        .map_err(|error| ErrorBody::bad_request(format!("cannot open {}: {error}", path.display())))
        .map_err(|error| error.with_hint("check its spelling and its permissions"))?;
    to_utf8(&full)
}

/// The path made absolute without looking at the disk: for files that may be gone.
///
/// # Errors
/// `bad_request` when its name is not UTF-8 or there is no current folder.
pub fn absolute_of_maybe_gone(path: &Path) -> Result<String, ErrorBody> {
    if let Ok(full) = path.canonicalize() {
        return to_utf8(&full);
    }
    let full = std::path::absolute(path)
        .map_err(|error| ErrorBody::bad_request(format!("cannot use {}: {error}", path.display())))?;
    to_utf8(&full)
}

fn to_utf8(path: &Path) -> Result<String, ErrorBody> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        ErrorBody::bad_request(format!("the name {} is not UTF-8", path.display()))
            .with_hint("rename it; files inside a folder may have any name")
    })
}

/// Like `absolute`, for a folder.
///
/// # Errors
/// `bad_request` when it is no folder, and as `absolute`.
pub fn absolute_folder(path: &Path) -> Result<String, ErrorBody> {
    let full = absolute(path)?;
    if Path::new(&full).is_dir() {
        Ok(full)
    } else {
        Err(ErrorBody::bad_request(format!("{} is not a folder", path.display())).with_hint("name the folder it is in"))
    }
}
