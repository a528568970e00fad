//! Ingest protocol 2 on a worker. A read's messages go into their sink where they lie, under their
//! producer's lock; the acknowledgements, the credit and the error that a read makes due leave
//! together in one send.
//!
//! What a sink does not take now is kept, at most one read and one message of it, and the
//! connection is not read until it is in: the producer runs out of credit, and then TCP stops it.

pub(crate) mod ends;
mod greeting;
mod hold;

use crate::ingest::ports::IngestCounters;
use crate::ingest::pour::Poured;
use crate::ingest::producers::{Owner, Producer};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::Arc;
use base::{MonoNs, SeqNo};
use driver::{ConnId, Driver};
use ingest::v2::{Acks, Event, Fault, Intake, Limits, write_credit};
use ingest::{Layout, Messages, Sink};
use keyspace::Access;

/// One connection of protocol 2.
pub struct Producing {
    intake: Intake,
    limits: Limits,
    /// Bytes that may be under way.
    window: u64,
    /// Bytes of Data that were granted so far.
    granted: u64,
    /// When it was accepted.
    born: MonoNs,
    /// What Hello has settled.
    open: Option<Open>,
    /// Bytes that were received behind those, and that the driver keeps.
    kept: usize,
}

/// A connection after its Hello.
struct Open {
    producer: Arc<Producer>,
    /// Which of the producer's connections it is.
    epoch: u64,
    sink: Sink,
    acks: Acks,
    /// What acknowledgements wait for, those of messages that an earlier connection has sent among
    /// them.
    seen: SeqNo,
    /// What the sink has not taken yet.
    rest: Option<Rest>,
}

/// Messages that wait for their sink.
struct Rest {
    first: u64,
    count: u64,
    bytes: Vec<u8>,
    /// The bytes before this are in.
    from: usize,
}

/// Why a connection goes no further for now, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The sink takes no more; [`Message::Retry`] tells when it does.
    Parked,
    /// The sink takes no more; nobody tells when it does.
    Full,
    /// It has said Bye.
    Bye,
    /// It ends with this error.
    Fault(Fault, &'static str),
    /// It ends, and no error of the protocol says why.
    Broken,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault, fault.text())
    }
}

/// What a connection works with.
struct Room<'a> {
    core: &'a mut Core,
    access: &'a mut Access,
    out: &'a mut Vec<u8>,
    conn: ConnId,
    port: usize,
    /// Whose producer was taken over.
    ousted: Option<Owner>,
}

impl Room<'_> {
    fn counters(&self) -> &IngestCounters {
        self.core.ingest_counters(self.port)
    }
}

impl Producing {
    /// A connection that begins now, on a listener with these bounds.
    pub(crate) fn new(window: u32, max_message: u32, now: MonoNs) -> Self {
        let limits = limits(window, max_message);
        let window = u64::from(window);
        let intake = Intake::new(limits);
        Self { intake, limits, window, granted: 0, born: now, open: None, kept: 0 }
    }

    /// Takes what one read brought. The bytes that were used, and why it stopped before their end,
    /// if it did.
    fn receive(&mut self, room: &mut Room<'_>, input: &[u8]) -> (usize, Result<(), Stop>) {
        let mut used = 0;
        loop {
            let mut part = &input[used..];
            let event = self.intake.next(&mut part);
            used = input.len() - part.len();
            let done = match event {
                None => return (used, Ok(())),
                Some(Event::Messages { first, count, bytes }) => match &mut self.open {
                    Some(open) => open.take(room, first, count, bytes),
                    None => Err(Fault::NoHello.into()),
                },
                Some(Event::Hello(hello)) => {
                    let terms = (self.limits, self.window);
                    match Open::greet(room, &hello, terms) {
                        Ok(open) => {
                            self.open = Some(open);
                            self.granted = self.window;
                            self.intake.grant(self.granted);
                            Ok(())
                        }
                        Err(stop) => Err(stop),
                    }
                }
                Some(Event::Flush) => {
                    if let Some(open) = &mut self.open {
                        let acks = open.acks.flush(room.out, true);
                        room.counters().acks.add(acks);
                    }
                    Ok(())
                }
                Some(Event::Bye) => Err(Stop::Bye),
                Some(Event::Fault(fault)) => Err(fault.into()),
            };
            if done.is_err() {
                return (used, done);
            }
        }
    }

