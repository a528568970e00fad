//! When a worker does next what it does again and again. Set by the work itself each time it is
//! done; whoever makes it urgent sets an earlier time.

use base::MonoNs;

/// The times of recurring work.
pub struct Timers {
    /// Keys whose time has come are looked for.
    pub expire_at: MonoNs,
    /// More keys are due than one step removes.
    pub expires_more: bool,
    /// Keys that are due and still there are sampled.
    pub stale_at: MonoNs,
    /// Housekeeping, while there is any.
    pub housekeeping_at: MonoNs,
    /// Something happened that housekeeping should publish.
    pub is_busy: bool,
    /// Overflows of listen queues are read.
    pub overflows_at: MonoNs,
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
            overflows_at: now,
        }
    }
}
