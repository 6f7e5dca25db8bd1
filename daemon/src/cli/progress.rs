//! Progress on standard error: a bar where a person watches, else a quiet line now and then.

use std::io;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use satchel_ipc::wire::{DownloadProgress, IndexProgress};

use super::render::{bytes, count, duration, escape};
use super::terminal::Terminal;

/// Between two quiet lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Between two pictures of a spinner.
const SPIN_INTERVAL: Duration = Duration::from_millis(120);

/// Columns of a file name shown beside a bar.
const NAME_WIDTH: usize = 24;

/// One display of progress; it clears itself when dropped.
pub struct Progress {
    form: Form,
}

enum Form {
    /// Made at the first update and at the first one after a `clear`: a finished bar shows nothing more.
    Bar(Option<Bar>),
    Lines {
        next: Instant,
    },
}

struct Bar {
    bar: ProgressBar,
    /// Whether it shows a share, or only that something goes on.
    measured: bool,
}

impl Bar {
    fn new(measured: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = if measured { "[{bar:20}] {percent:>3}% {msg}" } else { "{spinner} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        if !measured {
            bar.enable_steady_tick(SPIN_INTERVAL);
        }
        Self { bar, measured }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What is shown: how far, of how much, and the words for it.
struct Picture {
    done: u64,
    total: Option<u64>,
    words: String,
}

impl Progress {
    /// A display fit for `terminal`. Nothing is shown before the first update.
    pub fn new(terminal: &Terminal) -> Self {
        let form = if terminal.err_is_tty {
            Form::Bar(None)
        } else {
            // Work that is done within the interval needs no line.
            Form::Lines { next: Instant::now() + LINE_INTERVAL }
        };
        Self { form }
    }

    /// Shows how far the index is.
    ///
    /// # Errors
    /// Standard error cannot be written.
    pub fn index(&mut self, progress: &IndexProgress, terminal: &mut Terminal) -> io::Result<()> {
        let mut words = format!("indexing: {} of {} files", count(progress.files_done), count(progress.files_total));
        if progress.bytes_per_s > 0.0 {
            words += &format!(", {}/s", bytes(progress.bytes_per_s as u64));
        }
        words += &remaining(progress.remaining_ms);
        if let (Form::Bar(_), Some(current)) = (&self.form, &progress.current) {
            words += &format!("  {}", short_name(current));
        }
        self.show(Picture { done: progress.files_done, total: Some(progress.files_total), words }, terminal)
    }

    /// Shows how far a download is.
    ///
    /// # Errors
    /// Standard error cannot be written.
    pub fn download(&mut self, progress: &DownloadProgress, terminal: &mut Terminal) -> io::Result<()> {
        let mut words = format!("fetching {}: {}", escape(&progress.name), bytes(progress.bytes_done));
        if let Some(total) = progress.bytes_total {
            words += &format!(" of {}", bytes(total));
        }
        if progress.bytes_per_s > 0.0 {
            words += &format!(", {}/s", bytes(progress.bytes_per_s as u64));
        }
        words += &remaining(progress.remaining_ms);
        self.show(Picture { done: progress.bytes_done, total: progress.bytes_total, words }, terminal)
    }

    /// Shows that something without measure goes on.
    ///
    /// # Errors
    /// Standard error cannot be written.
    pub fn busy(&mut self, words: &str, terminal: &mut Terminal) -> io::Result<()> {
        self.show(Picture { done: 0, total: None, words: words.to_string() }, terminal)
    }

    /// Removes the bar from the screen.
    pub fn clear(&mut self) {
        if let Form::Bar(bar) = &mut self.form {
            *bar = None;
        }
    }

    fn show(&mut self, picture: Picture, terminal: &mut Terminal) -> io::Result<()> {
        match &mut self.form {
            Form::Bar(shown) => {
                let measured = picture.total.is_some();
                if shown.as_ref().is_none_or(|bar| bar.measured != measured) {
                    *shown = Some(Bar::new(measured));
                }
                if let Some(Bar { bar, .. }) = shown {
                    bar.set_length(picture.total.unwrap_or(0).max(1));
                    bar.set_message(picture.words);
                    bar.set_position(picture.done);
                }
            }
            Form::Lines { next } => {
                if Instant::now() >= *next {
                    *next = Instant::now() + LINE_INTERVAL;
                    terminal.note(&picture.words)?;
                }
            }
        }
        Ok(())
    }
}

fn remaining(ms: Option<u64>) -> String {
    ms.map(|ms| format!(", about {} left", duration(Duration::from_millis(ms)))).unwrap_or_default()
}

/// The end of a path, which tells files apart.
fn short_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let cut: String = name.chars().take(NAME_WIDTH).collect();
    escape(&cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines are due at once here.
    fn due() -> Progress {
        Progress { form: Form::Lines { next: Instant::now() } }
    }

    #[test]
    fn lines_name_rate_and_remaining_time_and_are_few() {
        let (mut terminal, capture) = Terminal::captured(false);
        let mut progress = due();
        let index = IndexProgress {
            files_done: 12,
            files_total: 80,
            bytes_per_s: 3.0 * 1024.0 * 1024.0,
            remaining_ms: Some(20_000),
            ..IndexProgress::default()
        };
        for _ in 0..100 {
            progress.index(&index, &mut terminal).unwrap();
        }
        assert_eq!(capture.err(), "indexing: 12 of 80 files, 3.0 MiB/s, about 20.0 s left\n");
        assert_eq!(capture.out(), "");
    }

    #[test]
    fn a_download_of_unknown_length_is_shown_too() {
        let (mut terminal, capture) = Terminal::captured(false);
        let download = DownloadProgress { name: "m\x1b".into(), bytes_done: 1 << 20, ..DownloadProgress::default() };
        due().download(&download, &mut terminal).unwrap();
        assert_eq!(capture.err(), "fetching m\\u{1b}: 1.0 MiB\n");
    }

    #[test]
    fn short_work_leaves_no_line() {
        let (mut terminal, capture) = Terminal::captured(false);
        let mut progress = Progress::new(&terminal);
        progress.busy("loading the model", &mut terminal).unwrap();
        drop(progress);
        assert_eq!(capture.err(), "");
    }
}
