//! The differential engine: random command sequences run on redis-server and on the server under
//! test; every reply and the final state must agree, or be listed in `known_differences.txt`.
//!
//! A sequence comes from one seed. A failing one is shrunk by leaving commands out until nothing more
//! can go, and printed in the golden format, ready to become a test of its own.

mod compare;
mod execute;
mod family;
mod generate;
mod sequence;
mod shrink;

use std::net::SocketAddr;
use std::time::Duration;

pub use compare::{Difference, compare};
pub use execute::{Trace, execute};
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
    /// Differences that are meant.
    pub known: &'a [Known],
    /// How long a reply may take.
    pub patience: Duration,
}

/// What a campaign did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sequences that ran.
    pub sequences: u64,
    /// Commands in them.
    pub commands: usize,
    /// Of these, replies that were errors on redis-server.
    pub errors: usize,
}

impl Arena<'_> {
    /// Runs one sequence on both servers.
    pub fn check(&self, sequence: &Sequence) -> Result<Trace, Difference> {
        let redis = execute(self.redis, sequence, self.patience);
        let ours = execute(self.ours, sequence, self.patience);
        compare(sequence, &redis, &ours, self.known).map(|()| redis)
    }

    /// Runs `count` sequences from `seed` on. The error is the text to print for the first that
    /// fails, shrunk.
    pub fn campaign(&self, seed: u64, count: u64) -> Result<Summary, String> {
        let mut summary = Summary::default();
        for seed in (0..count).map(|n| seed.wrapping_add(n)) {
            let sequence = generate(seed);
            match self.check(&sequence) {
                Ok(trace) => {
                    summary.sequences += 1;
                    summary.commands += sequence.steps.len();
                    summary.errors += trace.errors();
                }
                Err(first) => {
                    let small = shrink(&sequence, |candidate| self.check(candidate).is_err());
                    let difference = self.check(&small).err().unwrap_or(first);
                    return Err(format!(
                        "seed {seed} (DIFF_SEED={seed} DIFF_SEQUENCES=1), shrunk from {} to {} \
                         commands:\n\n{small}\n{difference}",
                        sequence.steps.len(),
                        small.steps.len()
                    ));
                }
            }
        }
        Ok(summary)
    }
}
