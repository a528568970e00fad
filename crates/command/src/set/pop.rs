//! SPOP of many members of a big set, done ahead ([`crate::prepare`]).

use keyspace::{Captured, Keyspace, Kind};
use value::keyed::Key;
use value::set::Set;
use value::{Big, Log};

use crate::collection::{Choice, Show, below, reply_some};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::prepare::{Preparation, Sources};
use crate::record;
use crate::tally::Tally;

/// Members taken out of a clone in one step: each may copy a page.
const STEP_TAKEN: u64 = 25;
/// Members written to one of both in one step.
const STEP_WRITTEN: usize = 500;
/// If more than one member in this many is popped, both sets are built from scratch.
const TAKEN_SHARE: u64 = 16;

/// Random members on their way out of a set.
pub(super) struct Popping {
    sources: Sources,
    was: Captured,
    /// What stays.
    remaining: Captured,
    popped: Captured,
    /// Members still to be drawn.
    left: u64,
    /// The next rank to look at, if both sets are built from scratch.
    rank: Option<u64>,
    log: Log,
}

impl Popping {
    /// `wanted` members of a set of more.
    pub fn new(keyspace: &Keyspace, big: &Big, sources: Sources, wanted: u64) -> Self {
        let empty = || Big::Set(Set::new());
        let anew = wanted > big.len() / TAKEN_SHARE;
        Self {
            sources,
            was: keyspace.capture(big),
            remaining: if anew { keyspace.capture_owned(empty()) } else { keyspace.capture(big) },
            popped: keyspace.capture_owned(empty()),
            left: wanted,
            rank: anew.then_some(0),
            log: Log::default(),
        }
    }

    /// Looks at the next members: each goes as likely as there are more to go among those that are
    /// left.
    fn write_anew(&mut self, tally: &mut Tally, from: u64) {
        let (remaining, popped) = (set_mut(&mut self.remaining), set_mut(&mut self.popped));
        let Big::Set(was) = &*self.was else { unreachable!("a set was captured") };
        let (len, mut rank) = (was.len(), from);
        for member in was.iter_at(from).take(STEP_WRITTEN) {
            let goes = below(tally, len - rank) < self.left;
            self.left -= u64::from(goes);
            (if goes { &mut *popped } else { &mut *remaining }).build(Key::hashed(member));
            rank += 1;
        }
        self.rank = Some(rank);
    }

    fn take(&mut self, tally: &mut Tally) {
        let (remaining, popped) = (set_mut(&mut self.remaining), set_mut(&mut self.popped));
        for _ in 0..self.left.min(STEP_TAKEN) {
            let rank = below(tally, remaining.len());
            let member = remaining.at(rank).expect("a rank below the length").to_vec();
            remaining.remove(&member, &mut self.log);
            popped.build(Key::hashed(&member));
            self.left -= 1;
        }
        self.log.clear();
    }
}

fn set_mut(captured: &mut Captured) -> &mut Set {
    match captured.value_mut() {
        Big::Set(set) => set,
        _ => unreachable!("a set was captured"),
    }
}

impl Resumable for Popping {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let is_done = if let Some(from) = self.rank {
            self.write_anew(ctx.tally, from);
            self.rank == Some(self.was.len())
        } else {
            self.take(ctx.tally);
            self.left == 0
        };
        Ok(Progress::complete_if(is_done))
    }
}

impl Preparation for Popping {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let before = ctx.guard.counted();
        if let Some(mut entry) = ctx.entry_mut_kind(events::SPOP, 1, Kind::Set)? {
            let called = entry.entry().encoding();
            entry.set_big(called, self.remaining.into_value());
        }
        if ctx.guard.is_recording()
            && let Big::Set(popped) = &*self.popped
        {
            let key = ctx.key(1);
            record::in_parts(ctx, &[b"SREM", key.bytes], popped.iter_at(0));
        }
        ctx.guard.count_as(before, self.popped.len());
        ctx.reply.set(self.popped.len() as usize);
        reply_some(ctx, self.popped, Show::Names, Choice::All)
    }
}
