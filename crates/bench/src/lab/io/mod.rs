//! What a server does for its requests: polls, events, receives and sends. From its own account
//! where it keeps one (`INFO io`, `INFO model`), else from a trace of its system calls; and what
//! waking up costs on this machine.

mod account;
mod memory;
mod strace;
mod tracer;
mod wake;

pub use account::{Account, Histogram, histogram, parse, read};
pub use memory::{Memory, memory};
pub use tracer::{Calls, traced};
pub use wake::wake_us;

use crate::lab::target::Started;
use crate::load;

/// The ways to a target that runs: TCP and unix socket, as far as it has them.
pub fn ways(started: &Started) -> Vec<load::Address> {
    let tcp = started.tcp.map(load::Address::Tcp);
    tcp.into_iter().chain(started.unix.clone().map(load::Address::Unix)).collect()
}
