//! Events of ingest connections: accepted, data, drained, silent, closed. A read is parsed in place
//! by the connection's policy. Its acknowledgements leave at the end of the read; timed ones leave
//! in one sweep per turn. Protocol 2 is in `v2`, the way of classic messages to a sink in
//! `classic`.
//!
//! Nothing here runs on the way of a command: the driver's events of connections without a session
//! come here.

use crate::ingest::connection::{IngestConn, Kind};
use crate::ingest::v2::ends::refusal;
use crate::sessions::output::Hold;
use crate::worker::Worker;
use crate::worker::message::Message;
use base::MonoNs;
use driver::{ConnId, Driver, PeerAddr, Segment, Socket, SocketOptions};
use ingest::Report;
use ingest::v2::Fault;

impl<D: Driver<Message = Message>> Worker<D> {
    /// Accepts a connection and hands it to the worker with the fewest connections and sessions.
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
            let why = if of.is_classic() { Vec::new() } else { refusal(protected) };
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

    /// Begins to serve a connection on this worker.
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
        self.await_numbers(conn);
        conn
    }

    /// Handles one read.
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
                if c.writer.is_some() {
                    self.write_block(conn, start, end);
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

    /// Counts the messages of a classic block, and sends the acknowledgements which it made due.
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

    /// Sets the timer of acknowledgements which are due later, unless it is set.
    #[inline]
    pub(crate) fn arm_acks(&mut self, conn: ConnId, had_due: bool) {
        let due = self.ingest.find(conn).and_then(|c| c.due());
        if let Some(due) = due.filter(|_| !had_due) {
            self.ingest.acks.arm(conn.index, due);
        }
    }

    /// Sends the acknowledgements at the end of the arena, or holds them until their messages are
    /// safe.
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

    /// Sends them at once. While the client does not read them, its messages are not received, so
    /// that never more than the acknowledgements of one read wait for it.
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

    /// The client has read its acknowledgements: its messages are received again.
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
            self.end_output(conn);
        } else if held {
            self.retry_ingest(conn);
        } else {
            self.driver.resume(conn);
        }
    }

    /// Stops receiving because the sink accepts nothing, or notes that it accepts messages again.
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

    /// Once per turn: due acknowledgements, retries of full sinks, idle connections.
    #[inline]
    pub(crate) fn sweep_ingest(&mut self) {
        if self.ingest.open == 0 {
            return;
        }
        let now = self.core.turn.now();
        self.retry_if_memory();
        if !self.ingest.syncing.is_empty() {
            self.release_fsynced();
        }
        if !self.ingest.holding.is_empty() {
            self.release_acks();
        }
        while let Some(place) = self.ingest.acks.take(now) {
            self.acknowledge_due(place, now);
        }
        if self.ingest.idle_ns != self.core.settings.ingest_idle_ns {
            self.rearm_idle();
        }
        while let Some(place) = self.ingest.idle.take(now) {
            self.close_if_idle(place, now);
        }
        self.close_expired(now);
    }

    fn acknowledge_due(&mut self, place: u32, now: MonoNs) {
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

    /// `ingest-idle-timeout` has changed, or the first connection was opened: sets the timers of
    /// all connections.
    fn rearm_idle(&mut self) {
        self.ingest.idle_ns = self.core.settings.ingest_idle_ns;
        self.ingest.idle.clear();
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        for c in self.ingest.places.iter().flatten() {
            self.ingest.idle.arm(c.conn.index, c.silent_since().plus(idle_ns));
        }
    }

    /// Closes an idle connection: after a flush, or at once if its client reads nothing.
    fn close_if_idle(&mut self, place: u32, now: MonoNs) {
        let Some(c) = self.ingest.places[place as usize].as_deref() else { return };
        let Some(idle_ns) = self.ingest.idle_ns else { return };
        let due = c.silent_since().plus(idle_ns);
        if due > now {
            return self.ingest.idle.arm(place, due);
        }
        let (conn, between, two) = (c.conn, c.is_between(), c.is_two());
        let (held, blocked, closing) = (c.held || c.outbox.is_some(), c.blocked, c.closing);
        self.ingest.idle.arm(place, now.plus(idle_ns));
        if closing && two {
            return; // it was sent its end; `close_expired` closes it
        }
        if held && !blocked && !closing {
            return; // the server is what keeps it silent
        }
        if blocked || closing {
            self.ingest_error(conn, "acknowledgements are not read");
            if let Some(c) = self.ingest.find(conn) {
                c.closing = true; // one error is enough
            }
            return self.close_now(conn);
        }
        if two {
            return self.close_if_silent(conn);
        }
        if !between {
            self.ingest_error(conn, "silence in the middle of a message");
        }
        self.close_ingest(conn);
    }

    /// Counts and logs an error of a connection.
    pub(crate) fn ingest_error(&mut self, conn: ConnId, what: &str) {
        let Some(c) = self.ingest.find(conn) else { return };
        let port = &self.core.shared.ingest.open[c.port];
        port.workers[self.core.id].errors.add(1);
        crate::log::verbose(format_args!(
            "Closing {} connection at {}: {what}",
            port.terms.protocol, port.addr
        ));
    }

    /// Acknowledges every whole message and closes when the acknowledgements have left.
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
        let acks = c.flush(&mut out.bytes, self.core.turn.now());
        self.core.ingest_counters(port).acks.add(acks);
        self.send_acks(conn, from);
    }

    /// A client which has stopped sending still gets its last acknowledgements. True if some are
    /// unsent: the connection is closed after them.
    pub(crate) fn drain_ingest(&mut self, conn: ConnId) -> bool {
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
        self.log_unfinished_message(conn);
        let Some(c) = self.ingest.find(conn) else { return false };
        if c.is_two() && !is_closing {
            self.arm_close(conn);
        }
        let Some(c) = self.ingest.find(conn) else { return false };
        c.closing = true;
        self.release_producer(conn);
        self.set_held(conn, false);
        self.ingest.memory_waiters.remove(conn);
        if !is_held {
            self.driver.close_after_flush(conn);
        }
        true
    }

    /// Logs an error if the connection ends inside a message.
    fn log_unfinished_message(&mut self, conn: ConnId) {
        if self.ingest.find(conn).is_some_and(|c| !c.is_between() && !c.closing) {
            self.ingest_error(conn, "it ends in the middle of a message");
        }
    }

    /// Removes a closed connection.
    pub(crate) fn remove_ingest(&mut self, conn: ConnId) {
        self.log_unfinished_message(conn);
        let Some(c) = self.ingest.find(conn) else { return };
        let port = c.port;
        self.release_producer(conn);
        self.set_held(conn, false);
        self.ingest.memory_waiters.remove(conn);
        let gone = self.ingest.places[conn.index as usize].take();
        self.ingest.open -= 1;
        self.core.ingest_counters(port).connections.subtract(1);
        self.core.shared.ingest.remove_connection(self.core.id);
        self.ingest.holding.retain(|held| *held != conn);
        self.ingest.syncing.remove(conn);
        if gone.is_some_and(|gone| gone.admitted) {
            self.core.shared.ingest.open[port].remove_connection();
        }
    }

    /// At shutdown: acknowledges every whole message, receives nothing more.
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

    /// Closes the remaining connections.
    pub(crate) fn close_all_ingest(&mut self) {
        for conn in self.ingest.all() {
            self.close_now(conn);
        }
    }
}
