//! XREADGROUP: delivers new entries of a group to one of its consumers, or pending ones again. Many
//! entries are delivered ahead of the command ([`super::ahead`]).

use std::ops::Range;

use keyspace::{EntryMut, Event};
use value::stream::Pending;
use value::{Stream, StreamId};

use super::ahead::{Changes, Scope, Work, exceeds_at_once};
use super::consumers::{consumer, group_at, more, new_consumer};
use super::delivery::{Delivery, STEP_ENTRIES};
use super::reading::{From, Reading};
use super::recording::{self, OfGroup};
use super::reply::{LongReply, Named, Run, Shown};
use super::reply::{begin_map, show};
use super::view::{change_groups, of_big_mut, of_entry, peek, stream_at};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::prepare::{self, Found, Preparation};
use crate::spec::Wait;
use resp::OwnedRequest;

/// A stream that has entries for the command: its argument, the place of the group, and from where
/// it is read.
type Readable = (usize, usize, From);

/// Replies the new entries of the group or the pending ones of the consumer. If there are none, the
/// command waits.
pub fn take_group(ctx: &mut Ctx<'_, '_>, _: &Wait, at: usize) -> Result<Done, Error> {
    match prepare::found::<Changes<Delivery>>(ctx) {
        Found::Ready(done) => done.finish(ctx),
        begin @ Found::Begin(_) => take_with(ctx, at, begin),
    }
}

/// As [`take_group`], with the deliveries that were prepared.
fn take_with(
    ctx: &mut Ctx<'_, '_>,
    at: usize,
    ahead: Found<Changes<Delivery>>,
) -> Result<Done, Error> {
    let args = ctx.args;
    let reading = Reading::parse(args, true)?;
    let wait = reading.wait();
    let is_first = at == wait.keys.start;
    let found = readable(ctx, &reading, if is_first { wait.keys } else { at..at + 1 }, is_first)?;
    if found.is_empty() {
        if is_first && wait.timeout_ms != Some(0) {
            return Ok(Done::NothingYet(Box::new(OwnedRequest::new(args))));
        }
        return Ok(Done::Nothing);
    }
    let before = ctx.guard.counted();
    let ahead = match ahead {
        Found::Ready(changes) => changes.put(ctx),
        Found::Begin(tries) => {
            let changes = deliveries(ctx, &found, &reading, at, tries);
            if !changes.is_empty() {
                return prepare::begin(ctx, changes);
            }
            Vec::new()
        }
    };
    let mut long = LongReply::default();
    let changed = write_streams(ctx, found, &reading, ahead, &mut long);
    ctx.guard.count_as(before, changed);
    Ok(long.into_done())
}

/// Which streams of the arguments `keys` have something for the command. Where the first run finds
/// nothing new, it notes that the consumer has tried.
fn readable(
    ctx: &mut Ctx<'_, '_>,
    reading: &Reading,
    keys: Range<usize>,
    is_first: bool,
) -> Result<Vec<Readable>, Error> {
    let args = ctx.args;
    let name = args.get(reading.group.expect("it was parsed"));
    let mut found: Vec<Readable> = Vec::new();
    // Whose group has nothing new. The consumer is noted there once no key can fail.
    let mut unread = Vec::new();
    for i in keys {
        if !ctx.guard.covers(ctx.key(i).slot) {
            continue; // of a waiter that is served for another key
        }
        let looked = group_at(ctx, i, name);
        if is_first {
            let exists = looked.is_ok() || peek(ctx, i)?.is_some();
            ctx.count_lookup(&ctx.key(i), exists);
        }
        let (group, mut has_new) = looked?;
        let from = reading.from(args, i)?;
        // A stream that is named twice has given what is new already.
        let again =
            found.iter().filter(|(j, _, was)| *was == From::New && args.get(*j) == args.get(i));
        let given = (again.count() as u64).saturating_mul(reading.count);
        if has_new && given > 0 {
            let stream = stream_at(ctx, i);
            has_new = Run::behind(stream, stream.group(group).last, u64::MAX).left > given;
        }
        if from != From::New || has_new {
            found.push((i, group, from));
        } else if is_first {
            unread.push((i, group));
        }
    }
    for (i, group) in unread {
        note_attempt(ctx, i, group, reading);
    }
    Ok(found)
}

