//! Replying several sets in one: SINTER, SUNION, SDIFF, and their SINTERCARD, SUNIONCARD,
//! SDIFFCARD.

use std::collections::VecDeque;
use std::ops::Range;

use base::num::parse_i64;
use base::out::OutBuf;
use resp::{Args, Proto, Reply};
use value::packed::Elem;

use super::merge::Merge;
use super::operation::Operation;
use crate::collection::STEP_ELEMENTS;
use crate::ctx::{Ctx, Progress, Resumable, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::parse::is;
use crate::spec::KeyRuns;

/// Bytes of a piece of the reply.
const PIECE_BYTES: usize = 128 * 1024;
/// Integers that are put in order at most, whatever `set-max-intset-entries` says.
const NUMBERS_MAX: usize = 4096;

/// `SINTER key [key ...]`.
pub fn sinter(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_members(ctx, Operation::Intersection)
}

/// `SUNION key [key ...]`.
pub fn sunion(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_members(ctx, Operation::Union)
}

/// `SDIFF key [key ...]`.
pub fn sdiff(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    reply_members(ctx, Operation::Difference)
}

fn reply_members(ctx: &mut Ctx<'_, '_>, operation: Operation) -> Result<Done, Error> {
    let keys = 1..ctx.args.len();
    let mut merge = Merge::new(ctx, operation, keys)?;
    let mut order = Order::new(ctx.settings);
    if merge.work() > ctx.settings.at_once_elements {
        let (pieces, piece) = (VecDeque::new(), OutBuf::new());
        return Ok(Done::Steps(Box::new(Members {
            merge: Some(merge),
            order,
            found: 0,
            pieces,
            piece,
        })));
    }
    let mark = ctx.reply.array_deferred();
    let mut members = 0;
    merge.step(u64::MAX, |key| {
        members += 1;
        order.write(&mut ctx.reply, key.tail);
        true
    });
    order.end(&mut ctx.reply);
    ctx.reply.close_set(mark, members);
    Ok(Done::Replied)
}

/// The order of a result. One that would be stored as an intset is replied in the order of its
/// numbers, as an intset is listed; any other as it comes.
struct Order {
    /// Members that are not written yet: the result is small so far and has integers only.
    numbers: Vec<i64>,
    numbers_max: usize,
    is_kept: bool,
}

impl Order {
    fn new(settings: &Settings) -> Self {
        let numbers_max = usize::try_from(settings.set_max_intset_entries).unwrap_or(usize::MAX);
        let numbers_max = numbers_max.min(NUMBERS_MAX);
        Self { numbers: Vec::new(), numbers_max, is_kept: true }
    }

    /// Writes a member, or keeps it for the end.
    fn write(&mut self, reply: &mut Reply<'_>, member: &[u8]) {
        if self.is_kept {
            if let Elem::Int(number) = Elem::of(member)
                && self.numbers.len() < self.numbers_max
            {
                return self.numbers.push(number);
            }
            self.is_kept = false;
            self.flush(reply);
        }
        reply.bulk(member);
    }

    /// Writes what was kept.
    fn end(&mut self, reply: &mut Reply<'_>) {
        self.numbers.sort_unstable();
        self.flush(reply);
    }

    fn flush(&mut self, reply: &mut Reply<'_>) {
        for number in self.numbers.drain(..) {
            reply.bulk_int(number);
        }
    }
}

/// A large result: collected, then replied in pieces.
struct Members {
    /// What is not collected yet.
    merge: Option<Merge>,
    order: Order,
    found: usize,
    /// Members as bulk strings: full pieces, and the one that is being filled.
    pieces: VecDeque<Vec<u8>>,
    piece: OutBuf,
}

impl Resumable for Members {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if let Some(merge) = &mut self.merge {
            let more = merge.step(STEP_ELEMENTS, |key| {
                self.found += 1;
                self.order.write(&mut Reply::new(&mut self.piece, Proto::Resp2), key.tail);
                if self.piece.bytes.len() >= PIECE_BYTES {
                    self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
                }
                true
            });
            if more {
                return Ok(Progress::More);
            }
            self.order.end(&mut Reply::new(&mut self.piece, Proto::Resp2));
            self.merge = None;
            self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
            ctx.reply.set(self.found);
        }
        if let Some(piece) = self.pieces.pop_front() {
            ctx.reply.raw(&piece);
        }
        Ok(Progress::complete_if(self.pieces.is_empty()))
    }
}

/// The keys of SINTERCARD, SUNIONCARD and SDIFFCARD.
pub fn card_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(counted_keys(args)?))
}

fn counted_keys(args: Args<'_>) -> Result<Range<usize>, Error> {
    let keys = parse_i64(args.get(1)).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let keys = keys.ok_or(Error::NumKeysPositive)?;
    if keys > args.len() - 2 {
        return Err(Error::NumKeysMany);
    }
    Ok(2..2 + keys)
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`.
pub fn sintercard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    count_members(ctx, Operation::Intersection)
}

/// `SUNIONCARD numkeys key [key ...] [APPROX] [LIMIT limit]`. An estimate would save nothing: the
/// union is counted without being made.
pub fn sunioncard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    count_members(ctx, Operation::Union)
}

/// `SDIFFCARD numkeys key [key ...] [LIMIT limit]`.
pub fn sdiffcard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    count_members(ctx, Operation::Difference)
}

fn count_members(ctx: &mut Ctx<'_, '_>, operation: Operation) -> Result<Done, Error> {
    let keys = counted_keys(ctx.args)?;
    let mut limit = 0;
    let mut words = ctx.args.from(keys.end).iter();
    while let Some(word) = words.next() {
        if operation == Operation::Union && is(word, "APPROX") {
            continue;
        }
        let value = words.next().filter(|_| is(word, "LIMIT")).ok_or(Error::Syntax)?;
        let value = parse_i64(value).and_then(|n| u64::try_from(n).ok());
        limit = value.ok_or(Error::LimitNegative)?;
    }
    let merge = Merge::new(ctx, operation, keys)?;
    let limit = if limit == 0 { u64::MAX } else { limit };
    let count = Count { merge, limit, members: 0 };
    Done::begin(count, ctx)
}

/// SINTERCARD and its like under way.
struct Count {
    merge: Merge,
    limit: u64,
    members: u64,
}

impl Resumable for Count {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let more = self.merge.step(STEP_ELEMENTS, |_| {
            self.members += 1;
            self.members < self.limit
        });
        if !more {
            ctx.reply.integer(self.members as i64);
        }
        Ok(Progress::complete_if(!more))
    }
}
