//! `satchel model`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::{Args, Subcommand};
use satchel_ipc::{Code, ErrorBody};

use super::backend::{Backend, ModelRow};
use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::render::{bytes, escape, pairs};
use super::session::deadline_passed;
use super::terminal::Terminal;
use crate::paths::Paths;

/// Options of `model`.
#[derive(Debug, Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the catalogue and what is installed
    List,
    /// Fetch a model, resuming what is there; it is checked before use
    Pull {
        /// Its catalogue name
        name: String,
    },
    /// Take a model from a file or folder: GGUF, safetensors with its tokenizer, or e5's .bin
    Import {
        /// The file or folder
        path: PathBuf,
    },
    /// Answer with this model from now on, or embed with it
    Use {
        /// Its catalogue name, or a GGUF file
        name: String,
    },
    /// Show what is in a model's file
    Show {
        /// Its catalogue name, or a GGUF file
        name: String,
    },
}

pub fn run<B: Backend>(
    args: &ModelArgs,
    deadline: Option<Instant>,
    paths: &Paths,
    backend: &B,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    match &args.action {
        Action::List => list(&backend.models(paths)?, terminal)?,
        Action::Pull { name } => pull(name, deadline, paths, backend, terminal)?,
        Action::Import { path } => told("imported", &backend.import_model(paths, path)?, terminal)?,
        Action::Use { name } => told("using", &backend.use_model(paths, name)?, terminal)?,
        Action::Show { name } => {
            let report = backend.show_model(paths, name)?;
            if terminal.json {
                terminal.print_json(&report.json)?;
            } else {
                write!(terminal.out, "{}", pairs(&report.rows))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn pull<B: Backend>(
    name: &str,
    deadline: Option<Instant>,
    paths: &Paths,
    backend: &B,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let interrupted = watch_interrupt()?;
    let mut progress = Progress::new(terminal);
    let mut expired = false;
    let pulled = backend.pull_model(paths, name, &mut |state| {
        // A progress that cannot be shown is no reason to end a download.
        let _ = progress.download(state, terminal);
        expired = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        !expired && !interrupted.load(Ordering::Relaxed)
    });
    drop(progress);
    if expired {
        return Err(deadline_passed().with_hint("what is fetched is kept: pull again to go on").into());
    }
    told("fetched", &pulled?, terminal)
}

/// Becomes true at Ctrl-C, so that a download ends in order and keeps its part.
fn watch_interrupt() -> Result<Arc<AtomicBool>, ErrorBody> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let failed = |error| ErrorBody::new(Code::Error, format!("cannot watch for Ctrl-C: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // One thread for the life of the process, asleep until the signal.
    std::thread::Builder::new()
        .name("interrupt".into())
        .spawn(move || {
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                flag.store(true, Ordering::Relaxed);
            }
        })
        .map_err(failed)?;
    Ok(interrupted)
}

fn told(verb: &str, row: &ModelRow, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.print_json(row)?);
    }
    let path = row.path.as_deref().map(|path| format!("  {}", escape(path))).unwrap_or_default();
    writeln!(terminal.out, "{verb} {} ({}, {}){path}", escape(&row.name), escape(&row.role), bytes(row.bytes))?;
    Ok(())
}

fn list(rows: &[ModelRow], terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.print_json(&serde_json::json!({"models": rows}))?);
    }
    writeln!(terminal.out, "  {:<34} {:<9} {:>10}  {:<10} licence", "name", "role", "size", "state")?;
    for row in rows {
        let mark = if row.in_use { "*" } else { " " };
        let state = if row.installed { "installed" } else { "available" };
        let (name, role, licence) = (escape(&row.name), escape(&row.role), escape(&row.licence));
        writeln!(terminal.out, "{mark} {name:<34} {role:<9} {:>10}  {state:<10} {licence}", bytes(row.bytes))?;
    }
    terminal.out.flush()?;
    Ok(terminal.note("* in use; `satchel model pull NAME` fetches one, `satchel model use NAME` chooses it")?)
}
