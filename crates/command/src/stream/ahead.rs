//! Long changes of streams, prepared in steps on a clone, without locks ([`crate::prepare`]). The
//! last run of the command puts the result in its place, if the stream has not changed.
//!
//! A busy stream gets new entries all the time. New entries alone do not spoil a change that
//! concerns only groups.

use keyspace::{Captured, EntryMut, Event};
use value::{Big, Stream};

use super::view::{change, change_groups, of_big, of_big_mut};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{self, Preparation, Sources};

/// A change of one stream.
pub(super) trait Work: Sized + Send + 'static {
    /// What of the stream it reads and changes.
    const SCOPE: Scope;

    /// What it is called, once it is done; `was` is the stream before.
    fn events(&self, was: &Stream) -> Vec<Event>;

    /// Does one step; returns true at the end. `was` is the stream as it was captured, `stream` the
    /// clone that is changed.
    fn step(&mut self, was: &Stream, stream: &mut Stream) -> bool;

    /// The second run of the command: puts the changes in their places and replies.
    fn finish(changes: Changes<Self>, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error>;
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

/// One stream of a command, and the source that it is.
struct Part<W> {
    /// The argument that is its key.
    key: usize,
    rest: Captured,
    work: W,
}

/// Changes on their way.
pub(super) struct Changes<W> {
    sources: Sources,
    parts: Vec<Part<W>>,
    /// The first that is not done.
    at: usize,
}

impl<W: Work> Changes<W> {
    /// None yet, of a command that was prepared so often before.
    pub const fn new(tries: u32) -> Self {
        Self { sources: Sources::new(tries), parts: Vec::new(), at: 0 }
    }

    /// Adds a change of the stream in an argument, which is there.
    pub fn add(&mut self, ctx: &mut Ctx<'_, '_>, key: usize, work: W) {
        self.sources.add(ctx, key, holds::<W>);
        let rest = ctx.guard.keyspace().capture(self.sources.big(self.parts.len()));
        self.parts.push(Part { key, rest, work });
    }

    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first change.
    pub fn first(&self) -> Option<&W> {
        self.parts.first().map(|part| &part.work)
    }

    /// Puts the results in their places. Returns each with the argument that it belongs to.
    pub fn put(self, ctx: &mut Ctx<'_, '_>) -> Vec<(usize, W)> {
        let mut done = Vec::with_capacity(self.parts.len());
        for (i, Part { key, rest, work }) in self.parts.into_iter().enumerate() {
            let hashed = ctx.key(key);
            let mut entry =
                ctx.guard.entry_mut(Event::SILENT, ctx.db, &hashed).expect("it holds what it held");
            put_one(&mut entry, W::SCOPE, rest);
            tell_all(&mut entry, work.events(of_big(self.sources.big(i))));
            done.push((key, work));
        }
        // What the sources alone hold goes to the reclaimer, not with the clones.
        drop(self.sources);
        done
    }
}

fn holds<W: Work>(was: &Big, now: &Big) -> bool {
    matches!((was, now), (Big::Stream(was), Big::Stream(now)) if W::SCOPE.holds(was, now))
}

/// Changes the stream in an argument ahead of the command.
pub(super) fn change_ahead<W: Work>(
    ctx: &mut Ctx<'_, '_>,
    key: usize,
    work: W,
    tries: u32,
) -> Result<Done, Error> {
    let mut changes = Changes::new(tries);
    changes.add(ctx, key, work);
    prepare::begin(ctx, changes)
}

/// Changes the stream in an argument at once.
pub(super) fn change_now<W: Work>(ctx: &mut Ctx<'_, '_>, key: usize, mut work: W) -> W {
    let hashed = ctx.key(key);
    let mut entry =
        ctx.guard.entry_mut(Event::SILENT, ctx.db, &hashed).expect("the stream was found");
    let mut all = |stream: &mut Stream| {
        let was = stream.clone();
        while !work.step(&was, stream) {}
        work.events(&was)
    };
    let events = if W::SCOPE == Scope::Whole {
        change(&mut entry, |stream| all(stream))
    } else {
        change_groups(&mut entry, false, |stream| all(stream))
    };
    tell_all(&mut entry, events);
    work
}

fn tell_all(entry: &mut EntryMut<'_, '_>, events: Vec<Event>) {
    for event in events {
        entry.notify(event);
    }
}

fn put_one(entry: &mut EntryMut<'_, '_>, scope: Scope, rest: Captured) {
    let Big::Stream(rest) = rest.into_value() else { unreachable!("a stream was captured") };
    if scope == Scope::Whole {
        change(entry, |stream| *stream = rest);
    } else {
        change_groups(entry, false, |stream| stream.replace_groups(rest));
    }
}

impl<W: Work> Resumable for Changes<W> {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if let Some(part) = self.parts.get_mut(self.at) {
            let was = self.sources.big(self.at);
            if part.work.step(of_big(was), of_big_mut(part.rest.value_mut())) {
                self.at += 1;
            }
        }
        Ok(Progress::complete_if(self.at == self.parts.len()))
    }
}

impl<W: Work> Preparation for Changes<W> {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        W::finish(self, ctx)
    }
}

/// Whether this many changes are too many for one step, `work-at-once-elements`.
pub(super) fn exceeds_at_once(ctx: &Ctx<'_, '_>, count: u64) -> bool {
    count > ctx.settings.at_once_elements
}

/// Marks the guard as held for long if the command has very many arguments to process under its
/// locks. On `Err` the command must park and retry.
pub(super) fn mark_if_long(ctx: &mut Ctx<'_, '_>, args: usize) -> Result<(), Done> {
    if exceeds_at_once(ctx, args as u64) {
        ctx.guard.try_mark_long().map_err(Done::Park)?;
    }
    Ok(())
}