/// Delivers from each of these streams and replies the entries. Returns the number of changes.
fn write_streams(
    ctx: &mut Ctx<'_, '_>,
    found: Vec<Readable>,
    reading: &Reading,
    mut ahead: Vec<(usize, Delivery)>,
    long: &mut LongReply,
) -> u64 {
    let consumer_name = ctx.arg(reading.group.expect("it was parsed") + 1);
    begin_map(ctx, found.len());
    // Each stream that is read is one change, and so is each consumer that is made.
    let mut changed = found.len() as u64;
    for (i, group, from) in found {
        let done = ahead.iter().position(|(key, _)| *key == i);
        let done = done.map(|at| ahead.swap_remove(at).1);
        let is_new = match &done {
            Some(done) => done.makes_consumer,
            None => stream_at(ctx, i).group(group).find(consumer_name).is_none(),
        };
        changed += u64::from(is_new);
        let behind = ctx.guard.is_recording().then(|| match &done {
            Some(done) => done.behind,
            None => stream_at(ctx, i).group(group).last,
        });
        let is_noted = done.is_none() && from != From::New;
        let shown = if let From::Behind(id) = from {
            let ids = match done {
                Some(done) => done.ids,
                None => history(ctx, i, group, reading, id),
            };
            Shown::Ids(ids, 0, Named::OrNull)
        } else {
            deliver_new(ctx, i, group, reading, done.as_ref())
        };
        if let Some(behind) = behind {
            if is_new && !is_noted {
                recording::new_consumer(ctx, of_group(ctx, i, reading), consumer_name);
            }
            record_delivery(ctx, (i, group), reading, &shown, behind);
        }
        show(ctx, i, shown, long);
    }
    changed
}

/// The group that a command names, of the stream in an argument.
fn of_group<'a>(ctx: &Ctx<'a, '_>, i: usize, reading: &Reading) -> OfGroup<'a> {
    OfGroup { key: ctx.arg(i), name: ctx.arg(reading.group.expect("it was parsed")) }
}

/// Leaves what was delivered.
#[cold]
#[inline(never)]
fn record_delivery(
    ctx: &mut Ctx<'_, '_>,
    (i, group): (usize, usize),
    reading: &Reading,
    shown: &Shown,
    behind: StreamId,
) {
    match shown {
        Shown::Ids(ids, ..) => record_again(ctx, i, group, reading, ids),
        _ => record_new(ctx, i, group, reading, behind),
    }
}

/// Leaves what is pending since new entries were delivered, those behind an id, and up to where the
/// group has read.
#[cold]
fn record_new(ctx: &mut Ctx<'_, '_>, i: usize, at: usize, reading: &Reading, behind: StreamId) {
    let (group, stream) = (of_group(ctx, i, reading), stream_at(ctx, i));
    if !reading.no_ack
        && let Some(from) = behind.next()
    {
        let last = stream.group(at).last;
        let ids = stream.iter_from_id(from).map(|entry| entry.id).take_while(|id| *id <= last);
        let rows: Vec<_> = ids.filter_map(|id| stream.group(at).get(id)).collect();
        recording::rows(ctx, group, consumer_of(ctx, reading), &rows);
    }
    recording::position(ctx, i, at, group);
}

/// Leaves the rows of entries that were delivered again: those that are still there.
#[cold]
fn record_again(ctx: &mut Ctx<'_, '_>, i: usize, at: usize, reading: &Reading, ids: &[StreamId]) {
    let (group, stream) = (of_group(ctx, i, reading), stream_at(ctx, i));
    let ids = ids.iter().filter(|id| stream.contains(**id));
    let rows: Vec<_> = ids.filter_map(|id| stream.group(at).get(*id)).collect();
    recording::rows(ctx, group, consumer_of(ctx, reading), &rows);
    ctx.guard.record_nothing(); // if there is none: the consumer was seen
}

