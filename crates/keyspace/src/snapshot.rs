//! A snapshot of the whole keyspace at one moment, the *cut*, taken while commands change it.
//!
//! ```text
//! slots     0        1        2        3        4    ...            16,383
//!        +--------+--------+--------+--------+--------+--- - - ---+--------+
//!        | walked | walked | in walk| ahead  | ahead  |           | ahead  |
//!        +--------+--------+--------+--------+--------+--- - - ---+--------+
//!        behind the walker  ^   changes are of no interest
//!        ahead of it        |   a change captures the entry first (door.rs)
//!                           |
//!                     position of the slot: physical database, point in hash space
//!
//! an entry ahead of the walker     its header's `skip`
//!   as it was at the cut             0    the walker passes it to the sink
//!   changed since                    1    its pre-image was captured; the walker clears the bit
//!   made since                       1    no part of the snapshot; the walker clears the bit
//! an entry behind the walker         0
//!
//!   worker                                 walker, a thread with a further Access (walk.rs)
//!   change -> pre-image -> commit -> lane    lanes, detached tables, slots -> Sink
//!             (door.rs)       (running.rs)
//! ```
//!
//! The cut is made under World ([`Access::cut`]) and costs the same for any number of keys. The
//! caller then calls [`Snapshot::step`] until it returns [`Step::Complete`]. Each key that existed
//! at the cut is passed to the [`Sink`] exactly once, as it was at the cut, in the database that it
//! had at the cut. After the last step no entry has the bit, and a next snapshot may begin.
//!
//! Only one snapshot runs at a time. It ends with its last step alone: after [`Snapshot::abort`]
//! the steps walk on without the sink, because the bits must be cleared. A snapshot that is dropped
//! before is continued through [`Access::abandoned_snapshot`].
//!
//! While no snapshot runs, changes do not read anything for this: the bit in the word of listeners
//! (`event.rs`), which each change tests anyway, is not set. `docs/design/0018-snapshot.md` gives
//! the reasons.

mod door;
mod item;
mod running;
mod walk;

use crate::access::Access;
use crate::keyspace::Keyspace;
use crate::reclaim::Captured;
use crate::view::Entry;
use base::sync::Arc;
use base::{Blob, DbIndex, SeqNo};
pub(crate) use door::Door;
pub(crate) use running::{Current, Running};
use walk::Walk;

/// A good bound for the bytes of captured entries that wait for the walker.
pub const CAPTURED_BYTES_MAX: u64 = 64 << 20;

/// A database that had keys at the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtCut {
    /// Its number.
    pub db: DbIndex,
    /// Keys, including those that were due and not removed yet.
    pub keys: u64,
    /// Those of them with an expiry.
    pub expires: u64,
    /// Hashes with a field that expires.
    pub with_field_expiry: u64,
}

/// What a snapshot has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries passed to the sink.
    pub entries: u64,
    /// Those of them that were captured because they changed.
    pub captured: u64,
    /// Bytes captured, all together.
    pub captured_bytes: u64,
    /// Slots walked to their end, of 16,384.
    pub slots: u64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// There is more to do, but now the gate is closed, or all slots that are left are held for
    /// long. The caller waits for about a millisecond.
    Waits,
    /// Everything was walked. The next snapshot may begin.
    Complete,
}

/// A snapshot runs already, or an abandoned one was not walked to its end
/// ([`Access::abandoned_snapshot`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRuns;

impl std::fmt::Display for SnapshotRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a snapshot runs already")
    }
}

impl std::error::Error for SnapshotRuns {}

/// A value outside its entry, by its root: later changes of the key do not show in it.
#[derive(Debug)]
pub enum Root {
    /// A string.
    String(Blob),
    /// A collection.
    Collection(Captured),
}

