//! What a server does for its requests: polls, events, receives and sends. From its own account where it keeps one
//! (`INFO io`, `INFO model`), else from a trace of its system calls; and what waking up costs on this machine.

mod account;
mod process;
mod strace;
mod tracer;
mod wake;

pub use account::{Account, Histogram, histogram, parse, read};
pub use process::{Memory, Threads, memory};
pub use strace::Trace;
pub use tracer::{Calls, Tracer};
pub use wake::wake_us;

use crate::host;
use crate::lab::target::Started;
use crate::load;

/// The ways to a target that runs: TCP and unix socket, as far as it has them.
pub fn ways(started: &Started) -> Vec<load::Address> {
    let tcp = started.tcp.map(load::Address::Tcp);
    tcp.into_iter().chain(started.unix.clone().map(load::Address::Unix)).collect()
}

/// The process of a target: started here or found by its address; `None` if it runs elsewhere, or inside this
/// very program, where its work cannot be told from the client's.
pub fn process(started: &Started) -> Option<u32> {
    pid(started).filter(|pid| *pid != std::process::id())
}

/// True if a target runs inside this very program.
pub fn is_inside(started: &Started) -> bool {
    pid(started) == Some(std::process::id())
}

fn pid(started: &Started) -> Option<u32> {
    started.pid.or_else(|| ways(started).first().and_then(host::listening_pid))
}
