//! What a save hands to its thread, and a thread which waits for that.

use crate::ingest::producers::Producer;
use crate::persist::save::pipe::{Order, Pipe};
use base::UnixMs;
use base::sync::{Arc, Mutex};
use command::save::{FileOptions, Recorded};
use driver::Clock;
use journal::Extent;
use keyspace::Access;
use keyspace::snapshot::Snapshot;

/// How a file is written.
#[derive(Clone, Copy)]
pub(crate) enum Format {
    Rdb(FileOptions),
    /// As commands.
    Commands,
}

/// What the thread is given.
pub(crate) struct Job {
    pub snapshot: Snapshot,
    pub access: Access,
    /// How the file is written; nothing of a walk that only has to end.
    pub file: Option<Format>,
    pub recorded: Recorded,
    pub now: UnixMs,
    pub clock: Clock,
    /// Libraries of functions, which are kept and not run.
    pub functions: Vec<Arc<[u8]>>,
    /// Producers of ingest, each with the number which belongs to the data.
    pub producers: Vec<(Arc<Producer>, u64)>,
    /// Memory in use, for the file.
    pub used_bytes: u64,
    /// Of the base of the append-only file: how far the changes reach which it holds.
    pub base_of: Option<Extent>,
    /// Of a backup: the identity of the server's run. The thread makes the manifest.
    pub manifest_of: Option<String>,
    /// `rdb-key-save-delay` is set: the thread reads it for each key, and sleeps.
    pub is_delayed: bool,
}

impl Job {
    /// A walk that only has to end.
    pub(crate) fn ending(
        snapshot: Snapshot,
        access: Access,
        (now, clock): (UnixMs, Clock),
    ) -> Self {
        Self {
            snapshot,
            access,
            file: None,
            recorded: Recorded::Nothing,
            now,
            clock,
            functions: Vec::new(),
            producers: Vec::new(),
            used_bytes: 0,
            base_of: None,
            manifest_of: None,
            is_delayed: false,
        }
    }
}

/// Where a job is handed over.
pub(crate) type Handed = Arc<Mutex<Option<Job>>>;

/// A thread which waits for its job: it is started before the moment is taken. Otherwise, if no
/// thread can be started, nobody would walk, and writers would capture what they change for ever.
pub(crate) struct Ready {
    /// The number of the thread.
    pub number: u64,
    /// The buffers.
    pub pipe: Arc<Pipe>,
    job: Handed,
}

impl Ready {
    /// A thread with this number, which waits with this pipe.
    pub(crate) fn of(number: u64, pipe: Arc<Pipe>, job: Handed) -> Self {
        Self { number, pipe, job }
    }

    /// Hands the job over.
    pub(crate) fn begin(&self, job: Job) {
        *self.job.lock().expect("no panic while it is held") = Some(job);
        self.pipe.give_order(Order::Write);
    }

    /// Ends the thread: there is nothing to do.
    pub(crate) fn dismiss(&self) {
        self.pipe.give_order(Order::Abort);
    }
}
