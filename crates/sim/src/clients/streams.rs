//! Clients which add entries to streams, and clients which read them: from an ID of their own with
//! XREAD, and as consumers of a group with XREADGROUP and XACK. Both wait for entries.

use crate::books::streams::{Delivery, Id, Read, Stream};
use crate::clients::queues;
use crate::closings::Closing;
use crate::session::{Family, Request, Span};
use crate::world::World;
use client::Value;
use std::collections::BTreeMap;

/// Streams in use.
pub const STREAMS: u32 = 2;
/// Entries that one read takes at most.
const COUNT_MAX: u64 = 6;

/// The key of a stream.
pub fn key(stream: Stream) -> String {
    format!("x:{}:{}", stream.0, stream.1)
}

/// The ID in a reply.
fn id(value: &Value) -> Option<Id> {
    let (ms, number) = value.as_str()?.split_once('-')?;
    Some((ms.parse().ok()?, number.parse().ok()?))
}

/// The IDs and the elements of entries.
pub fn entries(reply: &Value) -> Option<Vec<(Id, u64)>> {
    let entry = |value: &Value| {
        let [entry_id, fields] = value.as_members()? else { return None };
        let element = fields.as_members()?.get(1)?.as_str()?.parse().ok()?;
        Some((id(entry_id)?, element))
    };
    reply.as_members()?.iter().map(entry).collect()
}

/// The IDs and consumers of pending entries; none if the reply is an error, because the group was
/// never made.
pub fn pending(reply: &Value) -> BTreeMap<Id, String> {
    let entry = |value: &Value| {
        let parts = value.as_members()?;
        Some((id(parts.first()?)?, parts.get(1)?.as_str()?.to_owned()))
    };
    reply.as_members().unwrap_or_default().iter().filter_map(entry).collect()
}

/// The entries in a reply of XREAD or XREADGROUP, by the key of their stream.
fn read_entries(reply: &Value) -> Option<BTreeMap<String, Vec<(Id, u64)>>> {
    let one = |key: &Value, all: &Value| Some((key.as_str()?.to_owned(), entries(all)?));
    match reply {
        Value::Map(streams) => streams.iter().map(|(key, all)| one(key, all)).collect(),
        Value::Array(streams) => {
            let pairs = streams.iter().map(|stream| match stream.as_members() {
                Some([key, all]) => one(key, all),
                _ => None,
            });
            pairs.collect()
        }
        reply if reply.is_null() => Some(BTreeMap::new()),
        Value::Error(text) if text.starts_with(b"UNBLOCKED") => Some(BTreeMap::new()),
        _ => None,
    }
}

/// A client that adds.
pub struct Adder;

impl Family for Adder {
    type Ask = (Stream, u64);

    fn next(&mut self, world: &mut World) -> Vec<Request<Self::Ask>> {
        let count = 1 + world.prng.below(world.plan.depth_max.min(4));
        let add = |_| {
            let stream = (world.prng.below(u64::from(STREAMS)) as u32, world.epoch);
            let element = world.books.unique();
            world.books.streams.adding(stream, element);
            Request::words(&format!("XADD {} * e {element}", key(stream)), (stream, element))
        };
        (0..count).map(add).collect()
    }

    fn answered(&mut self, world: &mut World, ask: Self::Ask, reply: Value, span: Span) {
        match id(&reply) {
            Some(id) => world.books.streams.added(ask.1, id, span),
            None => world.fail(format!("XADD is answered {reply:?}")),
        }
    }

    fn lost(&mut self, _: &mut World, _: Self::Ask, _: u64, _: u64) {}
}

/// A client that reads.
pub struct Reader {
    who: u32,
    /// The last ID that it has read with XREAD.
    last: BTreeMap<Stream, Id>,
    /// Entries that were delivered to it, to be acknowledged.
    delivered: Vec<(Stream, Id)>,
    /// The incarnation of the server in which it has made the groups.
    has_groups: Option<u32>,
    is_asking: bool,
}

/// A request of a reader.
#[derive(Clone, Debug)]
pub enum Ask {
    /// XGROUP CREATE.
    Group,
    /// XREAD of these streams after these IDs, of so many entries at most.
    Read(Vec<(Stream, Id)>, usize),
    /// XREADGROUP of this stream.
    Deliver(Stream),
    /// XACK.
    Ack(Stream, Id),
}

impl Reader {
    /// The client with this number.
    pub fn new(who: u32) -> Self {
        let (last, delivered) = (BTreeMap::new(), Vec::new());
        Self { who, last, delivered, has_groups: None, is_asking: false }
    }

    fn consumer(&self) -> String {
        format!("c{}", self.who)
    }

    fn groups(&mut self, epoch: u32) -> Vec<Request<Ask>> {
        self.has_groups = Some(epoch);
        let create = |number| {
            let text = format!("XGROUP CREATE {} g 0 MKSTREAM", key((number, epoch)));
            Request::words(&text, Ask::Group)
        };
        (0..STREAMS).map(create).collect()
    }

