//! Time as the driver gives it: real, or virtual in the simulator.

use base::MonoNs;
use base::sync::Arc;
use base::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rustix::time::{ClockId, clock_gettime};

/// A monotonic clock that can be read anywhere in a worker.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// The simulator's.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// Nanoseconds since an arbitrary start.
    #[inline]
    pub fn now(&self) -> MonoNs {
        match self {
            Clock::System => {
                let t = clock_gettime(ClockId::Monotonic);
                MonoNs(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
            }
            Clock::Virtual(at) => MonoNs(at.load(Relaxed)),
        }
    }
}

/// Milliseconds since the Unix epoch.
pub fn unix_ms() -> base::UnixMs {
    let t = clock_gettime(ClockId::Realtime);
    base::UnixMs(t.tv_sec * 1000 + t.tv_nsec / 1_000_000)
}

/// How long the wall clock is derived from the monotonic one before it is read again: the longest that
/// a step of the wall clock goes unnoticed.
const RESYNC_NS: u64 = 50_000_000;

/// The wall clock at the price of an addition: one clock is read per turn, not two.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    synced: Option<MonoNs>,
    /// Nanoseconds to add to the monotonic clock.
    offset_ns: i64,
}

impl WallClock {
    /// The wall clock at the monotonic time `now`.
    pub fn unix_ms(&mut self, now: MonoNs) -> base::UnixMs {
        if self.synced.is_none_or(|at| now.since(at) > RESYNC_NS) {
            let t = clock_gettime(ClockId::Realtime);
            self.synced = Some(now);
            self.offset_ns = t.tv_sec * 1_000_000_000 + t.tv_nsec - now.0 as i64;
        }
        base::UnixMs((now.0 as i64 + self.offset_ns) / 1_000_000)
    }
}
