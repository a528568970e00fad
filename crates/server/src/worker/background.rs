//! What a worker does between events: long commands in steps, expiry, freeing, housekeeping,
//! shutdown.

use crate::execute::caller::Caller;
use crate::execute::finish::Panicked;
use crate::execute::gates::closed;
use crate::sessions::card::flag;
use crate::sessions::session::{Suspended, Task, gate};
use crate::shared::PanicAt;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use crate::worker::{Core, Worker};
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::{MonoNs, UnixMs};
use command::Progress;
use driver::{ConnId, Driver};
use keyspace::{Access, ExpireReport, Parked, StaleShare};
use observe::SpikeEvent;
use resp::Reply;

const MS: u64 = 1_000_000;
/// Housekeeping interval while there is anything to keep house for.
const HOUSEKEEPING_NS: u64 = 100 * MS;
/// Longest step of background work before events are looked at again.
pub const STEP_NS: u64 = 200_000;
/// Entries freed per step: well under the length of a step.
const RECLAIM_ENTRIES: usize = 1024;
/// How often a worker looks for due keys at least, even asleep: another worker may have given one
/// of its slots an earlier one. Well under 100 ms, the lag that is promised.
const EXPIRE_NS: u64 = 60 * MS;
/// What is due and still there is sampled no more often than this. A sample may cost as much as a
/// step.
pub const STALE_NS: u64 = 100 * MS;
/// Listen-queue overflows are read this often.
const OVERFLOWS_NS: u64 = 1_000 * MS;
/// How long a shutdown waits for clients to take their replies.
const FLUSH_LIMIT_NS: u64 = 1_000 * MS;

impl Core {
    /// When the driver must return at the latest; `None` sleeps until something happens.
    pub(crate) fn next_wake(&self) -> Option<MonoNs> {
        if !self.runnable.is_empty() || self.reclaiming || self.expire_now {
            return Some(self.now);
        }
        if self.flushed_at.is_some() {
            return Some(self.now.plus(MS));
        }
        let mut until = None;
        let mut at = |t: MonoNs| until = Some(until.map_or(t, |u: MonoNs| u.min(t)));
        at(self.expire_at);
        if let Some(wake) = self.waiting.next_wake() {
            at(wake);
        }
        let work =
            [(Work::Releases, !self.releases.is_empty()), (Work::Trips, !self.trips.is_empty())];
        let retries = work.map(|(work, is_any)| self.retries.next(work, is_any, self.now));
        retries.into_iter().flatten().for_each(&mut at);
        if self.busy || self.settings.timeout_s > 0 || !self.above_soft.is_empty() {
            at(self.housekeeping_at);
        }
        if let Some((_, until)) = self.sleeping {
            at(until);
        }
        if self.gates & closed::PAUSE != 0 {
            let left = self.shared.pause.until_ms.load(Relaxed) - self.unix_ms.0;
            at(self.now.plus((left.max(1) as u64).saturating_mul(MS)));
        }
        until
    }

    /// Takes over the turn's time and, if it changed, the configuration.
    pub(crate) fn begin_turn(&mut self, now: MonoNs, unix_ms: UnixMs) {
        self.now = now;
        self.unix_ms = unix_ms;
        self.follow();
        let epoch = self.shared.stats_epoch.load(Acquire);
        if epoch != self.stats_seen {
            self.stats_seen = epoch;
            self.shared.ingest.reset(self.id);
            self.counters().reset();
            self.counters().epoch.store(epoch, Release);
        }
        self.refresh_gates();
    }

    /// Recomputes the conditions that take commands off the short path.
    pub fn refresh_gates(&mut self) {
        let was_paused = self.gates & closed::PAUSE != 0;
        let mut gates = if self.shared.armed.load(Relaxed) { closed::ARMED } else { 0 };
        if self.settings.maxmemory > 0 && self.shared.used_memory() > self.settings.maxmemory {
            gates |= closed::MEMORY;
        }
        if self.shared.pause.until_ms.load(Relaxed) > self.unix_ms.0 {
            gates |= closed::PAUSE;
        }
        if self.shared.monitors.any() {
            gates |= closed::MONITOR;
        }
        if self.shared.keyspace.numbers().is_drawing() {
            gates |= closed::NUMBERED;
        }
        if self.settings.notes_every_command() {
            gates |= closed::CLOCK;
        }
        if self.shared.keyspace.is_restricted() {
            gates |= closed::RESTRICTED;
        }
        self.pause_changed |= was_paused && gates & closed::PAUSE == 0;
        self.gates = gates;
    }

