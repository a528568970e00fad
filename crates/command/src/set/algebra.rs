//! Replying several sets in one: SINTER, SINTERCARD, SUNION, SDIFF.

use std::collections::VecDeque;

use base::num::parse_i64;
use base::out::OutBuf;
use resp::{Proto, Reply};

use super::merge::{Merge, Operation};
use crate::collection::STEP_ELEMENTS;
use crate::ctx::Ctx;
use crate::error::Error;
use crate::parse::is;
use crate::spec::Resumable;

/// Bytes of a piece of the reply.
const PIECE_BYTES: usize = 128 * 1024;

/// `SINTER key [key ...]`.
pub fn sinter(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    reply_members(ctx, Operation::Intersection)
}

/// `SUNION key [key ...]`.
pub fn sunion(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    reply_members(ctx, Operation::Union)
}

/// `SDIFF key [key ...]`.
pub fn sdiff(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    reply_members(ctx, Operation::Difference)
}

fn reply_members(ctx: &mut Ctx<'_, '_>, operation: Operation) -> Result<(), Error> {
    let keys = 1..ctx.args.len();
    let mut merge = Merge::new(ctx, operation, keys)?;
    if merge.work() > STEP_ELEMENTS {
        let rest =
            Members { merge: Some(merge), found: 0, pieces: VecDeque::new(), piece: OutBuf::new() };
        ctx.resume(Box::new(rest));
        return Ok(());
    }
    let mark = ctx.reply.array_deferred();
    let mut members = 0;
    merge.step(u64::MAX, |key| {
        members += 1;
        ctx.reply.bulk(key.tail);
        true
    });
    ctx.reply.close_set(mark, members);
    Ok(())
}

/// A large result: collected, then replied in pieces.
struct Members {
    /// What is not collected yet.
    merge: Option<Merge>,
    found: usize,
    /// Members as bulk strings: full pieces, and the one that is being filled.
    pieces: VecDeque<Vec<u8>>,
    piece: OutBuf,
}

impl Resumable for Members {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        if let Some(merge) = &mut self.merge {
            let more = merge.step(STEP_ELEMENTS, |key| {
                self.found += 1;
                Reply::new(&mut self.piece, Proto::Resp2).bulk(key.tail);
                if self.piece.bytes.len() >= PIECE_BYTES {
                    self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
                }
                true
            });
            if more {
                return Ok(false);
            }
            self.merge = None;
            self.pieces.push_back(std::mem::take(&mut self.piece.bytes));
            ctx.reply.set(self.found);
        }
        if let Some(piece) = self.pieces.pop_front() {
            ctx.reply.raw(&piece);
        }
        Ok(self.pieces.is_empty())
    }
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`.
pub fn sintercard(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    let keys = parse_i64(ctx.arg(1)).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let keys = keys.ok_or(Error::NumKeysPositive)?;
    if keys > ctx.args.len() - 2 {
        return Err(Error::NumKeysMany);
    }
    let mut limit = 0;
    let mut words = ctx.args.from(2 + keys).iter();
    while let Some(word) = words.next() {
        let value = words.next().filter(|_| is(word, "LIMIT")).ok_or(Error::Syntax)?;
        let value = parse_i64(value).and_then(|n| u64::try_from(n).ok());
        limit = value.ok_or(Error::LimitNegative)?;
    }
    let merge = Merge::new(ctx, Operation::Intersection, 2..2 + keys)?;
    let limit = if limit == 0 { u64::MAX } else { limit };
    let mut count = Count { merge, limit, members: 0 };
    if !count.step(ctx)? {
        ctx.resume(Box::new(count));
    }
    Ok(())
}

/// SINTERCARD under way.
struct Count {
    merge: Merge,
    limit: u64,
    members: u64,
}

impl Resumable for Count {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        let more = self.merge.step(STEP_ELEMENTS, |_| {
            self.members += 1;
            self.members < self.limit
        });
        if !more {
            ctx.reply.integer(self.members as i64);
        }
        Ok(!more)
    }
}
