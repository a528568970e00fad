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
mod state;
#[cfg(test)]
mod tests;

pub use handle::{Baton, Options, Rates, Status, Summary};

use super::thread::JoinHandle;
use state::{Life, State};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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

/// Who is told that a group has ended.
type OnEnd = Arc<dyn Fn(Group) + Send + Sync>;

/// A world. It is never freed: parked threads refer to it.
struct World {
    now_ns: AtomicU64,
    /// Only the thread with the baton locks it.
    state: Mutex<State>,
    /// Blocked threads in queues of addresses; 0 saves the look into the queues.
    queued: AtomicU32,
    on_end: Mutex<Vec<OnEnd>>,
}

/// A thread of a world.
pub struct Thread {
    world: &'static World,
    id: usize,
    group: Group,
    /// Switch points until the next decision. Only the thread itself changes it, and a thread with
    /// the baton while it waits.
    budget: AtomicU32,
    /// Regions without switching which it is in.
    masked: AtomicU32,
    /// The baton was handed to it.
    turn: AtomicBool,
    os: OnceLock<std::thread::Thread>,
}

thread_local! {
    static ME: Cell<Option<&'static Thread>> = const { Cell::new(None) };
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of group {}", self.id, self.group.0)
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of the simulation itself ends the run; its report still reads the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Ends a group: its threads never run again. Those who simulate its system are told.
    fn end_group(&self, group: Group, status: Status) {
        assert_ne!(group, Group::WORLD, "the world ends with its own thread");
        if !self.state().end_group(group, status) {
            return;
        }
        let on_end = self.on_end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        without_switching(|| on_end.iter().for_each(|told| told(group)));
    }
}

impl Thread {
    /// Registers a thread, which is runnable as soon as `State::begin` says so.
    fn register(
        world: &'static World,
        state: &mut State,
        group: Group,
        name: &str,
    ) -> &'static Self {
        let thread = Box::leak(Box::new(Self {
            world,
            id: state.threads.len(),
            group,
            budget: AtomicU32::new(0),
            masked: AtomicU32::new(0),
            turn: AtomicBool::new(false),
            os: OnceLock::new(),
        }));
        state.register(thread, name);
        thread
    }

    #[inline]
    fn pass(&'static self, kind: Kind, at: &'static Location<'static>) {
        let left = self.budget.load(Ordering::Relaxed);
        if left > 1 {
            self.budget.store(left - 1, Ordering::Relaxed);
        } else if self.masked.load(Ordering::Relaxed) == 0 {
            self.decide(kind, at);
        }
    }

    /// The countdown is over: hands the baton over, or is held.
    #[cold]
    fn decide(&'static self, kind: Kind, at: &'static Location<'static>) {
        let mut state = self.world.state();
        state.settle(self.id, 0);
        if state.is_due_to_die(self.group) {
            drop(state);
            self.world.end_group(self.group, Status::Killed);
            self.leave_for_ever();
        }
        state.decide(self.id, at);
        self.hand_over(state, kind);
    }

    fn block(
        &'static self,
        on: On,
        address: usize,
        until: Option<u64>,
        at: &'static Location<'static>,
    ) -> Woken {
        assert_eq!(self.masked.load(Ordering::Relaxed), 0, "{on:?} where nobody may switch: {at}");
        let mut state = self.world.state();
        state.settle(self.id, self.budget.load(Ordering::Relaxed));
        state.block(self.id, on, address, until, at);
        self.hand_over(state, Kind::Block);
        let mut state = self.world.state();
        if let Some(report) = state.take_deadlock(self.id) {
            drop(state);
            panic!("{report}");
        }
        state.threads[self.id].woken
    }

    /// Hands the baton to the next thread, and returns when it is this thread's turn again.
    fn hand_over(&'static self, mut state: MutexGuard<'_, State>, kind: Kind) {
        let next = state.pick(self.id, kind);
        self.world.now_ns.store(state.now_ns, Ordering::Relaxed);
        self.world.queued.store(state.queued() as u32, Ordering::Relaxed);
        drop(state);
        if next.id != self.id {
            next.resume();
            self.await_turn();
        }
    }

    /// Hands the baton over for the last time.
    fn hand_over_last(&self) {
        let mut state = self.world.state();
        let next = state.pick(self.id, Kind::End);
        self.world.now_ns.store(state.now_ns, Ordering::Relaxed);
        drop(state);
        next.resume();
    }

    fn leave_for_ever(&self) -> ! {
        self.hand_over_last();
        loop {
            std::thread::park();
        }
    }

    fn resume(&self) {
        self.turn.store(true, Ordering::Release);
        self.os.get().expect("set before the thread is runnable").unpark();
    }

    fn await_turn(&self) {
        while !self.turn.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
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

/// Lets a drawn time of up to `ns_max` pass for the calling thread: others run meanwhile. No effect
/// outside a world.
#[track_caller]
pub fn pass_time(ns_max: u64) {
    let at = Location::caller();
    if let Some(me) = ME.get() {
        pause(me, On::Sleep, ns_max, at);
    }
}

/// As [`pass_time`], but mostly without effect if other threads could run: for what happens often.
#[track_caller]
pub fn pass_time_cheaply(ns_max: u64) {
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