/// The name of the consumer.
fn consumer_of<'a>(ctx: &Ctx<'a, '_>, reading: &Reading) -> &'a [u8] {
    ctx.arg(reading.group.expect("it was parsed") + 1)
}

/// The consumer tried to get something and got nothing.
fn note_attempt(ctx: &mut Ctx<'_, '_>, i: usize, at: usize, reading: &Reading) {
    let (key, now) = (ctx.key(i), ctx.now.0);
    let name = ctx.arg(reading.group.expect("it was parsed") + 1);
    let Some(mut entry) = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key) else { return };
    let group = of_entry(entry.entry()).group(at);
    match group.find(name) {
        None => {
            entry.set_event(events::XGROUP_CREATECONSUMER);
            change_groups(&mut entry, false, |stream| consumer(stream, at, name, now));
            recording::new_consumer(ctx, of_group(ctx, i, reading), name);
        }
        Some(who) => {
            let active = group.consumer(who).active_ms;
            if group.consumer(who).seen_ms != now {
                entry.edit_unwatched(false, |big, log| {
                    of_big_mut(big).set_consumer_times(at, who, now, active, log);
                });
                ctx.guard.adjust_change_count(-1); // that it was there is no change of the data
                ctx.guard.record_nothing();
            }
        }
    }
}

/// Delivers new entries to the consumer, after those that were `done` ahead. Returns all of them.
fn deliver_new(
    ctx: &mut Ctx<'_, '_>,
    i: usize,
    at: usize,
    reading: &Reading,
    done: Option<&Delivery>,
) -> Shown {
    let Some(done) = done else {
        let behind = stream_at(ctx, i).group(at).last;
        return Shown::Behind(behind, deliver(ctx, i, at, reading, reading.count));
    };
    // Entries may have been added since.
    let left = reading.count - done.given;
    let more = if left == 0 { 0 } else { deliver(ctx, i, at, reading, left) };
    Shown::Run(Run::behind(stream_at(ctx, i), done.behind, done.given + more))
}

/// Delivers at most `count` new entries to the consumer. Returns how many it got.
fn deliver(ctx: &mut Ctx<'_, '_>, i: usize, at: usize, reading: &Reading, count: u64) -> u64 {
    let (key, now) = (ctx.key(i), ctx.now.0);
    let name = ctx.arg(reading.group.expect("it was parsed") + 1);
    let much = exceeds_at_once(ctx, count) && {
        let stream = stream_at(ctx, i);
        let left = Run::behind(stream, stream.group(at).last, count).left;
        exceeds_at_once(ctx, left)
    };
    if much {
        ctx.guard.mark_long();
    }
    let mut entry = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key).expect("it was looked at");
    let found = of_entry(entry.entry()).group(at).find(name);
    if found.is_none() {
        entry.set_event(events::XGROUP_CREATECONSUMER);
    }
    entry.edit_unwatched(false, |big, log| {
        if much || found.is_none() {
            log.capture(big);
        }
        let stream = of_big_mut(big);
        let who = found.unwrap_or_else(|| consumer(stream, at, name, now));
        // With NOACK the consumer was seen, but it is not active: nothing becomes pending.
        let was_active = stream.group(at).consumer(who).active_ms;
        stream.set_consumer_times(at, who, now, if reading.no_ack { was_active } else { now }, log);
        // The entries stay as they are, while the group changes.
        let was = stream.without_groups();
        let (mut last, mut read) = (stream.group(at).last, stream.group(at).read);
        let mut given = 0;
        let items = last.next().map(|from| was.iter_from_id(from));
        for item in items.into_iter().flatten() {
            if given == count {
                break;
            }
            given += 1;
            last = item.id;
            read = was.read_with(read, last);
            if !reading.no_ack {
                stream.deliver(at, Pending { id: last, at_ms: now, count: 1, consumer: who }, log);
            }
        }
        stream.advance(at, last, read, log);
        given
    })
}