    /// One step of removing keys whose time has come. A panic costs nothing but that they are
    /// removed later.
    fn sweep(&mut self, access: &mut Access) -> ExpireReport {
        let swept = self.catch(|core| {
            if core.gates & closed::ARMED != 0
                && let Some(changes) = core.disarm(|at| at == PanicAt::Sweep)
            {
                assert!(changes > 0, "a panic was asked for, before any change");
                access.panic_after(changes);
            }
            access.expire_step(core.unix_ms, STEP_NS, || core.clock.now())
        });
        access.disarm();
        swept.unwrap_or_else(|Panicked(_)| {
            crate::log::warning(format_args!(
                "A panic while keys were removed whose time has come; they are removed later"
            ));
            ExpireReport::default()
        })
    }

    /// What `expired_stale_perc` is made of.
    fn show_stale(&self, stale: StaleShare) {
        let [due, seen] = &self.counters().stale;
        due.set(stale.due);
        seen.set(stale.seen);
    }

    /// Clients without a request for `timeout` seconds.
    fn idle_clients(&self) -> Vec<ConnId> {
        let limit = u64::from(self.settings.timeout_s) * 1_000 * MS;
        if limit == 0 {
            return Vec::new();
        }
        let idle = |s: &&crate::sessions::session::Session| {
            matches!(s.suspended, Suspended::No)
                && s.gates & gate::MONITOR == 0
                && self.now.since(s.last_active) > limit
        };
        self.sessions.iter().flatten().map(AsRef::as_ref).filter(idle).map(|s| s.conn).collect()
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Assembled requests whose sessions were woken.
    pub(crate) fn run_retries(&mut self) {
        for _ in 0..self.core.runnable.len() {
            let Some(conn) = self.core.runnable.pop_front() else { return };
            let Some(session) = self.core.session_mut(conn) else { continue };
            match session.suspended {
                Suspended::Task(_) => self.core.runnable.push_back(conn),
                Suspended::No if session.has_assembled() && !session.is_stopped() => {
                    self.run_assembled(conn);
                    match self.core.session_mut(conn).map(|s| (s.is_stopped(), s.output_blocked)) {
                        Some((false, false)) => self.driver.resume(conn),
                        // What its client does from now on is another matter than what it did
                        // before.
                        Some((true, _)) => self.driver.pause(conn),
                        Some((false, true)) | None => {} // it goes on when its replies have left
                    }
                }
                _ => {}
            }
        }
    }

    /// One step of everything that goes on in steps.
    pub(crate) fn background(&mut self) {
        self.step_tasks();
        self.end_trips();
        self.end_waits();
        self.release_keys();
        self.reclaim();
        self.end_sleeps();
        let was_paused = std::mem::take(&mut self.core.pause_changed);
        if was_paused && self.core.gates & closed::PAUSE == 0 {
            self.wake_where(|s| matches!(s, Suspended::Pause));
            self.core.expire_at = self.core.now; // what fell due meanwhile
        }
        self.expire();
        if self.core.now >= self.core.housekeeping_at {
            self.housekeeping();
        }
        if self.is_shutting_down() {
            self.shut_down();
        }
    }

    fn step_tasks(&mut self) {
        let Some(conn) = self.core.runnable.pop_front() else { return };
        let Some(session) = self.core.session_mut(conn) else { return };
        if session.output_blocked && matches!(session.suspended, Suspended::Task(_)) {
            session.stalled = true; // goes on when the backlog has left
            return;
        }
        let caller = Caller::of_step(session);
        let mut task = match std::mem::replace(&mut session.suspended, Suspended::No) {
            Suspended::Task(task) => task,
            other => {
                session.suspended = other;
                self.core.runnable.push_back(conn); // an assembled request: next turn's
                return;
            }
        };
        if !self.access.enter() {
            return self.core.park_task(&mut self.access, &caller, task, Parked::Gate);
        }
        self.core.follow();
        if caller.session(&mut self.core).card.has_flag(flag::CLOSE_ASAP) {
            return self.access.leave(); // killed; the message that closes it is on its way
        }
        let started = self.core.clock.now();
        let (_, out) = self.driver.io();
        self.core.output.open(conn.index, out);
        let mark = out.position();
        let progress = self.core.step(&mut self.access, out, &caller, &mut task);
        let s = caller.session(&mut self.core);
        s.mute(mark, out);
        s.built_held.set(task.memory());
        let replied = out.len_between(mark, out.position());
        self.access.leave();
        let is_preparing = matches!(task, Task::Preparing(..));
        if is_preparing {
            let ns = self.core.clock.now().since(started);
            caller.session(&mut self.core).prepared_ns += ns;
        }
        let is_done = progress == Progress::Complete;
        self.core.note_step(&caller, started, replied, is_done);
        match progress {
            Progress::Complete => self.end_task(&caller, task),
            Progress::More => self.core.suspend(&caller, Suspended::Task(task)),
            Progress::Park(at) => self.core.park_task(&mut self.access, &caller, task, at),
        }
    }

    /// The last step is done: the session goes on, with the command itself if the work was done
    /// ahead of it.
    fn end_task(&mut self, caller: &Caller, task: Task) {
        let s = caller.session(&mut self.core);
        if let Task::Preparing(work, _) = task {
            s.prepared = Some(work);
            s.set_gate(gate::PREPARED, true);
        } else {
            s.built_held.set(0);
            s.end_reply();
        }
        self.release_pushes(caller.conn());
        self.wake(caller.conn());
    }

    /// Frees a part of what was flushed.
    fn reclaim(&mut self) {
        if self.core.reclaiming {
            self.core.reclaiming = self.access.reclaim(RECLAIM_ENTRIES);
        }
    }

    /// DEBUG SLEEP: opens World when its time has come.
    fn end_sleeps(&mut self) {
        let Some((conn, until)) = self.core.sleeping else { return };
        if self.core.now < until {
            return;
        }
        self.core.sleeping = None;
        self.access.open_world();
        if let Some(proto) = self.core.session_mut(conn).map(|s| s.proto) {
            self.answer(conn, |_, out| Reply::new(out, proto).ok());
        }
    }

    /// Removes keys whose time has come, in steps, from this worker's share of the slots.
    fn expire(&mut self) {
        let core = &mut self.core;
        core.expire_now = false;
        if core.now < core.expire_at {
            return;
        }
        core.expire_at = core.now.plus(EXPIRE_NS);
        let shared = &core.shared;
        let is_off = !shared.active_expire.load(Relaxed)
            || shared.cron_paused.load(Relaxed)
            || shared.keyspace.is_expiry_held(core.unix_ms);
        if !self.access.enter() {
            return;
        }
        core.follow();
        let started = core.clock.now();
        let report = if is_off { ExpireReport::default() } else { core.sweep(&mut self.access) };
        let all_told = core.tell_of_removed(&mut self.access);
        let leaves_some = is_off || report.more || report.held;
        if !leaves_some {
            core.show_stale(StaleShare::default());
        } else if core.now >= core.stale_at {
            core.stale_at = core.now.plus(STALE_NS);
            let stale = self.access.sample_stale(core.unix_ms);
            core.show_stale(stale);
        }
        self.access.leave();
        if is_off {
            return;
        }
        if report.expired > 0 {
            let counters = &core.shared.workers[core.id];
            let ns = core.clock.now().since(started);
            counters.expire_ns.add(ns);
            counters.expire_step_max_ns.raise(ns);
            if core.settings.is_spike(ns) {
                core.note_spike(SpikeEvent::ExpireCycle, ns);
            }
            core.busy = true;
        }
        core.expire_now = report.more;
        if report.more {
            core.expire_at = core.now;
        } else if let Some(at) = core.retries.next(Work::Removed, !all_told, core.now) {
            core.expire_at = at;
        } else if report.held {
            // Nobody says when it may go: that is looked at as often as others' keys are.
        } else if let Some(due) = self.access.next_due() {
            let wait_ms = (due.0 - core.unix_ms.0).max(1) as u64;
            core.expire_at = core.now.plus(EXPIRE_NS.min(wait_ms.saturating_mul(MS)));
        }
    }

    fn housekeeping(&mut self) {
        self.core.housekeeping_at = self.core.now.plus(HOUSEKEEPING_NS);
        if self.core.shared.cron_paused.load(Relaxed) {
            return;
        }
        self.core.busy = false;
        for conn in self.core.idle_clients() {
            self.close_now(conn);
        }
        self.look_at_soft_limits();
        self.publish();
    }

    /// Makes the driver's figures visible to INFO.
    pub(crate) fn publish(&mut self) {
        let counters = &self.core.shared.workers[self.core.id];
        let mut io = counters.io.lock().expect("no panic while figures are held");
        *io = self.driver.stats().clone();
        counters.published.set(counters.processed.get());
        drop(io);
        if self.core.id == 0 && self.core.now >= self.core.overflows_at {
            self.core.overflows_at = self.core.now.plus(OVERFLOWS_NS);
            self.core.shared.listen_overflows.store(self.driver.listener_overflows(), Relaxed);
        }
        if self.core.id == 0 {
            self.core.shared.sample_rates(self.core.now);
        }
    }

    /// Replies of executed commands leave, at most for a second; unread input is dropped.
    fn shut_down(&mut self) {
        let started = *self.core.flushed_at.get_or_insert_with(|| {
            for listener in std::mem::take(&mut self.core.listeners) {
                self.driver.close_listener(listener);
            }
            for s in self.core.sessions.iter_mut().flatten() {
                s.finish();
                self.driver.pause(s.conn);
                self.core.closing.push(s.conn);
            }
            self.core.now
        });
        if started == self.core.now {
            self.finish_ingest();
        }
        self.flush();
        let open: Vec<ConnId> = self.core.sessions.iter().flatten().map(|s| s.conn).collect();
        let late = self.core.now.since(started) > FLUSH_LIMIT_NS;
        if (open.is_empty() && self.ingest.is_empty()) || late {
            for conn in open {
                self.close_now(conn);
            }
            self.drop_ingest();
            self.core.retire();
            self.core.done = true;
        }
    }
}
