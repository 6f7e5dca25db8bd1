//! What can be typed. The doc comments are the manual: `satchel --help`, `satchel COMMAND --help`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use satchel_engine::CacheType;

use super::{ask, bench, complete, files, forget, model, roots, search, serve};

/// A private assistant that lives on this device: it reads the folders you name and answers questions about them,
/// with the place each answer comes from. Nothing leaves the device.
///
/// The quickest start:  satchel ask --in ~/Documents "When does my lease end?"
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100, after_long_help = EXIT_CODES)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  answered, done
  1  error
  2  wrong usage
  3  the documents do not hold the answer
  4  not indexed yet, or the index is stale
  5  over the memory budget
  6  throttled (heat, battery)
  7  no daemon runs
  8  the model is missing or broken

Places:
  the home is --home DIR, else $XDG_DATA_HOME/satchel (~/.local/share/satchel; on macOS
  ~/Library/Application Support/satchel); the socket is $SATCHEL_SOCKET, else under --home,
  else satchel/satchel.sock in the runtime directory.";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print the result as JSON on standard output; errors too, as {"error": {"code", "message", "hint"}}
    #[arg(long, global = true)]
    pub json: bool,
    /// Keep everything (index, models, socket, log) in this folder
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Give up after this time; the work is cancelled
    #[arg(long, global = true, value_name = "SECONDS", value_parser = parse_deadline)]
    pub deadline: Option<Duration>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Through the socket.
    #[command(flatten)]
    Remote(Remote),
    /// In this process.
    #[command(flatten)]
    Local(Local),
}

/// The commands that call a daemon.
#[derive(Debug, Subcommand)]
pub enum Remote {
    /// Ask a question about your files
    Ask(ask::AskArgs),
    /// Find passages by words and by meaning
    Search(search::SearchArgs),
    /// Watch a folder, with all its subfolders
    Add(roots::FolderArgs),
    /// Stop watching a folder and drop what is indexed of it
    Remove(roots::FolderArgs),
    /// List the watched folders and how far each is
    Roots,
    /// Show what the daemon is doing and what is indexed
    Status,
    /// List the known files and the state of each
    Files(files::FilesArgs),
    /// Remove a document from the index, and prove that nothing of it is left
    Forget(forget::ForgetArgs),
}

/// The commands that work without a daemon.
#[derive(Debug, Subcommand)]
pub enum Local {
    /// List, fetch and choose models
    Model(model::ModelArgs),
    /// Run the daemon in the foreground
    Serve(serve::ServeArgs),
    /// Show what is active on this machine: instruction set, kernels, sandbox, limits, places
    Doctor,
    /// Measure this machine: tokens a second, bytes a second
    Bench(bench::BenchArgs),
    /// Run a model alone on a prompt: greedy, without a template
    Complete(complete::CompleteArgs),
}

/// Longest deadline; past a week it is no deadline.
const DEADLINE_MAX_S: f64 = 7.0 * 24.0 * 3600.0;

fn parse_deadline(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    if seconds > 0.0 && seconds <= DEADLINE_MAX_S {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("{text} is not between 0 and {DEADLINE_MAX_S} seconds"))
    }
}

/// Reads `3GiB`, `512 MiB`, `1.5g`, `4096`. Units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size such as 3GiB"))?;
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("{unit:?} is not a unit: use KiB, MiB, GiB or TiB")),
    };
    let size = number * (1_u64 << shift) as f64;
    // Up to 2^53 an f64 counts bytes exactly, and 8 PiB is more than any memory.
    if size < (1_u64 << 53) as f64 { Ok(size as u64) } else { Err(format!("{text} is too large")) }
}

/// Reads the name of a cache type.
pub fn parse_cache_type(text: &str) -> Result<CacheType, String> {
    CacheType::ALL.into_iter().find(|ty| ty.name() == text).ok_or_else(|| {
        let known: Vec<&str> = CacheType::ALL.iter().map(|ty| ty.name()).collect();
        format!("it must be one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound_and_every_help_fits_the_screen() {
        let mut command = Cli::command().term_width(80);
        command.build();
        command.clone().debug_assert();
        let mut pending = vec![command];
        while let Some(mut command) = pending.pop() {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            let help = command.render_help().to_string();
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
            pending.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn sizes() {
        let read = |text| parse_size(text).ok();
        assert_eq!(read("3GiB"), Some(3 << 30));
        assert_eq!(read("512 MiB"), Some(512 << 20));
        assert_eq!(read("1.5g"), Some(3 << 29));
        assert_eq!(read("4096"), Some(4096));
        for bad in ["", "GiB", "-1", "3 apples", "1.2.3G", "99999999T", "NaN"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn deadlines() {
        assert_eq!(parse_deadline("1.5"), Ok(Duration::from_millis(1500)));
        for bad in ["0", "-1", "inf", "NaN", "1e9", "soon"] {
            assert!(parse_deadline(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn global_options_stand_anywhere() {
        let cli = Cli::try_parse_from(["satchel", "search", "rent", "--json", "--home", "/h"]).unwrap();
        assert!(cli.global.json && cli.global.home.is_some());
    }
}
