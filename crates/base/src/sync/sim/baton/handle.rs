//! A world as the thread that started it controls it.

use super::super::thread::JoinHandle;
use super::state::State;
use super::thread::World;
use super::{Group, ME, START_NS, Thread, spawn};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::io::Write;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// How often the seed interferes. `*_one_in: n` means once in `n` on average; 0 means never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Switch points between two hand-overs which nothing requires.
    pub switch_one_in: u32,
    /// Switch points between two holds. The world's own threads are not held.
    pub hold_one_in: u32,
    /// The shortest hold.
    pub hold_ns_min: u64,
    /// The longest hold.
    pub hold_ns_max: u64,
    /// Waits on futexes and condition variables which end without a reason.
    pub early_one_in: u32,
}

impl Rates {
    /// Threads switch only where they must.
    pub const CALM: Self =
        Self { switch_one_in: 0, hold_one_in: 0, hold_ns_min: 0, hold_ns_max: 0, early_one_in: 0 };

    /// Frequent switches and holds of up to 4 ms.
    pub const ROUGH: Self = Self {
        switch_one_in: 50,
        hold_one_in: 2_000,
        hold_ns_min: 0,
        hold_ns_max: 4_000_000,
        early_one_in: 50,
    };
}

/// What a world is made from.
pub struct Options {
    /// The same seed gives the same run.
    pub seed: u64,
    /// How often the seed interferes.
    pub rates: Rates,
    /// Gets a line for each hand-over.
    pub trace: Option<Box<dyn Write + Send>>,
}

/// Whether a group lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has threads, or none was started yet.
    Running,
    /// It ended by itself, with this code; 0 if its last thread returned.
    Exited(i32),
    /// It was killed.
    Killed,
}

/// What happened in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Of all hand-overs in order: thread, kind of switch point, time, switch points passed.
    pub digest: u64,
    /// Switch points that were passed.
    pub points: u64,
    /// Hand-overs from one thread to another.
    pub hand_overs: u64,
    /// Holds by the seed.
    pub holds: u64,
    /// The world's clock.
    pub now_ns: u64,
}

/// A world, on the thread that started it. Its end leaves the other threads parked for ever.
pub struct Baton {
    world: &'static World,
    main: &'static Thread,
    stays_here: PhantomData<*const ()>,
}

impl Baton {
    /// Starts a world; the calling thread is its first and has the baton.
    ///
    /// # Panics
    /// If this thread belongs to a world already.
    pub fn start(options: Options) -> Self {
        assert!(ME.get().is_none(), "a thread has one world");
        pin();
        let state = State::new(options.seed, options.rates, options.trace);
        let world: &'static World = Box::leak(Box::new(World {
            now_ns: AtomicU64::new(START_NS),
            state: Mutex::new(state),
            queued: AtomicU32::new(0),
            on_end: Mutex::new(Vec::new()),
        }));
        let main = Thread::register(world, &mut world.state(), Group::WORLD, "world");
        assert!(main.os.set(std::thread::current()).is_ok(), "set once");
        world.state().begin_running(main.id);
        ME.set(Some(main));
        Self { world, main, stays_here: PhantomData }
    }

    /// A new group without threads.
    pub fn group(&self, name: &str) -> Group {
        self.world.state().add_group(name)
    }

    /// Starts a thread of a group. Threads that it starts belong to its group, too.
    pub fn spawn<T: Send + 'static>(
        &self,
        group: Group,
        name: &str,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<JoinHandle<T>> {
        spawn(group, name.to_owned(), run)
    }

    /// Ends a group between two of its switch points: its threads never run again.
    pub fn kill(&self, group: Group) {
        self.world.end_group(group, Status::Killed);
    }

    /// As [`Baton::kill`], but when the group has passed about so many more switch points: so it
    /// dies in the middle of something.
    pub fn kill_after(&self, group: Group, points: u64) {
        assert_ne!(group, Group::WORLD, "the world ends with its own thread");
        self.world.state().kill_after(group, points);
    }

    /// Stops the threads of a group until [`Baton::resume`]; its deadlines pass meanwhile.
    pub fn pause(&self, group: Group) {
        assert_ne!(group, Group::WORLD, "nobody could resume it");
        self.world.state().groups[group.0 as usize].paused = true;
    }

    /// Ends a pause.
    pub fn resume(&self, group: Group) {
        self.world.state().groups[group.0 as usize].paused = false;
    }

    /// Whether a group lives.
    pub fn status(&self, group: Group) -> Status {
        self.world.state().groups[group.0 as usize].status
    }

    /// Replaces the rates.
    pub fn set_rates(&self, rates: Rates) {
        self.world.state().set_rates(rates);
    }

    /// For how long some thread was held between two times of the world's clock. Holds which
    /// overlap count once. O(holds since `from_ns`).
    pub fn held_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.world.state().holds.total_ns(from_ns, to_ns)
    }

    /// As [`Baton::held_ns`], but holds which began before `from_ns` count whole.
    pub fn whole_holds_ns(&self, from_ns: u64, to_ns: u64) -> u64 {
        let state = self.world.state();
        state.holds.total_ns(state.holds.beginning_ns(from_ns), to_ns)
    }

    /// What each thread does, one line each.
    pub fn report(&self) -> String {
        self.world.state().report()
    }

    /// What has happened so far.
    pub fn summary(&self) -> Summary {
        let mut state = self.world.state();
        state.count_points(
            self.main.id,
            self.main.budget.load(std::sync::atomic::Ordering::Relaxed),
        );
        state.summary()
    }

    /// Ends the world.
    pub fn end(self) -> Summary {
        self.summary()
    }
}

impl Drop for Baton {
    fn drop(&mut self) {
        ME.set(None);
    }
}

/// Keeps this thread, and those that it starts, on one processor: a hand-over to a thread on
/// another one takes several times as long. Without it the run is the same, but slower.
fn pin() {
    let mut processors = CpuSet::new();
    processors.set(sched_getcpu());
    let _ = sched_setaffinity(None, &processors);
}
