//! Traces that are made, the same ones from the same seed.

use base::prng::{Prng, splitmix64};

use super::trace::{Access, Trace};

/// The exponent of Zipf's law where a trace is about something else.
const EXPONENT: f64 = 0.9;
/// Sizes of values are 2 to the power of these, evenly spread.
const SIZE_BITS: (f64, f64) = (5.0, 12.0);

/// A trace that can be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Zipf's law with this exponent: the key of rank `r` is read in proportion to `r ^ -exponent`.
    Zipf(f64),
    /// Zipf's law, with scans through it: each fifth and sixth stretch of as many reads as entries
    /// fit is read by turns from a row of keys that are read once.
    Scan,
    /// Zipf's law on keys that come and go: the hottest key is the newest, and cools down.
    Moving,
    /// The same keys over and over, a tenth more than fit.
    Loop,
    /// Zipf's law, with values of 32 to 4,096 bytes.
    Sizes,
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Entries that the cache holds.
    pub entries: u64,
    /// Keys that there are.
    pub keys: u64,
    /// Reads.
    pub accesses: usize,
    /// Bytes of a value.
    pub size: u32,
    /// What the draws depend on.
    pub seed: u64,
}

impl Distribution {
    /// All that are played unless others are asked for.
    pub const USUAL: [Self; 8] = [
        Self::Zipf(0.7),
        Self::Zipf(0.9),
        Self::Zipf(1.0),
        Self::Zipf(1.2),
        Self::Scan,
        Self::Moving,
        Self::Loop,
        Self::Sizes,
    ];

    /// The distribution of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        if let Some(exponent) = name.strip_prefix("zipf-") {
            let exponent = exponent.parse().ok().filter(|e| (0.0..=5.0).contains(e));
            return exponent.map(Self::Zipf);
        }
        let all = [Self::Scan, Self::Moving, Self::Loop, Self::Sizes];
        all.into_iter().find(|one| one.name() == name)
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Zipf(exponent) => format!("zipf-{exponent:.1}"),
            Self::Scan => "scan".to_owned(),
            Self::Moving => "moving".to_owned(),
            Self::Loop => "loop".to_owned(),
            Self::Sizes => "sizes".to_owned(),
        }
    }

    /// Makes the trace.
    pub fn generate(self, extent: Extent) -> Trace {
        let Extent { entries, keys, accesses, size, seed } = extent;
        let mut ranks = Ranks::new(if let Self::Zipf(e) = self { e } else { EXPONENT }, keys, seed);
        let mut scanned = keys;
        let key = |at: usize| match self {
            Self::Zipf(_) | Self::Sizes => ranks.draw(),
            Self::Scan => {
                let is_scan = at as u64 / entries % 6 >= 4 && at.is_multiple_of(2);
                scanned += u64::from(is_scan);
                if is_scan { scanned - 1 } else { ranks.draw() }
            }
            Self::Moving => {
                // (Over the trace as many keys come as fit four times.)
                let newest = keys + at as u64 * 4 * entries / accesses as u64;
                newest - ranks.draw()
            }
            Self::Loop => at as u64 % (entries * 11 / 10).max(entries + 1),
        };
        let size = |key: u64| if self == Self::Sizes { drawn_size(key, seed) } else { size };
        let drawn: Vec<u64> = (0..accesses).map(key).collect();
        let (keys, numbers) = numbered(&drawn);
        let accesses = numbers.into_iter().zip(&drawn);
        let accesses = accesses.map(|(number, key)| Access { key: number, size: size(*key) });
        Trace::new(&self.name(), keys, accesses.collect())
    }
}

/// Numbers keys in the order of their first reads, as a file does that is read: so a trace that was
/// recorded is the same one. The names of the keys, and the number for each read.
fn numbered(drawn: &[u64]) -> (Vec<String>, Vec<u32>) {
    let most = drawn.iter().max().map_or(0, |most| most + 1);
    let (mut known, mut names) = (vec![None; most as usize], Vec::new());
    let number = |key: &u64| {
        *known[*key as usize].get_or_insert_with(|| {
            names.push(format!("key:{key}"));
            names.len() as u32 - 1
        })
    };
    let numbers = drawn.iter().map(number).collect();
    (names, numbers)
}

/// The size of a key's value.
fn drawn_size(key: u64, seed: u64) -> u32 {
    let (low, high) = SIZE_BITS;
    let part = splitmix64(&mut (key ^ seed << 32)) as f64 / u64::MAX as f64;
    (low + (high - low) * part).exp2() as u32
}

