//! From bytes to commands: what a session has sent is framed into the window, which is executed
//! whenever it is full. A request too large for the receive area is assembled beside it, and runs
//! alone.

use crate::execute::budgets::Affected;
use crate::execute::outcome::Outcome;
use crate::execute::window::{self, COMMANDS_PER_TURN, Framed, Window};
use crate::sessions::session::InParts;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::atomic::Ordering;
use driver::{ConnId, Driver};
use std::cell::Cell;

/// Why framing paused.
enum Framing {
    /// The window is full: execute it, then continue.
    WindowFull,
    /// All bytes are framed.
    Exhausted,
    /// The remaining bytes are not a whole command yet.
    Incomplete,
    /// This session's share of the turn is used up.
    Budget,
    /// The next command is too large for the receive area.
    Big,
    /// The stream is broken.
    Error(resp::ProtocolError),
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Frames what arrived; executes whenever the window is full.
    pub(super) fn on_data(&mut self, conn: ConnId, start: usize, end: usize) {
        self.core.turn.note_input();
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
        session.unanswered.begin_input(now);
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

    fn frame_all(&mut self, conn: ConnId, start: usize, end: usize) {
        let mut at = start;
        let mut budget = COMMANDS_PER_TURN;
        loop {
            let (input, _) = self.driver.io();
            match self.core.frame_some(&mut self.window, conn, &input[..end], &mut at, &mut budget)
            {
                Framing::WindowFull => {
                    self.run_window();
                    if self.core.is_stopped(conn) {
                        return; // the remaining input went back to the driver
                    }
                }
                Framing::Exhausted => return,
                Framing::Incomplete => return self.put_back(conn, at, end),
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
                        return; // the remaining input is read when the session resumes
                    }
                    return self.protocol_error(conn, e);
                }
            }
        }
    }

    /// Feeds a request too large for the receive area. Returns where framing continues, or `None`
    /// if all was consumed or the session stopped.
    fn assemble(&mut self, conn: ConnId, start: usize, end: usize) -> Option<usize> {
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
                let missing = assembler.bulk_missing();
                session.assembler = Some(assembler);
                if self.is_within_query_limit(conn)
                    && missing.is_some_and(|bytes| self.driver.begin_bulk(conn, bytes))
                {
                    self.core.bulks.push(conn);
                    self.core.timers.is_busy = true;
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

    /// Closes a session whose request in parts is too large; true if it is not.
    fn is_within_query_limit(&mut self, conn: ConnId) -> bool {
        let session = self.core.session_mut(conn);
        let held = session.and_then(|s| s.assembler.as_ref()).map_or(0, |request| request.bytes());
        let is_within = held <= self.core.settings.query_buffer_max;
        if !is_within {
            self.core.log_query_limit(conn);
            self.close_now(conn);
        }
        is_within
    }

    /// Bytes of a bulk have arrived: receives them into the argument's own memory.
    pub(super) fn on_bulk(&mut self, conn: ConnId, most: usize) {
        self.core.turn.note_input();
        let (now, unix_s) = (self.core.turn.now(), self.core.turn.unix_ms().0 / 1000);
        let Some(session) = self.core.session_mut(conn) else { return };
        if session.is_stopped() {
            return self.driver.pause(conn);
        }
        let Some(request) = &mut session.assembler else { return };
        let received = request.receive(most, |room| self.driver.receive(conn, room));
        session.note_received(received as u64);
        session.last_active = now;
        session.card.last_s.store(unix_s, Ordering::Relaxed);
        self.is_within_query_limit(conn);
    }

    /// Has a bulk reported byte by byte if nothing of it was received since the last call: its
    /// sender is slow. Called by housekeeping, every 100 ms.
    pub(super) fn hasten_bulks(&mut self) {
        let mut bulks = std::mem::take(&mut self.core.bulks);
        bulks.sort_unstable_by_key(|conn| conn.token());
        bulks.dedup();
        bulks.retain(|&conn| {
            let session = self.core.session_mut(conn);
            let Some(request) = session.and_then(|s| s.assembler.as_mut()) else { return false };
            let proceeds = request.makes_progress();
            if !proceeds {
                self.driver.hasten_bulk(conn);
            }
            proceeds
        });
        self.core.bulks = bulks;
    }

    /// Executes the complete request in the session's assembler; it stays there if it must be
    /// retried. One without arguments, as a long blank line is, gets no reply.
    pub(super) fn run_assembled(&mut self, conn: ConnId) {
        let Some(session) = self.core.session_mut(conn) else { return };
        let Some(mut request) = session.assembler.take() else { return };
        let args = request.run();
        if args.is_empty() {
            return;
        }
        if self.core.settings.limits_memory {
            self.core.make_room_if_needed(&mut self.access);
            self.core.make_room_in_databases(&mut self.access, Affected::All);
        }
        let (_, out) = self.driver.io();
        let outcome = self.core.execute_alone(&mut self.access, out, conn, args);
        if matches!(outcome, Outcome::Retry)
            && let Some(session) = self.core.session_mut(conn)
        {
            request.count();
            session.assembler = Some(request);
        } else if let Some(ended) = request.take_long() {
            self.core.shared.keyspace.reclaimer().reclaim_parts(ended);
        }
        self.apply_after();
    }

    fn protocol_error(&mut self, conn: ConnId, e: resp::ProtocolError) {
        let (_, out) = self.driver.io();
        self.core.write_protocol_error(out, conn, e);
        self.driver.pause(conn);
    }
}

impl Core {
    fn is_authenticated(&self, conn: ConnId) -> bool {
        self.sessions[conn.index as usize].as_ref().is_some_and(|s| self.is_let_in(s))
    }

    /// Frames commands of one session until the window is full or no whole command is left.
    fn frame_some(
        &mut self,
        window: &mut Window,
        conn: ConnId,
        input: &[u8],
        at: &mut usize,
        budget: &mut usize,
    ) -> Framing {
        let framing = self.frame_while_room(window, conn, input, at, budget);
        if let Some(last) = window.commands.last().filter(|c| c.session == conn.index) {
            let index = last.id.map_or(u32::MAX, |id| id.index() as u32);
            window.end_run(conn.index, last.db);
            if let Some(session) = self.session_mut(conn) {
                session.card.last_command.store(index, Ordering::Relaxed);
            }
        }
        framing
    }

    fn frame_while_room(
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
    fn guess(
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
    fn write_protocol_error(
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
}
