//! The data of the figures, element by element, the same for every server.

use client::{Client, Value};

use super::{call, connect};
use crate::lab::target::Started;

/// Elements that one request adds.
const BATCH: u64 = 100;
/// Requests that are sent together.
const WINDOW: usize = 16;

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

/// How data is made and recognised.
struct Recipe {
    /// The command that adds elements.
    add: &'static str,
    /// The command that tells whether a collection is there, and its answer.
    count: (&'static str, u64),
    /// The collections.
    keys: Vec<String>,
    /// Elements of each.
    elements: u64,
}

impl Data {
    fn recipe(self, sizes: Sizes) -> Recipe {
        let recipe = |add, count, keys: &[&str], elements| Recipe {
            add,
            count: (count, elements),
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
            elements,
        };
        match self {
            Self::Zset => recipe("ZADD", "ZCARD", &["bench:zset"], sizes.zset()),
            Self::List => recipe("RPUSH", "LLEN", &["bench:list"], sizes.list()),
            Self::Hashes => {
                let keys = (0..sizes.hashes()).map(|n| format!("bench:hash:{n}")).collect();
                Recipe { keys, ..recipe("HSET", "HLEN", &[], FIELDS) }
            }
            Self::Sets => recipe("SADD", "SCARD", &["bench:set:a", "bench:set:b"], sizes.set()),
            Self::Sketch => {
                let count = ("EXISTS", 1);
                Recipe { count, ..recipe("PFADD", "", &["bench:hll"], sizes.seen()) }
            }
            Self::Places => recipe("GEOADD", "ZCARD", &["bench:geo"], sizes.places()),
            Self::Bits => {
                let count = ("STRLEN", BITS_BYTES);
                Recipe { count, ..recipe("SET", "", &["bench:bits"], 1) }
            }
        }
    }

    /// The words that stand for element number `n` of collection number `of`.
    fn element(self, sizes: Sizes, of: u64, n: u64) -> Words {
        match self {
            Self::Zset => {
                vec![(mixed(n) >> 24).to_string().into_bytes(), format!("m{n}").into_bytes()]
            }
            Self::List => vec![letters(n).to_vec()],
            Self::Hashes => {
                let field = 2 * (of * FIELDS + n);
                vec![letters(field).to_vec(), letters(field + 1).to_vec()]
            }
            Self::Sets => vec![letters(n + of * (sizes.set() / 2)).to_vec()],
            Self::Sketch => vec![format!("seen:{n}").into_bytes()],
            Self::Places => {
                let share = |bits: u64| 10.0 * (bits & 0xffff_ffff) as f64 / 4_294_967_296.0;
                let (lon, lat) = (share(mixed(n)), 45.0 + share(mixed(n) >> 32));
                let place = [lon, lat].map(|degrees| format!("{degrees:.7}").into_bytes());
                [&place[..], &[letters(n).to_vec()]].concat()
            }
            Self::Bits => {
                vec![(0..BITS_BYTES / 8).flat_map(|n| mixed(n).to_le_bytes()).collect()]
            }
        }
    }

    /// The requests that fill it.
    fn requests(self, sizes: Sizes) -> impl Iterator<Item = Words> {
        let Recipe { add: name, keys, elements, .. } = self.recipe(sizes);
        (0..).zip(keys).flat_map(move |(of, key)| {
            (0..elements).step_by(BATCH as usize).map(move |from| {
                let numbers = from..(from + BATCH).min(elements);
                let head = [name.as_bytes().to_vec(), key.clone().into_bytes()];
                head.into_iter().chain(numbers.flat_map(|n| self.element(sizes, of, n))).collect()
            })
        })
    }

    /// Adds it to a server, unless it is there. True if it was not.
    pub fn load(self, target: &Started, sizes: Sizes) -> Result<bool, String> {
        let mut client = connect(target)?;
        if self.is_there(target, &mut client, sizes)? {
            return Ok(false);
        }
        fill(target, &mut client, self.requests(sizes))?;
        if self.is_there(target, &mut client, sizes)? {
            return Ok(true);
        }
        Err(format!("{}: {self:?} has not the right number of elements", target.name))
    }

    fn is_there(self, at: &Started, client: &mut Client, sizes: Sizes) -> Result<bool, String> {
        let Recipe { count: (name, count), keys, .. } = self.recipe(sizes);
        for key in keys {
            let reply = call(at, client, &[name.as_bytes(), key.as_bytes()])?;
            if reply != Value::Integer(count as i64) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Sends requests, some at a time; an error reply ends it.
pub fn fill(
    target: &Started,
    client: &mut Client,
    mut requests: impl Iterator<Item = Words>,
) -> Result<(), String> {
    loop {
        let words: Vec<Words> = requests.by_ref().take(WINDOW).collect();
        if words.is_empty() {
            return Ok(());
        }
        let words: Vec<Vec<&[u8]>> =
            words.iter().map(|one| one.iter().map(Vec::as_slice).collect()).collect();
        let replies = client.pipeline(words.iter().map(Vec::as_slice));
        let replies = replies.map_err(|error| format!("{}: {error}", target.name))?;
        if let Some(Value::Error(text)) = replies.iter().find(|reply| reply.is_error()) {
            return Err(format!("{}: {}", target.name, text.escape_ascii()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn letters_are_distinct_and_never_a_number() {
        let all: HashSet<[u8; 8]> = (0..200_000).map(letters).collect();
        assert_eq!(all.len(), 200_000);
        assert!(all.iter().all(|one| one.iter().all(u8::is_ascii_alphabetic)));
    }

    #[test]
    fn two_sets_share_half_of_their_members() {
        let sizes = Sizes { divisor: 100 };
        let mut sets = [HashSet::new(), HashSet::new()];
        for words in Data::Sets.requests(sizes) {
            let set = usize::from(words[1].ends_with(b"b"));
            sets[set].extend(words[2..].iter().cloned());
        }
        assert_eq!(sets.each_ref().map(HashSet::len), [1000, 1000]);
        assert_eq!(sets[0].intersection(&sets[1]).count(), 500);
    }

    #[test]
    fn every_member_is_added_once() {
        let sizes = Sizes { divisor: 1000 };
        let words = Data::Zset.requests(sizes).flat_map(|mut words| words.split_off(2));
        let members: HashSet<Vec<u8>> = words.skip(1).step_by(2).collect();
        assert_eq!(members.len() as u64, sizes.zset());
        assert!(members.contains(&b"m0"[..]) && members.contains(&b"m9999"[..]));
    }
}