/// Draws ranks from 0 on by Zipf's law.
struct Ranks {
    /// The share of all draws that goes to a rank and those before it.
    up_to: Vec<f64>,
    prng: Prng,
}

impl Ranks {
    fn new(exponent: f64, keys: u64, seed: u64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        let mut up_to: Vec<f64> = weights.collect();
        for part in &mut up_to {
            *part /= sum;
        }
        Self { up_to, prng: Prng::new(seed) }
    }

    fn draw(&mut self) -> u64 {
        let part = (self.prng.draw() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = self.up_to.partition_point(|up_to| *up_to <= part);
        rank.min(self.up_to.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent =
        Extent { entries: 100, keys: 1_000, accesses: 20_000, size: 50, seed: 7 };

    /// The key of an access, as it was drawn.
    fn key(trace: &Trace, access: Access) -> usize {
        trace.keys[access.key as usize]["key:".len()..].parse().expect("a number")
    }

    /// Reads of each key.
    fn reads(trace: &Trace) -> Vec<usize> {
        let mut reads = Vec::new();
        for access in &trace.accesses {
            let key = key(trace, *access);
            reads.resize(reads.len().max(key + 1), 0);
            reads[key] += 1;
        }
        reads
    }

    #[test]
    fn names_are_read_back_and_traces_repeat() {
        for one in Distribution::USUAL {
            assert_eq!(Distribution::named(&one.name()), Some(one));
            let trace = one.generate(EXTENT);
            assert_eq!(trace.accesses.len(), EXTENT.accesses);
            assert_eq!(trace, one.generate(EXTENT));
            assert_eq!(trace.is_sized, one == Distribution::Sizes);
            let other = one.generate(Extent { seed: 8, ..EXTENT });
            assert_eq!(trace == other, one == Distribution::Loop, "{}", one.name());
        }
        let others = ["zipf", "zipf-x", "zipf-9", "zipf--1", "scans"];
        assert!(others.into_iter().all(|name| Distribution::named(name).is_none()));
    }

    #[test]
    fn zipf_follows_its_law() {
        let reads = reads(&Distribution::Zipf(1.0).generate(EXTENT));
        // The sum of 1/r up to 1,000 is 7.485: rank 1 gets 2,672 of 20,000, rank 10 a tenth of it.
        assert!(reads[0].abs_diff(2_672) < 300, "{}", reads[0]);
        assert!(reads[9].abs_diff(267) < 100, "{}", reads[9]);
    }

    #[test]
    fn a_scan_reads_keys_of_its_own_once() {
        let trace = Distribution::Scan.generate(EXTENT);
        let reads = reads(&trace);
        assert!(reads[1_000..].iter().all(|count| *count == 1));
        // A sixth of all reads, less the stretch that the end cuts off.
        assert!(reads[1_000..].len().abs_diff(20_000 / 6) <= 100, "{}", reads.len());
    }

    #[test]
    fn a_loop_is_a_tenth_larger_than_the_cache_and_a_working_set_moves() {
        assert_eq!(Distribution::Loop.generate(EXTENT).keys.len(), 110);
        let trace = Distribution::Moving.generate(EXTENT);
        let hottest = |part: &[Access]| {
            let mut counts = std::collections::HashMap::new();
            for one in part {
                *counts.entry(key(&trace, *one)).or_insert(0) += 1;
            }
            counts.into_iter().max_by_key(|(_, count)| *count).expect("there are reads").0
        };
        let (early, late) = (hottest(&trace.accesses[..2_000]), hottest(&trace.accesses[18_000..]));
        assert!(late > early + 200, "{early} {late}");
    }

    #[test]
    fn sizes_belong_to_keys_and_spread() {
        let trace = Distribution::Sizes.generate(EXTENT);
        assert!(trace.accesses.iter().all(|one| (32..=4_096).contains(&one.size)));
        let of = |key: u32| trace.accesses.iter().filter(move |one| one.key == key);
        let first = of(0).next().expect("the hottest").size;
        assert!(of(0).all(|one| one.size == first));
        let small = trace.firsts().filter(|one| one.size < 362).count();
        let all = trace.firsts().count();
        assert!(small * 10 > all * 4 && small * 10 < all * 6, "{small} of {all}: half of the bits");
    }
}
