//! Counting the bits that are set.
//!
//! Long texts go through a tree of carry-save adders (Harley and Seal; W. Muła, N. Kurz, D. Lemire,
//! *Faster Population Counts Using AVX2 Instructions*, 2016): sixteen words become one word of
//! sixteens and the rest of four lower counters, so that only every sixteenth word is counted bit
//! by bit. Each "word" is [`LANES`] machine words, which the compiler keeps in vector registers; no
//! instruction beyond the target's base set is needed.

/// Machine words that are added side by side.
const LANES: usize = 4;
/// Bytes of one vector.
const VECTOR: usize = LANES * 8;
/// Bytes that one round adds up: sixteen vectors.
const ROUND: usize = 16 * VECTOR;

type Vector = [u64; LANES];

/// How many bits are set.
pub fn count(bytes: &[u8]) -> u64 {
    let (rounds, rest) = bytes.as_chunks::<ROUND>();
    let long = if rounds.is_empty() { 0 } else { count_rounds(rounds) };
    long + count_short(rest)
}

/// How many bits are set from bit `from` up to, not including, bit `to`, both within the text.
pub fn count_range(bytes: &[u8], from: u64, to: u64) -> u64 {
    if from >= to {
        return 0;
    }
    let (first, last) = ((from >> 3) as usize, ((to - 1) >> 3) as usize);
    let before = bytes[first] & !(0xff >> (from & 7));
    let behind = bytes[last] & (0x7f >> ((to - 1) & 7));
    count(&bytes[first..=last]) - u64::from(before.count_ones() + behind.count_ones())
}

fn count_short(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let ones = |sum: u64, word: &[u8; 8]| sum + u64::from(u64::from_le_bytes(*word).count_ones());
    let total = words.iter().fold(0, ones);
    total + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

fn count_rounds(rounds: &[[u8; ROUND]]) -> u64 {
    let (mut ones, mut twos, mut fours, mut eights) =
        ([0; LANES], [0; LANES], [0; LANES], [0; LANES]);
    let mut sixteens = [0; LANES];
    for round in rounds {
        let (vectors, _) = round.as_chunks::<VECTOR>();
        let at = |i: usize| load(&vectors[i]);
        let mut eight = [[0; LANES]; 2];
        for (half, out) in eight.iter_mut().enumerate() {
            let mut four = [[0; LANES]; 2];
            for (quarter, out) in four.iter_mut().enumerate() {
                let i = half * 8 + quarter * 4;
                let a = add(&mut ones, at(i), at(i + 1));
                let b = add(&mut ones, at(i + 2), at(i + 3));
                *out = add(&mut twos, a, b);
            }
            *out = add(&mut fours, four[0], four[1]);
        }
        let sixteen = add(&mut eights, eight[0], eight[1]);
        for (sum, lane) in sixteens.iter_mut().zip(ones_of(sixteen)) {
            *sum += lane;
        }
    }
    let total =
        |vector: Vector| vector.iter().map(|lane| u64::from(lane.count_ones())).sum::<u64>();
    16 * sixteens.iter().sum::<u64>()
        + 8 * total(eights)
        + 4 * total(fours)
        + 2 * total(twos)
        + total(ones)
}

#[inline(always)]
fn load(bytes: &[u8; VECTOR]) -> Vector {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Adds three bits in each position: the sum stays in `sum`, the carry is returned.
#[inline(always)]
fn add(sum: &mut Vector, b: Vector, c: Vector) -> Vector {
    let a = *sum;
    let half: Vector = std::array::from_fn(|i| a[i] ^ b[i]);
    *sum = std::array::from_fn(|i| half[i] ^ c[i]);
    std::array::from_fn(|i| (a[i] & b[i]) | (half[i] & c[i]))
}

/// The bits set in each lane, by adding neighbours, then pairs, then bytes.
#[inline(always)]
fn ones_of(vector: Vector) -> Vector {
    std::array::from_fn(|i| u64::from(vector[i].count_ones()))
}

#[cfg(test)]
mod tests {
    use super::super::bit::bits;
    use super::*;
    use proptest::prelude::*;

    fn naive(bytes: &[u8], from: usize, to: usize) -> u64 {
        bits(bytes)[from..to].iter().map(|bit| u64::from(*bit)).sum()
    }

    #[test]
    fn counts_are_right_at_every_length_around_a_block() {
        let mut seed = base::prng::Prng::new(7);
        let bytes: Vec<u8> = (0..3 * ROUND + 40).map(|_| seed.draw() as u8).collect();
        for len in (0..40).chain(ROUND - 20..ROUND + 20).chain([2 * ROUND, 3 * ROUND + 40]) {
            assert_eq!(count(&bytes[..len]), naive(&bytes, 0, len * 8), "{len}");
        }
        assert_eq!(count(&vec![0xff; 5 * ROUND]), 5 * ROUND as u64 * 8);
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_bit_by_bit_count(
            bytes in proptest::collection::vec(any::<u8>(), 1..1200),
            a: usize,
            b: usize,
        ) {
            let total = bytes.len() * 8 + 1;
            let (a, b) = (a % total, b % total);
            let (from, to) = (a.min(b), a.max(b));
            prop_assert_eq!(count_range(&bytes, from as u64, to as u64), naive(&bytes, from, to));
            prop_assert_eq!(count_range(&bytes, to as u64, from as u64), 0);
        }
    }
}