    /// XREAD of one stream or of all.
    fn read(&self, world: &mut World, block: &str, count: usize) -> (String, Ask) {
        let first = world.prng.below(u64::from(STREAMS)) as u32;
        let last = if world.prng.chance(1, 2) { first } else { STREAMS - 1 };
        let streams = (first..=last).map(|number| (number, world.epoch));
        let asked: Vec<(Stream, Id)> = streams
            .map(|stream| (stream, self.last.get(&stream).copied().unwrap_or_default()))
            .collect();
        let keys: Vec<String> = asked.iter().map(|(stream, _)| key(*stream)).collect();
        let ids: Vec<String> =
            asked.iter().map(|(_, (ms, number))| format!("{ms}-{number}")).collect();
        let text =
            format!("XREAD COUNT {count}{block} STREAMS {} {}", keys.join(" "), ids.join(" "));
        (text, Ask::Read(asked, count))
    }

    /// The first entry of a reply may come late to somebody who waited for it.
    fn check_in_time(world: &mut World, entries: &[(Id, u64)], span: Span) {
        let Some((_, element)) = entries.first() else { return };
        let Some(since_ns) = world.books.streams.added_ns(*element) else { return };
        if queues::is_late(world, span, since_ns) {
            let late = span.ret_ns.saturating_sub(since_ns) / 1_000_000;
            let text = format!("a stall: entry {element} came {late} ms after it was added");
            world.fail(text);
        }
    }
}

impl Family for Reader {
    type Ask = Ask;

    fn next(&mut self, world: &mut World) -> Vec<Request<Ask>> {
        if self.is_asking {
            return Vec::new();
        }
        let mut all = Vec::new();
        if self.has_groups != Some(world.epoch) {
            self.delivered.clear();
            all = self.groups(world.epoch);
        }
        while !self.delivered.is_empty() && world.prng.chance(2, 3) {
            let at = world.prng.below(self.delivered.len() as u64) as usize;
            let (stream, id) = self.delivered.swap_remove(at);
            let text = format!("XACK {} g {}-{}", key(stream), id.0, id.1);
            all.push(Request::words(&text, Ask::Ack(stream, id)));
        }
        let (wait_ms, count) = (1 + world.prng.below(80), 1 + world.prng.below(COUNT_MAX));
        let (block, wait_ns) = match world.prng.below(5) {
            0 => (String::new(), 0),
            1 => (" BLOCK 0".to_owned(), u64::MAX),
            _ => (format!(" BLOCK {wait_ms}"), wait_ms * 1_000_000),
        };
        let (text, ask) = if world.prng.chance(1, 2) {
            self.read(world, &block, count as usize)
        } else {
            let stream = (world.prng.below(u64::from(STREAMS)) as u32, world.epoch);
            let (consumer, key) = (self.consumer(), key(stream));
            let text =
                format!("XREADGROUP GROUP g {consumer} COUNT {count}{block} STREAMS {key} >");
            (text, Ask::Deliver(stream))
        };
        all.push(Request { wait_ns, ..Request::words(&text, ask) });
        self.is_asking = true;
        all
    }

    fn answered(&mut self, world: &mut World, ask: Ask, reply: Value, span: Span) {
        match ask {
            Ask::Group => {
                let is_there = matches!(&reply, Value::Error(e) if e.starts_with(b"BUSYGROUP"));
                if reply != Value::ok() && !is_there {
                    world.fail(format!("XGROUP CREATE is answered {reply:?}"));
                }
            }
            Ask::Read(asked, count) => {
                self.is_asking = false;
                let Some(mut found) = read_entries(&reply) else {
                    return world.fail(format!("XREAD is answered {reply:?}"));
                };
                for (stream, after) in asked {
                    let seen = found.remove(&key(stream)).unwrap_or_default();
                    Self::check_in_time(world, &seen, span);
                    if let Some((id, _)) = seen.last() {
                        self.last.insert(stream, *id);
                    }
                    world.books.streams.read(stream, Read { after, count, seen, span });
                }
                if let Some(other) = found.keys().next() {
                    world.fail(format!("XREAD returned {other}, which it was not asked for"));
                }
            }
            Ask::Deliver(stream) => {
                self.is_asking = false;
                let Some(mut found) = read_entries(&reply) else {
                    return world.fail(format!("XREADGROUP is answered {reply:?}"));
                };
                let entries = found.remove(&key(stream)).unwrap_or_default();
                Self::check_in_time(world, &entries, span);
                self.delivered.extend(entries.iter().map(|(id, _)| (stream, *id)));
                let consumer = self.consumer();
                world.books.streams.delivered(stream, Delivery { consumer, entries, span });
            }
            Ask::Ack(stream, id) if reply == Value::Integer(1) => {
                world.books.streams.acknowledged(stream, id);
            }
            Ask::Ack(..) => world.fail(format!("XACK is answered {reply:?}")),
        }
    }

    fn lost(&mut self, world: &mut World, ask: Ask, _: u64, _: u64) {
        match ask {
            Ask::Deliver(stream) => world.books.streams.delivery_lost(stream, self.consumer()),
            Ask::Ack(stream, id) => world.books.streams.ack_lost(stream, id),
            Ask::Group | Ask::Read(..) => {}
        }
    }

    fn disconnected(&mut self, _: Closing) {
        *self = Self::new(self.who);
    }
}