/// Where the entries of a snapshot go.
pub trait Sink {
    /// An entry whose value is inside (a short string or a packed collection). A slot's lock may be
    /// held: the call must not wait, lock, or make a system call. The largest entry that is passed
    /// under a lock has [`SMALL_MAX`] bytes.
    fn small(&mut self, db: DbIndex, entry: Entry<'_>);

    /// An entry whose value is outside. No lock is held, so the call may take its time, or keep the
    /// root and write it later. `entry` gives key, expiry, encoding and uses.
    fn large(&mut self, db: DbIndex, entry: Entry<'_>, value: Root);
}

/// The largest entry that is passed to [`Sink::small`] under a slot's lock, in bytes. A larger one
/// is copied under the lock and passed after it.
pub const SMALL_MAX: usize = 1024;

/// A running snapshot. It may move to another thread.
pub struct Snapshot {
    ks: Arc<Keyspace>,
    databases: Vec<AtCut>,
    seq: SeqNo,
    running: Arc<Running>,
    /// None after the last step.
    walk: Option<Box<Walk>>,
    progress: Progress,
}

impl Access {
    /// Makes the cut: from now on every change of what the snapshot has not walked yet is captured.
    /// The caller holds World. Past `captured_max` bytes of captured entries that wait,
    /// [`Keyspace::is_capture_over_bound`] is true. O(databases), and 128 KiB of memory.
    ///
    /// # Errors
    /// [`SnapshotRuns`] until the last step of the one before.
    pub fn cut(&mut self, captured_max: u64) -> Result<Snapshot, SnapshotRuns> {
        assert!(self.holds_world(), "a cut needs World");
        let ks = Arc::clone(&self.ks);
        self.finish_forgotten();
        let running = Arc::new(Running::new(&ks, captured_max));
        ks.snapshot.begin(&running)?;
        ks.uses.raise();
        self.w.follow(&ks);
        let databases = (0..ks.databases()).map(DbIndex::new).filter_map(|db| at_cut(&ks, db));
        Ok(Snapshot {
            databases: databases.collect(),
            seq: ks.numbers.last(),
            running,
            walk: Some(Box::default()),
            progress: Progress::default(),
            ks,
        })
    }

    /// The snapshot that was dropped before its last step, if there is one: aborted, to be walked
    /// to its end so that the next one may begin.
    pub fn abandoned_snapshot(&mut self) -> Option<Snapshot> {
        let ks = Arc::clone(&self.ks);
        let (running, walk) = ks.snapshot.take_abandoned()?;
        let (databases, progress) = (Vec::new(), Progress::default());
        Some(Snapshot { databases, seq: SeqNo(0), running, walk: Some(walk), progress, ks })
    }
}

fn at_cut(ks: &Keyspace, db: DbIndex) -> Option<AtCut> {
    let with_field_expiry = ks.db_with_fields_that_expire(db);
    let counts = AtCut { db, keys: ks.db_len(db), expires: ks.db_expires(db), with_field_expiry };
    (counts.keys > 0).then_some(counts)
}

impl Keyspace {
    /// True while a snapshot runs, even an aborted one.
    pub fn is_snapshot_running(&self) -> bool {
        self.snapshot.running().is_some()
    }

    /// True while more bytes are captured than the snapshot's bound: writers should be slowed at
    /// the ends of their turns. One load of a line that rarely changes.
    #[inline]
    pub fn is_capture_over_bound(&self) -> bool {
        self.snapshot.is_over_bound()
    }

    /// Bytes of captured entries that the sink has not taken, and of the copies that writers have
    /// made of pages and nodes which the snapshot shares. The copies count until what they were
    /// made of is freed ([`Snapshot::release_copied`]), at most until the walker and the sink have
    /// no value outside its entry any more.
    pub fn captured_bytes(&self) -> u64 {
        self.snapshot.running().map_or(0, |running| running.captured_bytes())
    }
}

impl Keyspace {
    /// Of [`Keyspace::used_bytes`], those of captured entries: the data does not grow by them.
    pub fn captured_entry_bytes(&self) -> u64 {
        self.snapshot.running().map_or(0, |running| running.entry_bytes())
    }

    /// Bytes of the lists which say what is captured. They are in no other figure.
    pub fn capture_list_bytes(&self) -> u64 {
        self.snapshot.running().map_or(0, |running| running.list_bytes())
    }
}

impl Snapshot {
    /// The databases that had keys at the cut, by number.
    pub fn databases(&self) -> &[AtCut] {
        &self.databases
    }

    /// The last number of a change at the cut.
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// As [`Keyspace::captured_bytes`].
    pub fn captured_bytes(&self) -> u64 {
        self.running.captured_bytes()
    }

    /// Notes that the sink has freed so many bytes of the value that it got last, because it has
    /// written them and nobody else held them: what writers had copied of it takes no memory any
    /// more. Bytes that were not counted as copied are of no account.
    pub fn release_copied(&mut self, bytes: u64) {
        if bytes > 0
            && let Some(walk) = &mut self.walk
        {
            walk.release(&self.running, &self.ks, bytes);
        }
    }

    /// What was done so far.
    pub fn progress(&self) -> Progress {
        Progress { captured_bytes: self.running.captured_in_all(), ..self.progress }
    }

    /// The later steps walk on without the sink.
    pub fn abort(&mut self) {
        if let Some(walk) = &mut self.walk {
            walk.is_aborted = true;
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(mut walk) = self.walk.take() {
            walk.is_aborted = true;
            self.put_back(&mut walk);
            self.ks.snapshot.abandon(walk);
        }
    }
}

#[cfg(all(test, shuttle))]
mod models;
#[cfg(all(test, not(shuttle)))]
mod tests;
