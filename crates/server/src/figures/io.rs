//! What the workers did: their batches, and how often they waited for each other.

use crate::shared::{Shared, WorkerCounters};
use base::sync::atomic::Ordering::Relaxed;
use driver::DriverStats;
use keyspace::Contention;

/// What one worker, or all of them, did.
#[derive(Default)]
pub struct WorkerFigures {
    /// The driver's figures.
    pub io: DriverStats,
    /// Commands executed.
    pub commands: u64,
    /// The same at the time of `io`, to be compared with it.
    pub published: u64,
    /// Windows executed.
    pub windows: u64,
    /// Open connections.
    pub connections: u64,
    /// How often it waited for the locks of others.
    pub locks: Contention,
}

/// All workers' figures.
pub struct IoFigures {
    /// Their sum.
    pub total: WorkerFigures,
    /// Each worker's.
    pub each: Vec<WorkerFigures>,
}

impl IoFigures {
    /// The current figures.
    pub fn gather(shared: &Shared) -> Self {
        let each: Vec<WorkerFigures> =
            shared.workers.iter().enumerate().map(|(i, w)| of_worker(shared, i, w)).collect();
        let mut total = WorkerFigures::default();
        for f in &each {
            total.add(f);
        }
        IoFigures { total, each }
    }
}

fn of_worker(shared: &Shared, index: usize, w: &WorkerCounters) -> WorkerFigures {
    let io = w.io.lock().expect("no panic while figures are held");
    let published = w.published.get();
    WorkerFigures {
        io: io.clone(),
        published,
        commands: w.processed.get(),
        windows: w.windows.get(),
        connections: u64::from(w.connections.load(Relaxed)),
        locks: shared.keyspace.contention(index),
    }
}

impl WorkerFigures {
    fn add(&mut self, o: &WorkerFigures) {
        self.io.add(&o.io);
        self.commands += o.commands;
        self.published += o.published;
        self.windows += o.windows;
        self.connections += o.connections;
        self.locks.waits += o.locks.waits;
        self.locks.sleeps += o.locks.sleeps;
        self.locks.parks += o.locks.parks;
        self.locks.worlds += o.locks.worlds;
    }
}
