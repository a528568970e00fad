//! Searches: GEOSEARCH, GEOSEARCHSTORE, GEORADIUS, GEORADIUSBYMEMBER and their read-only forms.

use std::cmp::Ordering;

use keyspace::Kind;
use resp::Reply;
use value::geo::{Place, hash_of_score};
use value::packed::Elem;
use value::zset::{ScoreRange, View};

use super::query::{Form, Order, Query};
use super::{write_distance, write_place};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::spec::Resumable;
use crate::zset::{store, view_of};

/// Places written in one step.
const STEP_PLACES: usize = 250;
/// Bytes of a reply after which a step ends.
const STEP_BYTES: usize = 64 * 1024;

/// `GEOSEARCH key FROMMEMBER member | FROMLONLAT lon lat BYRADIUS radius unit | BYBOX width height unit
/// [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`.
pub fn geosearch(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::Search { is_store: false }, 1)
}

/// `GEOSEARCHSTORE destination source ... [STOREDIST]`.
pub fn geosearchstore(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::Search { is_store: true }, 2)
}

/// `GEORADIUS key lon lat radius unit [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]
/// [STORE key | STOREDIST key]`.
pub fn georadius(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::Radius { may_store: true }, 1)
}

/// GEORADIUS that stores nothing.
pub fn georadius_ro(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::Radius { may_store: false }, 1)
}

/// `GEORADIUSBYMEMBER key member radius unit ...`, as GEORADIUS.
pub fn georadiusbymember(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::ByMember { may_store: true }, 1)
}

/// GEORADIUSBYMEMBER that stores nothing.
pub fn georadiusbymember_ro(ctx: &mut Ctx<'_, '_>) -> Result<(), Error> {
    search(ctx, Form::ByMember { may_store: false }, 1)
}

/// A place that was found.
struct Hit {
    member: Box<[u8]>,
    score: f64,
    place: Place,
    distance: f64,
}

fn search(ctx: &mut Ctx<'_, '_>, form: Form, source: usize) -> Result<(), Error> {
    let args = ctx.args;
    let entry = ctx.read_kind(source, Kind::Zset)?;
    let zset = entry.map(|entry| view_of(entry));
    let query = Query::parse(args, form, source, zset)?;
    let hits = zset.map_or_else(Vec::new, |zset| found(&query, zset));
    if let Some(at) = query.store {
        keep(ctx, &query, hits, at);
        return Ok(());
    }
    ctx.reply.array(hits.len());
    let mut rest = Hits { hits: hits.into_iter(), query };
    if !rest.step(ctx)? {
        ctx.resume(Box::new(rest));
    }
    Ok(())
}

/// The places of the area in the order and number that are asked for.
fn found(query: &Query, zset: View<'_>) -> Vec<Hit> {
    let mut hits = Vec::new();
    let enough = if query.any { query.count.unwrap_or(usize::MAX) } else { usize::MAX };
    for range in query.area.ranges() {
        let range = ScoreRange {
            min: range.start as f64,
            min_excluded: false,
            max: range.end as f64,
            max_excluded: true,
        };
        visit(zset, &range, |member, score| {
            let place = Place::of_score(score);
            if let Some(distance) = query.area.distance(place) {
                hits.push(Hit { member: member.to_vec().into(), score, place, distance });
            }
            hits.len() < enough
        });
        if hits.len() >= enough {
            break;
        }
    }
    let nearer = |a: &Hit, b: &Hit| a.distance.partial_cmp(&b.distance).unwrap_or(Ordering::Equal);
    match query.order {
        Some(Order::Ascending) => hits.sort_by(nearer),
        Some(Order::Descending) => hits.sort_by(|a, b| nearer(b, a)),
        None => {}
    }
    hits.truncate(query.count.unwrap_or(usize::MAX));
    hits
}

/// Calls `f` with the members of these scores until it says `false`.
fn visit(zset: View<'_>, range: &ScoreRange, mut f: impl FnMut(Elem<'_>, f64) -> bool) {
    let ranks = zset.score_ranks(range);
    zset.each(ranks, false, &mut f);
}

/// Stores what was found.
fn keep(ctx: &mut Ctx<'_, '_>, query: &Query, hits: Vec<Hit>, at: usize) {
    let score = |hit: &Hit| {
        if query.store_distance { hit.distance / query.metres } else { hit.score }
    };
    let mut members: Vec<(Box<[u8]>, f64)> =
        hits.into_iter().map(|hit| (score(&hit), hit.member)).map(|(s, m)| (m, s)).collect();
    members.sort_by(|a, b| {
        a.1.partial_cmp(&b.1).expect("scores are numbers").then_with(|| a.0.cmp(&b.0))
    });
    let key = ctx.key(at);
    store(ctx.guard, ctx.settings, ctx.db, &key, &members);
    ctx.reply.integer(members.len() as i64);
}

/// Replies places in steps.
struct Hits {
    hits: std::vec::IntoIter<Hit>,
    query: Query,
}

impl Hits {
    fn write(&self, hit: &Hit, reply: &mut Reply<'_>) {
        let Query { with_distance, with_hash, with_place, metres, .. } = self.query;
        let parts = [with_distance, with_hash, with_place];
        let parts = parts.into_iter().filter(|part| *part).count();
        if parts > 0 {
            reply.array(1 + parts);
        }
        reply.bulk(&hit.member);
        if with_distance {
            write_distance(reply, hit.distance / metres);
        }
        if with_hash {
            reply.integer(hash_of_score(hit.score) as i64);
        }
        if with_place {
            write_place(reply, hit.place);
        }
    }
}

impl Resumable for Hits {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<bool, Error> {
        let full = ctx.reply.position().bytes + STEP_BYTES;
        for _ in 0..STEP_PLACES {
            let Some(hit) = self.hits.next() else { return Ok(true) };
            self.write(&hit, &mut ctx.reply);
            if ctx.reply.position().bytes >= full {
                break;
            }
        }
        Ok(self.hits.len() == 0)
    }
}
