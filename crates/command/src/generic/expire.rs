//! When keys expire: EXPIRE and its forms, PERSIST, TTL and its forms.

use base::UnixMs;
use keyspace::Event;
use resp::Args;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::{Error, ExpireOption, InvalidExpire};
use crate::events;
use crate::parse::{integer, is};
use crate::record;

const MS: i64 = 1;
const SECOND: i64 = 1000;
const EPOCH: UnixMs = UnixMs(0);

/// `EXPIRE key seconds [NX|XX|GT|LT]`.
pub fn expire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let from = ctx.now;
    set(ctx, "expire", from, SECOND)
}

/// `PEXPIRE key milliseconds [NX|XX|GT|LT]`.
pub fn pexpire(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let from = ctx.now;
    set(ctx, "pexpire", from, MS)
}

/// `EXPIREAT key seconds [NX|XX|GT|LT]`, counted from the epoch.
pub fn expireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    set(ctx, "expireat", EPOCH, SECOND)
}

/// `PEXPIREAT key milliseconds [NX|XX|GT|LT]`, counted from the epoch.
pub fn pexpireat(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    set(ctx, "pexpireat", EPOCH, MS)
}

/// On which present expiry a new one is set.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    /// There is none.
    nx: bool,
    /// There is one.
    xx: bool,
    /// It is earlier than the new one; none is later than any.
    gt: bool,
    /// It is later than the new one.
    lt: bool,
}

impl Conditions {
    fn parse(words: Args<'_>) -> Result<Self, Error> {
        let mut found = Self::default();
        for word in words {
            let condition = if is(word, "NX") {
                &mut found.nx
            } else if is(word, "XX") {
                &mut found.xx
            } else if is(word, "GT") {
                &mut found.gt
            } else if is(word, "LT") {
                &mut found.lt
            } else {
                return Err(ExpireOption { word: word.into() }.into());
            };
            *condition = true;
        }
        match found {
            Self { nx: true, xx, gt, lt } if xx || gt || lt => Err(Error::ExpireNxConflict),
            Self { gt: true, lt: true, .. } => Err(Error::ExpireGtLt),
            _ => Ok(found),
        }
    }

    fn allow(self, present: Option<UnixMs>, new: UnixMs) -> bool {
        match present {
            None => !self.xx && !self.gt,
            Some(at) => !self.nx && (!self.gt || new > at) && (!self.lt || new < at),
        }
    }
}

/// A client's time in milliseconds of the epoch.
fn absolute(time: i64, from: UnixMs, unit: i64, command: &'static str) -> Result<UnixMs, Error> {
    let at = time.checked_mul(unit).and_then(|ms| ms.checked_add(from.0));
    at.map(UnixMs).ok_or_else(|| InvalidExpire { command }.into())
}

/// Sets the expiry of a key; a time that has passed removes it.
fn set(
    ctx: &mut Ctx<'_, '_>,
    command: &'static str,
    from: UnixMs,
    unit: i64,
) -> Result<Done, Error> {
    let conditions = Conditions::parse(ctx.args.from(3))?;
    let at = absolute(integer(ctx.arg(2))?, from, unit, command)?;
    let key = ctx.key(1);
    let present = ctx.guard.read(ctx.db, &key).map(|entry| entry.expiry());
    let set = present.is_some_and(|present| conditions.allow(present, at));
    if set && ctx.is_past(at) {
        ctx.guard.remove(Event::DEL, ctx.db, &key);
        record::removal(ctx, key.bytes);
    } else if set && let Some(mut entry) = ctx.guard.entry_mut(events::EXPIRE, ctx.db, &key) {
        entry.set_expiry(Some(at));
        record::expiry(ctx, key.bytes, Some(at));
    }
    ctx.reply.integer(set.into());
    Ok(Done::Replied)
}

/// `PERSIST key`.
pub fn persist(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let key = ctx.key(1);
    let expires = ctx.guard.read(ctx.db, &key).is_some_and(|entry| entry.expiry().is_some());
    if expires && let Some(mut entry) = ctx.guard.entry_mut(events::PERSIST, ctx.db, &key) {
        entry.set_expiry(None);
    }
    ctx.reply.integer(expires.into());
    Ok(Done::Replied)
}

/// `TTL key`.
pub fn ttl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let now = ctx.now;
    show(ctx, |at| seconds(left(at, now)));
    Ok(Done::Replied)
}

/// `PTTL key`.
pub fn pttl(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let now = ctx.now;
    show(ctx, |at| left(at, now));
    Ok(Done::Replied)
}

/// `EXPIRETIME key`.
pub fn expiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, |at| seconds(at.0));
    Ok(Done::Replied)
}

/// `PEXPIRETIME key`.
pub fn pexpiretime(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    show(ctx, |at| at.0);
    Ok(Done::Replied)
}

fn left(at: UnixMs, now: UnixMs) -> i64 {
    at.0.saturating_sub(now.0).max(0)
}

/// The nearest second of a time that is not negative.
fn seconds(ms: i64) -> i64 {
    ms / SECOND + (ms % SECOND + SECOND / 2) / SECOND
}

/// Replies what `form` makes of the expiry: -2 without a key, -1 without an expiry.
fn show(ctx: &mut Ctx<'_, '_>, form: impl FnOnce(UnixMs) -> i64) {
    let key = ctx.key(1);
    let found = ctx.guard.peek(ctx.db, &key).map(|entry| entry.expiry());
    ctx.count_lookup(&key, found.is_some());
    ctx.reply.integer(match found {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => form(at),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_to_seconds() {
        for (ms, expected) in [(0, 0), (499, 0), (500, 1), (1_499, 1), (1_500, 2)] {
            assert_eq!(seconds(ms), expected, "{ms}");
        }
        assert_eq!(seconds(i64::MAX), i64::MAX / 1000 + 1);
    }

    #[test]
    fn times_beyond_64_bits_are_refused() {
        let now = UnixMs(1_700_000_000_000);
        let most = (i64::MAX - now.0) / SECOND;
        assert!(absolute(most, now, SECOND, "expire").is_ok());
        assert!(absolute(most + 1, now, SECOND, "expire").is_err());
        assert!(absolute(i64::MIN, now, SECOND, "expire").is_err());
        assert_eq!(absolute(i64::MIN, now, MS, "pexpire"), Ok(UnixMs(i64::MIN + now.0)));
        assert_eq!(absolute(i64::MAX, EPOCH, MS, "pexpireat"), Ok(UnixMs(i64::MAX)));
    }
}
