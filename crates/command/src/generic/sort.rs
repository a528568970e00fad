//! SORT and SORT_RO: the elements of a list, set or sorted set in another order.
//!
//! A request without patterns is confined to the slots of its keys. One with patterns comes upon
//! the keys that they name only when it reads the elements: it grows
//! ([`crate::LockClass::Growing`]). Many elements are sorted in steps ([`steps`]); what patterns
//! name is looked up for all of them at one moment.

mod lookup;
mod options;
mod steps;

use std::ops::Range;

use keyspace::{Event, Kind, Parked, Parts, ReclaimOnDrop};
use rdb::Sink;
use resp::{Args, Reply};
use value::Encoding;
use value::keyed::Val;

use crate::collection;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parts::{Built, Stored};
use crate::prepare::{self, Found, Preparation, Sources};
use crate::sorting::order::{Order, Row, Text, Texts, Weight};
use crate::spec::KeyRuns;
use lookup::{Stop, show, weigh};
use options::Options;
use steps::{Goal, Presorting, Replying, Sorting, Unsorted};

/// A value of more elements is held long: others park behind its slot instead of waiting.
const LONG_ELEMENTS: u64 = 10_000;
/// Elements that are replied at once; more are replied in steps of as many.
const STEP_ELEMENTS: usize = 1000;
/// Bytes of a reply that end a step.
const STEP_BYTES: usize = 64 * 1024;

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE key]`.
pub fn sort(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx.args, true)?;
    run(ctx, options)
}

/// `SORT_RO`: SORT without STORE.
pub fn sort_ro(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx.args, false)?;
    run(ctx, options)
}

/// Whether a request comes upon keys that its arguments do not name.
pub fn sort_grows(args: Args<'_>) -> bool {
    Options::parse(args, true).is_ok_and(|options| options.grows())
}

/// The keys that SORT names.
pub fn sort_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    let options = Options::parse(args, true)?;
    Ok(KeyRuns::of(1..2).and_one(options.store, STORE_SPEC))
}

/// The key that SORT_RO names.
pub fn sort_ro_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Options::parse(args, false)?;
    Ok(KeyRuns::of(1..2))
}

/// The keys that `COMMAND GETKEYS SORT` answers: the last STORE counts, whether or not the rest is
/// right.
pub fn sort_getkeys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(1..2).and_one(options::store(args), STORE_SPEC))
}

/// The number of the key spec of SORT's destination.
const STORE_SPEC: usize = 2;

fn run(ctx: &mut Ctx<'_, '_>, options: Options<'_>) -> Result<Done, Error> {
    or_park(sort_by(ctx, options))
}

fn or_park(result: Result<Done, Stop>) -> Result<Done, Error> {
    match result {
        Ok(done) => Ok(done),
        Err(Stop::Parked(parked)) => Ok(Done::Park(parked)),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn sort_by(ctx: &mut Ctx<'_, '_>, mut options: Options<'_>) -> Result<Done, Stop> {
    let tries = match prepare::found::<Presorting>(ctx) {
        Found::Ready(ahead) => return Ok(ahead.finish(ctx)?),
        Found::Begin(tries) => tries,
    };
    let key = ctx.key(1);
    let entry = ctx.guard.look_up(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let (len, kind) = match entry {
        None => (0, Kind::List),
        Some(entry) if matches!(entry.kind(), Kind::List | Kind::Set | Kind::Zset) => {
            (Stored::of(entry).len(), entry.kind())
        }
        Some(_) => return Err(Error::WrongType.into()),
    };
    if len == 0 || (kind == Kind::Set && options.unsorted && options.store.is_some()) {
        // What is stored is the same wherever it is computed.
        (options.unsorted, options.alpha, options.by) = (len == 0, true, None);
    }
    let scope = Scope::of(&options, len, kind);
    if len > ctx.settings.at_once_elements {
        return Ok(run_long(ctx, &options, scope, tries)?);
    }
    let (mut texts, mut rows) = collect(ctx, &scope)?;
    if !scope.order.kept {
        weigh(ctx, &options, &mut texts, rows.iter_mut())?;
        scope.order.sort(&texts, &mut rows);
        rows = rows.drain(scope.window).collect();
    }
    call_big(ctx);
    complete(ctx, &options, texts, &rows)
}

/// Which elements are read, and which of them are wanted.
struct Scope {
    order: Order,
    /// The elements that are read. Of an order that stays only those that the limit lets through.
    ranks: Range<u64>,
    /// Those that are wanted, of those that were read and sorted.
    window: Range<usize>,
}

impl Scope {
    fn of(options: &Options<'_>, len: u64, kind: Kind) -> Self {
        let kept = options.unsorted;
        // A set has no order that could be turned around.
        let desc = options.desc && !(kept && kind == Kind::Set);
        let order = Order { kept, alpha: options.alpha, by: options.by.is_some(), desc };
        let window = options.window(len);
        if !kept {
            return Self { order, ranks: 0..len, window };
        }
        let (start, end) = (window.start as u64, window.end as u64);
        let ranks = if desc { len - end..len - start } else { start..end };
        Self { order, window: 0..window.len(), ranks }
    }
}

/// The elements, at once.
fn collect(ctx: &mut Ctx<'_, '_>, scope: &Scope) -> Result<(Texts, Vec<Row>), Parked> {
    let (mut texts, mut rows) = (Texts::default(), Vec::new());
    let key = ctx.key(1);
    let Some(entry) = ctx.guard.peek(ctx.db, &key) else { return Ok((texts, rows)) };
    let Range { start, end } = scope.ranks;
    Stored::of(entry).elements_while(start, end - start, |text| {
        rows.push(Row { element: texts.push_val(text), weight: Weight::None });
        true
    });
    if scope.order.kept && scope.order.desc {
        rows.reverse();
    }
    if rows.len() as u64 > LONG_ELEMENTS {
        ctx.guard.try_mark_long()?;
    }
    Ok((texts, rows))
}

/// Redis sorts members out of its big form, and the sorted set stays in it. (There also if they are
/// no numbers; here a command that fails changes nothing, not even what only OBJECT ENCODING
/// shows.)
fn call_big(ctx: &mut Ctx<'_, '_>) {
    let key = ctx.key(1);
    if let Some(mut entry) = ctx.guard.entry_mut(Event::SILENT, ctx.db, &key)
        && entry.kind() == Kind::Zset
    {
        entry.set_encoding(Encoding::Skiplist);
    }
}

/// Many elements: what is captured now is collected and sorted in steps.
fn run_long(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    scope: Scope,
    tries: u32,
) -> Result<Done, Error> {
    let key = ctx.key(1);
    let keyspace = ctx.guard.keyspace();
    let entry = ctx.guard.peek(ctx.db, &key).expect("it has elements");
    let kept = match (entry.packed(), entry.big()) {
        (Some(bytes), _) => Unsorted::Packed(entry.kind(), bytes.to_vec(), entry.encoding()),
        (_, Some(big)) => Unsorted::Big(keyspace.capture(big), entry.encoding()),
        (None, None) => unreachable!("a string is not sorted"),
    };
    let sorting = Sorting::new(kept, scope.ranks, scope.order, scope.window);
    let sorting = keyspace.reclaim_on_drop(sorting);
    let goal = if options.weighs() {
        Goal::Collected
    } else if options.grows() {
        Goal::Sorted(Vec::new())
    } else if options.store.is_some() {
        Goal::stored(ctx, &options.gets)
    } else {
        call_big(ctx);
        return Ok(Done::Steps(Box::new(Replying::new(sorting, &options.gets))));
    };
    let sources = Sources::of(ctx, 1..2, tries);
    prepare::begin(ctx, Presorting::new(sources, sorting, goal))
}

impl Preparation for Presorting {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The second run of a command whose elements were sorted, or collected, ahead.
    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        or_park(look_up(self, ctx))
    }
}

fn look_up(ahead: Presorting, ctx: &mut Ctx<'_, '_>) -> Result<Done, Stop> {
    let Presorting { mut sorting, goal, error, .. } = ahead;
    let options = Options::parse(ctx.args, true)?;
    if let Some(error) = error {
        return Err(error.into());
    }
    let rows = match (goal, options.store) {
        (Goal::Stored(_, list), Some(at)) => {
            call_big(ctx);
            insert(ctx, at, list.into_inner());
            return Ok(Done::Replied);
        }
        (Goal::Stored(..), None) => unreachable!("a list is built to be stored"),
        (Goal::Sorted(rows), _) => rows,
        (Goal::Collected, store) => {
            ctx.guard.try_mark_long()?;
            let (texts, rows) = sorting.collected();
            weigh(ctx, &options, texts, rows)?;
            if store.is_none() && !options.looks_up() {
                call_big(ctx);
                return Ok(Done::Steps(Box::new(Replying::new(sorting, &options.gets))));
            }
            sorting.rest()?
        }
    };
    call_big(ctx);
    ctx.guard.try_mark_long()?;
    let texts = std::mem::take(sorting.texts());
    complete(ctx, &options, texts, &rows)
}

/// Looks up what GET asks for, and replies or stores it.
fn complete(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: Texts,
    rows: &[Row],
) -> Result<Done, Stop> {
    let result = SortReply { texts, shown: Vec::new(), next: 0 };
    let mut rest = ctx.guard.keyspace().reclaim_on_drop(result);
    rest.shown = show(ctx, options, &mut rest.texts, rows)?;
    if let Some(at) = options.store {
        store(ctx, at, &rest.texts, &rest.shown);
        return Ok(Done::Replied);
    }
    ctx.reply.array(rest.shown.len());
    Ok(if rest.write(&mut ctx.reply) { Done::Replied } else { Done::Steps(Box::new(rest)) })
}

/// Puts the result where STORE says, as a list; one without elements is no key.
fn store(ctx: &mut Ctx<'_, '_>, at: usize, texts: &Texts, shown: &[Option<Text>]) {
    let mut list = Built::new(ctx.settings, false);
    list.start(rdb::Kind::List, shown.len() as u64).expect("a list begins");
    for text in shown {
        list.list_element(text.map_or(Val::Bytes(b""), |text| texts.get(text)));
    }
    insert(ctx, at, list);
}

fn insert(ctx: &mut Ctx<'_, '_>, at: usize, mut list: Built) {
    let (key, len, before) = (ctx.key(at), list.len(), ctx.guard.counted());
    if len == 0 {
        ctx.guard.remove(Event::DEL, ctx.db, &key);
    } else {
        list.finish().expect("it has elements");
        list.insert(events::SORTSTORE, ctx.guard, ctx.db, &key, None);
        ctx.guard.count_as(before, len);
    }
    ctx.reply.integer(len as i64);
}

/// A result that is replied in steps.
struct SortReply {
    texts: Texts,
    shown: Vec<Option<Text>>,
    next: usize,
}

impl Parts for SortReply {
    fn memory(&self) -> usize {
        self.texts.memory() + self.shown.capacity() * size_of::<Option<Text>>()
    }
}

impl SortReply {
    /// Replies some elements; true if none is left.
    fn write(&mut self, reply: &mut Reply<'_>) -> bool {
        let full = reply.position().bytes + STEP_BYTES;
        let end = self.shown.len().min(self.next + STEP_ELEMENTS);
        while self.next < end && reply.position().bytes < full {
            match self.shown[self.next] {
                Some(text) => collection::Text::Val(self.texts.get(text)).write(reply),
                None => reply.null(),
            }
            self.next += 1;
        }
        self.next == self.shown.len()
    }
}

impl Resumable for ReclaimOnDrop<SortReply> {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(self.write(&mut ctx.reply)))
    }
}
