//! Intervals of a sorted set: ZRANGE and its many older names, and ZRANGESTORE.

use std::ops::Range;

use keyspace::Kind;
use resp::Args;
use value::packed::Elem;
use value::zset::{LexRange, ScoreRange, View};

use super::aside::store;
use super::bounds;
use super::combining::{Building, Storing};
use super::inputs::Input;
use super::reply::write_header;
use super::snapshot::{MembersReply, Shown, ZsetSnapshot};
use super::view::view_of;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation, Sources};

/// What the ends of an interval are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// What a command's name says already.
#[derive(Clone, Copy)]
struct Form {
    /// `None` if options say it.
    by: Option<By>,
    /// `None` if options say it.
    rev: Option<bool>,
    /// Where the interval begins.
    at: usize,
    /// The members are stored, not replied.
    is_store: bool,
}

enum Ends<'a> {
    Rank(i64, i64),
    Score(ScoreRange),
    Lex(LexRange<'a>),
}

/// All arguments.
struct Query<'a> {
    ends: Ends<'a>,
    rev: bool,
    scores: bool,
    /// Members left out, and members at most.
    limit: (i64, i64),
}

impl<'a> Query<'a> {
    fn parse(args: Args<'a>, form: Form) -> Result<Self, Error> {
        let Options { by, rev, limit, scores } = Options::parse(args, form)?;
        let by = form.by.or(by).unwrap_or(By::Rank);
        let rev = form.rev.or(rev).unwrap_or(false);
        // All from the first on is what ranks are without a limit, too: it is not looked at.
        if limit.is_some_and(|(_, count)| count != -1) && by == By::Rank {
            return Err(Error::LimitByRank);
        }
        if scores && by == By::Lex {
            return Err(Error::ScoresByLex);
        }
        let (first, second) = (args.get(form.at), args.get(form.at + 1));
        let (min, max) = if rev { (second, first) } else { (first, second) };
        let ends = match by {
            By::Rank => Ends::Rank(integer(first)?, integer(second)?),
            By::Score => Ends::Score(bounds::scores(min, max)?),
            By::Lex => Ends::Lex(bounds::members(min, max)?),
        };
        Ok(Self { ends, rev, scores, limit: limit.unwrap_or((0, -1)) })
    }

    /// The ranks that it selects.
    fn ranks(&self, zset: View<'_>) -> Range<u64> {
        let (offset, count) = self.limit;
        let offset = u64::try_from(offset);
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let (ranks, offset) = match &self.ends {
            Ends::Rank(start, stop) => {
                let len = zset.len();
                let ranks = bounds::ranks(*start, *stop, len);
                return if self.rev { len - ranks.end..len - ranks.start } else { ranks };
            }
            Ends::Score(range) => (zset.score_ranks(range), offset),
            Ends::Lex(range) => {
                (zset.lex_ranks(range, self.rev, offset.unwrap_or(0)), offset.map(|_| 0))
            }
        };
        let Ok(offset) = offset else { return 0..0 };
        if self.rev {
            let end = ranks.end.saturating_sub(offset).max(ranks.start);
            ranks.start.max(end.saturating_sub(count))..end
        } else {
            let start = ranks.start.saturating_add(offset).min(ranks.end);
            start..start.saturating_add(count).min(ranks.end)
        }
    }
}

/// The words behind an interval.
struct Options {
    by: Option<By>,
    rev: Option<bool>,
    limit: Option<(i64, i64)>,
    scores: bool,
}

impl Options {
    fn parse(args: Args<'_>, form: Form) -> Result<Self, Error> {
        let mut options = Self { by: None, rev: None, limit: None, scores: false };
        let mut at = form.at + 2;
        while let Some(word) = args.try_get(at) {
            if !form.is_store && is(word, "WITHSCORES") {
                options.scores = true;
            } else if is(word, "LIMIT") && at + 2 < args.len() {
                options.limit = Some((integer(args.get(at + 1))?, integer(args.get(at + 2))?));
                at += 2;
            } else if form.rev.or(options.rev).is_none() && is(word, "REV") {
                options.rev = Some(true);
            } else if form.by.or(options.by).is_none() && is(word, "BYLEX") {
                options.by = Some(By::Lex);
            } else if form.by.or(options.by).is_none() && is(word, "BYSCORE") {
                options.by = Some(By::Score);
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`.
pub fn zrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, None, None)
}

/// `ZREVRANGE key start stop [WITHSCORES]`.
pub fn zrevrange(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, Some(By::Rank), Some(true))
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`.
pub fn zrangebyscore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, Some(By::Score), Some(false))
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`.
pub fn zrevrangebyscore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, Some(By::Score), Some(true))
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`.
pub fn zrangebylex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, Some(By::Lex), Some(false))
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`.
pub fn zrevrangebylex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, Some(By::Lex), Some(true))
}

fn show(ctx: &mut Ctx<'_, '_>, by: Option<By>, rev: Option<bool>) -> Result<Done, Error> {
    let query = Query::parse(ctx.args, Form { by, rev, at: 2, is_store: false })?;
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    let Some(entry) = entry else {
        reply.array(0);
        return Ok(Done::Replied);
    };
    let zset = view_of(entry);
    let ranks = query.ranks(zset);
    let mut shown = Shown { ranks, rev: query.rev, scores: query.scores, nested: false };
    write_header(reply, shown.len(), shown.scores);
    if !shown.write(zset, reply) {
        let zset = ZsetSnapshot::new(keyspace, entry);
        return Ok(Done::Steps(Box::new(MembersReply { zset, shown })));
    }
    Ok(Done::Replied)
}

/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`.
pub fn zrangestore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let query = Query::parse(ctx.args, Form { by: None, rev: None, at: 3, is_store: true })?;
    let tries = match prepare::found::<Storing>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let mut members: Vec<(Vec<u8>, f64)> = Vec::new();
    let (keyspace, at_once) = (ctx.guard.keyspace(), ctx.settings.at_once_elements);
    if let Some(entry) = ctx.read_kind(2, Kind::Zset)? {
        let zset = view_of(entry);
        let ranks = query.ranks(zset);
        if let Some(big) = entry.big().filter(|_| ranks.end.saturating_sub(ranks.start) > at_once) {
            let input = Input::Big(keyspace.capture(big));
            let sources = Sources::of(ctx, 2..3, tries);
            let building = Building::some(keyspace, input, ranks);
            let event = events::ZRANGESTORE;
            return prepare::begin(ctx, Storing { sources, building, event });
        }
        let take = |member: Elem<'_>, score| {
            members.push((member.to_vec(), score));
            true
        };
        zset.each(ranks, false, take);
    }
    let key = ctx.key(1);
    store(events::ZRANGESTORE, ctx.guard, ctx.settings, ctx.db, &key, &members);
    ctx.reply.integer(members.len() as i64);
    Ok(Done::Replied)
}
