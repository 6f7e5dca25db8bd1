//! The command line: what was typed becomes a call, and its reply becomes text or JSON.
//! One file a command; `render` and `exit` hold what all share. Nothing here knows an engine or an index.

mod args;
mod ask;
pub mod backend;
pub mod bench;
pub mod complete;
mod doctor;
mod exit;
mod files;
mod forget;
mod model;
mod progress;
mod render;
mod roots;
mod search;
pub mod serve;
mod session;
mod spawn;
mod status;
mod terminal;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use satchel_ipc::{Code, ErrorBody};

use crate::paths::Paths;
use args::{Cli, Command, Local, Remote};
use backend::Backend;
use exit::{Exit, Failure};
use session::Session;
use terminal::Terminal;

/// Runs the command line `args` (the program's name first) and gives the exit code.
pub fn run<B: Backend>(args: impl IntoIterator<Item = OsString>, backend: &B) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(usage(&error, args.iter().any(|arg| arg == "--json"))),
    };
    let mut terminal = Terminal::of_process(cli.global.json);
    let result = Paths::new(cli.global.home.as_deref(), |name| std::env::var_os(name))
        .map_err(Failure::from)
        .and_then(|paths| dispatch(cli, &paths, backend, &mut terminal));
    let flushed = terminal.out.flush().map_err(Failure::from);
    ExitCode::from(exit::conclude(result.and_then(|exit| flushed.map(|()| exit)), &mut terminal))
}

/// Tells wrong usage, or what was asked of the manual, and gives the exit code.
fn usage(error: &clap::Error, json: bool) -> u8 {
    // Help and version are "errors" of clap with exit code 0; wrong usage has 2.
    if !json || error.exit_code() == 0 {
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(2);
    }
    // The first paragraph says what is wrong; the usage comes after it.
    let text = error.to_string();
    let what = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let body = ErrorBody::bad_request(what).with_hint("`satchel --help` shows the commands and their options");
    exit::conclude(Err(body.into()), &mut Terminal::of_process(true))
}

fn dispatch<B: Backend>(cli: Cli, paths: &Paths, backend: &B, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let command = match cli.command {
        Command::Remote(command) => command,
        Command::Local(command) => {
            let deadline = cli.global.deadline.map(|time| Instant::now() + time);
            return run_here(command, deadline, paths, backend, terminal);
        }
    };
    satchel_ipc::check_path(&paths.socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ErrorBody::new(Code::Error, format!("cannot start the runtime: {error}")))?;
    let session = Session::new(&paths.socket, cli.global.deadline);
    runtime.block_on(session.run(call(command, &session, paths, terminal)))
}

/// The commands that work in this process.
fn run_here<B: Backend>(
    command: Local,
    deadline: Option<Instant>,
    paths: &Paths,
    backend: &B,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    match command {
        Local::Serve(args) => serve::run(&args, paths, backend, terminal),
        Local::Model(args) => model::run(&args, deadline, paths, backend, terminal),
        Local::Doctor => doctor::run(paths, backend, terminal),
        Local::Bench(args) => bench::run(&args, paths, backend, terminal),
        Local::Complete(args) => complete::run(&args, deadline, paths, backend, terminal),
    }
}

/// The commands that call a daemon.
async fn call(command: Remote, session: &Session, paths: &Paths, terminal: &mut Terminal) -> Result<Exit, Failure> {
    match command {
        Remote::Ask(args) => ask::run(&args, session, &spawn::Starter::of_process(paths), terminal).await,
        Remote::Search(args) => search::run(&args, session, terminal).await,
        Remote::Add(args) => roots::add(&args, session, terminal).await,
        Remote::Remove(args) => roots::remove(&args, session, terminal).await,
        Remote::Roots => roots::list(session, terminal).await,
        Remote::Status => status::run(session, terminal).await,
        Remote::Files(args) => files::run(&args, session, terminal).await,
        Remote::Forget(args) => forget::run(&args, session, terminal).await,
    }
}
