//! The state of a connection of protocol 2, and the way of its messages into their sink.

use crate::ingest::marks::{Mark, Marks};
use crate::ingest::ports::IngestCounters;
use crate::ingest::pour::{Keeper, Poured};
use crate::ingest::producers::{Owner, Producer};
use crate::worker::core::Core;
use base::sync::Arc;
use base::{MonoNs, SeqNo};
use driver::ConnId;
use ingest::v2::{Acks, Event, Fault, Intake, Limits, write_credit};
use ingest::{Layout, Messages, Sink};
use journal::producer::SinkKind;
use keyspace::Access;

/// The state of a connection of protocol 2.
pub struct Producing {
    pub(crate) intake: Intake,
    pub(crate) limits: Limits,
    /// Bytes that may be under way.
    pub(crate) window: u64,
    /// Bytes of Data that were granted so far.
    pub(crate) granted: u64,
    /// When it was accepted.
    pub(crate) accepted_at: MonoNs,
    /// What Hello has opened; `None` before it.
    pub(crate) open: Option<Open>,
    /// Bytes received behind the unwritten messages, which the driver keeps.
    pub(crate) kept: usize,
    /// Its acknowledgements mean *fsynced*. What shows a number leaves when that is.
    pub(crate) is_fsynced: bool,
}

/// A connection after its Hello.
pub(crate) struct Open {
    pub(crate) producer: Arc<Producer>,
    /// Which of the producer's connections it is.
    pub(crate) epoch: u64,
    pub(crate) sink: Sink,
    /// What files call the sink, and the producer; `None` if nothing is kept.
    pub(crate) kept: Option<(SinkKind, Box<str>)>,
    pub(crate) acks: Acks,
    /// The sequence number which acknowledgements wait for. Messages which an earlier connection
    /// has sent are included.
    pub(crate) seen: SeqNo,
    /// With the level *fsynced*: messages which are written and not fsynced.
    pub(crate) waits: Option<Box<Marks>>,
    /// Messages which the sink has not accepted yet.
    pub(crate) unwritten: Option<Unwritten>,
}

/// Messages that wait for their sink.
pub(crate) struct Unwritten {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) bytes: Vec<u8>,
    /// The bytes before this are written.
    pub(crate) from: usize,
}

/// Why a connection is parked, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The sink accepts no more; `Message::Retry` says when it does again.
    Parked,
    /// The sink accepts no more for want of memory, which is polled.
    Full,
    /// The client has said Bye.
    Bye,
    /// It ends with this error.
    Fault(Fault, &'static str),
    /// It ends after a panic, for which the protocol has no error.
    Broken,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault, fault.text())
    }
}

/// What the handling of a read needs beside the connection's state.
pub(crate) struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) access: &'a mut Access,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) conn: ConnId,
    pub(crate) port: usize,
    /// The connection from which a producer was taken over: it is to be closed.
    pub(crate) previous_owner: Option<Owner>,
}

impl Context<'_> {
    pub(crate) fn counters(&self) -> &IngestCounters {
        self.core.ingest_counters(self.port)
    }
}

impl Producing {
    /// The state of a new connection, on a listener with these bounds.
    pub(crate) fn new(window: u32, max_message: u32, now: MonoNs) -> Self {
        let limits = limits(window, max_message);
        let window = u64::from(window);
        let intake = Intake::new(limits);
        Self {
            intake,
            limits,
            window,
            granted: 0,
            accepted_at: now,
            open: None,
            kept: 0,
            is_fsynced: false,
        }
    }

