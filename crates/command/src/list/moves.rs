//! LMOVE, RPOPLPUSH, LMOVEM.

use base::num::{I64_TEXT_MAX, format_i64, parse_i64};
use keyspace::Kind;
use resp::Args;

use super::create::create;
use super::edit::open;
use super::element::{OwnedElement, write};
use super::end::End;
use super::pop::is_long;
use super::stream::{STEP_BYTES_MAX, STEP_MAX, some};
use super::view::View;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::parse::is;
use crate::record;

/// So many elements at most stand in one command of a record.
const PUSHED_MAX: usize = 1024;

/// `LMOVE source destination LEFT | RIGHT LEFT | RIGHT`.
pub fn lmove(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (from, to) = (End::parse(ctx.arg(3))?, End::parse(ctx.arg(4))?);
    reply_moved(ctx, from, to)
}

/// `RPOPLPUSH source destination`.
pub fn rpoplpush(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_moved(ctx, End::Back, End::Front)
}

fn reply_moved(ctx: &mut Ctx<'_, '_>, from: End, to: End) -> Result<Done, Error> {
    let done = move_element(ctx, from, to)?;
    if matches!(done, Done::Nothing) {
        ctx.reply.null();
        return Ok(Done::Replied);
    }
    Ok(done)
}

/// Moves an element between the keys in the first two arguments, and replies it; nothing if there
/// is none.
pub(super) fn move_element(ctx: &mut Ctx<'_, '_>, from: End, to: End) -> Result<Done, Error> {
    let (source, destination) = (ctx.key(1), ctx.key(2));
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(to.pushed(), ctx, &source)? else {
        return Ok(Done::Nothing);
    };
    if source.bytes == destination.bytes {
        edit.rotate(from, to, |item| write(reply, item));
        ctx.guard.count_as(before, 1);
        ctx.guard.notify(from.popped(), ctx.db, &source);
        return Ok(Done::Replied);
    }
    let view = edit.view();
    let at = if from == End::Front { 0 } else { view.len() - 1 };
    let moved = OwnedElement::of(view.get(at).expect("no list is empty"));
    let texts = std::iter::once(moved.as_new());
    if let (Some(mut edit), _) = open(to.pushed(), ctx, &destination)? {
        edit.push(to, texts);
    } else {
        let (event, db, scratch) = (to.pushed(), ctx.db, &mut ctx.tally.scratch);
        create(event, ctx.guard, db, &destination, ctx.settings, scratch, to, texts);
    }
    let (edit, reply) = open(from.popped(), ctx, &source)?;
    edit.expect("it was there").pop(from, 1, |item| write(reply, item));
    ctx.guard.count_as(before, 1); // one element has moved
    Ok(Done::Replied)
}

/// How many elements LMOVEM moves, and in which order they stand then.
#[derive(Clone, Copy)]
pub(super) struct HowMany {
    pub count: u64,
    /// `EXACTLY`: so many or none.
    pub is_exact: bool,
    /// `BULK`: in the order in which they stood, not in that of one move after the other.
    in_bulk: bool,
}

impl HowMany {
    /// `[COUNT count | EXACTLY count  OBO | BULK]`, the rest of the arguments; without it, one.
    pub fn parse(args: Args<'_>) -> Result<Self, Error> {
        match args.len() {
            0 => return Ok(Self { count: 1, is_exact: false, in_bulk: false }),
            3 => {}
            _ => return Err(Error::Syntax),
        }
        let is_exact = is(args.get(0), "EXACTLY");
        let in_bulk = is(args.get(2), "BULK");
        if !is_exact && !is(args.get(0), "COUNT") || !in_bulk && !is(args.get(2), "OBO") {
            return Err(Error::Syntax);
        }
        let count = parse_i64(args.get(1)).and_then(|count| u64::try_from(count).ok());
        let count = count.filter(|count| *count > 0).ok_or(Error::CountPositive)?;
        Ok(Self { count, is_exact, in_bulk })
    }
}

/// `LMOVEM source destination LEFT | RIGHT LEFT | RIGHT [COUNT count | EXACTLY count OBO | BULK]`,
/// as redis.io describes that of Redis 8.10. Where the page leaves it open: nothing is the null of
/// arrays, as that of LMPOP; the options stand in the order of the page; a count below 1 is refused
/// in the words of LMPOP.
pub fn lmovem(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (from, to) = (End::parse(ctx.arg(3))?, End::parse(ctx.arg(4))?);
    let how_many = HowMany::parse(ctx.args.from(5))?;
    let done = move_many(ctx, from, to, how_many)?;
    if !matches!(done, Done::Nothing) {
        return Ok(done);
    }
    if how_many.is_exact {
        ctx.reply.null_array();
    } else {
        ctx.reply.array(0);
    }
    Ok(Done::Replied)
}

