//! XGROUP.

use keyspace::{EntryMut, Event, Kind};
use value::stream::{ConsumerId, Group};
use value::{Big, Encoding, Stream, StreamId};

use super::ahead::{Changes, Scope, Work, change_ahead, change_now, exceeds_at_once};
use super::ids::{id, strict_id};
use super::view::{change_groups, of_big_mut, of_entry, open};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Error, NoGroup};
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// The options of CREATE and SETID.
#[derive(Default)]
struct Options {
    mkstream: bool,
    read: Option<u64>,
}

fn options(ctx: &Ctx<'_, '_>, creates: bool) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut at = 5;
    while at < ctx.args.len() {
        let value = ctx.args.try_get(at + 1);
        if creates && is(ctx.arg(at), "MKSTREAM") {
            options.mkstream = true;
            at += 1;
        } else if is(ctx.arg(at), "ENTRIESREAD")
            && let Some(value) = value
        {
            let read = integer(value)?;
            if read < -1 {
                return Err(Error::EntriesRead);
            }
            options.read = u64::try_from(read).ok();
            at += 2;
        } else {
            return Err(Error::subcommand_syntax("XGROUP", ctx.arg(1)));
        }
    }
    Ok(options)
}

/// The stream in argument 2, which must be there.
fn existing<'b, 'g>(event: Event, ctx: &'b mut Ctx<'_, 'g>) -> Result<EntryMut<'b, 'g>, Error> {
    open(event, ctx, 2)?.ok_or(Error::GroupNoKey)
}

/// The stream in argument 2 and the place of the group in argument 3, both of which must be there.
fn existing_group<'b, 'g>(
    event: Event,
    ctx: &'b mut Ctx<'_, 'g>,
) -> Result<(EntryMut<'b, 'g>, usize), Error> {
    let key = ctx.key(2);
    let args = ctx.args;
    let entry = ctx.peek_kind(&key, Kind::Stream)?;
    let found = entry.map(|entry| of_entry(entry).find_group(args.get(3)));
    let at = found.ok_or(Error::GroupNoKey)?;
    let missing = || NoGroup { group: ctx.arg(3).into(), key: ctx.arg(2).into() };
    let at = at.ok_or_else(missing)?;
    Ok((existing(event, ctx)?, at))
}

/// `XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD count]`.
pub fn xgroup_create(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = options(ctx, true)?;
    let (key, name, text) = (ctx.key(2), ctx.arg(3), ctx.arg(4));
    let found = ctx.peek_kind(&key, Kind::Stream)?.map(|entry| of_entry(entry).marks().last);
    if found.is_none() && !options.mkstream {
        return Err(Error::GroupNoKey);
    }
    let last = if text == b"$" { found.unwrap_or(StreamId::MIN) } else { strict_id(text, 0)? };
    let group = Group::new(last, options.read);
    if found.is_none() {
        let mut stream = Stream::new();
        stream.add_group(name, group);
        ctx.guard.insert_big(
            events::XGROUP_CREATE,
            ctx.db,
            &key,
            Encoding::Stream,
            Big::Stream(stream),
            None,
        );
    } else {
        let mut entry = existing(events::XGROUP_CREATE, ctx)?;
        if of_entry(entry.entry()).find_group(name).is_some() {
            return Err(Error::GroupExists);
        }
        entry.edit_unwatched(false, |big, log| of_big_mut(big).create_group(name, group, log));
    }
    ctx.reply.ok();
    Ok(Done::Replied)
}

/// `XGROUP SETID key group id | $ [ENTRIESREAD count]`.
pub fn xgroup_setid(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = options(ctx, false)?;
    let text = ctx.arg(4);
    let key = ctx.key(2);
    let marks = match ctx.peek_kind(&key, Kind::Stream)?.map(of_entry) {
        None => return Err(Error::GroupNoKey),
        Some(stream) => stream.marks(),
    };
    let (mut entry, at) = existing_group(events::XGROUP_SETID, ctx)?;
    let last = if text == b"$" { marks.last } else { id(text, 0)? };
    entry.edit_unwatched(false, |big, log| of_big_mut(big).advance(at, last, options.read, log));
    ctx.reply.ok();
    Ok(Done::Replied)
}

/// `XGROUP DESTROY key group`.
pub fn xgroup_destroy(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let name = ctx.arg(3);
    let mut entry = existing(events::XGROUP_DESTROY, ctx)?;
    let found = of_entry(entry.entry()).find_group(name);
    if let Some(at) = found {
        change_groups(&mut entry, true, |stream| stream.remove_group(at));
    }
    ctx.reply.integer(found.is_some().into());
    Ok(Done::Replied)
}

/// `XGROUP CREATECONSUMER key group consumer`.
pub fn xgroup_createconsumer(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (name, now) = (ctx.arg(4), ctx.now.0);
    let (mut entry, at) = existing_group(events::XGROUP_CREATECONSUMER, ctx)?;
    let is_new = of_entry(entry.entry()).group(at).find(name).is_none();
    if is_new {
        change_groups(&mut entry, false, |stream| {
            stream.edit_group(at, |group| group.add_consumer(name, now, -1));
        });
    }
    ctx.reply.integer(is_new.into());
    Ok(Done::Replied)
}

/// Pending entries that leave a consumer in one step.
const STEP_PENDING: usize = 80;

/// A consumer on its way out.
struct Leaving {
    group: usize,
    consumer: ConsumerId,
    /// What was pending for it.
    pending: u64,
}

impl Work for Leaving {
    const SCOPE: Scope = Scope::Groups;

    fn events(&self, _: &Stream) -> Vec<Event> {
        vec![events::XGROUP_DELCONSUMER]
    }

    fn step(&mut self, _: &Stream, stream: &mut Stream) -> bool {
        stream.edit_group(self.group, |group| {
            let is_last = group.drop_pending(self.consumer, STEP_PENDING) < STEP_PENDING;
            if is_last {
                group.remove_consumer(self.consumer);
            }
            is_last
        })
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let done = changes.put(ctx);
        Ok(reply_left(ctx, &done))
    }
}

/// `XGROUP DELCONSUMER key group consumer`.
pub fn xgroup_delconsumer(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tries = match prepare::found::<Changes<Leaving>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let name = ctx.arg(4);
    let (entry, group) = existing_group(Event::SILENT, ctx)?;
    let place = of_entry(entry.entry()).group(group);
    let Some(consumer) = place.find(name) else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let pending = place.consumer(consumer).pending();
    let leaving = Leaving { group, consumer, pending };
    if exceeds_at_once(ctx, pending) {
        return change_ahead(ctx, 2, leaving, tries);
    }
    let left = change_now(ctx, 2, leaving);
    Ok(reply_left(ctx, &[(2, left)]))
}

fn reply_left(ctx: &mut Ctx<'_, '_>, done: &[(usize, Leaving)]) -> Done {
    ctx.reply.integer(done.iter().map(|(_, left)| left.pending as i64).sum());
    Done::Replied
}