/// Delivers the consumer's pending entries behind an id again. Returns their ids.
fn history(
    ctx: &mut Ctx<'_, '_>,
    i: usize,
    at: usize,
    reading: &Reading,
    behind: StreamId,
) -> Vec<StreamId> {
    let (key, now) = (ctx.key(i), ctx.now.0);
    let name = ctx.arg(reading.group.expect("it was parsed") + 1);
    note_attempt(ctx, i, at, reading);
    let mut entry = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key).expect("it was looked at");
    let rows = pending_of(&entry, at, name, behind, reading.count);
    if let Some(first) = rows.first() {
        let who = first.consumer;
        entry.edit_unwatched(false, |big, log| {
            let stream = of_big_mut(big);
            for row in &rows {
                if stream.contains(row.id) {
                    let row = Pending { at_ms: now, count: more(row.count, 1), ..*row };
                    stream.deliver(at, row, log);
                }
            }
            stream.set_consumer_times(at, who, now, now, log);
        });
    } else {
        ctx.guard.record_empty_change(); // it counts all the same
    }
    rows.iter().map(|row| row.id).collect()
}

fn pending_of(
    entry: &EntryMut<'_, '_>,
    at: usize,
    name: &[u8],
    behind: StreamId,
    count: u64,
) -> Vec<Pending> {
    let group = of_entry(entry.entry()).group(at);
    let who = group.find(name).expect("it was seen");
    let Some(from) = behind.next() else { return Vec::new() };
    let ids = group.consumer(who).pending_from(from);
    let max = usize::try_from(count).unwrap_or(usize::MAX);
    ids.take(max).filter_map(|id| group.get(*id)).collect()
}

/// The large ones of some deliveries, to be done ahead.
fn deliveries(
    ctx: &mut Ctx<'_, '_>,
    found: &[Readable],
    reading: &Reading,
    asked: usize,
    tries: u32,
) -> Changes<Delivery> {
    let mut ahead = Changes::new(tries);
    if !exceeds_at_once(ctx, reading.count) {
        return ahead;
    }
    let (args, now) = (ctx.args, ctx.now.0);
    let name = args.get(reading.group.expect("it was parsed") + 1);
    for &(i, group, from) in found {
        // A stream that is named twice is seen the second time as the first left it.
        if found.iter().any(|(j, ..)| *j != i && args.get(*j) == args.get(i)) {
            continue;
        }
        let stream = stream_at(ctx, i);
        let place = stream.group(group);
        let makes_consumer = place.find(name).is_none();
        let (is_new, behind, left) = match from {
            From::Behind(id) => {
                let pending =
                    place.find(name).map_or(0, |consumer| place.consumer(consumer).pending());
                (false, id, pending)
            }
            _ => (true, place.last, Run::behind(stream, place.last, u64::MAX).left),
        };
        if exceeds_at_once(ctx, left.min(reading.count)) {
            let (count, no_ack) = (reading.count, reading.no_ack);
            let (last, given, ids) = (behind, 0, Vec::new());
            let name = name.into();
            ahead.add(
                ctx,
                i,
                Delivery {
                    asked,
                    group,
                    name,
                    now,
                    count,
                    no_ack,
                    is_new,
                    makes_consumer,
                    behind,
                    last,
                    given,
                    ids,
                },
            );
        }
    }
    ahead
}

impl Work for Delivery {
    const SCOPE: Scope = Scope::GroupsOfEntries;

    fn events(&self, was: &Stream) -> Vec<Event> {
        new_consumer(was, self.group, &self.name)
    }

    fn step(&mut self, was: &Stream, stream: &mut Stream) -> bool {
        let who = consumer(stream, self.group, &self.name, self.now);
        let given = if self.is_new {
            self.deliver(who, was, stream)
        } else {
            self.give_again(who, was, stream)
        };
        self.given += given;
        given < STEP_ENTRIES as u64 || self.given == self.count
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let asked = changes.first().map_or(0, |delivery| delivery.asked);
        take_with(ctx, asked, Found::Ready(changes))
    }
}