    /// The end of a read: acknowledgements that are due, and credit when half of it is used. One
    /// that stopped before its end is followed by nothing for now, so everything that is in is
    /// acknowledged.
    fn finish_read(&mut self, room: &mut Room<'_>, done: Result<(), Stop>) {
        let Some(open) = &mut self.open else { return };
        let acks = match done {
            Ok(()) => open.acks.read_done(room.core.turn.now(), room.out),
            Err(_) => open.acks.flush(room.out, false),
        };
        room.counters().acks.add(acks);
        let left = self.granted - self.intake.received();
        if done.is_ok() && left <= self.window / 2 {
            self.granted = self.intake.received() + self.window;
            self.intake.grant(self.granted);
            write_credit(room.out, self.granted);
            room.counters().credits.add(1);
        }
    }

    /// Acknowledges what is in.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) -> u64 {
        self.open.as_mut().map_or(0, |open| open.acks.flush(out, false))
    }

    /// Acknowledges what is in if its time has come.
    pub(crate) fn tick(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        self.open.as_mut().map_or(0, |open| open.acks.tick(now, out))
    }

    /// When [`Producing::tick`] has something to write.
    pub(crate) fn due(&self) -> Option<MonoNs> {
        self.open.as_ref().and_then(|open| open.acks.due())
    }

    /// What its acknowledgements wait for.
    pub(crate) fn seen(&self) -> SeqNo {
        self.open.as_ref().map_or(SeqNo(0), |open| open.seen)
    }

    /// True if no frame is under way and no message waits.
    pub(crate) fn is_between(&self) -> bool {
        self.intake.is_between() && !self.holds_rest()
    }

    /// Bytes of memory that are held for messages.
    pub(crate) fn memory(&self) -> usize {
        let rest = self.open.as_ref().and_then(|open| open.rest.as_ref());
        self.intake.buffered() + self.kept + rest.map_or(0, |rest| rest.bytes.capacity())
    }

    /// True if messages wait for their sink.
    fn holds_rest(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.rest.is_some())
    }
}

impl Open {
    /// Puts messages into the sink; keeps what it does not take.
    fn take(
        &mut self,
        room: &mut Room<'_>,
        first: u64,
        count: u64,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        let (covered, done) = self.apply(room, first, count, bytes);
        if matches!(done, Err(Stop::Parked | Stop::Full)) {
            let bytes = behind(bytes, first, covered).to_vec();
            let (first, count) = (first.wrapping_add(covered), count - covered);
            self.rest = Some(Rest { first, count, bytes, from: 0 });
        }
        done
    }

    /// Tries the messages that wait again.
    fn retry(&mut self, room: &mut Room<'_>) -> Result<(), Stop> {
        let Some(mut rest) = self.rest.take() else { return Ok(()) };
        let bytes = &rest.bytes[rest.from..];
        let (covered, done) = self.apply(room, rest.first, rest.count, bytes);
        if matches!(done, Err(Stop::Parked | Stop::Full)) {
            rest.from = rest.bytes.len() - behind(bytes, rest.first, covered).len();
            rest.first = rest.first.wrapping_add(covered);
            rest.count -= covered;
            self.rest = Some(rest);
        }
        done
    }

