//! Searches which look at many places: in steps, on the sorted set as it was.
//!
//! ```text
//! find      every place of the ranges is tested; those inside become rows of sorted runs
//! sort      run by run
//! take      rows in their order: replied, or put into the sorted set that is stored
//! ```
//!
//! A row stands for a place. Its text is its number, by which places of one distance keep the order
//! in which they were found; its score; and its member.

use std::ops::Range;

use keyspace::{Captured, Entry, Event, Keyspace, Parts, ReclaimOnDrop};
use value::geo::{Finder, Place};
use value::packed::Elem;
use value::string::IntText;
use value::zset::{ScoreRange, View};
use value::{Big, Zset};

use super::query::{Order as Nearest, Query, Region};
use super::reply::{STEP_BYTES, write_hit};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::prepare::{Preparation, Sources};
use crate::sorting::order::{Order, Row, Texts, Weight};
use crate::sorting::runs::Runs;
use crate::zset::combining::Building;

/// Places that are tested in one step, where a test costs what that of a circle does.
const STEP_TESTED: u64 = 500;
/// Places in a run, which is sorted in one step.
const RUN_ROWS: usize = 256;
/// Places that are taken in one step.
const STEP_TAKEN: usize = 96;

/// The places that were found.
#[derive(Default)]
struct Rows {
    texts: Texts,
    runs: Runs,
    /// The run that is being filled.
    run: Vec<Row>,
    count: usize,
    /// The text of a row that is made.
    text: Vec<u8>,
}

impl Parts for Rows {
    fn memory(&self) -> usize {
        self.texts.memory() + self.runs.memory()
    }
}

impl Rows {
    fn push(&mut self, member: Elem<'_>, score: f64, distance: f64, is_farthest: bool) {
        let number = if is_farthest { !(self.count as u64) } else { self.count as u64 };
        self.text.clear();
        self.text.extend_from_slice(&number.to_be_bytes());
        self.text.extend_from_slice(&score.to_bits().to_be_bytes());
        self.text.extend_from_slice(member.bytes(&mut IntText::default()));
        let element = self.texts.push(&self.text);
        self.run.push(Row { element, weight: Weight::Number(distance) });
        self.count += 1;
        if self.run.len() == RUN_ROWS {
            self.end_run();
        }
    }

    fn end_run(&mut self) {
        self.runs.push(std::mem::take(&mut self.run));
    }
}

/// Score and member of a row's text.
fn parts(text: &[u8]) -> (f64, &[u8]) {
    let (head, member) = text.split_at(16);
    let bits = u64::from_be_bytes(head[8..].try_into().expect("8 bytes"));
    (f64::from_bits(bits), member)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Finding,
    Sorting,
    Taking,
}

/// A search under way.
pub(super) struct LongSearch {
    zset: Captured,
    pub query: Query,
    /// The scores to be looked at; those of the last range first.
    ranges: Vec<Range<u64>>,
    /// The ranks of the range that is looked at.
    ranks: Range<u64>,
    stage: Stage,
    rows: ReclaimOnDrop<Rows>,
    /// Rows that are still to be taken.
    left: usize,
}

fn zset_of(captured: &Captured) -> &Zset {
    match &**captured {
        Big::Zset(zset) => zset,
        _ => unreachable!("a sorted set was captured"),
    }
}

impl LongSearch {
    /// A search in a big sorted set.
    pub fn new(keyspace: &Keyspace, entry: Entry<'_>, query: Query) -> Self {
        let mut ranges = match &query.region {
            Region::Area(area) => area.ranges(),
            Region::Polygon(polygon) => polygon.ranges(),
        };
        ranges.reverse();
        Self {
            zset: keyspace.capture(entry.big().expect("a small one is searched at once")),
            query,
            ranges,
            ranks: 0..0,
            stage: Stage::Finding,
            rows: keyspace.reclaim_on_drop(Rows::default()),
            left: 0,
        }
    }

    fn order(&self) -> Order {
        let desc = self.query.order == Some(Nearest::Descending);
        Order { kept: self.query.order.is_none(), alpha: false, by: true, desc }
    }

    /// Does one step; returns true when rows can be taken.
    fn step(&mut self) -> bool {
        match self.stage {
            Stage::Finding => {
                if self.find() {
                    self.rows.end_run();
                    self.left = self.rows.count.min(self.query.count.unwrap_or(usize::MAX));
                    self.stage = Stage::Sorting;
                }
            }
            Stage::Sorting => {
                let order = self.order();
                let Rows { texts, runs, .. } = &mut *self.rows;
                if runs.sort_next(order, texts) {
                    self.stage = Stage::Taking;
                }
            }
            Stage::Taking => return true,
        }
        false
    }

