//! A simulated network and clock: the same driver over streams that live in memory.
//!
//! One [`SimNet`] is a world: the drivers of several workers, and clients that the test plays by
//! hand. Everything runs in one thread, one turn of one worker at a time, in the order in which the
//! test calls them; all randomness comes from one seed, so a run can be repeated exactly.
//!
//! What a real network does now and then, this one does all the time, as [`Faults`] say: it takes
//! only part of a write, hands out only part of what has arrived, delays, fills up, resets, reports
//! nothing.
//!
//! **Time** is virtual and stands still while anybody has something to do. A worker's wait that
//! finds nothing marks it asleep and returns; when every worker is asleep and none of them has
//! something ready or due, the clock jumps to the next arrival or deadline. If there is neither,
//! the world is at rest: `wait` returns with nothing, and it is the test's turn to do something.

mod net;
mod peer;
mod pipe;
mod poller;

pub use peer::{Ending, SimClient};
pub use poller::{SimListener, SimPoller, SimStream};

use crate::reactor::Reactor;
use crate::spin::SpinOptions;
use base::MonoNs;
use base::sync::{Arc, Mutex, MutexGuard};
use net::State;

/// A driver on the simulated network.
pub type SimDriver<M> = Reactor<SimPoller, M>;

/// What the network does to its users. Chances are one in so many; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// A receive gets only part of what has arrived.
    pub partial_read_one_in: u64,
    /// A write takes only part of what there is room for.
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
    /// A network that does what it is asked to.
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
        Self(Arc::new(Mutex::new(State::new(seed, faults))))
    }

    /// The driver of one more worker. (Spinning has no meaning here: looking costs no time.)
    pub fn driver<M: Send>(&self) -> SimDriver<M> {
        let poller = SimPoller::new(self.clone());
        Reactor::on(poller, SpinOptions { busy_poll_us: 0, workers: 1, cpus: 1 })
    }

    /// Connects to a listener, `None` if nobody listens there or its queue is full.
    pub fn connect(&self, to: &crate::PeerAddr) -> Option<SimClient> {
        let stream = self.state().connect(to)?;
        Some(SimClient::new(self.clone(), stream))
    }

    /// The time.
    pub fn now(&self) -> MonoNs {
        self.state().now()
    }

    /// True if no worker has anything ready and nothing is under way: only deadlines or the clients
    /// can go on.
    pub fn is_at_rest(&self) -> bool {
        self.state().is_at_rest()
    }

    /// The next accepts fail for want of descriptors.
    pub fn fail_accepts(&self, count: u32) {
        self.fail_accepts_with(count, rustix::io::Errno::MFILE);
    }

    /// The next accepts fail with this.
    pub fn fail_accepts_with(&self, count: u32, error: rustix::io::Errno) {
        let mut state = self.state();
        (state.failing_accepts, state.accept_error) = (count, error);
    }

    /// The next change of what is registered for a connection fails for want of memory.
    pub fn fail_change(&self) {
        self.state().failing_changes = true;
    }

    /// From now on the network behaves like this; full buffers stay as full as they are.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the simulated world does not panic while it is held")
    }
}

/// An accepted simulated connection that no driver has adopted yet.
#[derive(Debug)]
pub struct SimSocket {
    net: SimNet,
    stream: usize,
    /// Nobody adopted it: dropping it closes the connection.
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
