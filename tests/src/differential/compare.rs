//! Judging two traces: exact where the answer is determined, else what the command promises.

use std::collections::BTreeMap;
use std::fmt;

use super::execute::{Left, Trace};
use super::sequence::Sequence;
use crate::known::Known;
use crate::quote;
use crate::render;
use crate::wire::Value;

/// Two servers are asked one after the other; times may differ by so many milliseconds.
const TIME_SLACK_MS: i64 = 2_500;

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the replies to a command compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    Exact,
    /// The elements in any order.
    Unordered,
    /// An integer of milliseconds, or of seconds if `unit_ms` is 1000; negative ones are exact.
    Time {
        unit_ms: i64,
    },
    /// Only which kind of reply it is, unless it is an error.
    Shape,
}

/// Compares everything; known differences are none.
pub fn compare(
    sequence: &Sequence,
    redis: &Trace,
    ours: &Trace,
    known: &[Known],
) -> Result<(), Difference> {
    let mut queues: BTreeMap<u8, Vec<&[Vec<u8>]>> = BTreeMap::new();
    for (at, step) in sequence.steps.iter().enumerate() {
        let (Some(left), Some(right)) = (redis.replies.get(at), ours.replies.get(at)) else {
            break;
        };
        let queue = queues.entry(step.conn).or_default();
        let pairs = match (left, right) {
            (Value::Array(a), Value::Array(b)) if is(&step.args, "exec") && a.len() == b.len() => {
                // One reply for each command that was queued.
                queue.iter().copied().zip(a.iter().zip(b)).collect()
            }
            _ => vec![(step.args.as_slice(), (left, right))],
        };
        for (args, (a, b)) in pairs {
            let listed = || {
                let (a, b) = (render::line(a), render::line(b));
                known.iter().any(|one| one.explains(args, &a, &b))
            };
            if !same(judge(args), a, b) && !listed() {
                return Err(Difference(format!(
                    "command {} of {}: {}\n  redis: {}\n  ours:  {}",
                    at + 1,
                    sequence.steps.len(),
                    short(&quote::line(args)),
                    short(&render::line(a)),
                    short(&render::line(b))
                )));
            }
        }
        match left {
            Value::Simple(text) if text == b"QUEUED" => queue.push(&step.args),
            _ if ["exec", "discard", "reset"].iter().any(|name| is(&step.args, name)) => {
                queue.clear();
            }
            _ => {}
        }
    }
    if redis.broken != ours.broken {
        return Err(Difference(format!(
            "after {} and {} replies\n  redis: {:?}\n  ours:  {:?}",
            redis.replies.len(),
            ours.replies.len(),
            redis.broken,
            ours.broken
        )));
    }
    compare_state(redis, ours)
}

fn compare_state(redis: &Trace, ours: &Trace) -> Result<(), Difference> {
    let keys = redis.state.keys().chain(ours.state.keys());
    for key in keys {
        let (left, right) = (redis.state.get(key), ours.state.get(key));
        let equal = match (left, right) {
            (Some(a), Some(b)) => {
                (&a.kind, &a.value, &a.encoding) == (&b.kind, &b.value, &b.encoding)
                    && same(Judge::Time { unit_ms: 1 }, &a.ttl, &b.ttl)
            }
            _ => false,
        };
        if !equal {
            let tell = |left: Option<&Left>| {
                left.map_or("not there".into(), |left| {
                    let parts = [&left.kind, &left.value, &left.encoding, &left.ttl];
                    parts.map(|part| short(&render::line(part))).join(" ")
                })
            };
            return Err(Difference(format!(
                "final state of {} in database {}\n  redis: {}\n  ours:  {}",
                quote::quoted(&key.1),
                key.0,
                tell(left),
                tell(right)
            )));
        }
    }
    Ok(())
}

fn is(args: &[Vec<u8>], name: &str) -> bool {
    args.first().is_some_and(|first| first.eq_ignore_ascii_case(name.as_bytes()))
}

