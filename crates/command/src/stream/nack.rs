//! XNACK: pending entries are released, for anybody to claim.

use keyspace::Event;
use value::stream::{ConsumerId, Pending};
use value::{Stream, StreamId};

use super::ahead::{Changes, Scope, Work, change_ahead, change_now, exceeds_at_once, mark_if_long};
use super::consumers::{COUNT_FATAL, existing_group};
use super::ids::strict_id;
use super::view::stream_at;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// Ids that one step releases.
const STEP_IDS: usize = 100;

/// What becomes of an entry's count of deliveries.
#[derive(Clone, Copy)]
enum Recount {
    /// `SILENT`: as if it had not been delivered.
    Less,
    /// `FAIL`
    Same,
    /// `FATAL`
    Fatal,
    /// `RETRYCOUNT count`, whatever the mode.
    Is(u64),
}

impl Recount {
    fn parse(word: &[u8]) -> Option<Self> {
        let words = [("SILENT", Self::Less), ("FAIL", Self::Same), ("FATAL", Self::Fatal)];
        words.into_iter().find(|(name, _)| is(word, name)).map(|(_, recount)| recount)
    }

    fn of(self, count: u64) -> u64 {
        match self {
            Self::Less => count.saturating_sub(1),
            Self::Same => count,
            Self::Fatal => COUNT_FATAL,
            Self::Is(count) => count,
        }
    }
}

/// What XNACK does.
struct Releases {
    group: usize,
    ids: Vec<StreamId>,
    /// The first id that is not looked at.
    at: usize,
    recount: Recount,
    /// `FORCE`: what is in the stream and not pending becomes pending, for nobody.
    force: bool,
    released: i64,
}

impl Releases {
    /// The row of an entry once it is released; `None` if there is nothing to release.
    fn row(&self, stream: &Stream, id: StreamId) -> Option<Pending> {
        let had = stream.group(self.group).get(id).map(|row| row.count);
        let is_new = had.is_none() && self.force && stream.contains(id);
        let count = self.recount.of(had.or(is_new.then_some(0))?);
        Some(Pending { id, at_ms: 0, count, consumer: ConsumerId::NOBODY })
    }
}

impl Work for Releases {
    const SCOPE: Scope = Scope::GroupsOfEntries;

    fn events(&self, _: &Stream) -> Vec<Event> {
        Vec::new()
    }

    fn step(&mut self, _: &Stream, stream: &mut Stream) -> bool {
        let end = self.ids.len().min(self.at + STEP_IDS);
        for at in self.at..end {
            if let Some(row) = self.row(stream, self.ids[at]) {
                stream.edit_group(self.group, |group| group.put(row));
                self.released += 1;
            }
        }
        self.at = end;
        end == self.ids.len()
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let done = changes.put(ctx);
        ctx.reply.integer(done.iter().map(|(_, releases)| releases.released).sum());
        Ok(Done::Replied)
    }
}

/// The arguments behind the group: `mode IDS numids id ... [RETRYCOUNT count] [FORCE]`.
fn parse(ctx: &Ctx<'_, '_>) -> Result<(Vec<StreamId>, Recount, bool), Error> {
    let args = ctx.args;
    let mut recount = Recount::parse(args.get(3)).ok_or(Error::Syntax)?;
    if !is(args.get(4), "IDS") {
        return Err(Error::Syntax);
    }
    let count = integer(args.get(5)).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or(Error::NumIds)?;
    if count > args.len() - 6 {
        return Err(Error::NumIdsMatch);
    }
    let ids: Result<_, Error> = (6..6 + count).map(|at| strict_id(args.get(at), 0)).collect();
    let (ids, mut force, mut at) = (ids?, false, 6 + count);
    while at < args.len() {
        if is(args.get(at), "FORCE") {
            force = true;
        } else if is(args.get(at), "RETRYCOUNT") && at + 1 < args.len() {
            at += 1;
            let count = integer(args.get(at))?;
            recount = Recount::Is(u64::try_from(count).map_err(|_| Error::NotPositive)?);
        } else {
            return Err(Error::Syntax);
        }
        at += 1;
    }
    Ok((ids, recount, force))
}

/// `XNACK key group SILENT | FAIL | FATAL IDS numids id ... [RETRYCOUNT count] [FORCE]`, as
/// redis.io describes that of Redis 8.8. The page says nothing of a key or group that is not there:
/// it is the error of XCLAIM.
pub fn xnack(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tries = match prepare::found::<Changes<Releases>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    let (ids, recount, force) = parse(ctx)?;
    let (_, group) = existing_group(ctx)?;
    let releases = Releases { group, ids, at: 0, recount, force, released: 0 };
    if exceeds_at_once(ctx, releases.ids.len() as u64) {
        return change_ahead(ctx, 1, releases, tries);
    }
    let stream = stream_at(ctx, 1);
    let is_any = releases.ids.iter().any(|id| releases.row(stream, *id).is_some());
    let released = if is_any { change_now(ctx, 1, releases).released } else { 0 };
    ctx.reply.integer(released);
    Ok(Done::Replied)
}
