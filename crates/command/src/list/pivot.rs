//! The pivot of LINSERT in a long list: looked for ahead of the command ([`crate::prepare`]).

use keyspace::Captured;
use value::list::Item;

use super::element::{OwnedElement, equals};
use super::set::linsert;
use super::view::of_big;
use crate::collection::STEP_ELEMENTS;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{Preparation, Sources};

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
