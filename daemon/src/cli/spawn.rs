//! Starts a daemon in the background for a command that needs one.
//!
//! No double fork: the child is put into a session of its own, so that neither Ctrl-C nor a closing terminal reaches
//! it, and it outlives us as any child does. Its output goes to the log file.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use satchel_ipc::{Client, ClientError, Code, ErrorBody};
use tokio::time::Instant;

use super::exit::Failure;
use super::session::Session;
use super::terminal::Terminal;
use crate::paths::Paths;

/// How long a daemon may take to answer its first call. It serves its socket before it loads anything.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Between two looks at a starting daemon.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// Bytes of the log shown when a daemon does not start.
const LOG_TAIL_BYTES: u64 = 4096;

/// Lines of the log shown when a daemon does not start.
const LOG_TAIL_LINES: usize = 5;

/// How to start a daemon.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<std::ffi::OsString>,
    /// The socket it is to serve.
    pub socket: PathBuf,
    /// Where its output goes.
    pub log: PathBuf,
}

impl Starter {
    /// This program as `serve`, for the same home.
    pub fn of_process(paths: &Paths) -> Self {
        // Without a path of our own the name is looked up as the shell did.
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("satchel"));
        let mut arguments = vec!["serve".into()];
        if paths.named {
            arguments.extend(["--home".into(), paths.home.clone().into()]);
        }
        Self { program, arguments, socket: paths.socket.clone(), log: paths.log.clone() }
    }

    /// Makes sure that a daemon answers on the session's socket.
    ///
    /// # Errors
    /// The child's own error, as its exit code and its log tell it; or that it took too long.
    pub async fn ensure(&self, session: &Session, terminal: &mut Terminal) -> Result<(), Failure> {
        match session.client.status().await {
            Err(ClientError::NoDaemon { .. }) => {}
            other => return Ok(other.map(drop)?),
        }
        if terminal.err_is_tty {
            terminal.note("starting the daemon")?;
        }
        let io = |action: &str, error: io::Error| {
            ErrorBody::new(Code::Error, format!("cannot {action} {}: {error}", self.log.display()))
                .with_hint("check the home's owner, permissions and free space, or name another with --home")
        };
        let mut log = self.open_log().map_err(|error| io("open the log", error))?;
        let log_start = log.seek(SeekFrom::End(0)).map_err(|error| io("read the log", error))?;
        let child = self.start(&log)?;
        Ok(self.wait(child, &session.client, log_start).await?)
    }

    fn open_log(&self) -> io::Result<File> {
        if let Some(home) = self.log.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        }
        OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(&self.log)
    }

    fn start(&self, log: &File) -> Result<Child, ErrorBody> {
        let failed =
            |error: io::Error| ErrorBody::new(Code::Error, format!("cannot start {}: {error}", self.program.display()));
        let (out, err) = (log.try_clone().map_err(failed)?, log.try_clone().map_err(failed)?);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(out).stderr(err);
        // The daemon must not keep the caller's folder from being unmounted; so the socket is told as an absolute path.
        command.current_dir("/").env("SATCHEL_SOCKET", &self.socket);
        // SAFETY: the closure runs in the child between fork and exec, where only async-signal-safe calls are
        // allowed. setsid is one; it takes nothing and touches no memory. Building an error from errno allocates
        // nothing.
        unsafe {
            command.pre_exec(|| if libc::setsid() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
        }
        command.spawn().map_err(failed)
    }

    /// Waits until the daemon answers, or the child ends.
    async fn wait(&self, mut child: Child, client: &Client, log_start: u64) -> Result<(), ErrorBody> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            match client.status().await {
                Ok(_) => return Ok(()),
                Err(ClientError::NoDaemon { .. }) => {}
                Err(error) => return Err(error.to_body()),
            }
            let ended = child
                .try_wait()
                .map_err(|error| ErrorBody::new(Code::Error, format!("cannot watch the daemon start: {error}")))?;
            if let Some(status) = ended {
                // Of two commands that start a daemon at once, one child finds the other's and ends.
                return match client.status().await {
                    Ok(_) => Ok(()),
                    Err(_) => Err(self.why_ended(status, log_start)),
                };
            }
            if Instant::now() >= end {
                let message = format!("the daemon did not answer within {} s of its start", START_TIMEOUT.as_secs());
                return Err(ErrorBody::new(Code::NoDaemon, message).with_hint(self.see_log()));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    fn why_ended(&self, status: ExitStatus, log_start: u64) -> ErrorBody {
        // The child's exit code is one of ours; several codes may share it, and the first names the kind well enough.
        let code = status
            .code()
            .and_then(|exit| Code::all().find(|code| i32::from(code.exit_code()) == exit && *code != Code::TooLong))
            .unwrap_or(Code::Error);
        let said = self.log_tail(log_start).unwrap_or_default();
        let message = match said.is_empty() {
            true => format!("the daemon ended at its start ({status})"),
            false => format!("the daemon ended at its start ({status}): {said}"),
        };
        ErrorBody::new(code, message).with_hint(self.see_log())
    }

    fn see_log(&self) -> String {
        format!("see {}, or run `satchel serve` to watch it", self.log.display())
    }

    /// The last lines that the child wrote, on one line.
    fn log_tail(&self, log_start: u64) -> io::Result<String> {
        let mut log = File::open(&self.log)?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(log_start.max(length.saturating_sub(LOG_TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        log.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.trim().trim_start_matches("satchel: "))
            .filter(|line| !line.is_empty())
            .collect();
        let tail = lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default();
        Ok(tail.join("; "))
    }
}
