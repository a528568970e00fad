//! How often keys were read lately, approximately: the filter of TinyLFU (Einziger, Friedman,
//! Manes: "TinyLFU: A Highly Efficient Cache Admission Policy", 2017).
//!
//! A count-min sketch of four rows with counters of four bits. A count adds one only to the
//! smallest of a key's four counters. A doorkeeper, which is a Bloom filter, holds the first read
//! of each key. After ten times as many counts as the cache holds entries all counters are halved
//! and the doorkeeper is emptied.

use base::prng::splitmix64;

const ROWS: usize = 4;
const COUNT_MAX: u8 = 15;
/// Counts between two halvings, for each entry.
const SAMPLE: u64 = 10;
/// Bits of the doorkeeper for each entry: about one key in ten within a sample is taken for known.
const DOOR_BITS: u64 = 32;

/// The filter.
pub struct Sketch {
    rows: [Vec<u8>; ROWS],
    door: Vec<u64>,
    counted: u64,
    sample: u64,
}

impl Sketch {
    /// An empty one for a cache of so many entries.
    pub fn new(entries: u64) -> Self {
        let entries = entries.max(16);
        let width = entries.next_power_of_two() as usize;
        let door = vec![0; (entries * DOOR_BITS).next_power_of_two() as usize / 64];
        Self {
            rows: std::array::from_fn(|_| vec![0; width]),
            door,
            counted: 0,
            sample: entries * SAMPLE,
        }
    }

    /// Counts a read of a key.
    pub fn count(&mut self, key: u32) {
        if !self.enter(key) {
            let least = self.least(key);
            for (row, place) in places(key, self.rows[0].len()).into_iter().enumerate() {
                let count = &mut self.rows[row][place];
                if *count == least && least < COUNT_MAX {
                    *count += 1;
                }
            }
        }
        self.counted += 1;
        if self.counted >= self.sample {
            self.halve();
        }
    }

    /// How often a key was read lately.
    pub fn estimate(&self, key: u32) -> u32 {
        let mut bits = door_bits(key, self.door.len() * 64).into_iter();
        let is_in = bits.all(|bit| self.door[bit / 64] >> (bit % 64) & 1 == 1);
        u32::from(self.least(key)) + u32::from(is_in)
    }

    /// Lets a key pass the doorkeeper; true for one that it does not know.
    fn enter(&mut self, key: u32) -> bool {
        let mut is_new = false;
        for bit in door_bits(key, self.door.len() * 64) {
            is_new |= self.door[bit / 64] >> (bit % 64) & 1 == 0;
            self.door[bit / 64] |= 1 << (bit % 64);
        }
        is_new
    }

    fn least(&self, key: u32) -> u8 {
        let places = places(key, self.rows[0].len()).into_iter().enumerate();
        places.map(|(row, place)| self.rows[row][place]).min().unwrap_or(0)
    }

    fn halve(&mut self) {
        self.rows.iter_mut().flatten().for_each(|count| *count /= 2);
        self.door.fill(0);
        self.counted /= 2;
    }
}

/// The counter of a key in each row.
fn places(key: u32, width: usize) -> [usize; ROWS] {
    let mut state = u64::from(key);
    std::array::from_fn(|_| splitmix64(&mut state) as usize & (width - 1))
}

/// The bits of a key in the doorkeeper.
fn door_bits(key: u32, bits: usize) -> [usize; 2] {
    let mut state = u64::from(key) | 1 << 40;
    std::array::from_fn(|_| splitmix64(&mut state) as usize & (bits - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_keys_are_told_from_rare_ones_and_counts_are_halved() {
        let mut sketch = Sketch::new(100);
        (0..10).for_each(|_| sketch.count(1));
        (100..200).for_each(|key| sketch.count(key));
        let rare = (100..200).filter(|key| sketch.estimate(*key) == 1).count();
        assert!(sketch.estimate(1) == 10 && sketch.estimate(2) <= 1 && rare > 90, "{rare}");
        (0..890).for_each(|_| sketch.count(3));
        // Ten reads were nine counts behind the doorkeeper, which is empty now; 15 was the most.
        assert_eq!((sketch.estimate(1), sketch.estimate(3)), (4, 7));
    }
}
