//! The ends of connections of protocol 2. An error must be read: so the connection is not closed at
//! once, but half, and what its client still sends is thrown away until it has closed, too, or a
//! time is up.

use crate::ingest::producers::Owner;
use crate::ingest::v2::{Fault, Open, Producing, Stop};
use crate::worker::Worker;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, Socket};
use ingest::v2::write_error;

/// How long a client that was told of its end may take to close.
pub const LINGER_NS: u64 = 2_000_000_000;

impl<D: Driver<Message = Message>> Worker<D> {
    /// A listener has as many connections as it may.
    pub(crate) fn refuse_producer(&mut self, port: usize, socket: Socket) {
        self.core.shared.ingest.add_connection(self.core.id);
        let conn = self.adopt_ingest(port, socket);
        if let Some(c) = self.ingest.find(conn) {
            c.admitted = false;
        }
        self.end_producer(conn, Fault::Limit.into());
    }

    /// The connection ends: what is in is acknowledged, the error told, and nothing more read.
    pub(crate) fn end_producer(&mut self, conn: ConnId, why: Stop) {
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { return };
        c.closing = true;
        let port = c.port;
        let Some(p) = c.producing() else { return };
        let acks = p.flush(&mut out.bytes);
        let last_id = p.open.as_mut().map_or(0, Open::last_id);
        if let Stop::Fault(fault, text) = why {
            write_error(&mut out.bytes, fault.code(), last_id, text.as_bytes());
        }
        self.core.ingest_counters(port).acks.add(acks);
        self.leave_producer(conn);
        self.send_acks(conn, from);
        match why {
            Stop::Fault(fault, text) => {
                self.core.ingest_counters(port).faults.add(fault);
                self.ingest_error(conn, text);
            }
            Stop::Broken => self.ingest_error(conn, "its messages made a panic"),
            Stop::Bye | Stop::Parked | Stop::Full => {}
        }
        self.arm_end(conn);
        let Some(c) = self.ingest.find(conn) else { return };
        if !c.blocked && c.outbox.is_none() {
            self.linger(conn);
        }
    }

    /// However slowly its client reads what is left, the connection is closed after a while.
    pub(crate) fn arm_end(&mut self, conn: ConnId) {
        let until = self.core.turn.now().plus(LINGER_NS);
        let Some(c) = self.ingest.find(conn) else { return };
        c.until = until;
        self.ingest.ends.arm(conn.index, until);
    }

    /// Everything has left: says so, and throws away what still comes.
    pub(crate) fn linger(&mut self, conn: ConnId) {
        self.driver.end_output(conn);
        self.driver.resume(conn);
    }

    /// Closes whom the time to close is up for.
    pub(crate) fn end_lingering(&mut self, now: MonoNs) {
        while let Some(place) = self.ingest.ends.take(now) {
            let Some(c) = self.ingest.places[place as usize].as_deref() else { continue };
            let (conn, until) = (c.conn, c.until);
            if c.closing && until <= now {
                self.close_now(conn);
            } else if c.closing {
                self.ingest.ends.arm(place, until);
            }
        }
    }

    /// Its producer is without a connection from now on, unless a newer one has it.
    pub(crate) fn leave_producer(&mut self, conn: ConnId) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn) else { return };
        let Some(open) = c.producing().and_then(|p| p.open.take()) else { return };
        self.core.shared.ingest.producers.leave(&open.producer, open.epoch, now);
        self.set_held(conn, false);
        self.ingest.looks.remove(conn);
    }

    /// A newer connection has the producer of this one.
    pub(crate) fn oust(&mut self, owner: Owner) {
        let Owner { worker, conn, epoch } = owner;
        if worker == self.core.id {
            self.on_ousted(conn, epoch);
        } else {
            self.core.shared.post(worker, Message::Ousted { conn, epoch });
        }
    }

    /// The producer of one of our connections was taken over, unless that one is gone already.
    pub(crate) fn on_ousted(&mut self, conn: ConnId, epoch: u64) {
        let producing = self.ingest.find(conn).and_then(|c| c.producing());
        if producing.and_then(|p| p.open.as_ref()).is_some_and(|open| open.epoch == epoch) {
            self.end_producer(conn, Fault::TakenOver.into());
        }
    }

    /// Silence for the idle time: in the middle of a frame, or before Hello, it is an end.
    pub(crate) fn look_whether_silent(&mut self, conn: ConnId) {
        if self.ingest.find(conn).and_then(|c| c.producing()).is_some_and(|p| !p.may_be_silent()) {
            self.end_producer(conn, Fault::Idle.into());
        }
    }
}

impl Producing {
    /// True between two frames, and while the server does not read.
    fn may_be_silent(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.rest.is_some() || self.intake.is_between())
    }

    /// Since when silence counts: before Hello, bytes alone are no sign of life.
    pub(crate) fn since(&self, active: MonoNs) -> MonoNs {
        if self.open.is_some() { active } else { self.born }
    }
}

/// The error frame of a client that is refused before anything is read of it.
pub(crate) fn turned_away(protected: bool) -> Vec<u8> {
    let (fault, text) = if protected {
        (Fault::Authentication, "only local clients may connect: protected mode")
    } else {
        (Fault::Limit, Fault::Limit.text())
    };
    let mut frame = Vec::new();
    write_error(&mut frame, fault.code(), 0, text.as_bytes());
    frame
}
