//! Clients which administer: they pause and kill others, change settings, arm panics, and read the
//! texts about the server. A change that is acknowledged holds for everybody.

use crate::clients::registers;
use crate::closings::Closing;
use crate::machine::{Machine, SAVED_SETTING};
use crate::plan::MS;
use crate::session::{Family, Request, Span};
use crate::trace::WORLD;
use crate::world::World;
use client::Value;
use driver::sim::DiskFaults;
use std::collections::VecDeque;

/// A client of this family.
#[derive(Default)]
pub struct Admin {
    /// What was read first under a pause.
    before: VecDeque<Value>,
    /// Batches of requests: each is sent when the one before it is answered.
    script: VecDeque<Vec<Request<Ask>>>,
    is_asking: bool,
    /// A pause was acknowledged just now: what a worker still writes shows between two reads, of
    /// which the first comes at once.
    is_urgent: bool,
}

/// A request of this family.
#[derive(Clone, Debug)]
pub enum Ask {
    /// Any reply but an error.
    Any,
    /// CLIENT PAUSE WRITE for so many nanoseconds.
    Pause(u64),
    /// A read while nobody may write: for the first time, or again, with the same reply.
    Frozen(bool),
    /// As `Frozen`; only the line of INFO that counts the changes of all keys must be the same.
    FrozenCount(bool),
    /// CLIENT KILL of this address.
    Kill(String),
    /// CONFIG REWRITE after this value of the saved setting.
    Rewrite(u64),
    /// Answered when another command of this client is.
    Last,
}

/// Commands that are made to panic at one of their changes.
const PANICS: &[&str] = &[
    "set",
    "incr",
    "rpush",
    "hset",
    "zadd",
    "sadd",
    "blpop",
    "lpop",
    "append",
    "exec",
    "sweep",
    "xadd",
    "xreadgroup",
    "blmove",
];
/// The same, where a client has strings of megabytes.
const PANICS_BIG: &[&str] = &["append", "setrange", "copy", "restore", "bitfield", "bitfield"];

/// Texts about the server.
const TEXTS: &[&str] =
    &["INFO everything", "CLIENT LIST", "MEMORY STATS", "DBSIZE", "LATENCY LATEST"];

impl Admin {
    /// Reads twice after the pause was acknowledged, with some time between.
    fn pause(world: &mut World) -> Vec<Vec<Request<Ask>>> {
        let long = if world.prng.chance(1, 4) { 1_000 } else { 60 };
        let ms = 10 + world.prng.below(long);
        // Others write while the pause begins.
        world.rush_ns = world.now();
        let slow = world.plan.faults.delay_ns_max;
        world.disturb(ms * MS + 10 * slow);
        world.count("pauses", WORLD, format_args!("CLIENT PAUSE {ms}"));
        let names: Vec<String> =
            (0..3).map(|n| registers::key(world.books.registers.current(n))).collect();
        let counts = world.plan.saves.is_none();
        let reads = |again| {
            let mut all =
                vec![Request::words(&format!("MGET {}", names.join(" ")), Ask::Frozen(again))];
            // A save resets the number of changes.
            if counts {
                all.push(Request::words("INFO persistence", Ask::FrozenCount(again)));
            }
            all
        };
        let (first, mut second) = (reads(false), reads(true));
        second.push(Request::words("CLIENT UNPAUSE", Ask::Any));
        let pause = Request::words(&format!("CLIENT PAUSE {ms} WRITE"), Ask::Pause(ms * MS));
        vec![vec![pause], first, second]
    }

    /// A read under a pause was answered.
    fn frozen(&mut self, world: &mut World, again: bool, reply: Value, ret_ns: u64) {
        if !again {
            return self.before.push_back(reply);
        }
        let before = self.before.pop_front();
        if ret_ns < world.pause_until_ns && before.as_ref() != Some(&reply) {
            world.fail(format!(
                "a write took effect under CLIENT PAUSE: {before:?} became {reply:?}"
            ));
        }
    }

    fn kill(world: &mut World) -> Option<Request<Ask>> {
        let all: Vec<_> = world.connected.values().cloned().collect();
        let (addr, id) = all.get(world.prng.below(all.len().max(1) as u64) as usize)?;
        if let Some(id) = id
            && world.prng.chance(1, 2)
        {
            world.count("unblocks", WORLD, format_args!("CLIENT UNBLOCK {id}"));
            let how = if world.prng.chance(1, 2) { "ERROR" } else { "TIMEOUT" };
            return Some(Request::words(&format!("CLIENT UNBLOCK {id} {how}"), Ask::Any));
        }
        world.closings.kill(addr.to_string());
        // So the victim may have a request under way.
        world.rush_ns = world.now();
        world.count("kills of clients", WORLD, format_args!("CLIENT KILL {addr}"));
        let text = format!("CLIENT KILL ADDR {addr} SKIPME yes");
        Some(Request::words(&text, Ask::Kill(addr.to_string())))
    }

