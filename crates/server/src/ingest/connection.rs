//! The ingest connections of a worker, of either protocol.

use crate::ingest::memory_waiters::MemoryWaiters;
use crate::ingest::ports::{IngestCounters, IngestPort, Protocol};
use crate::ingest::sink_writer::SinkWriter;
use crate::ingest::syncing::Syncing;
use crate::ingest::v2::producing::Producing;
use crate::sessions::client_memory::Share;
use crate::sessions::outbox::Outbox;
use crate::sessions::output::Hold;
use crate::worker::core::Core;
use base::{MonoNs, SeqNo};
use driver::ConnId;
use ingest::{Deadlines, Policy};

/// The ingest connections of one worker.
#[derive(Default)]
pub struct Ingest {
    /// By the driver's connection index.
    pub(crate) places: Vec<Option<Box<IngestConn>>>,
    pub(crate) open: usize,
    /// Timed acknowledgements.
    pub(crate) acks: Deadlines,
    /// When to check connections for idleness.
    pub(crate) idle: Deadlines,
    /// When to close connections which were sent their end and have not closed.
    pub(crate) ends: Deadlines,
    /// The idle time with which `idle` was filled.
    pub(crate) idle_ns: Option<u64>,
    /// Connections whose sinks wait for memory.
    pub(crate) memory_waiters: MemoryWaiters,
    /// Connections with acknowledgements which may not leave yet.
    pub(crate) holding: Vec<ConnId>,
    /// Those whose messages, or acknowledgements, wait for the disk.
    pub(crate) syncing: Syncing,
}

/// An ingest connection.
pub(crate) struct IngestConn {
    pub conn: ConnId,
    pub port: usize,
    pub kind: Kind,
    /// When bytes were last received, or acknowledgements read by the client.
    pub active: MonoNs,
    /// Acknowledgements that may not leave yet; never an empty queue.
    pub outbox: Option<Box<Outbox>>,
    /// Not received, because acknowledgements are unread or too many are held.
    pub blocked: bool,
    /// Not received, because its sink does not accept the last messages.
    pub held: bool,
    /// Counts against the limit of its listener.
    pub admitted: bool,
    /// Is closed once its acknowledgements have left.
    pub closing: bool,
    /// When it is closed in any case, once it was sent its end.
    pub until: MonoNs,
    /// Bytes of acknowledgements which the client has not read.
    pub unsent: usize,
    /// Its share of client memory.
    memory: Share,
}

/// The protocol of a connection, with its state.
pub(crate) enum Kind {
    Classic(Classic),
    Two(Box<Producing>),
}

/// A classic connection.
pub(crate) struct Classic {
    pub policy: Policy,
    /// Writes into a sink that keeps messages.
    pub writer: Option<Box<SinkWriter>>,
    /// The sequence number which acknowledgements wait for.
    pub seen: SeqNo,
    /// The port's own bound of a payload.
    message_max: Option<u32>,
}

impl Classic {
    /// Bytes of a payload at most.
    #[inline]
    pub fn payload_max(&self, core: &Core) -> u32 {
        self.message_max.unwrap_or(core.settings.ingest_payload_max)
    }
}

impl Kind {
    /// The state of a new connection.
    pub fn of(port: &IngestPort, core: &Core) -> Self {
        let message_max = port.terms.message_max;
        match port.terms.protocol {
            Protocol::Classic(strategy) => {
                let policy = Policy::new(strategy, core.turn.now());
                let sink = port.terms.sink.as_ref();
                let writer = sink.and_then(|sink| SinkWriter::to(sink, strategy.order()));
                Kind::Classic(Classic { policy, writer, seen: SeqNo(0), message_max })
            }
            Protocol::Two { window } => {
                let window = window.unwrap_or(core.settings.ingest_window);
                let message_max = message_max.unwrap_or(core.settings.ingest_payload_max);
                Kind::Two(Box::new(Producing::new(window, message_max, core.turn.now())))
            }
        }
    }
}

impl IngestConn {
    /// A new connection.
    pub fn new(conn: ConnId, port: usize, kind: Kind, memory: Share, now: MonoNs) -> Self {
        Self {
            conn,
            port,
            kind,
            active: now,
            outbox: None,
            blocked: false,
            held: false,
            admitted: true,
            closing: false,
            until: now,
            unsent: 0,
            memory,
        }
    }

