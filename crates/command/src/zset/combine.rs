//! Several sorted sets or sets at once: ZUNION, ZINTER, ZDIFF, what stores them, and ZINTERCARD.

use std::collections::HashMap;

use base::double;
use base::num::parse_i64;
use resp::Args;
use value::packed::Elem;

use super::aside::store;
use super::combining::{Building, Replying, Storing};
use super::inputs::Input;
use super::operation::{Aggregate, Operation, in_all, number};
use super::reply::{write_header, write_scored};
use super::snapshot::{STEP_BYTES, STEP_MEMBERS};
use crate::ctx::{Ctx, Progress, Resumable};
use crate::done::Done;
use crate::error::{Error, NoInputKeys};
use crate::parse::{integer, is};
use crate::prepare::{self, Found, Preparation, Sources};
use crate::spec::KeyRuns;

/// What stands behind the keys.
struct Options {
    weights: Option<Vec<f64>>,
    aggregate: Aggregate,
    scores: bool,
}

/// Members that came out, with their scores.
type Members = Vec<(Box<[u8]>, f64)>;

/// `ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`.
pub fn zunion(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Union, "zunion", false)
}

/// `ZINTER`, as ZUNION.
pub fn zinter(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Inter, "zinter", false)
}

/// `ZDIFF numkeys key [key ...] [WITHSCORES]`.
pub fn zdiff(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Diff, "zdiff", false)
}

/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN |
/// MAX]`.
pub fn zunionstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Union, "zunionstore", true)
}

/// `ZINTERSTORE`, as ZUNIONSTORE.
pub fn zinterstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Inter, "zinterstore", true)
}

/// `ZDIFFSTORE destination numkeys key [key ...]`.
pub fn zdiffstore(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    combine(ctx, Operation::Diff, "zdiffstore", true)
}

