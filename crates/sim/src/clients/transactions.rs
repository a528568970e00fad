//! Clients which append to lists, strings and streams and read them, one command at a time and in
//! transactions, with and without WATCH. Every element is unique, so a history can be judged.

use crate::closings::Closing;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;
use sheafdb_tests::serializable::{Element, Key, Op, Outcome, Txn};

/// Keys of a round.
const KEYS: u64 = 5;

/// A client of this family.
#[derive(Debug, Default)]
pub struct Transactions {
    /// What was read under WATCH, until EXEC.
    watched: Option<Watched>,
    /// Reads under WATCH are under way.
    is_watching: bool,
}

#[derive(Debug, Default)]
struct Watched {
    round: u32,
    known: Vec<Op>,
}

/// A command on keys, and its steps.
#[derive(Clone, Debug)]
pub struct Part {
    args: Vec<Vec<u8>>,
    ops: Vec<Op>,
}

/// A request of this family.
#[derive(Clone, Debug)]
pub enum Ask {
    /// MULTI, WATCH, DISCARD: answered OK.
    Ok,
    /// A command inside MULTI.
    Queued,
    /// A command alone.
    Alone(u32, Part),
    /// A read under WATCH; the last of them, or not.
    Watched(u32, Part, bool),
    /// EXEC of these parts, which found these reads still true.
    Exec(u32, Vec<Part>, Vec<Op>),
}

fn name(round: u32, key: Key) -> String {
    format!("t:{key}:{round}")
}

/// Reads of all keys of a round.
pub fn read_all(round: u32) -> Vec<Part> {
    (0..KEYS as usize).map(|key| read(round, key)).collect()
}

fn read(round: u32, key: Key) -> Part {
    let name = name(round, key);
    let text = match key {
        0 | 1 => format!("LRANGE {name} 0 -1"),
        2 | 3 => format!("GET {name}"),
        _ => format!("XRANGE {name} - +"),
    };
    Part { args: crate::clients::words(&text), ops: vec![Op::Read { key, seen: Vec::new() }] }
}

fn append(world: &mut World, round: u32, key: Key) -> Part {
    let name = name(round, key);
    let element = world.books.unique();
    let mut ops = vec![Op::Append { key, element, len: None }];
    let text = match key {
        0 | 1 if world.prng.chance(1, 3) => {
            let second = world.books.unique();
            ops.push(Op::Append { key, element: second, len: None });
            format!("RPUSH {name} {element} {second}")
        }
        0 | 1 => format!("RPUSH {name} {element}"),
        2 | 3 => format!("APPEND {name} {element},"),
        _ => format!("XADD {name} * e {element}"),
    };
    Part { args: crate::clients::words(&text), ops }
}

fn part(world: &mut World, round: u32) -> Part {
    let key = world.prng.below(KEYS) as usize;
    match world.prng.below(10) {
        0 => {
            let names = format!("MGET {} {}", name(round, 2), name(round, 3));
            let ops = [2, 3].map(|key| Op::Read { key, seen: Vec::new() }).to_vec();
            Part { args: crate::clients::words(&names), ops }
        }
        1..5 => append(world, round, key),
        _ => read(round, key),
    }
}

/// The elements in a reply to a read.
fn elements(reply: &Value) -> Option<Vec<Element>> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse().ok();
    match reply {
        Value::Null => Some(Vec::new()),
        Value::Bulk(text) => {
            text.split(|b| *b == b',').filter(|part| !part.is_empty()).map(number).collect()
        }
        Value::Array(items) => items.iter().map(element).collect(),
        _ => None,
    }
}

/// An element of a list, or the one field of an entry of a stream.
fn element(item: &Value) -> Option<Element> {
    match item {
        Value::Array(entry) => match entry.last()? {
            Value::Array(pair) => element(pair.get(1)?),
            _ => None,
        },
        other => other.as_str()?.parse().ok(),
    }
}

impl Part {
    /// The command.
    pub fn args(&self) -> &[Vec<u8>] {
        &self.args
    }

    /// Its steps with what the reply says; `None` if the reply is none for it.
    pub fn done(mut self, reply: &Value) -> Option<Vec<Op>> {
        let appends = self.ops.len();
        for (at, op) in self.ops.iter_mut().enumerate() {
            match (op, &self.args[0][..], reply) {
                (Op::Read { seen, .. }, b"MGET", Value::Array(all)) => {
                    *seen = elements(all.get(at)?)?;
                }
                (Op::Read { seen, .. }, _, _) => *seen = elements(reply)?,
                (Op::Append { len, .. }, b"RPUSH", Value::Integer(all)) => {
                    *len = Some(usize::try_from(*all).ok()? + 1 + at - appends);
                }
                (Op::Append { .. }, b"APPEND", Value::Integer(_))
                | (Op::Append { .. }, b"XADD", Value::Bulk(_)) => {}
                _ => return None,
            }
        }
        Some(self.ops)
    }

    fn appends(self) -> Vec<Op> {
        self.ops.into_iter().filter(|op| matches!(op, Op::Append { .. })).collect()
    }
}

