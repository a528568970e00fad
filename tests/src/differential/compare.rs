//! Compares two traces: every reply, then every remaining key.

use std::collections::BTreeMap;
use std::fmt;

use super::events;
use super::execute::Trace;
use super::family::{is, mode};
use super::judge::{Pair, same_number};
use super::sequence::{Delivery, Sequence};
use super::told;
use crate::known::Known;
use crate::quote;
use crate::render;
use crate::wire::Value;

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Compares everything, except for known differences.
pub fn compare(
    sequence: &Sequence,
    redis: &Trace,
    ours: &Trace,
    known: &[Known],
) -> Result<(), Difference> {
    let mut queues: BTreeMap<u8, Vec<&[Vec<u8>]>> = BTreeMap::new();
    let mut before: BTreeMap<u8, Pair<'_>> = BTreeMap::new();
    for (at, step) in sequence.steps.iter().enumerate() {
        let (Some(left), Some(right)) = (redis.replies.get(at), ours.replies.get(at)) else {
            break;
        };
        if sequence.delivery == Delivery::Gathered {
            let moves = |one: &Known| one.is_about_order() && one.is_about(&step.args);
            let pair = Pair { args: &step.args, redis: left, ours: right };
            if !told::agree(step, left, right, known.iter().any(moves))
                && !known.iter().any(|one| explains(one, pair))
            {
                return Err(differs(at, sequence, pair));
            }
            continue;
        }
        let queue = queues.entry(step.conn).or_default();
        for pair in pairs(&step.args, queue, left, right) {
            let previous = before.insert(step.conn, pair);
            if known.iter().any(|one| one.parts && explains(one, pair)) {
                return Ok(());
            }
            if !agrees(pair, previous, known) {
                return Err(differs(at, sequence, pair));
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
    if let Some(difference) = events::difference(redis, ours) {
        return Err(Difference(difference));
    }
    compare_state(redis, ours, known)
}

fn differs(at: usize, sequence: &Sequence, pair: Pair<'_>) -> Difference {
    Difference(format!(
        "command {} of {}: {}\n  redis: {}\n  ours:  {}",
        at + 1,
        sequence.steps.len(),
        short(&quote::line(pair.args)),
        short(&render::line(pair.redis)),
        short(&render::line(pair.ours))
    ))
}

/// A step and its replies; EXEC gives one reply for each command that was queued.
fn pairs<'a>(
    args: &'a [Vec<u8>],
    queue: &[&'a [Vec<u8>]],
    redis: &'a Value,
    ours: &'a Value,
) -> Vec<Pair<'a>> {
    match (redis, ours) {
        (Value::Array(a), Value::Array(b)) if is(args, "exec") && a.len() == b.len() => {
            let replies = a.iter().zip(b);
            let queued = queue.iter().zip(replies);
            queued.map(|(args, (redis, ours))| Pair { args, redis, ours }).collect()
        }
        _ => vec![Pair { args, redis, ours }],
    }
}

fn agrees(pair: Pair<'_>, before: Option<Pair<'_>>, known: &[Known]) -> bool {
    let mode = mode(pair.args);
    pair.agrees(mode, before, Value::eq)
        || known.iter().any(|one| {
            if one.is_about_digits() {
                return one.is_about(pair.args) && pair.agrees(mode, before, same_number);
            }
            explains(one, pair)
        })
}

fn explains(known: &Known, pair: Pair<'_>) -> bool {
    known.is_about(pair.args)
        && known.explains(pair.args, &render::line(pair.redis), &render::line(pair.ours))
}

fn compare_state(redis: &Trace, ours: &Trace, known: &[Known]) -> Result<(), Difference> {
    let empty = Vec::new();
    for key in redis.state.keys().chain(ours.state.keys()) {
        let left = redis.state.get(key).unwrap_or(&empty);
        let right = ours.state.get(key).unwrap_or(&empty);
        let asked = left.iter().zip(right);
        let equal = left.len() == right.len()
            && asked
                .clone()
                .all(|((args, redis), (_, ours))| agrees(Pair { args, redis, ours }, None, known));
        if !equal {
            let tell = |facts: &[(Vec<Vec<u8>>, Value)]| {
                if facts.is_empty() {
                    return "not there".into();
                }
                facts
                    .iter()
                    .map(|(_, fact)| short(&render::line(fact)))
                    .collect::<Vec<_>>()
                    .join(" ")
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

/// Shortens long values for messages.
fn short(text: &str) -> String {
    const LONG: usize = 300;
    if text.len() <= LONG {
        return text.into();
    }
    format!("{}... ({} characters)", text.chars().take(LONG).collect::<String>(), text.len())
}

#[cfg(test)]
mod tests {
    use super::super::sequence::Delivery;
    use super::*;

    #[test]
    fn the_final_state_is_compared() {
        let sequence = Sequence { proto: 2, delivery: Delivery::OneByOne, steps: Vec::new() };
        let with = |value: i64, ttl: i64| {
            let fact = |line: &str, n: i64| (quote::split(line).expect("good"), Value::Int(n));
            let facts = vec![fact("GET k", value), fact("PTTL k", ttl)];
            let state = BTreeMap::from([((0, b"k".to_vec()), facts)]);
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
