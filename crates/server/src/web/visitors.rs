//! The listener of the admin port. No visitor can keep others out: a request must arrive whole and
//! soon, and when all places are taken, the connection which has been idle for longest is closed.
//! So a probe of `/healthz` is always accepted.

use base::sync::{Arc, Mutex};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// Connections at most.
const VISITORS_MAX: usize = 64;
/// The answer to a request must begin so long after its first byte. The first request of a
/// connection counts from the connection on.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// A connection without a request, or one that does not take its answer, is closed after so long.
/// Longer than the usual intervals of scrapes.
const IDLE_MAX: Duration = Duration::from_secs(130);
/// How long to wait when no descriptor is free.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Accepts visitors.
pub(crate) struct Visitors {
    listener: TcpListener,
    seats: Arc<Mutex<Seats>>,
}

/// A connection that takes one place.
pub(crate) struct Visitor {
    stream: TcpStream,
    /// A request is expected or has begun; its answer has not.
    asks: bool,
    deadline: Pin<Box<Sleep>>,
    number: u64,
    /// Ready once the place is given to somebody else.
    evicted: oneshot::Receiver<()>,
    seats: Arc<Mutex<Seats>>,
}

/// Who has a place.
#[derive(Default)]
struct Seats {
    last_number: u64,
    taken: HashMap<u64, Seat>,
}

struct Seat {
    /// When a request began, or some of an answer left.
    moved: Instant,
    /// The visitor leaves once this is dropped.
    _stay: oneshot::Sender<()>,
}

impl Seats {
    /// A place for a new visitor.
    fn take(&mut self) -> (u64, oneshot::Receiver<()>) {
        while self.taken.len() >= VISITORS_MAX
            && let Some(stalest) = self.stalest()
        {
            self.taken.remove(&stalest);
        }
        self.last_number += 1;
        let (stay, evicted) = oneshot::channel();
        self.taken.insert(self.last_number, Seat { moved: Instant::now(), _stay: stay });
        (self.last_number, evicted)
    }

    /// The visitor which has been idle for longest.
    fn stalest(&self) -> Option<u64> {
        self.taken.iter().min_by_key(|(number, seat)| (seat.moved, **number)).map(|(n, _)| *n)
    }
}

impl Visitors {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Visitors { listener, seats: Arc::default() }
    }
}

impl axum::serve::Listener for Visitors {
    type Io = Visitor;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visitor, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, addr)) => return (Visitor::new(stream, self.seats.clone()), addr),
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
    fn new(stream: TcpStream, seats: Arc<Mutex<Seats>>) -> Self {
        // Answers are small and whole; without this option they are merely later.
        let _ = stream.set_nodelay(true);
        let (number, evicted) = seats.lock().expect(SEATS_HELD).take();
        let deadline = Box::pin(tokio::time::sleep(REQUEST_MAX));
        Visitor { stream, asks: true, deadline, number, evicted, seats }
    }

    /// A request has begun, or some of an answer has left.
    fn extend_deadline(&mut self, asks: bool) {
        let now = Instant::now();
        self.asks = asks;
        self.deadline.as_mut().reset(now + if asks { REQUEST_MAX } else { IDLE_MAX });
        if let Some(seat) = self.seats.lock().expect(SEATS_HELD).taken.get_mut(&self.number) {
            seat.moved = now;
        }
    }

    /// The error of a visitor whose time is over or whose place is taken; pending until then.
    fn poll_end<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        // (Polled on after its end, too, by who still has something to send.)
        if self.evicted.is_terminated() || Pin::new(&mut self.evicted).poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

const SEATS_HELD: &str = "no panic while the places are held";

impl Drop for Visitor {
    fn drop(&mut self) {
        self.seats.lock().expect(SEATS_HELD).taken.remove(&self.number);
    }
}

impl AsyncRead for Visitor {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) else {
            return self.poll_end(cx);
        };
        // Further bytes of a request do not move its deadline.
        if buf.filled().len() > before && !self.asks {
            self.extend_deadline(true);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Visitor {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, bytes) else {
            return self.poll_end(cx);
        };
        self.extend_deadline(false);
        Poll::Ready(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
