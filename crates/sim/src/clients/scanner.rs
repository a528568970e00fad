//! Clients which scan while keys come and go: a key, field or member which is there from the
//! beginning of a scan to its end is returned, and nothing that never was there.

use crate::clients::words;
use crate::closings::Closing;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;
use std::collections::BTreeSet;

/// What stays.
const STAY: u64 = 40;
/// What comes and goes.
const GUESTS: u64 = 60;

/// A client of this family.
pub struct Scanner {
    who: u32,
    generation: u32,
    state: State,
    seen: BTreeSet<String>,
    cursor: Vec<u8>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was written yet.
    New,
    /// The next part of a scan is asked for.
    Asking,
    /// Between two parts.
    Between,
}

/// What is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Keys,
    Fields,
    Members,
    Scores,
}

/// A request of this family.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// A change.
    Change,
    /// A part of a scan.
    Scan,
}

impl Scanner {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        let (cursor, seen) = (b"0".to_vec(), BTreeSet::new());
        Self { who, generation: 0, state: State::New, seen, cursor, what: What::Keys }
    }

    fn name(&self, kind: char, n: u64) -> String {
        format!("s{}:{}:{kind}{n}", self.who, self.generation)
    }

    /// The commands that add or remove one name, as a key, a field, a member and a scored one.
    fn change(&self, name: &str, add: bool) -> Vec<Request<Ask>> {
        let own = format!("{}:{}", self.who, self.generation);
        let texts = if add {
            [
                format!("SET {name} x"),
                format!("HSET sh{own} {name} x"),
                format!("SADD ss{own} {name}"),
                format!("ZADD sz{own} {} {name}", name.len()),
            ]
        } else {
            [
                format!("DEL {name}"),
                format!("HDEL sh{own} {name}"),
                format!("SREM ss{own} {name}"),
                format!("ZREM sz{own} {name}"),
            ]
        };
        texts.iter().map(|text| Request::words(text, Ask::Change)).collect()
    }

    fn scan(&mut self, world: &mut World) -> Request<Ask> {
        if self.state != State::Asking && self.cursor == b"0" {
            self.seen.clear();
            self.what = [What::Keys, What::Fields, What::Members, What::Scores]
                [world.prng.below(4) as usize];
        }
        self.state = State::Asking;
        let own = format!("{}:{}", self.who, self.generation);
        let cursor = String::from_utf8_lossy(&self.cursor);
        let count = 1 + world.prng.below(30);
        let text = match self.what {
            What::Keys => format!("SCAN {cursor} MATCH s{own}:* COUNT {count}"),
            What::Fields => format!("HSCAN sh{own} {cursor} COUNT {count}"),
            What::Members => format!("SSCAN ss{own} {cursor} COUNT {count}"),
            What::Scores => format!("ZSCAN sz{own} {cursor} COUNT {count}"),
        };
        Request::new(words(&text), Ask::Scan)
    }

    fn scanned(&mut self, world: &mut World, reply: &Value) {
        let parts = reply.as_members().unwrap_or_default();
        let [Value::Bulk(cursor), found] = parts else {
            return world.fail(format!("c{}: a scan is answered {reply:?}", self.who));
        };
        self.cursor.clone_from(cursor);
        self.state = State::Between;
        let every = if matches!(self.what, What::Fields | What::Scores) { 2 } else { 1 };
        for name in found.as_members().unwrap_or_default().iter().step_by(every) {
            let name = name.as_str().unwrap_or_default().to_owned();
            let prefix = format!("s{}:{}:", self.who, self.generation);
            if !name.starts_with(&prefix) {
                world.fail(format!("c{}: a scan found {name}, which never was there", self.who));
            }
            self.seen.insert(name);
        }
        if self.cursor == b"0" {
            let missing =
                (0..STAY).map(|n| self.name('k', n)).find(|name| !self.seen.contains(name));
            if let Some(missing) = missing {
                world
                    .fail(format!("c{}: {:?}: a scan did not find {missing}", self.who, self.what));
            }
        }
    }
}

impl Family for Scanner {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        match self.state {
            State::New => {
                self.state = State::Between;
                (0..STAY).flat_map(|n| self.change(&self.name('k', n), true)).collect()
            }
            State::Asking => Vec::new(),
            State::Between => {
                let mut all = Vec::new();
                for _ in 0..world.prng.below(6) {
                    let guest = self.name('g', world.prng.below(GUESTS));
                    all.extend(self.change(&guest, world.prng.chance(1, 2)));
                }
                all.push(self.scan(world));
                all
            }
        }
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, _: Span) {
        match ask {
            Ask::Scan => self.scanned(world, &reply),
            Ask::Change if reply.is_error() => {
                world.fail(format!("c{}: a change is answered {reply:?}", self.who));
            }
            Ask::Change => {}
        }
    }

    fn lost(&mut self, _: &mut World, _: Ask, _: u64, _: u64) {}

    fn disconnected(&mut self, _: Closing) {
        *self = Self { generation: self.generation + 1, ..Self::new(self.who) };
    }
}
