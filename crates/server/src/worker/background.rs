//! What a worker does between events: long commands in steps, expiry, freeing, housekeeping.

use crate::execute::caller::Caller;
use crate::execute::gates::closed;
use crate::sessions::card::flag;
use crate::sessions::session::{ReplyMode, Suspended, Task, gate};
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use base::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use base::{MonoNs, UnixMs};
use command::Progress;
use config::MemoryShare;
use driver::{ConnId, Driver};
use keyspace::Parked;
use resp::Reply;

const MS: u64 = 1_000_000;
/// Housekeeping interval while there is anything to keep house for.
const HOUSEKEEPING_NS: u64 = 100 * MS;
/// Entries freed per step: well under the length of a step.
const RECLAIM_ENTRIES: usize = 1024;
/// Listen-queue overflows are read this often.
const OVERFLOWS_NS: u64 = 1_000 * MS;

impl Core {
    /// When the driver must return at the latest; `None` sleeps until something happens.
    pub(crate) fn next_wake(&self) -> Option<MonoNs> {
        let now = self.turn.now();
        if self.tasks.are_ready() || self.timers.expires_more {
            return Some(now);
        }
        if self.shutdown.has_begun() {
            return Some(now.plus(MS));
        }
        let has_housekeeping =
            self.timers.is_busy || self.settings.timeout_s > 0 || !self.above_soft.is_empty();
        let times = [
            Some(self.timers.expire_at),
            has_housekeeping.then_some(self.timers.housekeeping_at),
            self.tasks.next_wake(now),
            self.pause_ends_at(),
            self.timers.save_at,
            self.tending.step_at,
        ];
        times.into_iter().flatten().min()
    }

    /// When CLIENT PAUSE ends, if it is on; or in a moment, if a save holds writes.
    fn pause_ends_at(&self) -> Option<MonoNs> {
        let left = || self.shared.pause.until_ms.load(Relaxed) - self.turn.unix_ms().0;
        let is_paused = self.gates & closed::WAITS != 0;
        is_paused.then(|| self.turn.now().plus((left().max(1) as u64).saturating_mul(MS)))
    }

    /// Takes over the turn's time and, if it changed, the configuration.
    pub(crate) fn begin_turn(&mut self, now: MonoNs, unix_ms: UnixMs) {
        self.turn.begin(now, unix_ms);
        self.begin_deliveries();
        self.follow();
        let epoch = self.shared.stats_epoch.load(Acquire);
        if epoch != self.versions.stats {
            self.versions.stats = epoch;
            self.shared.ingest.reset(self.id);
            self.counters().reset();
            self.counters().epoch.store(epoch, Release);
        }
        self.refresh_gates();
        self.follow_hot_sessions();
        if self.settings.maxmemory_clients != MemoryShare::Bytes(0) {
            self.follow_clients_limit();
        }
    }

    /// Recomputes the conditions that take commands off the short path.
    pub fn refresh_gates(&mut self) {
        let before = self.gates;
        let mut gates = if self.shared.armed.load(Relaxed) { closed::ARMED } else { 0 };
        if self.has_limit() && self.is_full_in_turn() {
            gates |= closed::MEMORY;
        }
        if self.has_budgets() && self.is_any_database_full() {
            gates |= closed::BUDGET;
        }
        if self.shared.pause.until_ms.load(Relaxed) > self.turn.unix_ms().0 {
            gates |= closed::PAUSE;
        }
        if self.are_writes_held_back() {
            gates |= closed::HELD;
            let is_new = before & closed::HELD == 0 && self.shared.keyspace.is_capture_over_bound();
            self.shared.saves.held.fetch_add(u64::from(is_new), Relaxed);
        }
        if self.settings.stop_writes_on_save_error
            && self.shared.saves.has_failed()
            && !self.settings.save_points.is_empty()
        {
            gates |= closed::UNSAVED;
        }
        if self.shared.load.is_on() {
            gates |= closed::LOADING;
        }
        if self.shared.monitors.any() {
            gates |= closed::MONITOR;
        }
        if self.shared.keyspace.numbers().is_drawing() {
            gates |= closed::NUMBERED;
        }
        // Also for a moment after the last number was drawn.
        if self.shared.are_replies_held() {
            gates |= closed::AWAITED;
        }
        if self.shared.journal.is_unwritten() {
            gates |= closed::UNWRITTEN;
        }
        if self.settings.records_every_command() {
            gates |= closed::CLOCK;
        }
        if self.shared.keyspace.is_restricted() {
            gates |= closed::RESTRICTED;
        }
        if before & !gates & closed::WAITS != 0 {
            self.turn.mark_pause_changed();
        }
        self.gates = gates;
    }

