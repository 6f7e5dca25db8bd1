//! `satchel forget`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use satchel_ipc::{Code, ErrorBody};

use super::exit::{Exit, Failure};
use super::render::{count, escape};
use super::session::{Session, absolute_of_maybe_gone};
use super::terminal::Terminal;

/// Options of `forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// The file, or a folder for all files below it; the files themselves are not touched
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

pub async fn run(args: &ForgetArgs, session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let path = absolute_of_maybe_gone(&args.path)?;
    let reply = session.client.forget(path.as_str()).await?;
    if terminal.json {
        terminal.print_json(&reply)?;
    } else {
        writeln!(
            terminal.out,
            "forgot {}: {} documents, {} passages removed; {} traces left",
            escape(&path),
            count(reply.documents),
            count(reply.passages),
            count(reply.remaining)
        )?;
    }
    if reply.remaining > 0 {
        let message = format!("{} traces of {path} are still in the index", reply.remaining);
        return Err(ErrorBody::new(Code::Error, message).with_hint("run `satchel forget` again").into());
    }
    Ok(Exit::Done)
}
