//! The only module through which the data path synchronises: std in production, `shuttle` under
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
}

#[cfg(shuttle)]
mod imp {
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic;
    pub use shuttle::sync::{Arc, Condvar, MutexGuard, Once, RwLock};
    /// Not modelled: its initialiser must not wait for another thread.
    pub use std::sync::OnceLock;

    use atomic::AtomicU32;
    use std::cell::{Cell, RefCell};
    use std::collections::{HashMap, VecDeque};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::rc::Rc;

    /// As shuttle's, except `panicking`.
    pub mod thread {
        pub use shuttle::thread::*;

        /// Whether this thread of the model unwinds. std would return true for all of them while
        /// one unwinds, because they share one real thread.
        pub fn panicking() -> bool {
            super::UNWINDS.with(std::cell::Cell::get)
        }
    }

    /// As shuttle's, but never poisoned: shuttle would poison it when this thread unlocks while
    /// another thread of the model unwinds.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// As std's.
        pub const fn new(value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        /// As std's.
        pub fn lock(&self) -> std::sync::LockResult<MutexGuard<'_, T>> {
            Ok(self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
        }
    }

    /// An [`unwind`] that [`net`] has caught.
    #[derive(Debug)]
    pub struct Unwound;

    /// Panics in one thread of a model: unwinds to the next [`net`] and prints nothing.
    pub fn unwind() -> ! {
        UNWINDS.with(|unwinds| unwinds.set(true));
        resume_unwind(Box::new(Unwound))
    }

    /// Runs `f` and catches an [`unwind`] in it. Any other panic is a failure of the model and
    /// continues.
    pub fn net<R>(f: impl FnOnce() -> R) -> Result<R, Unwound> {
        catch_unwind(AssertUnwindSafe(f)).map_err(|panic| match panic.downcast::<Unwound>() {
            Ok(unwound) => {
                UNWINDS.with(|unwinds| unwinds.set(false));
                *unwound
            }
            Err(other) => resume_unwind(other),
        })
    }

    shuttle::thread_local! {
        static UNWINDS: Cell<bool> = Cell::new(false);
    }

    /// Sleeps while `word` holds `expected`, until a [`futex_wake`] of this word. Without a wake-up
    /// the thread sleeps for ever, and shuttle reports the deadlock.
    pub fn futex_wait(word: &AtomicU32, expected: u32) {
        // The model switches threads only at the load: testing the value and queueing are one
        // atomic step, as in the kernel.
        if word.load(atomic::Ordering::SeqCst) != expected {
            return;
        }
        let woken = Rc::new(Cell::new(false));
        let sleeper = Sleeper { thread: thread::current(), woken: Rc::clone(&woken) };
        SLEEPERS.with_borrow_mut(|all| all.entry(address(word)).or_default().push_back(sleeper));
        while !woken.get() {
            thread::park();
        }
    }

    /// When a bounded wait ends. Time in the model is arbitrary: some waits end early, some late.
    #[derive(Debug)]
    pub struct Deadline(Cell<u32>);

    impl Deadline {
        /// A few waits from now.
        pub fn after(_: std::time::Duration) -> Self {
            Self(Cell::new(shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..4)))
        }
    }

    /// As [`futex_wait`], but not beyond `until`; false if that has passed already. As in the
    /// kernel, a wake-up may reach it just when its time ends; that wake-up is then lost for other
    /// sleepers.
    pub fn futex_wait_until(word: &AtomicU32, expected: u32, until: &Deadline) -> bool {
        if until.0.get() == 0 {
            return false;
        }
        if word.load(atomic::Ordering::SeqCst) != expected {
            return true;
        }
        let woken = Rc::new(Cell::new(false));
        let sleeper = Sleeper { thread: thread::current(), woken: Rc::clone(&woken) };
        SLEEPERS.with_borrow_mut(|all| all.entry(address(word)).or_default().push_back(sleeper));
        while !woken.get() && until.0.get() > 0 {
            until.0.set(until.0.get() - 1);
            thread::yield_now();
        }
        SLEEPERS.with_borrow_mut(|all| {
            if let Some(queue) = all.get_mut(&address(word)) {
                queue.retain(|sleeper| !Rc::ptr_eq(&sleeper.woken, &woken));
            }
        });
        true
    }

    /// Wakes up to `count` sleepers on `word`, the longest asleep first.
    pub fn futex_wake(word: &AtomicU32, count: u32) {
        // Lets other threads run between the caller's last step and this system call.
        word.load(atomic::Ordering::SeqCst);
        let woken: Vec<Sleeper> = SLEEPERS.with_borrow_mut(|all| {
            let Some(queue) = all.get_mut(&address(word)) else { return Vec::new() };
            let woken = queue.drain(..queue.len().min(count as usize)).collect();
            if queue.is_empty() {
                all.remove(&address(word));
            }
            woken
        });
        for sleeper in woken {
            sleeper.woken.set(true);
            sleeper.thread.unpark();
        }
    }

    struct Sleeper {
        thread: thread::Thread,
        woken: Rc<Cell<bool>>,
    }

    std::thread_local! {
        /// The sleepers by word. All threads of one modelled run share one real thread.
        static SLEEPERS: RefCell<HashMap<usize, VecDeque<Sleeper>>> = RefCell::default();
    }

    fn address(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }
}

pub use imp::*;
pub use std::sync::PoisonError;

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
