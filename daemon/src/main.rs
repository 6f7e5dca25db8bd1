//! The satchel binary: the command line in front, the daemon behind it.

mod answer;
mod app;
mod backend;
mod bench;
mod cli;
mod complete;
mod doctor;
mod gate;
mod hub;
mod memory;
mod models;
mod paths;
mod query;
mod service;
mod threads;
mod translate;
mod vectors;
mod writer;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A process that reads files for the daemon is nothing else: it confines itself before anything is looked at.
    if let Some(ended) = satchel_index::worker_if_asked(std::env::args_os()) {
        return ended;
    }
    cli::run(std::env::args_os(), &backend::Local)
}
