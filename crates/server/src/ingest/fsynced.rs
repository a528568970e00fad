//! Acknowledgements of the level *fsynced*: they leave when the journal has synced the records of
//! their messages.
//!
//! ```text
//! read: messages are written    v2/producing.rs    marks: number of the journal, message number
//! end of the read               wait_for_fsynced   the journal wakes this worker at that number
//! the journal has synced        Message::Released
//! next turn                     release_fsynced    one acknowledgement for all that is fsynced
//! ```
//!
//! What shows a number beside acknowledgements (Welcome, the last Ack, Error) waits in the outbox
//! of its connection (`acks.rs`). Credit does not wait: a producer may go on sending.

use crate::ingest::v2::producing::Stop;
use crate::sessions::outbox::Safe;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::SeqNo;
use base::sync::atomic::Ordering::Relaxed;
use config::AppendFsync;
use driver::Driver;
use ingest::v2::Fault;

const NO_FILE: &str = "fsynced: there is no append-only file, or it is not complete yet";
const NO_SYNC: &str = "fsynced: appendfsync is no";

impl Core {
    /// Why no acknowledgement can mean *fsynced*; `None` if it can.
    pub(crate) fn fsyncs_nothing(&self) -> Option<&'static str> {
        if self.shared.journal.is_complete.load(Relaxed) {
            (self.settings.appendfsync == AppendFsync::No).then_some(NO_SYNC)
        } else {
            Some(NO_FILE)
        }
    }

    /// Everything up to this number of the journal is fsynced; `None` without a file.
    #[inline]
    pub(crate) fn fsynced_up_to(&self) -> Option<u64> {
        self.shared.journal.synced().map(|number| number.0)
    }

    /// What is safe for those who wait for the disk.
    pub(crate) fn fsynced(&self, mut safe: Safe) -> Safe {
        safe.up_to.seq = safe.up_to.seq.min(SeqNo(self.fsynced_up_to().unwrap_or(0)));
        safe
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// A connection waits until everything up to this number is fsynced.
    pub(crate) fn wait_for_fsynced(&mut self, seq: SeqNo) {
        self.ingest.syncing.lowest = self.ingest.syncing.lowest.min(seq.0);
        if !self.core.shared.journal.must_await(seq) {
            self.core.shared.post(self.core.id, Message::Released); // it came meanwhile
        }
    }

    /// Acknowledges what is fsynced. Called once a turn while a connection has this level.
    #[cold]
    pub(crate) fn release_fsynced(&mut self) {
        if let Some(why) = self.core.fsyncs_nothing() {
            return self.end_fsynced(why);
        }
        let lowest = self.ingest.syncing.lowest;
        if lowest == u64::MAX || self.core.shared.journal.must_await(SeqNo(lowest)) {
            return;
        }
        let Some(fsynced) = self.core.fsynced_up_to() else { return };
        self.ingest.syncing.lowest = u64::MAX;
        let now = self.core.turn.now();
        let is_seen = !self.core.shared.journal.holds_replies.load(Relaxed);
        for conn in self.ingest.syncing.conns.clone() {
            let (_, out) = self.driver.io();
            let from = out.bytes.len();
            let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { continue };
            let port = c.port;
            let Some(p) = c.producing() else { continue };
            let acks = p.release(fsynced, is_seen, &mut out.bytes, now);
            let awaits = p.awaits();
            self.core.ingest_counters(port).acks.add(acks);
            self.send_acks(conn, from);
            if let Some(seq) = awaits {
                self.wait_for_fsynced(seq);
            }
        }
    }

    /// The file is turned off, or not synced any more: connections of this level end. What was not
    /// acknowledged is in memory; the producer learns how far when it comes back.
    #[cold]
    fn end_fsynced(&mut self, why: &'static str) {
        self.ingest.syncing.lowest = u64::MAX;
        for conn in std::mem::take(&mut self.ingest.syncing.conns) {
            let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { continue };
            c.outbox = None; // it says that something is fsynced
            let Some(p) = c.producing() else { continue };
            p.is_fsynced = false;
            if let Some(open) = &mut p.open {
                open.waits = None;
            }
            self.ingest.holding.retain(|held| *held != conn);
            self.end_producer(conn, Stop::Fault(Fault::Level, why));
        }
    }
}
