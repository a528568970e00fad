//! What all threads know of the append-only file.

use crate::log;
use crate::persist::journal::writer::Trouble;
use crate::persist::journal::{BACKLOG_BYTES_MAX, Journal, Whole};
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use base::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize};
use base::sync::{Mutex, PoisonError};
use base::{MonoNs, SeqNo};
use config::load::io_text;

/// The file cannot be written: an operation has failed, or it cannot begin.
const TROUBLE: u8 = 1;
/// The disk does not answer for now.
const HANGS: u8 = 2;
/// Why nothing is written while no operation has failed.
pub(crate) const NO_ANSWER: &str = "the disk does not answer";

/// What those that wait for the disk look at: they are woken when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskState {
    /// Everything up to here is durable.
    pub(crate) safe: SeqNo,
    /// It fails, or does not answer.
    pub(crate) is_unwritten: bool,
    /// That is so for so long that nobody waits any more.
    pub(crate) is_stuck: bool,
}

/// The state of the append-only file. Written by worker 0.
#[derive(Default)]
pub struct JournalStatus {
    /// Changes are recorded.
    pub(crate) is_on: AtomicBool,
    /// Replies to changes wait until these are durable: `appendfsync always`, and the folder is
    /// complete.
    pub(crate) holds_replies: AtomicBool,
    /// Writers wait: too much is in memory.
    pub(crate) holds_writes: AtomicBool,
    /// Why what reads show is looked at: [`TROUBLE`], [`HANGS`], or both.
    ailments: AtomicU8,
    /// One of the two has been so for `disk-wait-ms`: what is not durable is not shown to readers.
    pub(crate) is_stuck: AtomicBool,
    /// The files are gone: all data is in memory only.
    pub(crate) is_lost: AtomicBool,
    trouble: Mutex<Option<String>>,
    /// Bytes of the folder's files, and of its base.
    pub size: AtomicU64,
    /// Bytes of the base.
    pub base_size: AtomicU64,
    /// Bytes in memory which are not durable.
    pub backlog: AtomicU64,
    /// Bytes of memory for them, with buffers that are kept for the next ones.
    pub memory: AtomicU64,
    /// Bytes in memory which are not written.
    pub unwritten: AtomicU64,
    /// How long the last sync took, nanoseconds.
    pub last_sync_ns: AtomicU64,
    /// Syncs so far.
    pub syncs: AtomicU64,
    /// Those of this writer, when they were published last.
    writer_syncs: AtomicU64,
    /// When the last one ended, by the clock of the workers; 0 for none.
    pub synced_at: AtomicU64,
    /// A sync is under way.
    pub is_syncing: AtomicBool,
    /// A rewrite is under way, and since when (seconds since 1970).
    pub is_rewriting: AtomicBool,
    /// The folder holds all data, and goes on doing so.
    pub is_complete: AtomicBool,
    /// And everything that was acknowledged before it did.
    pub(crate) is_whole: AtomicBool,
    /// One is wanted, and waits for a save to end.
    pub is_scheduled: AtomicBool,
    /// Since when the rewrite is under way, seconds since 1970.
    pub rewrite_since_s: AtomicI64,
    /// How long the last one took, seconds; -1 for none.
    pub last_rewrite_s: AtomicI64,
    /// The last one has failed.
    pub rewrite_failed: AtomicBool,
    /// How many have failed in a row.
    pub failures: AtomicU64,
    /// The most that captured values took in the last one, bytes.
    pub last_captured: AtomicU64,
    /// Everything up to this number is durable.
    pub durable: AtomicU64,
    /// Bytes of files which rewrites have replaced and which are kept.
    pub history: AtomicU64,
    /// One more than the last number that was synced; 0 while the folder does not hold all data.
    synced_below: AtomicU64,
    /// The lowest number for which somebody waits until it is synced; `u64::MAX` for none.
    awaited: AtomicU64,
    /// Rewrites so far.
    pub rewrites: AtomicU64,
    /// How often writers had to wait because of the backlog.
    pub held: AtomicU64,
    /// Above so many bytes of it they wait, until they are half as many.
    backlog_max: AtomicUsize,
    /// The server ends, and what is not durable by now will not be.
    is_over: AtomicBool,
    /// What could not be written then.
    given_up: Mutex<Option<String>>,
}

impl JournalStatus {
    /// Nothing is recorded.
    pub fn new() -> Self {
        Self {
            last_rewrite_s: AtomicI64::new(-1),
            awaited: AtomicU64::new(u64::MAX),
            backlog_max: AtomicUsize::new(BACKLOG_BYTES_MAX),
            ..Self::default()
        }
    }

    /// Writers wait above another bound: for tests, which would need 256 MiB.
    pub fn bound_backlog(&self, bytes: usize) {
        self.backlog_max.store(bytes, Relaxed);
    }

    /// Whether writers wait: so many bytes are in memory, or one is there for too long.
    pub(crate) fn hold_writes(&self, backlog: usize, is_late: bool) {
        let (max, was_holding) = (self.backlog_max.load(Relaxed), self.holds_writes.load(Relaxed));
        let bound = if was_holding { max / 2 } else { max };
        if (backlog > bound || is_late) != was_holding {
            self.holds_writes.store(!was_holding, Relaxed);
            self.held.fetch_add(u64::from(!was_holding), Relaxed);
        }
    }

