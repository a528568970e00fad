//! XINFO.

use keyspace::Kind;
use resp::Reply;
use value::stream::{Entry, Group};
use value::{Stream, StreamId};

use super::reply::{write_entry, write_id};
use super::{Fault, of_big, of_entry};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::spec::Resumable;
use keyspace::Captured;

/// Entries that FULL lists unless told otherwise.
const COUNT_DEFAULT: u64 = 10;
/// A stream of more pages is looked at without its lock.
const PAGES_AT_ONCE: usize = 2000;
/// Bytes of an id in Redis's index.
const ID_BYTES: usize = 16;

/// `XINFO STREAM key [FULL [COUNT count]]`.
pub fn xinfo_stream(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let len = ctx.args.len();
    let keyspace = ctx.guard.keyspace();
    let args = ctx.args;
    let fault = || Fault::Subcommand { container: "XINFO", name: args.get(1).into() };
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
            return Err(Error::Stream(fault()));
        }
        if len == 6 {
            let wanted = integer(args.get(5))?;
            count = if wanted < 0 { COUNT_DEFAULT } else { wanted as u64 };
        }
    }
    let what = full.then_some(count);
    let stream = of_entry(entry);
    if stream.nodes() <= PAGES_AT_ONCE
        && (!full || count != 0 && count <= super::reply::AT_ONCE_MAX)
    {
        describe(reply, stream, what);
    } else {
        let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
        ctx.resume(Box::new(Rest { value, what }));
    }
    Ok(())
}

/// A stream of many pages, as it was.
struct Rest {
    value: Captured,
    what: Option<u64>,
}

impl Resumable for Rest {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        describe(&mut ctx.reply, of_big(&self.value), self.what);
        Ok(true)
    }
}

fn limit(count: u64) -> usize {
    if count == 0 { usize::MAX } else { count as usize }
}

fn describe(reply: &mut Reply<'_>, stream: &Stream, full: Option<u64>) {
    let marks = stream.marks();
    reply.map(if full.is_some() { 9 } else { 10 });
    number(reply, "length", stream.len());
    let (keys, nodes) = index_size(stream);
    number(reply, "radix-tree-keys", keys);
    number(reply, "radix-tree-nodes", nodes);
    named_id(reply, "last-generated-id", marks.last);
    named_id(reply, "max-deleted-entry-id", marks.max_deleted);
    number(reply, "entries-added", marks.added);
    named_id(reply, "recorded-first-entry-id", stream.first_id());
    let Some(count) = full else {
        number(reply, "groups", stream.groups().len() as u64);
        reply.bulk(b"first-entry");
        entry_or_null(reply, stream.iter().next());
        reply.bulk(b"last-entry");
        entry_or_null(reply, stream.iter_back_from(stream.len()).next());
        return;
    };
    reply.bulk(b"entries");
    let shown = (limit(count) as u64).min(stream.len());
    reply.array(shown as usize);
    stream.iter().take(shown as usize).for_each(|entry| write_entry(reply, entry));
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    for (name, group) in stream.groups() {
        describe_group(reply, stream, name, group, limit(count));
    }
}

fn describe_group(reply: &mut Reply<'_>, stream: &Stream, name: &[u8], group: &Group, max: usize) {
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(name);
    named_id(reply, "last-delivered-id", group.last);
    counts(reply, stream, group);
    number(reply, "pel-count", group.pending());
    reply.bulk(b"pending");
    reply.array(max.min(group.pending() as usize));
    for row in group.pending_from(StreamId::MIN).take(max) {
        reply.array(4);
        write_id(reply, row.id);
        reply.bulk(group.consumer(row.consumer).name());
        reply.integer(row.at_ms);
        reply.integer(row.count as i64);
    }
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    for (_, consumer) in group.consumers() {
        reply.map(5);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        reply.bulk(b"seen-time");
        reply.integer(consumer.seen_ms);
        reply.bulk(b"active-time");
        reply.integer(consumer.active_ms);
        number(reply, "pel-count", consumer.pending());
        reply.bulk(b"pending");
        reply.array(max.min(consumer.pending() as usize));
        for id in consumer.pending_from(StreamId::MIN).take(max) {
            let row = group.get(*id).expect("what is pending for a consumer is pending");
            reply.array(3);
            write_id(reply, row.id);
            reply.integer(row.at_ms);
            reply.integer(row.count as i64);
        }
    }
}

