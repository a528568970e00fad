//! XDEL, XDELEX, XACK, XACKDEL.

use keyspace::{EntryMut, Event, Kind};
use value::stream::Group;
use value::{Stream, StreamId};

use super::ahead::{Changes, Scope, Work, change_ahead, exceeds_at_once, mark_if_long};
use super::ids::strict_id;
use super::recording::{self, OfGroup};
use super::references::{References, delete};
use super::view::{change, of_big_mut, of_entry, open};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// The ids in the arguments from one on.
fn ids(ctx: &Ctx<'_, '_>, from: usize, to: usize) -> Result<Vec<StreamId>, Error> {
    (from..to).map(|at| strict_id(ctx.arg(at), 0)).collect()
}

/// `XDEL key id ...`.
pub fn xdel(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    if ctx.peek_kind(&ctx.key(1), Kind::Stream)?.is_none() {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    }
    let mut ids = ids(ctx, 2, ctx.args.len())?;
    let (mut gone, before) = (0, ctx.guard.counted());
    if let Some(mut entry) = open(events::XDEL, ctx, 1)? {
        let stream = of_entry(entry.entry());
        ids.retain(|id| stream.contains(*id));
        if !ids.is_empty() {
            gone = change(&mut entry, |stream| ids.iter().filter(|id| stream.delete(**id)).count());
        }
    }
    ctx.guard.count_as(before, gone as u64);
    ctx.reply.integer(gone as i64);
    Ok(Done::Replied)
}

/// Ids that one step acknowledges.
const STEP_IDS: usize = 100;

/// Very many ids that XACK acknowledges.
struct Acks {
    group: usize,
    ids: Vec<StreamId>,
    at: usize,
    gone: i64,
}

impl Work for Acks {
    const SCOPE: Scope = Scope::Groups;

    fn events(&self, _: &Stream) -> Vec<Event> {
        Vec::new()
    }

    fn step(&mut self, _: &Stream, stream: &mut Stream) -> bool {
        let end = self.ids.len().min(self.at + STEP_IDS);
        let ids = &self.ids[self.at..end];
        self.gone += stream.edit_group(self.group, |group| {
            ids.iter().filter(|id| group.take(**id).is_some()).count() as i64
        });
        self.at = end;
        end == self.ids.len()
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let before = ctx.guard.counted();
        let done = changes.put(ctx);
        ctx.guard.count_as(before, done.iter().map(|(_, acks)| acks.gone as u64).sum());
        Ok(reply_acks(ctx, &done))
    }
}

fn reply_acks(ctx: &mut Ctx<'_, '_>, done: &[(usize, Acks)]) -> Done {
    ctx.reply.integer(done.iter().map(|(_, acks)| acks.gone).sum());
    Done::Replied
}

/// `XACK key group id ...`.
pub fn xack(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let args = ctx.args;
    if exceeds_at_once(ctx, args.len() as u64) {
        return ack_many(ctx);
    }
    let found = ctx.peek_kind(&ctx.key(1), Kind::Stream)?.map(of_entry);
    let Some(at) = found.and_then(|stream| stream.find_group(args.get(2))) else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    for i in 3..args.len() {
        strict_id(args.get(i), 0)?;
    }
    let before = ctx.guard.counted();
    let mut entry = open(Event::SILENT, ctx, 1)?.expect("it was there");
    let acknowledged = entry.edit_unwatched(false, |big, log| {
        let stream = of_big_mut(big);
        let ids = (3..args.len()).filter_map(|i| strict_id(args.get(i), 0).ok());
        ids.filter(|id| stream.acknowledge(at, *id, log)).count()
    });
    ctx.guard.count_as(before, acknowledged as u64);
    ctx.reply.integer(acknowledged as i64);
    Ok(Done::Replied)
}

fn ack_many(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tries = match prepare::found::<Changes<Acks>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    let args = ctx.args;
    let found = ctx.peek_kind(&ctx.key(1), Kind::Stream)?.map(of_entry);
    let Some(group) = found.and_then(|stream| stream.find_group(args.get(2))) else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let ids = ids(ctx, 3, args.len())?;
    change_ahead(ctx, 1, Acks { group, ids, at: 0, gone: 0 }, tries)
}

