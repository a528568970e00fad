//! Removing many members by rank from a big sorted set, done ahead ([`crate::prepare`]). The tree
//! of scores is cut; what takes long is the index of members, where those that go are spread.

use std::ops::Range;

use keyspace::{Captured, Event, Keyspace, Kind};
use value::Big;

use super::reply::write_header;
use super::snapshot::{MembersReply, Shown, ZsetSnapshot};
use super::view::{big_mut, big_of};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{Preparation, Sources};

/// Members that leave the index in one step: each may copy a page.
const STEP_MEMBERS: usize = 100;

/// What the command replies.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// How many went.
    Count,
    /// The members with their scores, the last one first if `rev`; after their key if it is said
    /// which argument that is, and then each an array of its own.
    Members { rev: bool, behind_key: Option<usize> },
}

/// Members on their way out.
pub(super) struct Cutting {
    sources: Sources,
    /// The argument that is the key.
    key: usize,
    answer: Answer,
    event: Event,
    was: Captured,
    remaining: Captured,
    /// All ranks that go.
    ranks: Range<u64>,
    /// The next of them that leaves the index; none did, and the order is whole, before the first
    /// step.
    next: Option<u64>,
}

impl Cutting {
    /// These ranks of the set in an argument, which are not all.
    pub fn new(
        event: Event,
        keyspace: &Keyspace,
        big: &Big,
        sources: Sources,
        key: usize,
        ranks: Range<u64>,
        answer: Answer,
    ) -> Self {
        let (was, remaining) = (keyspace.capture(big), keyspace.capture(big));
        Self { sources, key, answer, event, was, remaining, ranks, next: None }
    }
}

impl Resumable for Cutting {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let remaining = big_mut(self.remaining.value_mut());
        let Some(from) = self.next else {
            remaining.cut_order(self.ranks.clone());
            self.next = Some(self.ranks.start);
            return Ok(Progress::More);
        };
        let count = ((self.ranks.end - from) as usize).min(STEP_MEMBERS);
        for scored in big_of(&self.was).iter_from(from).take(count) {
            remaining.cut_member(scored.member);
        }
        self.next = Some(from + count as u64);
        Ok(Progress::complete_if(self.next == Some(self.ranks.end)))
    }
}

impl Preparation for Cutting {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let before = ctx.guard.counted();
        if let Some(mut entry) = ctx.entry_mut_kind(self.event, self.key, Kind::Zset)? {
            let called = entry.entry().encoding();
            entry.set_big(called, self.remaining.into_value());
        }
        ctx.guard.count_as(before, self.ranks.end - self.ranks.start);
        let Answer::Members { rev, behind_key } = self.answer else {
            ctx.reply.integer((self.ranks.end - self.ranks.start) as i64);
            return Ok(Done::Replied);
        };
        let shown = Shown { ranks: self.ranks, rev, scores: true, nested: behind_key.is_some() };
        if let Some(key) = behind_key {
            ctx.reply.array(2);
            ctx.reply.bulk(ctx.args.get(key));
            ctx.reply.array(shown.len() as usize);
        } else {
            write_header(&mut ctx.reply, shown.len(), true);
        }
        Ok(Done::Steps(Box::new(MembersReply { zset: ZsetSnapshot::Big(self.was), shown })))
    }
}
