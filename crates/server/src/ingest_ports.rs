//! The ingest listeners and what they count. Each worker writes lines of its own, INFO adds them up.

use base::sync::CachePadded;
use base::sync::atomic::{AtomicU32, Ordering::Relaxed};
use driver::ListenerId;
use ingest::{Sink, Strategy};
use observe::Counter;

/// All of them.
pub struct IngestPorts {
    /// The listeners; none unless they are asked for.
    pub open: Vec<IngestPort>,
    /// Open connections of each worker.
    connections: Vec<CachePadded<AtomicU32>>,
}

/// One listener.
pub struct IngestPort {
    /// Its number at the acceptor's driver.
    pub listener: ListenerId,
    /// Where it listens.
    pub addr: String,
    /// How its messages are acknowledged.
    pub strategy: Strategy,
    /// Where they go.
    pub sink: Sink,
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
    /// Connections ended for an oversized message, an unfinished one or unread acknowledgements, or refused.
    pub errors: Counter,
}

impl IngestPorts {
    /// No listener, for a server of so many workers.
    pub fn new(workers: usize) -> Self {
        let connections = (0..workers).map(|_| CachePadded(AtomicU32::default())).collect();
        Self { open: Vec::new(), connections }
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
    pub fn came(&self, worker: usize) {
        self.connections[worker].fetch_add(1, Relaxed);
    }

    /// A connection of this worker is gone.
    pub fn left(&self, worker: usize) {
        self.connections[worker].fetch_sub(1, Relaxed);
    }

    /// CONFIG RESETSTAT: one worker forgets what it counted; open connections stay open.
    pub fn reset(&self, worker: usize) {
        for port in &self.open {
            let c = &port.workers[worker];
            for counter in
                [&c.total_connections, &c.messages, &c.bytes, &c.acks, &c.reads, &c.errors]
            {
                counter.set(0);
            }
        }
    }
}

impl IngestPort {
    /// A listener that has counted nothing.
    pub fn new(
        listener: ListenerId,
        addr: String,
        strategy: Strategy,
        sink: Sink,
        workers: usize,
    ) -> Self {
        let workers = (0..workers).map(|_| CachePadded(IngestCounters::default())).collect();
        Self { listener, addr, strategy, sink, workers }
    }
}
