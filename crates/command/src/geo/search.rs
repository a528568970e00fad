//! Searches: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER and their read-only forms.

use std::cmp::Ordering;
use std::ops::Range;

use keyspace::{Event, Kind};
use value::geo::{Finder, Place};
use value::packed::Elem;
use value::string::IntText;
use value::zset::View;

use super::long_search::{LongReply, LongSearch, LongStore};
use super::query::{Form, Order, Query, Region};
use super::reply::{STEP_BYTES, write_hit};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::prepare::{self, Found as Ahead, Sources};
use crate::zset::aside::store;
use crate::zset::view::view_of;

/// Places written in one step.
const STEP_PLACES: usize = 250;
/// Sides of a polygon that may be compared with places before a search is said to be long.
const SIDES_AT_ONCE: u64 = 200_000;

/// `GEOSEARCH key FROMMEMBER member | FROMLONLAT lon lat
/// BYRADIUS radius unit | BYBOX width height unit | BYPOLYGON count lon lat [lon lat ...]
/// [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`.
pub fn geosearch(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::Search { is_store: false }, 1)
}

/// `GEOSEARCHSTORE destination source ... [STOREDIST]`.
pub fn geosearchstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::Search { is_store: true }, 2)
}

/// `GEORADIUS key lon lat radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC |
/// DESC] [STORE key | STOREDIST key]`.
pub fn georadius(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::Radius { may_store: true }, 1)
}

/// GEORADIUS that stores nothing.
pub fn georadius_ro(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::Radius { may_store: false }, 1)
}

/// `GEORADIUSBYMEMBER key member radius unit ...`, as GEORADIUS.
pub fn georadiusbymember(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::ByMember { may_store: true }, 1)
}

/// GEORADIUSBYMEMBER that stores nothing.
pub fn georadiusbymember_ro(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    search(ctx, Form::ByMember { may_store: false }, 1)
}

/// A place that was found.
#[derive(Clone, Copy)]
struct Hit {
    /// Where its member stands in the names.
    name: (usize, usize),
    score: f64,
    /// Metres from the middle; 0 where nobody asks.
    distance: f64,
}

/// All of them.
#[derive(Default)]
struct Found {
    /// The members, one behind the other.
    names: Vec<u8>,
    hits: Vec<Hit>,
}

impl Found {
    fn member(&self, hit: Hit) -> &[u8] {
        &self.names[hit.name.0..hit.name.1]
    }

    fn push(&mut self, member: Elem<'_>, score: f64, distance: f64) {
        let from = self.names.len();
        self.names.extend_from_slice(member.bytes(&mut IntText::default()));
        self.hits.push(Hit { name: (from, self.names.len()), score, distance });
    }

    /// Puts them in order and keeps so many. Those of the same distance stay as they were found.
    fn arrange(&mut self, order: Option<Order>, count: usize) {
        let Some(order) = order else {
            self.hits.truncate(count);
            return;
        };
        let compare = |a: &Hit, b: &Hit| {
            let nearer = a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal);
            let by_distance = if order == Order::Ascending { nearer } else { nearer.reverse() };
            by_distance.then(a.name.0.cmp(&b.name.0)).then(a.name.1.cmp(&b.name.1))
        };
        if count < self.hits.len() {
            self.hits.select_nth_unstable_by(count, compare);
            self.hits.truncate(count);
        }
        self.hits.sort_unstable_by(compare);
    }
}

fn search(ctx: &mut Ctx<'_, '_>, form: Form, source: usize) -> Result<Done, Error> {
    let args = ctx.args;
    if args.len() > 64
        && is_long(ctx, source)
        && let Err(parked) = ctx.guard.try_mark_long()
    {
        return Ok(Done::Park(parked));
    }
    let tries = match prepare::found::<LongStore>(ctx) {
        Ahead::Ready(ahead) => return prepare::Preparation::finish(ahead, ctx),
        Ahead::Begin(tries) => tries,
    };
    let (keyspace, at_once) = (ctx.guard.keyspace(), ctx.settings.at_once_elements);
    let entry = ctx.read_kind(source, Kind::Zset)?;
    let zset = entry.map(|entry| view_of(entry));
    let query = Query::parse(args, form, source, zset)?;
    let event = match form {
        Form::Search { .. } => events::GEOSEARCHSTORE,
        Form::Radius { .. } | Form::ByMember { .. } => events::GEORADIUSSTORE,
    };
    let found = match (entry, zset) {
        (Some(entry), Some(zset)) => {
            let most = entry.big().map_or(u64::MAX, |_| at_once / query.region.cost());
            find(&query, zset, most)
        }
        _ => Some(Found::default()),
    };
    let Some(found) = found else {
        let entry = entry.expect("something was found in it");
        let search = LongSearch::new(keyspace, entry, query);
        if search.query.store.is_none() {
            return Ok(Done::Steps(Box::new(LongReply::new(search))));
        }
        let sources = Sources::of(ctx, source..source + 1, tries);
        return prepare::begin(ctx, LongStore::new(keyspace, sources, search, event));
    };
    if let Some(at) = query.store {
        store_found(event, ctx, &query, &found, at);
        return Ok(Done::Replied);
    }
    ctx.reply.array(found.hits.len());
    let rest = Hits { found, next: 0, query };
    Done::begin(rest, ctx)
}

