//! XTRIM, and the trimming of XADD.

use keyspace::Event;
use resp::Args;
use value::stream::Limits;
use value::{Log, Stream, StreamId};

use super::ahead::{Changes, Scope, Work, change_ahead, change_now, exceeds_at_once};
use super::ids::{Wanted, strict_id};
use super::recording::{self, Trimmed};
use super::references::{References, delete};
use super::reply::write_id;
use super::view::{change, of_entry, open};
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation};

/// Entries that `~` removes at most, in nodes; and where the setting says nothing.
const LIMIT_NODES: u64 = 100;
const LIMIT_DEFAULT: u64 = 10_000;
const LIMIT_MAX: u64 = 1_000_000;

/// How a stream is trimmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trim {
    bound: Bound,
    /// Whole nodes only.
    roughly: bool,
    /// With `roughly`: so many entries at most, 0 for any number.
    limit: u64,
    references: References,
}

/// Which entries stay.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Maxlen(u64),
    Minid(StreamId),
}

/// The options of XTRIM, and of XADD before the id.
pub(super) struct Options {
    pub trim: Option<Trim>,
    pub no_mkstream: bool,
    /// XADD's id, if there is one.
    pub wanted: Option<Wanted>,
    /// The argument behind them: that id, of XADD.
    pub behind: usize,
}

/// Reads options from argument 2 on; `adds` is for XADD, whose options end at the first other word.
pub(super) fn parse(args: Args<'_>, settings: &Settings, adds: bool) -> Result<Options, Error> {
    let (mut bound, mut roughly, mut limit) = (None, false, None);
    let (mut references, mut no_mkstream, mut wanted) = (None, false, None);
    let mut at = 2;
    while at < args.len() {
        let (word, more) = (args.get(at), args.len() - 1 - at);
        let trims = is(word, "MAXLEN") || is(word, "MINID");
        if trims && more > 0 {
            if bound.is_some() {
                return Err(Error::TrimTwoStrategies);
            }
            at += 1;
            if more > 1 && matches!(args.get(at), b"~" | b"=") {
                roughly = args.get(at) == b"~";
                at += 1;
            }
            bound = Some(threshold(word, args.get(at))?);
        } else if is(word, "LIMIT") && more > 0 {
            at += 1;
            let count = integer(args.get(at))?;
            let count = u64::try_from(count).map_err(|_| Error::TrimLimitNegative)?;
            limit = Some(count);
        } else if let Some(how) = References::parse(word) {
            if references.replace(how).is_some() {
                return Err(Error::Syntax);
            }
        } else if adds && is(word, "NOMKSTREAM") {
            no_mkstream = true;
        } else if adds {
            // What is wrong with the id is told before what is wrong with the options together.
            wanted = Some(Wanted::parse(word)?);
            break;
        } else {
            return Err(Error::Syntax);
        }
        at += 1;
    }
    if limit.is_some() && bound.is_none() {
        return Err(Error::TrimLimitAlone);
    }
    if limit.is_some() && !roughly {
        return Err(Error::TrimLimitExact);
    }
    let limit = limit.unwrap_or_else(|| default_limit(settings));
    let references = references.unwrap_or(References::Keep);
    let trim = bound.map(|bound| Trim { bound, roughly, limit, references });
    Ok(Options { trim, no_mkstream, wanted, behind: at })
}

fn threshold(word: &[u8], value: &[u8]) -> Result<Bound, Error> {
    if is(word, "MINID") {
        return Ok(Bound::Minid(strict_id(value, 0)?));
    }
    let len = integer(value)?;
    u64::try_from(len).map(Bound::Maxlen).map_err(|_| Error::TrimMaxlenNegative)
}

fn default_limit(settings: &Settings) -> u64 {
    match settings.stream_node_max_entries.saturating_mul(LIMIT_NODES) {
        0 => LIMIT_DEFAULT,
        limit => limit.min(LIMIT_MAX),
    }
}

impl Trim {
    /// As MAXLEN, with `~` unless it is exact.
    pub fn maxlen(count: u64, exact: bool, settings: &Settings) -> Self {
        let (limit, references) = (default_limit(settings), References::Keep);
        Self { bound: Bound::Maxlen(count), roughly: !exact, limit, references }
    }

    /// How many entries at the front are to go; none of them is looked at.
    pub fn count(&self, stream: &Stream) -> u64 {
        let wanted = match self.bound {
            Bound::Maxlen(len) => stream.len().saturating_sub(len),
            Bound::Minid(id) => stream.rank(id),
        };
        if !self.roughly || wanted == 0 {
            return wanted;
        }
        let most = if self.limit > 0 { wanted.min(self.limit) } else { wanted };
        stream.in_whole_pages(most)
    }

    /// Whether groups have a say in it.
    #[inline]
    pub fn heeds_references(&self) -> bool {
        self.references != References::Keep
    }

    /// Whether each entry that goes is looked up in the groups.
    pub fn is_slow(&self, stream: &Stream) -> bool {
        self.heeds_references() && stream.groups().len() > 0
    }

    /// What groups have to say where it trims this stream.
    pub fn references_of(&self, stream: &Stream) -> References {
        if self.is_slow(stream) { self.references } else { References::Keep }
    }

