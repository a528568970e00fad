//! What came in through the ingest listeners.

use crate::ingest::ports::{IngestCounters, IngestPort};
use crate::shared::Shared;
use base::sync::atomic::Ordering::Acquire;
use ingest::v2::Fault;
use observe::Counter;

/// One listener's figures, or all of them.
#[derive(Default)]
pub struct ListenerFigures {
    /// Open connections.
    pub connections: u64,
    /// Connections so far.
    pub total_connections: u64,
    /// Whole messages.
    pub messages: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Acknowledgements written.
    pub acks: u64,
    /// Reads that brought bytes.
    pub reads: u64,
    /// Connections that ended badly or were refused.
    pub errors: u64,
    /// Messages that were held already.
    pub duplicates: u64,
    /// Producers that a newer connection took over.
    pub takeovers: u64,
    /// Credits given after the first.
    pub credits: u64,
    /// Connections that are held back because their sink takes no more.
    pub blocked: u64,
    /// Error frames, in the order of [`Fault::ALL`].
    pub faults: [u64; Fault::ALL.len()],
}

/// All listeners' figures.
pub struct IngestFigures {
    /// Their sum.
    pub total: ListenerFigures,
    /// Each listener's, in the order in which they were opened.
    pub each: Vec<ListenerFigures>,
    /// Producers of protocol 2 that are remembered.
    pub producers: u64,
}

impl IngestFigures {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let each: Vec<ListenerFigures> =
            shared.ingest.open.iter().map(|p| figures(shared, p)).collect();
        let mut total = ListenerFigures::default();
        for f in &each {
            total.add(f);
        }
        let producers = shared.ingest.producers.len() as u64;
        IngestFigures { total, each, producers }
    }
}

/// The sum over the workers; counts of one that has not heard of the last CONFIG RESETSTAT are left
/// out.
fn figures(shared: &Shared, port: &IngestPort) -> ListenerFigures {
    let epoch = shared.stats_epoch.load(Acquire);
    let counts = |n: usize| shared.workers[n].epoch.load(Acquire) == epoch;
    let sum = |of: fn(&IngestCounters) -> &Counter| {
        let workers = port.workers.iter().enumerate().filter(|(n, _)| counts(*n));
        workers.map(|(_, w)| of(w).get()).sum()
    };
    ListenerFigures {
        connections: port.workers.iter().map(|w| w.connections.get()).sum(),
        total_connections: sum(|c| &c.total_connections),
        messages: sum(|c| &c.messages),
        bytes: sum(|c| &c.bytes),
        acks: sum(|c| &c.acks),
        reads: sum(|c| &c.reads),
        errors: sum(|c| &c.errors),
        duplicates: sum(|c| &c.duplicates),
        takeovers: sum(|c| &c.takeovers),
        credits: sum(|c| &c.credits),
        blocked: port.workers.iter().map(|w| w.blocked.get()).sum(),
        faults: Fault::ALL.map(|fault| {
            let workers = port.workers.iter().enumerate().filter(|(n, _)| counts(*n));
            workers.map(|(_, w)| w.faults.of(fault).get()).sum()
        }),
    }
}

/// A fault's name in INFO and in the labels of metrics.
pub fn label(fault: Fault) -> String {
    fault.name().replace(' ', "_")
}

impl ListenerFigures {
    /// Names and values.
    pub fn fields(&self) -> [(&'static str, u64); 11] {
        [
            ("connections", self.connections),
            ("total_connections", self.total_connections),
            ("messages", self.messages),
            ("bytes", self.bytes),
            ("acks", self.acks),
            ("reads", self.reads),
            ("errors", self.errors),
            ("duplicates", self.duplicates),
            ("takeovers", self.takeovers),
            ("credits", self.credits),
            ("blocked_connections", self.blocked),
        ]
    }

    fn add(&mut self, o: &ListenerFigures) {
        self.connections += o.connections;
        self.total_connections += o.total_connections;
        self.messages += o.messages;
        self.bytes += o.bytes;
        self.acks += o.acks;
        self.reads += o.reads;
        self.errors += o.errors;
        self.duplicates += o.duplicates;
        self.takeovers += o.takeovers;
        self.credits += o.credits;
        self.blocked += o.blocked;
        for (sum, n) in self.faults.iter_mut().zip(o.faults) {
            *sum += n;
        }
    }
}
