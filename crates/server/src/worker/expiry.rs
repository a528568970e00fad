//! Removing keys whose time has come, in steps, from this worker's share of the slots.

use crate::execute::gates::closed;
use crate::execute::panics::Panicked;
use crate::shared::PanicAt;
use crate::worker::Worker;
use crate::worker::core::Core;
use crate::worker::message::Message;
use crate::worker::retry::Work;
use base::MonoNs;
use base::sync::atomic::Ordering::Relaxed;
use driver::Driver;
use keyspace::{Access, ExpireReport, StaleShare};
use observe::SpikeEvent;

const MS: u64 = 1_000_000;
/// Longest step before events are handled again.
const STEP_NS: u64 = 200_000;
/// How often a worker looks for due keys at least, even asleep: another worker may have given one
/// of its slots an earlier one. Well under 100 ms, the lag that is promised.
const EXPIRE_NS: u64 = 60 * MS;
/// What is due and still there is sampled no more often than this. A sample may cost as much as a
/// step.
pub const STALE_NS: u64 = 100 * MS;

impl<D: Driver<Message = Message>> Worker<D> {
    /// One step, if it is time for one.
    pub(super) fn expire(&mut self) {
        self.core.timers.expires_more = false;
        if self.core.turn.now() < self.core.timers.expire_at {
            return;
        }
        self.tend_memory();
        let (core, access) = (&mut self.core, &mut self.access);
        if core.shutdown.has_begun() {
            // They are due again behind the next start, and the journal would not come to its end.
            core.timers.expire_at = core.turn.now().plus(EXPIRE_NS);
            return;
        }
        core.timers.expire_at = core.turn.now().plus(EXPIRE_NS);
        let is_off = core.is_expiry_off();
        if !access.enter() {
            return;
        }
        core.follow();
        let started = core.clock.now();
        let report = if is_off { ExpireReport::default() } else { core.sweep(access) };
        let all_served = core.serve_deferred(access);
        core.sample_stale(access, is_off || report.more || report.held);
        access.leave();
        if is_off {
            return;
        }
        if report.expired > 0 {
            core.record_expired_step(started);
        }
        core.timers.expires_more = report.more;
        if let Some(at) = core.next_expiry(access, &report, all_served) {
            core.timers.expire_at = at;
        }
    }
}

impl Core {
    fn is_expiry_off(&self) -> bool {
        let shared = &self.shared;
        !shared.active_expire.load(Relaxed)
            || shared.cron_paused.load(Relaxed)
            || shared.load.is_on()
            || shared.saves.is_reloading() // DEBUG LOADAOF waits until nothing is to be written
            || shared.keyspace.is_expiry_held(self.turn.unix_ms())
    }

    /// A panic costs nothing but that the keys are removed later.
    fn sweep(&mut self, access: &mut Access) -> ExpireReport {
        let swept = self.catch(|core| {
            if core.gates & closed::ARMED != 0
                && let Some(changes) = core.disarm(|at| at == PanicAt::Sweep)
            {
                assert!(changes > 0, "a panic was asked for, before any change");
                access.panic_after(changes);
            }
            access.expire_step(core.turn.unix_ms(), STEP_NS, || core.clock.now())
        });
        access.disarm();
        swept.unwrap_or_else(|Panicked(_)| {
            crate::log::warning(format_args!(
                "Panic while expired keys were removed; they will be removed later"
            ));
            ExpireReport::default()
        })
    }

    /// Samples which keys are due and still there, if there may be any.
    fn sample_stale(&mut self, access: &mut Access, leaves_some: bool) {
        if !leaves_some {
            self.show_stale(StaleShare::default());
        } else if self.turn.now() >= self.timers.stale_at {
            self.timers.stale_at = self.turn.now().plus(STALE_NS);
            let stale = access.sample_stale(self.turn.unix_ms());
            self.show_stale(stale);
        }
    }

    /// What `expired_stale_perc` is made of.
    fn show_stale(&self, stale: StaleShare) {
        let [due, seen] = &self.counters().stale;
        due.set(stale.due);
        seen.set(stale.seen);
    }

    /// Counts a step that has removed keys.
    fn record_expired_step(&mut self, started: MonoNs) {
        let counters = self.counters();
        let ns = self.clock.now().since(started);
        counters.expire_ns.add(ns);
        counters.expire_step_max_ns.raise(ns);
        if self.settings.is_spike(ns) {
            self.record_spike(SpikeEvent::ExpireCycle, ns);
        }
        self.timers.is_busy = true;
    }

    /// When the next step is due, if it is sooner than others' keys are looked for.
    fn next_expiry(
        &self,
        access: &Access,
        report: &ExpireReport,
        all_served: bool,
    ) -> Option<MonoNs> {
        let now = self.turn.now();
        if report.more {
            return Some(now);
        }
        if let Some(at) = self.tasks.retries.next(Work::Deferred, !all_served, now) {
            return Some(at);
        }
        if report.held {
            return None; // nobody says when they may go
        }
        let due = access.next_due()?;
        let wait_ms = (due.0 - self.turn.unix_ms().0).max(1) as u64;
        Some(now.plus(EXPIRE_NS.min(wait_ms.saturating_mul(MS))))
    }
}
