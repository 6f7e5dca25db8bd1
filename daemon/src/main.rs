//! The satchel binary: the command line in front, the daemon behind it.

mod cli;
mod paths;
mod unlinked;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os(), &unlinked::Unlinked)
}