/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`.
pub fn zintercard(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let keys = keys(ctx.args, 1, "zintercard")?;
    let behind = keys.end;
    let mut inputs = Input::load_all(ctx, keys)?;
    let mut limit = u64::MAX;
    let mut at = behind;
    while at < ctx.args.len() {
        let value = ctx.args.try_get(at + 1).ok_or(Error::Syntax)?;
        if !is(ctx.arg(at), "LIMIT") {
            return Err(Error::Syntax);
        }
        let given = parse_i64(value).and_then(|n| u64::try_from(n).ok());
        let given = given.ok_or(Error::LimitNegative)?;
        limit = if given == 0 { u64::MAX } else { given };
        at += 2;
    }
    inputs.sort_by_key(Input::len);
    let counting = Counting { inputs, limit, rank: 0, count: 0 };
    Done::begin(counting, ctx)
}

/// Members that ZINTERCARD looks for in one step.
const STEP_LOOKUPS: u64 = 300;

/// ZINTERCARD under way.
struct Counting {
    /// The smallest first.
    inputs: Vec<Input>,
    limit: u64,
    /// The next rank of the first.
    rank: u64,
    count: u64,
}

impl Resumable for Counting {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let (first, others) = self.inputs.split_first().expect("there is at least one key");
        let mut left = STEP_LOOKUPS;
        first.each_from(self.rank, true, |member, _| {
            self.count += u64::from(others.iter().all(|input| input.score(member).is_some()));
            self.rank += 1;
            left = left.saturating_sub(1);
            self.count < self.limit && (left > 0 || first.is_small())
        });
        let is_done = self.count >= self.limit || self.rank >= first.len();
        if is_done {
            ctx.reply.integer(self.count as i64);
        }
        Ok(Progress::complete_if(is_done))
    }
}

/// The keys of ZUNION, ZINTER, ZDIFF and ZINTERCARD.
pub fn combined_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(keys(args, 1, "")?))
}

/// The keys of ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE: the destination and the sources.
pub fn stored_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    Ok(KeyRuns::of(1..2).and(keys(args, 2, "")?, 1))
}

/// The arguments that are keys: argument `at` says how many follow it.
fn keys(args: Args<'_>, at: usize, command: &'static str) -> Result<std::ops::Range<usize>, Error> {
    let count = integer(args.get(at))?;
    if count < 1 {
        return Err(NoInputKeys { command }.into());
    }
    let first = at + 1;
    if count as u64 > (args.len() - first) as u64 {
        return Err(Error::Syntax);
    }
    Ok(first..first + count as usize)
}

impl Options {
    fn parse(
        ctx: &Ctx<'_, '_>,
        keys: usize,
        mut at: usize,
        operation: Operation,
        is_store: bool,
    ) -> Result<Self, Error> {
        let args = ctx.args;
        let mut options = Self { weights: None, aggregate: Aggregate::Sum, scores: false };
        while let Some(word) = args.try_get(at) {
            let left = args.len() - at - 1;
            if operation != Operation::Diff && left >= keys && is(word, "WEIGHTS") {
                let weight = |n| double::parse(args.get(at + 1 + n));
                let weights: Option<Vec<f64>> = (0..keys).map(weight).collect();
                let weights = weights.ok_or(Error::WeightNotFloat)?;
                options.weights = Some(weights);
                at += keys;
            } else if operation != Operation::Diff && left >= 1 && is(word, "AGGREGATE") {
                options.aggregate = match args.get(at + 1) {
                    word if is(word, "SUM") => Aggregate::Sum,
                    word if is(word, "MIN") => Aggregate::Min,
                    word if is(word, "MAX") => Aggregate::Max,
                    _ => return Err(Error::Syntax),
                };
                at += 1;
            } else if !is_store && is(word, "WITHSCORES") {
                options.scores = true;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn combine(
    ctx: &mut Ctx<'_, '_>,
    operation: Operation,
    command: &'static str,
    is_store: bool,
) -> Result<Done, Error> {
    let tries = match prepare::found::<Storing>(ctx) {
        Found::Ready(ahead) => return ahead.finish(ctx),
        Found::Begin(tries) => tries,
    };
    let keys = keys(ctx.args, if is_store { 2 } else { 1 }, command)?;
    let (count, behind) = (keys.len(), keys.end);
    let inputs = Input::load_all(ctx, keys.clone())?;
    let options = Options::parse(ctx, count, behind, operation, is_store)?;
    let weight = |n: usize| options.weights.as_ref().map_or(1.0, |weights| weights[n]);
    let mut weighted: Vec<(Input, f64)> =
        inputs.into_iter().enumerate().map(|(n, input)| (input, weight(n))).collect();
    if operation != Operation::Diff {
        // The order in which scores are added up.
        weighted.sort_by_key(|(input, _)| input.len());
    }
    let work: u64 = weighted.iter().map(|(input, _)| input.len()).sum();
    if work > ctx.settings.at_once_elements {
        let keyspace = ctx.guard.keyspace();
        let building = Building::new(keyspace, weighted, operation, options.aggregate);
        if is_store {
            let sources = Sources::of(ctx, keys, tries);
            let building = building.stored();
            return prepare::begin(ctx, Storing { sources, building, event: operation.stored() });
        }
        return Ok(Done::Steps(Box::new(Replying::new(building, options.scores))));
    }
    let mut members = match operation {
        Operation::Union => union(&weighted, options.aggregate),
        Operation::Inter => intersection(&weighted, options.aggregate),
        Operation::Diff => difference(&weighted),
    };
    let in_order = |a: &(Box<[u8]>, f64), b: &(Box<[u8]>, f64)| {
        a.1.partial_cmp(&b.1).expect("scores are numbers").then_with(|| a.0.cmp(&b.0))
    };
    members.sort_unstable_by(in_order);
    if is_store {
        let key = ctx.key(1);
        store(operation.stored(), ctx.guard, ctx.settings, ctx.db, &key, &members);
        ctx.reply.integer(members.len() as i64);
        return Ok(Done::Replied);
    }
    write_header(&mut ctx.reply, members.len() as u64, options.scores);
    let rest = CombinedReply { members, at: 0, scores: options.scores };
    Done::begin(rest, ctx)
}

fn union(inputs: &[(Input, f64)], aggregate: Aggregate) -> Members {
    let mut all: HashMap<Box<[u8]>, f64> = HashMap::new();
    for (input, weight) in inputs {
        input.each(|member, score| {
            let score = number(score * weight);
            match all.get_mut(member) {
                Some(sum) => *sum = aggregate.of(*sum, score),
                None => drop(all.insert(member.into(), score)),
            }
            true
        });
    }
    all.into_iter().collect()
}

fn intersection(inputs: &[(Input, f64)], aggregate: Aggregate) -> Members {
    let mut all = Members::new();
    let ((smallest, weight), others) = inputs.split_first().expect("there is at least one key");
    smallest.each(|member, score| {
        let sum = in_all(others, member, number(score * weight), aggregate);
        all.extend(sum.map(|sum| (member.into(), sum)));
        true
    });
    all
}

fn difference(inputs: &[(Input, f64)]) -> Members {
    let mut all = Members::new();
    let ((first, _), others) = inputs.split_first().expect("there is at least one key");
    first.each(|member, score| {
        if others.iter().all(|(other, _)| other.score(member).is_none()) {
            all.push((member.into(), score));
        }
        true
    });
    all
}

/// Replies members in steps.
struct CombinedReply {
    members: Members,
    at: usize,
    scores: bool,
}

impl Resumable for CombinedReply {
    fn step(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Progress, Error> {
        let full = ctx.reply.position().bytes + STEP_BYTES;
        let end = self.members.len().min(self.at + STEP_MEMBERS as usize);
        while self.at < end && ctx.reply.position().bytes < full {
            let (member, score) = &self.members[self.at];
            write_scored(&mut ctx.reply, Elem::Bytes(member), *score, self.scores);
            self.at += 1;
        }
        Ok(Progress::complete_if(self.at == self.members.len()))
    }
}