impl Transactions {
    fn exec(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        let Watched { round, known } = self.watched.take().unwrap_or_else(|| Watched {
            round: world.books.transactions.take(),
            known: Vec::new(),
        });
        let count = 1 + world.prng.below(4);
        let parts: Vec<Part> = (0..count).map(|_| part(world, round)).collect();
        let mut all = vec![Request::words("MULTI", Ask::Ok)];
        all.extend(parts.iter().map(|part| Request::new(part.args.clone(), Ask::Queued)));
        if world.prng.chance(1, 12) {
            all.push(Request::words("DISCARD", Ask::Ok));
            let ops = parts.into_iter().flat_map(Part::appends).collect();
            let (call, ret) = (0, u64::MAX);
            let outcome = Outcome::Aborted;
            world.books.transactions.add(round, Txn { outcome, call, ret, ops });
        } else {
            all.push(Request::words("EXEC", Ask::Exec(round, parts, known)));
        }
        all
    }

    fn watch(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        let round = world.books.transactions.take();
        let key = world.prng.below(KEYS) as usize;
        let keys = if world.prng.chance(1, 2) { vec![key] } else { vec![key, (key + 1) % 5] };
        let names: Vec<String> = keys.iter().map(|key| name(round, *key)).collect();
        let mut all = vec![Request::words(&format!("WATCH {}", names.join(" ")), Ask::Ok)];
        for (at, key) in keys.iter().enumerate() {
            let (part, is_last) = (read(round, *key), at + 1 == keys.len());
            all.push(Request::new(part.args.clone(), Ask::Watched(round, part, is_last)));
        }
        self.is_watching = true;
        self.watched = None;
        all
    }

    fn executed(world: &mut World, ask: (u32, Vec<Part>, Vec<Op>), reply: Value, span: Span) {
        let (round, parts, known) = ask;
        let (call, ret) = (span.call, span.ret);
        let txn = match reply {
            Value::Array(replies) if replies.len() == parts.len() => {
                let mut ops = known;
                for (part, reply) in parts.into_iter().zip(&replies) {
                    let args = part.args.clone();
                    let Some(done) = part.done(reply) else {
                        return world.fail(format!("{args:?} in EXEC is answered {reply:?}"));
                    };
                    ops.extend(done);
                }
                Txn { outcome: Outcome::Committed, call, ret, ops }
            }
            reply if reply.is_null() => {
                let ops = parts.into_iter().flat_map(Part::appends).collect();
                Txn { outcome: Outcome::Aborted, call, ret, ops }
            }
            other => return world.fail(format!("EXEC is answered {other:?}")),
        };
        world.books.transactions.add(round, txn);
    }
}

impl Family for Transactions {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.is_watching {
            return Vec::new();
        }
        match world.prng.below(10) {
            _ if self.watched.is_some() => self.exec(world),
            0..3 => {
                let round = world.books.transactions.take();
                let part = part(world, round);
                vec![Request::new(part.args.clone(), Ask::Alone(round, part))]
            }
            3..6 => self.watch(world),
            _ => self.exec(world),
        }
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        match ask {
            Ask::Ok if reply == Value::ok() => {}
            Ask::Queued if reply == Value::simple("QUEUED") => {}
            Ask::Alone(round, part) => {
                let args = part.args.clone();
                let Some(ops) = part.done(&reply) else {
                    return world.fail(format!("{args:?} is answered {reply:?}"));
                };
                let (outcome, call, ret) = (Outcome::Committed, span.call, span.ret);
                world.books.transactions.add(round, Txn { outcome, call, ret, ops });
            }
            Ask::Watched(round, part, is_last) => {
                let args = part.args.clone();
                let Some(ops) = part.done(&reply) else {
                    return world.fail(format!("{args:?} is answered {reply:?}"));
                };
                let watched = self.watched.get_or_insert_default();
                watched.round = round;
                watched.known.extend(ops.iter().cloned());
                let (outcome, call, ret) = (Outcome::Committed, span.call, span.ret);
                world.books.transactions.add(round, Txn { outcome, call, ret, ops });
                self.is_watching &= !is_last;
            }
            Ask::Exec(round, parts, known) => {
                Self::executed(world, (round, parts, known), reply, span);
            }
            Ask::Ok | Ask::Queued => world.fail(format!("{ask:?} is answered {reply:?}")),
        }
    }

    fn lost(&mut self, world: &mut World, ask: Ask, call: u64, until: u64) {
        let (outcome, ret) = (Outcome::Unknown, until);
        let (round, ops) = match ask {
            Ask::Alone(round, part) => (round, part.appends()),
            // What the commands before one that panicked did stands.
            Ask::Exec(round, parts, _) if world.plan.panics => {
                for part in parts {
                    let txn = Txn { outcome, call, ret, ops: part.appends() };
                    world.books.transactions.add(round, txn);
                }
                return;
            }
            Ask::Exec(round, parts, _) => {
                (round, parts.into_iter().flat_map(Part::appends).collect())
            }
            Ask::Ok | Ask::Queued | Ask::Watched(..) => return,
        };
        world.books.transactions.add(round, Txn { outcome, call, ret, ops });
    }

    fn disconnected(&mut self, _: Closing) {
        *self = Self::default();
    }
}
