//! How long the rest takes, from how fast it went lately.

use std::time::{Duration, Instant};

/// How soon the past is forgotten: after so long a third of it still counts. Long enough to even out batches of short and
/// long texts, short enough to follow when reading ends and embedding has the processor to itself.
const MEMORY: Duration = Duration::from_secs(20);

/// Seconds watched before a rate is told.
const WATCHED_MIN: f64 = 1.0;

/// An amount a second, lately.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    amount: f64,
    seconds: f64,
    last: Option<Instant>,
}

impl Rate {
    /// Work begins: what comes is counted from here. Does nothing when it has begun.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.last.get_or_insert(now);
    }

    /// So much more was done by now.
    pub(crate) fn add(&mut self, amount: u64, now: Instant) {
        let seconds = self.last.map_or(0.0, |last| now.saturating_duration_since(last).as_secs_f64());
        self.last = Some(now);
        let keep = (-seconds / MEMORY.as_secs_f64()).exp();
        self.amount = self.amount * keep + amount as f64;
        self.seconds = self.seconds * keep + seconds;
    }

    pub(crate) fn per_second(&self) -> Option<f64> {
        (self.seconds >= WATCHED_MIN && self.amount > 0.0).then(|| self.amount / self.seconds)
    }

    fn time_for(&self, amount: f64) -> Option<f64> {
        if amount <= 0.0 { Some(0.0) } else { self.per_second().map(|rate| amount / rate) }
    }
}

/// What is known of the work of one run, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amounts {
    /// Of files that were found to be read, and that were.
    pub files_total: u64,
    pub files_read: u64,
    /// Of text that waited for vectors when the run began, that waits now, and that got vectors in it.
    pub waited: u64,
    pub waiting: u64,
    pub embedded: u64,
    /// Texts are embedded at all.
    pub embeds: bool,
}

impl Amounts {
    /// Text that files not read yet will bring to be embedded, going by those that were.
    fn unread_text(&self) -> f64 {
        let brought = (self.embedded + self.waiting).saturating_sub(self.waited);
        let share = brought as f64 / self.files_read.max(1) as f64;
        self.files_total.saturating_sub(self.files_read) as f64 * share
    }

    /// Text still to be embedded.
    pub(crate) fn text_left(&self) -> f64 {
        self.waiting as f64 + self.unread_text()
    }

    /// Share of the work that is done, 0 to 1.
    pub(crate) fn done(&self) -> f64 {
        let (embedded, left) = (self.embedded as f64, self.text_left());
        if embedded + left > 0.0 {
            return embedded / (embedded + left);
        }
        self.files_read as f64 / self.files_total.max(1) as f64
    }

    /// Time to the end. Reading and embedding go on side by side, so the slower decides.
    pub(crate) fn remaining(&self, reading: &Rate, embedding: &Rate) -> Option<Duration> {
        let unread = self.files_total.saturating_sub(self.files_read) as f64;
        // Nothing is known of the longer part before the first batch is embedded.
        let embedding = if self.embeds && self.embedded == 0 { None } else { embedding.time_for(self.text_left()) };
        let seconds = reading.time_for(unread)?.max(embedding?);
        (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads at 100,000 bytes a second and embeds 20,000 of them, 12,000 while it reads; told each second, checked against
    /// what then happens.
    #[test]
    fn the_rest_is_told_well_after_a_minute() {
        let start = Instant::now();
        let (mut reading, mut embedding) = (Rate::default(), Rate::default());
        reading.begin(start);
        embedding.begin(start);
        let mut amounts = Amounts { files_total: 4_000_000, ..Amounts::default() };
        let mut told = Vec::new();
        for second in 1_u32.. {
            let now = start + Duration::from_secs(second.into());
            let read = 100_000.min(amounts.files_total - amounts.files_read);
            amounts.files_read += read;
            amounts.waiting += read / 2;
            if read > 0 {
                reading.add(read, now);
            }
            // Batches are not all alike.
            let speed = if read > 0 { 12_000 } else { 18_000 + u64::from(second % 3) * 2_000 };
            let embedded = speed.min(amounts.waiting);
            amounts.waiting -= embedded;
            amounts.embedded += embedded;
            embedding.add(embedded, now);
            told.push((second, amounts.remaining(&reading, &embedding).map(|d| d.as_secs_f64())));
            if amounts.waiting == 0 && read == 0 {
                break;
            }
        }
        let end = f64::from(told.last().unwrap().0);
        for (second, remaining) in told.iter().filter(|(second, _)| *second >= 60 && f64::from(*second) < end - 5.0) {
            let truth = end - f64::from(*second);
            let error = (remaining.unwrap() - truth).abs() / truth;
            assert!(error < 0.2, "after {second} s: {remaining:?} told, {truth} true");
        }
        assert!((amounts.done() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn files_not_read_yet_count_by_those_that_were() {
        let amounts =
            Amounts { files_total: 1000, files_read: 250, waited: 40, waiting: 100, embedded: 40, embeds: true };
        // 250 bytes of files brought 100 of text, 750 more will bring 300.
        assert_eq!(amounts.text_left(), 400.0);
        assert!((amounts.done() - 40.0 / 440.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_told_before_there_is_a_rate() {
        let start = Instant::now();
        let mut reading = Rate::default();
        reading.begin(start);
        reading.add(100, start + Duration::from_secs(2));
        let mut amounts = Amounts { files_total: 1000, files_read: 100, ..Amounts::default() };
        assert_eq!(amounts.remaining(&reading, &Rate::default()), Some(Duration::from_secs(18)));
        amounts.embeds = true;
        assert_eq!(amounts.remaining(&reading, &Rate::default()), None);
        let amounts = Amounts { files_total: 10, waiting: 5, ..Amounts::default() };
        assert_eq!(amounts.remaining(&Rate::default(), &Rate::default()), None);
        assert_eq!(Amounts::default().remaining(&Rate::default(), &Rate::default()), None);
    }
}
