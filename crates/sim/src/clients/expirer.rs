//! Clients which give keys a time to live, by a wall clock that may be stepped, and look whether
//! the keys go in time, and not before.

use crate::closings::Closing;
use crate::plan::MS;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;

/// How late a key may be seen: the clock of a worker is as old as its turn.
const LATE_NS: i64 = 20 * MS as i64;

/// A client of this family.
pub struct Expirer {
    who: u32,
    key: u64,
    set: Option<Set>,
    is_asking: bool,
}

/// A key that was set.
#[derive(Clone, Copy)]
struct Set {
    /// Its end by the wall clock, at the earliest and at the latest, nanoseconds.
    end: (i64, i64),
    /// When it was set, by the clock of the world.
    since_ns: u64,
    /// It was there at this time of the simulation, or later.
    there_ns: u64,
}

/// A request of this family.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// SET with a time to live, nanoseconds.
    Set(i64),
    /// GET.
    Get,
}

impl Expirer {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        Self { who, key: 0, set: None, is_asking: false }
    }
}

impl Family for Expirer {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.is_asking {
            return Vec::new();
        }
        self.is_asking = true;
        if self.set.is_some() {
            let text = format!("GET e{}:{}", self.who, self.key);
            return vec![Request::words(&text, Ask::Get)];
        }
        self.key += 1;
        let ttl_ms = 1 + world.prng.below(120);
        let text = format!("SET e{}:{} x PX {ttl_ms}", self.who, self.key);
        vec![Request::words(&text, Ask::Set((ttl_ms * MS) as i64))]
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        self.is_asking = false;
        let since_ns = self.set.as_ref().map_or(span.call_ns, |set| set.since_ns);
        let late_ns = LATE_NS + world.baton.whole_holds_ns(since_ns, span.ret_ns) as i64;
        match (ask, &mut self.set) {
            (Ask::Set(ttl), _) if reply == Value::ok() => {
                let (from, to) = world.wall_between(span.call_ns, span.ret_ns);
                let (end, since_ns) = ((from + ttl, to + ttl), span.call_ns);
                self.set = Some(Set { end, since_ns, there_ns: since_ns });
            }
            (Ask::Get, Some(set)) if reply == Value::bulk("x") => {
                set.there_ns = span.call_ns;
                let (from, _) = world.wall_between(span.call_ns, span.ret_ns);
                if from > set.end.1 + late_ns {
                    let late = (from - set.end.1) / MS as i64;
                    world.fail(format!("c{}: a key is seen {late} ms after its end", self.who));
                }
            }
            (Ask::Get, Some(set)) if reply.is_null() => {
                // The sweep may have removed it at any time since, by a clock that was ahead.
                let (_, to) = world.wall_between(set.there_ns, span.ret_ns);
                if to < set.end.0 - late_ns {
                    let early = (set.end.0 - to) / MS as i64;
                    world.fail(format!("c{}: a key is gone {early} ms before its end", self.who));
                }
                self.set = None;
            }
            _ => world.fail(format!("c{}: {ask:?} is answered {reply:?}", self.who)),
        }
    }

    fn lost(&mut self, _: &mut World, _: Ask, _: u64, _: u64) {}

    fn disconnected(&mut self, _: Closing) {
        (self.set, self.is_asking) = (None, false);
    }
}
