//! XCLAIM, XAUTOCLAIM: pending entries get another consumer.

use keyspace::Event;
use value::stream::{ConsumerId, Pending};
use value::{Stream, StreamId};

use super::ahead::{Changes, Scope, Work, change_ahead, change_now, exceeds_at_once, mark_if_long};
use super::consumers::{consumer, existing_group, more, new_consumer};
use super::ids::{range_start, strict_id};
use super::recording::{self, OfGroup};
use super::reply::{LongReply, Named, Part, Shown, write_id};
use super::view::{of_entry, stream_at};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Error, MinIdleTime, XclaimNumber, XclaimOption};
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// How many pending entries XAUTOCLAIM looks at for each one that it may claim.
const ATTEMPTS: i64 = 10;
/// Entries that XAUTOCLAIM claims unless told otherwise.
const COUNT_DEFAULT: i64 = 100;
/// A larger count has no room: its ids of 16 bytes are more than there are addresses.
const COUNT_MAX: i64 = 1 << 43;
/// A count that is even larger is called none (recorded).
const COUNT_END: i64 = i64::MAX / 16;

/// Entries that are claimed, or looked at, in one step.
const STEP_ENTRIES: usize = 60;

/// Options of XCLAIM behind the ids.
#[derive(Clone, Copy, Default)]
struct Options {
    at_ms: Option<i64>,
    count: Option<u64>,
    last: Option<StreamId>,
    force: bool,
    just_id: bool,
}

/// A negative one is 0.
fn min_idle(text: &[u8], command: &'static str) -> Result<i64, Error> {
    let number = integer(text).map_err(|_| MinIdleTime { command })?;
    Ok(number.max(0))
}

fn claim_number(ctx: &Ctx<'_, '_>, at: usize, name: &'static str) -> Result<i64, Error> {
    integer(ctx.arg(at)).map_err(|_| XclaimNumber { option: name }.into())
}

fn options(ctx: &Ctx<'_, '_>, from: usize) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut at = from;
    while at < ctx.args.len() {
        let (word, has_value) = (ctx.arg(at), at + 1 < ctx.args.len());
        if is(word, "FORCE") {
            options.force = true;
        } else if is(word, "JUSTID") {
            options.just_id = true;
        } else if is(word, "IDLE") && has_value {
            at += 1;
            options.at_ms = Some(ctx.now.0.saturating_sub(claim_number(ctx, at, "IDLE")?));
        } else if is(word, "TIME") && has_value {
            at += 1;
            options.at_ms = Some(claim_number(ctx, at, "TIME")?);
        } else if is(word, "RETRYCOUNT") && has_value {
            at += 1;
            options.count = u64::try_from(claim_number(ctx, at, "RETRYCOUNT")?).ok();
        } else if is(word, "LASTID") && has_value {
            at += 1;
            options.last = Some(strict_id(ctx.arg(at), 0)?);
        } else {
            return Err(XclaimOption { word: word.into() }.into());
        }
        at += 1;
    }
    // What lies ahead, or before all time, is now: unless it was recorded by another clock.
    let is_valid = |at: i64| at >= 0 && (at <= ctx.now.0 || ctx.guard.ignores_due());
    options.at_ms = options.at_ms.map(|at| if is_valid(at) { at } else { ctx.now.0 });
    Ok(options)
}

/// For whom entries are claimed.
struct Claimer {
    /// It is there: no change of the data.
    exists: bool,
    /// The place of the group.
    group: usize,
    name: Box<[u8]>,
    min_idle: i64,
    now: i64,
    options: Options,
}

impl Claimer {
    fn consumer(&self, stream: &mut Stream) -> ConsumerId {
        consumer(stream, self.group, &self.name, self.now)
    }

    /// The number of changes: the consumer if it is new, and the entries that were claimed or
    /// dropped.
    fn changes(&self, entries: usize) -> u64 {
        u64::from(!self.exists) + entries as u64
    }
}

/// Whether the consumer of a name is in the group of the stream in argument 1.
fn has_consumer(ctx: &mut Ctx<'_, '_>, group: usize, name: &[u8]) -> bool {
    stream_at(ctx, 1).group(group).find(name).is_some()
}

/// What XCLAIM does.
struct Claims {
    by: Claimer,
    ids: Vec<StreamId>,
    /// The first id that is not looked at.
    at: usize,
    /// Those that were claimed stand before this place.
    claimed: usize,
    /// Those that were dropped from the pending ones because they are deleted.
    dropped: Vec<StreamId>,
    /// The group's last id was moved on.
    advanced: bool,
}

impl Claims {
    /// The last id goes with an entry, if any was claimed.
    fn changes(&self) -> u64 {
        self.by.changes(self.claimed + self.dropped.len())
            + u64::from(self.advanced && self.claimed == 0)
    }
}

impl Work for Claims {
    const SCOPE: Scope = Scope::GroupsOfEntries;

    fn events(&self, was: &Stream) -> Vec<Event> {
        new_consumer(was, self.by.group, &self.by.name)
    }

