//! A small seeded generator for everything that must look random and be repeatable: sampling for
//! eviction and expiry, RANDOMKEY, the simulator, test operands. Not for secrets.
//!
//! xoshiro256++ (Blackman and Vigna, public domain): 256 bits of state, about 1 ns a draw, passes
//! the usual test batteries. The state is filled by splitmix64, so that seeds 0, 1, 2 .. give
//! unrelated sequences.

/// The generator. The same seed gives the same sequence for ever.
#[derive(Clone, Debug)]
pub struct Prng([u64; 4]);

impl Prng {
    /// The sequence that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self(std::array::from_fn(|_| splitmix64(&mut state)))
    }

    /// 64 random bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..end`, every one as likely; `end` must not be 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is a number to choose");
        // Lemire's method: the high half of a product, redrawn in the few cases that would favour
        // some numbers over others.
        let unfair = end.wrapping_neg() % end;
        loop {
            let wide = u128::from(self.draw()) * u128::from(end);
            if wide as u64 >= unfair {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True in `part` of `whole` cases.
    #[inline]
    pub fn chance(&mut self, part: u64, whole: u64) -> bool {
        self.below(whole) < part
    }

    /// A separate generator, for a component whose draws must not shift those of others.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.draw())
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.draw().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
}

/// One step of splitmix64: advances `state`, returns a well mixed word.
#[inline]
pub const fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_match_the_published_ones() {
        let mut state = 1_234_567;
        let words: [u64; 3] = std::array::from_fn(|_| splitmix64(&mut state));
        assert_eq!(
            words,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let mut prng = Prng([1, 2, 3, 4]);
        let words: [u64; 4] = std::array::from_fn(|_| prng.draw());
        assert_eq!(words, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        let mut prng = Prng::new(1);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[prng.below(7) as usize] += 1;
        }
        // Expected: ten thousand each. Six standard deviations are 556.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 556), "{seen:?}");
        assert_eq!(prng.below(1), 0);
        // Three quarters of the range. Without rejection every third number would be twice as
        // likely as the others, so it would be drawn in half of the cases instead of a third.
        let end = u64::MAX / 4 * 3;
        let low = (0..30_000).filter(|_| prng.below(end).is_multiple_of(3)).count();
        assert!(low.abs_diff(10_000) < 490, "{low}");
        assert!((0..1000).all(|_| prng.below(end) < end));
    }

    #[test]
    fn seeds_and_forks_are_independent_and_repeatable() {
        let mut words: Vec<u64> = (0..100).map(|seed| Prng::new(seed).draw()).collect();
        assert_eq!(words[7], Prng::new(7).draw());
        let mut parent = Prng::new(0);
        words.extend((0..100).map(|_| parent.fork().draw()));
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 200);
        let (mut bytes, mut again) = ([0u8; 21], [0u8; 21]);
        Prng::new(3).fill(&mut bytes);
        Prng::new(3).fill(&mut again);
        assert_eq!(bytes, again);
        assert_ne!(bytes[16..], [0; 5]);
    }

    #[test]
    fn chance_has_the_requested_probability() {
        let mut prng = Prng::new(9);
        assert!((0..100).all(|_| prng.chance(5, 5) && !prng.chance(0, 5)));
        let hits = (0..10_000).filter(|_| prng.chance(1, 4)).count();
        assert!(hits.abs_diff(2_500) < 260, "{hits}");
    }
}
