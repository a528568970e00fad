//! Storing several sets in one: SINTERSTORE, SUNIONSTORE, SDIFFSTORE.

use keyspace::{Captured, Encoding, Event, Kind};
use value::Big;
use value::packed::{Elem, PACKED_MAX};
use value::set::Set;

use super::form::{Form, packed_max, tree_encoding};
use super::merge::Merge;
use super::operation::Operation;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::prepare::{self, Found, Preparation, Sources};

/// `SINTERSTORE destination key [key ...]`.
pub fn sinterstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    store(ctx, Operation::Intersection)
}

/// `SUNIONSTORE destination key [key ...]`.
pub fn sunionstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    store(ctx, Operation::Union)
}

/// `SDIFFSTORE destination key [key ...]`.
pub fn sdiffstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    store(ctx, Operation::Difference)
}

fn store(ctx: &mut Ctx<'_, '_>, operation: Operation) -> Result<Done, Error> {
    let tries = match prepare::found::<Storing>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let keys = 2..ctx.args.len();
    let merge = Merge::new(ctx, operation, keys.clone())?;
    let set = ctx.guard.keyspace().capture_owned(Big::Set(Set::new()));
    let event = match operation {
        Operation::Intersection => events::SINTERSTORE,
        Operation::Union => events::SUNIONSTORE,
        Operation::Difference => events::SDIFFSTORE,
    };
    let mut building = Building { event, merge, set, form: Form::NEW, bytes: 0 };
    if building.merge.work() > ctx.settings.at_once_elements {
        let sources = Sources::of(ctx, keys, tries);
        return prepare::begin(ctx, Storing { sources, building });
    }
    building.step(ctx, u64::MAX);
    building.store(ctx);
    Ok(Done::Replied)
}

/// Members that are looked at in one step, and mostly stored.
const STEP_MEMBERS: u64 = 300;

/// A result under way.
struct Building {
    event: Event,
    merge: Merge,
    set: Captured,
    form: Form,
    /// Bytes of the packed form; not counted further once they are too many for one.
    bytes: usize,
}

impl Building {
    /// Adds up to `budget` members; returns true if there are more.
    fn step(&mut self, ctx: &Ctx<'_, '_>, budget: u64) -> bool {
        let Big::Set(set) = self.set.value_mut() else { unreachable!("a set is built") };
        let (form, bytes) = (&mut self.form, &mut self.bytes);
        self.merge.step(budget, |key| {
            set.build(key);
            if form.encoding != Encoding::Hashtable || *bytes <= PACKED_MAX {
                let elem = Elem::of(key.tail);
                *bytes += elem.size();
                form.add(ctx.settings, elem, set.len());
            }
            true
        })
    }

    /// Puts it under the destination and replies.
    fn store(self, ctx: &mut Ctx<'_, '_>) {
        let (db, key, members, called) = (ctx.db, ctx.key(1), self.set.len(), self.form.encoding);
        if members == 0 {
            ctx.guard.remove(Event::DEL, db, &key);
        } else if self.bytes <= packed_max(called) {
            let Big::Set(set) = &*self.set else { unreachable!("a set is built") };
            let packed = pack(set, called == Encoding::Intset);
            ctx.guard.insert_packed(self.event, db, &key, Kind::Set, called, &packed, None);
        } else {
            let called = tree_encoding(called);
            ctx.guard.insert_big(self.event, db, &key, called, self.set.into_value(), None);
        }
        ctx.reply.integer(members as i64);
    }
}

/// A result that is built ahead.
struct Storing {
    sources: Sources,
    building: Building,
}

impl Resumable for Storing {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        Ok(Progress::complete_if(!self.building.step(ctx, STEP_MEMBERS)))
    }

    fn memory(&self) -> usize {
        self.building.set.memory()
    }
}

impl Preparation for Storing {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        self.building.store(ctx);
        Ok(Done::Replied)
    }
}

/// A small set in its packed form, integers in their order.
fn pack(set: &Set, ordered: bool) -> Vec<u8> {
    let mut members: Vec<_> = set.iter().map(Elem::of).collect();
    if ordered {
        members.sort_unstable_by_key(|member| match member {
            Elem::Int(number) => *number,
            Elem::Bytes(_) => unreachable!("an intset has integers only"),
        });
    }
    let mut packed = Vec::with_capacity(members.iter().map(|member| member.size()).sum());
    for member in members {
        member.push(&mut packed);
    }
    packed
}
