//! Synchronisation that the model checker controls.

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

pub use std::process::exit;

/// True if the calling thread belongs to a simulated world of the baton.
pub fn is_simulated() -> bool {
    false
}

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
