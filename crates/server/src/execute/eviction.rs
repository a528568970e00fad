//! Making room while `maxmemory` is exceeded, as `maxmemory-policy` says. A worker does it before
//! it executes commands that may take memory. So who only reads pays nothing, and what is exceeded
//! is at most what one worker executes at a time.
//!
//! | what is used | what happens to commands that may take memory |
//! |---|---|
//! | is below `maxmemory` | they run |
//! | is above | keys are evicted first, until it is below, or for `maxmemory-eviction-tenacity` |
//! | is above, and no key may go | OOM |
//!
//! The same for each database with a budget (`db-limit`), and there for nobody else's keys:
//! `budgets`.
//!
//! Keys are evicted for what keys take, and clients' buffers, but not for what is being freed or
//! kept for a save: it is gone soon, and to evict for it would empty the keyspace.

use crate::execute::gates::closed;
use crate::execute::panics::Panicked;
use crate::log;
use crate::worker::core::Core;
use base::DbIndex;
use config::MaxmemoryPolicy;
use keyspace::{Access, EVICTIONS_MAX, Eviction, Order};

/// What one step of `maxmemory-eviction-tenacity` gives.
const STEP_NS: u64 = 50_000;
/// From this one on there is no limit.
const TENACITY_ENDLESS: u64 = 100;
/// How often what is not counted is measured while little is left.
const MEASURE_NS: u64 = 1_000_000;
/// What one key gives at least; most give more, and then fewer go than are looked for.
const ENTRY_BYTES: u64 = 64;
/// The most keys that are compared for one.
const SAMPLES_MAX: usize = 64;

/// How keys are chosen, of one database or of all, under a policy which evicts.
pub(super) fn eviction(db: Option<DbIndex>, policy: MaxmemoryPolicy, samples: usize) -> Eviction {
    let order = match policy {
        MaxmemoryPolicy { counts_uses: true, .. } => Order::LeastFrequent,
        MaxmemoryPolicy { is_random: true, .. } => Order::Random,
        MaxmemoryPolicy { follows_expiry: true, .. } => Order::NearestExpiry,
        _ => Order::LeastRecent,
    };
    let (is_volatile, samples) = (policy.is_volatile, samples.min(SAMPLES_MAX));
    Eviction { db, order, is_volatile, samples }
}

impl Core {
    /// Whether there is a `maxmemory`.
    #[inline]
    pub(crate) fn has_limit(&self) -> bool {
        self.settings.memory_limit > 0
    }

    /// True if keys are to be evicted.
    #[cold]
    pub(crate) fn needs_room(&self) -> bool {
        let max = self.settings.memory_limit;
        let evicts = self.has_limit() && self.settings.maxmemory_policy.evicts;
        evicts && self.shared.evictable_memory(max) > max
    }

    /// Evicts keys if that is so.
    #[cold]
    pub(crate) fn make_room_if_needed(&mut self, access: &mut Access) {
        if self.needs_room() {
            self.make_room(access);
        }
    }

    /// Measures what is not counted, unless that was done a moment ago.
    pub(crate) fn measure_memory(&self, every_ns: u64) {
        let max = self.settings.memory_limit;
        if max > 0 {
            self.shared.measure_memory(max, self.turn.now(), every_ns);
        }
    }

    /// Measures, the more often the less is left. True if commands that may take memory fail.
    ///
    /// All buffers are asked, not only those that keys go for: unread replies with large values
    /// share the memory of these, which only a measurement tells.
    #[cold]
    pub(crate) fn is_full_in_turn(&self) -> bool {
        let max = self.settings.memory_limit;
        match self.shared.evictable_memory(max).max(self.shared.used_memory()) {
            used if used > max - max / 16 => self.measure_memory(MEASURE_NS),
            used if used > max - max / 4 => self.measure_memory(10 * MEASURE_NS),
            _ => {}
        }
        self.may_be_full() && self.is_above_limit()
    }

    pub(super) fn is_above_limit(&self) -> bool {
        self.shared.used_memory() > self.settings.memory_limit
    }

