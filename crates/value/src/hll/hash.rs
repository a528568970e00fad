//! From an element to its register and rank.

use super::layout::{RANK_BITS, REGISTER_BITS, REGISTERS};

/// What an element asks of a sketch: that register `index` be at least `rank`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which register.
    pub index: usize,
    /// 1 to 51.
    pub rank: u8,
}

/// The seed that every Redis uses.
const SEED: u64 = 0xadc8_3b19;

/// Where an element belongs.
#[inline]
pub fn place(element: &[u8]) -> Place {
    let hash = murmur64a(element, SEED);
    let counted = hash >> REGISTER_BITS | 1 << RANK_BITS;
    Place { index: hash as usize & (REGISTERS - 1), rank: counted.trailing_zeros() as u8 + 1 }
}

/// Austin Appleby's MurmurHash64A (public domain), words little-endian.
fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ k >> R).wrapping_mul(M);
        hash = (hash ^ k).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_hash_to_the_documented_registers() {
        // PFADD h a; PFDEBUG DECODE h: Z:12711 v:2,1 Z:3672
        assert_eq!(place(b"a"), Place { index: 12711, rank: 2 });
    }
}