    fn step(&mut self, _: &Stream, stream: &mut Stream) -> bool {
        if self.at == 0
            && let Some(last) = self.by.options.last
        {
            self.advanced = last > stream.group(self.by.group).last;
            stream.edit_group(self.by.group, |group| group.last = group.last.max(last));
        }
        let who = self.by.consumer(stream);
        let end = self.ids.len().min(self.at + STEP_ENTRIES);
        for at in self.at..end {
            let id = self.ids[at];
            match claim(stream, who, id, &self.by) {
                Claim::Done => {
                    self.ids[self.claimed] = id;
                    self.claimed += 1;
                }
                Claim::Dropped => self.dropped.push(id),
                Claim::Refused => {}
            }
        }
        self.at = end;
        let is_done = end == self.ids.len();
        if is_done {
            self.ids.truncate(self.claimed);
        }
        is_done
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let before = ctx.guard.counted();
        let done = changes.put(ctx);
        ctx.guard.count_as(before, done.iter().map(|(_, claims)| claims.changes()).sum());
        Ok(reply_claims(ctx, done))
    }
}

/// `XCLAIM key group consumer min-idle-time id ... [options]`.
pub fn xclaim(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tries = match prepare::found::<Changes<Claims>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    if let Err(later) = mark_if_long(ctx, ctx.args.len()) {
        return Ok(later);
    }
    let (args, now) = (ctx.args, ctx.now.0);
    existing_group(ctx)?;
    let min_idle = min_idle(ctx.arg(4), "XCLAIM")?;
    let mut ids = Vec::new();
    for at in 5..args.len() {
        match strict_id(args.get(at), 0) {
            Ok(id) => ids.push(id),
            Err(_) => break,
        }
    }
    let options = options(ctx, 5 + ids.len())?;
    let (_, group) = existing_group(ctx)?;
    let exists = has_consumer(ctx, group, args.get(3));
    let by = Claimer { exists, group, name: args.get(3).into(), min_idle, now, options };
    let dropped = Vec::new();
    let claims = Claims { by, ids, at: 0, claimed: 0, dropped, advanced: false };
    if exceeds_at_once(ctx, claims.ids.len() as u64) {
        return change_ahead(ctx, 1, claims, tries);
    }
    let before = ctx.guard.counted();
    let claims = change_now(ctx, 1, claims);
    ctx.guard.count_as(before, claims.changes());
    Ok(reply_claims(ctx, vec![(1, claims)]))
}

fn reply_claims(ctx: &mut Ctx<'_, '_>, done: Vec<(usize, Claims)>) -> Done {
    let mut long = LongReply::default();
    for (key, claims) in done {
        record_claims(ctx, key, &claims.by, &claims.ids, &claims.dropped, claims.advanced);
        let named = if claims.by.options.just_id { Named::Id } else { Named::Entry };
        show_ids(ctx, key, Shown::Ids(claims.ids, 0, named), &mut long);
    }
    long.into_done()
}

/// Leaves what was claimed, and what was dropped because it is deleted.
fn record_claims(
    ctx: &mut Ctx<'_, '_>,
    key: usize,
    by: &Claimer,
    claimed: &[StreamId],
    dropped: &[StreamId],
    advanced: bool,
) {
    if !ctx.guard.is_recording() {
        return;
    }
    let group = OfGroup { key: ctx.arg(key), name: ctx.arg(2) };
    if !by.exists {
        recording::new_consumer(ctx, group, &by.name);
    }
    let place = stream_at(ctx, key).group(by.group);
    let rows: Vec<_> = claimed.iter().filter_map(|id| place.get(*id)).collect();
    recording::rows(ctx, group, &by.name, &rows);
    recording::acknowledged(ctx, group, dropped);
    if advanced {
        recording::position(ctx, key, by.group, group);
    }
    ctx.guard.record_nothing(); // if that was nothing: the consumer was seen
}

/// Replies an array: under the lock, unless it is much or something before it is.
fn show_ids(ctx: &mut Ctx<'_, '_>, at: usize, mut shown: Shown, long: &mut LongReply) {
    let (key, keyspace) = (ctx.key(at), ctx.guard.keyspace());
    let Some(entry) = ctx.guard.peek(ctx.db, &key) else { return };
    if shown.is_long() || !long.is_empty() {
        let value = keyspace.capture(entry.big().expect("a stream stands outside its entry"));
        long.add(Part { key: None, value, shown });
    } else {
        shown.write_all(&mut ctx.reply, of_entry(entry));
    }
}

/// What became of one entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Done,
    /// It was deleted, and is not pending any longer.
    Dropped,
    Refused,
}

