//! The one door to synchronisation on the data path: std in production, `shuttle` under
//! `--cfg shuttle`, so that every lock, flag and wait of the small kernels can be model-checked.
//! `xtask tidy` refuses `std::sync` elsewhere in the data-path crates.

#[cfg(not(shuttle))]
mod imp {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic;
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, RwLock};
    pub use std::thread;

    use atomic::AtomicU32;
    use rustix::thread::futex;

    /// Sleeps while `word` holds `expected`; may return early (check again).
    pub fn futex_wait(word: &AtomicU32, expected: u32) {
        // An error is EAGAIN (the value moved on) or EINTR: both mean "look again".
        let _ = futex::wait(word, futex::Flags::PRIVATE, expected, None);
    }

    /// Wakes up to `count` sleepers on `word`.
    pub fn futex_wake(word: &AtomicU32, count: u32) {
        let _ = futex::wake(word, futex::Flags::PRIVATE, count);
    }
}

#[cfg(shuttle)]
mod imp {
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic;
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, Once, RwLock};
    pub use shuttle::thread;
    pub use std::sync::OnceLock;

    use atomic::AtomicU32;

    /// A yield is a legal spurious wake-up; a lost wake-up still shows as a livelock that shuttle's
    /// step bound reports.
    pub fn futex_wait(word: &AtomicU32, expected: u32) {
        if word.load(atomic::Ordering::SeqCst) == expected {
            thread::yield_now();
        }
    }

    /// Nothing sleeps for long in the model.
    pub fn futex_wake(_word: &AtomicU32, _count: u32) {}
}

pub use imp::*;

/// A value on a cache line pair of its own, so that its writer disturbs nobody else's line
/// (128 bytes: adjacent-line prefetchers pull two).
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
