//! Classic ingest connections with a sink: a block is written into the sink first, and the policy
//! of the connection sees only messages which are in the key, so that nothing else is ever
//! acknowledged.
//!
//! While the sink accepts nothing, nothing more is received from the client, and TCP stops it. The
//! messages kept are retried when the keyspace says so ([`Message::Retry`]), or when there is
//! memory again ([`MemoryWaiters`](crate::ingest::memory_waiters::MemoryWaiters)).

use crate::ingest::connection::Kind;
use crate::ingest::memory_waiters::POLL_NS;
use crate::ingest::sink_writer::{Waits, WriteEnd};
use crate::worker::Worker;
use crate::worker::message::Message;
use driver::{ConnId, Driver};
use ingest::Report;

/// The capacity which the empty buffer of a connection keeps, bytes.
const BUFFER_KEPT_MAX: usize = 64 * 1024;
/// While memory is full, a message is received to its end if no more than this of it is there.
const SMALL_BYTES: usize = 16 * 1024;
/// The longest payload of a stream entry, whatever the limit says.
const STREAM_PAYLOAD_MAX: u32 = 1 << 29;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Writes the messages of one read into the sink.
    pub(crate) fn write_block(&mut self, conn: ConnId, start: usize, end: usize) {
        let Some(c) = self.ingest.find(conn).and_then(|c| c.classic()) else { return };
        let payload_max = c.payload_max(&self.core).min(STREAM_PAYLOAD_MAX);
        let (Some(writer), (input, _)) = (&mut c.writer, self.driver.io()) else { return };
        let block = &input[start..end];
        if writer.waits() {
            // Received before the driver stopped receiving.
            return writer.kept.extend_from_slice(block);
        }
        let with = (&mut self.core, &mut self.access);
        let (used, how) = writer.write(with, conn, block, payload_max);
        c.seen = c.seen.max(self.core.poured);
        if matches!(how, WriteEnd::Wait(_)) {
            writer.kept.extend_from_slice(&block[used..]);
        }
        let (had_due, now) = (c.policy.due().is_some(), self.core.turn.now());
        let (input, out) = self.driver.io();
        let from = out.bytes.len();
        if used > 0 {
            let block = &input[start..start + used];
            let report = c.policy.receive(block, now, payload_max, &mut out.bytes);
            self.after_receive(conn, from, report, had_due);
        }
        self.after_write(conn, how);
        if how == WriteEnd::All {
            self.stop_if_full(conn);
        }
    }

    /// Retries the messages which were kept.
    pub(crate) fn retry_ingest(&mut self, conn: ConnId) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn).filter(|c| !c.blocked && !c.closing) else { return };
        c.active = now;
        let Kind::Classic(c) = &mut c.kind else { return self.retry_producer(conn) };
        let payload_max = c.payload_max(&self.core).min(STREAM_PAYLOAD_MAX);
        let Some(writer) = c.writer.as_mut().filter(|writer| writer.waits()) else { return };
        writer.waits = Waits::No;
        let mut kept = std::mem::take(&mut writer.kept);
        let with = (&mut self.core, &mut self.access);
        let (used, how) = writer.write(with, conn, &kept, payload_max);
        c.seen = c.seen.max(self.core.poured);
        let had_due = c.policy.due().is_some();
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let mut report = Report::default();
        if used > 0 {
            report = c.policy.receive(&kept[..used], now, payload_max, &mut out.bytes);
        }
        kept.drain(..used);
        if matches!(how, WriteEnd::Wait(_)) || kept.capacity() <= BUFFER_KEPT_MAX {
            writer.kept = kept;
        }
        if how == WriteEnd::All {
            self.set_held(conn, false);
            self.driver.resume(conn); // acknowledgements that do not leave stop it again
        }
        self.after_receive(conn, from, report, had_due);
        self.after_write(conn, how);
        if let Some(c) = self.ingest.find(conn) {
            c.count_memory();
        }
    }

    /// Stops receiving a large message while data fills the memory. Unfinished messages alone do
    /// not stop it: if they did, none would ever be finished. They may take half of `maxmemory`;
    /// beyond that a connection whose message still grows is closed.
    fn stop_if_full(&mut self, conn: ConnId) {
        let Some(c) = self.ingest.find(conn) else { return };
        c.count_memory();
        let writer = c.classic().and_then(|c| c.writer.as_ref());
        if writer.is_none_or(|writer| writer.pieces.partial_bytes() <= SMALL_BYTES) {
            return;
        }
        if self.core.is_full() {
            self.after_write(conn, WriteEnd::Wait(Waits::Memory));
        } else if self.core.is_half_held_by_ingest() {
            self.ingest_error(conn, "memory is full of messages that are not whole");
            self.close_ingest(conn);
        }
    }

    /// Stops receiving from a connection whose sink did not accept a whole block.
    fn after_write(&mut self, conn: ConnId, how: WriteEnd) {
        let now = self.core.turn.now();
        match how {
            WriteEnd::All => {}
            WriteEnd::Wait(waits) => {
                let classic = self.ingest.find(conn).and_then(|c| c.classic());
                if let Some(writer) = classic.and_then(|c| c.writer.as_mut()) {
                    writer.waits = waits;
                }
                if waits == Waits::Memory {
                    self.ingest.memory_waiters.add(conn, now);
                }
                self.set_held(conn, true);
            }
            WriteEnd::Never(why) => {
                self.ingest_error(conn, why);
                self.close_ingest(conn);
            }
        }
    }

    /// Retries the connections which wait for memory, if there is memory again.
    pub(crate) fn retry_if_memory(&mut self) {
        let now = self.core.turn.now();
        if self.ingest.memory_waiters.at.is_none_or(|at| at > now) {
            return;
        }
        if self.core.is_full() || self.core.are_writes_paused() {
            self.ingest.memory_waiters.at = Some(now.plus(POLL_NS));
            return;
        }
        for conn in self.ingest.memory_waiters.drain() {
            self.retry_ingest(conn);
        }
    }
}
