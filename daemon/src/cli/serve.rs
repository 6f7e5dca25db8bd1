//! `satchel serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use satchel_engine::CacheType;
use satchel_ipc::{Code, ErrorBody, Socket};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{parse_cache_type, parse_size};
use super::backend::Backend;
use super::exit::{Exit, Failure};
use super::terminal::Terminal;
use crate::paths::Paths;

/// Threads that move bytes between sockets and handlers; the work itself runs elsewhere.
const IO_THREADS: usize = 2;

/// How long handlers that ignored their cancellation are waited for at the end.
const HANDLERS_END_TIMEOUT: Duration = Duration::from_secs(2);

/// Options of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// The most memory that the daemon and its children may use, such as 3GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub budget: Option<u64>,
    /// The model that answers: a catalogue name or a GGUF file
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Context in tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(128..))]
    pub context: Option<u32>,
    /// How keys and values are stored: f16, or q8_0 for about half the memory
    #[arg(long, value_name = "TYPE", value_parser = parse_cache_type, default_value = "f16")]
    pub kv_type: CacheType,
    /// Threads for the model (default: the physical cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Watch this folder from the start; may be given several times
    #[arg(long = "in", value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
}

/// Runs until SIGTERM, SIGINT or SIGHUP.
pub fn run<B: Backend>(args: &ServeArgs, paths: &Paths, backend: &B, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let failed = |what: &str, error: std::io::Error| ErrorBody::new(Code::Error, format!("cannot {what}: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .enable_all()
        .build()
        .map_err(|error| failed("start the runtime", error))?;
    // Signals are caught before there is anything to leave behind.
    let stopped = {
        let _inside = runtime.enter();
        stopped().map_err(|error| failed("watch for signals", error))?
    };
    // The socket comes before the index: a second daemon ends here, before it touches that.
    let begun = Socket::bind(&paths.socket).map_err(Failure::from).and_then(|(socket, listener)| {
        let service = backend.start(paths, args)?;
        Ok((socket, listener, service))
    });
    let (socket, listener, service) = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            // Nothing runs on it yet, and it may be dropped on a thread of another one.
            runtime.shutdown_background();
            return Err(failure);
        }
    };
    terminal.note(&format!("satchel {} listens on {}", env!("CARGO_PKG_VERSION"), socket.path().display()))?;
    let served = runtime.block_on(async {
        satchel_ipc::serve(listener, std::sync::Arc::clone(&service), stopped)
            .await
            .map_err(|error| failed("serve the socket", error))
    });
    runtime.shutdown_timeout(HANDLERS_END_TIMEOUT);
    backend.stop(service);
    // Only now may a successor bind: the index is closed.
    drop(socket);
    served?;
    terminal.note("satchel stopped")?;
    Ok(Exit::Done)
}

/// Completes at the first signal to stop.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}
