//! XREAD, XREADGROUP: entries behind ids of several streams, at once or when they come.
//!
//! A command that waits leaves a ticket in the queues of its keys, with its ids as they were when
//! it came (`$` and `+` are resolved then). It is served when a key has an entry for it; one of a
//! group also when its key or its group goes.

use keyspace::Kind;
use resp::{Args, OwnedRequest, Proto};
use value::{Stream, StreamId};

use super::deliver::group_at;
use super::reply::{Part, Rest, Run, Shown, begin_stream};
use super::{of_entry, strict_id};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::{integer, is, timeout_integer};
use crate::spec::{AtOnce, Done, Wait};

/// What the options say.
pub(super) struct Reading {
    /// Entries of each stream, at most.
    pub count: u64,
    block: Option<u64>,
    /// The argument that names the group; the consumer is the next one.
    pub group: Option<usize>,
    pub no_ack: bool,
    /// The first key, and how many there are; the ids follow them.
    first: usize,
    keys: usize,
}

/// Where one stream is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Behind this id: of XREAD the stream, of XREADGROUP what is pending for the consumer.
    Behind(StreamId),
    /// `$`: behind the last one.
    Last,
    /// `+`: the last one.
    Top,
    /// `>`: what the group has not read.
    New,
}

impl Reading {
    pub fn parse(args: Args<'_>, grouped: bool) -> Result<Self, Error> {
        let mut reading =
            Self { count: u64::MAX, block: None, group: None, no_ack: false, first: 0, keys: 0 };
        let mut at = 1;
        while at < args.len() {
            let (word, more) = (args.get(at), args.len() - 1 - at);
            if is(word, "BLOCK") && more > 0 {
                at += 1;
                reading.block = Some(timeout_integer(args.get(at))?);
            } else if is(word, "COUNT") && more > 0 {
                at += 1;
                let count = integer(args.get(at))?;
                reading.count = if count > 0 { count as u64 } else { u64::MAX };
            } else if is(word, "STREAMS") && more > 0 {
                if !more.is_multiple_of(2) {
                    return Err(if grouped {
                        Error::XreadgroupUnbalanced
                    } else {
                        Error::XreadUnbalanced
                    });
                }
                (reading.first, reading.keys) = (at + 1, more / 2);
                break;
            } else if is(word, "GROUP") && more > 1 {
                if !grouped {
                    return Err(Error::GroupInXread);
                }
                reading.group = Some(at + 1);
                at += 2;
            } else if is(word, "NOACK") {
                if !grouped {
                    return Err(Error::NoackInXread);
                }
                reading.no_ack = true;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        if reading.keys == 0 {
            return Err(Error::Syntax);
        }
        if grouped && reading.group.is_none() {
            return Err(Error::NoGroupOption);
        }
        Ok(reading)
    }

    /// Where the stream in argument `i` is read from.
    pub fn from(&self, args: Args<'_>, i: usize) -> Result<From, Error> {
        match (args.get(i + self.keys), self.group) {
            (b"$", None) => Ok(From::Last),
            (b"+", None) => Ok(From::Top),
            (b"$", Some(_)) => Err(Error::DollarInXreadgroup),
            (b">", None) => Err(Error::NewIdInXread),
            (b">", Some(_)) => Ok(From::New),
            (text, group) => {
                let id = strict_id(text, 0)?;
                // The highest id is another word for `>`: the oracle's answer.
                let is_new = group.is_some() && id == StreamId::MAX;
                Ok(if is_new { From::New } else { From::Behind(id) })
            }
        }
    }

    fn keys(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.keys
    }

    pub fn wait(&self) -> Wait {
        let timeout_ms = match self.block {
            None => Some(0),
            Some(0) => None,
            Some(ms) => Some(ms),
        };
        let (keys, kind, at_once) = (self.keys(), Kind::Stream, AtOnce::NullArray);
        let ends_without_key = self.group.is_some();
        Wait { keys, timeout_ms, kind, least: 1, further: None, ends_without_key, at_once }
    }
}

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key ... id ...`.
pub fn wait_xread(args: Args<'_>) -> Result<Wait, Error> {
    Ok(Reading::parse(args, false)?.wait())
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key ... id
/// ...`.
pub fn wait_xreadgroup(args: Args<'_>) -> Result<Wait, Error> {
    Ok(Reading::parse(args, true)?.wait())
}

fn is_grouped(args: Args<'_>) -> bool {
    is(args.get(0), "XREADGROUP")
}

/// The stream in argument `i`, if its slot is covered: who serves a waiter has only the slots of
/// its own command.
pub(super) fn peek<'b>(ctx: &'b mut Ctx<'_, '_>, i: usize) -> Result<Option<&'b Stream>, Error> {
    let key = ctx.key(i);
    if !ctx.guard.covers(key.slot) {
        return Ok(None);
    }
    Ok(ctx.peek_kind(&key, Kind::Stream)?.map(of_entry))
}

