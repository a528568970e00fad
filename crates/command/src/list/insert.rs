//! LINSERT. The pivot in a long list is looked for ahead of the command ([`crate::prepare`]).

use keyspace::{Captured, Kind};
use value::list::Item;

use super::edit::open;
use super::element::{OwnedElement, element, equals, wanted};
use super::view::of_big;
use crate::collection::STEP_ELEMENTS;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;
use crate::prepare::{self, Found, Preparation, Sources};

/// `LINSERT key BEFORE | AFTER pivot element`: the new length, -1 if there is no such pivot.
pub fn linsert(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let behind = match ctx.arg(2) {
        word if is(word, "BEFORE") => 0,
        word if is(word, "AFTER") => 1,
        _ => return Err(Error::Syntax),
    };
    let (key, args) = (ctx.key(1), ctx.args);
    let sought = match prepare::found::<Seeking>(ctx) {
        Found::Ready(sought) => Some(sought.found()),
        Found::Begin(tries) => {
            let (keyspace, at_once) = (ctx.guard.keyspace(), ctx.settings.at_once_elements);
            let big = ctx.peek_kind(&key, Kind::List)?.and_then(|entry| entry.big());
            if let Some(list) = big.filter(|big| big.len() > at_once) {
                let list = keyspace.capture(list);
                let sources = Sources::of(ctx, 1..2, tries);
                return prepare::begin(ctx, Seeking::new(sources, list, wanted(&args, 3)));
            }
            None
        }
    };
    let before = ctx.guard.counted();
    let (Some(mut edit), reply) = open(events::LINSERT, ctx, &key)? else {
        ctx.reply.integer(0);
        return Ok(Done::Replied);
    };
    let pivot = wanted(&args, 3);
    let look = || edit.view().iter_from(0).zip(0..).find(|(item, _)| equals(*item, pivot));
    let found = sought.unwrap_or_else(|| look().map(|(_, at)| at));
    if let Some(at) = found {
        edit.insert(at + behind, element(&args, 4));
        reply.integer(edit.view().len() as i64);
        ctx.guard.count_as(before, 1);
    } else {
        reply.integer(-1);
    }
    Ok(Done::Replied)
}

/// A search for the first element with a text.
pub(super) struct Seeking {
    sources: Sources,
    list: Captured,
    text: OwnedElement,
    /// Elements that were compared.
    seen: u64,
    found: Option<u64>,
}

impl Seeking {
    /// Looks for a text in a captured list.
    pub fn new(sources: Sources, list: Captured, text: Item<'_>) -> Self {
        Self { sources, list, text: OwnedElement::of(text), seen: 0, found: None }
    }

    /// Where it stands.
    pub fn found(&self) -> Option<u64> {
        self.found
    }
}

impl Resumable for Seeking {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let (list, text) = (of_big(&self.list), self.text.as_item());
        let mut items = list.iter_from(self.seen).take(STEP_ELEMENTS as usize).zip(self.seen..);
        self.found = items.find(|(item, _)| equals(*item, text)).map(|(_, at)| at);
        self.seen += STEP_ELEMENTS;
        Ok(Progress::complete_if(self.found.is_some() || self.seen >= list.len()))
    }
}

impl Preparation for Seeking {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        ctx.set_prepared(Box::new(self));
        linsert(ctx)
    }
}
