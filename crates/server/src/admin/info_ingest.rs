//! INFO ingest: what came in through the ingest listeners, in total and for each.

use super::info::{field, line};
use crate::ingest_ports::{IngestCounters, IngestPort};
use crate::shared::Shared;
use base::sync::atomic::Ordering::Acquire;
use observe::Counter;

/// One listener's figures, or all of them.
#[derive(Default)]
struct Figures {
    connections: u64,
    total_connections: u64,
    messages: u64,
    bytes: u64,
    acks: u64,
    reads: u64,
    errors: u64,
}

/// Totals, then one line for each listener in the order in which they were opened.
pub fn ingest_section(t: &mut String, shared: &Shared) {
    line(t, "# Ingest", "");
    field(t, "ingest_listeners", shared.ingest.open.len());
    let each: Vec<Figures> = shared.ingest.open.iter().map(|port| figures(shared, port)).collect();
    let mut total = Figures::default();
    for f in &each {
        total.add(f);
    }
    for (name, value) in total.fields() {
        field(t, &format!("ingest_{name}"), value);
    }
    for (n, (port, f)) in shared.ingest.open.iter().zip(&each).enumerate() {
        let counts: Vec<String> = f.fields().iter().map(|(n, v)| format!("{n}={v}")).collect();
        let (strategy, addr, sink) = (port.strategy, &port.addr, port.sink);
        let text = format!("strategy={strategy},address={addr},sink={sink},{}", counts.join(","));
        field(t, &format!("ingest_listener{n}"), text);
    }
}

/// The sum over the workers; counts of one that has not heard of the last CONFIG RESETSTAT are left out.
fn figures(shared: &Shared, port: &IngestPort) -> Figures {
    let epoch = shared.stats_epoch.load(Acquire);
    let counts = |n: usize| shared.workers[n].epoch.load(Acquire) == epoch;
    let sum = |of: fn(&IngestCounters) -> &Counter| {
        let workers = port.workers.iter().enumerate().filter(|(n, _)| counts(*n));
        workers.map(|(_, w)| of(w).get()).sum()
    };
    Figures {
        connections: port.workers.iter().map(|w| w.connections.get()).sum(),
        total_connections: sum(|c| &c.total_connections),
        messages: sum(|c| &c.messages),
        bytes: sum(|c| &c.bytes),
        acks: sum(|c| &c.acks),
        reads: sum(|c| &c.reads),
        errors: sum(|c| &c.errors),
    }
}

impl Figures {
    fn fields(&self) -> [(&'static str, u64); 7] {
        [
            ("connections", self.connections),
            ("total_connections", self.total_connections),
            ("messages", self.messages),
            ("bytes", self.bytes),
            ("acks", self.acks),
            ("reads", self.reads),
            ("errors", self.errors),
        ]
    }

    fn add(&mut self, o: &Figures) {
        self.connections += o.connections;
        self.total_connections += o.total_connections;
        self.messages += o.messages;
        self.bytes += o.bytes;
        self.acks += o.acks;
        self.reads += o.reads;
        self.errors += o.errors;
    }
}
