//! Classic ingest connections whose messages go somewhere: a block is poured first, and its policy
//! is told only of what is in the key, so that nothing else is ever acknowledged.
//!
//! What the sink does not take now is held, a read and a message at most, and nothing more is read
//! from the client: TCP stops it. The rest is tried again when the keyspace says so
//! ([`Message::Retry`]), or every [`LOOK_NS`] where nobody says when there is memory again.

use crate::ingest::connection::Kind;
use crate::ingest::pour::Poured;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver};
use ingest::{Messages, Order, Piece, Pieces, Report, Sink};
use keyspace::Access;
use std::collections::HashSet;

/// How often is looked whether there is memory again.
const LOOK_NS: u64 = 5_000_000;
/// Places of connections that are gone among those that wait, beyond as many as wait.
const GONE_MAX: usize = 64;
/// Bytes that an empty buffer of what is held keeps.
const KEPT_MAX: usize = 64 * 1024;
/// A message of which no more has come goes on though memory is full.
const SMALL_BYTES: usize = 16 * 1024;
/// An entry of a stream has no longer payload, whatever the limit says.
const STREAM_PAYLOAD_MAX: u32 = 1 << 29;

/// A connection's way to its sink.
pub(crate) struct Taking {
    sink: Sink,
    pieces: Pieces,
    /// What was received and not taken yet.
    held: Vec<u8>,
    waits: Waits,
}

/// Until when a connection holds what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// It holds nothing.
    No,
    /// The keyspace says when the way is free.
    Told,
    /// Until there is memory.
    Memory,
}

/// How taking a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing is left.
    All,
    /// The rest is to be tried again.
    Wait(Waits),
    /// This sink never takes it: why.
    Never(&'static str),
}

/// Connections that wait for memory, and when to look.
#[derive(Default)]
pub(crate) struct Looks {
    /// In their order, with some that are gone.
    queue: Vec<ConnId>,
    waiting: HashSet<ConnId>,
    at: Option<MonoNs>,
}

impl Looks {
    /// When to look, if anybody waits.
    #[inline]
    pub fn next(&self) -> Option<MonoNs> {
        self.at
    }

    /// One more, unless it waits already.
    pub fn add(&mut self, conn: ConnId, now: MonoNs) {
        if self.waiting.insert(conn) {
            self.queue.push(conn);
        }
        self.at.get_or_insert(now.plus(LOOK_NS));
    }

    /// A connection that is gone waits no longer.
    pub fn remove(&mut self, conn: ConnId) {
        if self.waiting.remove(&conn) && self.queue.len() > 2 * self.waiting.len() + GONE_MAX {
            self.queue.retain(|conn| self.waiting.contains(conn));
        }
    }

    /// All of them, in their order; nobody waits then.
    fn take(&mut self) -> Vec<ConnId> {
        self.at = None;
        let waiting = std::mem::take(&mut self.waiting);
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|conn| waiting.contains(conn));
        queue
    }
}

impl Taking {
    /// The way to a sink that keeps what it gets; `None` to one that does not.
    pub fn to(sink: &Sink, order: Order) -> Option<Box<Self>> {
        (!sink.is_null()).then(|| {
            let (sink, pieces) = (sink.clone(), Pieces::new(order));
            Box::new(Self { sink, pieces, held: Vec::new(), waits: Waits::No })
        })
    }

    /// True while nothing may be received.
    pub fn waits(&self) -> bool {
        self.waits != Waits::No
    }

    /// True if whole messages may be among what was not taken.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Bytes of memory that are held for messages.
    pub fn memory(&self) -> usize {
        self.pieces.buffered() + self.held.capacity()
    }

    /// Pours a block, as far as the sink takes it: how many bytes of it are done with, and how that
    /// ended.
    fn take(
        &mut self,
        (core, access): (&mut Core, &mut Access),
        conn: ConnId,
        block: &[u8],
        payload_max: u32,
    ) -> (usize, End) {
        let mut at = 0;
        loop {
            let (messages, count, used) = match self.pieces.next(&block[at..], payload_max) {
                Piece::Whole { messages, count, used } => (messages, count, used),
                Piece::Begun | Piece::Oversized => return (block.len(), End::All),
            };
            let (taken, end) = match core.pour(access, conn, &self.sink, messages.clone(), count) {
                Poured::All => (count, End::All),
                Poured::Later { taken } => (taken, End::Wait(Waits::Told)),
                Poured::Full { taken } => (taken, End::Wait(Waits::Memory)),
                Poured::WrongType { taken } => {
                    (taken, End::Never("the key holds a value of another type"))
                }
                Poured::NoMoreIds { taken } => {
                    (taken, End::Never("the ids of the stream are used up"))
                }
                Poured::NoDb => (0, End::Never("there is no such database")),
                Poured::Broken { taken } => (taken, End::Never("a panic was undone")),
            };
            if taken == count {
                self.pieces.mark_taken();
                at += used;
            } else {
                at += bytes_of(messages, taken);
            }
            if end != End::All {
                return (at, end);
            }
        }
    }
}

