//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC takes the locks of everything it holds, of every watched key, and of what serving those who wait for its keys
//! needs, before the first command: transactions are strictly serializable. A queue with a command on the whole
//! keyspace takes World.

use super::execute::{Called, Outcome, intent_of, is_bounded};
use super::note::{Sizes, protocol_len};
use super::retry::{RELEASES_PER_TURN, Work};
use super::{Core, Hold, window::NO_KEY};
use crate::client_card::flag;
use crate::session::{Multi, Session, Watched, gate};
use base::sync::atomic::Ordering::Relaxed;
use command::spec::LockClass;
use command::{CommandId, Done, Error};
use driver::ConnId;
use keyspace::{Access, Guard, Intent, Parked, WatchCell};
use resp::{Args, OutBuf, OwnedRequest, Reply};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An EXEC of at least this many commands declares itself long: others suspend instead of waiting.
const LONG_EXEC: usize = 256;

impl Core {
    /// MULTI.
    pub(crate) fn multi(&mut self, conn: ConnId, reply: &mut Reply<'_>) -> Result<(), Error> {
        let Some(s) = self.session_mut(conn) else { return Ok(()) };
        if s.multi.is_some() {
            return Err(Error::NestedMulti);
        }
        s.multi = Some(Box::default());
        s.set_gate(gate::MULTI, true);
        s.card.multi.store(0, Relaxed);
        s.card.set_flag(flag::MULTI, true);
        reply.ok();
        Ok(())
    }

    /// Queues a command that passed the gates.
    pub(crate) fn queue(&mut self, conn: ConnId, id: CommandId, args: Args<'_>, out: &mut OutBuf) {
        let limit = self.settings.query_buffer_max;
        let Some(s) = self.session_mut(conn) else { return };
        let proto = s.proto;
        if s.multi
            .as_ref()
            .is_some_and(|m| (m.bytes + args.iter().map(<[u8]>::len).sum::<usize>()) as u64 > limit)
        {
            self.log_query_limit(conn);
            return self.finish(conn);
        }
        if let Some(multi) = &mut s.multi {
            let request = OwnedRequest::new(args);
            multi.bytes += request.memory();
            multi.queue.push((id, request));
            s.card.multi.store(multi.queue.len() as i64, Relaxed);
            s.card.multi_bytes.store(multi.bytes as u64, Relaxed);
        }
        Reply::new(out, proto).simple("QUEUED");
    }

    /// DISCARD.
    pub(crate) fn discard(&mut self, conn: ConnId) -> Result<(), Error> {
        let Some(s) = self.session_mut(conn) else { return Ok(()) };
        if s.multi.is_none() {
            return Err(Error::DiscardWithoutMulti);
        }
        s.end_transaction();
        self.unwatch_soon(conn);
        Ok(())
    }

    /// Forgets the session's watches; their cells leave the slots once no lock is held. A cell that
    /// nobody asks is harmless meanwhile.
    pub(crate) fn unwatch_soon(&mut self, conn: ConnId) {
        if let Some(s) = self.session_mut(conn) {
            let mut watched = std::mem::take(&mut s.watched);
            s.card.watching.store(0, Relaxed);
            self.unwatching.append(&mut watched);
        }
    }

    /// Takes forgotten watches out of their slots, one slot at a time; behind a long holder the rest
    /// waits for the next turn.
    pub(crate) fn release_watches(&mut self, access: &mut Access) {
        if self.unwatching.is_empty() {
            return;
        }
        if !access.enter() {
            return self.retries.put_off(Work::Watches, self.now);
        }
        for _ in 0..RELEASES_PER_TURN {
            let Some(w) = self.unwatching.pop() else { break };
            let key = self.shared.keyspace.key(&w.key);
            let Ok(mut guard) = access.lock_one(key.slot, self.unix_ms, Intent::Read) else {
                self.retries.put_off(Work::Watches, self.now);
                self.unwatching.push(w);
                break;
            };
            guard.unwatch(w.db, &key, &w.cell);
        }
        access.leave();
    }

