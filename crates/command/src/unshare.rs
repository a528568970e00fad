//! What a change of many members would copy is copied ahead.
//!
//! Another key (COPY), a save or a reader may share the pages of a collection. A change copies each
//! page that it touches: up to 10 us per member, all of them under the key's lock. So the pages of
//! a command with very many members are copied in steps before it runs, and the lock is released
//! in between. Nothing is changed by that. If others share the pages again meanwhile, or the
//! collection is another one, the command copies what it must.

use base::{DbIndex, double};
use keyspace::{Guard, Intent, Key};
use resp::Args;

use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;
use crate::spec::CommandSpec;

/// Members whose places are looked at to find out whether there is anything to copy.
const SAMPLE: usize = 16;
/// Members of one step: a place costs up to 10 us, a sorted set has two or three for each.
const STEP_MEMBERS: usize = 32;

/// The members of a command, in the order of its arguments.
struct Unsharing {
    db: DbIndex,
    key: Vec<u8>,
    members: Vec<u8>,
    /// Where each member ends, and the score which it will get.
    ends: Vec<(usize, Option<f64>)>,
    /// Members that are done.
    next: usize,
}

/// The work for the members that a command is about to change; `None` if nobody shares any of the
/// places which are looked at. The guard covers the key.
pub fn ahead(
    guard: &Guard<'_>,
    db: DbIndex,
    key: &Key<'_>,
    args: Args<'_>,
    spec: &CommandSpec,
) -> Option<Box<dyn Resumable>> {
    let (mut first, step) = (usize::from(spec.member), usize::from(spec.member_step));
    if step == 0 || args.len() <= first {
        return None;
    }
    let is_scored = first == 3;
    if is_scored {
        first += args.len() % 2; // the last argument is a member, whatever the options
    }
    let big = guard.stored_big(db, key)?;
    let at = (first..args.len()).step_by(step);
    let mut sample = at.clone().step_by(at.len().div_ceil(SAMPLE));
    if !sample.any(|i| big.is_shared(args.get(i))) {
        return None;
    }
    let mut work =
        Unsharing { db, key: key.bytes.to_vec(), members: Vec::new(), ends: Vec::new(), next: 0 };
    for i in at {
        work.members.extend_from_slice(args.get(i));
        let score = if is_scored { double::parse(args.get(i - 1)) } else { None };
        work.ends.push((work.members.len(), score.filter(|score| !score.is_nan())));
    }
    Some(Box::new(work))
}

impl Resumable for Unsharing {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let end = self.ends.len().min(self.next + STEP_MEMBERS);
        let mut start = if self.next == 0 { 0 } else { self.ends[self.next - 1].0 };
        let mut members = [(&[][..], None); STEP_MEMBERS];
        for ((end, score), member) in self.ends[self.next..end].iter().zip(&mut members) {
            *member = (&self.members[start..*end], *score);
            start = *end;
        }
        let members = &members[..end - self.next];
        let key = ctx.guard.keyspace().key(&self.key);
        let unshare = |guard: &mut Guard<'_>| guard.unshare(self.db, &key, members);
        match ctx.guard.visit(key.slot, Intent::Write, unshare) {
            Err(parked) => return Ok(Progress::Park(parked)),
            Ok(false) => return Ok(Progress::Complete),
            Ok(true) => self.next = end,
        }
        Ok(Progress::complete_if(end == self.ends.len()))
    }

    fn memory(&self) -> usize {
        self.key.capacity()
            + self.members.capacity()
            + self.ends.capacity() * size_of::<(usize, Option<f64>)>()
    }
}
