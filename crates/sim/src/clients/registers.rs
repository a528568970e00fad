//! Clients which set, read, count and delete numbers that all of them share: as strings, as fields
//! of hashes and as scores, one or several at a time.

use crate::books::registers::{Id, REGISTERS};
use crate::clients::{number, words};
use crate::closings::Closing;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;
use sheafdb_tests::linear::{Did, Op};

/// A client of this family.
pub struct Registers {
    who: u32,
    /// Connections before this one: the operations of one connection take effect in order.
    connections: u64,
}

/// One operation on one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Set it to this number.
    Set(i64),
    /// Read it.
    Get,
    /// Add one.
    Incr,
    /// Remove it.
    Del,
}

/// The operations of one request.
pub type Ask = Vec<(Id, Want)>;

/// What holds the number of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Field,
    Score,
}

fn kind(id: Id) -> Kind {
    [Kind::Text, Kind::Text, Kind::Text, Kind::Field, Kind::Field, Kind::Score][id.register]
}

/// The key of a register.
pub fn key(id: Id) -> String {
    match kind(id) {
        Kind::Text => format!("r:{}:{}", id.register, id.generation),
        // Registers of one hash, so that their operations meet in one key.
        Kind::Field | Kind::Score => format!("r:{:?}", kind(id)),
    }
}

fn field(id: Id) -> String {
    format!("{}:{}", id.register, id.generation)
}

/// The command that reads a register.
pub fn read(id: Id) -> Vec<Vec<u8>> {
    let (key, field) = (key(id), field(id));
    words(&match kind(id) {
        Kind::Text => format!("GET {key}"),
        Kind::Field => format!("HGET {key} {field}"),
        Kind::Score => format!("ZSCORE {key} {field}"),
    })
}

/// What a read of a register has found.
pub fn found(reply: &Value) -> Option<Did> {
    Some(Did::Get(if reply.is_null() { None } else { Some(number(reply)?) }))
}

impl Registers {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self { who, connections: 0 }
    }

    /// The number of its connection.
    fn by(&self) -> u64 {
        u64::from(self.who) << 32 | self.connections
    }

    fn one(world: &mut World) -> Request<Ask> {
        let register = world.prng.below(REGISTERS as u64) as usize;
        let id = world.books.registers.take(register);
        let want = match world.prng.below(10) {
            0..2 => Want::Set(world.books.unique() as i64 * 1000),
            2..5 => Want::Incr,
            5 => Want::Del,
            _ => Want::Get,
        };
        let (key, field) = (key(id), field(id));
        let text = match (kind(id), want) {
            (Kind::Text, Want::Set(n)) => format!("SET {key} {n}"),
            (Kind::Text, Want::Get) => format!("GET {key}"),
            (Kind::Text, Want::Incr) => format!("INCR {key}"),
            (Kind::Text, Want::Del) if world.prng.chance(1, 2) => format!("PEXPIRE {key} 0"),
            (Kind::Text, Want::Del) => format!("UNLINK {key}"),
            (Kind::Field, Want::Set(n)) => format!("HSET {key} {field} {n}"),
            (Kind::Field, Want::Get) => format!("HGET {key} {field}"),
            (Kind::Field, Want::Incr) => format!("HINCRBY {key} {field} 1"),
            (Kind::Field, Want::Del) => format!("HDEL {key} {field}"),
            (Kind::Score, Want::Set(n)) => format!("ZADD {key} {n} {field}"),
            (Kind::Score, Want::Get) => format!("ZSCORE {key} {field}"),
            (Kind::Score, Want::Incr) => format!("ZINCRBY {key} 1 {field}"),
            (Kind::Score, Want::Del) => format!("ZREM {key} {field}"),
        };
        Request::words(&text, vec![(id, want)])
    }

    /// MSET or MGET of the registers that are strings: keys of several slots.
    fn several(world: &mut World) -> Request<Ask> {
        let ids: Vec<Id> = (0..3).map(|n| world.books.registers.take(n)).collect();
        if world.prng.chance(1, 2) {
            let names: Vec<String> = ids.iter().map(|id| key(*id)).collect();
            let ask = ids.iter().map(|id| (*id, Want::Get)).collect();
            return Request::words(&format!("MGET {}", names.join(" ")), ask);
        }
        let (mut args, mut ask) = (words("MSET"), Ask::new());
        for id in ids {
            let value = world.books.unique() as i64 * 1000;
            args.extend([key(id).into_bytes(), value.to_string().into_bytes()]);
            ask.push((id, Want::Set(value)));
        }
        Request::new(args, ask)
    }
}

/// What an operation did, from its reply.
fn done(id: Id, want: Want, reply: &Value) -> Option<Did> {
    Some(match (want, reply) {
        (Want::Set(n), Value::Simple(text)) if text == b"OK" => Did::Set(n),
        (Want::Set(n), Value::Integer(_)) if kind(id) != Kind::Text => Did::Set(n),
        (Want::Get, _) => found(reply)?,
        (Want::Incr, _) => Did::Incr(number(reply)?),
        (Want::Del, Value::Integer(count @ 0..=1)) => Did::Del(*count == 1),
        _ => return None,
    })
}

impl Family for Registers {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        let count = 1 + world.prng.below(world.plan.depth_max);
        (0..count)
            .map(|_| if world.prng.chance(1, 8) { Self::several(world) } else { Self::one(world) })
            .collect()
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        let replies = match reply {
            Value::Array(replies) => replies,
            one => vec![one; ask.len()],
        };
        if replies.len() != ask.len() {
            return world.fail(format!("{ask:?} has {} replies", replies.len()));
        }
        for ((id, want), reply) in ask.into_iter().zip(&replies) {
            match done(id, want, reply) {
                Some(did) => {
                    let op = Op { did, call: span.call, ret: span.ret, by: self.by() };
                    world.books.registers.add(id, op);
                }
                None => world.fail(format!("{want:?} of {} is answered {reply:?}", key(id))),
            }
        }
    }

    fn lost(&mut self, world: &mut World, ask: Ask, call: u64, until: u64) {
        for (id, want) in ask {
            let did = match want {
                Want::Set(n) => Did::LostSet(n),
                Want::Incr => Did::LostIncr,
                Want::Del => Did::LostDel,
                Want::Get => continue,
            };
            let op = Op { did, call, ret: until, by: self.by() };
            world.books.registers.add(id, op);
        }
    }

    fn disconnected(&mut self, _: Closing) {
        self.connections += 1;
    }
}