    fn draw(world: &mut World) -> Vec<Vec<Request<Ask>>> {
        let any = |text: &str| vec![vec![Request::words(text, Ask::Any)]];
        match world.prng.below(10) {
            0 | 1 if world.plan.pauses => Self::pause(world),
            2 | 3 if world.plan.kills => vec![Self::kill(world).into_iter().collect()],
            4 if world.plan.panics => vec![vec![Self::panic(world)]],
            9 if world.plan.panics && world.plan.counts.bigs > 0 => vec![vec![Self::panic(world)]],
            7 | 8 => Self::rewrite(world),
            5 => {
                let entries = world.prng.below(20);
                let names = ["hash-max-listpack-entries", "zset-max-listpack-entries"];
                let name = names[world.prng.below(2) as usize];
                any(&format!("CONFIG SET {name} {entries}"))
            }
            6 => {
                let ms = world.prng.below(20);
                world.disturb((ms + 10) * MS);
                world.count("DEBUG SLEEP", WORLD, format_args!("{ms} ms"));
                let sleep = format!("DEBUG SLEEP 0.{ms:03}");
                vec![vec![Request { wait_ns: ms * MS, ..Request::words(&sleep, Ask::Any) }]]
            }
            _ => any(TEXTS[world.prng.below(TEXTS.len() as u64) as usize]),
        }
    }

    /// Saves a new value of a setting.
    fn rewrite(world: &mut World) -> Vec<Vec<Request<Ask>>> {
        let value = world.machine.next_value();
        world.count("CONFIG REWRITE", WORLD, format_args!("{SAVED_SETTING} {value}"));
        let set = Request::words(&format!("CONFIG SET {SAVED_SETTING} {value}"), Ask::Any);
        let rewrite = Request::words("CONFIG REWRITE", Ask::Rewrite(value));
        let wait_ns = Machine::rewrite_ns_max(&world.plan.disk);
        vec![vec![set], vec![Request { wait_ns, ..rewrite }]]
    }

    fn panic(world: &mut World) -> Request<Ask> {
        let names = if world.plan.counts.bigs > 0 { PANICS_BIG } else { PANICS };
        let name = names[world.prng.below(names.len() as u64) as usize];
        let (changes, runs) = (world.prng.below(3), world.prng.below(3));
        world.count("panics armed", WORLD, format_args!("a panic in {name}"));
        let text = format!("DEBUG PANIC-IN-COMMAND {name} {changes} {runs}");
        Request::words(&text, Ask::Any)
    }
}

/// How much earlier than its request says a pause may end: it ends at a whole millisecond, counted
/// from a turn that may have begun before the request.
fn early_ns(world: &World, pause: Span) -> u64 {
    2 * MS + world.baton.whole_holds_ns(pause.call_ns, pause.ret_ns)
}

/// The changes of all keys so far, from INFO persistence.
fn changes(reply: &Value) -> Option<i64> {
    let line = reply.as_str()?.lines().find_map(|l| l.strip_prefix("rdb_changes_since_last_save:"));
    line?.trim().parse().ok()
}

impl Family for Admin {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.is_asking {
            return Vec::new();
        }
        if self.script.is_empty() {
            if !world.prng.chance(1, 3) {
                return Vec::new();
            }
            self.script.extend(Self::draw(world));
        }
        let mut all = self.script.pop_front().unwrap_or_default();
        all.push(Request::words("PING", Ask::Last));
        (self.is_asking, self.is_urgent) = (true, false);
        all
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        if let Ask::Rewrite(value) = ask {
            let may_fail = world.plan.disk != DiskFaults::NONE;
            match reply {
                reply if reply == Value::ok() => world.machine.promise(value),
                reply if may_fail && reply.is_error() => {
                    world.count("failed CONFIG REWRITEs", WORLD, format_args!("{reply:?}"));
                }
                reply => world.fail(format!("CONFIG REWRITE is answered {reply:?}")),
            }
            return;
        }
        if reply.is_error() {
            return world.fail(format!("{ask:?} is answered {reply:?}"));
        }
        match ask {
            Ask::Last if reply == Value::simple("PONG") => self.is_asking = false,
            Ask::Any | Ask::Last | Ask::Rewrite(_) => {}
            Ask::Pause(ns) => {
                self.is_urgent = true;
                let until = (span.call_ns + ns).saturating_sub(early_ns(world, span));
                world.pause_until_ns = until;
            }
            Ask::Frozen(again) => self.frozen(world, again, reply, span.ret_ns),
            Ask::FrozenCount(again) => {
                let Some(changes) = changes(&reply) else {
                    return world.fail(format!("INFO persistence is answered {reply:?}"));
                };
                self.frozen(world, again, Value::Integer(changes), span.ret_ns);
            }
            Ask::Kill(addr) => {
                if reply == Value::Integer(1) {
                    world.books.killed.insert(addr, span.ret);
                }
            }
        }
    }

    fn lost(&mut self, _: &mut World, _: Ask, _: u64, _: u64) {}

    fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    fn disconnected(&mut self, _: Closing) {
        *self = Self::default();
    }
}
