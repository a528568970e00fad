//! A simulated network, disk and clock: the real driver over streams and files in memory.
//!
//! One [`SimNet`] is a world: the drivers of several workers, and clients that the test controls.
//! Everything runs in one thread, one turn of one worker at a time, in the order in which the test
//! calls them. All randomness comes from one seed, so a run can be repeated exactly.
//!
//! Faults that are rare in a real network are frequent here, as [`Faults`] says: partial writes and
//! reads, delays, full buffers, resets, polls that report nothing. The files of a driver are on a
//! simulated [`disk`], whose machine can crash.
//!
//! **Time** is virtual and stands still while any worker has work. A wait that finds nothing marks
//! its worker as asleep and returns. When all workers are asleep and none has an event ready or
//! due, the clock jumps to the next arrival or deadline. If there is neither, the world is at rest:
//! `wait` returns without events, and the test has to act.
//!
//! Under `--cfg sim`, in a world of the baton (`base::sync::baton`), the workers run in threads of
//! their own instead, and the clock is the world's. A poll that finds nothing blocks its thread,
//! and whoever changes what it waits for wakes it.

pub mod disk;
mod net;
mod peer;
mod pipe;
mod poller;
#[cfg_attr(not(sim), path = "no_world.rs")]
mod world;

pub use disk::{DiskFaultCounts, DiskFaults, Fate, SimDisk, Survival};
pub use peer::{Ending, SimClient};
pub use poller::{SimListener, SimPoller, SimStream};
#[cfg(sim)]
pub use world::Moment;

use crate::reactor::Reactor;
use crate::spin::SpinOptions;
use base::MonoNs;
use base::sync::Arc;
use base::sync::outside::{Mutex, MutexGuard};
use net::State;

/// A driver on the simulated network.
pub type SimDriver<M> = Reactor<SimPoller, M>;

/// The faults of a simulated network. `*_one_in: n` means with probability 1/n; 0 means never.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// A receive returns only part of the arrived bytes.
    pub partial_read_one_in: u64,
    /// A write accepts fewer bytes than there is room for.
    pub partial_write_one_in: u64,
    /// A receive or a send of a driver finds the connection reset.
    pub reset_one_in: u64,
    /// A poll finds nothing although something is ready.
    pub blind_poll_one_in: u64,
    /// Bytes travel up to this long.
    pub delay_ns_max: u64,
    /// Bytes under way and unread, per direction.
    pub buffer_bytes: usize,
}

impl Faults {
    /// A network without faults.
    pub const NONE: Self = Self {
        partial_read_one_in: 0,
        partial_write_one_in: 0,
        reset_one_in: 0,
        blind_poll_one_in: 0,
        delay_ns_max: 0,
        buffer_bytes: 256 << 10,
    };

    /// Small pieces, delays, small buffers; nothing is lost.
    pub const ROUGH: Self = Self {
        partial_read_one_in: 2,
        partial_write_one_in: 2,
        reset_one_in: 0,
        blind_poll_one_in: 8,
        delay_ns_max: 2_000_000,
        buffer_bytes: 4 << 10,
    };
}

/// A simulated world. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct SimNet(Arc<Mutex<State>>);

impl SimNet {
    /// The world that belongs to this seed.
    pub fn new(seed: u64, faults: Faults) -> Self {
        let net = Self(Arc::new(Mutex::new(State::new(seed, faults))));
        world::close_with_groups(&net);
        net
    }

    /// The driver of one more worker. (It does not spin: a poll takes no virtual time.)
    pub fn driver<M: Send>(&self) -> SimDriver<M> {
        self.driver_on(&self.disk())
    }

    /// The driver of one more worker, of a machine with this disk.
    pub fn driver_on<M: Send>(&self, disk: &SimDisk) -> SimDriver<M> {
        let poller = SimPoller::new(self.clone(), disk.clone());
        Reactor::on(poller, SpinOptions { busy_poll_us: 0, workers: 1, cpus: 1 })
    }

    /// The disk of the drivers that get no other one. It has no faults.
    pub fn disk(&self) -> SimDisk {
        self.state().disk.clone()
    }

    /// Connects to a listener; `None` if there is none or its queue is full.
    pub fn connect(&self, to: &crate::PeerAddr) -> Option<SimClient> {
        let stream = self.state().connect(to)?;
        Some(SimClient::new(self.clone(), stream))
    }

    /// The virtual time.
    pub fn now(&self) -> MonoNs {
        self.state().now()
    }

    /// True if no worker has an event ready and no bytes are in flight: only deadlines or clients
    /// can cause further events.
    pub fn is_at_rest(&self) -> bool {
        self.state().is_at_rest()
    }

    /// Makes the next `count` accepts fail for want of descriptors.
    pub fn fail_accepts(&self, count: u32) {
        self.fail_accepts_with(count, rustix::io::Errno::MFILE);
    }

    /// Makes the next `count` accepts fail with `error`.
    pub fn fail_accepts_with(&self, count: u32, error: rustix::io::Errno) {
        let mut state = self.state();
        (state.failing_accepts, state.accept_error) = (count, error);
    }

    /// Lets time pass although workers have work: whoever is not in its poll is busy for so long.
    /// (Not in a world of the baton, whose clock goes on by itself.)
    pub fn pass_time(&self, ns: u64) {
        self.state().pass_time(ns);
    }

    /// Makes the next change of a connection's registration fail for want of memory.
    pub fn fail_change(&self) {
        self.state().failing_changes = true;
    }

    /// Replaces the faults; bytes that are already buffered stay.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Each use is a system call, and so a switch point.
    #[cfg_attr(sim, track_caller)]
    fn state(&self) -> MutexGuard<'_, State> {
        world::call();
        self.locked()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the simulated world does not panic while it is held")
    }
}

/// An accepted simulated connection that no driver has adopted yet.
#[derive(Debug)]
pub struct SimSocket {
    net: SimNet,
    stream: usize,
    /// True until a driver adopts it: dropping it then closes the connection.
    open: bool,
}

impl SimSocket {
    pub(crate) fn number(&self) -> i64 {
        self.stream as i64
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> Result<usize, rustix::io::Errno> {
        self.net.state().server_send(self.stream, bytes)
    }

    fn adopted(mut self) -> usize {
        self.open = false;
        self.stream
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        if self.open {
            self.net.state().close(self.stream, net::Side::Server);
        }
    }
}
