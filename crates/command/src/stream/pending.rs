//! XPENDING.

use keyspace::Kind;
use value::StreamId;
use value::stream::{Group, Pending};

use super::reply::write_id;
use super::{Fault, of_entry, range_end, range_start};
use crate::ctx::Ctx;
use crate::error::Error;
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
pub fn xpending(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let wanted = Wanted::parse(ctx)?;
    let (args, now) = (ctx.args, ctx.now.0);
    let (entry, reply) = ctx.read_reply(1, Kind::Stream)?;
    let group =
        entry.map(of_entry).and_then(|stream| Some(stream.group(stream.find_group(args.get(2))?)));
    let missing = || Fault::NoKeyOrGroup { group: args.get(2).into(), key: args.get(1).into() };
    let group = group.ok_or_else(|| Error::Stream(missing()))?;
    let Some(wanted) = wanted else {
        summary(reply, group);
        return Ok(());
    };
    let is_in = |row: &Pending| {
        row.id <= wanted.end && (wanted.min_idle == 0 || now - row.at_ms >= wanted.min_idle)
    };
    let mut rows = Vec::new();
    let limit = usize::try_from(wanted.count).unwrap_or(usize::MAX);
    match wanted.consumer {
        None => {
            let all = group.pending_from(wanted.start).take_while(|row| row.id <= wanted.end);
            rows.extend(all.filter(|row| is_in(row)).take(limit).copied());
        }
        Some(at) => {
            if let Some(consumer) = group.find(args.get(at)) {
                let ids = group.consumer(consumer).pending_from(wanted.start);
                let all = ids.take_while(|id| **id <= wanted.end).filter_map(|id| group.get(*id));
                rows.extend(all.filter(is_in).take(limit));
            }
        }
    }
    reply.array(rows.len());
    for row in rows {
        reply.array(4);
        write_id(reply, row.id);
        reply.bulk(group.consumer(row.consumer).name());
        reply.integer((now - row.at_ms).max(0));
        reply.integer(row.count as i64);
    }
    Ok(())
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