fn counts(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    let or_null = |reply: &mut Reply<'_>, value: Option<i64>| match value {
        Some(value) => reply.integer(value),
        None => reply.null(),
    };
    reply.bulk(b"entries-read");
    or_null(reply, group.read.map(|read| read as i64));
    reply.bulk(b"lag");
    or_null(reply, stream.lag(group));
}

fn number(reply: &mut Reply<'_>, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(value as i64);
}

fn named_id(reply: &mut Reply<'_>, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    write_id(reply, id);
}

fn entry_or_null(reply: &mut Reply<'_>, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => write_entry(reply, entry),
        None => reply.null(),
    }
}

/// The keys and nodes of the radix tree in which Redis would keep the pages: a key is an id of 16 bytes; a node is a
/// run of bytes without a fork, a fork, or an end. O(pages).
fn index_size(stream: &Stream) -> (u64, u64) {
    let mut index = Index::default();
    let mut last: Option<[u8; ID_BYTES]> = None;
    for page in stream.pages() {
        let key = page.master().to_bytes();
        if let Some(last) = last {
            index.end(key.iter().zip(&last).take_while(|(a, b)| a == b).count());
        }
        last = Some(key);
    }
    match last {
        None => (0, 1),
        Some(_) => index.finish(),
    }
}

/// What was counted of an index whose keys come in order.
#[derive(Default)]
struct Index {
    keys: u64,
    nodes: u64,
    /// How many bytes are before the forks on the way to the last key.
    forks: Vec<usize>,
}

impl Index {
    /// The last key is one; the next one shares so many bytes with it.
    fn end(&mut self, shared: usize) {
        let fork = self.forks.last().map_or(shared, |fork| shared.max(*fork));
        self.count_end(Some(fork));
        while let Some(&fork) = self.forks.last()
            && fork > shared
        {
            self.forks.pop();
            let above = self.forks.last().map_or(shared, |above| shared.max(*above));
            self.nodes += 1 + u64::from(fork > above + 1);
        }
        if self.forks.last() != Some(&shared) {
            self.forks.push(shared);
        }
    }

    /// A key's end, and the run between it and the fork above.
    fn count_end(&mut self, fork: Option<usize>) {
        self.keys += 1;
        self.nodes += 1 + u64::from(fork.is_none_or(|fork| fork + 1 < ID_BYTES));
    }

    fn finish(mut self) -> (u64, u64) {
        self.count_end(self.forks.last().copied());
        while let Some(fork) = self.forks.pop() {
            let start = self.forks.last().map_or(0, |above| above + 1);
            self.nodes += 1 + u64::from(fork > start);
        }
        (self.keys, self.nodes)
    }
}

/// `XINFO GROUPS key`.
pub fn xinfo_groups(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
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
    Ok(())
}

/// `XINFO CONSUMERS key group`.
pub fn xinfo_consumers(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let (args, now) = (ctx.args, ctx.now.0);
    let (entry, reply) = ctx.read_reply(2, Kind::Stream)?;
    let stream = of_entry(entry.ok_or(Error::NoSuchKey)?);
    let fault = || Fault::NoGroup { group: args.get(3).into(), key: args.get(2).into() };
    let at = stream.find_group(args.get(3)).ok_or_else(|| Error::Stream(fault()))?;
    let group = stream.group(at);
    reply.array(group.consumers().len());
    for (_, consumer) in group.consumers() {
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(consumer.name());
        number(reply, "pending", consumer.pending());
        reply.bulk(b"idle");
        reply.integer((now - consumer.seen_ms).max(0));
        reply.bulk(b"inactive");
        reply.integer(if consumer.active_ms < 0 { -1 } else { (now - consumer.active_ms).max(0) });
    }
    Ok(())
}