/// Bytes of the first so many messages.
fn bytes_of(mut messages: Messages<'_>, count: usize) -> usize {
    let all = messages.remaining().len();
    messages.by_ref().take(count).for_each(drop);
    all - messages.remaining().len()
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// What one read brought for a sink.
    pub(crate) fn take_block(&mut self, conn: ConnId, start: usize, end: usize) {
        let Some(c) = self.ingest.find(conn).and_then(|c| c.classic()) else { return };
        let payload_max = c.payload_max(&self.core).min(STREAM_PAYLOAD_MAX);
        let (Some(taking), (input, _)) = (&mut c.taking, self.driver.io()) else { return };
        let block = &input[start..end];
        if taking.waits() {
            // It was received before the driver heard that nothing more is wanted.
            return taking.held.extend_from_slice(block);
        }
        let with = (&mut self.core, &mut self.access);
        let (used, how) = taking.take(with, conn, block, payload_max);
        c.seen = c.seen.max(self.core.poured);
        if matches!(how, End::Wait(_)) {
            taking.held.extend_from_slice(&block[used..]);
        }
        let (had_due, now) = (c.policy.due().is_some(), self.core.turn.now());
        let (input, out) = self.driver.io();
        let from = out.bytes.len();
        if used > 0 {
            let block = &input[start..start + used];
            let report = c.policy.receive(block, now, payload_max, &mut out.bytes);
            self.after_receive(conn, from, report, had_due);
        }
        self.after_take(conn, how);
        if how == End::All {
            self.stop_if_full(conn);
        }
    }

    /// Tries again what was held.
    pub(crate) fn retry_ingest(&mut self, conn: ConnId) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn).filter(|c| !c.blocked && !c.closing) else { return };
        c.active = now;
        let Kind::Classic(c) = &mut c.kind else { return self.retry_producer(conn) };
        let payload_max = c.payload_max(&self.core).min(STREAM_PAYLOAD_MAX);
        let Some(taking) = c.taking.as_mut().filter(|taking| taking.waits()) else { return };
        taking.waits = Waits::No;
        let mut held = std::mem::take(&mut taking.held);
        let with = (&mut self.core, &mut self.access);
        let (used, how) = taking.take(with, conn, &held, payload_max);
        c.seen = c.seen.max(self.core.poured);
        let had_due = c.policy.due().is_some();
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let mut report = Report::default();
        if used > 0 {
            report = c.policy.receive(&held[..used], now, payload_max, &mut out.bytes);
        }
        held.drain(..used);
        if matches!(how, End::Wait(_)) || held.capacity() <= KEPT_MAX {
            taking.held = held;
        }
        if how == End::All {
            self.set_held(conn, false);
            self.driver.resume(conn); // acknowledgements that do not leave stop it again
        }
        self.after_receive(conn, from, report, had_due);
        self.after_take(conn, how);
        if let Some(c) = self.ingest.find(conn) {
            c.count_memory();
        }
    }

    /// Nothing more comes of a large message while data fills the server: it would find no room.
    /// Messages that are not whole, of which some may never be, are no reason to wait, because then
    /// none would become whole. They may take half of what is allowed; beyond it a connection whose
    /// message goes on growing is closed.
    fn stop_if_full(&mut self, conn: ConnId) {
        let Some(c) = self.ingest.find(conn) else { return };
        c.count_memory();
        let taking = c.classic().and_then(|c| c.taking.as_ref());
        if taking.is_none_or(|taking| taking.pieces.partial_bytes() <= SMALL_BYTES) {
            return;
        }
        if self.core.is_full() {
            self.after_take(conn, End::Wait(Waits::Memory));
        } else if self.core.is_half_held_by_ingest() {
            self.ingest_error(conn, "memory is full of messages that are not whole");
            self.close_ingest(conn);
        }
    }

    /// Stops a connection whose sink did not take all of a block.
    fn after_take(&mut self, conn: ConnId, how: End) {
        let now = self.core.turn.now();
        match how {
            End::All => {}
            End::Wait(waits) => {
                let classic = self.ingest.find(conn).and_then(|c| c.classic());
                if let Some(taking) = classic.and_then(|c| c.taking.as_mut()) {
                    taking.waits = waits;
                }
                if waits == Waits::Memory {
                    self.ingest.looks.add(conn, now);
                }
                self.set_held(conn, true);
            }
            End::Never(why) => {
                self.ingest_error(conn, why);
                self.close_ingest(conn);
            }
        }
    }

    /// Looks whether there is memory again for those who wait for it.
    pub(crate) fn look_for_memory(&mut self) {
        let now = self.core.turn.now();
        if self.ingest.looks.at.is_none_or(|at| at > now) {
            return;
        }
        if self.core.is_full() || self.core.are_writes_paused() {
            self.ingest.looks.at = Some(now.plus(LOOK_NS));
            return;
        }
        for conn in self.ingest.looks.take() {
            self.retry_ingest(conn);
        }
    }
}
