//! Connections of protocol 2 whose messages their sink does not take now: not read until it does.

use crate::ingest::v2::{Room, Stop};
use crate::worker::Worker;
use crate::worker::message::Message;
use driver::{ConnId, Driver};

impl<D: Driver<Message = Message>> Worker<D> {
    /// The sink takes no more for now.
    pub(crate) fn hold_producer(&mut self, conn: ConnId, why: Stop) {
        let now = self.core.turn.now();
        self.set_held(conn, true);
        if why == Stop::Full {
            self.ingest.looks.add(conn, now);
        }
    }

    /// Tries the messages of one that is held back again; if they are in, it is read again.
    pub(crate) fn retry_producer(&mut self, conn: ConnId) {
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn).filter(|c| c.held && !c.closing) else { return };
        let (port, had_due) = (c.port, c.due().is_some());
        let Some(p) = c.producing() else { return };
        let out = &mut out.bytes;
        let (core, access) = (&mut self.core, &mut self.access);
        let mut room = Room { core, access, out, conn, port, ousted: None };
        let done = p.open.as_mut().map_or(Ok(()), |open| open.retry(&mut room));
        p.finish_read(&mut room, done);
        if done.is_ok() {
            p.kept = 0; // it is received again
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

    /// It goes no further, for now or at all.
    pub(crate) fn stop_producer(&mut self, conn: ConnId, stop: Stop) {
        match stop {
            Stop::Parked | Stop::Full => self.hold_producer(conn, stop),
            stop => self.end_producer(conn, stop),
        }
    }
}