    /// Handles the bytes of one read. Returns how many were used, and why it stopped before the
    /// end, if it did.
    pub(crate) fn receive(
        &mut self,
        ctx: &mut Context<'_>,
        input: &[u8],
    ) -> (usize, Result<(), Stop>) {
        let mut used = 0;
        loop {
            let mut part = &input[used..];
            let event = self.intake.next(&mut part);
            used = input.len() - part.len();
            let done = match event {
                None => return (used, Ok(())),
                Some(Event::Messages { first, count, bytes }) => match &mut self.open {
                    Some(open) => open.write(ctx, first, count, bytes),
                    None => Err(Fault::NoHello.into()),
                },
                Some(Event::Hello(hello)) => {
                    let terms = (self.limits, self.window);
                    match Open::accept(ctx, &hello, terms) {
                        Ok(open) => {
                            self.is_fsynced = open.waits.is_some();
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
                        let fsynced = ctx.core.fsynced_up_to();
                        let durable = open.producer.state().durable(fsynced);
                        open.acks.note(0, durable);
                        let acks = open.acks.flush(ctx.out, true);
                        ctx.counters().acks.add(acks);
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

    /// Ends a read: writes the acknowledgements which are due, and new credit when half of it is
    /// used. If the read stopped early, no other follows for now, so that everything written is
    /// acknowledged.
    pub(crate) fn finish_read(&mut self, ctx: &mut Context<'_>, done: Result<(), Stop>) {
        let Some(open) = &mut self.open else { return };
        let acks = match done {
            Ok(()) => open.acks.read_done(ctx.core.turn.now(), ctx.out),
            Err(_) => open.acks.flush(ctx.out, false),
        };
        ctx.counters().acks.add(acks);
        let left = self.granted - self.intake.received();
        if done.is_ok() && left <= self.window / 2 {
            self.granted = self.intake.received() + self.window;
            self.intake.grant(self.granted);
            write_credit(ctx.out, self.granted);
            ctx.counters().credits.add(1);
        }
    }

    /// Acknowledges every written message. What waits for the disk is included, and so the
    /// acknowledgement has to wait for it ([`Producing::acks_wait_for`]).
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>, now: MonoNs) -> u64 {
        let Some(open) = &mut self.open else { return 0 };
        let waiting = open.waits.as_mut().and_then(|waits| waits.take_all());
        let mut acks = 0;
        if let Some(mark) = waiting {
            open.seen = open.seen.max(mark.seq);
            acks = open.cover(mark, out, now);
        }
        acks + open.acks.flush(out, false)
    }

    /// The number of the journal which its oldest message waits for.
    pub(crate) fn awaits(&self) -> Option<SeqNo> {
        self.open.as_ref()?.waits.as_ref()?.awaits()
    }

    /// Everything up to this number of the journal is fsynced: acknowledges what has waited for it.
    /// `is_seen` tells whether readers see what is not fsynced.
    pub(crate) fn release(
        &mut self,
        fsynced: u64,
        is_seen: bool,
        out: &mut Vec<u8>,
        now: MonoNs,
    ) -> u64 {
        let Some(open) = &mut self.open else { return 0 };
        let mut acks = 0;
        let mut covered = false;
        while let Some(mark) = open.waits.as_mut().and_then(|waits| waits.pop(fsynced)) {
            acks += open.cover(mark, out, now);
            covered = true;
        }
        if !covered {
            return acks;
        }
        if is_seen {
            let last = open.producer.state().held.last_id();
            open.acks.note(last, 0);
        }
        acks + open.acks.flush(out, false)
    }

    /// Acknowledges every written message if the time has come.
    pub(crate) fn tick(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        self.open.as_mut().map_or(0, |open| open.acks.tick(now, out))
    }

    /// When [`Producing::tick`] has something to write.
    pub(crate) fn due(&self) -> Option<MonoNs> {
        self.open.as_ref().and_then(|open| open.acks.due())
    }

    /// The sequence number which its acknowledgements wait for.
    pub(crate) fn acks_wait_for(&self) -> SeqNo {
        self.open.as_ref().map_or(SeqNo(0), |open| open.seen)
    }

    /// True if no frame is under way and no message waits.
    pub(crate) fn is_between(&self) -> bool {
        self.intake.is_between() && !self.has_unwritten()
    }

    /// Bytes of memory that are held for messages.
    pub(crate) fn memory(&self) -> usize {
        let unwritten = self.open.as_ref().and_then(|open| open.unwritten.as_ref());
        self.intake.buffered()
            + self.kept
            + unwritten.map_or(0, |unwritten| unwritten.bytes.capacity())
    }

    /// True if messages wait for their sink.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.unwritten.is_some())
    }
}

impl Open {
    /// Writes messages into the sink; keeps those which it does not accept.
    fn write(
        &mut self,
        ctx: &mut Context<'_>,
        first: u64,
        count: u64,
        bytes: &[u8],
    ) -> Result<(), Stop> {
        let (covered, done) = self.write_new(ctx, first, count, bytes);
        if matches!(done, Err(Stop::Parked | Stop::Full)) {
            let bytes = skip(bytes, first, covered).to_vec();
            let (first, count) = (first.wrapping_add(covered), count - covered);
            self.unwritten = Some(Unwritten { first, count, bytes, from: 0 });
        }
        done
    }

    /// Retries the unwritten messages.
    pub(crate) fn retry(&mut self, ctx: &mut Context<'_>) -> Result<(), Stop> {
        let Some(mut unwritten) = self.unwritten.take() else { return Ok(()) };
        let bytes = &unwritten.bytes[unwritten.from..];
        let (covered, done) = self.write_new(ctx, unwritten.first, unwritten.count, bytes);
        if matches!(done, Err(Stop::Parked | Stop::Full)) {
            unwritten.from = unwritten.bytes.len() - skip(bytes, unwritten.first, covered).len();
            unwritten.first = unwritten.first.wrapping_add(covered);
            unwritten.count -= covered;
            self.unwritten = Some(unwritten);
        }
        done
    }

    /// Drops duplicates, writes the new messages and raises the producer's highest number, all
    /// under the producer's lock. Returns how many messages are held now, and why it stopped before
    /// the last of them, if it did.
    fn write_new(
        &mut self,
        ctx: &mut Context<'_>,
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
            let messages =
                Messages::new(skip(bytes, first, duplicates), Layout::Numbered(first + duplicates));
            let in_key = self.producer.in_key();
            let kept = self.kept.as_ref();
            let keeper = kept.map(|(kind, quoted)| Keeper { kind: *kind, quoted, in_key });
            let block = (fresh as usize, keeper);
            ctx.core.pour(ctx.access, ctx.conn, &self.sink, messages, block)
        };
        let (taken, done) = stop_of(poured, fresh);
        let covered = duplicates + taken;
        if taken > 0 {
            state.hold(first + (covered - 1), ctx.core.poured);
        }
        let (last, seen) = (state.held.last_id(), state.seen);
        let durable = state.durable(ctx.core.fsynced_up_to());
        drop(state);
        if let Some(waits) = &mut self.waits {
            if covered > 0 {
                waits.push(Mark { seq: seen, id: last, count: covered });
            }
        } else {
            self.seen = seen;
            self.acks.add_taken(last, covered, ctx.core.turn.now());
            self.acks.note(0, durable);
        }
        let counters = ctx.counters();
        counters.messages.add(taken);
        counters.duplicates.add(duplicates);
        (covered, done)
    }

    /// Messages are held at the level that was asked for.
    fn cover(&mut self, mark: Mark, out: &mut Vec<u8>, now: MonoNs) -> u64 {
        let is_full = self.acks.waiting() + mark.count > ingest::COVERED_MAX;
        let acks = if is_full { self.acks.flush(out, false) } else { 0 };
        self.acks.add_taken(mark.id, mark.count, now);
        self.acks.note(0, mark.id);
        acks
    }

    /// The highest number that is held. Acknowledgements from now on wait until it is safe.
    pub(crate) fn last_id(&mut self) -> u64 {
        let state = self.producer.state();
        self.seen = state.seen;
        state.held.last_id()
    }
}

/// How many messages were written, and why the others were not.
fn stop_of(poured: Poured, count: u64) -> (u64, Result<(), Stop>) {
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

/// The bytes behind the first `count` messages.
fn skip(bytes: &[u8], first: u64, count: u64) -> &[u8] {
    let mut messages = Messages::new(bytes, Layout::Numbered(first));
    for _ in 0..count {
        messages.next();
    }
    messages.remaining()
}

/// The bounds of a connection: a frame never takes more than half of the window, because a new
/// credit comes when half of it is used. So a producer which waits for credit for a whole frame
/// gets it.
fn limits(window: u32, max_message: u32) -> Limits {
    let max_frame = window / 2 - ingest::v2::HEADER_BYTES as u32;
    let payload_max =
        max_frame - (ingest::v2::DATA_HEADER_BYTES - ingest::v2::HEADER_BYTES) as u32 - 4;
    Limits { max_message: max_message.min(payload_max), max_frame }
}
