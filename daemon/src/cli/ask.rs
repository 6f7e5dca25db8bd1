//! `satchel ask`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use satchel_ipc::wire::{AskReply, AskRequest, Citation, DaemonState, Event, RootEntry, RootState};
use satchel_ipc::{ClientError, Code, ErrorBody, EventStream};

use super::exit::{Exit, Failure};
use super::progress::Progress;
use super::render::{count, escape_text, place, wrap};
use super::search::filter;
use super::session::{Session, absolute_folder};
use super::spawn::Starter;
use super::terminal::Terminal;

/// How often the roots are looked at while their index is awaited, events or none: events are hints.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Lines of a quote shown.
const QUOTE_LINES: usize = 3;

/// Options of `ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The question; several words need no quotes. Conditions may stand in it: in:FOLDER, type:KIND, after:DATE, before:DATE
    #[arg(required = true, value_name = "QUESTION")]
    question: Vec<String>,
    /// Answer from this folder alone; it is watched from now on. May be given several times
    #[arg(long = "in", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// How many passages to read
    #[arg(short, long, value_name = "N")]
    k: Option<u32>,
    /// Longest answer in tokens
    #[arg(long, value_name = "N")]
    max_tokens: Option<u32>,
    /// Only files of this kind, such as markdown
    #[arg(long)]
    kind: Option<String>,
    /// Print the answer alone, without its sources
    #[arg(long)]
    short: bool,
}

/// Starts a daemon if none runs, waits for the folders' first index, streams the answer.
pub async fn run(
    args: &AskArgs,
    session: &Session,
    starter: &Starter,
    terminal: &mut Terminal,
) -> Result<Exit, Failure> {
    let folders = args.folders.iter().map(|folder| absolute_folder(folder)).collect::<Result<Vec<_>, _>>()?;
    let filter = filter(&args.folders, args.kind.as_ref())?;
    starter.ensure(session, terminal).await?;
    // Subscribed before anything is added, so that no progress is missed.
    let mut events = session.client.events().await?;
    let mut progress = Progress::new(terminal);
    if folders.is_empty() {
        check_any_root(session, terminal).await?;
    } else {
        watch(&folders, session).await?;
        wait_indexed(&folders, session, &mut events, &mut progress, terminal).await?;
    }
    let request = AskRequest {
        question: args.question.join(" "),
        k: args.k,
        max_tokens: args.max_tokens,
        stream: true,
        deadline_ms: session.deadline_ms(),
        filter,
        ..AskRequest::default()
    };
    let answer = session.client.ask_stream(request);
    let (reply, shown) = follow(answer, &mut events, progress, terminal).await?;
    print_reply(&reply, &shown, args.short, terminal)?;
    Ok(if reply.abstained { Exit::Abstained } else { Exit::Done })
}

/// Without any folder there is nothing to answer from; with pending files the answer may miss some. Both are said.
async fn check_any_root(session: &Session, terminal: &mut Terminal) -> Result<(), Failure> {
    let roots = session.client.roots().await?.roots;
    if roots.is_empty() {
        let error = ErrorBody::new(Code::NotIndexedYet, "no folder is watched yet");
        return Err(error.with_hint("name one: satchel ask --in FOLDER QUESTION").into());
    }
    let pending: u64 = roots.iter().map(|root| root.pending).sum();
    if pending > 0 {
        terminal.note(&format!("{} files are not indexed yet; the answer may miss them", count(pending)))?;
    }
    Ok(())
}

/// Adds the folders that no watched folder holds.
async fn watch(folders: &[String], session: &Session) -> Result<(), Failure> {
    let mut roots = session.client.roots().await?.roots;
    for folder in folders {
        if find_root(&roots, folder).is_none() {
            roots = session.client.add_root(folder.as_str()).await?.roots;
        }
    }
    Ok(())
}

/// The watched folder that is or holds `folder`.
fn find_root<'a>(roots: &'a [RootEntry], folder: &str) -> Option<&'a RootEntry> {
    roots.iter().find(|root| Path::new(folder).starts_with(&root.path))
}

/// Waits until each folder's root has its files in final states.
async fn wait_indexed(
    folders: &[String],
    session: &Session,
    events: &mut EventStream,
    progress: &mut Progress,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    loop {
        let roots = session.client.roots().await?.roots;
        if are_indexed(folders, &roots)? {
            progress.clear();
            return Ok(());
        }
        // What an event changes is read from the roots; until the next look it only moves the bar.
        let look = tokio::time::sleep(LOOK_INTERVAL);
        tokio::pin!(look);
        loop {
            tokio::select! {
                () = &mut look => break,
                event = events.next() => {
                    let event = event?.ok_or_else(daemon_left)?;
                    let moved = matches!(event, Event::Root { .. });
                    show(&event, progress, terminal)?;
                    if moved {
                        break;
                    }
                }
            }
        }
    }
}

