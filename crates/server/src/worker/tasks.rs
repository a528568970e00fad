//! Work which outlives the turn in which it began: long commands in steps, waiting clients,
//! releases, memory to be freed, files.
//!
//! Commands and messages add to it; `Worker::background` does a step of each kind a turn. When a
//! session is closed, its timeout is removed and its DEBUG SLEEP ends at once; whatever else it has
//! here is dropped by the next step, which finds it closed.

use crate::migrate::conversation::Trip;
use crate::persist::journal::Journal;
use crate::persist::journal::pause::Pause;
use crate::persist::journal::status::DiskState;
use crate::persist::journal::steps::Steps;
use crate::persist::load::finding::Finding;
use crate::persist::load::folder::Found;
use crate::persist::load::loading::{Loading, Stage};
use crate::persist::save::Saving;
use crate::settings::rewriting::Rewriting;
use crate::worker::left::Releases;
use crate::worker::retry::{Retries, Work};
use base::{MonoNs, SeqNo};
use driver::{ConnId, FileOp};
use keyspace::Ready;
use std::collections::{BTreeSet, VecDeque};

/// Who asks for operations on files. Its number is the low byte of the operation's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileUser {
    /// CONFIG REWRITE, with one operation in flight.
    Rewriting = 1,
    /// A save: the operation that its stage is about.
    Saving = 2,
    /// A save: writes, a bounded number of them in flight.
    SavingWrite = 3,
    /// A save: a sync while it writes.
    SavingSync = 4,
    /// Loading, with several reads in flight.
    Loading = 5,
    /// The append-only file: its segments, one operation in flight.
    JournalStep = 6,
    /// The append-only file: the write in flight.
    JournalWrite = 7,
    /// The append-only file: the sync in flight.
    JournalSync = 8,
    /// The append-only file: what nobody waits for, such as a close.
    JournalUnawaited = 9,
    /// The append-only file: what is in its folder, before it begins.
    JournalFind = 10,
    /// The append-only file: its folder is made, before its first base.
    JournalFolder = 11,
    /// The append-only file: a base takes over, one operation in flight.
    JournalTakeover = 12,
    /// The append-only file: whether it still has its name.
    JournalLook = 13,
}

impl FileUser {
    /// The token of an operation: who has asked for it, and its number there.
    pub(crate) fn token(self, number: u64) -> u64 {
        self as u64 | number << 8
    }

    /// The number in a token.
    pub(crate) fn number(token: u64) -> u64 {
        token >> 8
    }
}

/// Work of a worker that waits for its next step.
#[derive(Default)]
pub struct Tasks {
    /// Suspended sessions that have work to do in steps, or an assembled request to retry.
    pub runnable: VecDeque<ConnId>,
    /// Flushed data is being freed in steps.
    pub is_reclaiming: bool,
    /// The session that holds World by DEBUG SLEEP, and until when.
    pub sleeping: Option<(ConnId, MonoNs)>,
    /// Sessions that wait in blocking commands.
    pub waiting: Waiting,
    /// Sessions wait for the disk, since it was in this state.
    pub(crate) disk: Option<DiskState>,
    /// Watches and tickets to take out of their slots as soon as no lock is held.
    pub releases: Releases,
    /// MIGRATEs whose transfer is over, to be ended as soon as their slots can be locked.
    pub trips: VecDeque<Trip>,
    /// Operations on files to be started at the end of the turn.
    pub(crate) file_ops: Vec<(FileUser, FileOp)>,
    /// The run of CONFIG REWRITE that this worker makes.
    pub(crate) rewriting: Option<Box<Rewriting>>,
    /// The saves of this worker.
    pub(crate) saving: Saving,
    /// The append-only file, at worker 0.
    pub(crate) journal: Option<Box<Journal>>,
    /// What its folder holds, before it begins and behind its end.
    pub(crate) found: Option<Found>,
    /// The search for that.
    pub(crate) finding: Option<Box<Finding>>,
    /// How its folder is made ready for the first files.
    pub(crate) folder_steps: Steps,
    /// When it is tried again to begin.
    pub(crate) journal_again_at: Option<MonoNs>,
    /// Behind first bases which have failed: each of them writes as far as it comes.
    pub(crate) base_pause: Pause,
    /// The append-only file is to begin before the server serves its clients.
    pub(crate) starts_journal: bool,
    /// DEBUG LOADAOF: the worker and the session which wait for it, until loading begins.
    pub(crate) aof_asker: Option<(usize, ConnId)>,
    /// The file that this worker loads.
    pub(crate) loading: Option<Box<Loading>>,
    /// How many files it has begun to load.
    pub(crate) loadings: u64,
    /// When work that met a closed gate or a long holder is retried.
    pub retries: Retries,
}

impl Tasks {
    /// True if the next step can be done at once.
    pub fn are_ready(&self) -> bool {
        !self.runnable.is_empty() || self.is_reclaiming
    }

    /// The folder of the append-only file is searched, or made ready.
    pub(crate) fn is_finding_journal(&self) -> bool {
        self.finding.is_some() || !self.folder_steps.is_empty()
    }

    /// World is awaited, to remove what is there before a file is loaded.
    pub(crate) fn is_emptying(&self) -> bool {
        self.loading.as_ref().is_some_and(|loading| loading.stage == Stage::Emptying)
    }

    /// The earliest time for which some of this work waits.
    pub fn next_wake(&self, now: MonoNs) -> Option<MonoNs> {
        let timeout = self.waiting.next_wake();
        let has_others = !self.releases.is_empty()
            || !self.trips.is_empty()
            || self.sleeping.is_some()
            || !self.saving.is_idle()
            || self.loading.is_some()
            || self.journal.is_some()
            || self.starts_journal
            || self.journal_again_at.is_some();
        if has_others { timeout.into_iter().chain(self.next_of_others(now)).min() } else { timeout }
    }

    #[cold]
    fn next_of_others(&self, now: MonoNs) -> Option<MonoNs> {
        let awaits_load = self.is_emptying() || self.aof_asker.is_some();
        let is_ending = self.journal.as_ref().is_some_and(|journal| journal.is_ending);
        let times = [
            self.retries.next(Work::Journal, self.starts_journal || is_ending, now),
            self.journal.as_ref().and_then(|journal| journal.wake_at),
            self.journal_again_at,
            self.retries.next(Work::Releases, !self.releases.is_empty(), now),
            self.retries.next(Work::Trips, !self.trips.is_empty(), now),
            self.sleeping.map(|(_, until)| until),
            self.saving.is_final().then_some(self.saving.extend_at),
            self.retries.next(Work::Load, awaits_load, now),
            self.retries.next(Work::Save, self.saving.claimed.is_some(), now),
        ];
        times.into_iter().flatten().min()
    }
}

/// The blocked sessions of a worker.
#[derive(Default)]
pub struct Waiting {
    /// The timeouts of blocked sessions.
    pub timeouts: BTreeSet<(MonoNs, u64, u32)>,
    /// Those in WAITAOF: the number that must be synced, the ticket, the place of the session.
    pub syncs: BTreeSet<(SeqNo, u64, u32)>,
    /// Keys whose waiters the worker serves later: the key expired and was removed by a step that
    /// has released its slot, or serving needs a slot that is held for long.
    pub deferred: VecDeque<Ready>,
}

impl Waiting {
    /// The next timeout, if there is one.
    pub fn next_wake(&self) -> Option<MonoNs> {
        self.timeouts.first().map(|(at, ..)| *at)
    }
}