    /// True while commands that may take memory are refused. The gate was closed before the window
    /// or the turn: what came since, perhaps a DEL in the same packet, may have made room.
    #[inline]
    pub(super) fn is_memory_full(&self) -> bool {
        self.gates & closed::MEMORY != 0 && self.is_above_limit()
    }

    /// True if no key goes to make room: none may, or none was found which may.
    pub(crate) fn may_be_full(&self) -> bool {
        self.is_out_of_room || !self.settings.maxmemory_policy.evicts
    }

    /// [`Self::follow_limit`], and the same for each database.
    pub(crate) fn follow_limits(&mut self, access: &mut Access) -> bool {
        let has_more = self.follow_limit(access);
        self.follow_budgets(access) || has_more
    }

    /// A limit that was lowered is followed although nobody writes, and one that is kept again, for
    /// whatever reason, is no longer exceeded. True if there is more to be evicted. Called by
    /// housekeeping.
    fn follow_limit(&mut self, access: &mut Access) -> bool {
        if self.needs_room() {
            return self.make_room(access);
        }
        if !self.is_above_limit() || !self.has_limit() {
            self.shared.limits.exceeded.set(false, self.turn.now());
        }
        false
    }

    /// Evicts keys. Afterwards the gate for memory is closed if no key may go. True if some went.
    #[cold]
    pub(crate) fn make_room(&mut self, access: &mut Access) -> bool {
        let Some(has_made) = self.evict_inside(access, Self::evict) else { return false };
        let is_exceeded = self.is_above_limit();
        self.shared.limits.exceeded.set(is_exceeded, self.turn.now());
        self.is_out_of_room = !has_made && is_exceeded;
        if self.is_out_of_room {
            self.gates |= closed::MEMORY;
        } else {
            self.gates &= !closed::MEMORY;
        }
        has_made
    }

    /// Calls `evict` inside the section of this worker; `None` if nothing may be evicted now.
    pub(super) fn evict_inside(
        &mut self,
        access: &mut Access,
        evict: impl FnOnce(&mut Self, &mut Access) -> bool,
    ) -> Option<bool> {
        // As in Redis, not while a file is loaded. While writes wait or fail none needs room.
        let is_idle =
            self.shared.load.is_on() || self.gates & (closed::WAITS | closed::UNWRITTEN) != 0;
        if is_idle || !access.enter() {
            return None; // (whoever holds World is soon done)
        }
        self.follow();
        let has_made = self.catch(|core| evict(core, access)).unwrap_or_else(|Panicked(_)| {
            log::warning(format_args!("Panic while keys were evicted"));
            false // (true would have it tried again at once, perhaps for ever)
        });
        let _ = self.serve_deferred(access);
        access.leave();
        Some(has_made)
    }

    /// False if no key may go.
    fn evict(&mut self, access: &mut Access) -> bool {
        let settings = &self.settings;
        let how = eviction(None, settings.maxmemory_policy, settings.maxmemory_samples);
        let max = settings.memory_limit;
        let excess = |core: &Self| core.shared.evictable_memory(max).saturating_sub(max);
        self.evict_while(access, how, excess)
    }

    /// Evicts keys while there is an excess, or for `maxmemory-eviction-tenacity`. False if no key
    /// may go.
    pub(super) fn evict_while(
        &mut self,
        access: &mut Access,
        how: Eviction,
        excess: impl Fn(&Self) -> u64,
    ) -> bool {
        let tenacity = self.settings.eviction_tenacity;
        let (now, started) = (self.turn.unix_ms(), self.clock.now());
        loop {
            let excess = excess(self);
            if excess == 0 {
                return true;
            }
            let most = (excess / ENTRY_BYTES + 1).min(EVICTIONS_MAX as u64) as usize;
            let count = access.evict(how, now, most, excess);
            if count == 0 {
                return false;
            }
            let is_over = self.clock.now().since(started) >= tenacity * STEP_NS;
            if is_over && tenacity < TENACITY_ENDLESS {
                return true;
            }
        }
    }
}
