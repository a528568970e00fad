//! What outlives a command at its worker: counts, the dice, a buffer.

use base::prng::Prng;

/// What a handler leaves for its worker: counts, and where the dice stand.
#[derive(Default)]
pub struct Tally {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// State of the random draws of handlers; the worker starts it with one of its driver's.
    pub random: u64,
    /// Where handlers write what they are about to store; kept from command to command.
    pub scratch: Vec<u8>,
}

impl Tally {
    /// With the dice where the driver has thrown them.
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
