//! The append-only file: every change, written by worker 0 as it comes.
//!
//! ```text
//! sections of all workers          keyspace::journal::Handover
//!   finish: number, record  --->     batches, handed over when a section ends
//!                                          |  Message::Journal, if worker 0 sleeps
//!                                          v
//! worker 0, once a turn (driving.rs):  merge.rs    one stream, in the order of numbers
//!                                      writer.rs   segments, writes, syncs, failures
//!                                      writer/cut.rs   rewrites
//!                                      writer/lost.rs  files that are gone
//!                                      ages.rs     how long the oldest of it waits
//!                                      pieces.rs   what was gathered and is not durable
//!                                      pause.rs    when rewrites follow which have failed
//!                                      steps.rs    folder and manifest
//!                                          |
//!                                          v
//!                                      Shared::safe_seq, Message::Released: replies leave
//! ```
//!
//! `status.rs` and `stream.rs` are what everybody knows of it, `begin.rs` how it begins and ends:
//! when the server starts, with CONFIG SET appendonly, and how a rewrite is wanted. The base of a
//! rewrite is a save (`persist/save`) whose moment is the cut at which the writer changes to a new
//! segment. `docs/design/0022-journal.md` gives the reasons.

mod ages;
pub(crate) mod begin;
pub(crate) mod driving;
pub(crate) mod merge;
pub(crate) mod pause;
mod pieces;
pub mod status;
pub(crate) mod steps;
pub mod stream;
pub(crate) mod writer;

use crate::persist::journal::writer::Writer;
use base::{FenceNo, MonoNs, SeqNo};
use keyspace::journal::{Batch, Handover};

/// Bytes of records in memory above which writers wait, until they are half as many.
pub(crate) const BACKLOG_BYTES_MAX: usize = 256 << 20;

/// Whether everything that was acknowledged is in the files. What was acknowledged while the first
/// base was written may still be in memory when that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// There is no base.
    No,
    /// Replies are held, but by workers which have not passed this fence not yet.
    Fence(FenceNo),
    /// What was not held has numbers up to this one.
    Behind(SeqNo),
    /// It is.
    Yes,
}

/// The append-only file at worker 0.
pub(crate) struct Journal {
    pub writer: Writer,
    pub whole: Whole,
    /// Scratch: batches that were just taken.
    pub taken: Vec<Batch>,
    /// The server starts, and serves its clients once the file is complete.
    pub opens_server: bool,
    /// It ends once everything is written (CONFIG SET appendonly no).
    pub is_ending: bool,
    /// When it has work although nothing happens.
    pub wake_at: Option<MonoNs>,
    /// Since when the disk fails.
    pub trouble_since: Option<MonoNs>,
    /// A base cannot take over, which was told.
    pub takeover_fails: bool,
    /// When its size is compared with that of its base.
    pub check_at: MonoNs,
}

impl Journal {
    /// Takes over what was handed over.
    pub fn take(&mut self, recorded: &Handover) {
        recorded.take(&mut self.taken);
        for batch in self.taken.drain(..) {
            self.writer.push(batch);
        }
    }

    /// Everything that was recorded is in the files, and synced if there are syncs.
    pub fn is_flushed(&self, recorded: &Handover) -> bool {
        recorded.bytes() == 0 && self.writer.is_idle()
    }

    /// The same; or there is no base, so no file holds anything.
    pub fn may_end(&self, recorded: &Handover) -> bool {
        !self.writer.is_complete() || self.is_flushed(recorded)
    }
}