/// Claims one entry.
fn claim(stream: &mut Stream, who: ConsumerId, id: StreamId, by: &Claimer) -> Claim {
    let (at, now, options) = (by.group, by.now, &by.options);
    let old = stream.group(at).get(id);
    if !stream.contains(id) {
        if old.is_none() {
            return Claim::Refused;
        }
        stream.edit_group(at, |group| group.take(id));
        return Claim::Dropped;
    }
    if old.is_none() && !options.force
        || old.is_some_and(|old| {
            let is_released = old.consumer == ConsumerId::NOBODY;
            by.min_idle > 0 && !is_released && now.saturating_sub(old.at_ms) < by.min_idle
        })
    {
        return Claim::Refused;
    }
    // An entry without a consumer counts as delivered once before it is claimed (recorded).
    let counted = old.map_or(1, |old| old.count);
    let count = options.count.unwrap_or_else(|| more(counted, u64::from(!options.just_id)));
    let row = Pending { id, at_ms: options.at_ms.unwrap_or(now), count, consumer: who };
    stream.edit_group(at, |group| {
        group.put(row);
        group.set_times(who, now, now);
    });
    Claim::Done
}

/// What XAUTOCLAIM does.
struct Autoclaims {
    by: Claimer,
    /// The next pending entry is not below this one; `None` at the end of them.
    next: Option<StreamId>,
    /// How many more are looked at.
    looks: u64,
    /// How many more are claimed.
    left: u64,
    claimed: Vec<StreamId>,
    deleted: Vec<StreamId>,
}

impl Autoclaims {
    fn changes(&self) -> u64 {
        self.by.changes(self.claimed.len() + self.deleted.len())
    }
}

impl Work for Autoclaims {
    const SCOPE: Scope = Scope::GroupsOfEntries;

    fn events(&self, was: &Stream) -> Vec<Event> {
        new_consumer(was, self.by.group, &self.by.name)
    }

    fn step(&mut self, was: &Stream, stream: &mut Stream) -> bool {
        let (who, group) = (self.by.consumer(stream), self.by.group);
        let Some(from) = self.next else { return true };
        // The rows as they were; each is claimed at most once.
        let mut rows = was.group(group).pending_from(from);
        let max = self.looks.min(STEP_ENTRIES as u64);
        let mut looked = 0;
        while looked < max
            && self.left > 0
            && let Some(row) = rows.next()
        {
            looked += 1;
            match claim(stream, who, row.id, &self.by) {
                Claim::Dropped => self.deleted.push(row.id),
                Claim::Done => self.claimed.push(row.id),
                Claim::Refused => continue,
            }
            self.left -= 1;
        }
        self.looks -= looked;
        self.next = rows.next().map(|row| row.id);
        self.next.is_none() || self.left == 0 || self.looks == 0
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let before = ctx.guard.counted();
        let done = changes.put(ctx);
        ctx.guard.count_as(before, done.iter().map(|(_, claims)| claims.changes()).sum());
        Ok(reply_autoclaims(ctx, done))
    }
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`.
pub fn xautoclaim(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let tries = match prepare::found::<Changes<Autoclaims>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let (args, now) = (ctx.args, ctx.now.0);
    let min_idle = min_idle(ctx.arg(4), "XAUTOCLAIM")?;
    let start = range_start(ctx.arg(5))?;
    let (mut count, mut just_id, mut word) = (COUNT_DEFAULT, false, 6);
    while word < args.len() {
        if is(args.get(word), "COUNT") && word + 1 < args.len() {
            word += 1;
            let wanted = integer(args.get(word)).ok();
            let wanted = wanted.filter(|count| (1..=COUNT_END).contains(count));
            count = wanted.ok_or(Error::CountAboveZero)?;
        } else if is(args.get(word), "JUSTID") {
            just_id = true;
        } else {
            return Err(Error::Syntax);
        }
        word += 1;
    }
    let (_, group) = existing_group(ctx)?;
    if count > COUNT_MAX {
        return Err(Error::CountMemory);
    }
    let options = Options { just_id, ..Options::default() };
    let exists = has_consumer(ctx, group, args.get(3));
    let by = Claimer { exists, group, name: args.get(3).into(), min_idle, now, options };
    let (left, looks) = (count as u64, count.saturating_mul(ATTEMPTS) as u64);
    let pending = stream_at(ctx, 1).group(group).pending();
    let much = exceeds_at_once(ctx, looks.min(pending));
    let (claimed, deleted) = (Vec::new(), Vec::new());
    let claims = Autoclaims { by, next: Some(start), looks, left, claimed, deleted };
    if much {
        return change_ahead(ctx, 1, claims, tries);
    }
    let before = ctx.guard.counted();
    let claims = change_now(ctx, 1, claims);
    ctx.guard.count_as(before, claims.changes());
    Ok(reply_autoclaims(ctx, vec![(1, claims)]))
}

fn reply_autoclaims(ctx: &mut Ctx<'_, '_>, done: Vec<(usize, Autoclaims)>) -> Done {
    let mut long = LongReply::default();
    for (key, claims) in done {
        record_claims(ctx, key, &claims.by, &claims.claimed, &claims.deleted, false);
        ctx.reply.array(3);
        write_id(&mut ctx.reply, claims.next.unwrap_or(StreamId::MIN));
        let named = if claims.by.options.just_id { Named::Id } else { Named::Entry };
        show_ids(ctx, key, Shown::Ids(claims.claimed, 0, named), &mut long);
        show_ids(ctx, key, Shown::Ids(claims.deleted, 0, Named::Id), &mut long);
    }
    long.into_done()
}
