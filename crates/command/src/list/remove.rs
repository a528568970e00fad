//! LREM, LTRIM.

use value::Log;
use value::list::{Item, List};

use super::edit::{Edit, open};
use super::element::{equals, owned, wanted};
use super::position::bounds;
use super::removing::Removing;
use super::view::{View, of_big_mut};
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::integer;
use crate::prepare::{self, Found, Preparation, Sources};
use keyspace::Kind;

/// Elements that are removed one by one; more are undone by a clone of the list.
const LOGGED_MAX: u64 = 64;
/// The remaining elements are copied if the removed ones are at least this many times as many.
const LEFT_SHARE: u64 = 16;
/// The remaining elements are copied, too, if more runs are cut out than one per this many of them.
const RUN_SHARE: u64 = 5;

/// `LTRIM key start stop`. The key counts as changed even if nothing goes.
pub fn ltrim(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (start, stop) = (integer(ctx.arg(2))?, integer(ctx.arg(3))?);
    let key = ctx.key(1);
    let before = ctx.guard.counted();
    let (edit, reply) = open(events::LTRIM, ctx, &key)?;
    let mut gone = 0;
    if let Some(mut edit) = edit {
        let len = edit.view().len();
        let (at, count) = bounds(start, stop, len);
        gone = len - count;
        if count == 0 {
            edit.remove_key();
        } else if count < len {
            trim(&mut edit, at, count, len);
        } else {
            edit.touch(); // those who watch it are told, and nothing has changed
        }
    }
    reply.ok();
    ctx.guard.count_as(before, gone);
    Ok(Done::Replied)
}

/// Leaves `count` elements from a position on.
fn trim(edit: &mut Edit<'_, '_>, at: u64, count: u64, len: u64) {
    match edit.view() {
        View::Small(_) => edit.retain_packed(|place| (at..at + count).contains(&place)),
        View::Big(list) if count < (len - count) / LEFT_SHARE => {
            let mut left = List::new();
            for item in list.iter_from(at).take(count as usize) {
                left.build(owned(item));
            }
            edit.rebuild(left);
        }
        View::Big(_) => edit.shrink(|big, log| {
            let ranges = [(at + count, len - count - at), (0, at)];
            cut(big, log, &ranges);
        }),
    }
}

/// Removes ranges, the last one first.
fn cut(big: &mut value::Big, log: &mut Log, ranges: &[(u64, u64)]) {
    let all: u64 = ranges.iter().map(|(_, count)| count).sum();
    if all > LOGGED_MAX {
        log.capture(big);
    }
    let list = of_big_mut(big);
    for &(at, count) in ranges {
        if all > LOGGED_MAX {
            list.remove_range(at, count);
        } else {
            // From its end if that is the list's.
            let is_tail = at + count == list.len();
            (0..count).for_each(|n| {
                list.remove(if is_tail { at + count - 1 - n } else { at }, log, |_| ());
            });
        }
    }
}

/// `LREM key count element`: how many were removed, the first ones, or the last ones if the count
/// is negative, or all if it is 0.
pub fn lrem(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (count, text) = (integer(ctx.args.start(2))?, wanted(&ctx.args, 3));
    let tries = match prepare::found::<Removing>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let (key, keyspace) = (ctx.key(1), ctx.guard.keyspace());
    let at_once = ctx.settings.at_once_elements;
    let big = ctx.peek_kind(&key, Kind::List)?.and_then(|entry| entry.big());
    if let Some(was) = big.filter(|big| big.len() > at_once).map(|big| keyspace.capture(big)) {
        let sources = Sources::of(ctx, 1..2, tries);
        let removing = Removing::new(keyspace, was, sources, count, text);
        return prepare::begin(ctx, removing);
    }
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LREM, ctx, &key)? else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let view = edit.view();
    let len = view.len();
    let runs = Runs::find(view, text, count);
    reply.integer(runs.all as i64);
    if runs.all == len {
        edit.remove_key();
    } else if runs.all > 0 {
        take_out(&mut edit, &runs, len);
    }
    ctx.guard.count_as(before, runs.all);
    Ok(Done::Replied)
}

/// Matches, neighbours together.
struct Runs {
    /// Positions and lengths, ascending.
    found: Vec<(u64, u64)>,
    /// Elements in them.
    all: u64,
}

impl Runs {
    fn find(view: View<'_>, text: Item<'_>, count: i64) -> Self {
        let mut runs = Self { found: Vec::new(), all: 0 };
        let max = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        if count < 0 {
            for (item, at) in view.iter_back().zip((0..view.len()).rev()) {
                if runs.all == max {
                    break;
                }
                if equals(item, text) {
                    runs.add_before(at);
                }
            }
            runs.found.reverse();
        } else {
            for (item, at) in view.iter_from(0).zip(0..) {
                if runs.all == max {
                    break;
                }
                if equals(item, text) {
                    runs.add_behind(at);
                }
            }
        }
        runs
    }

    fn add_behind(&mut self, at: u64) {
        self.all += 1;
        match self.found.last_mut() {
            Some((from, count)) if *from + *count == at => *count += 1,
            _ => self.found.push((at, 1)),
        }
    }

    fn add_before(&mut self, at: u64) {
        self.all += 1;
        match self.found.last_mut() {
            Some((from, count)) if *from == at + 1 => (*from, *count) = (at, *count + 1),
            _ => self.found.push((at, 1)),
        }
    }

    /// Whether a position is among them; asked in ascending order.
    fn seek(&self) -> impl FnMut(u64) -> bool + '_ {
        let mut rest = &self.found[..];
        move |at| {
            while let Some((&(from, count), others)) = rest.split_first() {
                if at < from + count {
                    return at >= from;
                }
                rest = others;
            }
            false
        }
    }
}

/// Removes the matches, which are not all elements.
fn take_out(edit: &mut Edit<'_, '_>, runs: &Runs, len: u64) {
    let mut goes = runs.seek();
    match edit.view() {
        View::Small(_) => edit.retain_packed(|at| !goes(at)),
        View::Big(list) if len - runs.all < runs.found.len() as u64 * RUN_SHARE => {
            let mut left = List::new();
            for (item, at) in list.iter().zip(0..) {
                if !goes(at) {
                    left.build(owned(item));
                }
            }
            edit.rebuild(left);
        }
        View::Big(_) => edit.shrink(|big, log| {
            let ranges: Vec<_> = runs.found.iter().rev().copied().collect();
            cut(big, log, &ranges);
        }),
    }
}
