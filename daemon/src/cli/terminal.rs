//! Where a command writes: standard output for its result, standard error for everything else.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

/// Columns where the terminal does not say.
const WIDTH_DEFAULT: usize = 80;

/// Longer lines are hard to read, however wide the window.
const WIDTH_MAX: usize = 100;

/// Below this a table is no table; a narrower window wraps by itself.
const WIDTH_MIN: usize = 40;

/// The two outputs of a command and how to write to them.
pub struct Terminal {
    /// The result.
    pub out: Box<dyn Write>,
    /// Progress, notes, errors.
    pub err: Box<dyn Write>,
    /// Whether a person watches the result appear.
    pub out_is_tty: bool,
    /// Whether a person watches the progress.
    pub err_is_tty: bool,
    /// Whether the result is wanted as JSON.
    pub json: bool,
    /// Columns to fill.
    pub width: usize,
}

impl Terminal {
    /// The process's own outputs. Standard output is buffered; commands flush where someone may wait.
    pub fn of_process(json: bool) -> Self {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Self {
            out: Box::new(io::BufWriter::new(io::stdout())),
            err: Box::new(io::stderr()),
            out_is_tty: io::stdout().is_terminal(),
            err_is_tty: io::stderr().is_terminal(),
            json,
            width: columns.unwrap_or(WIDTH_DEFAULT).clamp(WIDTH_MIN, WIDTH_MAX),
        }
    }

    /// Writes one JSON document and a newline to standard output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print_json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    /// Writes a line to standard error at once.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn note(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "{line}")?;
        self.err.flush()
    }
}

#[cfg(test)]
mod capture {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::{Terminal, WIDTH_DEFAULT};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What was written to a captured terminal.
    pub struct Capture {
        out: Shared,
        err: Shared,
    }

    impl Capture {
        pub fn out(&self) -> String {
            String::from_utf8(self.out.0.lock().unwrap().clone()).unwrap()
        }

        pub fn err(&self) -> String {
            String::from_utf8(self.err.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Terminal {
        /// A terminal that nobody watches, and its memory.
        pub fn captured(json: bool) -> (Self, Capture) {
            let capture = Capture { out: Shared::default(), err: Shared::default() };
            let terminal = Self {
                out: Box::new(capture.out.clone()),
                err: Box::new(capture.err.clone()),
                out_is_tty: false,
                err_is_tty: false,
                json,
                width: WIDTH_DEFAULT,
            };
            (terminal, capture)
        }
    }
}