    /// Trims a stream that was captured; how many entries went.
    pub fn apply(&self, stream: &mut Stream, count: u64) -> u64 {
        if !self.is_slow(stream) {
            stream.trim(0..count);
            return count;
        }
        let mut trimming = Trimming { count, ..Trimming::new(*self, None) };
        let was = stream.clone();
        while !trimming.step(&was, stream) {}
        trimming.gone
    }
}

/// Entries whose references are looked at in one step.
const STEP_ENTRIES: u64 = 60;

/// A field's name and value.
type Field = (Box<[u8]>, Box<[u8]>);

/// An entry to be added.
pub(super) struct Added {
    pub id: StreamId,
    pub fields: Vec<Field>,
    pub size: u64,
    pub limits: Limits,
}

/// The trimming of a stream whose groups have a say in it; of XADD, behind its entry.
pub(super) struct Trimming {
    pub trim: Trim,
    pub added: Option<Added>,
    /// Entries at the front that are to go.
    pub count: u64,
    /// The next of them.
    pub next: Option<StreamId>,
    /// Entries that went.
    pub gone: u64,
    /// How many entries are behind those at the front.
    keeps: u64,
}

impl Trimming {
    pub fn new(trim: Trim, added: Option<Added>) -> Self {
        Self { trim, added, count: 0, next: None, gone: 0, keeps: 0 }
    }
}

impl Work for Trimming {
    const SCOPE: Scope = Scope::Whole;

    fn events(&self, _: &Stream) -> Vec<Event> {
        let added = self.added.is_some().then_some(events::XADD);
        added.into_iter().chain((self.gone > 0).then_some(events::XTRIM)).collect()
    }

    fn step(&mut self, _: &Stream, stream: &mut Stream) -> bool {
        if self.next.is_none() {
            if let Some(added) = &self.added {
                let fields = added.fields.iter().map(|(name, value)| (&**name, &**value));
                stream.add(added.id, fields, added.size, added.limits, &mut Log::default());
            }
            if self.count == 0 {
                self.count = self.trim.count(stream);
            }
            self.keeps = stream.len() - self.count;
        }
        let deleted = stream.marks().max_deleted;
        let max = self.count.min(STEP_ENTRIES) as usize;
        let from = self.next.unwrap_or(StreamId::MIN);
        let ids: Vec<_> = stream.iter_from_id(from).take(max).map(|entry| entry.id).collect();
        self.count -= ids.len() as u64;
        self.next = ids.last().and_then(|id| id.next());
        let gone = ids.iter().filter(|id| delete(stream, **id, self.trim.references) == Some(true));
        self.gone += gone.count() as u64;
        // Trimming does not count as deletion.
        stream.set_marks(value::stream::Marks { max_deleted: deleted, ..stream.marks() });
        self.count == 0 || self.next.is_none()
    }

    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let done = changes.put(ctx);
        Ok(reply_trimmed(ctx, &done))
    }
}

/// `XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]`.
pub fn xtrim(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let trim = parse(ctx.args, ctx.settings, false)?.trim.ok_or(Error::Syntax)?;
    let tries = match prepare::found::<Changes<Trimming>>(ctx) {
        Found::Ready(done) => return done.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let before = ctx.guard.counted();
    let gone = match open(events::XTRIM, ctx, 1)? {
        None => 0,
        Some(mut entry) => {
            let stream = of_entry(entry.entry());
            match (trim.count(stream), trim.is_slow(stream)) {
                (0, _) => 0,
                (count, true) => {
                    let trimming = Trimming::new(trim, None);
                    if exceeds_at_once(ctx, count) {
                        return change_ahead(ctx, 1, trimming, tries);
                    }
                    let trimming = change_now(ctx, 1, trimming);
                    record_trimming(ctx, 1, &trimming);
                    trimming.gone
                }
                (count, false) => {
                    let keeps = stream.len() - count;
                    let gone = change(&mut entry, |stream| trim.apply(stream, count));
                    let trimmed = Trimmed { keeps, references: References::Keep };
                    recording::trimmed(ctx, ctx.key(1).bytes, trimmed);
                    gone
                }
            }
        }
    };
    ctx.guard.count_as(before, gone);
    ctx.reply.integer(gone as i64);
    Ok(Done::Replied)
}

/// Leaves what a trimming has changed in the stream in an argument.
fn record_trimming(ctx: &mut Ctx<'_, '_>, at: usize, trimming: &Trimming) {
    let (key, references) = (ctx.key(at), trimming.trim.references);
    let trimmed = Trimmed { keeps: trimming.keeps, references };
    match &trimming.added {
        None => recording::trimmed(ctx, key.bytes, trimmed),
        Some(added) => {
            let fields = added.fields.iter().map(|(name, value)| (&**name, &**value));
            recording::added(ctx, key.bytes, added.id, Some(trimmed), fields);
        }
    }
}

/// Replies as XADD, or as XTRIM.
fn reply_trimmed(ctx: &mut Ctx<'_, '_>, done: &[(usize, Trimming)]) -> Done {
    for (key, trimming) in done {
        record_trimming(ctx, *key, trimming);
        match &trimming.added {
            Some(added) => write_id(&mut ctx.reply, added.id),
            None => ctx.reply.integer(trimming.gone as i64),
        }
    }
    Done::Replied
}
