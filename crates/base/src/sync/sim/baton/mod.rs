//! The baton: the threads of a simulated world, of which exactly one runs at a time.
//!
//! ```text
//! thread A          thread B          thread C            seed: all choices are drawn from it
//!   runs              waits             held until t
//!   load, store ..    .                 .                 switch points: mostly nothing happens
//!   switch point -->  runs              .                 hand-over to a runnable thread, drawn
//!   .                 blocks  ------------------+         nobody can run: the clock jumps to the
//!   .                 .                 runs  <-+         earliest deadline (here t)
//! ```
//!
//! A **switch point** is passed before each operation of `base::sync` and at each simulated system
//! call. There the seed decides: the thread continues (mostly), hands the baton to another runnable
//! thread, or is **held** for a drawn time. So a holder of a lock is preempted, a fence is passed
//! late, a wake-up meets a thread that is about to sleep. Threads are real threads; those which do
//! not have the baton are parked. A switch point without a decision costs a few instructions: a
//! thread counts down to its next decision.
//!
//! **Time** is simulated. It moves only while no thread can run, to the earliest deadline. Work
//! takes no time by itself; a spin, a poll and a reading of the clock take a moment
//! ([`pass_time`]), so that nobody waits for ever for a time that never comes.
//!
//! A **group** is what dies together: one server, or the world itself ([`Group::WORLD`]: the thread
//! that called [`Baton::start`]). The threads of a killed group never run again. They stay parked,
//! and what they own is never freed, because it may be in any state: run each seed in a process of
//! its own.
//!
//! What is not simulated: weak memory (all operations are sequentially consistent), and the time
//! between two switch points.

mod handle;
mod holds;
mod report;
mod state;
#[cfg(test)]
mod tests;
mod thread;

pub use handle::{Baton, Options, Rates, Status, Summary};
pub use thread::Thread;

use super::thread::JoinHandle;
use state::Life;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The world's clock when it starts: far from zero, so that times before the start are valid.
pub const START_NS: u64 = 1_000_000_000_000;
/// The longest that a spin takes.
const SPIN_NS_MAX: u64 = 2_000;

/// What dies together. In the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(u32);

impl Group {
    /// The thread that started the world, and those which it starts without another group.
    pub const WORLD: Self = Self(0);
}

/// What a thread does at a switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An atomic load.
    Load,
    /// An atomic store.
    Store,
    /// An atomic read-modify-write.
    Change,
    /// A memory fence.
    Fence,
    /// It takes a mutex.
    Lock,
    /// It calls the system: a wake-up, the network, a disk.
    Call,
    /// It blocks.
    Block,
    /// It has ended.
    End,
}

/// Why a thread does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Another thread has the mutex.
    Mutex,
    /// It waits for a notification.
    Condvar,
    /// It sleeps on a futex.
    Futex,
    /// It waits for the end of a thread.
    Join,
    /// It sleeps for some time.
    Sleep,
    /// It spins.
    Spin,
    /// The seed holds it.
    Hold,
    /// It waits for an event of the simulated system, whose name this is.
    Event(&'static str),
}

/// Why a blocked thread runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Somebody woke it.
    Called,
    /// Its time has come, or the wait ended early without a reason.
    Time,
    /// Nothing in the world can ever happen again (only [`wait`] of the world's own thread).
    AtRest,
}

