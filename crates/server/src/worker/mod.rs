//! A worker: one thread, one event loop, its own connections, and the whole keyspace.
//!
//! A turn: wait; take events and frame their commands into windows; execute each window on the
//! locked slots; let long work go on for a step; send every session's replies at once. The same
//! code runs on every driver.

pub mod background;
pub(crate) mod batch;
pub mod core;
pub mod left;
pub mod message;
pub(crate) mod recent;
pub mod releases;
pub mod retry;
pub(crate) mod shutdown;
pub mod tasks;
pub mod timers;
pub mod turn;
pub(crate) mod warm;

use crate::execute::caller::Caller;
use crate::execute::command::Outcome;
use crate::execute::gates::closed;
use crate::execute::window::{self, COMMANDS_PER_TURN, Framed, Window};
use crate::ingest::connection::Ingest;
use crate::sessions::output::ARENA_FLUSH_BYTES;
use crate::sessions::session::{InParts, Session, Suspended};
use crate::shared::{PanicAt, Shared};
use crate::worker::batch::After;
use crate::worker::core::Core;
use base::sync::Arc;
use base::sync::atomic::Ordering;
use driver::{ConnId, Driver, Event, ListenerId};
use keyspace::Access;
use message::Message;
use std::cell::Cell;

/// A worker on a driver. No other worker's lines are its own.
#[repr(align(128))]
pub struct Worker<D: Driver<Message = Message>> {
    pub(crate) driver: D,
    pub(crate) access: Access,
    pub(crate) core: Core,
    pub(crate) window: Window,
    /// Connections that are no sessions.
    pub(crate) ingest: Ingest,
    /// The spin that the driver was told.
    pub(crate) busy_poll_us: u32,
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// A worker; `listeners` are the ones it accepts on (the acceptor has them all, the others
    /// none).
    pub fn new(mut driver: D, shared: Arc<Shared>, id: usize, listeners: Vec<ListenerId>) -> Self {
        let access = Access::new(shared.keyspace.clone(), id);
        let core = Core::new(&mut driver, shared, id, listeners);
        let busy_poll_us = core.settings.busy_poll_us;
        let ingest = Ingest::default();
        Self { driver, access, core, window: Window::new(), ingest, busy_poll_us }
    }

    /// Turns until shutdown.
    pub fn run(mut self) {
        while !self.is_done() {
            self.turn();
        }
    }

    /// True when the worker has ended.
    pub fn is_done(&self) -> bool {
        self.core.shutdown.is_done
    }

    /// The driver, for tests that play the network.
    pub fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// One turn of the loop.
    pub fn turn(&mut self) {
        let until = self.ingest.next_wake(self.core.next_wake());
        self.driver.wait(until);
        self.core.begin_turn(self.driver.now(), self.driver.unix_ms());
        if self.core.gates & closed::ARMED != 0
            && self.core.disarm(|at| at == PanicAt::Turn).is_some()
        {
            panic!("a panic was asked for, outside of any command");
        }
        if self.core.settings.busy_poll_us != self.busy_poll_us {
            self.busy_poll_us = self.core.settings.busy_poll_us;
            self.driver.set_busy_poll_us(self.busy_poll_us);
        }
        self.run_retries();
        while let Some(event) = self.driver.next() {
            self.on_event(event);
        }
        self.run_window();
        self.driver.rewind();
        self.flush(); // before anything that a client would have to wait for
        self.sweep_ingest();
        self.background();
        self.flush();
    }

    pub(crate) fn on_event(&mut self, event: Event<Message>) {
        match event {
            Event::Data { conn, start, end } => self.on_data(conn, start, end),
            Event::AreaFull => {
                self.run_window();
                self.driver.rewind();
            }
            Event::Drained { conn } => self.on_drained(conn),
            Event::Hangup { conn, unread } => self.on_hangup(conn, unread),
            Event::Closed { conn, why } => self.on_closed(conn, why),
            Event::Accepted { listener, socket, peer } => self.on_accepted(listener, socket, peer),
            Event::Message(message) => self.on_message(message),
            Event::Signal(_) => self.core.shared.begin_shutdown(),
        }
    }

