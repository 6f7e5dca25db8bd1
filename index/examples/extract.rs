//! What is read of files, without an index: `cargo run --release -p satchel-index --example extract -- FILE…`
//!
//! Prints the state, the metadata and the parts of each, then its text. `SATCHEL_PASSWORDS` may name a file of passwords.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use std::path::Path;

use satchel_index::{Context, Limits, extract};

fn main() -> std::io::Result<()> {
    let passwords = std::env::var_os("SATCHEL_PASSWORDS").map(std::fs::read_to_string).transpose()?.unwrap_or_default();
    let passwords: Vec<String> = passwords.lines().map(str::to_owned).collect();
    for file in std::env::args_os().skip(1) {
        let bytes = std::fs::read(&file)?;
        println!("== {}", Path::new(&file).display());
        match extract(Path::new(&file), &bytes, &Context::new(&Limits::default(), &passwords)) {
            Err(refusal) => println!("-- {}: {}", refusal.state.name(), refusal.reason),
            Ok(read) => {
                println!("-- indexed: title {:?} author {:?} dated {:?}", read.title, read.author, read.dated);
                println!("-- keywords {:?} language {:?} charset {}", read.keywords, read.language, read.charset);
                if let Some(cut) = &read.cut {
                    println!("-- not whole: {cut}");
                }
                let mut at = 0;
                for part in &read.parts {
                    print!("{}", &read.text[at..part.start]);
                    println!("\n-- {} {} {}", part.kind.name(), part.number, part.name.as_deref().unwrap_or_default());
                    at = part.start;
                }
                println!("{}", &read.text[at..]);
            }
        }
    }
    Ok(())
}