/// Moves elements between the keys in the first two arguments, and replies them as they stand then;
/// nothing if there are none, or not enough.
pub(super) fn move_many(
    ctx: &mut Ctx<'_, '_>,
    from: End,
    to: End,
    how_many: HowMany,
) -> Result<Done, Error> {
    let (source, destination) = (ctx.key(1), ctx.key(2));
    let Some(entry) = ctx.peek_kind(&source, Kind::List)? else { return Ok(Done::Nothing) };
    let (len, view) = (View::of(entry).len(), View::of(entry));
    if how_many.is_exact && len < how_many.count {
        return Ok(Done::Nothing);
    }
    let count = how_many.count.min(len);
    let is_long = is_long(view, count);
    let at = if from == End::Front { 0 } else { len - count };
    ctx.peek_kind(&destination, Kind::List)?;
    if is_long && let Err(parked) = ctx.guard.try_mark_long() {
        return Ok(Done::Park(parked));
    }
    let entry = ctx.peek_kind(&source, Kind::List)?.expect("it was there");
    let items = View::of(entry).iter_from(at).take(usize::try_from(count).expect("a length"));
    let mut moved: Vec<OwnedElement> = items.map(OwnedElement::of).collect();
    if !how_many.in_bulk && from == to {
        moved.reverse();
    }
    let before = ctx.guard.counted();
    if source.bytes == destination.bytes {
        turn(ctx, from, to, &moved)?;
    } else {
        add(ctx, to, &moved)?;
        let (edit, _) = open(from.popped(), ctx, &source)?;
        edit.expect("it was there").cut(at, count);
    }
    ctx.guard.count_as(before, 1); // it is one move
    if ctx.guard.is_recording() {
        record_moved(ctx, from, to, &moved, count == len);
    }
    ctx.reply.array(moved.len());
    Done::begin(Moved { items: moved, next: 0 }, ctx)
}

/// Leaves a move of elements, which stand in their new order, in commands for one key. `takes_all`:
/// the first list had no other elements.
#[cold]
fn record_moved(
    ctx: &mut Ctx<'_, '_>,
    from: End,
    to: End,
    items: &[OwnedElement],
    takes_all: bool,
) {
    let (source, destination, db) = (ctx.key(1), ctx.key(2), ctx.db);
    let is_one = source.bytes == destination.bytes;
    let expiry = ctx.guard.peek(db, &source).filter(|_| is_one && takes_all);
    let expiry = expiry.and_then(|entry| entry.expiry());
    let mut count = [0; I64_TEXT_MAX];
    let pop = [from.pop(), source.bytes, format_i64(&mut count, items.len() as i64)];
    // What is pushed to the front last stands first.
    let mut pushed: Vec<&OwnedElement> = items.iter().collect();
    if to == End::Front {
        pushed.reverse();
    }
    let push = |ctx: &mut Ctx<'_, '_>| {
        for part in pushed.chunks(PUSHED_MAX) {
            ctx.guard.record_with(db, 2 + part.len(), |record| {
                record.word(to.push());
                record.word(destination.bytes);
                for item in part {
                    item.record(record);
                }
            });
        }
    };
    if is_one && from == to {
        ctx.guard.record(db, &pop);
        push(ctx);
        if expiry.is_some() {
            record::expiry(ctx, source.bytes, expiry); // it went with the last element
        }
    } else {
        push(ctx);
        ctx.guard.record(db, &pop);
    }
}

/// Adds elements at an end of the list under the second key, in their order.
fn add(ctx: &mut Ctx<'_, '_>, to: End, items: &[OwnedElement]) -> Result<(), Error> {
    let (destination, event) = (ctx.key(2), to.pushed());
    // What is pushed to the front last stands first.
    let (forth, back) =
        (items.iter().map(OwnedElement::as_new), items.iter().rev().map(OwnedElement::as_new));
    if let (Some(mut edit), _) = open(event, ctx, &destination)? {
        match to {
            End::Front => edit.push(to, back),
            End::Back => edit.push(to, forth),
        };
        return Ok(());
    }
    let (db, settings, scratch) = (ctx.db, ctx.settings, &mut ctx.tally.scratch);
    match to {
        End::Front => create(event, ctx.guard, db, &destination, settings, scratch, to, back),
        End::Back => create(event, ctx.guard, db, &destination, settings, scratch, to, forth),
    };
    Ok(())
}

/// Moves elements within one list, which is as long as before: it gets `items`, in their order. A
/// bulk that is put back where it was counts as a change.
fn turn(ctx: &mut Ctx<'_, '_>, from: End, to: End, items: &[OwnedElement]) -> Result<(), Error> {
    let source = ctx.key(1);
    let (edit, _) = open(to.pushed(), ctx, &source)?;
    edit.expect("it was there").turn(from, to, items);
    ctx.guard.notify(from.popped(), ctx.db, &source);
    Ok(())
}

/// Replies the elements that were moved, in steps.
struct Moved {
    items: Vec<OwnedElement>,
    /// The first that is not replied yet.
    next: usize,
}

impl Resumable for Moved {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let items = self.items[self.next..].iter().map(OwnedElement::as_item);
        self.next += some(&mut ctx.reply, items, STEP_MAX, STEP_BYTES_MAX) as usize;
        Ok(Progress::complete_if(self.next == self.items.len()))
    }
}
