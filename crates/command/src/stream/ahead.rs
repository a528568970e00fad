//! Long changes of streams, done ahead ([`crate::prepare`]): on a clone, in steps, with the locks dropped. The last run
//! of the command puts the result in its place, if what it was made of is still there.
//!
//! Somebody adds to a stream all the time; so what concerns its groups alone stands when nothing but entries came.

use keyspace::{Captured, EntryMut};
use value::{Big, Stream};

use super::{change, change_groups, of_big, of_big_mut, of_entry};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::prepare::TRIES_MAX;
use crate::spec::{Done, Progress, Resumable};

/// A change of one stream.
pub(super) trait Work: Send + 'static {
    /// What of the stream it reads and changes.
    const SCOPE: Scope;

    /// Goes on for a step; true at the end. `was` is the stream as it was captured, and the other one is changed.
    fn step(&mut self, was: &Stream, stream: &mut Stream) -> bool;
}

/// What of a stream a change reads and changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything.
    Whole,
    /// The groups; which entries are there is read.
    GroupsOfEntries,
    /// The groups, whatever entries are there.
    Groups,
}

impl Scope {
    fn holds(self, was: &Stream, now: &Stream) -> bool {
        match self {
            Self::Whole => now.is_same(was),
            Self::GroupsOfEntries => now.has_groups_of(was) && now.has_grown_from(was),
            Self::Groups => now.has_groups_of(was),
        }
    }
}

/// One stream of a command.
struct Part<W> {
    /// The argument that is its key.
    key: usize,
    was: Captured,
    rest: Captured,
    work: W,
}

/// Changes on their way.
pub(super) struct Ahead<W> {
    parts: Vec<Part<W>>,
    /// The first that is not done.
    at: usize,
    /// How often they were done in vain.
    tries: u32,
}

impl<W: Work> Ahead<W> {
    /// What was done ahead of the running command, if it holds; else where to begin.
    pub fn found(ctx: &mut Ctx<'_, '_>) -> Result<Self, Self> {
        let Some(found) = ctx.prepared::<Self>() else {
            return Err(Self { parts: Vec::new(), at: 0, tries: 0 });
        };
        let holds = found.parts.iter().all(|part| {
            let key = ctx.key(part.key);
            let now = ctx.guard.peek(ctx.db, &key).and_then(|entry| entry.big());
            matches!((now, &*part.was), (Some(Big::Stream(now)), Big::Stream(was)) if W::SCOPE.holds(was, now))
        });
        if holds {
            return Ok(*found);
        }
        Err(Self { parts: Vec::new(), at: 0, tries: found.tries + 1 })
    }

    /// Adds a change of the stream in an argument, which is there.
    pub fn add(&mut self, ctx: &mut Ctx<'_, '_>, key: usize, work: W) {
        let (hashed, keyspace) = (ctx.key(key), ctx.guard.keyspace());
        let entry = ctx.guard.peek(ctx.db, &hashed);
        let big = entry.and_then(|entry| entry.big()).expect("the stream was found");
        let (was, rest) = (keyspace.capture(big), keyspace.capture(big));
        self.parts.push(Part { key, was, rest, work });
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Does the changes now, under the locks, if they were done ahead in vain too often; else they are done ahead.
    pub fn begin(mut self, ctx: &mut Ctx<'_, '_>) -> Result<Self, Done> {
        if self.tries < TRIES_MAX {
            return Err(Done::Prepare(Box::new(self)));
        }
        ctx.guard.try_mark_long().map_err(Done::Park)?;
        while !self.go_on() {}
        Ok(self)
    }

    /// Does the change of the stream in an argument: now, or ahead if it is `much`.
    pub fn run(
        mut self,
        ctx: &mut Ctx<'_, '_>,
        key: usize,
        mut work: W,
        much: bool,
    ) -> Result<Vec<(usize, W)>, Done> {
        if much {
            self.add(ctx, key, work);
            return self.begin(ctx).map(|done| done.put(ctx));
        }
        let hashed = ctx.key(key);
        let mut entry = ctx.guard.entry_mut(ctx.db, &hashed).expect("the stream was found");
        let mut all = |stream: &mut Stream| {
            let was = stream.clone();
            while !work.step(&was, stream) {}
        };
        if W::SCOPE == Scope::Whole {
            change(&mut entry, |stream| all(stream));
        } else {
            change_groups(&mut entry, false, |stream| all(stream));
        }
        Ok(vec![(key, work)])
    }

    fn go_on(&mut self) -> bool {
        if let Some(part) = self.parts.get_mut(self.at)
            && part.work.step(of_big(&part.was), of_big_mut(part.rest.value_mut()))
        {
            self.at += 1;
        }
        self.at == self.parts.len()
    }

    /// Puts the results in their places; which argument each belongs to, and what it came to.
    pub fn put(self, ctx: &mut Ctx<'_, '_>) -> Vec<(usize, W)> {
        let mut done = Vec::with_capacity(self.parts.len());
        for Part { key, was, rest, work } in self.parts {
            let hashed = ctx.key(key);
            let mut entry = ctx.guard.entry_mut(ctx.db, &hashed).expect("it holds what it held");
            put_one(&mut entry, W::SCOPE, rest);
            // What it alone holds goes to the reclaimer, not with the clone.
            drop(was);
            done.push((key, work));
        }
        done
    }
}

fn put_one(entry: &mut EntryMut<'_, '_>, scope: Scope, rest: Captured) {
    let Big::Stream(rest) = rest.into_value() else { unreachable!("a stream was captured") };
    if scope == Scope::Whole {
        change(entry, |stream| *stream = rest);
    } else {
        change_groups(entry, false, |stream| stream.take_groups(rest));
    }
}

impl<W: Work> Resumable for Ahead<W> {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(self.go_on()))
    }
}

/// Whether so many changes are to be done ahead.
pub(super) fn is_much(ctx: &Ctx<'_, '_>, count: u64) -> bool {
    count > ctx.settings.at_once_elements
}

/// Says that the command goes through very many arguments under its locks. On `Err` it does so later.
pub(super) fn mark_if_much(ctx: &mut Ctx<'_, '_>, args: usize) -> Result<(), Done> {
    if is_much(ctx, args as u64) {
        ctx.guard.try_mark_long().map_err(Done::Park)?;
    }
    Ok(())
}

/// The stream in an argument, which is there.
pub(super) fn stream_at<'b>(ctx: &'b mut Ctx<'_, '_>, at: usize) -> &'b Stream {
    let key = ctx.key(at);
    of_entry(ctx.guard.peek(ctx.db, &key).expect("the stream was found"))
}
