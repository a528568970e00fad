//! When recurring work of a worker is due next. The work sets its own time whenever it is done;
//! code which makes it urgent sets an earlier one.

use base::MonoNs;

/// The times of recurring work.
pub struct Timers {
    /// The next step of the expiry sweep.
    pub expire_at: MonoNs,
    /// More keys are due than one step removes.
    pub expires_more: bool,
    /// The next sample of keys which are due and not removed yet.
    pub stale_at: MonoNs,
    /// The next housekeeping, while there is any.
    pub housekeeping_at: MonoNs,
    /// Something happened that housekeeping should publish.
    pub is_busy: bool,
    /// When memory is looked at next, in the expiry tick.
    pub memory_at: MonoNs,
    /// The next reading of listen-queue overflows.
    pub overflows_at: MonoNs,
    /// When save points and the schedule of backups are to be checked, if one may be due.
    pub save_at: Option<MonoNs>,
    /// Until then clients are not compared for `maxmemory-clients`.
    pub clients_at: MonoNs,
}

impl Timers {
    /// Everything is due at the first turn.
    pub fn new(now: MonoNs) -> Self {
        Self {
            expire_at: now,
            expires_more: false,
            stale_at: now,
            housekeeping_at: now,
            is_busy: true,
            memory_at: now,
            overflows_at: now,
            save_at: None,
            clients_at: now,
        }
    }
}
