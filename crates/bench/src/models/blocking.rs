//! Serving a connection from a thread that waits for it.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::Options;
use super::context::Context;
use super::counters::Counts;
use super::input::{Input, Received};
use super::output::Output;
use super::session::{Session, Step};

/// Stack of a thread that serves connections: ten thousand of them fit.
pub const STACK_BYTES: usize = 128 << 10;

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
