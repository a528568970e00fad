//! Taking members from an end: ZPOPMIN, ZPOPMAX, ZMPOP. Blocking commands use [`pop`] too.

use base::DbIndex;
use base::num::parse_i64;
use keyspace::{Event, Guard, Key, Kind};
use resp::{Args, Reply};
use std::ops::Range;
use value::packed::Elem;

use super::cutting::{Answer, Cutting};
use super::remove::{is_long_removal, remove_ahead, remove_ranks};
use super::reply::{write_header, write_scored};
use super::snapshot::{MembersReply, Shown, ZsetSnapshot};
use super::view::view_of;
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use crate::prepare::{self, Found, Preparation};
use crate::spec::KeyRuns;

/// So many members at most are copied for their reply; of more, what held them is kept.
const COPIED_MAX: u64 = 64;

/// From which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The lowest scores.
    Min,
    /// The highest scores.
    Max,
}

impl End {
    /// The command that takes members from here.
    pub fn pop(self) -> &'static [u8] {
        if self == Self::Min { b"ZPOPMIN" } else { b"ZPOPMAX" }
    }

    /// What it is called that members were taken from here.
    fn popped(self) -> Event {
        if self == Self::Min { events::ZPOPMIN } else { events::ZPOPMAX }
    }
}

/// Members that were taken, in the order in which they were.
pub struct Popped(Taken);

enum Taken {
    Few(Vec<(Box<[u8]>, f64)>),
    Many(MembersReply),
}

impl Popped {
    /// How many.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Taken::Few(pairs) => pairs.len() as u64,
            Taken::Many(rest) => rest.shown.len(),
        }
    }

    /// The first one and its score.
    pub fn first(&self) -> Option<(&[u8], f64)> {
        match &self.0 {
            Taken::Few(pairs) => pairs.first().map(|(member, score)| (&**member, *score)),
            Taken::Many(_) => None,
        }
    }

    /// Replies an array of them: each with its score as an array of its own if `nested`, else as
    /// `WITHSCORES` does. Returns what is left to be written in steps.
    pub fn reply(
        self,
        reply: &mut Reply<'_>,
        nested: bool,
    ) -> Option<Box<dyn crate::ctx::Resumable>> {
        if nested {
            reply.array(self.len() as usize);
        } else {
            write_header(reply, self.len(), true);
        }
        match self.0 {
            Taken::Few(pairs) => {
                for (member, score) in &pairs {
                    if nested && reply.proto() == resp::Proto::Resp2 {
                        reply.array(2);
                    }
                    write_scored(reply, Elem::Bytes(member), *score, true);
                }
                None
            }
            Taken::Many(mut rest) => {
                rest.shown.nested = nested;
                let is_done = rest.shown.write(rest.zset.view(), reply);
                if is_done { None } else { Some(Box::new(rest)) }
            }
        }
    }
}

/// Takes up to `count` members from an end of the sorted set under a key; `None` if there is no
/// such key. With the last member the key goes.
pub fn pop(
    guard: &mut Guard<'_>,
    settings: &Settings,
    db: DbIndex,
    key: &Key<'_>,
    end: End,
    count: u64,
) -> Result<Option<Popped>, Error> {
    let (keyspace, before) = (guard.keyspace(), guard.counted());
    let Some(entry) = guard.entry_mut(end.popped(), db, key) else { return Ok(None) };
    if entry.kind() != Kind::Zset {
        return Err(Error::WrongType);
    }
    let zset = view_of(entry.entry());
    let len = zset.len();
    let count = count.min(len);
    let (ranks, rev) = match end {
        End::Min => (0..count, false),
        End::Max => (len - count..len, true),
    };
    let taken = if count <= COPIED_MAX {
        let mut pairs = Vec::with_capacity(count as usize);
        zset.each(ranks.clone(), rev, |member, score| {
            pairs.push((member.to_vec().into(), score));
            true
        });
        Taken::Few(pairs)
    } else {
        let zset = ZsetSnapshot::new(keyspace, entry.entry());
        let shown = Shown { ranks: ranks.clone(), rev, scores: true, nested: false };
        Taken::Many(MembersReply { zset, shown })
    };
    remove_ranks(settings, entry, ranks);
    guard.count_as(before, count);
    Ok(Some(Popped(taken)))
}

/// `ZPOPMIN key [count]`.
pub fn zpopmin(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    pop_from_one(ctx, End::Min)
}

/// `ZPOPMAX key [count]`.
pub fn zpopmax(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    pop_from_one(ctx, End::Max)
}