    /// WATCH: its keys' slots are locked.
    pub(crate) fn watch(
        &mut self,
        guard: &mut Guard<'_>,
        conn: ConnId,
        args: Args<'_>,
    ) -> Result<(), Error> {
        let Some(s) = self.sessions[conn.index as usize].as_deref_mut() else { return Ok(()) };
        if s.multi.is_some() {
            return Err(Error::WatchInMulti);
        }
        for i in 1..args.len() {
            let key = args.get(i);
            if s.watched.iter().any(|w| w.db == s.db && *w.key == *key) {
                continue;
            }
            let cell = WatchCell::new();
            let hashed = guard.keyspace().key(key);
            guard.watch(s.db, &hashed, &cell);
            s.watched.push(Watched { db: s.db, key: key.into(), cell });
        }
        s.card.watching.store(s.watched.len() as u32, Relaxed);
        Ok(())
    }

    /// EXEC.
    pub(crate) fn exec(
        &mut self,
        access: &mut Access,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
        args: Args<'_>,
    ) -> Outcome {
        let Some(s) = self.session_mut(conn) else { return Outcome::Done };
        let Some(multi) = s.multi.take() else {
            self.refuse(out, conn.index, Some(id), &Error::ExecWithoutMulti, true);
            self.tell_exec(conn, id, args);
            return Outcome::Done;
        };
        if multi.failed {
            s.end_transaction();
            self.unwatch_soon(conn);
            self.refuse(out, conn.index, Some(id), &Error::ExecAbort, true);
            self.tell_exec(conn, id, args);
            return Outcome::Done;
        }
        let watched = std::mem::take(&mut s.watched);
        let passes = self.may_pass(conn);
        access.let_pass(passes);
        let is_kept_out =
            !multi.needs_world() && multi.may_be_long() && access.may_be_long().is_err();
        // It is not given back once it has begun.
        access.let_pass(true);
        let done = if is_kept_out {
            Some(Parked::Turn)
        } else if multi.needs_world() {
            access.step_beside();
            let mut got = access.try_world();
            if got.is_ok() {
                // What such a command does to which keys, nobody says before.
                got = self.shared.keyspace.may_everything(Intent::Write);
                if got.is_err() {
                    access.open_world();
                }
            }
            if got.is_ok() {
                let mut guard = access.world(self.unix_ms);
                self.exec_locked(&mut guard, out, conn, (id, args), &multi, &watched);
                drop(guard);
                access.open_world();
            }
            self.reenter(access);
            got.err()
        } else {
            self.collect_exec_slots(&multi, &watched);
            let slots = std::mem::take(&mut self.slots);
            let locked = match multi.intent() {
                Intent::Write => {
                    access.lock_to_fill(&slots, false, self.unix_ms, || multi.filled())
                }
                intent => access.lock(&slots, self.unix_ms, intent),
            };
            let done = match locked {
                Ok(mut guard) => {
                    if multi.queue.len() >= LONG_EXEC {
                        guard.mark_long();
                    }
                    self.exec_locked(&mut guard, out, conn, (id, args), &multi, &watched);
                    None
                }
                Err(parked) => Some(parked),
            };
            self.slots = slots;
            done
        };
        let Some(s) = self.session_mut(conn) else { return Outcome::Done };
        if let Some(why) = done {
            s.multi = Some(multi);
            s.watched = watched;
            self.park(access, conn, why);
            return Outcome::Retry;
        }
        Outcome::Done
    }

    /// Whoever monitors is told of an EXEC that had nothing to execute.
    fn tell_exec(&mut self, conn: ConnId, id: CommandId, args: Args<'_>) {
        if self.is_watched()
            && let Some(line) = self.monitor_line(conn, id, args)
        {
            self.shared.monitors.tell(&self.shared, &line, Hold::NONE);
        }
    }

