//! Removing members: ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.

use std::ops::Range;

use keyspace::{EntryMut, Event, Kind};
use value::zset::View;
use value::{Big, Log};

use super::aside::Aside;
use super::bounds;
use super::cutting::{Answer, Cutting};
use super::view::{big_mut, view_of};
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;
use crate::prepare::{self, Found, Preparation, Sources};

/// More members than this are removed with a clone as the way back, instead of one by one.
const LOGGED_MAX: u64 = 64;

/// `ZREM key member [member ...]`.
pub fn zrem(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (members, settings, before) = (ctx.args.from(2), ctx.settings, ctx.guard.counted());
    let mut removed = 0;
    if let Some(mut entry) = ctx.entry_mut_kind(events::ZREM, 1, Kind::Zset)? {
        if let Some(packed) = entry.entry().packed() {
            let mut aside = Aside::of(settings, entry.entry().encoding(), packed);
            for member in members {
                removed += i64::from(aside.remove(member));
            }
            if removed > 0 {
                aside.replace(entry);
            }
        } else if members.iter().any(|member| view_of(entry.entry()).score(member).is_some()) {
            removed = entry.edit(|big, log| {
                let zset = big_mut(big);
                members.iter().map(|member| i64::from(zset.remove(member, log).is_some())).sum()
            });
            remove_if_empty(entry);
        }
    }
    ctx.guard.count_as(before, removed as u64);
    ctx.reply.integer(removed);
    Ok(Done::Replied)
}

fn remove_if_empty(entry: EntryMut<'_, '_>) {
    if view_of(entry.entry()).is_empty() {
        entry.remove();
    }
}

/// `ZREMRANGEBYRANK key start stop`.
pub fn zremrangebyrank(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (start, stop) = (integer(ctx.arg(2))?, integer(ctx.arg(3))?);
    remove_range(events::ZREMRANGEBYRANK, ctx, |zset| bounds::ranks(start, stop, zset.len()))
}

/// `ZREMRANGEBYSCORE key min max`.
pub fn zremrangebyscore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let range = bounds::scores(ctx.arg(2), ctx.arg(3))?;
    remove_range(events::ZREMRANGEBYSCORE, ctx, |zset| zset.score_ranks(&range))
}

/// `ZREMRANGEBYLEX key min max`.
pub fn zremrangebylex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let range = bounds::members(ctx.arg(2), ctx.arg(3))?;
    remove_range(events::ZREMRANGEBYLEX, ctx, |zset| zset.lex_ranks(&range, false, 0))
}

fn remove_range(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    ranks: impl FnOnce(View<'_>) -> Range<u64>,
) -> Result<Done, Error> {
    let tries = match prepare::found::<Cutting>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let (settings, before) = (ctx.settings, ctx.guard.counted());
    let mut removed = 0;
    if let Some(entry) = ctx.entry_mut_kind(event, 1, Kind::Zset)? {
        let ranks = ranks(view_of(entry.entry()));
        removed = ranks.end - ranks.start;
        if is_long_removal(settings, &entry, &ranks) {
            return remove_ahead(event, ctx, 1..2, ranks, Answer::Count, tries);
        }
        remove_ranks(settings, entry, ranks);
    }
    ctx.guard.count_as(before, removed);
    ctx.reply.integer(removed as i64);
    Ok(Done::Replied)
}

/// Whether removing these ranks takes long: they are many, but not the whole set.
pub(super) fn is_long_removal(
    settings: &Settings,
    entry: &EntryMut<'_, '_>,
    ranks: &Range<u64>,
) -> bool {
    let count = ranks.end.saturating_sub(ranks.start);
    count > settings.at_once_elements && entry.entry().big().is_some_and(|big| count < big.len())
}

/// Removes ranks of the big sorted set in the last of these keys ahead; the others do not exist.
pub(super) fn remove_ahead(
    event: Event,
    ctx: &mut Ctx<'_, '_>,
    keys: Range<usize>,
    ranks: Range<u64>,
    answer: Answer,
    tries: u32,
) -> Result<Done, Error> {
    let keyspace = ctx.guard.keyspace();
    let key = keys.end - 1;
    let hashed = ctx.key(key);
    let entry = ctx.peek_kind(&hashed, Kind::Zset)?;
    let big = entry.and_then(|entry| entry.big()).map(|big| keyspace.capture(big));
    let big = big.expect("a big sorted set");
    let sources = Sources::of(ctx, keys, tries);
    prepare::begin(ctx, Cutting::new(event, keyspace, &big, sources, key, ranks, answer))
}

/// Removes the members of these ranks, which are there; the key goes with the last one.
pub(super) fn remove_ranks(settings: &Settings, mut entry: EntryMut<'_, '_>, ranks: Range<u64>) {
    let zset = view_of(entry.entry());
    if ranks.is_empty() {
        return;
    }
    if ranks == (0..zset.len()) {
        return entry.remove();
    }
    if let View::Small(packed) = zset {
        let mut aside = Aside::of(settings, entry.entry().encoding(), packed);
        aside.remove_ranks(ranks);
        return aside.replace(entry);
    }
    entry.edit(|big, log| remove_from_big(big, log, ranks));
}

fn remove_from_big(big: &mut Big, log: &mut Log, ranks: Range<u64>) {
    let was = big.clone();
    let members =
        super::view::big_of(&was).iter_from(ranks.start).take((ranks.end - ranks.start) as usize);
    if ranks.end - ranks.start <= LOGGED_MAX {
        // The clone would cost copies of pages: it is gone before anything changes.
        let members: Vec<Vec<u8>> = members.map(|scored| scored.member.to_vec()).collect();
        drop(was);
        for member in members {
            big_mut(big).remove(&member, log);
        }
        return;
    }
    log.capture(big);
    big_mut(big).cut(ranks);
}
