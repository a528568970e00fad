//! Several strings at once: MGET, MSET, MSETNX, MSETEX.

use base::num::parse_i64;
use resp::Args;

use super::options::{Condition, NewExpiry, SetOptions};
use super::set::{holds, put, record_set};
use super::text::{new_text, text_of, write_or_null};
use crate::ctx::{Ctx, WARM_KEYS};
use crate::done::Done;
use crate::error::{Arity, Error};
use crate::spec::KeyRuns;

/// `MGET key ...`: a key that holds no string counts as one that does not exist.
pub fn mget(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    ctx.reply.array(ctx.args.len() - 1);
    let are_many = ctx.has_many_keys();
    for i in 1..ctx.args.len() {
        if are_many {
            ctx.warm_keys(i - 1);
        }
        let key = ctx.key(i);
        let entry = ctx.guard.look_up(ctx.db, &key);
        ctx.tally.count(entry.is_some());
        write_or_null(&mut ctx.reply, entry.and_then(|entry| text_of(&entry).ok()));
    }
    Ok(Done::Replied)
}

/// `MSET key value ...`.
pub fn mset(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let pairs = Pairs::all(ctx, "mset")?;
    pairs.set(ctx, NewExpiry::Is(None));
    ctx.reply.ok();
    Ok(Done::Replied)
}

/// `MSETNX key value ...`: all, or none if one of the keys exists.
pub fn msetnx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let pairs = Pairs::all(ctx, "msetnx")?;
    pairs.set_if(ctx, Condition::Absent, NewExpiry::Is(None))
}

/// `MSETEX n key value ... [NX | XX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]`: all or none.
pub fn msetex(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let pairs = Pairs::counted(ctx.args)?;
    let options = SetOptions::of_msetex(ctx.args.from(pairs.end))?;
    let expiry = options.expiry.resolve(ctx.now, "msetex")?;
    let mark = ctx.guard.mark();
    let done = pairs.set_if(ctx, options.condition, expiry)?;
    if ctx.guard.is_recording() && ctx.guard.has_changed_since(mark) {
        pairs.keys().for_each(|key| record_set(ctx, key, key + 1, expiry));
    }
    Ok(done)
}

/// Where keys and values take turns among the arguments.
#[derive(Clone, Copy)]
struct Pairs {
    first: usize,
    end: usize,
}

/// The keys of MSETEX.
pub fn msetex_keys(args: Args<'_>) -> Result<KeyRuns, Error> {
    let Pairs { first, end } = Pairs::counted(args)?;
    Ok(KeyRuns::every(first..end, 2))
}

impl Pairs {
    /// Behind their number.
    fn counted(args: Args<'_>) -> Result<Pairs, Error> {
        let count = parse_i64(args.get(1)).filter(|n| (1..=i64::from(i32::MAX)).contains(n));
        let count = count.ok_or(Error::NumKeys)? as usize;
        if count > (args.len() - 2) / 2 {
            return Err(Error::NumKeysArgs);
        }
        Ok(Pairs { first: 2, end: 2 + 2 * count })
    }

    /// All arguments.
    fn all(ctx: &Ctx<'_, '_>, command: &'static str) -> Result<Pairs, Error> {
        if ctx.args.len().is_multiple_of(2) {
            return Err(Arity { command }.into());
        }
        Ok(Pairs { first: 1, end: ctx.args.len() })
    }

    fn keys(self) -> impl Iterator<Item = usize> {
        (self.first..self.end).step_by(2)
    }

    fn set(self, ctx: &mut Ctx<'_, '_>, expiry: NewExpiry) {
        if !ctx.has_many_keys() {
            return self.set_all(ctx, expiry);
        }
        for (n, first) in self.keys().enumerate().step_by(WARM_KEYS) {
            ctx.warm_keys(n);
            let end = self.end.min(first + 2 * WARM_KEYS);
            Pairs { first, end }.set_all(ctx, expiry);
        }
    }

    fn set_all(self, ctx: &mut Ctx<'_, '_>, expiry: NewExpiry) {
        for i in self.keys() {
            let key = ctx.key(i);
            put(ctx.guard, ctx.db, &key, new_text(&ctx.args, i + 1), expiry);
        }
    }

    /// Sets all if each of the keys meets the condition, and replies whether.
    fn set_if(
        self,
        ctx: &mut Ctx<'_, '_>,
        condition: Condition<'_>,
        expiry: NewExpiry,
    ) -> Result<Done, Error> {
        let (mut all_hold, are_many) = (true, ctx.has_many_keys());
        for (n, i) in self.keys().enumerate() {
            if are_many {
                ctx.warm_keys(n);
            }
            let key = ctx.key(i);
            all_hold = all_hold && holds(condition, ctx.guard.read(ctx.db, &key))?;
        }
        if all_hold {
            self.set(ctx, expiry);
        }
        ctx.reply.integer(i64::from(all_hold));
        Ok(Done::Replied)
    }
}
