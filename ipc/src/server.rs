//! The accept loop: who may connect, how many, and how it all ends.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::{Code, ErrorBody, ErrorReply};
use crate::io::{Hangup, PeerIo};
use crate::limits::{ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_TIMEOUT, MAX_CONNECTIONS};
use crate::running::{Hub, Shutdown};
use crate::service::Service;
use crate::{http, rpc, socket};

/// Serves `listener` until `shutdown` completes, then ends what is open in order: no new connections, streams end
/// with an `error` event of code `cancelled`, replies are sent, and after
/// [`limits::DRAIN_TIMEOUT`](crate::limits::DRAIN_TIMEOUT) the rest is dropped.
///
/// Handlers run on tokio's blocking threads. One that ignores its cancellation outlives this call; a runtime that
/// must end regardless is ended with `shutdown_timeout`.
///
/// # Errors
/// The listener cannot be registered with the runtime. A failed accept is no error: it is tried again.
pub async fn serve<S: Service>(
    listener: StdListener,
    service: Arc<S>,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let (stop, stopped) = watch::channel(false);
    let hub = Hub::new(service, Shutdown::new(stopped));
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = shutdown.as_mut() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match Arc::clone(&permits).try_acquire_owned() {
                    Ok(permit) => { connections.spawn(connection(hub.clone(), stream, permit)); }
                    Err(_) => turn_away(&stream),
                },
                Err(_) => tokio::select! {
                    () = shutdown.as_mut() => break,
                    () = tokio::time::sleep(ACCEPT_PAUSE) => {}
                },
            },
        }
    }
    drop(listener);
    // The receiver lives in `hub`, so there is somebody to tell.
    let _ = stop.send(true);
    let drained = timeout(DRAIN_TIMEOUT, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        connections.shutdown().await;
    }
    Ok(())
}

async fn connection<S: Service>(hub: Hub<S>, mut stream: UnixStream, _permit: OwnedSemaphorePermit) {
    if !socket::is_own_peer(&stream) {
        return; // Another user: no word, not even a refusal.
    }
    let Ok(peer) = Hangup::new(&stream).map(Arc::new) else { return };
    let mut shutdown = hub.shutdown.clone();
    let first = tokio::select! {
        first = timeout(HEAD_TIMEOUT, stream.read_u8()) => first,
        () = shutdown.wait() => return,
    };
    let Ok(Ok(first)) = first else { return };
    let io = PeerIo::new(stream, first);
    if first == b'{' {
        rpc::converse(hub, io, peer).await;
    } else {
        http::converse(hub, io, peer).await;
    }
}

/// Tells a peer beyond the limit to come back. One write into an empty socket buffer: it either fits or is lost.
fn turn_away(stream: &UnixStream) {
    let error = ErrorBody::new(Code::Busy, format!("{MAX_CONNECTIONS} connections are open"))
        .with_hint("close one, or try again shortly");
    let Ok(body) = serde_json::to_string(&ErrorReply { error }) else { return };
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = stream.try_write(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}
