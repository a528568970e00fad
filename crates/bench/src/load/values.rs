//! Values that can be recognised: a function of the key and of how often it was written.
//!
//! Word i of the value of (key, version) is one step of splitmix64 at a start that both determine,
//! so a value of another key, of an older version, shifted or cut is recognised by its first eight
//! bytes, with a chance of 2^-64 to miss it (2^-8n for values of n < 8 bytes).

use base::prng::splitmix64;

/// What values consist of where they are not verified.
pub const FILLER: u8 = b'x';

fn start(key: u64, version: u32) -> u64 {
    let mut state = key ^ u64::from(version).rotate_left(40) ^ 0x5eaf_db00_0000_0000;
    splitmix64(&mut state)
}

/// Writes the value of `key` in `version`.
#[inline]
pub fn fill(key: u64, version: u32, into: &mut [u8]) {
    let mut state = start(key, version);
    let mut words = into.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&splitmix64(&mut state).to_le_bytes());
    }
    let rest = words.into_remainder();
    rest.copy_from_slice(&splitmix64(&mut state).to_le_bytes()[..rest.len()]);
}

/// Is `value` the value of `key` in `version`?
#[inline]
pub fn matches(key: u64, version: u32, value: &[u8]) -> bool {
    let mut state = start(key, version);
    let words = value.chunks_exact(8);
    let rest = words.remainder();
    let mut same = true;
    for word in words {
        same &= word == splitmix64(&mut state).to_le_bytes();
    }
    same && rest == &splitmix64(&mut state).to_le_bytes()[..rest.len()]
}

/// The length of that value, if lengths lie in a range.
#[inline]
pub fn len(key: u64, version: u32, (low, high): (usize, usize)) -> usize {
    if low == high {
        return low;
    }
    let mut state = start(key, version) ^ 0x1e57;
    let wide = u128::from(splitmix64(&mut state)) * (high - low + 1) as u128;
    low + (wide >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_determined_by_key_and_version() {
        for len in [4, 7, 8, 9, 64, 1000] {
            let mut value = vec![0; len];
            fill(12, 3, &mut value);
            assert!(matches(12, 3, &value));
            assert!(!matches(13, 3, &value) && !matches(12, 4, &value), "{len} bytes");
            value[len - 1] ^= 1;
            assert!(!matches(12, 3, &value), "the last of {len} bytes counts");
        }
        assert!(matches(1, 1, b""));
    }

    #[test]
    fn lengths_cover_their_range_and_are_stable() {
        let lens: Vec<usize> = (0..500).map(|key| len(key, 1, (10, 12))).collect();
        assert_eq!((lens.iter().min(), lens.iter().max()), (Some(&10), Some(&12)));
        assert_eq!(len(7, 2, (10, 12)), len(7, 2, (10, 12)));
        assert_eq!(len(7, 2, (5, 5)), 5);
    }
}
