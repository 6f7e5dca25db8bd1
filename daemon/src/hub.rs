//! Events of the daemon to everyone who follows them.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use satchel_ipc::wire::Event;

/// Events that a slow follower may lag behind; more are dropped for it, the next progress tells as much.
const QUEUE: usize = 256;

/// Hands events to followers; never blocks.
#[derive(Debug, Default)]
pub struct Hub {
    followers: Mutex<Vec<SyncSender<Event>>>,
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Vec<SyncSender<Event>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new follower.
    pub fn follow(&self) -> Receiver<Event> {
        let (sender, receiver) = sync_channel(QUEUE);
        self.lock().push(sender);
        receiver
    }

    /// Tells all followers; those that left are forgotten.
    pub fn tell(&self, event: &Event) {
        self.lock().retain(|f| !matches!(f.try_send(event.clone()), Err(TrySendError::Disconnected(_))));
    }
}