    /// True while writes wait for a save: it captures more than it writes, or what changes behind
    /// its moment would be lost. Or for a worker that is behind with events of keys.
    pub(crate) fn are_writes_held_back(&self) -> bool {
        self.shared.saves.is_holding_writes()
            || self.shared.keyspace.is_capture_over_bound()
            || self.shared.journal.holds_writes.load(Relaxed)
            || self.shared.are_events_behind()
    }

    /// Clients without a request for `timeout` seconds.
    fn idle_clients(&self) -> Vec<ConnId> {
        let limit = u64::from(self.settings.timeout_s) * 1_000 * MS;
        if limit == 0 {
            return Vec::new();
        }
        let idle = |s: &&crate::sessions::session::Session| {
            matches!(s.suspended, Suspended::No)
                && s.gates & (gate::MONITOR | gate::SUBSCRIBED) == 0
                && self.turn.now().since(s.last_active) > limit
        };
        self.sessions.iter().flatten().map(AsRef::as_ref).filter(idle).map(|s| s.conn).collect()
    }
}

impl<D: Driver<Message = Message>> Worker<D> {
    /// Assembled requests whose sessions were woken.
    pub(crate) fn run_retries(&mut self) {
        for _ in 0..self.core.tasks.runnable.len() {
            let Some(conn) = self.core.tasks.runnable.pop_front() else { return };
            let Some(session) = self.core.session_mut(conn) else { continue };
            match session.suspended {
                Suspended::Task(_) => self.core.tasks.runnable.push_back(conn),
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
        let was_paused = self.core.turn.take_pause_changed();
        // (Reads may wait for the one, and writes for both. Who must still wait does so again.)
        if was_paused && self.core.gates & closed::WAITS != closed::WAITS {
            self.wake_where(|s| matches!(s, Suspended::Pause));
            self.core.timers.expire_at = self.core.turn.now(); // what fell due meanwhile
        }
        self.expire();
        if self.core.tending.step_at.is_some() {
            self.step_defrag();
        }
        if self.core.turn.now() >= self.core.timers.housekeeping_at {
            self.housekeeping();
        }
        if self.core.timers.save_at.is_some_and(|at| at <= self.core.turn.now()) {
            self.core.check_saves();
        }
        self.begin_saves();
        self.empty_for_loading();
        if self.core.tasks.starts_journal {
            self.start_journal();
        }
        if self.core.tasks.journal_again_at.is_some_and(|at| at <= self.core.turn.now()) {
            self.follow_appendonly();
        }
        self.step_journal();
        self.end_syncs();
        self.end_disk_waits();
        if self.core.gates & closed::HELD != 0 {
            self.extend_final_save();
        }
        if self.is_shutting_down() {
            self.shut_down();
        }
        self.start_file_ops();
    }

    /// One step of the next long command.
    fn step_tasks(&mut self) {
        let Some(conn) = self.core.tasks.runnable.pop_front() else { return };
        if self.core.shutdown.is_still {
            return;
        }
        let Some((caller, mut task)) = self.core.take_task(conn) else { return };
        if !self.access.enter() {
            return self.core.park_task(&mut self.access, &caller, task, Parked::Gate);
        }
        self.core.follow();
        if caller.session(&mut self.core).card.has_flag(flag::CLOSE_ASAP) {
            return self.access.leave(); // killed; the message that closes it is on its way
        }
        match self.step_inside(&caller, &mut task) {
            Progress::Complete => self.end_task(&caller, task),
            Progress::More => self.core.suspend(&caller, Suspended::Task(task)),
            Progress::Park(at) => self.core.park_task(&mut self.access, &caller, task, at),
        }
        if !self.core.batch.after.is_empty() {
            self.apply_after();
        }
    }

    /// The step itself; what it replies and how long it takes is noted for its command.
    fn step_inside(&mut self, caller: &Caller, task: &mut Task) -> Progress {
        let started = self.core.clock.now();
        let (_, out) = self.driver.io();
        self.core.turn.output.open(caller.conn().index, out);
        let mark = out.position();
        let progress = self.core.step(&mut self.access, out, caller, task);
        let s = caller.session(&mut self.core);
        if !matches!(task, Task::Subscribing(_)) {
            s.mute(mark, out); // confirmations are always sent
        }
        s.built_held.set(task.memory());
        let replied = out.len_between(mark, out.position());
        self.access.leave();
        if matches!(task, Task::Preparing(..)) {
            let ns = self.core.clock.now().since(started);
            caller.session(&mut self.core).prepared_ns += ns;
        }
        let id = task.command();
        self.core.record_step(caller, id, started, replied, progress == Progress::Complete);
        progress
    }

    /// The last step is done: the session goes on, with the command itself if the work was done
    /// ahead of it.
    fn end_task(&mut self, caller: &Caller, task: Task) {
        let s = caller.session(&mut self.core);
        if let Task::Preparing(work, _) = task {
            s.prepared = Some(work);
            s.set_gate(gate::PREPARED, true);
            self.release_pushes(caller.conn());
            return self.wake(caller.conn());
        }
        s.built_held.set(0);
        let is_wanted = s.reply_mode == ReplyMode::On;
        s.end_reply();
        if is_wanted {
            self.core.note_done(caller.conn());
        }
        self.release_pushes(caller.conn());
        self.wake_in_turn(caller.conn());
    }

    /// Frees a part of what was flushed.
    fn reclaim(&mut self) {
        if self.core.tasks.is_reclaiming {
            self.core.tasks.is_reclaiming = self.access.reclaim(RECLAIM_ENTRIES);
        }
    }

    /// DEBUG SLEEP: opens World when its time has come.
    fn end_sleeps(&mut self) {
        let Some((conn, until)) = self.core.tasks.sleeping else { return };
        if self.core.turn.now() < until {
            return;
        }
        self.core.tasks.sleeping = None;
        self.access.open_world();
        if let Some(proto) = self.core.session_mut(conn).map(|s| s.proto) {
            self.answer(conn, |_, out| Reply::new(out, proto).ok());
        }
    }

    fn housekeeping(&mut self) {
        self.core.timers.housekeeping_at = self.core.turn.now().plus(HOUSEKEEPING_NS);
        self.hasten_bulks();
        self.report_loading();
        self.end_leavers();
        self.load_append_only();
        if self.core.shared.cron_paused.load(Relaxed) {
            return;
        }
        let has_leavers = !self.core.turn.closing.is_empty();
        self.core.timers.is_busy =
            !self.core.bulks.is_empty() || self.core.tasks.loading.is_some() || has_leavers;
        for conn in self.core.idle_clients() {
            self.close_now(conn);
        }
        self.core.measure_memory(HOUSEKEEPING_NS / 2);
        if self.core.id == 0 && self.core.follow_limits(&mut self.access) {
            self.core.timers.is_busy = true;
            self.core.timers.housekeeping_at = self.core.turn.now();
        }
        self.core.tend_reads();
        self.check_soft_limits();
        self.core.check_saves();
        self.core.look_at_values(&mut self.access);
        if self.core.id == 0 {
            let shared = &self.core.shared;
            shared.hot.end_if_due(shared, self.core.turn.unix_ms().0);
        }
        self.forget_producers();
        self.publish();
        self.tend_load();
    }

    /// Forgets producers of ingest whose time has come. One worker does it for all.
    fn forget_producers(&self) {
        let producers = &self.core.shared.ingest.producers;
        if self.core.id == 0 && !producers.is_empty() {
            // What is left over is forgotten in the next rounds.
            _ = producers.forget(self.core.turn.now(), self.core.settings.ingest_forget_ns);
        }
    }

    /// Makes the driver's figures visible to INFO.
    pub(crate) fn publish(&mut self) {
        let counters = &self.core.shared.workers[self.core.id];
        let mut io = counters.io.lock().expect("no panic while figures are held");
        *io = self.driver.stats().clone();
        counters.longest_turn_ns.raise(std::mem::take(&mut self.driver.stats().longest_turn_ns));
        counters.published.set(counters.processed.get());
        drop(io);
        self.core.fold_service();
        if self.core.id == 0 && self.core.turn.now() >= self.core.timers.overflows_at {
            self.core.timers.overflows_at = self.core.turn.now().plus(OVERFLOWS_NS);
            self.core.shared.listen_overflows.store(self.driver.listener_overflows(), Relaxed);
        }
        if self.core.id == 0 {
            self.core.shared.sample_rates(self.core.turn.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use base::sync::Arc;
    use driver::loopback::Loopback;

    /// A reply of the short path has no hold, so the path is closed as long as a number may be
    /// awaited: an append-only file that was switched off is not durable yet.
    #[test]
    fn numbers_are_awaited_behind_the_last_one() {
        let mut driver = Loopback::new(7);
        let shared = crate::boot::make_shared(Config::default(), &mut driver, 1, || (0, 0));
        let shared = Arc::new(shared);
        let mut worker = Worker::new(driver, Arc::clone(&shared), 0, Vec::new());
        worker.turn();
        assert_eq!(worker.core.gates & (closed::AWAITED | closed::NUMBERED), 0);
        shared.safe_seq.store(3, Relaxed);
        worker.turn();
        assert_eq!(worker.core.gates & (closed::AWAITED | closed::NUMBERED), closed::AWAITED);
    }
}
