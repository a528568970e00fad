//! One connection: requests out, replies in, and who waits for what since when.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use super::connect::Stream;
use super::expect::{Check, Count, Judge, Tally};
use super::plan::Plan;
use super::record::{Recorder, now_ns};
use super::scan::{Malformed, Scanner};
use super::source::{Author, Source};

/// Bytes received at a time, at first: more if one thing that must come whole is longer.
const RECEIVE_BYTES: usize = 128 * 1024;

/// What the connections of a thread share.
pub struct Shared<'a> {
    /// The load.
    pub plan: &'a Plan,
    /// The thread's draws.
    pub source: Source,
    /// What came of its requests.
    pub tally: Tally,
    /// Its latencies.
    pub recorder: Recorder,
    /// Acknowledge what arrives at once.
    pub quick_ack: bool,
    buf: Vec<u8>,
}

impl<'a> Shared<'a> {
    /// Nothing has been sent yet.
    pub fn new(plan: &'a Plan, source: Source, recorder: Recorder) -> Self {
        let buf = vec![0; RECEIVE_BYTES];
        Self { plan, source, tally: Tally::default(), recorder, quick_ack: false, buf }
    }
}

/// Judges what came; returns how many bytes are done with.
#[inline]
pub fn scan(
    plan: &Plan,
    scanner: &mut Scanner,
    (judge, tally): (&mut Judge, &mut Tally),
    bytes: &[u8],
) -> Result<usize, Malformed> {
    if plan.checked {
        scanner.scan(bytes, &mut Check { judge, tally, data: plan.spec.data })
    } else {
        scanner.scan(bytes, &mut Count { judge, tally, nil_fails: plan.nil_fails })
    }
}

/// Requests that were made at the same time.
#[derive(Clone, Copy, Debug)]
struct Batch {
    at: u64,
    count: u64,
}

/// Why a connection is of no more use.
#[derive(Debug)]
pub struct Broken(pub String);

/// A connection.
pub struct Conn {
    stream: Stream,
    out: Vec<u8>,
    sent: usize,
    tail: Vec<u8>,
    scanner: Scanner,
    judge: Judge,
    batches: VecDeque<Batch>,
    author: Author,
    /// Requests without a reply.
    pub in_flight: u64,
    /// Most of them that the driver allows.
    pub window: u64,
    /// Replies that came while it was measured.
    pub served: u64,
}

impl Conn {
    /// A connection that has sent nothing yet.
    pub fn new(stream: Stream, author: Author, window: u64) -> Self {
        Self {
            stream,
            out: Vec::new(),
            sent: 0,
            tail: Vec::new(),
            scanner: Scanner::default(),
            judge: Judge::default(),
            batches: VecDeque::new(),
            author,
            in_flight: 0,
            window,
            served: 0,
        }
    }

    /// The socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Bytes that wait for the socket.
    #[inline]
    pub fn unsent_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Makes `count` requests whose latency counts from `at`. Nothing is sent yet.
    #[inline]
    pub fn make(&mut self, shared: &mut Shared, at: u64, count: u64) {
        for _ in 0..count {
            let expects = if shared.plan.checked { Some(self.judge.expects()) } else { None };
            self.author.write(shared.plan, &mut shared.source, &mut self.out, expects);
        }
        self.batches.push_back(Batch { at, count });
        self.in_flight += count;
    }

    /// Sends what the socket takes.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Broken> {
        while self.sent < self.out.len() {
            match send(self.stream.as_fd(), &self.out[self.sent..], SendFlags::NOSIGNAL) {
                Ok(len) => self.sent += len,
                Err(Errno::AGAIN) => {
                    self.compact();
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(Broken(describe(error))),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Drops what was sent once it is the larger part: each byte is moved at most once on average.
    fn compact(&mut self) {
        const WORTH_BYTES: usize = 64 * 1024;
        if self.sent > WORTH_BYTES && self.sent * 2 > self.out.len() {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Receives all that is there (`to_the_end`: until the peer's end of it) and records the
    /// replies. Returns how many came and the time of the last look at the clock.
    pub fn receive(&mut self, shared: &mut Shared, to_the_end: bool) -> Result<(u64, u64), Broken> {
        let (mut replies, mut now) = (0, 0);
        loop {
            let kept = self.tail.len();
            if kept * 2 > shared.buf.len() {
                shared.buf.resize(shared.buf.len() * 2, 0);
            }
            shared.buf[..kept].copy_from_slice(&self.tail);
            let room = &mut shared.buf[kept..];
            let room_len = room.len();
            let len = match recv(self.stream.as_fd(), room, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Broken("the server closed the connection".to_owned())),
                Ok((len, _)) => len,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Broken(describe(error))),
            };
            now = now_ns();
            if shared.quick_ack {
                // The option does not last, and only TCP has it.
                let _ = sockopt::set_tcp_quickack(self.stream.as_fd(), true);
            }
            replies += self.scan(shared, kept + len, now)?;
            if len < room_len && !to_the_end {
                break;
            }
        }
        Ok((replies, now))
    }

    /// Scans the first `len` received bytes; keeps what is not whole.
    #[inline]
    fn scan(&mut self, shared: &mut Shared, len: usize, now: u64) -> Result<u64, Broken> {
        let (bytes, before) = (&shared.buf[..len], shared.tally.replies);
        let judges = (&mut self.judge, &mut shared.tally);
        let scanned = scan(shared.plan, &mut self.scanner, judges, bytes);
        let used = scanned.map_err(|error| Broken(format!("not a RESP reply: {}", error.0)))?;
        self.tail.clear();
        self.tail.extend_from_slice(&bytes[used..]);
        let replies = shared.tally.replies - before;
        if replies > self.in_flight {
            return Err(Broken("a reply to no request".to_owned()));
        }
        self.in_flight -= replies;
        self.served += replies;
        shared.recorder.replies(replies);
        let mut left = replies;
        while left > 0 {
            let batch = self.batches.front_mut().expect("every request belongs to a batch");
            let count = batch.count.min(left);
            shared.recorder.latency(now.saturating_sub(batch.at), count);
            batch.count -= count;
            left -= count;
            if batch.count == 0 {
                self.batches.pop_front();
            }
        }
        Ok(replies)
    }
}

fn describe(error: Errno) -> String {
    match error {
        Errno::CONNRESET | Errno::PIPE => "the server closed the connection".to_owned(),
        other => format!("the connection failed: {}", std::io::Error::from(other)),
    }
}