fn pop_from_one(ctx: &mut Ctx<'_, '_>, end: End) -> Result<Done, Error> {
    let count = match ctx.args.len() {
        2 => None,
        3 => Some(parse_i64(ctx.arg(2)).filter(|n| *n >= 0).ok_or(Error::NotPositive)?),
        _ => return Err(Error::Syntax),
    };
    if count.is_some_and(|count| count > 1)
        && let Some(done) = pop_ahead(ctx, 1..2, end, count.unwrap_or(1) as u64, false)?
    {
        return Ok(done);
    }
    let key = ctx.key(1);
    let popped = pop(ctx.guard, ctx.settings, ctx.db, &key, end, count.unwrap_or(1) as u64)?;
    let Some(popped) = popped else {
        ctx.reply.array(0);
        return Ok(Done::Replied);
    };
    if count.is_none()
        && let Some((member, score)) = popped.first()
    {
        ctx.reply.array(2);
        ctx.reply.bulk(member);
        ctx.reply.double(score);
        return Ok(Done::Replied);
    }
    Ok(popped.reply(&mut ctx.reply, false).map_or(Done::Replied, Done::Steps))
}

/// Pops many members, but not all, of the first of these keys that exists ahead; `None` if it is
/// something else that is to be done.
fn pop_ahead(
    ctx: &mut Ctx<'_, '_>,
    keys: Range<usize>,
    end: End,
    count: u64,
    nested: bool,
) -> Result<Option<Done>, Error> {
    let tries = match prepare::found::<Cutting>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx).map(Some),
        Found::Begin(tries) => tries,
    };
    let (first, settings) = (keys.start, ctx.settings);
    for at in keys {
        let key = ctx.key(at);
        let Some(entry) = ctx.guard.entry_mut(end.popped(), ctx.db, &key) else { continue };
        if entry.kind() != Kind::Zset {
            break;
        }
        let len = view_of(entry.entry()).len();
        let ranks = match end {
            End::Min => 0..count.min(len),
            End::Max => len - count.min(len)..len,
        };
        if !is_long_removal(settings, &entry, &ranks) {
            break;
        }
        let answer = Answer::Members { rev: end == End::Max, behind_key: nested.then_some(at) };
        return remove_ahead(end.popped(), ctx, first..at + 1, ranks, answer, tries).map(Some);
    }
    Ok(None)
}

/// The arguments of ZMPOP, which BZMPOP has behind its timeout.
#[derive(Clone, Copy, Debug)]
pub struct ManyKeys {
    /// The argument that is the first key.
    pub first: usize,
    /// The argument behind the last key.
    pub behind: usize,
    /// From which end.
    pub end: End,
    /// Members at most.
    pub count: u64,
}

impl ManyKeys {
    /// Reads `numkeys key [key ...] MIN | MAX [COUNT count]` from argument `at` on.
    pub fn parse(args: Args<'_>, at: usize) -> Result<Self, Error> {
        let positive = |at: usize| {
            let number = args.try_get(at).and_then(parse_i64).filter(|n| *n > 0);
            number.map(|n| n as u64)
        };
        let keys = positive(at).ok_or(Error::NumKeysPositive)?;
        let (first, left) = (at + 1, args.len() - at - 1);
        if keys >= left as u64 {
            return Err(Error::Syntax);
        }
        let behind = first + keys as usize;
        let end = match args.get(behind) {
            word if is(word, "MIN") => End::Min,
            word if is(word, "MAX") => End::Max,
            _ => return Err(Error::Syntax),
        };
        let mut count = None;
        let mut at = behind + 1;
        while at < args.len() {
            if count.is_some() || at + 1 == args.len() || !is(args.get(at), "COUNT") {
                return Err(Error::Syntax);
            }
            count = Some(positive(at + 1).ok_or(Error::CountPositive)?);
            at += 2;
        }
        let count = count.unwrap_or(1);
        Ok(Self { first, behind, end, count })
    }
}

/// The keys of ZMPOP.
pub fn zmpop_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    let many = ManyKeys::parse(args, 1)?;
    Ok(KeyRuns::of(many.first..many.behind))
}

/// `ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]`.
pub fn zmpop(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let many = ManyKeys::parse(ctx.args, 1)?;
    let keys = many.first..many.behind;
    if let Some(done) = pop_ahead(ctx, keys.clone(), many.end, many.count, true)? {
        return Ok(done);
    }
    for at in keys {
        match pop_many(ctx, at, &many)? {
            Done::Nothing => {}
            done => return Ok(done),
        }
    }
    ctx.reply.null_array();
    Ok(Done::Replied)
}

/// Pops from the key in argument `at`, and replies the key and the members; nothing if it does not
/// exist.
pub fn pop_many(ctx: &mut Ctx<'_, '_>, at: usize, many: &ManyKeys) -> Result<Done, Error> {
    let key = ctx.key(at);
    let popped = pop(ctx.guard, ctx.settings, ctx.db, &key, many.end, many.count)?;
    let Some(popped) = popped else { return Ok(Done::Nothing) };
    ctx.reply.array(2);
    ctx.reply.bulk(key.bytes);
    Ok(popped.reply(&mut ctx.reply, true).map_or(Done::Replied, Done::Steps))
}
