//! The life of a session: accepted, handed over, woken, drained, closed; and the handling of
//! messages from other workers.

use crate::persist::save::run::Answer;
use crate::sessions::card::{ClientCard, flag};
use crate::sessions::session::{Session, Suspended, gate};
use crate::worker::Worker;
use crate::worker::message::Message;
use base::sync::Arc;
use base::sync::atomic::AtomicU32;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use driver::{CloseReason, ConnId, Driver, ListenerId, PeerAddr, Socket, SocketOptions};
use keyspace::Parked;

const MAXCLIENTS_ERROR: &[u8] = b"-ERR max number of clients reached\r\n";
const PROTECTED_ERROR: &[u8] = b"-DENIED SheafDB is running in protected mode because protected mode is enabled and \
no password is set for the default user. In this mode connections are only accepted from the loopback interface. To connect \
from elsewhere, set a password with 'requirepass', or start the server with '--protected-mode no' if the network is trusted.\r\n";

impl<D: Driver<Message = Message>> Worker<D> {
    /// Accepts a connection and hands it to the worker with the fewest. Only the acceptor has
    /// listeners.
    pub(crate) fn on_accepted(&mut self, listener: ListenerId, socket: Socket, peer: PeerAddr) {
        self.core.follow();
        let shared = &self.core.shared;
        if let Some(port) = shared.ingest.find(listener) {
            return self.on_ingest_accepted(port, socket, &peer);
        }
        shared.connections_received.fetch_add(1, Relaxed);
        if shared.sockets() >= u64::from(self.core.settings.maxclients) {
            shared.connections_rejected.fetch_add(1, Relaxed);
            socket.refuse(MAXCLIENTS_ERROR);
            return;
        }
        if self.core.settings.is_protected() && !peer.is_local() {
            shared.connections_rejected.fetch_add(1, Relaxed);
            socket.refuse(PROTECTED_ERROR);
            return;
        }
        let id = shared.next_client_id.fetch_add(1, Relaxed);
        let target = shared.least_loaded();
        shared.workers[target].connections.fetch_add(1, Relaxed);
        if target == self.core.id {
            self.adopt(socket, &peer, id);
        } else {
            shared.post(target, Message::Connection { socket, peer, id });
        }
    }

    fn adopt(&mut self, socket: Socket, peer: &PeerAddr, id: u64) {
        self.core.follow();
        // Not `gathers`: commands written one by one with TCP_NODELAY lose by waiting, and the
        // trials of patience do not always detect it.
        let keepalive_s = self.core.settings.keepalive_s;
        let options = SocketOptions { nodelay: true, keepalive_s, gathers: false };
        let fd = socket.number();
        let conn = self.driver.adopt(socket, &options);
        let addr = peer.to_string();
        let now_s = self.core.turn.unix_ms().0 / 1000;
        let card = Arc::new(ClientCard {
            // Both ends of a unix socket are its path, which a handed-over socket does not know.
            laddr: if peer.is_unix() {
                addr.clone()
            } else {
                self.driver.local_addr(conn).to_string()
            },
            addr,
            fd,
            flags: AtomicU32::new(if peer.is_unix() { flag::UNIX } else { 0 }),
            ..ClientCard::new(id, self.core.id as u32, conn, now_s)
        });
        self.core.shared.registry.insert(card.clone());
        let need_auth = self.core.settings.needs_password();
        let mut session = Session::new(
            conn,
            card,
            need_auth,
            &self.core.counters().client_memory,
            self.core.turn.now(),
        );
        session.is_local = peer.is_local();
        self.core.insert_session(Box::new(session));
    }

