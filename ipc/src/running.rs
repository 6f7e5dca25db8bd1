//! One request in work: its handler's thread, its events, and everything that can end it early.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use crate::cancel::{Cancel, CancelReason};
use crate::error::{Code, ErrorBody};
use crate::io::Hangup;
use crate::limits::{CANCEL_GRACE, EVENT_QUEUE, HANGUP_POLL_INTERVAL, HEARTBEAT_INTERVAL, MAX_DEADLINE, MAX_HANDLERS};
use crate::route::{Reply, Request};
use crate::service::{EventSink, Exchange, Service};
use crate::wire::Event;

/// Tells connections that the server stops.
#[derive(Clone)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    pub(crate) fn new(stopped: watch::Receiver<bool>) -> Self {
        Self(stopped)
    }

    /// Waits for the stop. A server that is gone counts as stopped.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// What all connections of one server share.
pub(crate) struct Hub<S> {
    service: Arc<S>,
    handlers: Arc<Semaphore>,
    pub(crate) shutdown: Shutdown,
}

impl<S> Hub<S> {
    pub(crate) fn new(service: Arc<S>, shutdown: Shutdown) -> Self {
        Self { service, handlers: Arc::new(Semaphore::new(MAX_HANDLERS)), shutdown }
    }
}

impl<S> Clone for Hub<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            handlers: Arc::clone(&self.handlers),
            shutdown: self.shutdown.clone(),
        }
    }
}

/// What a running request does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// It has an event for its peer.
    Event(Event),
    /// It is quiet, and its peer should hear that it lives.
    Heartbeat,
    /// It ended. No step follows.
    Finished(Result<Reply, ErrorBody>),
}

/// A request in work. Dropping it cancels the handler.
pub(crate) struct Running {
    handler: JoinHandle<Result<Reply, ErrorBody>>,
    events: mpsc::Receiver<Event>,
    cancel: Cancel,
    deadline: Option<Instant>,
    /// Set once cancelled: when to answer without the handler.
    grace_end: Option<Instant>,
    streaming: bool,
    /// The handler's result, kept until the events before it are delivered.
    result: Option<Result<Reply, ErrorBody>>,
    shutdown: Shutdown,
    peer: Arc<Hangup>,
    hangup_poll: Interval,
    heartbeat: Interval,
}

impl Running {
    /// Starts the handler.
    ///
    /// # Errors
    /// Code `busy` when `MAX_HANDLERS` run.
    pub(crate) fn start<S: Service>(hub: &Hub<S>, peer: &Arc<Hangup>, request: Request) -> Result<Self, ErrorBody> {
        let permit = Arc::clone(&hub.handlers).try_acquire_owned().map_err(|_| {
            ErrorBody::new(Code::Busy, format!("{MAX_HANDLERS} requests are in work")).with_hint("ask again shortly")
        })?;
        let streaming = request.is_streaming();
        let (sender, events) = mpsc::channel(EVENT_QUEUE);
        let cancel = Cancel::new();
        let deadline = request.deadline_ms().map(|ms| Instant::now() + Duration::from_millis(ms).min(MAX_DEADLINE));
        let exchange = Exchange {
            cancel: cancel.clone(),
            events: EventSink::new(streaming.then_some(sender), cancel.clone()),
            deadline: deadline.map(Instant::into_std),
        };
        let service = Arc::clone(&hub.service);
        let handler = tokio::task::spawn_blocking(move || {
            let result = service.handle(request, &exchange);
            drop(permit);
            result
        });
        Ok(Self {
            handler,
            events,
            cancel,
            deadline,
            grace_end: None,
            streaming,
            result: None,
            shutdown: hub.shutdown.clone(),
            peer: Arc::clone(peer),
            hangup_poll: ticker(HANGUP_POLL_INTERVAL),
            heartbeat: ticker(HEARTBEAT_INTERVAL),
        })
    }

    /// Waits for what happens next.
    pub(crate) async fn step(&mut self) -> Step {
        loop {
            if let Some(result) = self.result.take() {
                return match self.events.try_recv() {
                    Ok(event) => {
                        self.result = Some(result);
                        Step::Event(event)
                    }
                    Err(_) => Step::Finished(result),
                };
            }
            let running = self.grace_end.is_none();
            // What ends a request stands before what it produces, or a fast producer would outrun its deadline.
            tokio::select! {
                biased;
                () = until(self.grace_end) => return Step::Finished(Err(self.cancelled_error())),
                () = until(self.deadline), if running => self.give_up(CancelReason::Deadline),
                () = self.shutdown.wait(), if running => self.give_up(CancelReason::Shutdown),
                _ = self.hangup_poll.tick() => {
                    if self.peer.is_hung_up() {
                        self.cancel.cancel(CancelReason::PeerClosed);
                        return Step::Finished(Err(self.cancelled_error()));
                    }
                }
                Some(event) = self.events.recv() => {
                    self.heartbeat.reset();
                    return Step::Event(event);
                }
                result = &mut self.handler => self.result = Some(flatten(result)),
                _ = self.heartbeat.tick() => return Step::Heartbeat,
            }
        }
    }

    /// Whether the peer wants events.
    pub(crate) fn is_streaming(&self) -> bool {
        self.streaming
    }

    /// Waits for the reply, dropping events.
    pub(crate) async fn finish(mut self) -> Result<Reply, ErrorBody> {
        loop {
            if let Step::Finished(result) = self.step().await {
                return result;
            }
        }
    }

    fn give_up(&mut self, reason: CancelReason) {
        self.cancel.cancel(reason);
        self.grace_end = Some(Instant::now() + CANCEL_GRACE);
    }

    fn cancelled_error(&self) -> ErrorBody {
        self.cancel.reason().unwrap_or(CancelReason::PeerClosed).to_error()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a finished handler this has no effect.
        self.cancel.cancel(CancelReason::PeerClosed);
    }
}

/// Never ends when there is no time.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn ticker(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// A panic in a handler ends that request alone.
fn flatten(result: Result<Result<Reply, ErrorBody>, tokio::task::JoinError>) -> Result<Reply, ErrorBody> {
    result.unwrap_or_else(|_| {
        let error = ErrorBody::new(Code::Error, "the daemon failed on this request; this is a defect in satchel");
        Err(error.with_hint("the daemon's log has the details"))
    })
}