/// Whether a polygon of so many arguments may take long: each is read, and every place may be
/// compared with all sides.
fn is_long(ctx: &mut Ctx<'_, '_>, source: usize) -> bool {
    let key = ctx.key(source);
    let zset = ctx.guard.peek(ctx.db, &key).filter(|entry| entry.kind() == Kind::Zset);
    let places = zset.map_or(0, |zset| view_of(zset).len());
    (places + 1).saturating_mul(ctx.args.len() as u64 / 2) > SIDES_AT_ONCE
}

/// The places of the region in the order and number that are asked for; `None` if more than `most`
/// would have to be looked at.
fn find(query: &Query, zset: View<'_>, most: u64) -> Option<Found> {
    match &query.region {
        Region::Area(area) => {
            let finder = Finder::new(*area);
            collect(query, zset, most, &area.ranges(), |score| finder.has(score))
        }
        Region::Polygon(polygon) => {
            let has = |score| polygon.has(Place::of_score(score));
            collect(query, zset, most, &polygon.ranges(), has)
        }
    }
}

/// The places with these scores that are inside.
fn collect(
    query: &Query,
    zset: View<'_>,
    most: u64,
    ranges: &[Range<u64>],
    is_inside: impl Fn(f64) -> bool,
) -> Option<Found> {
    let (mut found, mut left) = (Found::default(), most);
    let center = query.region.center();
    let (is_distance_asked, enough) = (query.needs_distance(), query.enough());
    for range in ranges {
        zset.each_score(&(range.start as f64..range.end as f64), |member, score| {
            if left == 0 {
                left = u64::MAX; // too many: more are left than there were
                return false;
            }
            left -= 1;
            if is_inside(score) {
                let distance = || center.distance(Place::of_score(score));
                let distance = if is_distance_asked { distance() } else { 0.0 };
                found.push(member, score, distance);
            }
            found.hits.len() < enough
        });
        if left > most {
            return None;
        }
        if found.hits.len() >= enough {
            break;
        }
    }
    found.arrange(query.order, query.count.unwrap_or(usize::MAX));
    Some(found)
}

/// Stores what was found.
fn store_found(event: Event, ctx: &mut Ctx<'_, '_>, query: &Query, found: &Found, at: usize) {
    let score = |hit: &Hit| {
        if query.store_distance { hit.distance / query.metres } else { hit.score }
    };
    let members = found.hits.iter().map(|hit| (found.member(*hit), score(hit)));
    let mut members: Vec<(&[u8], f64)> = members.collect();
    members.sort_by(|a, b| {
        a.1.partial_cmp(&b.1).expect("scores are numbers").then_with(|| a.0.cmp(b.0))
    });
    let (key, before) = (ctx.key(at), ctx.guard.counted());
    store(event, ctx.guard, ctx.settings, ctx.db, &key, &members);
    if !members.is_empty() {
        ctx.guard.count_as(before, members.len() as u64);
    }
    ctx.reply.integer(members.len() as i64);
}

/// Replies places in steps.
struct Hits {
    found: Found,
    /// The first that is not replied yet.
    next: usize,
    query: Query,
}

impl Resumable for Hits {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let full = ctx.reply.position().bytes + STEP_BYTES;
        for _ in 0..STEP_PLACES {
            let Some(&hit) = self.found.hits.get(self.next) else { return Ok(Progress::Complete) };
            self.next += 1;
            let member = self.found.member(hit);
            write_hit(&self.query, member, hit.score, hit.distance, &mut ctx.reply);
            if ctx.reply.position().bytes >= full {
                break;
            }
        }
        Ok(Progress::complete_if(self.next == self.found.hits.len()))
    }
}
