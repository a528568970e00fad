//! The driver's clock: real, or virtual in the simulator.

use base::sync::Arc;
use base::sync::hint::{AtomicU64, Ordering::Relaxed};
use base::{MonoNs, UnixMs};
use rustix::time::{ClockId, clock_gettime};

/// A monotonic clock that can be read anywhere in a worker.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// The simulator's.
    Virtual(Arc<AtomicU64>),
    /// A test's: goes on by so many nanoseconds whenever it is read.
    Stepping(Arc<AtomicU64>, u64),
    /// That of the simulated world to which the calling thread belongs.
    #[cfg(sim)]
    Baton,
}

/// The longest that reading the clock of a world takes: so a loop that waits for a time ends.
#[cfg(sim)]
const READ_NS_MAX: u64 = 200;

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
            Clock::Stepping(at, step_ns) => MonoNs(at.fetch_add(*step_ns, Relaxed) + step_ns),
            #[cfg(sim)]
            Clock::Baton => {
                base::sync::baton::pass_time(READ_NS_MAX);
                MonoNs(base::sync::baton::now_ns().unwrap_or_default())
            }
        }
    }

    /// Microseconds since the Unix epoch, in a turn that began at `turn` and at `turn_ms` by the
    /// wall clock.
    pub fn unix_us(&self, turn: MonoNs, turn_ms: UnixMs) -> i64 {
        if matches!(self, Clock::System) {
            return unix_ns() / 1000;
        }
        turn_ms.0 * 1000 + (self.now().since(turn) / 1000) as i64
    }
}

/// Nanoseconds since the Unix epoch.
pub fn unix_ns() -> i64 {
    let t = clock_gettime(ClockId::Realtime);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// How long the wall clock is derived from the monotonic one before it is read again. A step of the
/// wall clock goes unnoticed for at most this long.
pub const RESYNC_NS: u64 = 50_000_000;

/// The wall clock at the price of an addition: one clock is read per turn, not two.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock {
    synced: Option<MonoNs>,
    /// Nanoseconds to add to the monotonic clock.
    offset_ns: i64,
}

impl WallClock {
    /// The wall clock at the monotonic time `now`; `unix_ns` reads it.
    #[inline]
    pub fn unix_ms(&mut self, now: MonoNs, unix_ns: impl FnOnce() -> i64) -> UnixMs {
        if self.synced.is_none_or(|at| now.since(at) > RESYNC_NS) {
            self.synced = Some(now);
            self.offset_ns = unix_ns() - now.0 as i64;
        }
        UnixMs((now.0 as i64 + self.offset_ns).div_euclid(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_follows_the_monotonic_clock_and_detects_steps() {
        let mut wall = WallClock::default();
        let start = MonoNs(7_000_000_000);
        assert_eq!(wall.unix_ms(start, || 1_000_000_000), UnixMs(1000));
        let never = || -> i64 { panic!("not yet") };
        assert_eq!(wall.unix_ms(start.plus(1_999_999), never), UnixMs(1001));
        assert_eq!(wall.unix_ms(start.plus(RESYNC_NS), never), UnixMs(1050));
        // The administrator sets the clock back.
        assert_eq!(wall.unix_ms(start.plus(RESYNC_NS + 1), || -500_000), UnixMs(-1));
    }

    #[test]
    fn both_clocks_read_the_system_time() {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
        assert!(unix_ns().abs_diff(since.as_nanos() as i64) < 1_000_000_000);
        let before = Clock::System.now();
        assert!(Clock::System.now() >= before);
    }
}