    /// A peer whose input is not read has stopped sending. A client which waits for keys, for the
    /// end of a pause or for a thaw is closed, because that wait may never end (Redis does so for
    /// the first two); what it sent behind is not executed. Every other suspension ends by itself:
    /// its replies and the input behind it are wanted, and the end is read after them.
    pub(crate) fn on_hangup(&mut self, conn: ConnId, unread: bool) {
        let Some(session) = self.core.session_mut(conn) else {
            // Messages which its sink has not accepted are wanted; the end is read after them.
            let is_held = self.ingest.find(conn).is_some_and(|c| c.held);
            if !unread && !is_held && self.driver.backlog(conn) == 0 {
                self.on_closed(conn, CloseReason::Peer);
            }
            return;
        };
        match &session.suspended {
            Suspended::Blocked(blocked) if blocked.ticket.claim() => {
                self.core.unblock(conn);
            }
            Suspended::Pause => self.core.end_pause_wait(conn),
            // A target of MIGRATE says for how long its slots are frozen.
            Suspended::Parked(Parked::Frozen(_) | Parked::Thaw | Parked::Freeze)
            | Suspended::Disk => {}
            // It runs once it is woken, but keeps no others out until then.
            Suspended::Parked(_) => return session.end_turn(),
            // (A wait which has just been served: the reply is on its way.)
            Suspended::Blocked(_)
            | Suspended::No
            | Suspended::Sleep(_)
            | Suspended::Task(_)
            | Suspended::TaskParked(_)
            | Suspended::Migrating
            | Suspended::Rewriting(_)
            | Suspended::Saving(_)
            | Suspended::Releasing
            | Suspended::Spent => return,
        }
        let Some(session) = self.core.session_mut(conn) else { return };
        session.assembler = None;
        session.count_input(0);
        session.finish();
        self.core.turn.closing.push(conn);
    }

    /// The driver reports the end of a connection.
    pub(crate) fn on_closed(&mut self, conn: ConnId, why: CloseReason) {
        self.run_window(); // its earlier commands were received before the close
        if why == CloseReason::Peer && self.drains_first(conn) {
            return;
        }
        self.close_now(conn);
    }

    /// A client which may only have stopped sending still gets its held replies. True if there are
    /// some: the connection is closed after them.
    fn drains_first(&mut self, conn: ConnId) -> bool {
        let Some(session) = self.core.session_mut(conn) else { return self.drain_ingest(conn) };
        if session.outbox.is_none() {
            return false;
        }
        session.assembler = None;
        session.count_input(0);
        let is_closing = session.close_after_reply;
        session.finish();
        if !is_closing {
            self.core.turn.closing.push(conn);
        }
        self.driver.keep_half_open(conn);
        true
    }

    /// Closes at once; replies not sent are lost.
    pub(crate) fn close_now(&mut self, conn: ConnId) {
        self.remove_session(conn);
        self.driver.release(conn);
    }

    /// Removes a session and everything that others keep for it.
    fn remove_session(&mut self, conn: ConnId) {
        if self.core.session_mut(conn).is_none() {
            return self.remove_ingest(conn);
        }
        self.core.end_monitor(conn);
        self.core.end_subscriptions(conn);
        let (_, out) = self.driver.io();
        self.core.turn.output.close(out);
        self.core.turn.output.segments.retain(|s| s.session != conn.index);
        let Some(mut session) = self.core.sessions[conn.index as usize].take() else { return };
        self.core.holding.conns.retain(|held| *held != conn);
        self.core.release_watches(conn, session.watched.take());
        self.core.free_queue(session.multi.take());
        if matches!(session.suspended, Suspended::Sleep(_)) {
            self.core.tasks.sleeping = None;
            self.access.open_world();
        }
        self.core.forget_blocked(&mut session);
        if matches!(session.suspended, Suspended::Spent) {
            self.core.quotas.remove(conn);
        }
        self.core.shared.registry.remove(session.card.id);
        session.card.set_flag(flag::GONE, true);
        self.core.counters().connections.fetch_sub(1, Relaxed);
    }

