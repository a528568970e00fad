//! Setting scores: ZADD, ZINCRBY, and what GEOADD does behind its arithmetic.

use base::double;
use keyspace::{Encoding, Kind};
use resp::Args;
use value::{Log, Zset};

use super::aside::Aside;
use super::reply::write_score;
use super::view::{big_mut, big_of, view_of};
use crate::ctx::{Ctx, Settings};
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::is;

/// When a score is set, and what is replied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddOptions {
    /// Only of members that are not there.
    pub new_only: bool,
    /// Only of members that are there.
    pub old_only: bool,
    /// Of members that are there only if it grows.
    pub greater: bool,
    /// Of members that are there only if it shrinks.
    pub less: bool,
    /// Members whose score has changed are counted too.
    pub changed: bool,
    /// The score is added to the member's.
    pub increment: bool,
}

impl AddOptions {
    /// Reads the options that stand from `at` on; returns where they end.
    fn parse(args: &Args<'_>, mut at: usize) -> (Self, usize) {
        let mut options = Self::default();
        while let Some(word) = args.try_get(at) {
            // Numbers begin with none of these letters.
            if !matches!(
                word.first(),
                Some(
                    b'n' | b'N'
                        | b'x'
                        | b'X'
                        | b'g'
                        | b'G'
                        | b'l'
                        | b'L'
                        | b'c'
                        | b'C'
                        | b'i'
                        | b'I'
                )
            ) {
                break;
            }
            let option = if is(word, "NX") {
                &mut options.new_only
            } else if is(word, "XX") {
                &mut options.old_only
            } else if is(word, "GT") {
                &mut options.greater
            } else if is(word, "LT") {
                &mut options.less
            } else if is(word, "CH") {
                &mut options.changed
            } else if is(word, "INCR") {
                &mut options.increment
            } else {
                break;
            };
            *option = true;
            at += 1;
        }
        (options, at)
    }

    fn check(self, pairs: usize) -> Result<(), Error> {
        if self.new_only && self.old_only {
            return Err(Error::ZaddNxXx);
        }
        let conditions = [self.new_only, self.greater, self.less];
        if conditions.into_iter().filter(|set| *set).count() > 1 {
            return Err(Error::ZaddGtLtNx);
        }
        if self.increment && pairs > 1 {
            return Err(Error::ZaddIncrPairs);
        }
        Ok(())
    }

    /// The score to be set to a member of this score, `None` if it stays as it is.
    fn decide(self, old: Option<f64>, given: f64) -> Result<Decision, Error> {
        let Some(old) = old else {
            let refused = self.old_only;
            return Ok(if refused { Decision::Refused } else { Decision::New(given) });
        };
        if self.new_only {
            return Ok(Decision::Refused);
        }
        let score = if self.increment { old + given } else { given };
        if score.is_nan() {
            return Err(Error::ScoreNan);
        }
        if self.greater && score <= old || self.less && score >= old {
            return Ok(Decision::Refused);
        }
        #[allow(clippy::float_cmp)] // exactly the same score is no change
        let same = score == old;
        Ok(if same { Decision::Same(score) } else { Decision::Changed(score) })
    }
}

#[derive(Clone, Copy)]
enum Decision {
    Refused,
    Same(f64),
    Changed(f64),
    New(f64),
}

/// What became of all pairs.
#[derive(Default)]
struct Outcome {
    added: i64,
    changed: i64,
    /// Length of the longest member that was added.
    longest: usize,
    /// The score of the last one, unless it was refused.
    score: Option<f64>,
}

impl Outcome {
    fn note(&mut self, member: &[u8], decision: Decision) {
        self.score = match decision {
            Decision::Refused => None,
            Decision::Same(score) | Decision::Changed(score) | Decision::New(score) => Some(score),
        };
        if let Decision::New(_) = decision {
            self.added += 1;
            self.longest = self.longest.max(member.len());
        }
        self.changed += i64::from(matches!(decision, Decision::Changed(_)));
    }

    /// Whether what was added makes a listpack a skiplist.
    fn outgrows(&self, settings: &Settings, len: u64) -> bool {
        self.added > 0
            && (len > settings.zset_max_listpack_entries
                || self.longest as u64 > settings.zset_max_listpack_value)
    }

