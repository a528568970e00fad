//! Synchronisation in a simulated world: each operation is a switch point of the [`baton`]. A
//! thread which belongs to no world passes switch points without effect and synchronises as in
//! production.

pub mod atomic;
pub mod baton;
mod futex;
mod lock;
pub mod thread;

pub use baton::exit;
pub use futex::{Deadline, futex_wait, futex_wait_until, futex_wake};
pub use lock::{Condvar, Mutex, MutexGuard, OnceLock};
pub use std::sync::Arc;

use std::panic::Location;

/// Tells the processor that this thread spins. In a world the thread sleeps for a moment, so that a
/// spin behind a held thread lets time pass.
#[track_caller]
pub fn spin_loop() {
    if !baton::spin(Location::caller()) {
        std::hint::spin_loop();
    }
}

/// True if the calling thread belongs to a simulated world: what the real machine tells (memory,
/// processors, times) must not reach it.
pub fn is_simulated() -> bool {
    baton::is_active()
}