/// Whether every folder is indexed; an error where it cannot become so.
fn are_indexed(folders: &[String], roots: &[RootEntry]) -> Result<bool, ErrorBody> {
    let mut all = true;
    for folder in folders {
        let Some(root) = find_root(roots, folder) else {
            return Err(ErrorBody::new(Code::NotIndexedYet, format!("{folder} is no longer watched")));
        };
        match root.state {
            RootState::Ready => {}
            RootState::Unavailable => {
                let reason = root.reason.as_deref().unwrap_or("it cannot be read");
                return Err(ErrorBody::new(Code::NotIndexedYet, format!("{folder} is not available: {reason}")));
            }
            _ => all = false,
        }
    }
    Ok(all)
}

fn daemon_left() -> ErrorBody {
    ErrorBody::new(Code::NoDaemon, "the daemon stopped").with_hint("run the command again; what is indexed is kept")
}

/// Shows an event of the daemon as progress.
fn show(event: &Event, progress: &mut Progress, terminal: &mut Terminal) -> io::Result<()> {
    match event {
        Event::Progress(index) => progress.index(index, terminal),
        Event::Download(download) => progress.download(download, terminal),
        Event::State { state: DaemonState::Loading } => progress.busy("loading the model", terminal),
        _ => Ok(()),
    }
}

/// What of the answer is on the screen already.
#[derive(Default)]
struct Shown {
    text: String,
}

/// Streams the answer. Until its first token the daemon may fetch or load a model, which `events` tell.
async fn follow(
    answer: impl Future<Output = Result<EventStream, ClientError>>,
    events: &mut EventStream,
    mut progress: Progress,
    terminal: &mut Terminal,
) -> Result<(AskReply, Shown), Failure> {
    let mut shown = Shown::default();
    tokio::pin!(answer);
    let mut told = true;
    let mut stream = loop {
        tokio::select! {
            stream = &mut answer => break stream?,
            // A closed event stream is no error here: the answer itself says what became of it.
            event = events.next(), if told => match event {
                Ok(Some(event)) => show(&event, &mut progress, terminal)?,
                _ => told = false,
            },
        }
    };
    loop {
        tokio::select! {
            event = stream.next() => match event?.ok_or_else(daemon_left)? {
                Event::Token { text } => {
                    told = false;
                    progress.clear();
                    show_token(&text, &mut shown, terminal)?;
                }
                Event::Done(reply) => return Ok((*reply, shown)),
                _ => {}
            },
            event = events.next(), if told => match event {
                Ok(Some(event)) => show(&event, &mut progress, terminal)?,
                _ => told = false,
            },
        }
    }
}

/// A person sees the answer grow; a program gets it whole, as the daemon's last word has it.
fn show_token(text: &str, shown: &mut Shown, terminal: &mut Terminal) -> io::Result<()> {
    if !terminal.out_is_tty || terminal.json {
        return Ok(());
    }
    write!(terminal.out, "{}", escape_text(text))?;
    shown.text.push_str(text);
    terminal.out.flush()
}

fn print_reply(reply: &AskReply, shown: &Shown, short: bool, terminal: &mut Terminal) -> Result<(), Failure> {
    if terminal.json {
        return Ok(terminal.print_json(reply)?);
    }
    match reply.answer.strip_prefix(shown.text.as_str()) {
        Some(rest) => writeln!(terminal.out, "{}", escape_text(rest))?,
        // The final answer differs from what was streamed (a citation was put in, an end was cut): it counts.
        None => writeln!(terminal.out, "\n\n{}", escape_text(&reply.answer))?,
    }
    if !short {
        print_citations(&reply.citations, terminal)?;
        let withheld = match reply.withheld {
            0 => return Ok(()),
            1 => "1 sentence is left out: no document says it".to_owned(),
            n => format!("{n} sentences are left out: no document says them"),
        };
        terminal.note(&withheld)?;
    }
    Ok(())
}

fn print_citations(citations: &[Citation], terminal: &mut Terminal) -> Result<(), Failure> {
    if !citations.is_empty() {
        writeln!(terminal.out)?;
    }
    for citation in citations {
        let place = place(&citation.path, citation.page, citation.line_start, citation.line_end);
        let doubt = if citation.verified { "" } else { "  (the file has changed since it was read)" };
        writeln!(terminal.out, "[{}] {place}{doubt}", citation.n)?;
        if !citation.quote.is_empty() {
            let quote = format!("\"{}\"", citation.quote.trim());
            write!(terminal.out, "{}", wrap(&quote, "    ", terminal.width, QUOTE_LINES))?;
        }
    }
    Ok(())
}