    /// Called whenever the unsent replies of a session have changed. While the peer reads slower
    /// than we write, or more is held than allowed (`Outbox::is_over_bound`), nothing is received
    /// from it. Above its output limit it is closed.
    pub(crate) fn on_unsent(&mut self, conn: ConnId) {
        let (unsent, backlog) = (self.unsent(conn), self.driver.backlog(conn));
        let all_over = self.core.holding.is_over_bound;
        let Some(session) = self.core.session_mut(conn) else { return };
        session.card.output_bytes.store(unsent as u64, Relaxed);
        session.note_sent(backlog);
        session.replies_held.set(unsent as u64);
        let was_above = session.soft_limit_since.is_some();
        let over_bound = session.outbox.as_ref().is_some_and(|o| all_over || o.is_over_bound());
        let blocks = backlog > 0 || over_bound;
        if blocks {
            session.end_turn(); // a client which does not read keeps nobody out
        }
        match (std::mem::replace(&mut session.output_blocked, blocks), blocks) {
            (false, true) => self.driver.pause(conn),
            (true, false) => self.unblock_output(conn),
            _ => {}
        }
        if self.is_above_soft(conn, unsent) && !was_above {
            self.core.above_soft.push(conn);
        }
    }

    /// Bytes which have not left, including held replies and pushes behind a long reply.
    fn unsent(&mut self, conn: ConnId) -> usize {
        let held = self.core.session_mut(conn).map_or(0, |s| {
            [&s.outbox, &s.pushes].into_iter().flatten().map(|outbox| outbox.len()).sum()
        });
        self.driver.backlog(conn) + held
    }

    /// Closes a client which is above the hard limit, or was above the soft one for too long. True
    /// if it is above the soft one and must be checked again.
    fn is_above_soft(&mut self, conn: ConnId, unsent: usize) -> bool {
        let now = self.core.turn.now();
        let limits = self.core.settings.output_limits;
        let Some(session) = self.core.session_mut(conn) else { return false };
        let is_subscriber = session.gates & gate::SUBSCRIBED != 0;
        let limit = if is_subscriber { limits.pubsub } else { limits.normal };
        if limit.exceeded(unsent as u64, &mut session.soft_limit_since, now) {
            crate::log::warning(format_args!(
                "Client id={} addr={} closed: {unsent} bytes of replies exceed client-output-buffer-limit",
                session.card.id, session.card.addr
            ));
            self.close_now(conn);
            return false;
        }
        session.soft_limit_since.is_some()
    }

    /// Checks the clients above the soft limit. (Nothing is received from them, so perhaps no
    /// further reply triggers a check.)
    pub(crate) fn check_soft_limits(&mut self) {
        let mut above = std::mem::take(&mut self.core.above_soft);
        above.retain(|&conn| {
            let waits = self.unsent(conn);
            waits > 0 && self.is_above_soft(conn, waits)
        });
        above.append(&mut self.core.above_soft);
        above.dedup();
        self.core.above_soft = above;
    }

    fn unblock_output(&mut self, conn: ConnId) {
        let Some(session) = self.core.session_mut(conn) else { return };
        if std::mem::take(&mut session.stalled) {
            self.core.tasks.runnable.push_back(conn);
        } else if !session.is_stopped() {
            self.driver.resume(conn);
        }
    }

    pub(crate) fn on_drained(&mut self, conn: ConnId) {
        if self.core.session_mut(conn).is_none() {
            return self.on_ingest_drained(conn);
        }
        self.count_drained(conn);
        self.on_unsent(conn);
    }

