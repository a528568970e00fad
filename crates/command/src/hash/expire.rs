//! Fields that expire: HEXPIRE and its kin, HTTL and its kin, HPERSIST, HGETDEL, HGETEX, HSETEX.

use std::ops::Range;

use base::UnixMs;
use base::num::parse_i64;
use keyspace::{Encoding, EntryMut, Event, Kind};
use value::Big;
use value::hash::Hash;

use super::change::{New, hash_mut, remove_fields, set_pairs};
use super::view::View;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Error, InvalidExpire};
use crate::events;
use crate::parse::{integer, is};

/// `FIELDS n field ...` from argument `at` on to the end: where the fields are, each of `step`
/// arguments.
fn fields(ctx: &Ctx<'_, '_>, at: usize, step: usize) -> Result<Range<usize>, Error> {
    if !ctx.args.try_get(at).is_some_and(|word| is(word, "FIELDS")) {
        return Err(Error::NoFields);
    }
    let count = ctx.args.try_get(at + 1).and_then(parse_i64).and_then(|n| usize::try_from(n).ok());
    let count = count.filter(|n| *n > 0).ok_or(Error::NumFields)?;
    if count.checked_mul(step) != Some(ctx.args.len() - at - 2) {
        return Err(Error::NumFieldsMatch);
    }
    Ok(at + 2..ctx.args.len())
}

/// A client's time in milliseconds of the epoch, which is not negative.
fn absolute(text: &[u8], from: UnixMs, unit: i64, command: &'static str) -> Result<UnixMs, Error> {
    let time = Some(integer(text)?).filter(|time| *time >= 0);
    let at = time.and_then(|time| time.checked_mul(unit)).and_then(|ms| ms.checked_add(from.0));
    at.map(UnixMs).ok_or_else(|| InvalidExpire { command }.into())
}

const EPOCH: UnixMs = UnixMs(0);

/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hexpire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, ctx.now, 1000, "hexpire")
}

/// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hpexpire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, ctx.now, 1, "hpexpire")
}

/// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hexpireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, EPOCH, 1000, "hexpireat")
}

/// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS n field ...`.
pub fn hpexpireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    expire(ctx, EPOCH, 1, "hpexpireat")
}

/// Which fields get a new time.
#[derive(Clone, Copy)]
enum Condition {
    Always,
    None,
    Some,
    Later,
    Earlier,
}

impl Condition {
    fn of(word: &[u8]) -> Option<Self> {
        let words = [("NX", Self::None), ("XX", Self::Some), ("GT", Self::Later)];
        let words = words.into_iter().chain([("LT", Self::Earlier)]);
        words.into_iter().find(|(name, _)| is(word, name)).map(|(_, condition)| condition)
    }

    /// A field without a time expires later than any other.
    fn allows(self, present: Option<i64>, new: UnixMs) -> bool {
        match self {
            Self::Always => true,
            Self::None => present.is_none(),
            Self::Some => present.is_some(),
            Self::Later => present.is_some_and(|at| new.0 > at),
            Self::Earlier => present.is_none_or(|at| new.0 < at),
        }
    }
}

fn expire(
    ctx: &mut Ctx<'_, '_>,
    from: UnixMs,
    unit: i64,
    command: &'static str,
) -> Result<Done, Error> {
    let at = absolute(ctx.arg(2), from, unit, command)?;
    let condition = Condition::of(ctx.arg(3));
    let fields = fields(ctx, 3 + usize::from(condition.is_some()), 1)?;
    let condition = condition.unwrap_or(Condition::Always);
    let (args, gone) = (ctx.args, ctx.is_past(at));
    let count = fields.len();
    let event = if gone { events::HDEL } else { events::HEXPIRE };
    // No field of a packed hash has a time. It becomes a tree only if one gets one, or goes.
    let key = ctx.key(1);
    if let Some(view @ View::Packed(_)) = ctx.peek_kind(&key, Kind::Hash)?.map(View::of)
        && (!condition.allows(None, at) || fields.clone().all(|i| view.get(args.get(i)).is_none()))
    {
        let code = |i: usize| if view.get(args.get(i)).is_some() { 0 } else { -2 };
        let codes: Vec<i64> = fields.map(code).collect();
        reply_codes(ctx, Some(codes), count);
        return Ok(Done::Replied);
    }
    let results = change(event, ctx, |hash, log| {
        fields
            .clone()
            .map(|i| {
                let field = args.get(i);
                if hash.get(field).is_none() {
                    return -2;
                }
                if !condition.allows(hash.expiry(field), at) {
                    return 0;
                }
                if gone {
                    hash.remove(field, log);
                    return 2;
                }
                hash.set_expiry(field, Some(at.0), log);
                1
            })
            .collect::<Vec<i64>>()
    })?;
    reply_codes(ctx, results, count);
    Ok(Done::Replied)
}

