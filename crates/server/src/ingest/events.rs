//! Ingest on a worker: its connections are no sessions. A read goes through the connection's policy
//! where it lies, and what that acknowledges leaves at once; timed acknowledgements leave in one
//! sweep per turn. What is special to protocol 2 is in `v2`, the way of classic messages to a
//! sink in `classic`.
//!
//! Nothing of this is on the way of a command: the driver's events of connections that are no
//! sessions come here.

use crate::ingest::connection::{IngestConn, Kind};
use crate::ingest::v2::ends::turned_away;
use crate::sessions::output::Hold;
use crate::worker::Worker;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, PeerAddr, Segment, Socket, SocketOptions};
use ingest::Report;
use ingest::v2::Fault;

impl<D: Driver<Message = Message>> Worker<D> {
    /// The acceptor gives a connection to the worker with the fewest, sessions included.
    pub(crate) fn on_ingest_accepted(&mut self, port: usize, socket: Socket, peer: &PeerAddr) {
        let shared = &self.core.shared;
        let of = &shared.ingest.open[port];
        let full = shared.sockets() >= u64::from(self.core.settings.maxclients);
        // The classic protocols know no password, so one that is set guards nothing here.
        let settings = &self.core.settings;
        let is_closed =
            if of.is_classic() { settings.protected_mode } else { settings.is_protected() };
        let protected = is_closed && !peer.is_local();
        if full || protected || (of.is_classic() && of.is_full()) {
            self.core.ingest_counters(port).errors.add(1);
            let why = if of.is_classic() { Vec::new() } else { turned_away(protected) };
            return socket.refuse(&why);
        }
        if of.is_full() {
            return self.refuse_producer(port, socket);
        }
        let target = shared.least_loaded();
        shared.ingest.add_connection(target);
        of.add_connection();
        if target == self.core.id {
            self.adopt_ingest(port, socket);
        } else {
            shared.post(target, Message::Ingest { socket, port: port as u32 });
        }
    }

    pub(crate) fn adopt_ingest(&mut self, port: usize, socket: Socket) -> ConnId {
        // Acknowledgements are small and nobody sends more behind them: waiting for more would only
        // delay them.
        let keepalive_s = self.core.settings.keepalive_s;
        let options = SocketOptions { nodelay: true, keepalive_s, gathers: true };
        let conn = self.driver.adopt(socket, &options);
        let now = self.core.turn.now();
        let counters = self.core.ingest_counters(port);
        counters.connections.add(1);
        counters.total_connections.add(1);
        let kind = Kind::of(&self.core.shared.ingest.open[port], &self.core);
        let memory = self.core.counters().ingest_memory.share();
        self.ingest.insert(IngestConn::new(conn, port, kind, memory, now));
        if let Some(idle_ns) = self.ingest.idle_ns {
            self.ingest.idle.arm(conn.index, now.plus(idle_ns));
        }
        conn
    }