    /// Drops what is held already, pours the rest, and notes how far it came, all under the
    /// producer's lock. The messages that are held now, and why it stopped before the last of them,
    /// if it did.
    fn apply(
        &mut self,
        room: &mut Room<'_>,
        first: u64,
        count: u64,
        bytes: &[u8],
    ) -> (u64, Result<(), Stop>) {
        let mut state = self.producer.state();
        if !state.is_owned(self.epoch) {
            return (0, Err(Fault::TakenOver.into()));
        }
        let duplicates = match state.held.admit(first, count) {
            Ok(admit) => admit.duplicates,
            Err(fault) => return (0, Err(fault.into())),
        };
        let fresh = count - duplicates;
        let poured = if fresh == 0 {
            Poured::All
        } else {
            let messages = Messages::new(
                behind(bytes, first, duplicates),
                Layout::Numbered(first + duplicates),
            );
            room.core.pour(room.access, room.conn, &self.sink, messages, fresh as usize)
        };
        let (taken, done) = outcome(poured, fresh);
        let covered = duplicates + taken;
        if taken > 0 {
            state.held.hold(first + (covered - 1));
            state.seen = state.seen.max(room.core.poured);
        }
        let last = state.held.last_id();
        self.seen = state.seen;
        drop(state);
        self.acks.add_taken(last, covered, room.core.turn.now());
        let counters = room.counters();
        counters.messages.add(taken);
        counters.duplicates.add(duplicates);
        (covered, done)
    }

    /// The highest number that is held; what is acknowledged from now on waits for it.
    fn last_id(&mut self) -> u64 {
        let state = self.producer.state();
        self.seen = state.seen;
        state.held.last_id()
    }
}

/// How many messages are in, and what to do about the others.
fn outcome(poured: Poured, count: u64) -> (u64, Result<(), Stop>) {
    let (taken, stop) = match poured {
        Poured::All => return (count, Ok(())),
        Poured::Later { taken } => (taken, Stop::Parked),
        Poured::Full { taken } => (taken, Stop::Full),
        Poured::WrongType { taken } => (taken, Fault::WrongType.into()),
        Poured::NoMoreIds { taken } => (taken, Fault::Full.into()),
        Poured::NoDb => (0, Fault::Database.into()),
        Poured::Broken { taken } => (taken, Stop::Broken),
    };
    (taken as u64, Err(stop))
}

/// The bytes of messages behind the first `count`.
fn behind(bytes: &[u8], first: u64, count: u64) -> &[u8] {
    let mut messages = Messages::new(bytes, Layout::Numbered(first));
    for _ in 0..count {
        messages.next();
    }
    messages.remaining()
}

/// The bounds of a connection: a frame never takes more than half of the window, because a new
/// credit comes when half of it is used. So who waits for credit for a whole frame gets it.
fn limits(window: u32, max_message: u32) -> Limits {
    let max_frame = window / 2 - ingest::v2::HEADER_BYTES as u32;
    let room = max_frame - (ingest::v2::DATA_HEADER_BYTES - ingest::v2::HEADER_BYTES) as u32 - 4;
    Limits { max_message: max_message.min(room), max_frame }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// What one read of a connection of protocol 2 brought.
    pub(crate) fn on_producer_data(&mut self, conn: ConnId, start: usize, end: usize) {
        let (input, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn) else { return };
        let (port, had_due) = (c.port, c.due().is_some());
        let Some(p) = c.producing() else { return };
        let out = &mut out.bytes;
        let (core, access) = (&mut self.core, &mut self.access);
        let mut room = Room { core, access, out, conn, port, ousted: None };
        let (used, done) = p.receive(&mut room, &input[start..end]);
        let is_held = matches!(done, Err(Stop::Parked | Stop::Full));
        p.kept = if is_held { end - start - used } else { 0 };
        p.finish_read(&mut room, done);
        let ousted = room.ousted;
        room.counters().bytes.add(used as u64);
        self.arm_acks(conn, had_due);
        self.send_acks(conn, from);
        if let Some(owner) = ousted {
            self.oust(owner);
        }
        if let Err(stop) = done {
            if is_held {
                self.driver.put_back(conn, start + used, end);
            }
            self.stop_producer(conn, stop);
        }
    }
}
