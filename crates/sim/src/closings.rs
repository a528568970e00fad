//! Why the server may close a connection. Each reason explains the connections which it concerns,
//! and no other.

use crate::link::Link;
use crate::panics;
use crate::world::World;
use std::collections::BTreeSet;

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Its client has ended it.
    Client,
    /// A fault of the network has reset it.
    Network,
    /// Somebody has sent a CLIENT KILL for it.
    Killed,
    /// Its server ends, or has died.
    Server,
    /// A command of it has panicked.
    Panic,
}

/// What explains connections which the server closes.
#[derive(Debug, Default)]
pub struct Closings {
    /// The addresses for which CLIENT KILL was sent.
    killed: BTreeSet<String>,
    /// Connections which panics have cost. A panic costs one at most.
    panics: u64,
}

impl Closings {
    /// CLIENT KILL of this address is sent.
    pub fn kill(&mut self, addr: String) {
        self.killed.insert(addr);
    }
}

/// Why the server, whose incarnation this was, has closed a connection; `None` if it had no reason.
pub fn reason(world: &mut World, link: &Link, epoch: u32) -> Option<Closing> {
    if link.was_cut {
        Some(Closing::Client)
    } else if link.was_broken() {
        Some(Closing::Network)
    } else if world.closings.killed.contains(&link.addr().to_string()) {
        Some(Closing::Killed)
    } else if epoch != world.epoch || !world.is_living() {
        Some(Closing::Server)
    } else if world.closings.panics < panics::asked_for() {
        world.closings.panics += 1;
        Some(Closing::Panic)
    } else {
        None
    }
}
