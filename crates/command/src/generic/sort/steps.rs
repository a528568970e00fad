//! SORT of much: the elements are captured, collected and sorted in steps with the locks dropped.
//!
//! What reads no other key is replied from there, or stored by a second run of the command
//! ([`crate::prepare`]). What looks keys up by patterns does so in a second run, for all of its
//! elements at one moment.

use std::ops::Range;

use keyspace::{Captured, Encoding, Kind, Parts, ReclaimOnDrop};
use rdb::Sink;
use resp::Reply;
use value::keyed::Val;

use super::options::Get;
use crate::collection::Text;
use crate::ctx::{Ctx, Progress, Resumable};
use crate::error::Error;
use crate::parts::{Built, Stored};
use crate::prepare::Sources;
use crate::sorting::order::{Order, Row, Texts, Weight};
use crate::sorting::runs::Runs;

/// Elements that are collected, and sorted, in one step.
const RUN_ROWS: u64 = 256;
/// Bytes of their texts that end a step.
const RUN_BYTES: usize = 64 * 1024;
/// Elements that are merged in one step: with many runs of long texts each costs about a
/// microsecond.
const STEP_ROWS: usize = 96;
/// Bytes of a reply, or of a list, that end a step.
const STEP_BYTES: usize = 64 * 1024;

/// The collection that is sorted, as it was when the command ran.
pub(super) enum Unsorted {
    Packed(Kind, Vec<u8>, Encoding),
    Big(Captured, Encoding),
}

impl Unsorted {
    fn stored(&self) -> Stored<'_> {
        match self {
            Self::Packed(kind, bytes, encoding) => Stored::packed(*kind, bytes, *encoding),
            Self::Big(big, encoding) => Stored::captured(big, *encoding),
        }
    }
}

/// Elements on their way into another order.
pub(super) struct Sorting {
    /// Until all are collected.
    source: Option<Unsorted>,
    /// Ranks that are not collected yet.
    ranks: Range<u64>,
    /// They are collected from the last one on.
    backwards: bool,
    /// The elements are numbers.
    numeric: bool,
    order: Order,
    /// Which of the sorted elements are wanted, from the next one on.
    window: Range<usize>,
    texts: Texts,
    runs: Runs,
}

impl Parts for Sorting {
    fn memory(&self) -> usize {
        self.texts.memory() + self.runs.memory()
    }
}

impl Sorting {
    /// Sorts the elements in `ranks`; of those that came out, those in `window` are wanted.
    pub fn new(source: Unsorted, ranks: Range<u64>, order: Order, window: Range<usize>) -> Self {
        Self {
            source: Some(source),
            ranks,
            backwards: order.kept && order.desc,
            numeric: !order.kept && !order.alpha && !order.by,
            order,
            window,
            texts: Texts::default(),
            runs: Runs::default(),
        }
    }

    /// Collects some elements; true if that were the last ones.
    fn collect(&mut self) -> Result<bool, Error> {
        let Some(source) = &self.source else { return Ok(true) };
        let count = (self.ranks.end - self.ranks.start).min(RUN_ROWS);
        let from = if self.backwards { self.ranks.end - count } else { self.ranks.start };
        let mut rows = Vec::with_capacity(count as usize);
        let (numeric, texts, mut bytes) = (self.numeric, &mut self.texts, 0);
        let mut result = Ok(());
        source.stored().elements_while(from, count, |text| {
            let weight = if numeric { Weight::of_val(text) } else { Ok(Weight::None) };
            match weight {
                Ok(weight) => rows.push(Row { element: texts.push_val(text), weight }),
                Err(e) => result = Err(e),
            }
            bytes += text.len();
            // Backwards, all of them are needed to know which is the last one.
            result.is_ok() && (bytes < RUN_BYTES || self.backwards)
        });
        result?;
        if self.backwards {
            rows.reverse();
            self.ranks.end -= rows.len() as u64;
        } else {
            self.ranks.start += rows.len() as u64;
        }
        self.runs.push(rows);
        if self.ranks.is_empty() {
            self.source = None;
        }
        Ok(self.ranks.is_empty())
    }

    /// One step towards [`Sorting::next`]; true if it can be called.
    fn advance(&mut self) -> Result<bool, Error> {
        if self.source.is_some() {
            self.collect()?;
            return Ok(false);
        }
        if !self.runs.sort_next(self.order, &self.texts) {
            return Ok(false);
        }
        let skipped = self.window.start.min(STEP_ROWS);
        for _ in 0..skipped {
            self.runs.next(self.order, &self.texts);
        }
        self.window = self.window.start - skipped..self.window.end - skipped;
        Ok(self.window.start == 0)
    }

    /// Elements that are still to come.
    fn left(&self) -> usize {
        self.window.end
    }

    /// The next element.
    fn next(&mut self) -> Option<Row> {
        if self.window.end == 0 {
            return None;
        }
        self.window.end -= 1;
        self.runs.next(self.order, &self.texts)
    }

