//! Clients which transfer numbers between keys of several types, in transactions: the sum over all
//! keys of a database stays zero. So it is in every snapshot, whatever else happens: databases are
//! flushed and swapped, keys are renamed.

use crate::clients::number;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;

/// The databases with such keys: all of them below this number but database 0.
pub const DATABASES: u64 = 4;
/// Keys of each type.
const KEYS: u64 = 3;
/// Fields and members of a key.
const PARTS: u64 = 6;

/// A client of this family.
pub struct Ledger;

/// Adds a number to something.
fn add(world: &mut World, n: i64) -> String {
    let p = &mut world.prng;
    let (key, part) = (p.below(KEYS), p.below(PARTS));
    match p.below(5) {
        0 => format!("INCRBY l:s{key} {n}"),
        1 => format!("HINCRBY l:h{key} f{part} {n}"),
        2 => format!("ZINCRBY l:z{key} {n} m{part}"),
        3 => format!("{} l:l{key} {n}", if p.chance(1, 2) { "RPUSH" } else { "LPUSH" }),
        _ => format!("XADD l:x{key} * n {n}"),
    }
}

/// Moves a key, or changes when it expires: nothing changes its number.
fn touch(world: &mut World) -> String {
    let p = &mut world.prng;
    let key = format!("l:{}{}", ["s", "h", "z", "l", "x"][p.below(5) as usize], p.below(KEYS));
    match p.below(3) {
        // Somebody may add to the old name again, and nobody to the new one.
        0 => format!("RENAMENX {key} {key}:{}", p.below(3)),
        1 => format!("PEXPIRE {key} 3600000"),
        _ => format!("PERSIST {key}"),
    }
}

impl Family for Ledger {
    /// A word of the reply: OK, QUEUED, or `None` for the replies of EXEC.
    type Ask = Option<&'static str>;

    fn next(&mut self, world: &mut World) -> Vec<Request<Self::Ask>> {
        let (n, db) = (1 + world.prng.below(9) as i64, 1 + world.prng.below(DATABASES - 1));
        let mut parts = vec![add(world, n), add(world, -n)];
        if world.prng.chance(1, 3) {
            let at = world.prng.below(3) as usize;
            parts.insert(at, touch(world));
        }
        let mut all = vec![
            Request::words(&format!("SELECT {db}"), Some("OK")),
            Request::words("MULTI", Some("OK")),
        ];
        all.extend(parts.iter().map(|part| Request::words(part, Some("QUEUED"))));
        all.push(Request::words("EXEC", None));
        all
    }

    fn answered(&mut self, world: &mut World, ask: Self::Ask, reply: Value, _: Span) {
        // RENAMENX has nothing to rename now and then.
        let is_fine = |r: &Value| !r.is_error() || r.as_str() == Some("ERR no such key");
        let is_right = match (ask, &reply) {
            (Some(word), reply) => *reply == Value::simple(word),
            (None, Value::Array(replies)) => replies.iter().all(is_fine),
            (None, _) => false,
        };
        if !is_right {
            world.fail(format!("a transfer: {ask:?} is answered {reply:?}"));
        }
    }

    fn lost(&mut self, _: &mut World, _: Self::Ask, _: u64, _: u64) {}
}

/// The command that reads a key of this family.
pub fn read(key: &str) -> String {
    match key.as_bytes().get(2) {
        Some(b's') => format!("GET {key}"),
        Some(b'h') => format!("HVALS {key}"),
        Some(b'z') => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        Some(b'l') => format!("LRANGE {key} 0 -1"),
        _ => format!("XRANGE {key} - +"),
    }
}

/// The sum of the numbers in the reply to [`read`]. Names of fields, members and IDs are no
/// numbers.
pub fn sum(reply: &Value) -> i64 {
    match reply {
        Value::Array(all) => all.iter().map(sum).sum(),
        one => number(one).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_a_reply_are_added() {
        let bulks = |all: &[&str]| Value::Array(all.iter().map(Value::bulk).collect());
        assert_eq!(sum(&Value::bulk("-7")), -7);
        assert_eq!(sum(&bulks(&["m1", "5", "m2", "-2"])), 3);
        let entry = Value::Array(vec![Value::bulk("170-1"), bulks(&["n", "-4"])]);
        assert_eq!(sum(&Value::Array(vec![entry])), -4);
    }
}
