//! XPENDING.

use std::collections::VecDeque;

use keyspace::{Captured, Kind};
use resp::Args;
use value::StreamId;
use value::stream::{ConsumerId, Group, Pending};

use super::ids::{range_end, range_start};
use super::reply::{AT_ONCE_MAX, STEP_MAX, write_id};
use super::view::{of_big, of_entry};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::{Error, NoKeyOrGroup};
use crate::parse::{integer, is};

/// What XPENDING lists.
struct Wanted {
    min_idle: i64,
    start: StreamId,
    end: StreamId,
    count: u64,
    /// The argument that names a consumer.
    consumer: Option<usize>,
}

impl Wanted {
    /// `None` for the summary.
    fn parse(ctx: &Ctx<'_, '_>) -> Result<Option<Self>, Error> {
        let len = ctx.args.len();
        if len == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&len) {
            return Err(Error::Syntax);
        }
        let (mut at, mut min_idle) = (3, 0);
        if is(ctx.arg(3), "IDLE") {
            min_idle = integer(ctx.arg(4))?;
            if len < 8 {
                return Err(Error::Syntax);
            }
            at = 5;
        }
        let count = integer(ctx.arg(at + 2))?.max(0) as u64;
        let (start, end) = (range_start(ctx.arg(at))?, range_end(ctx.arg(at + 1))?);
        let consumer = (len > at + 3).then_some(at + 3);
        Ok(Some(Self { min_idle, start, end, count, consumer }))
    }
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`.
pub fn xpending(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let wanted = Wanted::parse(ctx)?;
    let (args, now) = (ctx.args, ctx.now.0);
    let keyspace = ctx.guard.keyspace();
    let (entry, reply) = ctx.read_reply(1, Kind::Stream)?;
    let group =
        entry.map(of_entry).and_then(|stream| Some(stream.group(stream.find_group(args.get(2))?)));
    let missing = || NoKeyOrGroup { key: args.get(1).into(), group: args.get(2).into() };
    let group = group.ok_or_else(missing)?;
    let Some(wanted) = wanted else {
        summary(reply, group);
        return Ok(Done::Replied);
    };
    let mut listing = Listing::new(group, wanted, args, now);
    if listing.is_short(group) {
        while !listing.step(reply, group) {}
        return Ok(Done::Replied);
    }
    let stream = entry.and_then(|entry| entry.big()).expect("it has a group");
    let at = of_big(stream).find_group(args.get(2)).expect("it was found");
    let value = keyspace.capture(stream);
    Ok(Done::Steps(Box::new(ListingReply { value, at, listing })))
}

/// A listing of pending entries in the making: the rows are collected, then their number is
/// replied, then the rows.
struct Listing {
    wanted: Wanted,
    /// Only those of this one.
    consumer: Option<ConsumerId>,
    now_ms: i64,
    /// The id from which the search resumes; `None` at the end.
    next: Option<StreamId>,
    /// What was found, in the order of ids; of each step by itself, so that nothing large is ever
    /// moved.
    rows: VecDeque<Vec<Pending>>,
    found: usize,
    /// Their number was told.
    has_begun: bool,
}

impl Listing {
    fn new(group: &Group, wanted: Wanted, args: Args<'_>, now_ms: i64) -> Self {
        let named = wanted.consumer.map(|at| group.find(args.get(at)));
        let is_empty = named == Some(None) || wanted.count == 0;
        let (consumer, next) = (named.flatten(), Some(wanted.start).filter(|_| !is_empty));
        Self { wanted, consumer, now_ms, next, rows: VecDeque::new(), found: 0, has_begun: false }
    }

    /// True if few rows need be looked at.
    fn is_short(&self, group: &Group) -> bool {
        let all = match self.consumer {
            Some(id) => group.consumer(id).pending(),
            None => group.pending(),
        };
        let most = if self.wanted.min_idle == 0 { all.min(self.wanted.count) } else { all };
        most <= AT_ONCE_MAX
    }

    /// Does one step; returns true at the end.
    fn step(&mut self, reply: &mut resp::Reply<'_>, group: &Group) -> bool {
        if let Some(from) = self.next {
            match self.consumer {
                None => self.find(group.pending_from(from).copied()),
                Some(id) => {
                    let ids = group.consumer(id).pending_from(from);
                    self.find(ids.filter_map(|id| group.get(*id)));
                }
            }
            return false;
        }
        if !self.has_begun {
            reply.array(self.found);
            self.has_begun = true;
        }
        for row in self.rows.pop_front().unwrap_or_default() {
            reply.array(4);
            write_id(reply, row.id);
            reply.bulk(group.owner_name(&row));
            let is_released = row.consumer == ConsumerId::NOBODY;
            let idle = self.now_ms.saturating_sub(row.at_ms).max(0);
            reply.integer(if is_released { -1 } else { idle });
            reply.integer(row.count as i64);
        }
        self.rows.is_empty()
    }

    /// Looks at so many rows.
    fn find(&mut self, rows: impl Iterator<Item = Pending>) {
        let (mut looked, mut last, mut found) = (0, None, Vec::new());
        let wanted = usize::try_from(self.wanted.count).unwrap_or(usize::MAX) - self.found;
        for row in rows.take_while(|row| row.id <= self.wanted.end).take(STEP_MAX as usize) {
            (looked, last) = (looked + 1, Some(row.id));
            let is_released = row.consumer == ConsumerId::NOBODY;
            let idle = if is_released { i64::MAX } else { self.now_ms.saturating_sub(row.at_ms) };
            if self.wanted.min_idle == 0 || idle >= self.wanted.min_idle {
                found.push(row);
                if found.len() == wanted {
                    looked = 0; // the last one
                    break;
                }
            }
        }
        self.next = last.filter(|_| looked == STEP_MAX).and_then(StreamId::next);
        self.found += found.len();
        if !found.is_empty() {
            self.rows.push_back(found);
        }
    }
}

/// A long listing of a stream as it was, which is replied in steps.
struct ListingReply {
    value: Captured,
    at: usize,
    listing: Listing,
}

impl Resumable for ListingReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(
            self.listing.step(&mut ctx.reply, of_big(&self.value).group(self.at)),
        ))
    }
}

fn summary(reply: &mut resp::Reply<'_>, group: &Group) {
    reply.array(4);
    reply.integer(group.pending() as i64);
    let (Some(first), Some(last)) =
        (group.pending_from(StreamId::MIN).next(), group.last_pending())
    else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    write_id(reply, first.id);
    write_id(reply, last);
    let consumers = group.consumers().filter(|(_, consumer)| consumer.pending() > 0);
    let consumers: Vec<_> = consumers.collect();
    reply.array(consumers.len());
    for (_, consumer) in consumers {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending() as i64);
    }
}
