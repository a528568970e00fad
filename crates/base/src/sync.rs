//! The only module through which the data path synchronises: std in production; `shuttle` under
//! `--cfg shuttle`, so that every lock, flag and wait of the small kernels can be model-checked;
//! the baton under `--cfg sim`, so that whole servers run in simulation (`docs/simulation.md`).
//! `xtask tidy` refuses `std::sync` elsewhere in the data-path crates.

#[cfg(not(any(shuttle, sim)))]
#[path = "sync/std.rs"]
mod imp;
#[cfg(shuttle)]
#[path = "sync/shuttle.rs"]
mod imp;
#[cfg(sim)]
#[path = "sync/sim/mod.rs"]
mod imp;

pub use imp::*;
pub use std::sync::PoisonError;

/// Locks of what is outside the simulated servers, such as the simulated network: taking one is no
/// switch point. A killed server must not have one, so no switch point is passed while one is held.
pub mod outside {
    pub use std::sync::{Mutex, MutexGuard};
}

/// Words that synchronise nothing: written under a lock and read without it only as a hint, or
/// written by one thread and summed by others. Always std's, also in the model, whose own atomics
/// are bigger than a word.
pub mod hint {
    pub use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, Ordering};
}

/// A value on a pair of cache lines of its own, so that its writer invalidates no other value's
/// line (128 bytes: adjacent-line prefetchers load two).
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::atomic::{AtomicU32, Ordering};
    use super::*;

    /// Runs `body` once, or under shuttle on many schedules.
    fn check(body: impl Fn() + Send + Sync + 'static) {
        #[cfg(not(shuttle))]
        body();
        #[cfg(shuttle)]
        shuttle::check_random(body, 1_000);
    }

    const RAISED: u32 = 1;
    const WAITED_FOR: u32 = 2;

    /// One thread waits for a flag. Another one sets it and calls `wake` with the flag's old value.
    fn raise_a_flag(wake: impl Fn(&AtomicU32, u32)) {
        let flag = Arc::new(AtomicU32::new(0));
        let waiter = thread::spawn({
            let flag = Arc::clone(&flag);
            move || {
                while flag.load(Ordering::SeqCst) & RAISED == 0 {
                    flag.fetch_or(WAITED_FOR, Ordering::SeqCst);
                    futex_wait(&flag, WAITED_FOR);
                }
            }
        });
        let before = flag.fetch_or(RAISED, Ordering::SeqCst);
        wake(&flag, before);
        waiter.join().expect("the waiter does not panic");
    }

    #[test]
    fn a_sleeper_is_woken() {
        check(|| {
            raise_a_flag(|flag, before| {
                if before & WAITED_FOR != 0 {
                    futex_wake(flag, 1);
                }
            });
        });
    }

    /// The model must find the bug that it exists for.
    #[cfg(shuttle)]
    #[test]
    #[should_panic(expected = "deadlock")]
    fn a_forgotten_wake_up_is_found() {
        check(|| raise_a_flag(|_, _| ()));
    }

    /// While a thread of the model unwinds, others run and are not seen as panicking.
    #[cfg(shuttle)]
    #[test]
    fn a_thread_panics_alone() {
        struct Unwinding;
        impl Drop for Unwinding {
            fn drop(&mut self) {
                assert!(thread::panicking());
                thread::yield_now();
            }
        }
        check(|| {
            let mutex = Arc::new(Mutex::new(0));
            let shared = Arc::clone(&mutex);
            let other = thread::spawn(move || {
                net(|| {
                    let _unwinding = Unwinding;
                    unwind();
                })
                .expect_err("it unwinds");
                assert!(!thread::panicking());
                *shared.lock().expect("nothing is poisoned") += 1;
            });
            for _ in 0..3 {
                *mutex.lock().expect("nothing is poisoned") += 1;
                assert!(!thread::panicking());
            }
            other.join().expect("the net caught it");
            assert_eq!(*mutex.lock().expect("nothing is poisoned"), 4);
        });
    }

    #[test]
    fn a_wake_up_reaches_as_many_as_it_says() {
        const SLEEPERS: u32 = 3;
        check(|| {
            let word = Arc::new(AtomicU32::new(0));
            let asleep = Arc::new(AtomicU32::new(0));
            let threads: Vec<_> = (0..SLEEPERS)
                .map(|_| {
                    let (word, asleep) = (Arc::clone(&word), Arc::clone(&asleep));
                    thread::spawn(move || {
                        asleep.fetch_add(1, Ordering::SeqCst);
                        while word.load(Ordering::SeqCst) == 0 {
                            futex_wait(&word, 0);
                        }
                    })
                })
                .collect();
            while asleep.load(Ordering::SeqCst) < SLEEPERS {
                thread::yield_now();
            }
            word.store(1, Ordering::SeqCst);
            futex_wake(&word, SLEEPERS - 1);
            futex_wake(&word, 1);
            for sleeper in threads {
                sleeper.join().expect("a sleeper does not panic");
            }
        });
    }

    #[test]
    fn padded_values_share_no_line_pair() {
        let pair = [CachePadded(1u8), CachePadded(2u8)];
        assert_eq!(std::mem::size_of_val(&pair), 256);
        assert_eq!(*pair[0] + *pair[1], 3);
    }
}
