//! What handlers keep from one command to the next at a worker.

use base::prng::Prng;

/// What handlers keep from one command to the next: counts of lookups, the state of their random
/// draws, a buffer. Each worker has one.
#[derive(Default)]
pub struct Tally {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// The state of the random draws; the worker starts it with a number of its driver's.
    pub random: u64,
    /// A buffer for values that are about to be stored, so that most commands allocate none.
    pub scratch: Vec<u8>,
}

impl Tally {
    /// With the first state of the random draws.
    pub fn new(random: u64) -> Self {
        Self { random, ..Self::default() }
    }

    /// 64 random bits.
    pub fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(1);
        Prng::new(self.random).draw()
    }

    /// Counts a lookup by a read command.
    #[inline]
    pub fn count(&mut self, found: bool) {
        if found {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }
}
