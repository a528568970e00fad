//! Serving a connection from a thread that waits for it.

use std::thread;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::accept::accepted;
use super::context::Context;
use super::counters::Counts;
use super::input::{Input, Received};
use super::options::Options;
use super::output::Output;
use super::session::{Session, Step};

/// Stack of a thread that serves connections: ten thousand of them fit.
pub const STACK_BYTES: usize = 128 << 10;

/// Serves each connection on a thread of its own, until the model ends and all are served.
pub fn serve_each(context: &Context, serve: impl Fn(OwnedFd) + Sync) {
    thread::scope(|scope| {
        for fd in accepted(context) {
            let (serve, thread) = (&serve, thread::Builder::new().stack_size(STACK_BYTES));
            // If there is no further thread, the connection is closed: it went with the closure.
            let _ = thread.spawn_scoped(scope, move || serve(fd));
        }
    });
}

/// Reads a connection with room for so many bytes and shows what each read brought, until the end
/// of the connection or until `take` returns false.
pub fn read_each(
    context: &Context,
    fd: OwnedFd,
    room_bytes: usize,
    mut take: impl FnMut(&[u8], BorrowedFd<'_>, &Counts) -> bool,
) {
    let counts = context.counters.shard();
    counts.connection();
    let Some(guest) = context.enter(fd) else { return };
    let mut room = vec![0; room_bytes];
    loop {
        let result = recv(guest.fd(), &mut room[..], RecvFlags::empty()).map(|(count, _)| count);
        counts.read(result.unwrap_or(0));
        match result {
            Ok(count) if count > 0 && take(&room[..count], guest.fd(), counts) => {}
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Serves one connection to its end.
pub fn converse(context: &Context, fd: OwnedFd, mut session: impl Session) {
    let counts = context.counters.shard();
    counts.connection();
    if let Some(guest) = context.enter(fd) {
        // An error is the end of this connection and of nothing else.
        let _ = talk(guest.fd(), &mut session, &context.options, counts);
    }
}

fn talk(
    fd: BorrowedFd<'_>,
    session: &mut impl Session,
    options: &Options,
    counts: &Counts,
) -> Result<(), Errno> {
    let (mut input, mut output) = (Input::default(), Output::new(options));
    let mut emptied = true;
    loop {
        // Another read is free of charge only while the socket is known to hold more.
        let received = if emptied {
            if output.is_due_when_idle() {
                output.send_all(fd, counts)?;
            }
            input.receive(fd, RecvFlags::empty(), counts)?
        } else {
            input.receive(fd, RecvFlags::DONTWAIT, counts)?
        };
        match received {
            Received::Bytes { emptied: now } => emptied = now,
            Received::Nothing => emptied = true,
            Received::End => break,
        }
        if !execute(fd, session, &mut input, &mut output, counts)? {
            break;
        }
    }
    session.farewell(&mut output.buf);
    output.send_all(fd, counts)
}

/// Executes all whole requests; false if the conversation is over.
fn execute(
    fd: BorrowedFd<'_>,
    session: &mut impl Session,
    input: &mut Input,
    output: &mut Output,
    counts: &Counts,
) -> Result<bool, Errno> {
    loop {
        match session.step(input, &mut output.buf) {
            // A thread that waits for its answers defers none.
            Step::Replied | Step::Deferred => counts.request(1),
            Step::Starved => return Ok(true),
            Step::End => return Ok(false),
        }
        if output.is_due() {
            output.send_all(fd, counts)?;
        }
    }
}