    /// Frames what arrived; executes whenever the window is full.
    fn on_data(&mut self, conn: ConnId, start: usize, end: usize) {
        let (now, unix_s) = (self.core.turn.now(), self.core.turn.unix_ms().0 / 1000);
        let Some(session) = self.core.session_mut(conn) else {
            return self.on_ingest_data(conn, start, end);
        };
        session.input_end = end;
        session.note_received((end - start) as u64);
        if session.is_stopped() {
            if !session.close_after_reply {
                self.keep(conn, start, end);
            }
            self.driver.pause(conn);
            return;
        }
        session.last_active = now;
        session.card.last_s.store(unix_s, Ordering::Relaxed);
        let mut at = start;
        if session.assembler.is_some() {
            match self.assemble(conn, start, end) {
                Some(next) => at = next,
                None => return,
            }
        }
        self.frame_all(conn, at, end);
        if self.window.is_empty() {
            self.driver.rewind();
        }
    }

    pub(crate) fn frame_all(&mut self, conn: ConnId, start: usize, end: usize) {
        let mut at = start;
        let mut budget = COMMANDS_PER_TURN;
        loop {
            let (input, _) = self.driver.io();
            match self.core.frame_some(&mut self.window, conn, &input[..end], &mut at, &mut budget)
            {
                Framing::WindowFull => {
                    self.run_window();
                    if self.core.is_stopped(conn) {
                        return; // what was left went back to the driver
                    }
                }
                Framing::Exhausted => return,
                Framing::Incomplete => return self.keep(conn, at, end),
                Framing::Budget => {
                    self.keep(conn, at, end);
                    return self.driver.redeliver(conn);
                }
                Framing::Big => {
                    let limits = self.core.settings.limits(self.core.is_authenticated(conn));
                    if let Some(session) = self.core.session_mut(conn) {
                        session.assembler = Some(InParts::new(session, limits));
                    }
                    match self.assemble(conn, at, end) {
                        Some(next) => at = next,
                        None => return,
                    }
                }
                Framing::Error(e) => {
                    self.run_window();
                    if self.core.is_stopped(conn) {
                        return; // the rest is read when the session goes on, if it does
                    }
                    return self.protocol_error(conn, e);
                }
            }
        }
    }

    /// Feeds a request too large for the receive area. Returns where framing goes on, or `None` if
    /// all was consumed or the session stopped.
    pub(crate) fn assemble(&mut self, conn: ConnId, start: usize, end: usize) -> Option<usize> {
        self.run_window(); // order: what was framed before comes first
        let session = self.core.session_mut(conn)?;
        if session.is_stopped() {
            return None;
        }
        let mut assembler = session.assembler.take()?;
        let (input, _) = self.driver.io();
        let fed = assembler.feed(&input[start..end]);
        let session = self.core.session_mut(conn)?;
        match fed {
            Ok((_, false)) => {
                let held = assembler.bytes();
                session.assembler = Some(assembler);
                if held > self.core.settings.query_buffer_max {
                    self.core.log_query_limit(conn);
                    self.close_now(conn);
                }
                None
            }
            Ok((used, true)) => {
                session.assembler = Some(assembler);
                self.run_assembled(conn);
                let stopped = self.core.is_stopped(conn);
                if stopped {
                    if start + used < end {
                        self.keep(conn, start + used, end);
                    }
                    self.driver.pause(conn);
                    return None;
                }
                Some(start + used)
            }
            Err(e) => {
                self.protocol_error(conn, e);
                None
            }
        }
    }

    /// Executes the complete request in the session's assembler; it stays there if it must be
    /// retried. One without arguments, as a long blank line is, gets no reply.
    pub(crate) fn run_assembled(&mut self, conn: ConnId) {
        let Some(session) = self.core.session_mut(conn) else { return };
        let Some(mut request) = session.assembler.take() else { return };
        let args = request.run();
        if args.is_empty() {
            return;
        }
        let (_, out) = self.driver.io();
        let outcome = self.core.execute_alone(&mut self.access, out, conn, args);
        if matches!(outcome, Outcome::Retry)
            && let Some(session) = self.core.session_mut(conn)
        {
            request.count();
            session.assembler = Some(request);
        }
        self.apply_after();
    }