    /// Some more elements, each with its text: until one step is full.
    fn some(&mut self, mut f: impl FnMut(Val<'_>)) {
        let (mut left, mut bytes) = (STEP_ROWS, 0);
        while left > 0
            && bytes < STEP_BYTES
            && let Some(row) = self.next()
        {
            let text = self.texts.get(row.element);
            f(text);
            left -= 1;
            bytes += text.len();
        }
    }

    /// The elements that were collected, to be weighed, and their texts.
    pub fn collected(&mut self) -> (&mut Texts, impl Iterator<Item = &mut Row>) {
        (&mut self.texts, self.runs.rows_mut())
    }

    /// Sorts all that was collected, at once.
    pub fn rest(&mut self) -> Result<Vec<Row>, Error> {
        while !self.advance()? {}
        Ok(std::iter::from_fn(|| self.next()).collect())
    }

    /// The texts, of which more may be added.
    pub fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }
}

/// The result, replied.
pub(super) struct Replying {
    sorting: ReclaimOnDrop<Sorting>,
    /// What is replied of each element: itself, or nil.
    shown: Vec<bool>,
    begun: bool,
}

impl Replying {
    pub fn new(sorting: ReclaimOnDrop<Sorting>, gets: &[Get<'_>]) -> Self {
        Self { sorting, shown: shown(gets), begun: false }
    }

    fn write(&mut self, reply: &mut Reply<'_>) {
        let shown = &self.shown;
        self.sorting.some(|text| {
            for itself in shown {
                if *itself {
                    Text::Val(text).write(reply);
                } else {
                    reply.null();
                }
            }
        });
    }
}

/// Whether each GET, none of which looks a key up, is the element.
fn shown(gets: &[Get<'_>]) -> Vec<bool> {
    if gets.is_empty() {
        return vec![true];
    }
    gets.iter().map(|get| matches!(get, Get::Element)).collect()
}

impl Resumable for Replying {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if !self.begun {
            if !self.sorting.advance()? {
                return Ok(Progress::More);
            }
            self.begun = true;
            ctx.reply.array(self.sorting.left() * self.shown.len());
            return Ok(Progress::complete_if(self.sorting.left() == 0));
        }
        self.write(&mut ctx.reply);
        Ok(Progress::complete_if(self.sorting.left() == 0))
    }

    fn memory(&self) -> usize {
        self.sorting.memory()
    }
}

/// What is done before the command runs again.
pub(super) enum Goal {
    /// The list is built.
    Stored(Vec<bool>, ReclaimOnDrop<Built>),
    /// All are sorted: what GET asks for is looked up then.
    Sorted(Vec<Row>),
    /// All are collected: what BY asks for is looked up then.
    Collected,
}

impl Goal {
    /// A list of what no key is looked up for.
    pub fn stored(ctx: &Ctx<'_, '_>, gets: &[Get<'_>]) -> Self {
        let mut list = Built::new(ctx.settings, false);
        list.start(rdb::Kind::List, 0).expect("a list begins");
        Self::Stored(shown(gets), ctx.guard.keyspace().reclaim_on_drop(list))
    }
}

/// Elements that are sorted, or collected, ahead of their command.
pub(super) struct Presorting {
    pub sources: Sources,
    pub sorting: ReclaimOnDrop<Sorting>,
    pub goal: Goal,
    /// What is wrong with them.
    pub error: Option<Error>,
    ready: bool,
}

impl Presorting {
    pub fn new(sources: Sources, sorting: ReclaimOnDrop<Sorting>, goal: Goal) -> Self {
        Self { sources, sorting, goal, error: None, ready: false }
    }

    /// One step towards the goal; true if it is reached.
    fn advance_goal(&mut self) -> Result<bool, Error> {
        let sorting = &mut *self.sorting;
        match &mut self.goal {
            Goal::Collected => return sorting.collect(),
            _ if !self.ready => {
                self.ready = sorting.advance()?;
                return Ok(false);
            }
            Goal::Sorted(rows) => {
                rows.reserve_exact(if rows.is_empty() { sorting.left() } else { 0 });
                rows.extend(std::iter::from_fn(|| sorting.next()).take(STEP_ROWS));
            }
            Goal::Stored(shown, list) => sorting.some(|text| {
                for itself in &*shown {
                    list.list_element(if *itself { text } else { Val::Bytes(b"") });
                }
            }),
        }
        Ok(sorting.left() == 0)
    }
}

impl Resumable for Presorting {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let is_done = self.advance_goal().unwrap_or_else(|e| {
            self.error = Some(e);
            true
        });
        Ok(Progress::complete_if(is_done))
    }

    fn memory(&self) -> usize {
        let goal = match &self.goal {
            Goal::Stored(_, list) => list.memory(),
            Goal::Sorted(rows) => rows.capacity() * size_of::<Row>(),
            Goal::Collected => 0,
        };
        self.sorting.memory() + goal
    }
}
