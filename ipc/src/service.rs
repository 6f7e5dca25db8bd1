//! What a daemon implements: one synchronous function from a request to its reply.

use std::time::Instant;

use tokio::sync::mpsc;

use crate::cancel::Cancel;
use crate::error::ErrorBody;
use crate::route::{Reply, Request};
use crate::wire::Event;

/// The daemon behind the socket.
pub trait Service: Send + Sync + 'static {
    /// Answers one request, on a thread that it may block.
    ///
    /// It should look at `exchange.cancel` at least every [`limits::CANCEL_GRACE`](crate::limits::CANCEL_GRACE);
    /// past that the peer is told `cancelled` and the late result is dropped. For `Request::Events` it emits until
    /// it is cancelled, then returns `Reply::Closed`. A panic becomes an error of code `error`; the daemon goes on.
    ///
    /// # Errors
    /// Whatever the peer should be told.
    fn handle(&self, request: Request, exchange: &Exchange) -> Result<Reply, ErrorBody>;
}

/// One request's connection to its peer.
#[derive(Debug)]
pub struct Exchange {
    /// Set when the result is no longer wanted.
    pub cancel: Cancel,
    /// Where events go. A handler emits them whether or not they were asked for.
    pub events: EventSink,
    /// When the result is due, if the request said so; `cancel` is set at that time.
    pub deadline: Option<Instant>,
}

/// The bounded queue of a stream of events; discards them where the peer asked for a single reply.
#[derive(Debug, Clone)]
pub struct EventSink {
    sender: Option<mpsc::Sender<Event>>,
    cancel: Cancel,
}

impl EventSink {
    pub(crate) fn new(sender: Option<mpsc::Sender<Event>>, cancel: Cancel) -> Self {
        Self { sender, cancel }
    }

    /// Whether a peer reads the events.
    pub fn is_open(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }

    /// Sends an event; waits while the queue is full, so that work goes no faster than its reader.
    /// Must not be called from async code: it blocks.
    ///
    /// # Errors
    /// Code `cancelled` when nobody wants the result any more.
    pub fn emit(&self, event: Event) -> Result<(), ErrorBody> {
        self.cancel.check()?;
        let Some(sender) = &self.sender else { return Ok(()) };
        match sender.blocking_send(event) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.cancel.reason().unwrap_or(crate::cancel::CancelReason::PeerClosed).to_error()),
        }
    }

    /// Sends an event if there is room at once; for progress, of which the next one tells as much.
    /// False when it was dropped.
    pub fn try_emit(&self, event: Event) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.try_send(event).is_ok())
    }
}