    pub(crate) fn protocol_error(&mut self, conn: ConnId, e: resp::ProtocolError) {
        let (_, out) = self.driver.io();
        self.core.write_protocol_error(out, conn, e);
        self.driver.pause(conn);
    }

    /// Executes what was framed.
    pub(crate) fn run_window(&mut self) {
        if self.window.is_empty() {
            return;
        }
        let (input, out) = self.driver.io();
        self.core.execute_window(&mut self.access, &mut self.window, input, out);
        let arena = out.bytes.len();
        if !self.core.batch.after.is_empty() {
            self.apply_after();
        }
        if arena > ARENA_FLUSH_BYTES {
            self.flush();
        }
    }

    fn apply_after(&mut self) {
        let mut after = std::mem::take(&mut self.core.batch.after);
        for After::Stop { conn, from, to } in after.drain(..) {
            if from < to {
                self.keep(conn, from, to);
            }
            self.driver.pause(conn);
        }
        self.core.batch.after = after;
    }

    /// Puts input back, to be delivered in front of the next.
    pub(crate) fn keep(&mut self, conn: ConnId, from: usize, to: usize) {
        self.driver.put_back(conn, from, to);
        if let Some(session) = self.core.session_mut(conn) {
            session.count_input((to - from) as u64);
        }
    }

    /// Hands every segment to the driver: one send per session.
    pub(crate) fn flush(&mut self) {
        let (_, out) = self.driver.io();
        self.core.turn.output.close(out);
        if self.core.turn.output.take_held() || !self.core.holding.is_empty() {
            return self.flush_held();
        }
        if !(self.core.turn.output.segments.is_empty() && self.core.turn.closing.is_empty()) {
            self.send_segments();
        }
    }

    pub(crate) fn send_segments(&mut self) {
        let segments = std::mem::take(&mut self.core.turn.output.segments);
        for s in &segments {
            let Some(session) = self.core.sessions[s.session as usize].as_deref_mut() else {
                continue;
            };
            let conn = session.conn;
            session.handed += s.len(self.driver.io().1) as u64;
            let backlog = self.driver.send(conn, s.to_driver());
            session.note_sent(backlog);
            if backlog > 0 {
                self.on_unsent(conn);
            }
        }
        self.driver.flush_output();
        self.core.turn.output.segments = segments;
        self.core.turn.output.segments.clear();
        while let Some((conn, _)) = self.driver.next_backlogged() {
            self.on_unsent(conn);
        }
        for conn in std::mem::take(&mut self.core.turn.closing) {
            let waits = |s: &mut Session| s.outbox.is_some() || s.has_parked_reply();
            if self.core.session_mut(conn).is_some_and(waits) {
                self.core.turn.closing.push(conn); // once that has left
            } else {
                self.driver.close_after_flush(conn);
            }
        }
    }
}

/// Why framing paused.
pub enum Framing {
    /// Execute, then go on.
    WindowFull,
    /// All bytes are framed.
    Exhausted,
    /// The rest is not a whole command yet.
    Incomplete,
    /// This session's share of the turn is used up.
    Budget,
    /// The next command is too large for the receive area.
    Big,
    /// The stream is broken.
    Error(resp::ProtocolError),
}

impl Core {
    /// True if nothing may be executed for a session, which may also be gone.
    pub(crate) fn is_stopped(&mut self, conn: ConnId) -> bool {
        self.session_mut(conn).is_none_or(|s| s.is_stopped())
    }

    pub(crate) fn is_authenticated(&self, conn: ConnId) -> bool {
        self.sessions[conn.index as usize].as_ref().is_some_and(|s| self.is_let_in(s))
    }