    fn exec_locked(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        (id, args): (CommandId, Args<'_>),
        multi: &Multi,
        watched: &[Watched],
    ) {
        let dirty = watched.iter().any(|w| {
            let key = guard.keyspace().key(&w.key);
            guard.settle_watched(w.db, &key);
            w.cell.is_dirty()
        });
        unwatch(guard, watched);
        let Some(s) = self.session_mut(conn) else { return };
        s.end_transaction();
        s.card.watching.store(0, Relaxed);
        let proto = s.proto;
        let mut panicked = None;
        if dirty {
            Reply::new(out, proto).null_array();
        } else {
            Reply::new(out, proto).array(multi.queue.len());
            panicked = self.run_queue(guard, out, conn, multi).err();
        }
        if self.is_watched() {
            // EXEC itself is told behind what it held.
            self.note_for_monitors(guard, conn, id, args);
        }
        // What the commands before one that panicked have done stands.
        let hold = self.finish_noted(guard);
        self.output.hold(hold);
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// Runs what was queued. What it changes stays in the undo log, to be finished as one; a command that panics is
    /// taken back alone, and what stands behind it does not run.
    fn run_queue(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        multi: &Multi,
    ) -> Result<(), Box<dyn Any + Send>> {
        let mut mark = guard.mark();
        self.in_exec = true;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            for (id, request) in &multi.queue {
                mark = guard.mark();
                self.run_queued(guard, out, conn, *id, request.args());
                mark = guard.mark();
            }
        }));
        self.in_exec = false;
        if ran.is_err() {
            guard.rollback_to(mark);
        }
        ran
    }

    fn run_queued(
        &mut self,
        guard: &mut Guard<'_>,
        out: &mut OutBuf,
        conn: ConnId,
        id: CommandId,
        args: Args<'_>,
    ) {
        self.running = Some((conn.index, id));
        let started = self.clock.now();
        let from = out.position();
        let called = self.call(guard, out, conn, id, args, NO_KEY);
        // Whatever it needs is locked, and what it would leave is done.
        assert!(matches!(called, Called::Over(_) | Called::Left(Done::Replied)));
        let ns = self.clock.now().since(started);
        let reply = out.len_between(from, out.position()) as u64;
        let sizes = Sizes { request: protocol_len(args), reply };
        self.note_time(conn, Some(id), args, ns, sizes);
    }

    fn collect_exec_slots(&mut self, multi: &Multi, watched: &[Watched]) {
        self.slots.clear();
        let ks = &self.shared.keyspace;
        let slots = &mut self.slots;
        for (id, request) in &multi.queue {
            let args = request.args();
            // A command whose keys cannot be told fails by itself when it runs.
            let _ = command::keys::for_each(id.spec(), args, |key| {
                slots.push(ks.key(args.get(key.arg)).slot);
            });
        }
        slots.extend(watched.iter().map(|w| ks.key(&w.key).slot));
        slots.sort_unstable();
        slots.dedup();
    }
}

impl Multi {
    /// The keys that the queued commands may fill.
    fn filled(&self) -> Vec<&[u8]> {
        let each = self.queue.iter();
        each.flat_map(|(id, request)| command::keys::filled(id.spec(), request.args())).collect()
    }

    /// True if it may hold its slots for long.
    fn may_be_long(&self) -> bool {
        self.queue.len() >= LONG_EXEC || !self.queue.iter().all(|(id, _)| is_bounded(id.spec()))
    }

    /// What the queue wants keys for.
    fn intent(&self) -> Intent {
        let writes = self.queue.iter().any(|(id, _)| intent_of(id.spec()) == Intent::Write);
        if writes { Intent::Write } else { Intent::Read }
    }

    /// True if anything queued is not confined to the slots of its keys.
    fn needs_world(&self) -> bool {
        self.queue.iter().any(|(id, request)| {
            let class = command::keys::lock_class(id.spec(), request.args());
            matches!(class, LockClass::World | LockClass::Each | LockClass::Growing)
        })
    }
}

impl Session {
    /// Out of MULTI, whatever became of it.
    pub fn end_transaction(&mut self) {
        self.multi = None;
        self.set_gate(gate::MULTI, false);
        self.card.multi.store(-1, Relaxed);
        self.card.multi_bytes.store(0, Relaxed);
        self.card.set_flag(flag::MULTI, false);
    }
}

/// Takes the cells out of the slots they hang on.
pub(crate) fn unwatch(guard: &mut Guard<'_>, watched: &[Watched]) {
    for w in watched {
        let key = guard.keyspace().key(&w.key);
        guard.unwatch(w.db, &key, &w.cell);
    }
}
