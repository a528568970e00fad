//! XINFO.

use keyspace::{Captured, Kind};

use super::describe::{Description, counts, named_id, number};
use super::view::{of_big, of_entry};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::{Error, NoGroup};
use crate::parse::{integer, is};

/// Entries that FULL lists unless told otherwise.
const COUNT_DEFAULT: u64 = 10;
/// A stream of more nodes is looked at without its lock.
const NODES_AT_ONCE: usize = 2000;

/// `XINFO STREAM key [FULL [COUNT count]]`.
pub fn xinfo_stream(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let len = ctx.args.len();
    let keyspace = ctx.guard.keyspace();
    let args = ctx.args;
    let full = len > 3;
    let mut count = COUNT_DEFAULT;
    let (entry, reply) = ctx.read_reply(2, Kind::Stream)?;
    let Some(entry) = entry else { return Err(Error::NoSuchKey) };
    if full {
        if !is(args.get(3), "FULL")
            || len == 4 + 1
            || len > 6
            || len == 6 && !is(args.get(4), "COUNT")
        {
            return Err(Error::subcommand_syntax("XINFO", args.get(1)));
        }
        if len == 6 {
            let wanted = integer(args.get(5))?;
            count = if wanted < 0 { COUNT_DEFAULT } else { wanted as u64 };
        }
    }
    let mut description = Description::new(full.then_some(count));
    let stream = of_entry(entry);
    if stream.nodes() <= NODES_AT_ONCE
        && (!full || count != 0 && count <= super::reply::AT_ONCE_MAX)
    {
        while !description.step(reply, stream) {}
    } else {
        let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
        return Ok(Done::Steps(Box::new(DescriptionReply { value, description })));
    }
    Ok(Done::Replied)
}

/// The description of a large stream as it was, which is replied in steps.
struct DescriptionReply {
    value: Captured,
    description: Description,
}

impl Resumable for DescriptionReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(self.description.step(&mut ctx.reply, of_big(&self.value))))
    }
}

/// `XINFO GROUPS key`.
pub fn xinfo_groups(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (entry, reply) = ctx.read_reply(2, Kind::Stream)?;
    let stream = of_entry(entry.ok_or(Error::NoSuchKey)?);
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        number(reply, "consumers", group.consumers().len() as u64);
        number(reply, "pending", group.pending());
        named_id(reply, "last-delivered-id", group.last);
        counts(reply, stream, group);
    }
    Ok(Done::Replied)
}

/// `XINFO CONSUMERS key group`.
pub fn xinfo_consumers(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (args, now) = (ctx.args, ctx.now.0);
    let (entry, reply) = ctx.read_reply(2, Kind::Stream)?;
    let stream = of_entry(entry.ok_or(Error::NoSuchKey)?);
    let missing = || NoGroup { group: args.get(3).into(), key: args.get(2).into() };
    let at = stream.find_group(args.get(3)).ok_or_else(missing)?;
    let group = stream.group(at);
    reply.array(group.consumers().len());
    for (_, consumer) in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        number(reply, "pending", consumer.pending());
        reply.bulk(b"idle");
        reply.integer(now.saturating_sub(consumer.seen_ms).max(0));
        reply.bulk(b"inactive");
        let inactive = now.saturating_sub(consumer.active_ms).max(0);
        reply.integer(if consumer.active_ms < 0 { -1 } else { inactive });
    }
    Ok(Done::Replied)
}
