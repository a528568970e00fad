//! SORT and SORT_RO: the elements of a list, set or sorted set in another order.
//!
//! A request without patterns is confined to the slots of its keys. One with patterns comes upon the
//! keys that they name only when it reads the elements: it grows ([`crate::LockClass::Growing`]).

mod options;
mod order;

use keyspace::Kind;
use rdb::{Item, Sink};
use resp::{Args, Reply};
use value::IntText;

use crate::ctx::Ctx;
use crate::error::Error;
use crate::generic::build::Built;
use crate::generic::stored::Stored;
use crate::spec::Resumable;
use options::{Get, Options, Pattern};
use order::{Order, Row, Texts, Weight};

/// A value of more elements is held long: others park behind its slot instead of waiting.
const LONG_ELEMENTS: u64 = 10_000;
/// Elements that are replied at once; more are replied in steps of as many.
const STEP_ELEMENTS: usize = 1000;
/// Bytes of a reply that end a step.
const STEP_BYTES: usize = 64 * 1024;

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE key]`.
pub fn sort(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let options = Options::parse(ctx.args, true)?;
    run(ctx, options)
}

/// `SORT_RO`: SORT without STORE.
pub fn sort_ro(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let options = Options::parse(ctx.args, false)?;
    run(ctx, options)
}

/// Whether a request comes upon keys that its arguments do not name.
pub fn sort_grows(args: Args<'_>) -> bool {
    Options::parse(args, true).is_ok_and(|options| options.grows())
}

/// The argument that is the destination, if there is one; the last one wins.
pub fn sort_store(args: Args<'_>) -> Option<usize> {
    options::store(args)
}

fn run(ctx: &mut Ctx<'_, '_>, mut options: Options<'_>) -> Result<(), Error> {
    let (mut texts, mut rows) = collect(ctx, &mut options)?;
    if !options.unsorted {
        weigh(ctx, &options, &mut texts, &mut rows)?;
        let order = Order { alpha: options.alpha, by: options.by.is_some(), desc: options.desc };
        order.sort(&texts, &mut rows);
        rows = rows.drain(options.window(rows.len() as u64)).collect();
    }
    let shown = show(ctx, &options, &mut texts, &rows);
    match options.store {
        Some(at) => store(ctx, at, &texts, &shown),
        None => {
            ctx.reply.array(shown.len());
            let mut rest = Rest { texts, shown, next: 0 };
            if !rest.write(&mut ctx.reply) {
                ctx.resume(Box::new(rest));
            }
            Ok(())
        }
    }
}

/// The elements; those of an order that stays, only as far as the limit lets them through.
fn collect(ctx: &mut Ctx<'_, '_>, options: &mut Options<'_>) -> Result<(Texts, Vec<Row>), Error> {
    let (mut texts, mut rows) = (Texts::default(), Vec::new());
    let key = ctx.key(1);
    let entry = ctx.guard.read(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    let Some(entry) = entry else {
        options.unsorted = true;
        return Ok((texts, rows));
    };
    if !matches!(entry.kind(), Kind::List | Kind::Set | Kind::Zset) {
        return Err(Error::WrongType);
    }
    if entry.kind() == Kind::Set && options.unsorted && options.store.is_some() {
        // What is stored is the same wherever it is computed.
        (options.unsorted, options.alpha, options.by) = (false, true, None);
    }
    let stored = Stored::of(&entry);
    let len = stored.len();
    let (mut from, mut count) = (0, len);
    let is_ordered = entry.kind() != Kind::Set;
    if options.unsorted {
        let window = options.window(len);
        count = (window.end - window.start) as u64;
        let reversed = options.desc && is_ordered;
        from = if reversed { len - window.end as u64 } else { window.start as u64 };
    }
    stored.each_from(from, count, |item| {
        let (Item::Element(text) | Item::Member(text, _) | Item::Field(text, ..)) = item;
        rows.push(Row { element: texts.push(text), weight: Weight::None });
    });
    if options.unsorted && options.desc && is_ordered {
        rows.reverse();
    }
    if len > LONG_ELEMENTS {
        ctx.guard.mark_long();
    }
    Ok((texts, rows))
}

/// Finds out what each element is sorted by.
fn weigh(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: &mut Texts,
    rows: &mut [Row],
) -> Result<(), Error> {
    let mut name = Vec::new();
    for row in rows {
        row.weight = match &options.by {
            None if options.alpha => Weight::None,
            None => Weight::Number(number(texts.get(row.element))?),
            Some(pattern) => {
                pattern.name(texts.get(row.element), &mut name);
                with_value(ctx, &name, pattern, |value| match value {
                    None if options.alpha => Ok(Weight::None),
                    None => Ok(Weight::Number(0.0)),
                    Some(text) if options.alpha => Ok(Weight::Text(texts.push(text))),
                    Some(text) => number(text).map(Weight::Number),
                })?
            }
        };
    }
    Ok(())
}

/// A number as C's `strtod` reads it, and nothing behind it; an empty text is 0.
fn number(text: &[u8]) -> Result<f64, Error> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(0.0);
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let value = base::double::parse(&text[start..]).ok_or(Error::SortScore)?;
    // What is too small for all its digits is out of range, too.
    if value.is_subnormal() { Err(Error::SortScore) } else { Ok(value) }
}

/// Calls `f` with what a key that a pattern has named holds: a string, or a field of a hash.
fn with_value<R>(
    ctx: &mut Ctx<'_, '_>,
    name: &[u8],
    pattern: &Pattern<'_>,
    f: impl FnOnce(Option<&[u8]>) -> R,
) -> R {
    let key = ctx.discover(name);
    let entry = ctx.guard.read(ctx.db, &key);
    ctx.tally.count(entry.is_some());
    match (entry, pattern.field) {
        (Some(entry), Some(field)) => Stored::of(&entry).field(field, f),
        (Some(entry), None) if entry.is_string() => {
            f(Some(entry.str().bytes(&mut IntText::default())))
        }
        _ => f(None),
    }
}

/// What is replied or stored of each element: itself, or what GET asks for; nil is nothing.
fn show(
    ctx: &mut Ctx<'_, '_>,
    options: &Options<'_>,
    texts: &mut Texts,
    rows: &[Row],
) -> Vec<Option<order::Text>> {
    if options.gets.is_empty() {
        return rows.iter().map(|row| Some(row.element)).collect();
    }
    let mut shown = Vec::with_capacity(rows.len() * options.gets.len());
    let mut name = Vec::new();
    for row in rows {
        for get in &options.gets {
            shown.push(match get {
                Get::Element => Some(row.element),
                Get::Nothing => None,
                Get::Value(pattern) => {
                    pattern.name(texts.get(row.element), &mut name);
                    with_value(ctx, &name, pattern, |value| value.map(|text| texts.push(text)))
                }
            });
        }
    }
    shown
}

/// Puts the result where STORE says, as a list; one without elements is no key.
fn store(
    ctx: &mut Ctx<'_, '_>,
    at: usize,
    texts: &Texts,
    shown: &[Option<order::Text>],
) -> Result<(), Error> {
    let key = ctx.key(at);
    if shown.is_empty() {
        ctx.guard.remove(ctx.db, &key);
    } else {
        let mut list = Built::new(ctx.settings, false);
        list.start(rdb::Kind::List, shown.len() as u64).expect("a list begins");
        for text in shown {
            list.element(text.map_or(b"", |text| texts.get(text))).expect("a list takes all");
        }
        list.finish().expect("it has elements");
        list.insert(ctx.guard, ctx.db, &key, None);
    }
    ctx.reply.integer(shown.len() as i64);
    Ok(())
}

/// The part of a result that is not replied yet.
struct Rest {
    texts: Texts,
    shown: Vec<Option<order::Text>>,
    next: usize,
}

impl Rest {
    /// Replies some elements; true if none is left.
    fn write(&mut self, reply: &mut Reply<'_>) -> bool {
        let full = reply.position().bytes + STEP_BYTES;
        let end = self.shown.len().min(self.next + STEP_ELEMENTS);
        while self.next < end && reply.position().bytes < full {
            match self.shown[self.next] {
                Some(text) => reply.bulk(self.texts.get(text)),
                None => reply.null(),
            }
            self.next += 1;
        }
        self.next == self.shown.len()
    }
}

impl Resumable for Rest {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        Ok(self.write(&mut ctx.reply))
    }
}
