//! The threads of a world, and how the baton goes from one to the next.

use super::state::State;
use super::{Group, Kind, On, Status, Woken, without_switching};
use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Who is told that a group has ended.
pub(super) type OnEnd = Arc<dyn Fn(Group) + Send + Sync>;

/// A world. It is never freed: parked threads refer to it.
pub(super) struct World {
    pub now_ns: AtomicU64,
    /// Only the thread with the baton locks it.
    pub state: Mutex<State>,
    /// Blocked threads in queues of addresses; 0 saves the look into the queues.
    pub queued: AtomicU32,
    pub on_end: Mutex<Vec<OnEnd>>,
}

/// A thread of a world.
pub struct Thread {
    pub(super) world: &'static World,
    pub(super) id: usize,
    pub(super) group: Group,
    /// Switch points until the next decision. Only the thread itself changes it, and a thread with
    /// the baton while it waits.
    pub(super) budget: AtomicU32,
    /// Regions without switching which it is in.
    pub(super) masked: AtomicU32,
    /// The baton was handed to it.
    turn: AtomicBool,
    pub(super) os: OnceLock<std::thread::Thread>,
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of group {}", self.id, self.group.0)
    }
}

impl World {
    pub fn state(&self) -> MutexGuard<'_, State> {
        // A panic of the simulation itself ends the run; its report still reads the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// Ends a group: its threads never run again. Those who simulate its system are told.
    pub fn end_group(&self, group: Group, status: Status) {
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
    pub(super) fn register(
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
    pub(super) fn pass(&'static self, kind: Kind, at: &'static Location<'static>) {
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
        state.count_points(self.id, 0);
        if state.is_due_to_die(self.group) {
            drop(state);
            self.world.end_group(self.group, Status::Killed);
            self.leave_for_ever();
        }
        state.decide(self.id, at);
        self.hand_over(state, kind);
    }

    pub(super) fn block(
        &'static self,
        on: On,
        address: usize,
        until: Option<u64>,
        at: &'static Location<'static>,
    ) -> Woken {
        assert_eq!(self.masked.load(Ordering::Relaxed), 0, "{on:?} where nobody may switch: {at}");
        let mut state = self.world.state();
        state.count_points(self.id, self.budget.load(Ordering::Relaxed));
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
    pub(super) fn hand_over_last(&self) {
        let mut state = self.world.state();
        let next = state.pick(self.id, Kind::End);
        self.world.now_ns.store(state.now_ns, Ordering::Relaxed);
        drop(state);
        next.resume();
    }

    pub(super) fn leave_for_ever(&self) -> ! {
        self.hand_over_last();
        loop {
            std::thread::park();
        }
    }

    fn resume(&self) {
        self.turn.store(true, Ordering::Release);
        self.os.get().expect("set before the thread is runnable").unpark();
    }

    pub(super) fn await_turn(&self) {
        while !self.turn.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}
