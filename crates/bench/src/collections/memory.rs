//! Bytes per element of collections of 8-byte members, and per entry of streams.
//!
//! For each kind and size a fresh server is filled: with one collection of a million elements, or
//! with many small ones, so that what a process takes for itself does not count and the key and its
//! entry do. Two figures: what the kernel holds for the process (resident), and what the server
//! says itself (`used_memory`).

use std::thread;
use std::time::{Duration, Instant};

use client::Client;

use super::data::{Words, fill, letters, mixed};
use super::{call, connect};
use crate::lab::io::{self, Memory};
use crate::lab::target::{Started, Target};

/// Kinds of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// 8-byte elements.
    List,
    /// 8-byte fields with 8-byte values.
    Hash,
    /// 8-byte members.
    Set,
    /// 8-byte members with scores of 40 bits.
    Zset,
    /// Entries of three fields, with ids that the server gives.
    Stream,
}

/// All of them.
pub const KINDS: [Kind; 5] = [Kind::List, Kind::Hash, Kind::Set, Kind::Zset, Kind::Stream];

impl Kind {
    /// Elements that one request adds at most.
    fn batch(self) -> u64 {
        if self == Self::Stream { 1 } else { 100 }
    }

    /// The commands that add and count elements.
    fn commands(self) -> (&'static str, &'static str) {
        match self {
            Self::List => ("RPUSH", "LLEN"),
            Self::Hash => ("HSET", "HLEN"),
            Self::Set => ("SADD", "SCARD"),
            Self::Zset => ("ZADD", "ZCARD"),
            Self::Stream => ("XADD", "XLEN"),
        }
    }
}

/// The fields of a stream's entries.
const STREAM_FIELDS: [&str; 3] = ["sensor", "temperature", "humidity"];
/// Longest wait for a server that gives memory back after it was filled.
const SETTLE: Duration = Duration::from_secs(2);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// What was measured of one kind and size at one target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// Resident bytes per element.
    pub resident: f64,
    /// Bytes per element by the server's own account; 0 if it has none.
    pub used: f64,
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The kind.
    pub kind: Kind,
    /// Elements of a collection.
    pub size: u64,
    /// How many collections.
    pub count: u64,
    /// Of each target.
    pub bytes: Vec<Bytes>,
}

/// Fills a fresh server of each target with each kind. `sizes` are elements per collection, and how
/// many collections; the values of a stream's entries are of `value_bytes`.
pub fn run(
    targets: &[Target],
    kinds: &[Kind],
    sizes: &[(u64, u64)],
    value_bytes: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for &kind in kinds {
        for &(size, count) in sizes {
            progress(&format!("{count} x {kind:?} of {size}"));
            let bytes = targets.iter().map(|target| one(target, kind, (size, count), value_bytes));
            rows.push(Row { kind, size, count, bytes: bytes.collect::<Result<_, String>>()? });
        }
    }
    Ok(rows)
}

fn one(
    target: &Target,
    kind: Kind,
    (size, count): (u64, u64),
    value_bytes: usize,
) -> Result<Bytes, String> {
    if !target.is_started_here() {
        return Err(format!("{}: memory is measured of a server of its own", target.name()));
    }
    let started = target.start().map_err(|error| error.to_string())?;
    let mut client = connect(&started)?;
    let before = account(&started)?;
    let batches = size.div_ceil(kind.batch());
    let request = |at| request(kind, size, at / batches, at % batches, value_bytes);
    fill(&started, &mut client, (0..count * batches).map(request))?;
    check(&started, &mut client, kind, size, count)?;
    let after = settled(&started)?;
    let elements = (size * count) as f64;
    let per = |after: u64, before: u64| after.saturating_sub(before) as f64 / elements;
    Ok(Bytes { resident: per(after.0, before.0), used: per(after.1, before.1) })
}

/// The batch number `batch` of collection number `at`.
fn request(kind: Kind, size: u64, at: u64, batch: u64, value_bytes: usize) -> Words {
    let (name, _) = kind.commands();
    let mut words = vec![name.as_bytes().to_vec(), key(at)];
    for n in at * size + batch * kind.batch()..at * size + ((batch + 1) * kind.batch()).min(size) {
        match kind {
            Kind::List | Kind::Set => words.push(letters(n).to_vec()),
            Kind::Hash => words.extend([letters(n).to_vec(), letters(n + (1 << 39)).to_vec()]),
            Kind::Zset => {
                words.extend([(mixed(n) >> 24).to_string().into_bytes(), letters(n).to_vec()]);
            }
            Kind::Stream => {
                words.push(b"*".to_vec());
                for (field, nth) in STREAM_FIELDS.iter().zip(0..) {
                    let value = letters(n + (nth << 38)).repeat(value_bytes.div_ceil(8));
                    words.extend([field.as_bytes().to_vec(), value[..value_bytes].to_vec()]);
                }
            }
        }
    }
    words
}

fn key(at: u64) -> Vec<u8> {
    format!("key:{at:06}").into_bytes()
}

/// Sees that the first and the last collection have their elements.
fn check(
    started: &Started,
    client: &mut Client,
    kind: Kind,
    size: u64,
    count: u64,
) -> Result<(), String> {
    let (_, name) = kind.commands();
    for at in [0, count - 1] {
        let reply = call(started, client, &[name.as_bytes(), &key(at)])?;
        if reply != client::Value::Integer(size as i64) {
            return Err(format!("{}: {kind:?} has {reply:?} elements, not {size}", started.name));
        }
    }
    Ok(())
}

/// Resident bytes and the server's own account.
fn account(started: &Started) -> Result<(u64, u64), String> {
    let Memory { used, resident } = io::memory(&started.address(), started.pid);
    let unseen = || format!("{}: its memory cannot be seen from here", started.name);
    Ok((resident.ok_or_else(unseen)?, used.unwrap_or(0)))
}

/// The account when it has stopped falling.
fn settled(started: &Started) -> Result<(u64, u64), String> {
    let begun = Instant::now();
    let mut last = account(started)?;
    loop {
        thread::sleep(LOOK);
        let now = account(started)?;
        if now.0 >= last.0 || begun.elapsed() > SETTLE {
            return Ok(now);
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_a_collection_cover_its_elements() {
        let all = |kind: Kind, size: u64, step: usize| -> usize {
            let batches = 0..size.div_ceil(kind.batch());
            batches.map(|batch| request(kind, size, 3, batch, 8).len() - 2).sum::<usize>() / step
        };
        assert_eq!(all(Kind::List, 250, 1), 250);
        assert_eq!(all(Kind::Hash, 10, 2), 10);
        assert_eq!(all(Kind::Zset, 101, 2), 101);
        assert_eq!(all(Kind::Stream, 5, 7), 5);
        assert_eq!(request(Kind::Stream, 5, 3, 4, 10)[4].len(), 10);
        assert_eq!(request(Kind::Set, 10, 3, 0, 8)[1], b"key:000003");
        assert_ne!(request(Kind::Set, 10, 3, 0, 8)[2], request(Kind::Set, 10, 4, 0, 8)[2]);
    }
}
