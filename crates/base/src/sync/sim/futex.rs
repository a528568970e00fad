//! Futexes: queues of the baton in a world, the system's calls outside.

use super::atomic::AtomicU32;
use super::baton::{self, Kind, On, Woken};
use rustix::thread::futex;
use std::panic::Location;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// When a bounded wait ends.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(End);

#[derive(Clone, Copy, Debug)]
enum End {
    Real(Instant),
    /// Nanoseconds of the world's clock.
    Simulated(u64),
}

impl Deadline {
    /// The time `wait` from now.
    pub fn after(wait: Duration) -> Self {
        Self(match baton::now_ns() {
            Some(now) => End::Simulated(now.saturating_add(baton::nanoseconds(wait))),
            None => End::Real(Instant::now() + wait),
        })
    }
}

/// Sleeps while `word` holds `expected`; may return early (check again).
#[track_caller]
pub fn futex_wait(word: &AtomicU32, expected: u32) {
    if baton::is_active() {
        wait_in_world(word, expected, None, Location::caller());
    } else {
        // An error is EAGAIN (the value has changed) or EINTR: the caller checks the value after
        // both.
        let _ = futex::wait(word.real(), futex::Flags::PRIVATE, expected, None);
    }
}

/// As [`futex_wait`], but not beyond `until`; false if that has passed already.
#[track_caller]
pub fn futex_wait_until(word: &AtomicU32, expected: u32, until: &Deadline) -> bool {
    match until.0 {
        End::Simulated(until) => {
            if baton::now_ns().is_none_or(|now| now >= until) {
                return false;
            }
            wait_in_world(word, expected, Some(until), Location::caller());
        }
        End::Real(until) => {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let left = futex::Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let _ = futex::wait(word.real(), futex::Flags::PRIVATE, expected, Some(&left));
        }
    }
    true
}

/// Testing the value and queueing are one step, as in the kernel: there is no switch point between
/// them.
fn wait_in_world(
    word: &AtomicU32,
    expected: u32,
    until: Option<u64>,
    at: &'static Location<'static>,
) -> Option<Woken> {
    baton::point_at(Kind::Call, at);
    (word.real().load(SeqCst) == expected)
        .then(|| baton::block_at(On::Futex, address(word), until, at))
}

/// Wakes up to `count` sleepers on `word`; in a world, which of them is drawn.
#[track_caller]
pub fn futex_wake(word: &AtomicU32, count: u32) {
    if baton::is_active() {
        baton::point(Kind::Call);
        baton::wake(address(word), count);
    } else {
        let _ = futex::wake(word.real(), futex::Flags::PRIVATE, count);
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}