    /// Handles a message. Not a part of `on_event`, whose registers the bytes of clients need.
    #[inline(never)]
    pub(crate) fn on_message(&mut self, message: Message) {
        match message {
            Message::Connection { socket, peer, id } => self.adopt(socket, &peer, id),
            Message::Ingest { socket, port } => {
                self.adopt_ingest(port as usize, socket);
            }
            Message::TakenOver { conn, epoch } => self.on_taken_over(conn, epoch),
            Message::Fence => {
                self.core.shared.keyspace.fences().acknowledge(self.core.id);
                self.core.follow();
            }
            Message::PauseChanged => self.wake_where(|s| matches!(s, Suspended::Pause)),
            Message::Retry(conn) => {
                if self
                    .core
                    .session_mut(conn)
                    .is_some_and(|s| matches!(s.suspended, Suspended::Parked(_)))
                {
                    self.wake(conn);
                } else if !self.core.unpark_task(conn) {
                    self.retry_ingest(conn);
                }
            }
            Message::Migrated(trip) => self.core.tasks.trips.push_back(*trip),
            Message::Rewritten { run, written } => self.on_rewritten(run, &written),
            Message::Saver { number, what } => self.on_walker(number, what),
            Message::BeginSave(wanted) => self.core.tasks.saving.claimed = Some(wanted),
            Message::GiveUpSave => self.core.follow_give_up(),
            Message::ShutdownFailed => self.on_shutdown_failed(),
            Message::Load => self.begin_loading(),
            Message::AppendOnly => self.follow_appendonly(),
            Message::RewriteAppendOnly => self.rewrite_without_journal(),
            Message::Renamed => self.core.follow_replication_id(),
            Message::LoadAppendOnly(worker, conn) => {
                self.core.tasks.aof_asker = Some((worker, conn));
                self.core.timers.housekeeping_at = self.core.turn.now(); // which looks at it
            }
            Message::Reloaded(conn, error) => {
                self.answer_saver(Some(conn), &error.map_or(Answer::Ok, Answer::Error));
            }
            Message::Loading => self.tend_loading(),
            Message::Served(served) => self.on_served(*served),
            Message::ServingPanicked { conn, ticket } => self.on_serving_panicked(conn, &ticket),
            Message::Unblocked { conn, ticket, with_error } => {
                self.on_unblocked(conn, &ticket, with_error);
            }
            Message::Kill(card) => self.on_kill(card),
            Message::Moved(moved) => self.on_moved(*moved),
            Message::Monitor(line, hold) => self.on_monitor(&line, hold),
            Message::MonitorLost => self.on_monitor_lost(),
            Message::Published => self.core.pubsub.is_due = true,
            Message::Probe(answers) => answers[self.core.id].store(true, Release),
            // The flush of this turn sends what was released; a shutdown is seen at the end of the
            // turn.
            Message::Released | Message::Journal | Message::Shutdown => {}
        }
    }

    fn on_kill(&mut self, card: Arc<ClientCard>) {
        let place = card.place();
        if place.worker != self.core.id {
            return self.core.shared.post(place.worker, Message::Kill(card));
        }
        // (One that has not arrived yet is closed when it does.)
        if self.core.session_mut(place.conn).is_some_and(|s| s.card.id == card.id) {
            self.run_window();
            self.deliver_due();
            self.flush();
            self.close_now(place.conn);
        }
    }

    /// Wakes every session that waits for this reason.
    pub(crate) fn wake_where(&mut self, which: impl Fn(&Suspended) -> bool) {
        let waiting: Vec<ConnId> = self
            .core
            .sessions
            .iter()
            .flatten()
            .filter(|s| which(&s.suspended))
            .map(|s| s.conn)
            .collect();
        for conn in waiting {
            self.wake(conn);
        }
    }

    /// The session executes again: first a request that waits assembled, then its input.
    pub(crate) fn wake(&mut self, conn: ConnId) {
        self.core.end_pause_wait(conn);
        let Some(session) = self.core.session_mut(conn) else { return };
        session.wake();
        let (assembled, blocked) = (session.has_assembled(), session.output_blocked);
        if session.is_stopped() {
            return;
        }
        if assembled {
            self.core.tasks.runnable.push_back(conn);
        } else if !blocked {
            self.driver.resume(conn);
        }
    }

    /// True once a shutdown was asked for.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.core.shared.shutting_down.load(Acquire)
    }
}
