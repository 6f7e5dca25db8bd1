//! How far a pull is, told now and then to whoever asked for it.

use std::time::Instant;

use crate::models::error::ModelError;
use crate::models::limits::{RATE_WINDOW, REPORT_INTERVAL};

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Bytes arrive.
    Fetching,
    /// What arrived is put together and hashed.
    Checking,
    /// It is converted to GGUF.
    Importing,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The model.
    pub name: String,
    /// What is going on.
    pub phase: Phase,
    /// Where it comes from, in words.
    pub source: String,
    /// Bytes at hand.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Recent rate in bytes a second.
    pub bytes_per_s: f64,
}

/// Tells progress; false from the listener cancels.
pub struct Meter<'a> {
    listener: &'a mut dyn FnMut(&Progress) -> bool,
    now: Progress,
    last: Option<(Instant, u64)>,
}

impl<'a> Meter<'a> {
    /// A meter for a model.
    pub fn new(name: &str, listener: &'a mut dyn FnMut(&Progress) -> bool) -> Self {
        let now = Progress {
            name: name.to_owned(),
            phase: Phase::Fetching,
            source: String::new(),
            done: 0,
            total: 0,
            bytes_per_s: 0.0,
        };
        Self { listener, now, last: None }
    }

    /// Names the source that is tried from now on.
    pub fn source(&mut self, source: String) {
        self.now.source = source;
    }

    /// Starts a phase at `done` of `total` bytes; those at hand already do not count as fast.
    pub fn phase(&mut self, phase: Phase, done: u64, total: u64) -> Result<(), ModelError> {
        self.now.phase = phase;
        self.now.total = total;
        self.now.bytes_per_s = 0.0;
        self.last = None;
        self.at(done)
    }

    /// `done` bytes are at hand. The listener is asked at most ten times a second.
    pub fn at(&mut self, done: u64) -> Result<(), ModelError> {
        self.at_time(done, Instant::now())
    }

    fn at_time(&mut self, done: u64, time: Instant) -> Result<(), ModelError> {
        if let Some((last, before)) = self.last {
            let elapsed = time.saturating_duration_since(last);
            if elapsed < REPORT_INTERVAL {
                return Ok(());
            }
            let rate = done.saturating_sub(before) as f64 / elapsed.as_secs_f64();
            // An exponential average; the first rate is taken as it is.
            let weight = 1.0 - (-elapsed.as_secs_f64() / RATE_WINDOW.as_secs_f64()).exp();
            let rate_before = self.now.bytes_per_s;
            self.now.bytes_per_s = if rate_before == 0.0 { rate } else { rate_before + weight * (rate - rate_before) };
        }
        self.last = Some((time, done));
        self.now.done = done.min(self.now.total);
        if (self.listener)(&self.now) { Ok(()) } else { Err(ModelError::Cancelled { name: self.now.name.clone() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_settle_and_resumed_bytes_do_not_count() {
        let mut told = Vec::new();
        let mut listener = |progress: &Progress| {
            told.push(progress.clone());
            true
        };
        let mut meter = Meter::new("m", &mut listener);
        meter.phase(Phase::Fetching, 1_000_000, 2_000_000).unwrap();
        let start = meter.last.unwrap().0;
        for i in 1..=100u64 {
            // Ten steps a report: most are not told.
            meter.at_time(1_000_000 + i * 1000, start + Duration::from_millis(i * 11)).unwrap();
        }
        assert_eq!(told[0].bytes_per_s, 0.0);
        assert!((8..=11).contains(&told.len()), "{} reports in 1.1 s", told.len());
        let rate = told.last().unwrap().bytes_per_s;
        assert!((80_000.0..=100_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_listener_that_says_no_cancels() {
        let mut no = |_: &Progress| false;
        let error = Meter::new("m", &mut no).phase(Phase::Checking, 0, 1).unwrap_err();
        assert!(matches!(error, ModelError::Cancelled { .. }), "{error}");
    }
}
