//! Turns: who was turned back by long holders, and needs the whole keyspace (World) or a slot that
//! it comes upon (a grower), waits for its turn. Until it has had it nobody begins to be long, so
//! it waits only for those who are long already, each of which ends.
//!
//! Who is kept out for that parks at [`Parked::Turn`]. It is woken by the end of a turn and then
//! goes in, whoever waits by that time: so long holders have their turns, too.
//!
//! Who needs the whole keyspace and finds a part of it frozen has a turn of another kind: nobody
//! else is kept out for it but who would freeze more, because a freeze may last long.

use crate::keyspace::Keyspace;
use crate::parking::Parked;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Arc, CachePadded};

/// How many wait for their turn. Everything is ordered by the gate and the parking queues; this is
/// looked at by who is about to be long and by nobody else.
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

    /// True while somebody waits.
    pub fn are_awaited(&self) -> bool {
        self.long.load(Ordering::SeqCst) > 0
    }

    /// True while somebody waits for a thaw.
    pub fn are_thaws_awaited(&self) -> bool {
        self.thaws.load(Ordering::SeqCst) > 0
    }
}

fn end(turns: &AtomicU32) {
    let before = turns.fetch_sub(1, Ordering::SeqCst);
    assert!(before > 0, "a turn ends once");
}

/// Waits for its turn as long as it lives: from when the command is turned back until it has run,
/// or its client has gone.
pub struct Turn(Arc<Keyspace>);

impl Turn {
    /// Keeps new long holders out from now on.
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

/// Waits for a thaw as long as it lives, as [`Turn`] does for its turn.
pub struct ThawTurn(Arc<Keyspace>);

impl ThawTurn {
    /// Keeps out from now on who would freeze slots.
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