/// The run of entries of a stream behind an id.
pub(super) fn run_behind(stream: &Stream, id: StreamId, count: u64) -> Run {
    let rank = id.next().map_or(stream.len(), |next| stream.rank(next));
    Run { rank, left: (stream.len() - rank).min(count), down: false }
}

/// The last entry of a stream.
fn run_of_last(stream: &Stream) -> Run {
    let left = stream.len().min(1);
    Run { rank: stream.len() - left, left, down: false }
}

/// XREAD: what is behind the ids of all its keys, if that of one key is anything; else notes what
/// it waits for.
pub fn take(ctx: &mut Ctx<'_, '_>, wait: &Wait, at: usize) -> Result<Done, Error> {
    let args = ctx.args;
    let reading = Reading::parse(args, false)?;
    let is_first = at == wait.keys.start;
    let mut runs = Vec::new();
    let mut resolved = Vec::new();
    for i in if is_first { wait.keys.clone() } else { at..at + 1 } {
        let stream = peek(ctx, i)?;
        let from = reading.from(args, i)?;
        let last = stream.map_or(StreamId::MIN, |stream| stream.marks().last);
        let id = if let From::Behind(id) = from { id } else { last };
        resolved.push(id);
        let run = stream.map(|stream| match from {
            From::Top => run_of_last(stream),
            _ => run_behind(stream, id, reading.count),
        });
        runs.extend(run.filter(|run| run.left > 0).map(|run| (i, run)));
        if is_first {
            ctx.count_lookup(&ctx.key(i), run.is_some()); // who is served has been counted
        }
    }
    if !runs.is_empty() && !is_first {
        // Served: what the other keys have is replied, too.
        return take_all(ctx, &reading);
    }
    if runs.is_empty() {
        if is_first && wait.timeout_ms != Some(0) {
            let request = with_ids(args, reading.keys().end, &resolved);
            return Ok(Done::NothingYet(Box::new(request)));
        }
        return Ok(Done::Nothing);
    }
    Ok(reply_runs(ctx, &runs))
}

fn take_all(ctx: &mut Ctx<'_, '_>, reading: &Reading) -> Result<Done, Error> {
    let mut runs = Vec::new();
    for i in reading.keys() {
        let From::Behind(id) = reading.from(ctx.args, i)? else { continue };
        // Another kind of value in another key is not what it waited for.
        let Ok(Some(stream)) = peek(ctx, i) else { continue };
        let run = run_behind(stream, id, reading.count);
        if run.left > 0 {
            runs.push((i, run));
        }
    }
    Ok(reply_runs(ctx, &runs))
}

/// The same command with these ids.
fn with_ids(args: Args<'_>, from: usize, ids: &[StreamId]) -> OwnedRequest {
    let texts: Vec<Vec<u8>> = ids.iter().map(|id| id.to_string().into_bytes()).collect();
    let words = (0..from).map(|i| args.get(i)).chain(texts.iter().map(Vec::as_slice));
    OwnedRequest::of(words)
}

/// Replies runs of entries; many of them in steps.
fn reply_runs(ctx: &mut Ctx<'_, '_>, runs: &[(usize, Run)]) -> Done {
    begin_map(ctx, runs.len());
    let mut rest = Rest::default();
    for (i, run) in runs {
        show(ctx, *i, Shown::Run(*run), &mut rest);
    }
    rest.leave()
}

/// Replies what is shown of the stream in argument `i`, behind its name: under the lock, unless it
/// is much or something before it is.
pub(super) fn show(ctx: &mut Ctx<'_, '_>, i: usize, mut shown: Shown, rest: &mut Rest) {
    let (key, keyspace) = (ctx.key(i), ctx.guard.keyspace());
    let Some(entry) = ctx.guard.peek(ctx.db, &key) else { return };
    if shown.is_much() || !rest.is_empty() {
        let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
        rest.add(Part { key: Some(key.bytes.into()), value, shown });
    } else {
        begin_stream(&mut ctx.reply, key.bytes);
        shown.write_all(&mut ctx.reply, of_entry(entry));
    }
}

pub(super) fn begin_map(ctx: &mut Ctx<'_, '_>, streams: usize) {
    match ctx.proto() {
        Proto::Resp2 => ctx.reply.array(streams),
        Proto::Resp3 => ctx.reply.map(streams),
    }
}

/// Whether a waiting XREAD or XREADGROUP is to be served, now that the key in argument `at` was
/// changed.
pub fn is_ready(ctx: &mut Ctx<'_, '_>, at: usize) -> bool {
    let args = ctx.args;
    let Ok(reading) = Reading::parse(args, is_grouped(args)) else { return true };
    let Ok(from) = reading.from(args, at) else { return true };
    let Some(group) = reading.group else {
        // XREAD waits on when its key goes or becomes something else.
        let Ok(Some(stream)) = peek(ctx, at) else { return false };
        return matches!(from, From::Behind(id) if run_behind(stream, id, 1).left > 0);
    };
    match group_at(ctx, at, args.get(group)) {
        Ok((_, has_new)) => has_new,
        // It is told so.
        Err(_) => true,
    }
}
