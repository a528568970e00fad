//! XREAD, XREADGROUP: entries behind ids of several streams, at once or when they come.
//!
//! A command that waits leaves a ticket in the queues of its keys. `$` and `+` are resolved before
//! it waits. It is served when a key has an entry for it; XREADGROUP is also served, with an error,
//! when its key or its group is deleted.

use resp::{Args, OwnedRequest};
use value::StreamId;

use super::consumers::group_at;
use super::reading::{From, Reading};
use super::reply::{LongReply, Run, Shown, begin_map, show};
use super::view::peek;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::is;
use crate::spec::Wait;

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

/// XREAD: replies the entries behind the ids of all its keys. If no key has any, the command waits.
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
            From::Top => Run::of_last(stream),
            _ => Run::behind(stream, id, reading.count),
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
        let run = Run::behind(stream, id, reading.count);
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
    let mut long = LongReply::default();
    for (i, run) in runs {
        show(ctx, *i, Shown::Run(*run), &mut long);
    }
    long.into_done()
}

/// Whether a waiting XREAD or XREADGROUP is to be served, now that the key in argument `at` was
/// changed.
pub fn is_ready(ctx: &mut Ctx<'_, '_>, at: usize) -> bool {
    let args = ctx.args;
    let Ok(reading) = Reading::parse(args, is_grouped(args)) else { return true };
    let Ok(from) = reading.from(args, at) else { return true };
    let Some(group) = reading.group else {
        // XREAD keeps waiting if its key is deleted or becomes another type.
        let Ok(Some(stream)) = peek(ctx, at) else { return false };
        return matches!(from, From::Behind(id) if Run::behind(stream, id, 1).left > 0);
    };
    match group_at(ctx, at, args.get(group)) {
        Ok((_, has_new)) => has_new,
        // It replies the error.
        Err(_) => true,
    }
}