fn judge(args: &[Vec<u8>]) -> Judge {
    let name = args.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    match name.as_slice() {
        b"keys" => Judge::Unordered,
        // A scan of everything in one step has everything; others stop where the table says.
        b"scan" if whole_scan(args) => Judge::Unordered,
        b"scan" | b"randomkey" => Judge::Shape,
        b"ttl" | b"expiretime" => Judge::Time { unit_ms: 1000 },
        b"pttl" | b"pexpiretime" => Judge::Time { unit_ms: 1 },
        _ => Judge::Exact,
    }
}

fn whole_scan(args: &[Vec<u8>]) -> bool {
    args.len() >= 4
        && args[1] == b"0"
        && args[2].eq_ignore_ascii_case(b"count")
        && args[3] == b"100000"
}

fn same(judge: Judge, a: &Value, b: &Value) -> bool {
    match (judge, a, b) {
        (Judge::Time { unit_ms }, Value::Int(a), Value::Int(b)) if *a >= 0 && *b >= 0 => {
            a.abs_diff(*b) <= (TIME_SLACK_MS / unit_ms) as u64
        }
        (Judge::Unordered, a, b) => sorted(a) == sorted(b),
        (Judge::Shape, Value::Bulk(_), Value::Bulk(_)) => true,
        (Judge::Shape, Value::Array(a), Value::Array(b)) => a.len() == b.len(),
        _ => a == b,
    }
}

/// The reply with every list in it ordered.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(render::line);
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// Long values need not be read in full.
fn short(text: &str) -> String {
    const LONG: usize = 300;
    if text.len() <= LONG {
        return text.into();
    }
    format!("{}... ({} characters)", text.chars().take(LONG).collect::<String>(), text.len())
}

#[cfg(test)]
mod tests {
    use super::super::sequence::{Delivery, Step};
    use super::*;

    fn one(command: &str, redis: Value, ours: Value) -> Result<(), Difference> {
        let args = quote::split(command).expect("a good line");
        let steps = vec![Step { conn: 1, args, settle: false }];
        let sequence = Sequence { proto: 2, delivery: Delivery::OneByOne, steps };
        let trace = |reply| Trace { replies: vec![reply], ..Trace::default() };
        compare(&sequence, &trace(redis), &trace(ours), &[])
    }

    #[test]
    fn replies_are_exact_unless_they_cannot_be() {
        assert!(one("GET k", Value::Int(1), Value::Int(2)).is_err());
        assert!(one("GET k", Value::Null, Value::NullBulk).is_err());
        assert!(one("PTTL k", Value::Int(5000), Value::Int(4990)).is_ok());
        assert!(one("PTTL k", Value::Int(5000), Value::Int(1)).is_err());
        assert!(one("PTTL k", Value::Int(-1), Value::Int(-2)).is_err());
        assert!(one("TTL k", Value::Int(100), Value::Int(104)).is_err());
        let list = |items: &[i64]| Value::Array(items.iter().map(|n| Value::Int(*n)).collect());
        assert!(one("KEYS *", list(&[1, 2]), list(&[2, 1])).is_ok());
        assert!(one("KEYS *", list(&[1, 2]), list(&[1, 1])).is_err());
        assert!(one("MGET *", list(&[1, 2]), list(&[2, 1])).is_err());
    }

    #[test]
    fn what_is_left_must_agree() {
        let sequence = Sequence { proto: 2, delivery: Delivery::OneByOne, steps: Vec::new() };
        let with = |value: i64, ttl: i64| {
            let text = Value::Simple(b"string".to_vec());
            let left = Left {
                kind: text.clone(),
                value: Value::Int(value),
                encoding: text,
                ttl: Value::Int(ttl),
            };
            let state = BTreeMap::from([((0, b"k".to_vec()), left)]);
            Trace { state, ..Trace::default() }
        };
        let check = |a: &Trace, b: &Trace| compare(&sequence, a, b, &[]);
        assert!(check(&with(1, -1), &with(1, -1)).is_ok());
        assert!(check(&with(1, -1), &with(2, -1)).is_err());
        assert!(check(&with(1, -1), &with(1, 5)).is_err());
        assert!(check(&with(1, -1), &Trace::default()).is_err());
        assert!(check(&Trace::default(), &with(1, -1)).is_err());
    }
}
