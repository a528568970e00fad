//! The keyed hash of keys and members. A client that does not know the hash key can neither choose
//! inputs that share a hash nor derive the hash key from the order in which SCAN returns its data.
//!
//! ```text
//! 0..=16 bytes: (a, b) = the first and the last 8, 4 or 1, overlapping;  s = k0
//! more:         s = k0, for each 16 bytes but the last: s = fold(x ^ s, y ^ k1);
//!               (a, b) = the last 16
//! then:         (low, high) = (a ^ s) * (b ^ k1);  hash = fold(low ^ k2, high ^ (k3 + length))
//! fold(x, y) = the two halves of the product of 128 bits, xored
//! ```
//!
//! The structure is that of wyhash and its descendants, with two differences that resist attacks:
//! no operand of a multiplication is a public constant, so no input is known to cancel a factor,
//! and the last multiplication has a key of its own on each side, so its result does not show that
//! of the first. Inputs of up to 16 bytes, chosen without the key, collide with a probability of
//! about 2^-62.
//!
//! It takes a quarter of the instructions of SipHash-1-3 for a key of 16 bytes, and two more than
//! foldhash, whose shared seeds can be kept secret but whose last multiplication has a public
//! constant.

use crate::prng::splitmix64;

/// A hash function with a secret key of 256 bits.
#[derive(Clone)]
pub struct KeyHasher([u64; 4]);

// Without the key, which a log must not show.
impl std::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHasher")
    }
}

impl KeyHasher {
    /// The function that belongs to this secret.
    pub const fn new(secret: u128) -> Self {
        let (mut low, mut high) = (secret as u64, (secret >> 64) as u64);
        let mut keys = [0; 4];
        let mut at = 0;
        while at < keys.len() {
            keys[at] = splitmix64(&mut low) ^ splitmix64(&mut high).rotate_left(32);
            at += 1;
        }
        Self(keys)
    }

    /// Hash of `bytes`, O(n), about 1 ns for a short key.
    #[inline(always)]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        if bytes.len() > SHORT_MAX {
            return self.hash_long(bytes);
        }
        let (a, b) = ends(bytes);
        self.finish(self.0[0], a, b, bytes.len())
    }

    #[inline(never)]
    fn hash_long(&self, bytes: &[u8]) -> u64 {
        let [mut state, k1, ..] = self.0;
        let mut rest = bytes;
        while rest.len() > SHORT_MAX
            && let Some((block, behind)) = rest.split_first_chunk()
        {
            let (x, y) = words(block);
            state = fold(x ^ state, y ^ k1);
            rest = behind;
        }
        let last = bytes.last_chunk().expect("longer than a short key");
        let (a, b) = words(last);
        self.finish(state, a, b, bytes.len())
    }

    #[inline(always)]
    fn finish(&self, state: u64, a: u64, b: u64, len: usize) -> u64 {
        let [_, k1, k2, k3] = self.0;
        let (low, high) = product(a ^ state, b ^ k1);
        fold(low ^ k2, high ^ k3.wrapping_add(len as u64))
    }

    /// The last 8 bytes that make all inputs of one length share a hash, whatever is before them:
    /// for tests of the case that the secret is known.
    pub fn weak_tail(&self) -> [u8; 8] {
        self.0[1].to_le_bytes()
    }
}

/// Longest input that is read as two words.
const SHORT_MAX: usize = 16;

#[inline(always)]
fn product(x: u64, y: u64) -> (u64, u64) {
    let wide = u128::from(x) * u128::from(y);
    (wide as u64, (wide >> 64) as u64)
}

#[inline(always)]
fn fold(x: u64, y: u64) -> u64 {
    let (low, high) = product(x, y);
    low ^ high
}

#[inline(always)]
fn words(block: &[u8; SHORT_MAX]) -> (u64, u64) {
    let wide = u128::from_le_bytes(*block);
    (wide as u64, (wide >> 64) as u64)
}

