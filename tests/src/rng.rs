//! Seeded random numbers for tests: the same seed gives the same test.

use base::prng::Prng;

/// A random number generator.
#[derive(Clone, Debug)]
pub struct Rng(Prng);

impl Rng {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Prng::new(seed))
    }

    /// A number in `0..n`; `n` is at least 1.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    /// True with a probability of `percent` %.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A random item of `from`.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// That many random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill(&mut bytes);
        bytes
    }
}
