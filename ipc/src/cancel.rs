//! A cancellation flag shared between the connection that sets it and the handler that polls it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Code, ErrorBody};

/// Why work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The peer closed its connection: nobody waits for the result.
    PeerClosed,
    /// The request's own deadline passed.
    Deadline,
    /// The daemon stops.
    Shutdown,
}

impl CancelReason {
    const ALL: [CancelReason; 3] = [Self::PeerClosed, Self::Deadline, Self::Shutdown];

    /// The error a peer is told, code `cancelled`.
    pub fn to_error(self) -> ErrorBody {
        let message = match self {
            Self::PeerClosed => "the client closed its connection",
            Self::Deadline => "the deadline passed before the answer was complete",
            Self::Shutdown => "the daemon is stopping",
        };
        let error = ErrorBody::new(Code::Cancelled, message);
        match self {
            Self::PeerClosed => error,
            Self::Deadline => error.with_hint("allow more time with a longer deadline"),
            Self::Shutdown => error.with_hint("ask again once the daemon runs again"),
        }
    }
}

/// A cheap, cloneable flag: set once, by whichever cause comes first, and polled by the handler.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// 0 while running, else 1 + the position in `CancelReason::ALL`.
    state: AtomicU8,
    gate: Mutex<()>,
    changed: Condvar,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the work should stop. One atomic load: fit for the loop over tokens.
    pub fn is_cancelled(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) != 0
    }

    /// The first reason given, if any.
    pub fn reason(&self) -> Option<CancelReason> {
        let state = self.inner.state.load(Ordering::Acquire);
        CancelReason::ALL.get(usize::from(state).checked_sub(1)?).copied()
    }

    /// Sets the flag and wakes `wait`. Later reasons are ignored.
    pub fn cancel(&self, reason: CancelReason) {
        let state = reason as u8 + 1;
        let guard = self.inner.gate.lock().unwrap_or_else(PoisonError::into_inner);
        // Fails only when another reason was first, which is then the one that counts.
        let _ = self.inner.state.compare_exchange(0, state, Ordering::AcqRel, Ordering::Acquire);
        drop(guard);
        self.inner.changed.notify_all();
    }

    /// Blocks until the flag is set or `timeout` has passed; true when it is set.
    pub fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut guard = self.inner.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_cancelled() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            guard = match self.inner.changed.wait_timeout(guard, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        true
    }

    /// `Err` with the peer's error once cancelled: `exchange.cancel.check()?` between steps.
    ///
    /// # Errors
    /// Code `cancelled`, with the first reason in its message.
    pub fn check(&self) -> Result<(), ErrorBody> {
        self.reason().map_or(Ok(()), |reason| Err(reason.to_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let cancel = Cancel::new();
        assert!(!cancel.is_cancelled());
        assert!(cancel.check().is_ok());
        cancel.cancel(CancelReason::Deadline);
        cancel.clone().cancel(CancelReason::Shutdown);
        assert_eq!(cancel.reason(), Some(CancelReason::Deadline));
        assert_eq!(cancel.check().unwrap_err().code, Code::Cancelled);
    }

    #[test]
    fn wait_ends_at_the_cancellation_and_not_at_its_timeout() {
        let cancel = Cancel::new();
        let setter = cancel.clone();
        let started = Instant::now();
        let thread = std::thread::spawn(move || setter.cancel(CancelReason::PeerClosed));
        assert!(cancel.wait(Duration::from_secs(60)));
        assert!(started.elapsed() < Duration::from_secs(30));
        thread.join().unwrap();
        assert!(!Cancel::new().wait(Duration::from_millis(1)));
    }
}
