//! The acceptor, which is a thread of its own in every model. It may be slow (`--accept-every`), to
//! see connections overflow.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};

use super::context::Context;

/// Pause after a connection could not be accepted because descriptors or memory ran out.
const RETRY: Duration = Duration::from_millis(20);

/// Connections as they come, until the model ends.
pub fn accepted(context: &Context) -> impl Iterator<Item = OwnedFd> {
    let mut pause_first = Duration::ZERO;
    std::iter::from_fn(move || {
        pause(context, pause_first);
        pause_first = Duration::from_millis(context.options.accept_every);
        loop {
            wait(context);
            if context.is_stopped() {
                return None;
            }
            match accept(context) {
                Ok(Some(fd)) => return Some(fd),
                Ok(None) => {}
                Err(_) => pause(context, RETRY),
            }
        }
    })
}

/// Waits for a connection or the end.
fn wait(context: &Context) {
    let stop = PollFd::from_borrowed_fd(context.stop_fd(), PollFlags::IN);
    let listeners = context.listener.fds().map(|fd| PollFd::new(fd, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = listeners.chain([stop]).collect();
    // A failed wait is an interrupted one; the caller looks either way.
    let _ = poll(&mut fds, None);
}

/// Sleeps, or returns early at the end.
fn pause(context: &Context, time: Duration) {
    if time.is_zero() {
        return;
    }
    let timeout =
        Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let mut fds = [PollFd::from_borrowed_fd(context.stop_fd(), PollFlags::IN)];
    let _ = poll(&mut fds, Some(&timeout));
}

fn accept(context: &Context) -> Result<Option<OwnedFd>, Errno> {
    for listener in context.listener.fds() {
        match accept_with(listener, SocketFlags::CLOEXEC) {
            Ok(fd) => {
                // A unix socket has no such option; the first read reports a peer that is gone.
                let _ = sockopt::set_tcp_nodelay(&fd, context.options.nodelay);
                return Ok(Some(fd));
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
