//! How many clients of each worker subscribe to a channel or a pattern, and one of them.

use driver::ConnId;

/// A connection that subscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscriber {
    /// The connection.
    pub conn: ConnId,
    /// It receives messages of this epoch and later ones.
    pub since: u64,
}

/// How many clients of each worker subscribe to something.
#[derive(Debug)]
pub enum Subscribers {
    /// Those of one worker.
    One {
        /// The worker.
        worker: u32,
        /// How many.
        count: u32,
    },
    /// Of each worker.
    Many(Vec<u32>),
}

impl Default for Subscribers {
    fn default() -> Self {
        Self::One { worker: 0, count: 0 }
    }
}

impl Subscribers {
    /// A client of this worker subscribes.
    pub fn join(&mut self, new: usize) {
        if let Self::One { worker, count } = self {
            if *count == 0 || *worker as usize == new {
                (*worker, *count) = (new as u32, *count + 1);
                return;
            }
            let mut counts = vec![0; new.max(*worker as usize) + 1];
            counts[*worker as usize] = *count;
            *self = Self::Many(counts);
        }
        if let Self::Many(counts) = self {
            if counts.len() <= new {
                counts.resize(new + 1, 0);
            }
            counts[new] += 1;
        }
    }

    /// A client of this worker, which has subscribed, does so no more.
    pub fn leave(&mut self, old: usize) {
        match self {
            Self::One { count, .. } => *count -= 1,
            Self::Many(counts) => counts[old] -= 1,
        }
    }

    /// How many of this worker.
    pub fn of(&self, at: usize) -> u64 {
        match self {
            Self::One { worker, count } if *worker as usize == at => u64::from(*count),
            Self::One { .. } => 0,
            Self::Many(counts) => counts.get(at).copied().map_or(0, u64::from),
        }
    }

    /// How many of all workers.
    pub fn total(&self) -> u64 {
        match self {
            Self::One { count, .. } => u64::from(*count),
            Self::Many(counts) => counts.iter().map(|count| u64::from(*count)).sum(),
        }
    }
}