    /// Frames commands of one session until the window is full or there is nothing whole left.
    pub(crate) fn frame_some(
        &mut self,
        window: &mut Window,
        conn: ConnId,
        input: &[u8],
        at: &mut usize,
        budget: &mut usize,
    ) -> Framing {
        let framing = self.frame_while_room(window, conn, input, at, budget);
        window.end_run(conn.index);
        if let Some(last) = window.commands.last().filter(|c| c.session == conn.index)
            && let Some(session) = self.session_mut(conn)
        {
            let index = last.id.map_or(u32::MAX, |id| id.index() as u32);
            session.card.last_command.store(index, Ordering::Relaxed);
        }
        framing
    }

    pub(crate) fn frame_while_room(
        &mut self,
        window: &mut Window,
        conn: ConnId,
        input: &[u8],
        at: &mut usize,
        budget: &mut usize,
    ) -> Framing {
        let Some(session) = self.sessions[conn.index as usize].as_deref() else {
            return Framing::Exhausted;
        };
        let let_in = self.is_let_in(session);
        let limits = self.settings.limits(let_in);
        // An unauthenticated session's next bytes may mean something else after AUTH.
        let one_at_a_time = !let_in;
        let db = session.db;
        while *at < input.len() {
            if window.is_full() {
                return Framing::WindowFull;
            }
            if *budget == 0 {
                return Framing::Budget;
            }
            let spans_from = window.spans.len();
            match self.recent.frame(window, input, *at, &limits) {
                resp::Framed::Complete { end } => {
                    let framed = self.guess(window, input, conn, *at, end, spans_from, db);
                    window.push(&self.shared.keyspace, framed);
                    *at = end;
                    *budget -= 1;
                    if one_at_a_time {
                        return Framing::WindowFull;
                    }
                }
                resp::Framed::Empty { end } => *at = end,
                resp::Framed::Incomplete => return Framing::Incomplete,
                resp::Framed::Big => {
                    window.spans.truncate(spans_from);
                    return Framing::Big;
                }
                resp::Framed::Error(e) => {
                    window.spans.truncate(spans_from);
                    return Framing::Error(e);
                }
            }
        }
        Framing::Exhausted
    }

    /// Hashes the first key of the request that was framed last, so that its lines can be
    /// prefetched.
    #[inline]
    #[allow(clippy::too_many_arguments)] // one call site, all plain numbers
    pub(crate) fn guess(
        &self,
        window: &mut Window,
        input: &[u8],
        conn: ConnId,
        start: usize,
        end: usize,
        spans_from: usize,
        db: base::DbIndex,
    ) -> Framed {
        let mut framed = Framed {
            session: conn.index,
            start: start as u32,
            end: end as u32,
            spans_from: spans_from as u32,
            spans_len: (window.spans.len() - spans_from) as u32,
            id: self.recent.command(),
            key: window::NO_KEY,
            db,
            guess: Cell::default(),
        };
        if let Some(id) = framed.id {
            let hot = &self.hot[id.index()];
            window.has_members |= hot.member != 0;
            let (at, args) = (u32::from(hot.first_key), window.args(input, &framed));
            if at != 0 && at < args.len() as u32 {
                framed.key = window::key_ref(&self.shared.keyspace, args, at as usize);
            }
        }
        framed
    }

    /// Writes the error that ends a broken stream.
    pub(crate) fn write_protocol_error(
        &mut self,
        out: &mut resp::OutBuf,
        conn: ConnId,
        e: resp::ProtocolError,
    ) {
        let Some(session) = self.sessions[conn.index as usize].as_deref_mut() else { return };
        session.finish();
        let proto = session.proto;
        self.turn.closing.push(conn);
        self.turn.output.open(conn.index, out);
        self.counters().errors.count(b"ERR");
        resp::Reply::new(out, proto).protocol_error(e);
    }

    pub(crate) fn log_query_limit(&self, conn: ConnId) {
        if let Some(s) = self.sessions[conn.index as usize].as_deref() {
            crate::log::warning(format_args!(
                "Closing client that reached max query buffer length: id={} addr={}",
                s.card.id, s.card.addr
            ));
        }
    }

    /// Marks a session as suspended and remembers what must run later.
    pub fn suspend(&mut self, caller: &Caller, why: Suspended) {
        if matches!(why, Suspended::Task(_)) {
            self.tasks.runnable.push_back(caller.conn());
        }
        caller.session(self).suspend(why);
    }
}