    /// Updates its share of client memory: unfinished and unwritten messages, and acknowledgements.
    #[inline]
    pub fn count_memory(&mut self) {
        let held = match &self.kind {
            Kind::Classic(c) => c.writer.as_ref().map_or(0, |writer| writer.memory()),
            Kind::Two(p) => p.memory(),
        };
        let acks = self.outbox.as_ref().map_or(0, |outbox| outbox.memory());
        let bytes = (held + acks + self.unsent) as u64;
        if bytes != self.memory.bytes() {
            self.memory.set(bytes);
        }
    }

    /// Its state in protocol 2.
    #[inline]
    pub fn producing(&mut self) -> Option<&mut Producing> {
        match &mut self.kind {
            Kind::Two(p) => Some(p),
            Kind::Classic(_) => None,
        }
    }

    /// Its state in the classic protocol.
    #[inline]
    pub fn classic(&mut self) -> Option<&mut Classic> {
        match &mut self.kind {
            Kind::Classic(c) => Some(c),
            Kind::Two(_) => None,
        }
    }

    /// The hold of its acknowledgements.
    #[inline]
    pub fn hold(&self) -> Hold {
        let seq = match &self.kind {
            Kind::Classic(c) => c.seen,
            Kind::Two(p) => p.acks_wait_for(),
        };
        Hold { seq, ..Hold::NONE }
    }

    /// True if so many acknowledgements are held that nothing more is received.
    pub fn is_over_bound(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| outbox.is_over_bound())
    }

    /// True if what it is sent must be fsynced.
    #[inline]
    pub fn is_fsynced(&self) -> bool {
        matches!(&self.kind, Kind::Two(p) if p.is_fsynced)
    }

    /// True if it speaks protocol 2.
    pub fn is_two(&self) -> bool {
        matches!(self.kind, Kind::Two(_))
    }

    /// When an acknowledgement is due.
    #[inline]
    pub fn due(&self) -> Option<MonoNs> {
        match &self.kind {
            Kind::Classic(c) => c.policy.due(),
            Kind::Two(p) => p.due(),
        }
    }

    /// Writes the acknowledgement whose time has come.
    pub fn tick(&mut self, now: MonoNs, out: &mut Vec<u8>) -> u64 {
        match &mut self.kind {
            Kind::Classic(c) => c.policy.tick(now, out),
            Kind::Two(p) => p.tick(now, out),
        }
    }

    /// Acknowledges every whole message.
    pub fn flush(&mut self, out: &mut Vec<u8>, now: MonoNs) -> u64 {
        match &mut self.kind {
            Kind::Classic(c) => c.policy.flush(out),
            Kind::Two(p) => p.flush(out, now),
        }
    }

    /// True if no message or frame is unfinished, and none waits for its sink.
    pub fn is_between(&self) -> bool {
        match &self.kind {
            Kind::Classic(c) => {
                c.policy.is_between() && !c.writer.as_ref().is_some_and(|t| t.has_kept())
            }
            Kind::Two(p) => p.is_between(),
        }
    }

    /// When its silence began.
    pub fn silent_since(&self) -> MonoNs {
        match &self.kind {
            Kind::Classic(_) => self.active,
            Kind::Two(p) => p.silent_since(self.active),
        }
    }
}

impl Ingest {
    #[inline]
    pub(crate) fn find(&mut self, conn: ConnId) -> Option<&mut IngestConn> {
        let place = self.places.get_mut(conn.index as usize)?;
        place.as_deref_mut().filter(|c| c.conn == conn)
    }

    pub(crate) fn insert(&mut self, c: IngestConn) {
        let at = c.conn.index as usize;
        if self.places.len() <= at {
            self.places.resize_with(at + 1, || None);
        }
        self.places[at] = Some(Box::new(c));
        self.open += 1;
    }

    /// True if there is no connection.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// All connections.
    pub(crate) fn all(&self) -> Vec<ConnId> {
        self.places.iter().flatten().map(|c| c.conn).collect()
    }

    /// When [`Worker::sweep_ingest`](crate::worker::Worker) is due, or `until` if that is earlier.
    #[inline]
    pub fn next_wake(&self, until: Option<MonoNs>) -> Option<MonoNs> {
        if self.open == 0 {
            return until;
        }
        let own =
            [self.acks.next(), self.idle.next(), self.ends.next(), self.memory_waiters.next()];
        own.into_iter().chain([until]).flatten().min()
    }
}

impl Core {
    pub(crate) fn ingest_counters(&self, port: usize) -> &IngestCounters {
        &self.shared.ingest.open[port].workers[self.id]
    }
}
