//! The data of the figures, element by element, the same for every server.

use client::{Client, Value};

use super::{call, connect};
use crate::lab::target::Started;

/// Elements that one request adds.
const BATCH: u64 = 100;
/// Requests that are sent together.
const WINDOW: u64 = 16;

/// A collection, or many of one kind, under names that begin with `bench:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// `bench:zset`: members `m0` and up, most of 8 bytes, with scores in no order.
    Zset,
    /// `bench:list` of 8-byte elements.
    List,
    /// `bench:hash:N`, of 100 fields each.
    Hashes,
    /// `bench:set:a` and `bench:set:b` of 8-byte members, half of which they share.
    Sets,
    /// `bench:hll`, which has seen enough to be dense.
    Sketch,
    /// `bench:geo`: places between 0 and 10 degrees east, 45 and 55 degrees north.
    Places,
    /// `bench:bits`: 1 MB (10^6 bytes) of noise.
    Bits,
}

/// How large the data are.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Everything is divided by this.
    pub divisor: u64,
}

impl Sizes {
    /// Members of the sorted set.
    pub fn zset(self) -> u64 {
        10_000_000 / self.divisor
    }
    /// Elements of the list.
    pub fn list(self) -> u64 {
        1_000_000 / self.divisor
    }
    /// Hashes of [`FIELDS`] fields.
    pub fn hashes(self) -> u64 {
        1_000 / self.divisor.min(100)
    }
    /// Members of each of the two sets.
    pub fn set(self) -> u64 {
        100_000 / self.divisor
    }
    /// Elements that the sketch has seen.
    pub fn seen(self) -> u64 {
        1_000_000 / self.divisor
    }
    /// Places.
    pub fn places(self) -> u64 {
        100_000 / self.divisor
    }
}

/// Fields of a hash.
pub const FIELDS: u64 = 100;
/// Bytes of the bitmap.
pub const BITS_BYTES: u64 = 1_000_000;

/// Numbers without an order, each its own (the finaliser of splitmix64, which is a bijection).
pub fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Eight letters that no server can write as a number; different for numbers below 2^40.
pub fn letters(number: u64) -> [u8; 8] {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPabcdefghijklmnop";
    const MASK: u64 = (1 << 40) - 1;
    // Two steps that each can be undone within 40 bits.
    let mut bits = number.wrapping_mul(0x9e_3779_b97f) & MASK;
    bits = (bits ^ (bits >> 20)).wrapping_mul(0xbf_5847_6d1d) & MASK;
    bits ^= bits >> 23;
    std::array::from_fn(|at| LETTERS[(bits >> (5 * at) & 31) as usize])
}

/// A request's words.
pub type Words = Vec<Vec<u8>>;

impl Data {
    /// How many requests fill it.
    fn requests(self, sizes: Sizes) -> u64 {
        match self {
            Self::Zset => sizes.zset().div_ceil(BATCH),
            Self::List => sizes.list().div_ceil(BATCH),
            Self::Hashes => sizes.hashes(),
            Self::Sets => 2 * sizes.set().div_ceil(BATCH),
            Self::Sketch => sizes.seen().div_ceil(BATCH),
            Self::Places => sizes.places().div_ceil(BATCH),
            Self::Bits => 1,
        }
    }

    /// The request number `at`.
    fn request(self, sizes: Sizes, at: u64) -> Words {
        let batch = |total: u64| at * BATCH..((at + 1) * BATCH).min(total);
        let words = |first: &[&str]| first.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut all: Words;
        match self {
            Self::Zset => {
                all = words(&["ZADD", "bench:zset"]);
                for n in batch(sizes.zset()) {
                    all.push((mixed(n) >> 24).to_string().into_bytes());
                    all.push(format!("m{n}").into_bytes());
                }
            }
            Self::List => {
                all = words(&["RPUSH", "bench:list"]);
                all.extend(batch(sizes.list()).map(|n| letters(n).to_vec()));
            }
            Self::Hashes => {
                all = words(&["HSET", &format!("bench:hash:{at}")]);
                let fields = (at * FIELDS..(at + 1) * FIELDS).flat_map(|n| [2 * n, 2 * n + 1]);
                all.extend(fields.map(|n| letters(n).to_vec()));
            }
            Self::Sets => {
                let (half, size) = (at % 2, sizes.set());
                let at = at / 2;
                all = words(&["SADD", if half == 0 { "bench:set:a" } else { "bench:set:b" }]);
                let numbers = at * BATCH..((at + 1) * BATCH).min(size);
                all.extend(numbers.map(|n| letters(n + half * (size / 2)).to_vec()));
            }
            Self::Sketch => {
                all = words(&["PFADD", "bench:hll"]);
                all.extend(batch(sizes.seen()).map(|n| format!("seen:{n}").into_bytes()));
            }
            Self::Places => {
                all = words(&["GEOADD", "bench:geo"]);
                for n in batch(sizes.places()) {
                    let share = |bits: u64| 10.0 * (bits & 0xffff_ffff) as f64 / 4_294_967_296.0;
                    let (lon, lat) = (share(mixed(n)), 45.0 + share(mixed(n) >> 32));
                    all.extend([
                        format!("{lon:.7}").into_bytes(),
                        format!("{lat:.7}").into_bytes(),
                    ]);
                    all.push(letters(n).to_vec());
                }
            }
            Self::Bits => {
                all = words(&["SET", "bench:bits"]);
                all.push((0..BITS_BYTES / 8).flat_map(|n| mixed(n).to_le_bytes()).collect());
            }
        }
        all
    }