/// The words of XDELEX and XACKDEL behind the key and the group: how, and the ids.
fn parse_ids(ctx: &Ctx<'_, '_>, from: usize) -> Result<(References, Vec<StreamId>), Error> {
    let (mut how, mut found) = (None, None);
    let mut at = from;
    while at < ctx.args.len() {
        if let Some(references) = References::parse(ctx.arg(at)) {
            if how.replace(references).is_some() {
                return Err(Error::Syntax);
            }
            at += 1;
        } else if is(ctx.arg(at), "IDS") && found.is_none() {
            let count = integer(ctx.args.try_get(at + 1).ok_or(Error::Syntax)?);
            let count = count.ok().and_then(|count| usize::try_from(count).ok());
            let count = count.filter(|count| *count > 0).ok_or(Error::NumIds)?;
            let end = at.saturating_add(2).saturating_add(count);
            if end > ctx.args.len() {
                return Err(Error::NumIdsMatch);
            }
            found = Some(ids(ctx, at + 2, end)?);
            at = end;
        } else if found.is_some() {
            return Err(Error::NumIdsMatch);
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok((how.unwrap_or(References::Keep), found.ok_or(Error::Syntax)?))
}

/// What XDELEX and XACKDEL reply of an id.
const NOT_THERE: i64 = -1;
const DELETED: i64 = 1;
const STILL_NEEDED: i64 = 2;

fn code(deleted: Option<bool>) -> i64 {
    match deleted {
        None => NOT_THERE,
        Some(true) => DELETED,
        Some(false) => STILL_NEEDED,
    }
}

fn tell_deleted(entry: &mut EntryMut<'_, '_>, codes: &[i64]) {
    if codes.contains(&DELETED) {
        entry.notify(events::XDEL);
    }
}

fn reply_codes(ctx: &mut Ctx<'_, '_>, codes: &[i64]) {
    ctx.reply.array(codes.len());
    for code in codes {
        ctx.reply.integer(*code);
    }
}

/// `XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id ...`.
pub fn xdelex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    let (how, ids) = parse_ids(ctx, 2)?;
    let mut codes = vec![NOT_THERE; ids.len()];
    let referring = referring_groups(ctx, how, &ids)?;
    if let Some(mut entry) = open(Event::SILENT, ctx, 1)?
        // What is pending of entries that are gone goes, too, if that was asked for.
        && (how == References::Delete
            || ids.iter().any(|id| of_entry(entry.entry()).contains(*id)))
    {
        codes = change(&mut entry, |stream| {
            ids.iter().map(|id| code(delete(stream, *id, how))).collect()
        });
        tell_deleted(&mut entry, &codes);
        record_deleted(ctx, &referring, &ids, &codes);
    }
    reply_codes(ctx, &codes);
    Ok(Done::Replied)
}

/// The names of the groups in which some of these entries are pending, if they are not to stay so
/// and that is to be recorded.
fn referring_groups(
    ctx: &mut Ctx<'_, '_>,
    how: References,
    ids: &[StreamId],
) -> Result<Vec<Box<[u8]>>, Error> {
    if how != References::Delete || !ctx.guard.is_recording() {
        return Ok(Vec::new());
    }
    let Some(stream) = ctx.peek_kind(&ctx.key(1), Kind::Stream)?.map(of_entry) else {
        return Ok(Vec::new());
    };
    let referring = |group: &Group| ids.iter().any(|id| group.get(*id).is_some());
    Ok(stream.groups().filter(|(_, group)| referring(group)).map(|(name, _)| name.into()).collect())
}

/// Leaves the deletion of those entries that were deleted, and that none is pending any longer in
/// these groups.
fn record_deleted(ctx: &mut Ctx<'_, '_>, groups: &[Box<[u8]>], ids: &[StreamId], codes: &[i64]) {
    if !ctx.guard.is_recording() {
        return;
    }
    let key = ctx.arg(1);
    for name in groups {
        recording::acknowledged(ctx, OfGroup { key, name }, ids);
    }
    let gone = ids.iter().zip(codes).filter(|(_, code)| **code == DELETED).map(|(id, _)| *id);
    recording::deleted(ctx, key, &gone.collect::<Vec<_>>());
    ctx.guard.record_nothing(); // if all are still needed
}

/// `XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id ...`.
pub fn xackdel(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    let (how, ids) = parse_ids(ctx, 3)?;
    let name = ctx.arg(2);
    let mut codes = vec![NOT_THERE; ids.len()];
    let mut referring = referring_groups(ctx, how, &ids)?;
    referring.retain(|group| **group != *name);
    if let Some(mut entry) = open(Event::SILENT, ctx, 1)?
        && let Some(at) = of_entry(entry.entry()).find_group(name)
    {
        codes = change(&mut entry, |stream| {
            let one = |id: &StreamId| {
                // Who was not to acknowledge it does not delete it.
                if stream.edit_group(at, |group| group.take(*id)).is_none() {
                    return NOT_THERE;
                }
                delete(stream, *id, how).map_or(DELETED, |deleted| code(Some(deleted)))
            };
            ids.iter().map(one).collect()
        });
        tell_deleted(&mut entry, &codes);
        if ctx.guard.is_recording() {
            let taken = ids.iter().zip(&codes).filter(|(_, code)| **code != NOT_THERE);
            let (ids, codes): (Vec<_>, Vec<_>) = taken.unzip();
            recording::acknowledged(ctx, OfGroup { key: ctx.arg(1), name }, &ids);
            record_deleted(ctx, &referring, &ids, &codes);
        }
    }
    reply_codes(ctx, &codes);
    Ok(Done::Replied)
}
