//! What a worker remembers between two looks at its memory (`memory`).

use base::MonoNs;
use keyspace::Defrag;

/// The defragmentation of worker 0, and what each worker remembers between two ticks.
#[derive(Default)]
pub(crate) struct Tending {
    /// The round that is under way.
    pub(super) round: Option<Box<Defrag>>,
    /// Entries that it has moved.
    pub(super) moved: u64,
    /// When its next step is due.
    pub(crate) step_at: Option<MonoNs>,
    /// No round begins before.
    pub(super) rest_until: MonoNs,
    /// Time from the end of a step to the next, for each nanosecond of the step, in percent.
    pub(super) pause_percent: u64,
    /// Commands that this worker had executed at its last tick.
    pub(super) processed: u64,
    /// Its thread's cache was emptied since its last command.
    pub(super) is_emptied: bool,
}
