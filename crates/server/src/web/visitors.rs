//! The listener of the admin port: a bound on its connections, and an end to silent ones.

use base::sync::Arc;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at most; further ones wait in the kernel's queue.
pub(super) const VISITORS_MAX: usize = 64;
/// A connection on which nothing moves for so long is closed. Longer than the usual intervals of scrapes.
const IDLE_MAX: Duration = Duration::from_secs(130);
/// How long to wait when no descriptor is free.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Accepts visitors.
pub(super) struct Visitors {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

/// A connection that takes one place.
pub(super) struct Visitor {
    stream: TcpStream,
    idle: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl Visitors {
    pub(super) fn new(listener: TcpListener) -> Self {
        Visitors { listener, room: Arc::new(Semaphore::new(VISITORS_MAX)) }
    }
}

impl axum::serve::Listener for Visitors {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            let place = self.room.clone().acquire_owned().await.expect("it is never closed");
            match self.listener.accept().await {
                Ok((stream, addr)) => {
                    // Answers are small and whole; without this option they are merely later.
                    let _ = stream.set_nodelay(true);
                    let idle = Box::pin(tokio::time::sleep(IDLE_MAX));
                    return (Visitor { stream, idle, _place: place }, addr);
                }
                // The visitor has gone again, or there is no descriptor for him.
                Err(_) => tokio::time::sleep(BACK_OFF).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Visitor {
    /// Passes on what the stream said; one on which nothing moves for too long has an error.
    fn watched<T>(
        &mut self,
        cx: &mut Context<'_>,
        said: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if said.is_ready() {
            self.idle.as_mut().reset(Instant::now() + IDLE_MAX);
            return said;
        }
        ready!(self.idle.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.watched(cx, said)
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watched(cx, said)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
