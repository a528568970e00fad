//! *Nothing but reading.* A thread per connection reads what comes and throws it away, until the
//! client sends no more; then the connection is closed, which tells the client that all was read.
//! No message is looked at and none is acknowledged: what is faster than this is not measured
//! right.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::blocking::STACK_BYTES;
use super::context::Context;
use super::listen::accepted;

/// Room for one receive.
const ROOM_BYTES: usize = 256 << 10;

/// Starts it.
pub fn start(context: Arc<Context>) -> io::Result<JoinHandle<()>> {
    super::spawn("acceptor", move || {
        thread::scope(|scope| {
            for fd in accepted(&context) {
                let context = &*context;
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                // If there is no further thread, the connection is closed: it went with the
                // closure.
                let _ = thread.spawn_scoped(scope, move || discard(context, fd));
            }
        });
    })
}

fn discard(context: &Context, fd: OwnedFd) {
    let counts = context.counters.shard();
    counts.connection();
    let Some(guest) = context.enter(fd) else { return };
    let mut room = vec![0; ROOM_BYTES];
    loop {
        let result = recv(guest.fd(), &mut room[..], RecvFlags::empty()).map(|(count, _)| count);
        counts.read(result.unwrap_or(0));
        match result {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
