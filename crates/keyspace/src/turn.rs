//! Turns prevent starvation. A command that was refused because of long holders, and needs World or
//! grows, waits for a turn. Until it has run, no other command may become long. So it waits only
//! for those that are long already, and each of them ends.
//!
//! A command that may not become long parks at [`Parked::Turn`]. The end of any turn wakes it, and
//! then it may run even if others wait for turns: so long holders get their share, too.
//!
//! A command that needs all slots while some are frozen waits for a [`ThawTurn`]. That keeps out
//! only commands that would freeze more, because slots may stay frozen for long.

use crate::keyspace::Keyspace;
use crate::parking::Parked;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Arc, CachePadded};

/// How many commands wait for turns. Read only by commands that are about to become long, or to
/// freeze slots; the gate and the parking queues order everything else.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    long: CachePadded<AtomicU32>,
    thaws: AtomicU32,
}

impl Turns {
    pub fn begin(&self) {
        self.long.fetch_add(1, Ordering::SeqCst);
    }

    pub fn end(&self) {
        end(&self.long);
    }

    /// True while a command waits for a turn.
    pub fn are_awaited(&self) -> bool {
        self.long.load(Ordering::SeqCst) > 0
    }

    /// True while a command waits for a thaw.
    pub fn are_thaws_awaited(&self) -> bool {
        self.thaws.load(Ordering::SeqCst) > 0
    }
}

fn end(turns: &AtomicU32) {
    let before = turns.fetch_sub(1, Ordering::SeqCst);
    assert!(before > 0, "a turn ends once");
}

/// A command waits for its turn while this lives: from its first refusal until it has run, or its
/// client is gone.
pub struct Turn(Arc<Keyspace>);

impl Turn {
    /// Begins the wait: no other command becomes long from now on.
    pub fn wait(ks: &Arc<Keyspace>) -> Self {
        ks.turns.begin();
        Self(Arc::clone(ks))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.turns.end();
        self.0.parking.release(Parked::Turn);
    }
}

/// A command waits for a thaw while this lives, likewise.
pub struct ThawTurn(Arc<Keyspace>);

impl ThawTurn {
    /// Begins the wait: no other command freezes slots from now on.
    pub fn wait(ks: &Arc<Keyspace>) -> Self {
        ks.turns.thaws.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(ks))
    }
}

impl Drop for ThawTurn {
    fn drop(&mut self) {
        end(&self.0.turns.thaws);
        self.0.parking.release(Parked::Freeze);
    }
}
