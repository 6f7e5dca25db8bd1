//! The byte stream of one peer: a Unix socket whose writes time out, and a look at whether its peer hung up.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::Sleep;

use crate::limits::WRITE_STALL_TIMEOUT;

/// A socket whose first byte was looked at, and which fails a write that makes no progress.
#[derive(Debug)]
pub(crate) struct PeerIo {
    stream: UnixStream,
    /// A byte already read, given back to the first reader.
    first: Option<u8>,
    /// Runs while a write waits.
    stall: Option<Pin<Box<Sleep>>>,
}

impl PeerIo {
    pub(crate) fn new(stream: UnixStream, first: u8) -> Self {
        Self { stream, first: Some(first), stall: None }
    }

    /// Passes a finished write on, and turns one that waits too long into an error.
    fn bound_wait<T>(&mut self, cx: &mut Context<'_>, write: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.stall = None;
            return write;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(WRITE_STALL_TIMEOUT)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer stopped reading")))
    }
}

impl AsyncRead for PeerIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() > 0
            && let Some(first) = self.first.take()
        {
            buf.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for PeerIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let write = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bound_wait(cx, write)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Tells a peer that closed its socket from one that only finished sending (`nc -N`, `shutdown(SHUT_WR)`): the
/// latter still waits for its reply. End of file on a read cannot tell them apart.
#[derive(Debug)]
pub(crate) struct Hangup {
    /// A duplicate, so that the look is valid whatever becomes of the stream.
    fd: OwnedFd,
}

impl Hangup {
    pub(crate) fn new(stream: &UnixStream) -> io::Result<Self> {
        Ok(Self { fd: stream.as_fd().try_clone_to_owned()? })
    }

    /// Whether the peer's socket is closed in both directions.
    pub(crate) fn is_hung_up(&self) -> bool {
        // POLLHUP and POLLERR are always reported; POLLOUT asks for nothing else that a half-closed peer causes.
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: `poll` is one valid, exclusively borrowed pollfd, as the count of 1 says; its descriptor is
        // open for as long as `self`; a timeout of 0 returns at once.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 0) };
        ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_half_closed_peer_is_not_a_closed_one() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let hangup = Hangup::new(&ours).unwrap();
        assert!(!hangup.is_hung_up());
        theirs.shutdown().await.unwrap();
        assert!(!hangup.is_hung_up());
        drop(theirs);
        assert!(hangup.is_hung_up());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_reading_fails_the_write() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut io = PeerIo::new(ours, b'x');
        assert_eq!(io.read_u8().await.unwrap(), b'x');
        let error = io.write_all(&vec![0; 16 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }
}
