//! The ingest listeners and their counters. Each worker writes cache lines of its own; INFO adds
//! them up.

use crate::ingest::producers::Producers;
pub use config::ingest::{Protocol, Terms};

use base::sync::CachePadded;
use base::sync::atomic::{AtomicU32, Ordering::Relaxed};
use driver::ListenerId;
use ingest::v2::Fault;
use observe::Counter;

/// All ingest listeners.
pub struct IngestPorts {
    /// The listeners; none unless they are asked for.
    pub open: Vec<IngestPort>,
    /// The producers of protocol 2, whatever their listener.
    pub producers: Producers,
    /// Open connections of each worker.
    connections: Vec<CachePadded<AtomicU32>>,
}

/// One listener.
pub struct IngestPort {
    /// Its number at the acceptor's driver.
    pub listener: ListenerId,
    /// Where it listens.
    pub addr: String,
    /// Its line of `ingest-listen`.
    pub terms: Terms,
    /// Open connections, counted from their acceptance.
    connections: AtomicU32,
    /// One set of counters per worker.
    pub workers: Vec<CachePadded<IngestCounters>>,
}

/// What one worker did for one listener: written by it alone.
#[derive(Debug, Default)]
pub struct IngestCounters {
    /// Open connections.
    pub connections: Counter,
    /// Connections so far.
    pub total_connections: Counter,
    /// Whole messages.
    pub messages: Counter,
    /// Bytes received.
    pub bytes: Counter,
    /// Acknowledgements written.
    pub acks: Counter,
    /// Reads that brought bytes.
    pub reads: Counter,
    /// Connections ended for an oversized message, an unfinished one or unread acknowledgements, or
    /// refused.
    pub errors: Counter,
    /// Messages which a producer sent again and which were held already.
    pub duplicates: Counter,
    /// Producers that a newer connection took over.
    pub takeovers: Counter,
    /// Credits given after the first.
    pub credits: Counter,
    /// Connections that are not read because their sink takes no more for now.
    pub blocked: Counter,
    /// Error frames.
    pub faults: Faults,
}

/// Error frames by their codes.
#[derive(Debug, Default)]
pub struct Faults([Counter; Fault::ALL.len()]);

impl Faults {
    /// One more.
    pub fn add(&self, fault: Fault) {
        self.of(fault).add(1);
    }

    /// Those of a code.
    pub fn of(&self, fault: Fault) -> &Counter {
        &self.0[usize::from(fault.code()) - 1]
    }
}

impl IngestPorts {
    /// No listener, for a server of so many workers.
    pub fn new(workers: usize) -> Self {
        let connections = (0..workers).map(|_| CachePadded(AtomicU32::default())).collect();
        Self { open: Vec::new(), producers: Producers::default(), connections }
    }

    /// The place of the listener with this number.
    pub fn find(&self, listener: ListenerId) -> Option<usize> {
        self.open.iter().position(|port| port.listener == listener)
    }

    /// Open connections of one worker.
    pub fn of_worker(&self, worker: usize) -> u32 {
        self.connections[worker].load(Relaxed)
    }

    /// Open connections of all workers.
    pub fn connections(&self) -> u64 {
        self.connections.iter().map(|c| u64::from(c.load(Relaxed))).sum()
    }

    /// A connection goes to this worker.
    pub fn add_connection(&self, worker: usize) {
        self.connections[worker].fetch_add(1, Relaxed);
    }

    /// A connection of this worker is gone.
    pub fn remove_connection(&self, worker: usize) {
        self.connections[worker].fetch_sub(1, Relaxed);
    }

    /// CONFIG RESETSTAT: one worker forgets what it counted; open connections stay open.
    pub fn reset(&self, worker: usize) {
        for port in &self.open {
            let c = &port.workers[worker];
            let counts = [
                &c.total_connections,
                &c.messages,
                &c.bytes,
                &c.acks,
                &c.reads,
                &c.errors,
                &c.duplicates,
                &c.takeovers,
                &c.credits,
            ];
            counts.into_iter().chain(&c.faults.0).for_each(|counter| counter.set(0));
        }
    }
}

impl IngestPort {
    /// A listener that has counted nothing.
    pub fn new(listener: ListenerId, addr: String, terms: Terms, workers: usize) -> Self {
        let workers = (0..workers).map(|_| CachePadded(IngestCounters::default())).collect();
        Self { listener, addr, terms, connections: AtomicU32::default(), workers }
    }

    /// True if its connections speak the classic protocol.
    pub fn is_classic(&self) -> bool {
        matches!(self.terms.protocol, Protocol::Classic(_))
    }

    /// True if it accepts no further connection.
    pub fn is_full(&self) -> bool {
        self.terms.connections_max.is_some_and(|max| self.connections.load(Relaxed) >= max)
    }

    /// A connection was accepted.
    pub fn add_connection(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A connection is gone.
    pub fn remove_connection(&self) {
        self.connections.fetch_sub(1, Relaxed);
    }
}