/// Two words that together contain every byte of a short input.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into())
    } else if let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) {
        (u64::from(first) << 8 | u64::from(bytes[bytes.len() / 2]), last.into())
    } else {
        (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_hash_depends_only_on_secret_and_key() {
        let (a, same) = (KeyHasher::new(1), KeyHasher::new(1));
        let others = [2, 1 << 64, 1 | 1 << 64].map(KeyHasher::new);
        for len in [0, 1, 7, 8, 15, 16, 17, 32, 33, 100, 1000] {
            let key = vec![b'k'; len];
            assert_eq!(a.hash(&key), same.hash(&key));
            for other in &others {
                assert_ne!(a.hash(&key), other.hash(&key), "length {len}");
            }
            assert_ne!(a.hash(&key), a.hash(&[&key, b"\0".as_slice()].concat()), "length {len}");
        }
    }

    /// Every bit of every byte affects the hash, at every length.
    #[test]
    fn every_bit_of_a_key_affects_its_hash() {
        let hasher = KeyHasher::new(3);
        for len in 1..=70 {
            let mut key = vec![0; len];
            let mut seen = BTreeSet::from([hasher.hash(&key)]);
            for bit in 0..len * 8 {
                key[bit / 8] ^= 1 << (bit % 8);
                assert!(seen.insert(hasher.hash(&key)), "bit {bit} of {len} bytes");
                key[bit / 8] = 0;
            }
        }
    }

    /// Tables take buckets from either end of the hash and tags from the middle. So every bit must
    /// be set in half of the hashes, even for keys which differ in one digit.
    #[test]
    fn every_bit_of_the_hash_is_uniform() {
        const KEYS: u32 = 10_000;
        let hasher = KeyHasher::new(7);
        for prefix in ["", "user:", "a rather long prefix:"] {
            let mut set = [0u32; 64];
            for n in 0..KEYS {
                let hash = hasher.hash(format!("{prefix}{n:010}").as_bytes());
                for (bit, count) in set.iter_mut().enumerate() {
                    *count += (hash >> bit & 1) as u32;
                }
            }
            // Six standard deviations of a fair coin.
            assert!(set.iter().all(|&count| count.abs_diff(KEYS / 2) < 300), "{prefix} {set:?}");
        }
    }

    /// The number of distinct hashes of keys which differ at the start and end in `tail`.
    fn hashes(hasher: &KeyHasher, len: usize, tail: &[u8]) -> usize {
        let key = |n: u32| {
            let mut key = n.to_le_bytes().to_vec();
            key.resize(len - tail.len(), b'x');
            [&key, tail].concat()
        };
        (0..1000).map(|n| hasher.hash(&key(n))).collect::<BTreeSet<_>>().len()
    }

    /// With these tails, keys have equal hashes under functions whose constants are public. Here
    /// such keys can be made only with the secret.
    #[test]
    fn keys_made_without_the_secret_do_not_collide() {
        let hasher = KeyHasher::new(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);
        // Constants of foldhash, and constants derived from other secrets.
        let mut tails = vec![
            [0xdd, 0x50, 0x7c, 0xc9, 0xb7, 0x29, 0xac, 0xc0],
            [0x17, 0x09, 0x47, 0xb5, 0xb5, 0xd5, 0x84, 0x3f],
            [0; 8],
            [0xff; 8],
        ];
        tails.extend((0..1000).map(|secret| KeyHasher::new(secret).weak_tail()));
        for tail in tails {
            for len in [12, 16, 24, 40, 100] {
                assert_eq!(hashes(&hasher, len, &tail), 1000, "{len} bytes, {tail:x?}");
                assert_eq!(hashes(&hasher, len.max(20), &[tail, tail].concat()), 1000);
            }
        }
        for len in [12, 16, 24, 40, 100] {
            assert_eq!(hashes(&hasher, len, &hasher.weak_tail()), 1, "the attack is a real one");
        }
    }
}
