//! The ends of connections of protocol 2. The client must be able to read the error, so only the
//! sending direction is closed at first. What the client still sends is discarded until it closes,
//! too, or a deadline passes.

use crate::ingest::producers::Owner;
use crate::ingest::v2::producing::{Open, Producing, Stop};
use crate::worker::Worker;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, Socket};
use ingest::v2::{Fault, write_error};

/// How long a client may take to close after it was sent the end.
pub const CLOSE_NS: u64 = 2_000_000_000;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Refuses a connection because its listener has as many as allowed.
    pub(crate) fn refuse_producer(&mut self, port: usize, socket: Socket) {
        self.core.shared.ingest.add_connection(self.core.id);
        let conn = self.adopt_ingest(port, socket);
        if let Some(c) = self.ingest.find(conn) {
            c.admitted = false;
        }
        self.end_producer(conn, Fault::Limit.into());
    }

    /// Ends a connection: acknowledges every written message, sends the error, reads nothing more.
    pub(crate) fn end_producer(&mut self, conn: ConnId, why: Stop) {
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { return };
        c.closing = true;
        let port = c.port;
        let Some(p) = c.producing() else { return };
        let acks = p.flush(&mut out.bytes, self.core.turn.now());
        let last_id = p.open.as_mut().map_or(0, Open::last_id);
        if let Stop::Fault(fault, text) = why {
            write_error(&mut out.bytes, fault.code(), last_id, text.as_bytes());
        }
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from); // the producer says what they wait for
        self.release_producer(conn);
        match why {
            Stop::Fault(fault, text) => {
                self.core.ingest_counters(port).faults.add(fault);
                self.ingest_error(conn, text);
            }
            Stop::Broken => {
                self.ingest_error(conn, "the server panicked while it wrote the messages");
            }
            Stop::Bye | Stop::Parked | Stop::Full => {}
        }
        self.arm_close(conn);
        let Some(c) = self.ingest.find(conn) else { return };
        if !c.blocked && c.outbox.is_none() {
            self.end_output(conn);
        }
    }

    /// Sets the deadline at which the connection is closed, however slowly its client reads.
    pub(crate) fn arm_close(&mut self, conn: ConnId) {
        let until = self.core.turn.now().plus(CLOSE_NS);
        let Some(c) = self.ingest.find(conn) else { return };
        c.until = until;
        self.ingest.ends.arm(conn.index, until);
    }

    /// Everything has left: ends the output, and discards further input.
    pub(crate) fn end_output(&mut self, conn: ConnId) {
        self.driver.end_output(conn);
        self.driver.resume(conn);
    }

    /// Closes connections whose deadline has passed.
    pub(crate) fn close_expired(&mut self, now: MonoNs) {
        while let Some(place) = self.ingest.ends.take(now) {
            let Some(c) = self.ingest.places[place as usize].as_deref() else { continue };
            let (conn, until) = (c.conn, c.until);
            if c.closing && until <= now && c.outbox.is_some() && self.core.awaits_journal() {
                self.arm_close(conn); // the end of the server will release its acknowledgements
            } else if c.closing && until <= now {
                self.close_now(conn);
            } else if c.closing {
                self.ingest.ends.arm(place, until);
            }
        }
    }

    /// Disconnects its producer, unless a newer connection owns it.
    pub(crate) fn release_producer(&mut self, conn: ConnId) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn) else { return };
        let Some(open) = c.producing().and_then(|p| p.open.take()) else { return };
        self.core.shared.ingest.producers.leave(&open.producer, open.epoch, now);
        self.set_held(conn, false);
        self.ingest.memory_waiters.remove(conn);
    }

    /// Has the connection closed from which a newer one took the producer over.
    pub(crate) fn close_previous_owner(&mut self, owner: Owner) {
        let Owner { worker, conn, epoch } = owner;
        if worker == self.core.id {
            self.on_taken_over(conn, epoch);
        } else {
            self.core.shared.post(worker, Message::TakenOver { conn, epoch });
        }
    }

    /// The producer of a connection of this worker was taken over: ends it, if it is still there.
    pub(crate) fn on_taken_over(&mut self, conn: ConnId, epoch: u64) {
        let producing = self.ingest.find(conn).and_then(|c| c.producing());
        if producing.and_then(|p| p.open.as_ref()).is_some_and(|open| open.epoch == epoch) {
            self.end_producer(conn, Fault::TakenOver.into());
        }
    }

    /// Ends a connection which was silent for the idle time inside a frame or before Hello.
    pub(crate) fn close_if_silent(&mut self, conn: ConnId) {
        if self.ingest.find(conn).and_then(|c| c.producing()).is_some_and(|p| !p.may_be_silent()) {
            self.end_producer(conn, Fault::Idle.into());
        }
    }
}

impl Producing {
    /// True between two frames, and while the server does not read.
    fn may_be_silent(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.unwritten.is_some() || self.intake.is_between())
    }

    /// When its silence began. Before Hello, bytes alone do not count as activity.
    pub(crate) fn silent_since(&self, active: MonoNs) -> MonoNs {
        if self.open.is_some() { active } else { self.accepted_at }
    }
}

/// The error frame for a client which is refused before anything is read from it.
pub(crate) fn refusal(protected: bool) -> Vec<u8> {
    let (fault, text) = if protected {
        (Fault::Authentication, "only local clients may connect: protected mode")
    } else {
        (Fault::Limit, Fault::Limit.text())
    };
    let mut frame = Vec::new();
    write_error(&mut frame, fault.code(), 0, text.as_bytes());
    frame
}