    /// Changes are recorded.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// The server ends, and nothing more becomes durable. Who has seen this sees all that is.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// The server ends, and everything is written, or the rest is given up; all of it, if the files
    /// are lost.
    pub(crate) fn end(&self, is_written: bool, is_lost: bool) {
        if is_lost || !is_written {
            let what = if is_lost {
                "the append-only file is gone, with all data".into()
            } else {
                let bytes = self.backlog.load(Relaxed);
                let why = self.trouble().unwrap_or_else(|| NO_ANSWER.into());
                format!("{bytes} bytes of the append-only file could not be written: {why}")
            };
            let text = format!("the server ends, and {what}");
            log::warning(format_args!("{text}"));
            *self.given_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        self.is_over.store(true, Release);
    }

    /// The folder does not hold all data from here on.
    pub(crate) fn end_completeness(&self) {
        self.is_complete.store(false, SeqCst); // before replies are released, for `hold_replies`
        self.is_whole.store(false, Relaxed);
    }

    /// What the server could not write when it ended, for the user.
    pub fn given_up(&self) -> Option<String> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True while the file cannot be written: changes are refused.
    #[inline]
    pub fn has_trouble(&self) -> bool {
        self.ailments.load(Relaxed) & TROUBLE != 0
    }

    /// True while the file cannot be written, or the disk does not answer: what reads show is
    /// looked at.
    #[inline]
    pub(crate) fn is_unwritten(&self) -> bool {
        self.ailments.load(Relaxed) != 0
    }

    /// With `always`: whether the disk does not answer for now. Returns what was so before.
    pub(crate) fn set_hangs(&self, hangs: bool) -> bool {
        self.set_ailment(HANGS, hangs)
    }

    fn set_ailment(&self, bit: u8, on: bool) -> bool {
        let before = if on {
            self.ailments.fetch_or(bit, Relaxed)
        } else {
            self.ailments.fetch_and(!bit, Relaxed)
        };
        before & bit != 0
    }

    /// Why the file cannot be written, in the words of the system.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file cannot begin, for this reason: changes are refused, because nobody would keep them.
    pub(crate) fn refuse(&self, why: Option<String>) {
        self.set_ailment(TROUBLE, why.is_some());
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn set_trouble(&self, trouble: Option<Trouble>) {
        self.refuse(trouble.map(|trouble| io_text(&trouble.errno.into())));
    }

    /// Everything up to this number is on the disk, and so is what was there before there were
    /// numbers; `None` while no file holds all data.
    #[inline]
    pub(crate) fn synced(&self) -> Option<SeqNo> {
        self.synced_below.load(SeqCst).checked_sub(1).map(SeqNo)
    }

    /// True if the change with this number is on the disk.
    #[inline]
    pub(crate) fn is_synced(&self, number: SeqNo) -> bool {
        self.synced() >= Some(number)
    }

    /// True if the change with this number is not on the disk yet: all workers get
    /// [`Message::Released`] when it is, and who waits then asks again.
    ///
    /// [`Message::Released`]: crate::worker::message::Message::Released
    pub(crate) fn must_await(&self, number: SeqNo) -> bool {
        if self.is_synced(number) {
            return false;
        }
        if self.awaited.load(SeqCst) > number.0 {
            self.awaited.fetch_min(number.0, SeqCst);
        }
        // It may have been synced before worker 0 could see that somebody waits.
        !self.is_synced(number)
    }

    /// What is synced. True if somebody waits for it: all workers have to look, and those whose
    /// clients go on waiting say so again. For worker 0.
    pub(crate) fn publish_synced(&self, last: Option<SeqNo>) -> bool {
        let below = last.map_or(0, |last| last.0 + 1);
        self.synced_below.store(below, SeqCst);
        // Either this sees who waits, or they see what was just stored.
        self.awaited.load(SeqCst) < below && self.awaited.swap(u64::MAX, SeqCst) != u64::MAX
    }

    /// Makes the writer's figures visible. Returns the bytes in memory, with those that are handed
    /// over.
    pub(crate) fn publish(&self, journal: &Journal, handed_over: usize, now: MonoNs) -> usize {
        let writer = &journal.writer;
        let is_complete = writer.is_complete() && !journal.is_ending;
        self.is_complete.store(is_complete, SeqCst);
        self.is_whole.store(is_complete && journal.whole == Whole::Yes, Relaxed);
        self.size.store(writer.size(), Relaxed);
        self.base_size.store(writer.base_bytes, Relaxed);
        self.history.store(writer.history_bytes(), Relaxed);
        let backlog = writer.backlog() + handed_over;
        self.backlog.store(backlog as u64, Relaxed);
        self.memory.store((writer.memory() + handed_over) as u64, Relaxed);
        self.unwritten.store((writer.unwritten() + handed_over) as u64, Relaxed);
        self.durable.store(writer.durable().0, Relaxed);
        self.last_sync_ns.store(writer.last_sync_ns, Relaxed);
        self.is_rewriting.store(writer.is_rewriting(), Relaxed);
        self.is_syncing.store(writer.is_syncing(), Relaxed);
        if self.writer_syncs.swap(writer.syncs, Relaxed) < writer.syncs {
            self.syncs.fetch_add(1, Relaxed);
            self.synced_at.store(now.0, Relaxed);
        }
        backlog
    }
}