    /// The questions that tell whether it is there, and their answers.
    fn there(self, sizes: Sizes) -> Vec<(Words, i64)> {
        let ask = |name: &str, key: String, count: u64| {
            (vec![name.as_bytes().to_vec(), key.into_bytes()], count as i64)
        };
        let plain = |name, key: &str, count| vec![ask(name, key.to_owned(), count)];
        match self {
            Self::Zset => plain("ZCARD", "bench:zset", sizes.zset()),
            Self::List => plain("LLEN", "bench:list", sizes.list()),
            Self::Hashes => {
                let each = |n| ask("HLEN", format!("bench:hash:{n}"), FIELDS);
                (0..sizes.hashes()).map(each).collect()
            }
            Self::Sets => ["bench:set:a", "bench:set:b"]
                .iter()
                .map(|key| ask("SCARD", (*key).to_owned(), sizes.set()))
                .collect(),
            Self::Sketch => plain("EXISTS", "bench:hll", 1),
            Self::Places => plain("ZCARD", "bench:geo", sizes.places()),
            Self::Bits => plain("STRLEN", "bench:bits", BITS_BYTES),
        }
    }

    /// Adds it to a server, unless it is there. True if it was not.
    pub fn load(self, target: &Started, sizes: Sizes) -> Result<bool, String> {
        let mut client = connect(target)?;
        if self.is_there(target, &mut client, sizes)? {
            return Ok(false);
        }
        fill(target, &mut client, self.requests(sizes), |at| self.request(sizes, at))?;
        if self.is_there(target, &mut client, sizes)? {
            return Ok(true);
        }
        Err(format!("{}: {self:?} has not the right number of elements", target.name))
    }

    fn is_there(self, at: &Started, client: &mut Client, sizes: Sizes) -> Result<bool, String> {
        for (words, count) in self.there(sizes) {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if call(at, client, &words)? != Value::Integer(count) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Sends so many requests, some at a time; an error reply ends it.
pub fn fill(
    target: &Started,
    client: &mut Client,
    requests: u64,
    mut request: impl FnMut(u64) -> Words,
) -> Result<(), String> {
    for window in (0..requests).step_by(WINDOW as usize) {
        let words: Vec<Words> =
            (window..(window + WINDOW).min(requests)).map(&mut request).collect();
        let words: Vec<Vec<&[u8]>> =
            words.iter().map(|one| one.iter().map(Vec::as_slice).collect()).collect();
        let replies = client.pipeline(words.iter().map(Vec::as_slice));
        let replies = replies.map_err(|error| format!("{}: {error}", target.name))?;
        if let Some(Value::Error(text)) = replies.iter().find(|reply| reply.is_error()) {
            return Err(format!("{}: {}", target.name, text.escape_ascii()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn letters_are_different_and_never_a_number() {
        let all: HashSet<[u8; 8]> = (0..200_000).map(letters).collect();
        assert_eq!(all.len(), 200_000);
        assert!(all.iter().all(|one| one.iter().all(u8::is_ascii_alphabetic)));
    }

    #[test]
    fn two_sets_share_half_of_their_members() {
        let sizes = Sizes { divisor: 100 };
        let mut sets = [HashSet::new(), HashSet::new()];
        for at in 0..Data::Sets.requests(sizes) {
            let words = Data::Sets.request(sizes, at);
            let set = usize::from(words[1].ends_with(b"b"));
            sets[set].extend(words[2..].iter().cloned());
        }
        assert_eq!(sets.each_ref().map(HashSet::len), [1000, 1000]);
        assert_eq!(sets[0].intersection(&sets[1]).count(), 500);
    }

    #[test]
    fn all_members_come_once() {
        let sizes = Sizes { divisor: 1000 };
        let requests = 0..Data::Zset.requests(sizes);
        let words = requests.flat_map(|at| Data::Zset.request(sizes, at).split_off(2));
        let members: HashSet<Vec<u8>> = words.skip(1).step_by(2).collect();
        assert_eq!(members.len() as u64, sizes.zset());
        assert!(members.contains(&b"m0"[..]) && members.contains(&b"m9999"[..]));
    }
}