    /// Replies, and counts what has changed since `before`.
    fn finish(&self, ctx: &mut Ctx<'_, '_>, options: AddOptions, before: i64) {
        ctx.guard.count_as(before, (self.added + self.changed) as u64);
        if options.increment {
            write_score(&mut ctx.reply, self.score);
        } else {
            let changed = if options.changed { self.changed } else { 0 };
            ctx.reply.integer(self.added + changed);
        }
    }
}

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`.
pub fn zadd(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let (options, first) = AddOptions::parse(&ctx.args, 2);
    let left = ctx.args.len() - first;
    if left == 0 || !left.is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    options.check(left / 2)?;
    add_texts(ctx, options, first)
}

/// `ZINCRBY key increment member`. An option of ZADD in the place of the increment is taken for
/// one, and then the pair is not complete: the oracle's answer.
pub fn zincrby(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    if AddOptions::parse(&ctx.args, 2).1 > 2 {
        return Err(Error::Syntax);
    }
    add_texts(ctx, AddOptions { increment: true, ..AddOptions::default() }, 2)
}

/// Sets the scores that stand as text from argument `first` on, each in front of its member.
fn add_texts(ctx: &mut Ctx<'_, '_>, options: AddOptions, first: usize) -> Result<Done, Error> {
    let args = ctx.args;
    let score = |at: usize| double::parse(args.get(at)).ok_or(Error::NotFloat);
    if args.len() == first + 2 {
        return add_members(ctx, options, &[score(first)?], first + 1, 2);
    }
    let scores: Result<Vec<f64>, Error> = (first..args.len()).step_by(2).map(score).collect();
    add_members(ctx, options, &scores?, first + 1, 2)
}

/// Sets the scores of the members that stand from argument `first` on, `step` apart, and replies.
pub(crate) fn add_members(
    ctx: &mut Ctx<'_, '_>,
    options: AddOptions,
    scores: &[f64],
    first: usize,
    step: usize,
) -> Result<Done, Error> {
    let (args, settings) = (ctx.args, ctx.settings);
    let mut pairs =
        scores.iter().enumerate().map(|(n, score)| (args.get(first + n * step), *score));
    let mut outcome = Outcome::default();
    let event = if options.increment { events::ZINCR } else { events::ZADD };
    let before = ctx.guard.counted();
    let Some(mut entry) = ctx.entry_mut_kind(event, 1, Kind::Zset)? else {
        if !options.old_only {
            let mut aside = Aside::new(settings);
            aside.expect(scores.len());
            add_aside(&mut aside, options, pairs, &mut outcome)?;
            let key = ctx.key(1);
            aside.insert(event, ctx.guard, ctx.db, &key);
        }
        outcome.finish(ctx, options, before);
        return Ok(Done::Replied);
    };
    if let Some(packed) = entry.entry().packed() {
        let mut aside = Aside::of(settings, entry.entry().encoding(), packed);
        let called = aside.expect(scores.len());
        if add_aside(&mut aside, options, pairs, &mut outcome)? {
            aside.replace(entry);
        } else {
            entry.set_encoding(called);
        }
    } else {
        // Up to the first pair that changes something nothing is touched.
        let zset = big_of(entry.entry().big().expect("it is not packed"));
        let change = first_change(zset, options, &mut pairs, &mut outcome)?;
        if let Some((member, score, old)) = change {
            entry.edit(|big, log| {
                let zset = big_mut(big);
                zset.replace(member, score, old, log);
                add_big(zset, log, options, pairs, &mut outcome);
            });
        }
        let is_listpack = entry.entry().encoding() == Encoding::Listpack;
        let outgrows = scores.len() as u64 > settings.zset_max_listpack_entries
            || change.is_some() && outcome.outgrows(settings, view_of(entry.entry()).len());
        if is_listpack && outgrows {
            entry.set_encoding(Encoding::Skiplist);
        }
    }
    outcome.finish(ctx, options, before);
    Ok(Done::Replied)
}

/// Adds to one aside; true if anything has changed.
fn add_aside<'m>(
    aside: &mut Aside,
    options: AddOptions,
    pairs: impl Iterator<Item = (&'m [u8], f64)>,
    outcome: &mut Outcome,
) -> Result<bool, Error> {
    for (member, given) in pairs {
        let decision = options.decide(aside.score(member), given)?;
        match decision {
            Decision::New(score) => aside.put(member, score, true),
            Decision::Changed(score) => aside.put(member, score, false),
            Decision::Refused | Decision::Same(_) => {}
        }
        outcome.note(member, decision);
    }
    Ok(outcome.added + outcome.changed > 0)
}

/// A member, its new score and the one that it has.
type FirstChange<'m> = (&'m [u8], f64, Option<f64>);

/// The first pair that changes something, with the score that its member has.
#[inline]
fn first_change<'m>(
    zset: &Zset,
    options: AddOptions,
    pairs: &mut impl Iterator<Item = (&'m [u8], f64)>,
    outcome: &mut Outcome,
) -> Result<Option<FirstChange<'m>>, Error> {
    for (member, given) in pairs {
        let old = zset.score(member);
        let decision = options.decide(old, given)?;
        outcome.note(member, decision);
        if let Decision::New(score) | Decision::Changed(score) = decision {
            return Ok(Some((member, score, old)));
        }
    }
    Ok(None)
}

/// The pairs behind the first change, which are no increments.
fn add_big<'m>(
    zset: &mut Zset,
    log: &mut Log,
    options: AddOptions,
    pairs: impl Iterator<Item = (&'m [u8], f64)>,
    outcome: &mut Outcome,
) {
    for (member, given) in pairs {
        let old = zset.score(member);
        let decision = options.decide(old, given).expect("only increments can fail");
        outcome.note(member, decision);
        if let Decision::New(score) | Decision::Changed(score) = decision {
            zset.replace(member, score, old, log);
        }
    }
}