    /// Tests some places; returns true after the last one.
    fn find(&mut self) -> bool {
        let zset = View::Big(zset_of(&self.zset));
        while self.ranks.is_empty() {
            let Some(range) = self.ranges.pop() else { return true };
            self.ranks = zset.score_ranks(&ScoreRange {
                min: range.start as f64,
                max: range.end as f64,
                min_excluded: false,
                max_excluded: true,
            });
        }
        let finder = match &self.query.region {
            Region::Area(area) => Some(Finder::new(*area)),
            Region::Polygon(_) => None,
        };
        let is_inside = |score| match (&self.query.region, &finder) {
            (Region::Polygon(polygon), _) => polygon.has(Place::of_score(score)),
            (_, Some(finder)) => finder.has(score),
            (Region::Area(_), None) => unreachable!("an area has a finder"),
        };
        let (center, needs_distance) = (self.query.region.center(), self.query.needs_distance());
        let is_farthest = self.query.order == Some(Nearest::Descending);
        let (rows, enough) = (&mut *self.rows, self.query.enough());
        let mut left = (STEP_TESTED / self.query.region.cost()).max(1);
        let seen = zset.each(self.ranks.clone(), false, |member, score| {
            if is_inside(score) {
                let distance = || center.distance(Place::of_score(score));
                let distance = if needs_distance { distance() } else { 0.0 };
                rows.push(member, score, distance, is_farthest);
            }
            left -= 1;
            left > 0 && rows.count < enough
        });
        self.ranks.start += seen;
        rows.count >= enough
    }

    /// Takes some rows in their order: score, member and distance of each. Returns false if there
    /// are more.
    fn take(&mut self, mut f: impl FnMut(&Query, f64, &[u8], f64) -> bool) -> bool {
        let order = self.order();
        let Rows { texts, runs, .. } = &mut *self.rows;
        for _ in 0..STEP_TAKEN.min(self.left) {
            let row = runs.next(order, texts).expect("rows were counted");
            let (score, member) = parts(texts.bytes(row.element));
            self.left -= 1;
            if !f(&self.query, score, member, row.score()) {
                break;
            }
        }
        self.left == 0
    }
}

/// The places are replied.
pub(super) struct LongReply {
    search: LongSearch,
    is_begun: bool,
}

impl LongReply {
    /// Replies what a search finds.
    pub fn new(search: LongSearch) -> Self {
        Self { search, is_begun: false }
    }
}

impl Resumable for LongReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if !self.search.step() {
            return Ok(Progress::More);
        }
        if !self.is_begun {
            self.is_begun = true;
            ctx.reply.array(self.search.left);
        }
        let full = ctx.reply.position().bytes + STEP_BYTES;
        let reply = &mut ctx.reply;
        Ok(Progress::complete_if(self.search.take(|query, score, member, distance| {
            write_hit(query, member, score, distance, reply);
            reply.position().bytes < full
        })))
    }

    fn memory(&self) -> usize {
        self.search.rows.memory()
    }
}

/// The places are stored: the sorted set is made ahead.
pub(super) struct LongStore {
    sources: Sources,
    search: LongSearch,
    building: Building,
    is_fed: bool,
    event: Event,
}

impl LongStore {
    /// Stores what a search finds in these sources.
    pub fn new(keyspace: &Keyspace, sources: Sources, search: LongSearch, event: Event) -> Self {
        Self { sources, search, building: Building::fed(keyspace), is_fed: false, event }
    }
}

impl Resumable for LongStore {
    fn step(&mut self, _: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        if self.is_fed {
            return Ok(Progress::complete_if(self.building.step()));
        }
        if self.search.step() {
            let building = &mut self.building;
            self.is_fed = self.search.take(|query, score, member, distance| {
                let stored = if query.store_distance { distance / query.metres } else { score };
                building.feed(member, stored);
                true
            });
            if self.is_fed {
                building.end_feeding();
            }
        }
        Ok(Progress::More)
    }

    fn memory(&self) -> usize {
        self.search.rows.memory() + self.building.memory()
    }
}

impl Preparation for LongStore {
    fn sources(&self) -> &Sources {
        &self.sources
    }

    fn finish(self, ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
        let at = self.search.query.store.expect("a search that stores");
        let before = ctx.guard.counted();
        let members = self.building.store(self.event, ctx, at);
        if members > 0 {
            ctx.guard.count_as(before, members);
        }
        ctx.reply.integer(members as i64);
        Ok(Done::Replied)
    }
}
