//! Classic ingest on a worker: its connections are no sessions. A read goes through the connection's policy
//! where it lies, and what that acknowledges leaves at once; timed acknowledgements leave in one sweep per turn.
//!
//! Nothing of this is on the way of a command: the driver's events of connections that are no sessions come here.

use super::{Core, Worker};
use crate::ingest_ports::IngestCounters;
use crate::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, PeerAddr, Segment, Socket, SocketOptions};
use ingest::{Deadlines, Policy, Report};

/// The ingest connections of one worker.
#[derive(Default)]
pub struct Ingest {
    /// By the driver's connection index.
    places: Vec<Option<Box<IngestConn>>>,
    open: usize,
    /// Timed acknowledgements.
    acks: Deadlines,
    /// Looks at connections that may be idle.
    idle: Deadlines,
    /// The idle time that the deadlines were made for.
    idle_ns: Option<u64>,
}

/// One of them.
struct IngestConn {
    conn: ConnId,
    port: usize,
    policy: Policy,
    /// When bytes were received, or acknowledgements taken, last.
    active: MonoNs,
    /// Acknowledgements wait to be sent: nothing is received.
    blocked: bool,
    /// It closes once they have left.
    closing: bool,
}

impl Ingest {
    #[inline]
    fn find(&mut self, conn: ConnId) -> Option<&mut IngestConn> {
        let place = self.places.get_mut(conn.index as usize)?;
        place.as_deref_mut().filter(|c| c.conn == conn)
    }

    /// True if there is no connection.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// When the sweep has something to do, or `until` if that is earlier.
    #[inline]
    pub fn next_wake(&self, until: Option<MonoNs>) -> Option<MonoNs> {
        if self.open == 0 {
            return until;
        }
        [until, self.acks.next(), self.idle.next()].into_iter().flatten().min()
    }
}

impl Core {
    fn ingest_counters(&self, port: usize) -> &IngestCounters {
        &self.shared.ingest.open[port].workers[self.id]
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// The acceptor gives a connection to the worker with the fewest, sessions included.
    pub(super) fn on_ingest_accepted(&mut self, port: usize, socket: Socket, peer: &PeerAddr) {
        let shared = &self.core.shared;
        let full = shared.sockets() >= u64::from(self.core.settings.maxclients);
        if full || (self.core.settings.is_protected() && !peer.is_local()) {
            self.core.ingest_counters(port).errors.add(1);
            socket.refuse(b"");
            return;
        }
        let target = shared.least_loaded();
        shared.ingest.came(target);
        if target == self.core.id {
            self.adopt_ingest(port, socket);
        } else {
            shared.post(target, Message::Ingest { socket, port: port as u32 });
        }
    }

    pub(super) fn adopt_ingest(&mut self, port: usize, socket: Socket) {
        // Acknowledgements are small and nobody sends more behind them: waiting for more would only delay them.
        let options = SocketOptions { nodelay: true, keepalive_s: self.core.settings.keepalive_s };
        let conn = self.driver.adopt(socket, &options);
        let now = self.core.now;
        let counters = self.core.ingest_counters(port);
        counters.connections.add(1);
        counters.total_connections.add(1);
        let policy = Policy::new(self.core.shared.ingest.open[port].strategy, now);
        let at = conn.index as usize;
        if self.ingest.places.len() <= at {
            self.ingest.places.resize_with(at + 1, || None);
        }
        self.ingest.places[at] = Some(Box::new(IngestConn {
            conn,
            port,
            policy,
            active: now,
            blocked: false,
            closing: false,
        }));
        self.ingest.open += 1;
        if let Some(idle_ns) = self.ingest.idle_ns {
            self.ingest.idle.arm(conn.index, now.plus(idle_ns));
        }
    }

    /// What one read brought.
    pub(super) fn on_ingest_data(&mut self, conn: ConnId, start: usize, end: usize) {
        let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { return };
        let (now, payload_max) = (self.core.now, self.core.settings.ingest_payload_max);
        c.active = now;
        let (port, was_due) = (c.port, c.policy.due());
        let (input, out) = self.driver.io();
        let from = out.bytes.len();
        let report = c.policy.receive(&input[start..end], now, payload_max, &mut out.bytes);
        let due = c.policy.due();
        if let Some(due) = due.filter(|_| was_due.is_none()) {
            self.ingest.acks.arm(conn.index, due);
        }
        self.core.ingest_counters(port).count(end - start, report);
        self.send_acks(conn, from);
        if report.oversized {
            self.ingest_error(conn, "a message is larger than ingest-max-message");
            self.close_ingest(conn);
        }
        if self.window.is_empty() {
            self.driver.rewind();
        }
    }

    /// Sends what was written to the arena's end. What the client does not take stops the reading of its messages:
    /// so no more than one read's acknowledgements ever wait.
    fn send_acks(&mut self, conn: ConnId, from: usize) {
        let (_, out) = self.driver.io();
        let (end, blobs) = (out.bytes.len(), out.blobs.len());
        if end == from {
            return;
        }
        let waiting = self
            .driver
            .send(conn, Segment { start: from, end, blob_start: blobs, blob_end: blobs });
        self.driver.io().1.bytes.truncate(from);
        if waiting > 0
            && let Some(c) = self.ingest.find(conn)
            && !c.blocked
        {
            c.blocked = true;
            self.driver.pause(conn);
        }
    }

    /// The client has taken its acknowledgements: more of its messages are read.
    pub(super) fn on_ingest_drained(&mut self, conn: ConnId) {
        let now = self.core.now;
        let Some(c) = self.ingest.find(conn).filter(|c| c.blocked) else { return };
        c.blocked = false;
        c.active = now;
        if let Some(due) = c.policy.due() {
            self.ingest.acks.arm(conn.index, due);
        }
        self.driver.resume(conn);
    }

    /// Acknowledgements whose time has come, and connections that were silent for too long.
    #[inline]
    pub(super) fn sweep_ingest(&mut self) {
        if self.ingest.open == 0 {
            return;
        }
        let now = self.core.now;
        while let Some(place) = self.ingest.acks.take(now) {
            self.tick_ingest(place, now);
        }
        if self.ingest.idle_ns != self.core.settings.ingest_idle_ns {
            self.follow_idle_time();
        }
        while let Some(place) = self.ingest.idle.take(now) {
            self.look_whether_idle(place, now);
        }
    }

    fn tick_ingest(&mut self, place: u32, now: MonoNs) {
        let Some(c) = self.ingest.places[place as usize].as_deref_mut() else { return };
        if c.blocked {
            return; // armed again once it is not
        }
        let (conn, port) = (c.conn, c.port);
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let acks = c.policy.tick(now, &mut out.bytes);
        if let Some(due) = c.policy.due() {
            self.ingest.acks.arm(place, due);
        }
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from);
    }

