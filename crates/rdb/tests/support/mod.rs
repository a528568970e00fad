//! Shared by the tests of whole values: random values of every kind and shape.
#![allow(dead_code)] // each test file uses a part of it

#[path = "../../../base/tests/support/live.rs"]
pub mod live;

pub mod files;

use base::UnixMs;
use base::prng::Prng;
use rdb::{Field, Owned};

/// A random string: short, long, repetitive, a number, empty.
pub fn text(prng: &mut Prng, longest: u64) -> Vec<u8> {
    let len = match prng.below(12) {
        0 => prng.below(longest + 1),
        1 => prng.below(200),
        _ => prng.below(20),
    }
    .min(longest) as usize;
    let mut bytes = vec![0; len];
    match prng.below(5) {
        0 => prng.fill(&mut bytes),
        1 => bytes.fill(prng.draw() as u8),
        2 => bytes.iter_mut().for_each(|byte| *byte = b'a' + prng.below(3) as u8),
        3 => return integer(prng).to_string().into_bytes(),
        _ => bytes.iter_mut().for_each(|byte| *byte = b'0' + prng.below(75) as u8),
    }
    bytes
}

/// An integer of any width, often at a limit.
pub fn integer(prng: &mut Prng) -> i64 {
    if prng.chance(1, 3) {
        let edge = 1i64.wrapping_shl(prng.below(64) as u32);
        return edge.wrapping_add(prng.below(3) as i64 - 1);
    }
    (prng.draw() as i64) >> prng.below(64)
}

/// A score, possibly infinite.
pub fn score(prng: &mut Prng) -> f64 {
    match prng.below(6) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => (prng.below(2000) as i64 - 1000) as f64,
        3 => (prng.below(2000) as f64 - 1000.0) / 7.0,
        4 => f64::from_bits(prng.draw() & !(1 << 62)), // below 2, and finite
        _ => integer(prng) as f64,
    }
}

/// How many elements a random collection has: few, some, many.
fn count(prng: &mut Prng) -> usize {
    1 + match prng.below(10) {
        0 => prng.below(900),
        1..4 => prng.below(160),
        _ => prng.below(10),
    } as usize
}

/// Distinct elements in a random order.
fn distinct(prng: &mut Prng, longest: u64) -> Vec<Vec<u8>> {
    let mut seen = std::collections::HashSet::new();
    (0..count(prng)).map(|_| text(prng, longest)).filter(|one| seen.insert(one.clone())).collect()
}

/// A random value. Its fields expire only if requested.
pub fn value(prng: &mut Prng, expiry: bool) -> Owned {
    let longest = if prng.chance(1, 6) { 20_000 } else { 70 };
    match prng.below(6) {
        0 => Owned::String(text(prng, 100_000)),
        1 => Owned::List((0..count(prng)).map(|_| text(prng, longest)).collect()),
        2 => Owned::Set(distinct(prng, longest)),
        3 => {
            let by = prng.below(64);
            let all: std::collections::BTreeSet<i64> =
                (0..count(prng)).map(|_| integer(prng) >> by).collect();
            Owned::Set(all.iter().map(|n| n.to_string().into_bytes()).collect())
        }
        4 => {
            let members = distinct(prng, longest);
            Owned::Zset(members.into_iter().map(|member| (member, score(prng))).collect())
        }
        _ => {
            let names = distinct(prng, longest);
            let field = |name| {
                let expires = (expiry && prng.chance(1, 3))
                    .then(|| UnixMs(1 + prng.below(rdb::EXPIRE_MAX as u64) as i64));
                Field { name, value: text(prng, longest), expires }
            };
            Owned::Hash(names.into_iter().map(field).collect())
        }
    }
}

/// The value with its unordered parts sorted.
pub fn sorted(mut value: Owned) -> Owned {
    value.sort();
    value
}

/// A stream of many nodes, with groups.
#[allow(dead_code)] // not every test has streams
pub fn stream() -> value::Stream {
    use value::StreamId;
    use value::stream::{Group, Pending};
    let mut stream = value::Stream::new();
    let limits = value::stream::Limits { bytes: 4096, entries: 100 };
    let mut log = value::Records::default();
    for at in 1..=20_000 {
        let text = format!("{at}");
        stream.add(
            StreamId::new(at, 1),
            [(&b"n"[..], text.as_bytes())].into_iter(),
            6,
            limits,
            &mut log,
        );
    }
    for name in [&b"g"[..], b"h"] {
        let mut group = Group::new(StreamId::new(15_000, 1), None);
        let consumer = group.add_consumer(b"c", 17, 17);
        for at in 1..=15_000 {
            group.put(Pending { id: StreamId::new(at, 1), at_ms: 3, count: 2, consumer });
        }
        assert!(stream.add_group(name, group), "it is new");
    }
    stream
}
