//! Builds an index of a folder by words alone and tells what it takes.
//!
//!     cargo run --release -p satchel-index --example build -- FOLDER INDEX_FOLDER
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use satchel_index::{Event, Index, Indexer, Jail};

fn main() -> ExitCode {
    satchel_index::worker_if_asked(std::env::args_os()).unwrap_or_else(|| match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(folder), Some(dir)) = (args.next(), args.next()) else {
        return Err("usage: build FOLDER INDEX_FOLDER".into());
    };
    let index = Index::open(Path::new(&dir))?;
    index.add_root(Path::new(&folder))?;
    let start = Instant::now();
    let tell = |event| match event {
        Event::Trouble { message } => println!("trouble: {message}"),
        Event::File { path, reason: Some(reason), .. } => println!("{}: {reason}", path.display()),
        _ => {}
    };
    let indexer = Indexer::start(index.clone(), Jail::of_this_program()?.into(), None, Box::new(tell))?;
    let idle = indexer.wait_idle(Duration::from_secs(3600));
    println!("idle: {idle} after {:.2} s", start.elapsed().as_secs_f64());
    indexer.shutdown();
    println!("{:#?}", index.counts()?);
    Ok(())
}
