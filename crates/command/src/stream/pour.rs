//! Messages that become entries: as many XADDs with `*`, under one lock.

use base::{DbIndex, UnixMs};
use keyspace::{Guard, Key, Kind};
use value::stream::{Limits, Text};
use value::{Big, Encoding, Log, Stream, StreamId};

use super::add::{limits, trim_added};
use super::ids::Wanted;
use super::trim::Trim;
use super::view::{of_big_mut, of_entry};
use crate::ctx::Settings;
use crate::error::Error;
use crate::events;

/// The fields of the entry which a message becomes.
const FIELDS: [&[u8]; 2] = [b"id", b"data"];

/// How a stream is trimmed behind messages, as by MAXLEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How many entries stay.
    pub count: u64,
    /// To the entry; else to whole nodes, as with `~`.
    pub exact: bool,
}

/// A message: its number, and its payload.
pub type Message<'m> = (u64, &'m [u8]);

impl Bound {
    /// True if the page under way may be cut while it grows: then it is full at another entry, and
    /// where a node ends is only the same as behind as many XADDs if each entry is followed by its
    /// cut.
    fn is_close(self, limits: Limits) -> bool {
        self.exact && self.count > 0 && (limits.entries == 0 || self.count < limits.entries)
    }
}

/// Appends messages to the stream of a key, which is made if it does not exist: each with the
/// fields `id` and `data`. Returns how many were appended: fewer only if the stream's ids are
/// exhausted.
///
/// # Errors
/// [`Error::WrongType`], with nothing changed.
pub fn pour<'m>(
    guard: &mut Guard<'_>,
    (db, key): (DbIndex, &Key<'_>),
    settings: &Settings,
    now: UnixMs,
    bound: Option<Bound>,
    messages: impl Iterator<Item = Message<'m>> + Clone,
) -> Result<u64, Error> {
    let last = last_id(guard, db, key);
    let count = pour_entries(guard, (db, key), settings, now, bound, messages.clone())?;
    if guard.is_recording() && count > 0 {
        record(guard, (db, key), (last, now), bound, messages.take(count as usize));
    }
    Ok(count)
}

/// The last id of a stream; before its first one if there is none. Only for records.
fn last_id(guard: &mut Guard<'_>, db: DbIndex, key: &Key<'_>) -> StreamId {
    if !guard.is_recording() {
        return StreamId::MIN;
    }
    let entry = guard.read(db, key).filter(|entry| entry.kind() == Kind::Stream);
    entry.map_or(StreamId::MIN, |entry| of_entry(entry).marks().last)
}

/// Leaves an XADD with its id for each message; behind the last one the stream is as long as it is
/// now.
fn record<'m>(
    guard: &mut Guard<'_>,
    (db, key): (DbIndex, &Key<'_>),
    (mut last, now): (StreamId, UnixMs),
    bound: Option<Bound>,
    messages: impl Iterator<Item = Message<'m>>,
) {
    let entry = guard.read(db, key).filter(|entry| entry.kind() == Kind::Stream);
    let len = entry.map_or(0, |entry| of_entry(entry).len()).to_string();
    let mut messages = messages.peekable();
    while let Some((number, payload)) = messages.next() {
        let Ok(id) = Wanted::Any.choose(last, now.0.max(0) as u64) else { return };
        last = id;
        let (id, number) = (id.to_string(), number.to_string());
        let trims = bound.is_some() && messages.peek().is_none();
        let trim: [&[u8]; 3] = [b"MAXLEN", b"=", len.as_bytes()];
        let trim = if trims { &trim[..] } else { &[] };
        guard.record_with(db, 7 + trim.len(), |record| {
            record.word(b"XADD");
            record.word(key.bytes);
            for word in trim {
                record.word(word);
            }
            record.word(id.as_bytes());
            record.word(FIELDS[0]);
            record.word(number.as_bytes());
            record.word(FIELDS[1]);
            record.word(payload);
        });
    }
}

fn pour_entries<'m>(
    guard: &mut Guard<'_>,
    (db, key): (DbIndex, &Key<'_>),
    settings: &Settings,
    now: UnixMs,
    bound: Option<Bound>,
    messages: impl Iterator<Item = Message<'m>> + Clone,
) -> Result<u64, Error> {
    let entries =
        messages.map(|(number, payload): Message<'m>| [Text::Number(number), Text::Bytes(payload)]);
    let pouring = Pouring { limits: limits(settings), now: now.0.max(0) as u64, bound };
    let Some(mut entry) = guard.entry_mut(events::XADD, db, key) else {
        let mut big = Big::Stream(Stream::new());
        let count = pouring.aside(&mut big, entries, settings);
        if count > 0 {
            guard.insert_big(events::XADD, db, key, Encoding::Stream, big, None);
            guard.adjust_change_count(count as i64 - 1);
        }
        return Ok(count);
    };
    if entry.kind() != Kind::Stream {
        return Err(Error::WrongType);
    }
    if of_entry(entry.entry()).marks().last == StreamId::MAX || entries.clone().next().is_none() {
        return Ok(0);
    }
    let count = entry.edit(|big, log| pouring.into(big, entries, settings, log));
    guard.adjust_change_count(count.saturating_sub(1) as i64);
    Ok(count)
}

/// How a block of messages is poured.
#[derive(Clone, Copy)]
struct Pouring {
    limits: Limits,
    now: u64,
    bound: Option<Bound>,
}

impl Pouring {
    /// Into a stream that has ids left.
    fn into<'m>(
        self,
        big: &mut Big,
        entries: impl Iterator<Item = [Text<'m>; 2]>,
        settings: &Settings,
        log: &mut Log,
    ) -> u64 {
        let Some(bound) = self.bound else { return self.whole(of_big_mut(big), entries, log) };
        if bound.is_close(self.limits) {
            log.capture(big);
            return self.aside(big, entries, settings);
        }
        let count = self.whole(of_big_mut(big), entries, log);
        let trim = Trim::maxlen(bound.count, bound.exact, settings);
        // As many cuts as there are entries: each has a limit of its own, with `~`.
        for _ in 0..count {
            if trim_added(big, trim, log) == 0 {
                break;
            }
        }
        count
    }

    fn whole<'m>(
        self,
        stream: &mut Stream,
        entries: impl Iterator<Item = [Text<'m>; 2]>,
        log: &mut Log,
    ) -> u64 {
        match Wanted::Any.choose(stream.marks().last, self.now) {
            Ok(id) => stream.pour(id, FIELDS, entries, self.limits, log),
            Err(_) => 0,
        }
    }

    /// Into a stream that is no key's yet, or was captured: each entry is followed by its cut.
    fn aside<'m>(
        self,
        big: &mut Big,
        entries: impl Iterator<Item = [Text<'m>; 2]>,
        settings: &Settings,
    ) -> u64 {
        let stream = of_big_mut(big);
        let Some(bound) = self.bound else {
            return match Wanted::Any.choose(stream.marks().last, self.now) {
                Ok(id) => stream.pour_aside(id, FIELDS, entries, self.limits),
                Err(_) => 0,
            };
        };
        let (mut came, trim) = (0, Trim::maxlen(bound.count, bound.exact, settings));
        for entry in entries {
            let Ok(id) = Wanted::Any.choose(stream.marks().last, self.now) else { break };
            came += stream.pour_aside(id, FIELDS, std::iter::once(entry), self.limits);
            let gone = trim.count(stream);
            if gone > 0 {
                trim.apply(stream, gone);
            }
        }
        came
    }
}