/// `HPERSIST key FIELDS n field ...`.
pub fn hpersist(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let fields = fields(ctx, 2, 1)?;
    let (args, count) = (ctx.args, fields.len());
    let key = ctx.key(1);
    let entry = ctx.peek_kind(&key, Kind::Hash)?;
    let codes: Option<Vec<i64>> = entry.map(|entry| {
        let view = View::of(entry);
        fields.clone().map(|i| code(view, args.get(i), |_| 1)).collect()
    });
    if codes.as_ref().is_some_and(|codes| codes.contains(&1)) {
        change(events::HPERSIST, ctx, |hash, log| {
            for i in fields {
                hash.set_expiry(args.get(i), None, log);
            }
        })?;
    }
    reply_codes(ctx, codes, count);
    Ok(Done::Replied)
}

/// -2 for a field that does not exist, -1 for one that does not expire.
fn code(view: View<'_>, field: &[u8], time: impl FnOnce(i64) -> i64) -> i64 {
    if view.get(field).is_none() {
        return -2;
    }
    match view {
        View::Packed(_) => -1,
        View::Big(_, hash) => hash.expiry(field).map_or(-1, time),
    }
}

fn reply_codes(ctx: &mut Ctx<'_, '_>, codes: Option<Vec<i64>>, count: usize) {
    ctx.reply.array(count);
    for code in codes.unwrap_or_else(|| vec![-2; count]) {
        ctx.reply.integer(code);
    }
}

/// `HTTL key FIELDS n field ...`.
pub fn httl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let now = ctx.now.0;
    times(ctx, |at| ((at - now).max(0) + 999) / 1000)
}

/// `HPTTL key FIELDS n field ...`.
pub fn hpttl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let now = ctx.now.0;
    times(ctx, |at| (at - now).max(0))
}

/// `HEXPIRETIME key FIELDS n field ...`.
pub fn hexpiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, |at| at / 1000 + i64::from(at % 1000 > 0))
}

/// `HPEXPIRETIME key FIELDS n field ...`.
pub fn hpexpiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    times(ctx, |at| at)
}

fn times(ctx: &mut Ctx<'_, '_>, time: impl Fn(i64) -> i64) -> Result<Done, Error> {
    let fields = fields(ctx, 2, 1)?;
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    reply.array(fields.len());
    for i in fields {
        reply.integer(entry.map_or(-2, |entry| code(View::of(entry), args.get(i), &time)));
    }
    Ok(Done::Replied)
}

/// Changes the hash in the first argument's key as a tree, which it becomes; the key goes with the
/// last field. `None` if it does not exist.
fn change<R>(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    f: impl FnOnce(&mut Hash, &mut value::Log) -> R,
) -> Result<Option<R>, Error> {
    let Some(mut entry) = ctx.entry_mut_kind(Event::SILENT, 1, Kind::Hash)? else {
        return Ok(None);
    };
    let was_packed = entry.entry().packed().is_some();
    unpack(&mut entry);
    entry.set_event(event);
    let (result, left) = entry.edit(|big, log| {
        let hash = hash_mut(big);
        (f(hash, log), hash.len())
    });
    if left == 0 {
        entry.remove();
    }
    if was_packed {
        ctx.guard.adjust_change_count(-1); // another form is no change
    }
    Ok(Some(result))
}

/// Makes a packed hash a tree: only a tree has room for times.
fn unpack(entry: &mut EntryMut<'_, '_>) {
    if let Some(packed) = entry.entry().packed() {
        let hash = Hash::of_packed(packed);
        entry.set_big(Encoding::Hashtable, Big::Hash(hash));
    }
}

/// Replies the values of fields.
fn reply_values(ctx: &mut Ctx<'_, '_>, fields: Range<usize>) -> Result<(), Error> {
    let args = ctx.args;
    let (entry, reply) = ctx.read_reply(1, Kind::Hash)?;
    reply.array(fields.len());
    for i in fields {
        match entry.and_then(|entry| View::of(entry).get(args.get(i))) {
            Some(text) => text.write(reply),
            None => reply.null(),
        }
    }
    Ok(())
}

/// `HGETDEL key FIELDS n field ...`.
pub fn hgetdel(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let fields = fields(ctx, 2, 1)?;
    let args = ctx.args;
    reply_values(ctx, fields.clone())?;
    remove_fields(events::HDEL, ctx, fields.map(move |i| args.get(i)))?;
    Ok(Done::Replied)
}

/// What HGETEX and HSETEX do to the times of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewTime {
    /// As HGET and HSET.
    Default,
    /// `PERSIST`: it goes.
    Persist,
    /// `KEEPTTL`: it stays.
    Keep,
    /// It is set.
    At(UnixMs),
}

