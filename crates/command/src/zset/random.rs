//! ZRANDMEMBER.

use std::collections::BTreeSet;

use keyspace::Kind;
use resp::Reply;
use value::packed::Elem;
use value::zset::{View, small};

use super::reply::{write_header, write_member, write_scored};
use super::snapshot::{STEP_BYTES, STEP_MEMBERS, ZsetSnapshot};
use super::view::view_of;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::parse::{integer, is};

/// `ZRANDMEMBER key [count [WITHSCORES]]`.
pub fn zrandmember(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if ctx.args.len() > 2 {
        return several(ctx);
    }
    let draw = ctx.tally.draw();
    let (entry, reply) = ctx.read_reply(1, Kind::Zset)?;
    match entry.map(|entry| view_of(entry)) {
        Some(zset) => at(zset, below(draw, zset.len()), |member, _| write_member(reply, member)),
        None => reply.null(),
    }
    Ok(Done::Replied)
}

/// A number below `len` from 64 random bits.
fn below(draw: u64, len: u64) -> u64 {
    ((u128::from(draw) * u128::from(len)) >> 64) as u64
}

/// The member of a rank, in any order that is always the same.
fn at(zset: View<'_>, rank: u64, f: impl FnOnce(Elem<'_>, f64)) {
    match zset {
        View::Small(bytes) => {
            let pair = small::pairs(bytes).nth(rank as usize).expect("a rank below the length");
            f(pair.member, pair.score);
        }
        View::Big(zset) => {
            let scored = zset.at_hashed(rank).expect("a rank below the length");
            f(Elem::Bytes(scored.member), scored.score);
        }
    }
}

fn several(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let count = integer(ctx.arg(2))?;
    if count == i64::MIN {
        return Err(Error::CountRange);
    }
    let scores = match ctx.args.len() {
        3 => false,
        4 if is(ctx.arg(3), "WITHSCORES") => true,
        _ => return Err(Error::Syntax),
    };
    if scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Error::OutOfRange);
    }
    let keyspace = ctx.guard.keyspace();
    let Some(entry) = ctx.read_kind(1, Kind::Zset)? else {
        ctx.reply.array(0);
        return Ok(Done::Replied);
    };
    let zset = ZsetSnapshot::new(keyspace, entry);
    let len = zset.view().len();
    let chosen = if count < 0 {
        Chosen::Repeated(count.unsigned_abs())
    } else if count as u64 >= len {
        Chosen::All(0)
    } else {
        let mut ranks: Vec<u64> = distinct(len, count as u64, || ctx.tally.draw());
        ranks.reverse();
        Chosen::Distinct(ranks)
    };
    let draws = Draws { zset, len, chosen, scores };
    write_header(&mut ctx.reply, draws.left(), scores);
    Done::begin(draws, ctx)
}

/// `count` different numbers below `len`, ascending; every choice is equally likely.
fn distinct(len: u64, count: u64, mut draw: impl FnMut() -> u64) -> Vec<u64> {
    // Of more than half of them it is shorter to say which are missing.
    let few = count.min(len - count);
    let mut chosen = BTreeSet::new();
    for top in len - few..len {
        let drawn = below(draw(), top + 1);
        if !chosen.insert(drawn) {
            chosen.insert(top);
        }
    }
    if few == count {
        chosen.into_iter().collect()
    } else {
        (0..len).filter(|rank| !chosen.contains(rank)).collect()
    }
}

/// The members that are still to be replied.
enum Chosen {
    /// So many draws, each of any member.
    Repeated(u64),
    /// All from this rank on.
    All(u64),
    /// Those of these ranks, the last one first.
    Distinct(Vec<u64>),
}

struct Draws {
    zset: ZsetSnapshot,
    len: u64,
    chosen: Chosen,
    scores: bool,
}

impl Draws {
    fn left(&self) -> u64 {
        match &self.chosen {
            Chosen::Repeated(count) => *count,
            Chosen::All(from) => self.len - from,
            Chosen::Distinct(ranks) => ranks.len() as u64,
        }
    }

    fn next(&mut self, draw: impl FnOnce() -> u64) -> Option<u64> {
        match &mut self.chosen {
            Chosen::Repeated(count) => {
                *count = count.checked_sub(1)?;
                Some(below(draw(), self.len))
            }
            Chosen::All(from) => {
                *from += 1;
                (*from <= self.len).then(|| *from - 1)
            }
            Chosen::Distinct(ranks) => ranks.pop(),
        }
    }
}

impl Resumable for Draws {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let full = ctx.reply.position().bytes + STEP_BYTES;
        for _ in 0..STEP_MEMBERS / 4 {
            let Some(rank) = self.next(|| ctx.tally.draw()) else { return Ok(Progress::Complete) };
            let (reply, scores): (&mut Reply<'_>, _) = (&mut ctx.reply, self.scores);
            at(self.zset.view(), rank, |member, score| write_scored(reply, member, score, scores));
            if ctx.reply.position().bytes >= full {
                break;
            }
        }
        Ok(Progress::complete_if(self.left() == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::prng::Prng;

    #[test]
    fn every_selection_is_equally_likely() {
        let mut seed = 0;
        let mut draw = || {
            seed += 1;
            Prng::new(seed).draw()
        };
        for count in [1, 2, 4] {
            let mut seen = [0_u32; 5];
            for _ in 0..5_000 {
                let chosen = distinct(5, count, &mut draw);
                assert_eq!(chosen.len() as u64, count);
                assert!(chosen.is_sorted_by(|a, b| a < b));
                for rank in chosen {
                    seen[rank as usize] += 1;
                }
            }
            let expected = 1_000 * count as u32;
            assert!(seen.iter().all(|n| n.abs_diff(expected) < 200), "{count}: {seen:?}");
        }
    }
}
