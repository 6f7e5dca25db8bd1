//! `satchel search`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use satchel_ipc::wire::{Filter, Hit, SearchMode, SearchRequest};

use super::exit::{Exit, Failure};
use super::render::{escape, place, wrap};
use super::session::{Session, absolute_of_maybe_gone};
use super::terminal::Terminal;

/// Lines of a passage shown; the file has the rest.
const EXCERPT_LINES: usize = 4;

/// Likelihood that a passage is about the query, below which a person is told. Of questions with an answer 2 % are below, of
/// those about something else 93 % (docs/retrieval.md).
const RELEVANCE_MIN: f64 = 0.2;

/// Options of `search`.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words or a question; several words need no quotes. Conditions may stand among them: in:FOLDER, type:KIND,
    /// after:DATE, before:DATE, a phrase in quotes ('"notice period"'), the beginning of a word (boil*)
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// How many passages
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    k: u32,
    /// Which rankings take part
    #[arg(long, value_enum, default_value_t = Mode::Hybrid)]
    mode: Mode,
    /// Only below this folder, or in this file; may be given several times
    #[arg(long = "in", value_name = "PATH")]
    within: Vec<PathBuf>,
    /// Only files of this kind, such as markdown
    #[arg(long)]
    kind: Option<String>,
}

/// Which rankings take part.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Mode {
    /// Words and meaning, fused
    Hybrid,
    /// Words alone
    Lexical,
    /// Meaning alone
    Vector,
}

/// The filter of `--in` and `--kind`; `None` when neither was given.
pub fn filter(within: &[PathBuf], kind: Option<&String>) -> Result<Option<Filter>, Failure> {
    if within.is_empty() && kind.is_none() {
        return Ok(None);
    }
    let path_prefix = within.iter().map(|path| absolute_of_maybe_gone(path)).collect::<Result<_, _>>()?;
    Ok(Some(Filter { path_prefix, kind: kind.cloned(), after: None, before: None }))
}

pub async fn run(args: &SearchArgs, session: &Session, terminal: &mut Terminal) -> Result<Exit, Failure> {
    let request = SearchRequest {
        query: args.query.join(" "),
        k: Some(args.k),
        mode: match args.mode {
            Mode::Hybrid => SearchMode::Hybrid,
            Mode::Lexical => SearchMode::Lexical,
            Mode::Vector => SearchMode::Vector,
        },
        filter: filter(&args.within, args.kind.as_ref())?,
    };
    let reply = session.client.search(request).await?;
    if terminal.json {
        terminal.print_json(&reply)?;
        return Ok(if reply.hits.is_empty() { Exit::Abstained } else { Exit::Done });
    }
    if reply.hits.is_empty() {
        terminal.note("no passage matches")?;
        return Ok(Exit::Abstained);
    }
    if !reply.hits.iter().any(|hit| hit.relevance.is_none_or(|r| r >= RELEVANCE_MIN)) {
        terminal.note("nothing found seems to be about this; the nearest passages are")?;
    }
    for (position, hit) in reply.hits.iter().enumerate() {
        print_hit(position + 1, hit, terminal)?;
    }
    Ok(Exit::Done)
}

fn print_hit(number: usize, hit: &Hit, terminal: &mut Terminal) -> Result<(), Failure> {
    let place = place(&hit.path, hit.page, hit.line_start, hit.line_end);
    writeln!(terminal.out, "{number:>2}. {place}  ({:.3})", hit.score)?;
    if !hit.title.is_empty() {
        writeln!(terminal.out, "    {}", escape(&hit.title))?;
    }
    for path in &hit.also {
        writeln!(terminal.out, "    also in {}", escape(path))?;
    }
    write!(terminal.out, "{}", wrap(&hit.text, "    ", terminal.width, EXCERPT_LINES))?;
    writeln!(terminal.out)?;
    Ok(())
}
