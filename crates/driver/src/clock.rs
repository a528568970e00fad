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
