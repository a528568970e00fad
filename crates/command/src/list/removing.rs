//! LREM on a long list, done ahead ([`crate::prepare`]): the list is rebuilt without the matches.

use keyspace::{Captured, Keyspace};
use value::Big;
use value::list::{Item, List};

use super::edit::open;
use super::element::{OwnedElement, equals, owned};
use super::view::{of_big, of_big_mut};
use crate::collection::STEP_ELEMENTS;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::prepare::{Preparation, Sources};

/// A list on its way to one without some of its elements.
pub(super) struct Removing {
    sources: Sources,
    was: Captured,
    rest: Captured,
    text: OwnedElement,
    /// Matches that still are to go, from the front on.
    left: u64,
    /// With a negative count: matches that stay in front of those, and how many elements were
    /// counted for it.
    staying: Option<(u64, u64)>,
    /// Elements that were looked at.
    seen: u64,
}

impl Removing {
    /// LREM of a captured list.
    pub fn new(
        keyspace: &Keyspace,
        was: Captured,
        sources: Sources,
        count: i64,
        text: Item<'_>,
    ) -> Self {
        let left = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        Self {
            sources,
            was,
            rest: keyspace.capture_owned(Big::List(List::new())),
            text: OwnedElement::of(text),
            left,
            staying: (count < 0).then_some((0, 0)),
            seen: 0,
        }
    }
}

impl Resumable for Removing {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let (list, text) = (of_big(&self.was), self.text.as_item());
        let some = |from| list.iter_from(from).take(STEP_ELEMENTS as usize);
        let is_match = |item: &Item<'_>| equals(*item, text);
        // The last matches are what is left if the first ones stay: they are counted first.
        if let Some((matches, counted)) = &mut self.staying
            && *counted < list.len()
        {
            *matches += some(*counted).filter(is_match).count() as u64;
            *counted = list.len().min(*counted + STEP_ELEMENTS);
            if *counted == list.len() {
                *matches = matches.saturating_sub(self.left);
            }
            return Ok(Progress::More);
        }
        let rest = of_big_mut(self.rest.value_mut());
        for item in some(self.seen) {
            self.seen += 1;
            if self.left > 0 && is_match(&item) {
                if let Some((staying @ 1.., _)) = &mut self.staying {
                    *staying -= 1;
                } else {
                    self.left -= 1;
                    continue;
                }
            }
            rest.build(owned(item));
        }
        Ok(Progress::complete_if(self.seen == list.len()))
    }
}

impl Preparation for Removing {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let gone = self.was.len() - self.rest.len();
        let key = ctx.key(1);
        let before = ctx.guard.counted();
        let (edit, reply) = open(events::LREM, ctx, &key)?;
        reply.integer(gone as i64);
        match (edit, self.rest.into_value()) {
            (Some(edit), Big::List(rest)) if rest.is_empty() => edit.remove_key(),
            (Some(mut edit), Big::List(rest)) if gone > 0 => edit.rebuild(rest),
            _ => {}
        }
        ctx.guard.count_as(before, gone);
        Ok(Done::Replied)
    }
}
