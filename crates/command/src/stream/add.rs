//! XADD, XSETID.

use keyspace::Kind;
use value::stream::{Limits, Marks, NODE_BYTES_MAX};
use value::{Big, Encoding, Log, Stream, StreamId};

use super::ahead::{Changes, change_ahead, exceeds_at_once};
use super::ids::{Wanted, strict_id};
use super::recording::{self, Trimmed};
use super::references::References;
use super::reply::write_id;
use super::trim::{Added, Trim, Trimming, parse};
use super::view::{change_groups, of_big_mut, of_entry, open};
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// When a page of a stream is full.
pub(super) fn limits(settings: &Settings) -> Limits {
    Limits { bytes: settings.stream_node_max_bytes, entries: settings.stream_node_max_entries }
}

/// `XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [MAXLEN | MINID [= | ~] threshold [LIMIT
/// count]] * | id field value ...`.
pub fn xadd(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let args = ctx.args;
    let options = parse(args, ctx.settings, true)?;
    let first = options.behind + 1;
    let are_pairs = args.len() >= first + 2 && (args.len() - first).is_multiple_of(2);
    let Some(wanted) = options.wanted.filter(|_| are_pairs) else {
        return Err(Arity { command: "xadd" }.into());
    };
    if matches!(wanted, Wanted::Exactly(StreamId::MIN)) {
        return Err(Error::StreamIdZero);
    }
    let fields = (first..args.len()).step_by(2).map(|i| (args.get(i), args.get(i + 1)));
    let size = fields.clone().map(|(name, value)| (name.len() + value.len()) as u64).sum();
    if size > NODE_BYTES_MAX {
        return Err(Error::StreamEntryTooLarge);
    }
    let (limits, now) = (limits(ctx.settings), ctx.now.0.max(0) as u64);
    if let Some(trim) = options.trim
        && trim.heeds_references()
        && let Some(done) = add_and_trim(ctx, trim, wanted, first, size)?
    {
        return Ok(done);
    }
    let key = ctx.key(1);
    let (entry, reply) = ctx.change_reply(events::XADD, 1, Kind::Stream)?;
    let Some(mut entry) = entry else {
        if options.no_mkstream {
            reply.null();
            return Ok(Done::Replied);
        }
        let id = wanted.choose(StreamId::MIN, now)?;
        let mut stream = Stream::new();
        stream.add(id, fields.clone(), size, limits, &mut Log::default());
        let trimmed = options.trim.map_or(0, |trim| {
            let count = trim.count(&stream);
            trim.apply(&mut stream, count)
        });
        let keeps = stream.len();
        write_id(reply, id);
        let big = Big::Stream(stream);
        ctx.guard.insert_big(events::XADD, ctx.db, &key, Encoding::Stream, big, None);
        if trimmed > 0 {
            ctx.guard.notify(events::XTRIM, ctx.db, &key);
        }
        let references = References::Keep;
        let trimmed = Some(Trimmed { keeps, references }).filter(|_| trimmed > 0);
        if ctx.guard.is_recording() {
            recording::added(ctx, key.bytes, id, trimmed, fields);
        }
        return Ok(Done::Replied);
    };
    let id = wanted.choose(of_entry(entry.entry()).marks().last, now)?;
    let (trimmed, record) = entry.edit(|big, log| {
        of_big_mut(big).add(id, fields.clone(), size, limits, log);
        let Some(trim) = options.trim else { return (0, None) };
        let (len, references) = (of_big_mut(big).len(), trim.references_of(of_big_mut(big)));
        let count = trim_added(big, trim, log);
        (count, (count > 0).then(|| Trimmed { keeps: len - count, references }))
    });
    if trimmed > 0 {
        entry.notify(events::XTRIM);
    }
    write_id(reply, id);
    if ctx.guard.is_recording() {
        recording::added(ctx, key.bytes, id, record, fields);
    }
    Ok(Done::Replied)
}

/// Adds an entry to a stream much of which is to be trimmed, as its groups allow; `None` if it is
/// not such a one.
#[cold]
fn add_and_trim(
    ctx: &mut Ctx<'_, '_>,
    trim: Trim,
    wanted: Wanted,
    first: usize,
    size: u64,
) -> Result<Option<Done>, Error> {
    let tries = match prepare::found::<Changes<Trimming>>(ctx) {
        Found::Ready(done) => return done.finish(ctx).map(Some),
        Found::Begin(tries) => tries,
    };
    let Some(entry) = ctx.peek_kind(&ctx.key(1), Kind::Stream)? else { return Ok(None) };
    let stream = of_entry(entry);
    let (is_slow, count, last) = (trim.is_slow(stream), trim.count(stream), stream.marks().last);
    if !is_slow || !exceeds_at_once(ctx, count) {
        return Ok(None);
    }
    let id = wanted.choose(last, ctx.now.0.max(0) as u64)?;
    let pair = |i| (ctx.args.get(i).into(), ctx.args.get(i + 1).into());
    let fields = (first..ctx.args.len()).step_by(2).map(pair).collect();
    let added = Added { id, fields, size, limits: limits(ctx.settings) };
    change_ahead(ctx, 1, Trimming::new(trim, Some(added)), tries).map(Some)
}

/// Trims behind an entry that came; how many entries went.
pub(super) fn trim_added(big: &mut Big, trim: Trim, log: &mut Log) -> u64 {
    let count = trim.count(of_big_mut(big));
    if count > 0 {
        log.capture(big);
        trim.apply(of_big_mut(big), count);
    }
    count
}

/// `XSETID key last-id [ENTRIESADDED count] [MAXDELETEDID id]`.
pub fn xsetid(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let last = strict_id(ctx.arg(2), 0)?;
    let (mut added, mut max_deleted) = (None, None);
    let mut at = 3;
    while at < ctx.args.len() {
        let value = ctx.args.try_get(at + 1).ok_or(Error::Syntax)?;
        if is(ctx.arg(at), "ENTRIESADDED") {
            let count = u64::try_from(integer(value)?);
            added = Some(count.map_err(|_| Error::SetidAddedNegative)?);
        } else if is(ctx.arg(at), "MAXDELETEDID") {
            let id = strict_id(value, 0)?;
            if last < id {
                return Err(Error::SetidDeleted);
            }
            max_deleted = Some(id);
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    let mut entry = open(events::XSETID, ctx, 1)?.ok_or(Error::NoSuchKey)?;
    let stream = of_entry(entry.entry());
    let was = stream.marks();
    if last < was.max_deleted {
        return Err(Error::SetidBelowDeleted);
    }
    if stream.iter_back_from(stream.len()).next().is_some_and(|top| last < top.id) {
        return Err(Error::SetidLow);
    }
    if !stream.is_empty() && added.is_some_and(|added| added < stream.len()) {
        return Err(Error::SetidAdded);
    }
    let max_deleted = max_deleted.filter(|id| *id != StreamId::MIN).unwrap_or(was.max_deleted);
    let marks = Marks { last, max_deleted, added: added.unwrap_or(was.added) };
    change_groups(&mut entry, false, |stream| stream.set_marks(marks));
    ctx.reply.ok();
    Ok(Done::Replied)
}
