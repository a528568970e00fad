//! The keyed hash of keys. Its low bits choose the bucket, so all bits must be good.

use foldhash::quality::FixedState;
use std::hash::{BuildHasher, Hasher};

/// A seeded hash function; the seed comes from the driver, so a run can be repeated.
#[derive(Clone, Debug)]
pub struct KeyHasher(FixedState);

impl KeyHasher {
    /// The function with this seed.
    pub fn new(seed: u64) -> Self {
        Self(FixedState::with_seed(seed))
    }

    /// Hash of `bytes`, O(n), under 1 ns for a short key.
    #[inline(always)]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut h = self.0.build_hasher();
        h.write(bytes);
        h.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_function() {
        let (a, same, other) = (KeyHasher::new(1), KeyHasher::new(1), KeyHasher::new(2));
        for len in [0, 1, 7, 8, 15, 16, 17, 100, 1000] {
            let key = vec![b'k'; len];
            assert_eq!(a.hash(&key), same.hash(&key));
            assert_ne!(a.hash(&key), other.hash(&key), "length {len}");
            assert_ne!(a.hash(&key), a.hash(&[&key, b"\0".as_slice()].concat()), "length {len}");
        }
    }

    /// Tables cut buckets from either end of the hash and tags from the middle, so every bit must
    /// be as often set as not, even for keys that differ in one digit.
    #[test]
    fn every_bit_is_even() {
        const KEYS: u32 = 10_000;
        let hasher = KeyHasher::new(7);
        let mut set = [0u32; 64];
        for n in 0..KEYS {
            let hash = hasher.hash(format!("user:{n:010}").as_bytes());
            for (bit, count) in set.iter_mut().enumerate() {
                *count += (hash >> bit & 1) as u32;
            }
        }
        // Six standard deviations of a fair coin.
        assert!(set.iter().all(|&count| count.abs_diff(KEYS / 2) < 300), "{set:?}");
    }
}
