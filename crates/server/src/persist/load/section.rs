//! An Access of a loader thread, and its way under locks.

use base::sync::atomic::{AtomicBool, Ordering::Relaxed};
use base::sync::{Arc, thread};
use base::{SlotId, UnixMs};
use keyspace::{Access, Guard, Intent, Parked};
use std::time::Duration;

/// The pause before a slot which is held for long, or a closed gate, is tried again. (A client may
/// use DEBUG meanwhile.)
const RETRY: Duration = Duration::from_micros(200);

/// An Access, and whether it is inside its section.
pub(crate) struct Section {
    access: Access,
    is_inside: bool,
    is_cancelled: Arc<AtomicBool>,
}

impl Section {
    /// Outside. Once `is_cancelled` is set, nothing is locked any more. What is loaded leaves no
    /// records.
    pub(crate) fn new(mut access: Access, is_cancelled: Arc<AtomicBool>) -> Self {
        access.set_exempt_from_records(true);
        Self { access, is_inside: false, is_cancelled }
    }

    /// True if nothing more is to be done.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    /// Runs `f` with one slot locked. The section is entered, and stays so. `None` if the server
    /// ends instead.
    #[inline]
    pub(crate) fn with_slot<R>(
        &mut self,
        slot: SlotId,
        now: UnixMs,
        f: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        self.with(|access| access.lock_one(slot, now, Intent::Write), f)
    }

    /// As [`Section::with_slot`] with these slots, which are ascending.
    pub(crate) fn with_slots<R>(
        &mut self,
        slots: &[SlotId],
        now: UnixMs,
        f: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        self.with(|access| access.lock(slots, now, Intent::Write), f)
    }

    #[inline]
    fn with<R>(
        &mut self,
        lock: impl Fn(&mut Access) -> Result<Guard<'_>, Parked>,
        f: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        loop {
            if !self.is_inside {
                self.is_inside = self.access.enter();
            }
            if self.is_inside
                && let Ok(mut guard) = lock(&mut self.access)
            {
                return Some(f(&mut guard));
            }
            self.leave();
            if self.is_cancelled() {
                return None;
            }
            thread::sleep(RETRY);
        }
    }

    /// Runs `f` with the whole keyspace, outside the section. `None` if the server ends instead.
    pub(crate) fn with_world<R>(
        &mut self,
        now: UnixMs,
        f: impl FnOnce(&mut Guard<'_>) -> R,
    ) -> Option<R> {
        self.leave();
        while self.access.try_world().is_err() {
            if self.is_cancelled() {
                return None;
            }
            thread::sleep(RETRY);
        }
        let mut guard = self.access.world(now);
        let result = f(&mut guard);
        drop(guard);
        self.access.open_world();
        Some(result)
    }

    /// Frees what flushes have detached.
    pub(crate) fn reclaim(&mut self) {
        const ENTRIES: usize = 4096;
        self.leave();
        while !self.is_cancelled() && self.access.reclaim(ENTRIES) {}
    }

    /// Commands of this Access may be long whoever waits for a turn.
    pub(crate) fn exempt_from_turns(&mut self) {
        self.access.set_exempt_from_turns(true);
    }

    pub(crate) fn leave(&mut self) {
        if std::mem::take(&mut self.is_inside) {
            self.access.leave();
        }
    }
}

impl Drop for Section {
    /// Also behind a panic.
    fn drop(&mut self) {
        self.leave();
        if self.access.holds_world() {
            self.access.open_world();
        }
    }
}
