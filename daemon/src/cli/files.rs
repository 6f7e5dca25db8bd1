//! `satchel files`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use satchel_ipc::wire::{FileEntry, FileState, FilesReply, FilesRequest};
use satchel_ipc::{Code, ErrorBody};

use super::exit::{Exit, Failure};
use super::render::{bytes, count, escape};
use super::session::{Session, absolute_of_maybe_gone};
use super::terminal::Terminal;

/// Options of `files`.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Only files in this state: indexed, pending, failed, locked, needs_ocr, empty, excluded
    #[arg(long, value_parser = parse_state)]
    state: Option<FileState>,
    /// Only this file, or files below this folder
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

fn parse_state(text: &str) -> Result<FileState, String> {
    FileState::from_name(text).ok_or_else(|| {
        let names: Vec<_> = FileState::ALL.iter().map(|state| state.name()).collect();
        format!("use one of {}", names.join(", "))
    })
}

pub async fn run(args: &FilesArgs, session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let path = args.path.as_deref().map(absolute_of_maybe_gone).transpose()?;
    let mut request = FilesRequest { state: args.state, path, after: None, limit: None };
    let mut listed = 0;
    // The list is begun once there is one: an error stands alone.
    let mut page = session.client.files(request.clone()).await?;
    begin(terminal)?;
    loop {
        for file in &page.files {
            print_file(file, listed, terminal)?;
            listed += 1;
        }
        let Some(next) = next_page(&request, &page)? else { break };
        request.after = Some(next);
        page = session.client.files(request.clone()).await?;
    }
    end(listed, terminal)?;
    Ok(Exit::Done)
}

/// The next page must lie after this one, or a faulty daemon would keep us here forever.
fn next_page(request: &FilesRequest, page: &FilesReply) -> Result<Option<String>, ErrorBody> {
    match &page.next {
        Some(next) if request.after.as_ref().is_some_and(|after| after >= next) => {
            Err(ErrorBody::new(Code::Error, "the daemon's list of files does not end"))
        }
        next => Ok(next.clone()),
    }
}

/// JSON is written as it comes: a list may be longer than memory should hold.
fn begin(terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        terminal.out.write_all(b"{\"files\":[")?;
    }
    Ok(())
}

fn end(listed: u64, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        terminal.out.write_all(b"]}\n")?;
    } else {
        terminal.out.flush()?;
        terminal.note(&format!("{} files", count(listed)))?;
    }
    Ok(())
}

fn print_file(file: &FileEntry, listed: u64, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        if listed > 0 {
            terminal.out.write_all(b",")?;
        }
        return serde_json::to_writer(&mut terminal.out, file).map_err(|error| Failure::Output(error.into()));
    }
    if listed == 0 {
        writeln!(terminal.out, "{:<9} {:>8} {:>10}  path", "state", "passages", "size")?;
    }
    let (state, passages, size) = (file.state.name(), count(file.passages), bytes(file.bytes));
    writeln!(terminal.out, "{state:<9} {passages:>8} {size:>10}  {}", escape(&file.path))?;
    if let Some(reason) = &file.reason {
        writeln!(terminal.out, "{:30} {}", "", escape(reason))?;
    }
    Ok(())
}