impl NewTime {
    /// Reads an option that starts with argument `at`: how many arguments it has; `None` if it is
    /// none.
    fn parse(
        ctx: &Ctx<'_, '_>,
        at: usize,
        command: &'static str,
    ) -> Result<Option<(Self, usize)>, Error> {
        let word = ctx.arg(at);
        if is(word, "PERSIST") && command == "hgetex" {
            return Ok(Some((Self::Persist, 1)));
        }
        if is(word, "KEEPTTL") && command == "hsetex" {
            return Ok(Some((Self::Keep, 1)));
        }
        let forms =
            [("EX", ctx.now, 1000), ("PX", ctx.now, 1), ("EXAT", EPOCH, 1000), ("PXAT", EPOCH, 1)];
        let Some((_, from, unit)) = forms.into_iter().find(|(name, ..)| is(word, name)) else {
            return Ok(None);
        };
        let text = ctx.args.try_get(at + 1).ok_or(Error::Syntax)?;
        Ok(Some((Self::At(absolute(text, from, unit, command)?), 2)))
    }
}

/// `HGETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST] FIELDS n field ...`.
pub fn hgetex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (time, words) = NewTime::parse(ctx, 2, "hgetex")?.unwrap_or((NewTime::Default, 0));
    let fields = fields(ctx, 2 + words, 1)?;
    reply_values(ctx, fields.clone())?;
    let args = ctx.args;
    let at = match time {
        NewTime::At(at) => Some(at),
        NewTime::Persist => None,
        NewTime::Default | NewTime::Keep => return Ok(Done::Replied),
    };
    let (key, mut shown) = (ctx.key(1), fields.clone());
    let entry = ctx.peek_kind(&key, Kind::Hash)?.map(View::of);
    let changes = entry.is_some_and(|view| {
        shown.any(|i| code(view, args.get(i), |_| 0) >= if at.is_some() { -1 } else { 0 })
    });
    if changes {
        set_times(ctx, fields, 1, at)?;
    }
    Ok(Done::Replied)
}

/// Sets when fields expire, those that exist; they go if that is past.
fn set_times(
    ctx: &mut Ctx<'_, '_>,
    fields: Range<usize>,
    step: usize,
    at: Option<UnixMs>,
) -> Result<(), Error> {
    let args = ctx.args;
    let is_past = at.is_some_and(|at| ctx.is_past(at));
    let event = match at {
        Some(_) if is_past => events::HDEL,
        Some(_) => events::HEXPIRE,
        None => events::HPERSIST,
    };
    change(event, ctx, |hash, log| {
        for i in fields.step_by(step) {
            let field = args.get(i);
            if is_past {
                hash.remove(field, log);
            } else if hash.get(field).is_some() {
                hash.set_expiry(field, at.map(|at| at.0), log);
            }
        }
    })?;
    Ok(())
}

/// `HSETEX key [NX | XX] [FNX | FXX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL] FIELDS n field
/// value ...`. NX and XX are about the key, and Valkey's.
pub fn hsetex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (mut at, mut exist, mut time) = (2, None, NewTime::Default);
    let mut key_exists = None;
    while !is(ctx.arg(at), "FIELDS") {
        let word = ctx.arg(at);
        if (is(word, "FNX") || is(word, "FXX")) && exist.is_none() {
            exist = Some(is(word, "FXX"));
            at += 1;
        } else if (is(word, "NX") || is(word, "XX")) && key_exists.is_none() {
            key_exists = Some(is(word, "XX"));
            at += 1;
        } else {
            let (new, words) = NewTime::parse(ctx, at, "hsetex")?.ok_or(Error::Syntax)?;
            if time != NewTime::Default {
                return Err(Error::HsetexTimes);
            }
            time = new;
            at += words;
        }
        if at >= ctx.args.len() {
            return Err(Error::NoFields);
        }
    }
    let fields = fields(ctx, at, 2)?;
    let (args, key) = (ctx.args, ctx.key(1));
    let view = ctx.peek_kind(&key, Kind::Hash)?.map(View::of);
    let has = |i: usize| view.is_some_and(|view| view.get(args.get(i)).is_some());
    let holds = key_exists.is_none_or(|exists| view.is_some() == exists)
        && exist.is_none_or(|exist| fields.clone().step_by(2).all(|i| has(i) == exist));
    if holds {
        let pairs = fields.clone().step_by(2).map(move |i| (args.get(i), New::Arg(args, i + 1)));
        set_pairs(events::HSET, ctx, pairs, time == NewTime::Keep)?;
        if let NewTime::At(at) = time {
            set_times(ctx, fields, 2, Some(at))?;
        }
    }
    ctx.reply.integer(holds.into());
    Ok(Done::Replied)
}