    /// What one read brought.
    pub(crate) fn on_ingest_data(&mut self, conn: ConnId, start: usize, end: usize) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn).filter(|c| !c.closing) else { return };
        c.active = now;
        let counters = self.core.ingest_counters(c.port);
        counters.reads.add(1);
        match &mut c.kind {
            Kind::Two(_) => self.on_producer_data(conn, start, end),
            Kind::Classic(c) => {
                counters.bytes.add((end - start) as u64);
                if c.taking.is_some() {
                    self.take_block(conn, start, end);
                } else {
                    let payload_max = c.payload_max(&self.core);
                    let had_due = c.policy.due().is_some();
                    let (input, out) = self.driver.io();
                    let (block, from) = (&input[start..end], out.bytes.len());
                    let report = c.policy.receive(block, now, payload_max, &mut out.bytes);
                    self.after_receive(conn, from, report, had_due);
                }
            }
        }
        if let Some(c) = self.ingest.find(conn) {
            c.count_memory();
        }
        if self.window.is_empty() {
            self.driver.rewind();
        }
    }

    /// Counts what a classic block did, and sends what it made due.
    #[inline]
    pub(crate) fn after_receive(
        &mut self,
        conn: ConnId,
        from: usize,
        report: Report,
        had_due: bool,
    ) {
        let Some(c) = self.ingest.find(conn) else { return };
        let counters = self.core.ingest_counters(c.port);
        counters.messages.add(report.messages);
        counters.acks.add(report.acks);
        self.arm_acks(conn, had_due);
        self.send_acks(conn, from);
        if report.oversized {
            self.ingest_error(conn, "a message is larger than allowed");
            self.close_ingest(conn);
        }
    }

    /// Sees to acknowledgements that are due later, if none were before.
    #[inline]
    pub(crate) fn arm_acks(&mut self, conn: ConnId, had_due: bool) {
        let due = self.ingest.find(conn).and_then(|c| c.due());
        if let Some(due) = due.filter(|_| !had_due) {
            self.ingest.acks.arm(conn.index, due);
        }
    }

    /// Sends what was written to the arena's end, or keeps it until what it acknowledges is safe.
    pub(crate) fn send_acks(&mut self, conn: ConnId, from: usize) {
        let (_, out) = self.driver.io();
        if out.bytes.len() == from {
            return;
        }
        let Some(c) = self.ingest.find(conn) else { return };
        if (c.hold() != Hold::NONE || c.outbox.is_some()) && self.hold_acks(conn, from) {
            return;
        }
        self.send_acks_now(conn, from);
    }

    /// Sends it. What the client does not take stops the reading of its messages: so no more than
    /// one read's acknowledgements ever wait for it.
    pub(crate) fn send_acks_now(&mut self, conn: ConnId, from: usize) {
        let (_, out) = self.driver.io();
        let (end, blobs) = (out.bytes.len(), out.blobs.len());
        let waiting = self
            .driver
            .send_now(conn, Segment { start: from, end, blob_start: blobs, blob_end: blobs });
        self.driver.io().1.bytes.truncate(from);
        if waiting > 0
            && let Some(c) = self.ingest.find(conn)
        {
            c.unsent = waiting;
            c.count_memory();
            if !std::mem::replace(&mut c.blocked, true) {
                self.driver.pause(conn);
            }
        }
    }

    /// The client has taken its acknowledgements: more of its messages are read.
    pub(crate) fn on_ingest_drained(&mut self, conn: ConnId) {
        let now = self.core.turn.now();
        let Some(c) = self.ingest.find(conn) else { return };
        c.unsent = 0;
        c.count_memory();
        if !c.blocked || c.is_over_bound() {
            return;
        }
        c.blocked = false;
        c.active = now;
        if c.closing && c.outbox.is_some() {
            return; // it ends when that has left
        }
        let (held, ends) = (c.held, c.closing && c.is_two());
        if let Some(due) = c.due() {
            self.ingest.acks.arm(conn.index, due);
        }
        if ends {
            self.linger(conn);
        } else if held {
            self.retry_ingest(conn);
        } else {
            self.driver.resume(conn);
        }
    }

    /// The sink takes no more of this connection for now, or takes it again.
    pub(crate) fn set_held(&mut self, conn: ConnId, held: bool) {
        let Some(c) = self.ingest.find(conn).filter(|c| c.held != held) else { return };
        c.held = held;
        let counters = self.core.ingest_counters(c.port);
        if held {
            counters.blocked.add(1);
            self.driver.pause(conn);
        } else {
            counters.blocked.subtract(1);
        }
    }

    /// Acknowledgements whose time has come, and connections that were silent for too long.
    #[inline]
    pub(crate) fn sweep_ingest(&mut self) {
        if self.ingest.open == 0 {
            return;
        }
        let now = self.core.turn.now();
        self.look_for_memory();
        if !self.ingest.holding.is_empty() {
            self.release_acks();
        }
        while let Some(place) = self.ingest.acks.take(now) {
            self.tick_ingest(place, now);
        }
        if self.ingest.idle_ns != self.core.settings.ingest_idle_ns {
            self.follow_idle_time();
        }
        while let Some(place) = self.ingest.idle.take(now) {
            self.look_whether_idle(place, now);
        }
        self.end_lingering(now);
    }

    fn tick_ingest(&mut self, place: u32, now: MonoNs) {
        let Some(c) = self.ingest.places[place as usize].as_deref_mut() else { return };
        if c.blocked {
            return; // armed again once it is not
        }
        let (conn, port) = (c.conn, c.port);
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let acks = c.tick(now, &mut out.bytes);
        if let Some(due) = c.due() {
            self.ingest.acks.arm(place, due);
        }
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from);
    }

    /// `ingest-idle-timeout` was changed, or the first connection came: looks at every connection
    /// anew.
    fn follow_idle_time(&mut self) {
        self.ingest.idle_ns = self.core.settings.ingest_idle_ns;
        self.ingest.idle.clear();
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        for c in self.ingest.places.iter().flatten() {
            self.ingest.idle.arm(c.conn.index, c.since().plus(idle_ns));
        }
    }

    /// Closes a silent connection in good order, one that takes nothing at once.
    fn look_whether_idle(&mut self, place: u32, now: MonoNs) {
        let Some(c) = self.ingest.places[place as usize].as_deref() else { return };
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        let due = c.since().plus(idle_ns);
        if due > now {
            return self.ingest.idle.arm(place, due);
        }
        let (conn, between, two) = (c.conn, c.is_between(), c.is_two());
        let (held, blocked, closing) = (c.held || c.outbox.is_some(), c.blocked, c.closing);
        self.ingest.idle.arm(place, now.plus(idle_ns));
        if closing && two {
            return; // it was told of its end, and has another time to close
        }
        if held && !blocked && !closing {
            return; // it is not the client who is silent
        }
        if blocked || closing {
            self.ingest_error(conn, "acknowledgements are not read");
            if let Some(c) = self.ingest.find(conn) {
                c.closing = true; // one error is enough
            }
            return self.close_now(conn);
        }
        if two {
            return self.look_whether_silent(conn);
        }
        if !between {
            self.ingest_error(conn, "silence in the middle of a message");
        }
        self.close_ingest(conn);
    }

    pub(crate) fn ingest_error(&mut self, conn: ConnId, what: &str) {
        let Some(c) = self.ingest.find(conn) else { return };
        let port = &self.core.shared.ingest.open[c.port];
        port.workers[self.core.id].errors.add(1);
        crate::log::verbose(format_args!(
            "Closing {} connection at {}: {what}",
            port.terms.protocol, port.addr
        ));
    }

    /// Acknowledges what is whole and closes when that has left.
    pub(crate) fn close_ingest(&mut self, conn: ConnId) {
        self.flush_ingest(conn);
        if let Some(c) = self.ingest.find(conn) {
            c.closing = true;
            if c.outbox.is_none() {
                self.driver.close_after_flush(conn);
            }
        }
    }

    fn flush_ingest(&mut self, conn: ConnId) {
        let Some(c) = self.ingest.find(conn) else { return };
        let port = c.port;
        let (_, out) = self.driver.io();
        let from = out.bytes.len();
        let acks = c.flush(&mut out.bytes);
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from);
    }

    /// A client that has stopped sending still gets its last acknowledgements. True if some are yet
    /// to leave: the connection ends then.
    pub(crate) fn ingest_stays(&mut self, conn: ConnId) -> bool {
        let Some(c) = self.ingest.find(conn) else { return false };
        let (is_blocked, is_closing) = (c.blocked, c.closing);
        self.driver.keep_half_open(conn);
        if !is_blocked && !is_closing {
            self.flush_ingest(conn);
        }
        let waits = self.driver.backlog(conn) > 0;
        let Some(c) = self.ingest.find(conn).filter(|c| waits || c.outbox.is_some()) else {
            return false;
        };
        let is_held = c.outbox.is_some();
        self.tell_of_half(conn);
        let Some(c) = self.ingest.find(conn) else { return false };
        if c.is_two() && !is_closing {
            self.arm_end(conn);
        }
        let Some(c) = self.ingest.find(conn) else { return false };
        c.closing = true;
        self.leave_producer(conn);
        self.set_held(conn, false);
        self.ingest.looks.remove(conn);
        if !is_held {
            self.driver.close_after_flush(conn);
        }
        true
    }

    /// An end in the middle of a message is an error.
    fn tell_of_half(&mut self, conn: ConnId) {
        if self.ingest.find(conn).is_some_and(|c| !c.is_between() && !c.closing) {
            self.ingest_error(conn, "it ends in the middle of a message");
        }
    }

    /// The connection is gone.
    pub(crate) fn forget_ingest(&mut self, conn: ConnId) {
        self.tell_of_half(conn);
        let Some(c) = self.ingest.find(conn) else { return };
        let port = c.port;
        self.leave_producer(conn);
        self.set_held(conn, false);
        self.ingest.looks.remove(conn);
        let gone = self.ingest.places[conn.index as usize].take();
        self.ingest.open -= 1;
        self.core.ingest_counters(port).connections.subtract(1);
        self.core.shared.ingest.remove_connection(self.core.id);
        self.ingest.holding.retain(|held| *held != conn);
        if gone.is_some_and(|gone| gone.admitted) {
            self.core.shared.ingest.open[port].remove_connection();
        }
    }

    /// A shutdown: everything whole is acknowledged, nothing more is read.
    pub(crate) fn finish_ingest(&mut self) {
        for conn in self.ingest.all() {
            if self.ingest.find(conn).is_some_and(|c| c.is_two()) {
                self.end_producer(conn, Fault::Shutdown.into());
            } else {
                self.driver.pause(conn);
                self.close_ingest(conn);
            }
        }
    }

    /// Closes what is left.
    pub(crate) fn drop_ingest(&mut self) {
        for conn in self.ingest.all() {
            self.close_now(conn);
        }
    }
}
