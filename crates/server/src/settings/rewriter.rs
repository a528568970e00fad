//! The runs which write the configuration file, and the sessions which wait for them.

use crate::sessions::client_memory::Share;
use crate::sessions::output::Hold;
use base::MonoNs;
use base::sync::{Arc, Mutex, MutexGuard};
use command::CommandId;
use config::Config;
use resp::{OutBuf, OutPos};

/// How a run ended: the text of the error reply.
pub type Written = Result<(), Arc<str>>;

/// Writes the configuration file for everybody.
#[derive(Default)]
pub struct Rewriter(Mutex<Runs>);

#[derive(Default)]
pub(crate) struct Runs {
    /// What the next run writes, if one is requested.
    pub(crate) next: Option<Box<Config>>,
    /// The number of the last run that has begun.
    pub(crate) begun: u64,
    /// A worker makes runs; it looks for the next one when one is over.
    pub(crate) is_served: bool,
}

impl Rewriter {
    pub(crate) fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().expect("no panic while the runs are held")
    }

    /// The next run: what to write, and its number. `None`: the caller makes no further runs.
    pub(crate) fn next(&self) -> Option<(Box<Config>, u64)> {
        let mut runs = self.runs();
        let next = runs.next.take();
        runs.is_served = next.is_some();
        runs.begun += u64::from(next.is_some());
        next.map(|config| (config, runs.begun))
    }
}

/// A session that waits for a run.
pub struct AwaitsRun {
    pub(crate) run: u64,
    pub(crate) started: MonoNs,
    /// The reply of an EXEC, split where the outcome of a CONFIG REWRITE is missing.
    pub(crate) reply: Option<Box<ParkedReply>>,
}

/// The reply of an EXEC that waits for the file.
pub(crate) struct ParkedReply {
    /// The command whose outcome is missing.
    pub(crate) id: Option<CommandId>,
    /// The outcome belongs behind each of these except the last.
    pub(crate) parts: Vec<OutBuf>,
    /// Bytes of all of them.
    pub(crate) len: usize,
    pub(crate) hold: Hold,
    /// Counts its bytes as client memory.
    pub(crate) held: Share,
}

/// The run which the running EXEC has requested.
pub struct Asked {
    pub(crate) run: u64,
    /// The command, for its errors.
    pub(crate) id: Option<CommandId>,
    /// Where in the reply an outcome is missing; nowhere if the client wants no reply.
    pub(crate) places: Vec<OutPos>,
}
