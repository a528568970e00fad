//! Reads of connections of protocol 2. A connection whose messages its sink does not accept is
//! parked: not read until they are written.

use crate::ingest::v2::producing::{Context, Stop};
use crate::worker::Worker;
use crate::worker::message::Message;
use driver::{ConnId, Driver};

impl<D: Driver<Message = Message>> Worker<D> {
    /// Handles one read of a connection of protocol 2.
    pub(crate) fn on_producer_data(&mut self, conn: ConnId, start: usize, end: usize) {
        let (input, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn) else { return };
        let (port, had_due) = (c.port, c.due().is_some());
        let Some(p) = c.producing() else { return };
        let was_fsynced = p.is_fsynced;
        let out = &mut out.bytes;
        let (core, access) = (&mut self.core, &mut self.access);
        let mut ctx = Context { core, access, out, conn, port, previous_owner: None };
        let (used, done) = p.receive(&mut ctx, &input[start..end]);
        let is_held = matches!(done, Err(Stop::Parked | Stop::Full));
        p.kept = if is_held { end - start - used } else { 0 };
        p.finish_read(&mut ctx, done);
        let previous_owner = ctx.previous_owner;
        ctx.counters().bytes.add(used as u64);
        let (is_fsynced, awaits) = (p.is_fsynced, p.awaits());
        if is_fsynced && !was_fsynced {
            self.ingest.syncing.add(conn);
        }
        if let Some(seq) = awaits {
            self.wait_for_fsynced(seq);
        }
        self.arm_acks(conn, had_due);
        self.send_acks(conn, from);
        if let Some(owner) = previous_owner {
            self.close_previous_owner(owner);
        }
        if let Err(stop) = done {
            if is_held {
                self.driver.put_back(conn, start + used, end);
            }
            self.stop_producer(conn, stop);
        }
    }

    /// The sink accepts no more for now.
    pub(crate) fn park_producer(&mut self, conn: ConnId, why: Stop) {
        let now = self.core.turn.now();
        self.set_held(conn, true);
        if why == Stop::Full {
            self.ingest.memory_waiters.add(conn, now);
        }
    }

    /// While a file is loaded, the numbers of producers are not known: no Hello is read. True if
    /// the connection has to wait for that.
    pub(crate) fn await_numbers(&mut self, conn: ConnId) -> bool {
        let Some(p) = self.ingest.find(conn).and_then(|c| c.producing()) else { return false };
        if p.open.is_some() {
            return false;
        }
        p.accepted_at = self.core.turn.now();
        let is_loading = self.core.shared.load.is_on();
        if is_loading {
            self.park_producer(conn, Stop::Full);
        }
        is_loading
    }

    /// Retries the messages of a parked connection; if all are written, it is read again.
    pub(crate) fn retry_producer(&mut self, conn: ConnId) {
        if self.await_numbers(conn) {
            return;
        }
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn).filter(|c| c.held && !c.closing) else { return };
        let (port, had_due) = (c.port, c.due().is_some());
        let Some(p) = c.producing() else { return };
        let out = &mut out.bytes;
        let (core, access) = (&mut self.core, &mut self.access);
        let mut ctx = Context { core, access, out, conn, port, previous_owner: None };
        let done = p.open.as_mut().map_or(Ok(()), |open| open.retry(&mut ctx));
        p.finish_read(&mut ctx, done);
        if done.is_ok() {
            p.kept = 0; // it is received again
        }
        if let Some(seq) = p.awaits() {
            self.wait_for_fsynced(seq);
        }
        self.arm_acks(conn, had_due);
        self.send_acks(conn, from);
        match done {
            Ok(()) => {
                self.set_held(conn, false);
                if self.ingest.find(conn).is_some_and(|c| !c.blocked) {
                    self.driver.resume(conn);
                }
            }
            Err(stop) => self.stop_producer(conn, stop),
        }
        if let Some(c) = self.ingest.find(conn) {
            c.count_memory();
        }
    }

    /// Parks or ends the connection.
    pub(crate) fn stop_producer(&mut self, conn: ConnId, stop: Stop) {
        match stop {
            Stop::Parked | Stop::Full => self.park_producer(conn, stop),
            stop => self.end_producer(conn, stop),
        }
    }
}
