//! Turns: who was turned back by long holders, and needs the whole keyspace (World) or a slot that it comes upon (a
//! grower), waits for its turn. Until it has had it nobody begins to be long, so it waits only for those who are long
//! already, each of which ends.
//!
//! Who is kept out for that parks at [`Parked::Turn`]. It is woken by the end of a turn and then goes in, whoever waits
//! by that time: so long holders have their turns, too.

use crate::parking::Parked;
use crate::space::Keyspace;
use base::sync::atomic::{AtomicU32, Ordering};
use base::sync::{Arc, CachePadded};

/// How many wait for their turn. Everything is ordered by the gate and the parking queues; this is looked at by
/// who is about to be long and by nobody else.
#[derive(Debug, Default)]
pub(crate) struct Turns(CachePadded<AtomicU32>);

impl Turns {
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn end(&self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a turn ends once");
    }

    /// True while somebody waits.
    pub fn are_awaited(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// Waits for its turn as long as it lives: from when the command is turned back until it has run, or its client has gone.
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
