//! Answers go before ingest: while one is being written, embedding of documents waits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counts the answers in work.
#[derive(Debug, Default)]
pub struct Gate {
    answers: Mutex<usize>,
    changed: Condvar,
}

/// An answer in work; ingest waits as long as one lives.
#[derive(Debug)]
pub struct Answering<'a>(&'a Gate);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an answer.
    pub fn answer(&self) -> Answering<'_> {
        *self.lock() += 1;
        Answering(self)
    }

    /// Waits until no answer is in work, at most `at_most`: a stream of questions must not starve the index.
    pub fn wait(&self, at_most: Duration) {
        let guard = self.lock();
        // Poisoning or the timeout change nothing: ingest goes on either way.
        let _ = self.changed.wait_timeout_while(guard, at_most, |answers| *answers > 0);
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn ingest_waits_for_the_answer() {
        let (gate, done) = (Gate::default(), AtomicBool::new(false));
        let answer = gate.answer();
        std::thread::scope(|s| {
            s.spawn(|| {
                gate.wait(Duration::from_secs(60));
                assert!(done.load(Ordering::SeqCst));
            });
            done.store(true, Ordering::SeqCst);
            drop(answer);
        });
        gate.wait(Duration::ZERO);
    }
}