    /// `ingest-idle-timeout` was changed, or the first connection came: looks at every connection anew.
    fn follow_idle_time(&mut self) {
        self.ingest.idle_ns = self.core.settings.ingest_idle_ns;
        self.ingest.idle.clear();
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        for c in self.ingest.places.iter().flatten() {
            self.ingest.idle.arm(c.conn.index, c.active.plus(idle_ns));
        }
    }

    /// Closes a silent connection in good order, one that takes nothing at once.
    fn look_whether_idle(&mut self, place: u32, now: MonoNs) {
        let Some(c) = self.ingest.places[place as usize].as_deref() else { return };
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        let due = c.active.plus(idle_ns);
        if due > now {
            return self.ingest.idle.arm(place, due);
        }
        let (conn, stuck, between) = (c.conn, c.blocked || c.closing, c.policy.is_between());
        if stuck {
            self.ingest_error(conn, "acknowledgements are not read");
            if let Some(c) = self.ingest.find(conn) {
                c.closing = true; // one error is enough
            }
            return self.close_now(conn);
        }
        if !between {
            self.ingest_error(conn, "silence in the middle of a message");
        }
        self.ingest.idle.arm(place, now.plus(idle_ns));
        self.close_ingest(conn);
    }

    fn ingest_error(&mut self, conn: ConnId, what: &str) {
        let Some(c) = self.ingest.find(conn) else { return };
        let port = &self.core.shared.ingest.open[c.port];
        port.workers[self.core.id].errors.add(1);
        crate::log::verbose(format_args!(
            "Closing {} connection at {}: {what}",
            port.strategy, port.addr
        ));
    }

    /// Acknowledges what is whole and closes when that has left.
    fn close_ingest(&mut self, conn: ConnId) {
        self.flush_ingest(conn);
        if let Some(c) = self.ingest.find(conn) {
            c.closing = true;
            self.driver.close_after_flush(conn);
        }
    }

    fn flush_ingest(&mut self, conn: ConnId) {
        let Some(c) = self.ingest.find(conn) else { return };
        let port = c.port;
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let acks = c.policy.flush(&mut out.bytes);
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from);
    }

    /// The connection is gone. A client that has only stopped sending still gets its last acknowledgement.
    pub(super) fn forget_ingest(&mut self, conn: ConnId) {
        let Some(c) = self.ingest.find(conn) else { return };
        let (port, half) = (c.port, !c.policy.is_between() && !c.closing);
        if !c.blocked && !c.closing {
            let (_, out) = self.driver.io();
            let (from, blobs) = (out.bytes.len(), out.blobs.len());
            let acks = c.policy.flush(&mut out.bytes);
            let end = out.bytes.len();
            if end > from {
                let last = Segment { start: from, end, blob_start: blobs, blob_end: blobs };
                self.driver.send_parting(conn, last);
                self.driver.io().1.bytes.truncate(from);
                self.core.ingest_counters(port).acks.add(acks);
            }
        }
        if half {
            self.ingest_error(conn, "it ends in the middle of a message");
        }
        self.ingest.places[conn.index as usize] = None;
        self.ingest.open -= 1;
        self.core.ingest_counters(port).connections.subtract(1);
        self.core.shared.ingest.left(self.core.id);
    }

    /// A shutdown: everything whole is acknowledged, nothing more is read.
    pub(super) fn finish_ingest(&mut self) {
        let open: Vec<ConnId> = self.ingest.places.iter().flatten().map(|c| c.conn).collect();
        for conn in open {
            self.driver.pause(conn);
            self.close_ingest(conn);
        }
    }

    /// Closes what is left.
    pub(super) fn drop_ingest(&mut self) {
        let open: Vec<ConnId> = self.ingest.places.iter().flatten().map(|c| c.conn).collect();
        for conn in open {
            self.close_now(conn);
        }
    }
}

impl IngestCounters {
    #[inline]
    fn count(&self, bytes: usize, report: Report) {
        self.reads.add(1);
        self.bytes.add(bytes as u64);
        self.messages.add(report.messages);
        self.acks.add(report.acks);
    }
}
