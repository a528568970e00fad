//! The differential engine: random command sequences run on redis-server and on the server under
//! test; every reply, the events of keys and the final state must agree, or be listed in
//! `known_differences.txt`.
//!
//! A sequence is generated from one seed. A failing one is shrunk by removing commands and
//! arguments as long as it still fails, and is printed in the golden format, so that it can become
//! a test.
//!
//! The grammars of the command families are data: see [`family`].

mod compare;
mod dice;
mod events;
mod execute;
pub mod family;
mod gather;
mod generate;
mod judge;
mod sequence;
mod shrink;
mod state;
mod told;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use compare::{Difference, compare};
pub use execute::{Trace, execute};
pub use family::{ENABLED, FAMILIES, Family, Mix};
pub use generate::generate;
pub use sequence::{Delivery, Sequence, Step};
pub use shrink::shrink;

use crate::known::Known;

/// The two servers of a comparison, and what may differ.
pub struct Arena<'a> {
    /// The reference.
    pub redis: SocketAddr,
    /// The server under test.
    pub ours: SocketAddr,
    /// Intended differences.
    pub known: &'a [Known],
    /// How long a reply may take.
    pub patience: Duration,
    /// The events of keys are compared, too.
    pub hears_events: bool,
}

/// Totals of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sequences that ran.
    pub sequences: u64,
    /// Commands in them.
    pub commands: usize,
    /// Replies of redis-server which were errors.
    pub errors: usize,
    /// Keys compared at the end.
    pub keys: usize,
}

/// A sequence that fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the sequence.
    pub seed: u64,
    /// Number of commands before shrinking.
    pub commands: usize,
    /// The shrunk sequence.
    pub small: Sequence,
    /// What differs.
    pub difference: Difference,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seed, before, after) = (self.seed, self.commands, self.small.steps.len());
        writeln!(
            f,
            "seed {seed} (DIFF_SEED={seed} DIFF_SEQUENCES=1), shrunk from {before} to {after} \
             commands:\n\n{}\n{}",
            self.small, self.difference
        )
    }
}

impl Arena<'_> {
    /// Runs one sequence on both servers.
    pub fn check(&self, sequence: &Sequence) -> Result<Trace, Difference> {
        let run = |server| execute(server, sequence, self.patience, self.hears_events);
        let (redis, ours) = (run(self.redis), run(self.ours));
        compare(sequence, &redis, &ours, self.known).map(|()| redis)
    }

    /// The failure of the sequence of `seed`, shrunk.
    fn failure(&self, seed: u64, sequence: &Sequence, first: Difference) -> Failure {
        let small = shrink(sequence, |candidate| self.check(candidate).is_err());
        let difference = self.check(&small).err().unwrap_or(first);
        Failure { seed, commands: sequence.steps.len(), small, difference }
    }
}

/// Runs the sequences of `count` seeds from `seed` on, each on one of the arenas, all of which work
/// at the same time. The error is the first that fails, shrunk.
pub fn campaign(
    arenas: &[Arena<'_>],
    mix: &Mix,
    seed: u64,
    count: u64,
) -> Result<Summary, Box<Failure>> {
    let next = AtomicU64::new(0);
    let outcome = Mutex::new((Summary::default(), None));
    std::thread::scope(|scope| {
        for arena in arenas {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let seed = seed.wrapping_add(n);
                    let sequence = generate(seed, mix);
                    let checked = arena.check(&sequence);
                    // After a failure no further sequence is started.
                    let failure = checked.as_ref().err().map(|first| {
                        next.store(count, Ordering::Relaxed);
                        arena.failure(seed, &sequence, first.clone())
                    });
                    let mut outcome = outcome.lock().expect("no arena panics with it");
                    if let Ok(trace) = &checked {
                        outcome.0.sequences += 1;
                        outcome.0.commands += sequence.steps.len();
                        outcome.0.errors += trace.errors();
                        outcome.0.keys += trace.state.len();
                    }
                    outcome.1 = outcome.1.take().or(failure);
                }
            });
        }
    });
    match outcome.into_inner().expect("no arena panics with it") {
        (_, Some(failure)) => Err(Box::new(failure)),
        (summary, None) => Ok(summary),
    }
}
