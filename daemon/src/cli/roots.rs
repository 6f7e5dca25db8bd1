//! `satchel add`, `satchel remove`, `satchel roots`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use satchel_ipc::wire::{RootEntry, RootsReply};

use super::exit::{Exit, Failure};
use super::render::{count, escape};
use super::session::{Session, absolute_folder, absolute_of_maybe_gone};
use super::terminal::Terminal;

/// The folder of `add` and `remove`.
#[derive(Debug, Args)]
pub struct FolderArgs {
    /// The folder
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub async fn add(args: &FolderArgs, session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let folder = absolute_folder(&args.folder)?;
    let reply = session.client.add_root(folder.as_str()).await?;
    if terminal.json {
        terminal.print_json(&reply)?;
    } else {
        writeln!(terminal.out, "watching {}", escape(&folder))?;
        terminal.note("`satchel status` shows how far its index is")?;
    }
    Ok(Exit::Done)
}

pub async fn remove(args: &FolderArgs, session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    // The folder may be gone from the disk: then removing it here is all the more wanted.
    let folder = absolute_of_maybe_gone(&args.folder)?;
    let reply = session.client.remove_root(folder.as_str()).await?;
    if terminal.json {
        terminal.print_json(&reply)?;
    } else {
        writeln!(terminal.out, "no longer watching {}", escape(&folder))?;
    }
    Ok(Exit::Done)
}

pub async fn list(session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let reply = session.client.roots().await?;
    if terminal.json {
        terminal.print_json(&reply)?;
    } else if reply.roots.is_empty() {
        terminal.note("no folder is watched; `satchel add FOLDER` adds one")?;
    } else {
        print_roots(&reply, terminal)?;
    }
    Ok(Exit::Done)
}

fn print_roots(reply: &RootsReply, terminal: &mut Terminal) -> Result<(), Failure> {
    writeln!(terminal.out, "{:<11} {:>9} {:>9}  folder", "state", "files", "pending")?;
    for RootEntry { path, state, files, pending, reason } in &reply.roots {
        let (files, pending) = (count(*files), count(*pending));
        writeln!(terminal.out, "{:<11} {files:>9} {pending:>9}  {}", state.name(), escape(path))?;
        if let Some(reason) = reason {
            writeln!(terminal.out, "{:32} {}", "", escape(reason))?;
        }
    }
    Ok(())
}
