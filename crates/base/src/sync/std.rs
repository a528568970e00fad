//! Synchronisation in production: that of std, and futexes.

pub use std::hint::spin_loop;
pub use std::sync::atomic;
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, RwLock};
pub use std::thread;

use atomic::AtomicU32;
use rustix::thread::futex;
use std::time::{Duration, Instant};

/// Sleeps while `word` holds `expected`; may return early (check again).
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    // An error is EAGAIN (the value has changed) or EINTR: the caller checks the value after
    // both.
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
}

/// When a bounded wait ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The time `wait` from now.
    pub fn after(wait: Duration) -> Self {
        Self(Instant::now() + wait)
    }
}

/// As [`futex_wait`], but not beyond `until`; false if that has passed already.
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until: &Deadline) -> bool {
    let left = until.0.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let left =
        futex::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let _ = futex::wait(word, futex::Flags::PRIVATE, expected, Some(&left));
    true
}

/// Wakes up to `count` sleepers on `word`.
pub fn futex_wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, futex::Flags::PRIVATE, count);
}

pub use std::process::exit;

/// True if the calling thread belongs to a simulated world.
#[inline(always)]
pub fn is_simulated() -> bool {
    false
}