thread_local! {
    static ME: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

/// True if the calling thread belongs to a world.
#[inline]
pub fn is_active() -> bool {
    ME.get().is_some()
}

/// The world's clock, if the calling thread belongs to a world.
#[inline]
pub fn now_ns() -> Option<u64> {
    ME.get().map(|me| me.world.now_ns())
}

/// The group of the calling thread, if it belongs to a world.
pub fn current_group() -> Option<Group> {
    ME.get().map(|me| me.group)
}

/// A switch point.
#[inline]
#[track_caller]
pub fn point(kind: Kind) {
    point_at(kind, Location::caller());
}

#[inline]
pub(super) fn point_at(kind: Kind, at: &'static Location<'static>) {
    if let Some(me) = ME.get() {
        me.pass(kind, at);
    }
}

/// Runs `f`, in which no switch point has an effect. It must not block.
pub fn without_switching<R>(f: impl FnOnce() -> R) -> R {
    struct Unmask(&'static Thread);
    impl Drop for Unmask {
        fn drop(&mut self) {
            self.0.masked.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let _unmask = ME.get().map(|me| {
        me.masked.fetch_add(1, Ordering::Relaxed);
        Unmask(me)
    });
    f()
}

/// Lets a drawn time of up to `ns_max` pass for the calling thread. Mostly without effect while
/// other threads can run, because it would cost a hand-over. No effect outside a world.
#[track_caller]
pub fn pass_time(ns_max: u64) {
    let at = Location::caller();
    if let Some(me) = ME.get()
        && me.world.state().is_cheap()
    {
        pause(me, On::Sleep, ns_max, at);
    }
}

fn pause(me: &'static Thread, on: On, ns_max: u64, at: &'static Location<'static>) {
    if me.masked.load(Ordering::Relaxed) > 0 {
        return;
    }
    let until = {
        let mut state = me.world.state();
        state.now_ns + 1 + state.prng.below(ns_max)
    };
    me.block(on, 0, Some(until), at);
}

/// A turn of a spin; false outside a world.
pub(super) fn spin(at: &'static Location<'static>) -> bool {
    let Some(me) = ME.get() else { return false };
    pause(me, On::Spin, SPIN_NS_MAX, at);
    true
}

/// Blocks the calling thread of a world until [`wake`] of this address, or `until`; it may wake
/// without a reason.
pub(super) fn block_at(
    on: On,
    address: usize,
    until: Option<u64>,
    at: &'static Location<'static>,
) -> Woken {
    ME.get().expect("only in a world").block(on, address, until, at)
}

/// Makes up to `count` threads runnable which are blocked at this address. No switch point.
pub(super) fn wake(address: usize, count: u32) {
    if let Some(me) = ME.get()
        && me.world.queued.load(Ordering::Relaxed) > 0
    {
        let mut state = me.world.state();
        state.wake(address, count);
        me.world.queued.store(state.queued() as u32, Ordering::Relaxed);
    }
}

/// Blocks the calling thread of a world until a [`Waker`] of it is called, or until `until` by the
/// world's clock. No switch point precedes it: what was tested before it is still true when a waker
/// can be called. `what` names the event in reports.
#[track_caller]
pub fn wait(what: &'static str, until: Option<u64>) -> Woken {
    let at = Location::caller();
    ME.get().expect("only in a world").block(On::Event(what), 0, until, at)
}

/// Wakes a thread of a world from [`wait`].
#[derive(Clone, Copy, Debug)]
pub struct Waker(&'static Thread);

impl PartialEq for Waker {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Waker {
    /// Of the calling thread; `None` outside a world.
    pub fn of_this_thread() -> Option<Self> {
        ME.get().map(Self)
    }

    /// Ends the thread's wait at `at_ns` by the world's clock, at once if that has passed. No
    /// effect unless it waits. No switch point.
    pub fn wake_at(self, at_ns: u64) {
        self.0.world.state().wake_waiting(self.0.id, at_ns);
    }

    /// Ends the thread's wait at once.
    pub fn wake(self) {
        self.wake_at(0);
    }
}

/// Has `told` called when a group of the calling thread's world ends by [`Baton::kill`] or
/// [`exit`], to close what the group had open in a simulated system. No effect outside a world.
/// `told` must not block.
pub fn on_group_end(told: impl Fn(Group) + Send + Sync + 'static) {
    if let Some(me) = ME.get() {
        me.world.on_end.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(told));
    }
}

/// Ends the process; in a world, the group of the calling thread.
pub fn exit(code: i32) -> ! {
    let Some(me) = ME.get() else { std::process::exit(code) };
    assert_ne!(me.group, Group::WORLD, "the world's thread returns to end it");
    me.world.end_group(me.group, Status::Exited(code));
    me.leave_for_ever()
}

/// Nanoseconds of a time.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Starts a thread of a group; it runs when the baton is handed to it.
pub(super) fn spawn<T: Send + 'static>(
    group: Group,
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let world = ME.get().expect("only in a world").world;
    let thread = Thread::register(world, &mut world.state(), group, &name);
    let inner = std::thread::Builder::new().name(name).spawn(move || {
        thread.await_turn();
        ME.set(Some(thread));
        let result = catch_unwind(AssertUnwindSafe(run));
        ME.set(None);
        let left = thread.budget.load(Ordering::Relaxed);
        world.state().finish(thread.id, left);
        thread.hand_over_last();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    assert!(thread.os.set(inner.thread().clone()).is_ok(), "set once");
    world.state().begin(thread.id);
    Ok(JoinHandle::of(inner, thread))
}

/// Blocks until the thread has ended.
pub(super) fn join(thread: &'static Thread, at: &'static Location<'static>) {
    while !is_finished(thread) {
        block_at(On::Join, std::ptr::from_ref(thread).addr(), None, at);
    }
}

/// True if the thread has ended by itself.
pub(super) fn is_finished(thread: &'static Thread) -> bool {
    thread.world.state().threads[thread.id].life == Life::Finished
}
