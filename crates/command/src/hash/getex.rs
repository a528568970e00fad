//! HGETDEL, HGETEX, HSETEX: values of several fields, and what becomes of the fields then.

use std::ops::Range;

use base::UnixMs;
use keyspace::Kind;

use super::change::{New, remove_fields, set_pairs};
use super::recording;
use super::times::{EPOCH, absolute, change, code, fields};
use super::view::View;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;

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
    let fields = fields.map(move |i| args.get(i));
    if remove_fields(events::HDEL, ctx, fields.clone())? > 0 {
        recording::removed(ctx, fields);
    }
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
    let (is_recording, mut changed) = (ctx.guard.is_recording(), Vec::new());
    change(event, ctx, |hash, log| {
        for i in fields.step_by(step) {
            let field = args.get(i);
            let changes = if is_past {
                hash.remove(field, log)
            } else {
                let exists = hash.get(field).is_some();
                if exists {
                    hash.set_expiry(field, at.map(|at| at.0), log);
                }
                exists
            };
            if is_recording && changes {
                changed.push(field);
            }
        }
    })?;
    let changed = changed.into_iter();
    if is_past {
        recording::removed(ctx, changed);
    } else {
        recording::timed(ctx, at, changed);
    }
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
        recording::set_arguments(ctx, fields.clone(), time == NewTime::Keep);
        if let NewTime::At(at) = time {
            set_times(ctx, fields, 2, Some(at))?;
        }
    }
    ctx.reply.integer(holds.into());
    Ok(Done::Replied)
}
