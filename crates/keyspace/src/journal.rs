//! The journal's way out of the keyspace: records of changes, on their way from the sections that
//! made them to whoever writes them down.
//!
//! ```text
//! Access A   finish: number 7, record    finish: number 9, record     leaves its section
//!            `------------------------ Batch [7] [9] -----------------------------> Handover
//! Access B             finish: number 8, record                                     |
//!                      `-------------- Batch [8] ----------------------------------> |
//!                                                                                    v
//!                                                      the writer: 7, 8, 9 in the order of numbers
//! ```
//!
//! - Numbers are drawn one by one from one counter ([`crate::Numbers`]), under the locks of the
//!   change. While records are kept each number has exactly one run, perhaps an empty one. So the
//!   writer knows that nothing smaller will come: it writes number n only behind number n - 1.
//! - A worker which is preempted between number and hand-over delays others, and loses nothing.
//! - What a batch holds is plain bytes in RESP, as an append-only file has them. Big values are
//!   references.
//! - All readers of the journal get all of it, but for the parts which name theirs ([`Part`]).

use base::out::{OutBuf, OutPos};
use base::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use base::sync::{Mutex, OnceLock, PoisonError};
use base::{DbIndex, SeqNo};

/// Empty batches of so many bytes of capacity at most are used again.
const KEPT_BYTES_MAX: usize = 256 << 10;
/// So many of them.
const KEPT_MAX: usize = 64;

/// Records of one Access in the order of their numbers.
#[derive(Debug, Default)]
pub struct Batch {
    /// The records of all runs.
    pub out: OutBuf,
    /// What they are.
    pub runs: Vec<Run>,
    /// The parts of them which not all readers get, in order; each is within one run.
    pub parts: Vec<Part>,
}

/// Who gets what stands in the journal. Whoever adds one decides at the places which match this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// The append-only file alone: annotations. All else is for replicas, too.
    File,
}

impl Readers {
    /// True if replicas get it: it counts in the stream of replication.
    pub fn has_replicas(self) -> bool {
        match self {
            Self::File => false,
        }
    }
}

/// A part of records which not all readers get, and which has no big values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Who gets it.
    pub readers: Readers,
    /// Where it begins in the plain bytes of the records.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
}

impl Part {
    /// The same part where all bytes stand at another place.
    pub(crate) fn moved(self, from: usize, to: usize) -> Self {
        Self { from: self.from - from + to, to: self.to - from + to, ..self }
    }
}

/// Records of consecutive numbers, whose bytes follow each other. Each of them is one command, or a
/// transaction between MULTI and EXEC; or none of them has a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the first record.
    pub first: SeqNo,
    /// How many records, each with its own number.
    pub count: u32,
    /// The database which must be selected before the first command; none if there is no command.
    pub db_in: Option<DbIndex>,
    /// The database which is selected behind the last one.
    pub db_out: Option<DbIndex>,
    /// Where their bytes end in [`Batch::out`]; they begin where those of the run before end.
    pub end: OutPos,
    /// Not 0: this number separates what is before a cut from what is behind it
    /// ([`crate::Guard::record_cut`]).
    pub cut: u32,
}

impl Run {
    /// The number of the last record.
    pub fn last(&self) -> SeqNo {
        SeqNo(self.first.0 + u64::from(self.count) - 1)
    }
}

impl Batch {
    /// True if nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes of its records, those of big values included.
    pub fn len(&self) -> usize {
        self.out.len_between(OutPos::default(), self.out.position())
    }

    fn clear(&mut self) {
        self.out.clear();
        self.runs.clear();
        self.parts.clear();
    }
}

/// What wakes the writer.
pub type WakeWriter = Box<dyn Fn() + Send + Sync>;

/// Batches which were handed over and not taken yet.
#[derive(Default)]
pub struct Handover {
    /// Changes leave records.
    is_recording: AtomicBool,
    queue: Mutex<Queue>,
    bytes: AtomicUsize,
    /// The writer sleeps: the next batch wakes it.
    sleeps: AtomicBool,
    waker: OnceLock<WakeWriter>,
    /// Changes which left no record although records are kept: defects, counted.
    unrecorded: AtomicU32,
}

#[derive(Default)]
struct Queue {
    batches: Vec<Batch>,
    /// Empty ones, to be used again.
    spare: Vec<Batch>,
}

impl Handover {
    /// Whether changes leave records.
    pub fn is_recording(&self) -> bool {
        self.is_recording.load(SeqCst)
    }

    pub(crate) fn set_recording(&self, on: bool) {
        self.is_recording.store(on, SeqCst);
    }

    /// Sets what wakes the writer, once.
    pub fn set_waker(&self, wake: WakeWriter) {
        assert!(self.waker.set(wake).is_ok(), "one writer");
    }

    /// Bytes which were handed over and not taken yet.
    pub fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    /// Changes which left no record although records are kept. Not 0: there is a defect.
    pub fn unrecorded(&self) -> u32 {
        self.unrecorded.load(SeqCst)
    }

    pub(crate) fn count_unrecorded(&self) {
        self.unrecorded.fetch_add(1, SeqCst);
    }

    /// Hands a batch over and returns an empty one.
    pub(crate) fn hand_over(&self, batch: Batch) -> Batch {
        self.bytes.fetch_add(batch.len(), SeqCst);
        let spare = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.batches.push(batch);
            queue.spare.pop()
        };
        if self.sleeps.load(SeqCst)
            && self.sleeps.swap(false, SeqCst)
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
        spare.unwrap_or_default()
    }

    /// Appends all batches which were handed over to `to`. For the one writer.
    pub fn take(&self, to: &mut Vec<Batch>) {
        let from = to.len();
        to.append(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner).batches);
        let bytes = to[from..].iter().map(Batch::len).sum();
        self.bytes.fetch_sub(bytes, SeqCst);
    }

    /// The writer is awake and will look for batches before it sleeps: none wakes it.
    #[inline]
    pub fn stay_awake(&self) {
        self.sleeps.store(false, SeqCst);
    }

    /// The writer has nothing to do: the next batch wakes it. False if there is one already.
    pub fn sleep(&self) -> bool {
        self.sleeps.store(true, SeqCst);
        let is_empty = {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.batches.is_empty()
        };
        if !is_empty {
            self.sleeps.store(false, SeqCst);
        }
        is_empty
    }

    /// Gives a batch back, whose memory is used again.
    pub fn give_back(&self, mut batch: Batch) {
        if batch.out.bytes.capacity() <= KEPT_BYTES_MAX {
            batch.clear();
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.spare.len() < KEPT_MAX {
                queue.spare.push(batch);
            }
        }
    }
}

impl std::fmt::Debug for Handover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handover").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
