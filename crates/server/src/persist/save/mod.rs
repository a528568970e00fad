//! Saving a snapshot file: SAVE, BGSAVE, save points, FLUSHALL, SHUTDOWN, backups by schedule.
//!
//! ```text
//! a command, a save point, a signal
//!    |  Wanted                       status.rs: what is wanted, and the only run of the server
//!    |  Message::BeginSave           begin.rs: takes World for a moment
//!    v
//! the moment (keyspace::snapshot)    the file will show this state
//!    |
//!    v
//! thread "saver" (walker.rs)         walks, writes what it finds into buffers of 1 MiB
//!    |  Message::Saver               pipe.rs: a bounded number of buffers is under way
//!    v
//! the worker that began (run.rs)     writing.rs: which operations on files follow each other
//!    |                               (output.rs: of a file, or of a backup)
//!    |
//!    v
//! end of the run (run.rs)            status.rs: what INFO tells, LASTSAVE, when to retry
//! ```
//!
//! There is one run at a time in a server. Others wait in a queue; whoever adds to it, and whoever
//! ends a run, claims the next one for the worker which wants it. There the run stays. No worker
//! waits for the disk or for the walk.
//!
//! A run that is given up (FLUSHALL, SHUTDOWN, a full disk) ends for everybody at once; its thread
//! ends the walk without writing, and the next moment is taken behind that.

pub(crate) mod begin;
pub(crate) mod job;
pub(crate) mod output;
pub(crate) mod pipe;
pub(crate) mod points;
pub(crate) mod run;
pub mod status;
pub mod threads;
pub(crate) mod walker;
pub(crate) mod writing;

use crate::persist::save::job::Ready;
use crate::persist::save::output::Output;
use crate::persist::save::pipe::Pipe;
use crate::persist::save::status::{Wanted, Why};
use base::MonoNs;
use base::sync::Arc;
use driver::ConnId;

/// The saves of a worker.
#[derive(Default)]
pub(crate) struct Saving {
    /// The run of the server, which this worker has to begin.
    pub claimed: Option<Wanted>,
    /// The thread that will walk for it.
    pub ready: Option<Ready>,
    /// The save whose file this worker writes.
    pub running: Option<Box<Running>>,
    /// Sessions that have sent a SHUTDOWN which saves.
    pub enders: Vec<ConnId>,
    /// When a supervisor is told next that the shutdown takes longer.
    pub extend_at: MonoNs,
}

impl Saving {
    /// No save is to begin or under way here.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.claimed.is_none() && self.running.is_none()
    }

    /// The save that this worker had to begin has begun, or will not begin.
    pub(crate) fn forget_claimed(&mut self) {
        self.claimed = None;
        if let Some(ready) = self.ready.take() {
            ready.dismiss();
        }
    }

    /// The save before the end of the server is the one of this worker.
    pub(crate) fn is_final(&self) -> bool {
        let running = self.running.iter().map(|running| running.wanted);
        running.chain(self.claimed).any(|wanted| wanted.why == Why::Shutdown)
    }
}

/// A save under way.
pub(crate) struct Running {
    /// Its number: that of its thread.
    pub number: u64,
    /// Why, and for whom.
    pub wanted: Wanted,
    /// The operations on files.
    pub output: Output,
    /// The buffers.
    pub pipe: Arc<Pipe>,
    /// Changes of the keyspace up to its moment.
    pub changes: u64,
    /// Since when.
    pub since: MonoNs,
    /// The moment which the file shows, seconds since 1970.
    pub moment_s: i64,
    /// Somebody gave it up: that is no failure of saving.
    pub is_given_up: bool,
}

/// What the thread that walks tells the worker that writes.
#[derive(Debug)]
pub enum FromWalker {
    /// The next bytes of the file.
    Bytes(Vec<u8>),
    /// The file is complete. The manifest, of a backup.
    End(Option<Vec<u8>>),
    /// The file cannot be written, for this reason.
    Failed(Box<str>),
    /// The walk is over, and the thread ends.
    Over,
}
