//! INCREX: a number within bounds, with an expiry. A limiter of rates in one command.

use base::UnixMs;
use base::longdouble::LongDouble;
use keyspace::Event;
use resp::{Args, Reply};
use value::{NewStr, Str};

use super::counter::{float_of, plain};
use super::options::{NewExpiry, When};
use super::text::text_of;
use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;
use crate::events;
use crate::parse::{integer, is};
use crate::record;

/// What is added.
#[derive(Clone, Copy)]
enum By<'a> {
    /// `BYINT`
    Int(&'a [u8]),
    /// `BYFLOAT`
    Float(&'a [u8]),
}

/// What becomes of the expiry.
#[derive(Clone, Copy)]
enum Expiry<'a> {
    Keep,
    /// `PERSIST`
    Persist,
    At(When<'a>),
}

/// The options of INCREX.
struct Options<'a> {
    by: Option<By<'a>>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    /// `SATURATE`: a sum out of bounds becomes the bound instead of being rejected.
    saturates: bool,
    expiry: Expiry<'a>,
    /// `ENX`: an expiry that is there stays.
    only_first: bool,
    /// `NX`: only a key that does not exist; `XX`: only one that does.
    only: Option<Key>,
}

/// Which keys INCREX is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Absent,
    Present,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Error> {
        let mut options = Options {
            by: None,
            lower: None,
            upper: None,
            saturates: false,
            expiry: Expiry::Keep,
            only_first: false,
            only: None,
        };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            if is(word, "SATURATE") {
                options.saturates = true;
            } else if is(word, "ENX") {
                options.only_first = true;
            } else if is(word, "NX") {
                options.restrict(Key::Absent)?;
            } else if is(word, "XX") {
                options.restrict(Key::Present)?;
            } else if is(word, "PERSIST") {
                options.expire(Expiry::Persist)?;
            } else {
                options.take(word, words.next().ok_or(Error::Syntax)?)?;
            }
        }
        match options.expiry {
            Expiry::Keep if options.only_first => Err(Error::EnxAlone),
            Expiry::Persist if options.only_first => Err(Error::Syntax),
            _ => Ok(options),
        }
    }

    /// An option with a value.
    fn take(&mut self, word: &[u8], text: &'a [u8]) -> Result<(), Error> {
        let (slot, value) = if is(word, "LBOUND") {
            (&mut self.lower, text)
        } else if is(word, "UBOUND") {
            (&mut self.upper, text)
        } else if is(word, "BYINT") {
            return self.add(By::Int(text));
        } else if is(word, "BYFLOAT") {
            return self.add(By::Float(text));
        } else {
            return self.expire(Expiry::At(When::named(word, text).ok_or(Error::Syntax)?));
        };
        if slot.replace(value).is_some() { Err(Error::Syntax) } else { Ok(()) }
    }

    fn add(&mut self, by: By<'a>) -> Result<(), Error> {
        if self.by.replace(by).is_some() { Err(Error::Syntax) } else { Ok(()) }
    }

    fn restrict(&mut self, key: Key) -> Result<(), Error> {
        if self.only.replace(key).is_some() { Err(Error::Syntax) } else { Ok(()) }
    }

    /// Whether nothing is to be done.
    fn skips(&self, exists: bool) -> bool {
        self.only.is_some_and(|key| (key == Key::Present) != exists)
    }

    fn expire(&mut self, expiry: Expiry<'a>) -> Result<(), Error> {
        if !matches!(self.expiry, Expiry::Keep) {
            return Err(Error::Syntax);
        }
        self.expiry = expiry;
        Ok(())
    }

    /// What becomes of a number.
    fn sum(&self, old: Option<Str<'_>>) -> Result<Sum, Error> {
        let skips = self.skips(old.is_some());
        let mut sum = self.sum_of(old, skips)?;
        sum.is_rejected |= skips;
        if skips && old.is_none() {
            sum.value = Number::Nothing;
        }
        Ok(sum)
    }

    /// The sum; where nothing is to be done the number as it is.
    fn sum_of(&self, old: Option<Str<'_>>, skips: bool) -> Result<Sum, Error> {
        match self.by {
            Some(By::Float(by)) => {
                let text = old.map_or(Some(LongDouble::ZERO), float_of);
                let limits = Limits {
                    lower: self.lower.map_or(Ok(LongDouble::MAX.negated()), float)?,
                    upper: self.upper.map_or(Ok(LongDouble::MAX), float)?,
                    saturates: self.saturates && !skips,
                };
                let (old, by) = (text.ok_or(Error::NotFloat)?, float(by)?);
                limits.add_float(old, if skips { LongDouble::ZERO } else { by })
            }
            by => {
                let by = if let Some(By::Int(by)) = by { integer(by)? } else { 1 };
                let old = old.map_or(Some(0), |old| old.as_int()).ok_or(Error::NotInteger)?;
                let limits = Limits {
                    lower: self.lower.map_or(Ok(i64::MIN), integer)?,
                    upper: self.upper.map_or(Ok(i64::MAX), integer)?,
                    saturates: self.saturates && !skips,
                };
                limits.add_int(old, if skips { 0 } else { by })
            }
        }
    }
}

fn float(text: &[u8]) -> Result<LongDouble, Error> {
    LongDouble::parse(text).ok_or(Error::NotFloat)
}

/// The new number, and by how much it is more; nothing is changed if `is_rejected`.
struct Sum {
    value: Number,
    increment: Number,
    is_rejected: bool,
}

enum Number {
    Int(i64),
    /// As text.
    Float(Vec<u8>),
    /// Of a key that does not exist and is left so.
    Nothing,
}

impl Number {
    fn float(number: LongDouble) -> Self {
        let mut text = Vec::new();
        number.write(&mut text);
        Number::Float(text)
    }

    fn as_new(&self) -> NewStr<'_> {
        match self {
            Number::Int(number) => NewStr::Int(*number),
            Number::Float(text) => plain(text),
            Number::Nothing => unreachable!("it is not stored"),
        }
    }

    fn reply(&self, reply: &mut Reply<'_>) {
        match self {
            Number::Int(number) => reply.integer(*number),
            Number::Float(text) => reply.double_text(text),
            Number::Nothing => reply.null(),
        }
    }
}

/// Between what a sum has to be.
struct Limits<T> {
    lower: T,
    upper: T,
    saturates: bool,
}

impl Limits<i64> {
    fn add_int(&self, old: i64, by: i64) -> Result<Sum, Error> {
        if self.lower > self.upper {
            return Err(Error::BoundsCrossed);
        }
        let exact = i128::from(old) + i128::from(by);
        let sum = exact.clamp(self.lower.into(), self.upper.into());
        let is_rejected = sum != exact && !self.saturates;
        let value = if is_rejected { old } else { sum as i64 };
        // A value that was far out of bounds can come back by more than fits.
        let increment = value.checked_sub(old).ok_or(Error::IncrOverflow)?;
        Ok(Sum { value: Number::Int(value), increment: Number::Int(increment), is_rejected })
    }
}

impl Limits<LongDouble> {
    fn add_float(&self, old: LongDouble, by: LongDouble) -> Result<Sum, Error> {
        if self.upper.is_below(self.lower) {
            return Err(Error::BoundsCrossed);
        }
        if !old.is_finite() || !by.is_finite() {
            return Err(Error::IncrNotFinite);
        }
        let exact = old.checked_add(by);
        let bound = match exact {
            None if by.is_below(LongDouble::ZERO) => Some(self.lower),
            None => Some(self.upper),
            Some(sum) if sum.is_below(self.lower) => Some(self.lower),
            Some(sum) if self.upper.is_below(sum) => Some(self.upper),
            Some(_) => None,
        };
        let (value, increment, is_rejected) = match (bound, exact) {
            (None, sum) => (sum.expect("it is within bounds"), by, false),
            (Some(_), _) if !self.saturates => (old, LongDouble::ZERO, true),
            (Some(bound), _) => {
                let increment = bound.checked_add(old.negated()).ok_or(Error::IncrNotFinite)?;
                (bound, increment, false)
            }
        };
        Ok(Sum { value: Number::float(value), increment: Number::float(increment), is_rejected })
    }
}

/// `INCREX key [BYFLOAT increment | BYINT increment] [LBOUND bound] [UBOUND bound] [SATURATE] [EX s
/// | PX ms | EXAT s | PXAT ms | PERSIST] [ENX] [NX | XX]`, as redis.io describes it; `NX` and `XX`
/// as valkey.io does for Valkey 9.2. Neither page says what is replied where such a condition is
/// not met: it is what is replied of a sum out of bounds, the number as it is and 0, and the null
/// in the place of a number that is not there.
pub fn increx(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let options = Options::parse(ctx.args.from(2))?;
    let expiry = match options.expiry {
        Expiry::Keep => NewExpiry::Keep,
        Expiry::Persist => NewExpiry::Is(None),
        Expiry::At(when) => NewExpiry::Is(Some(when.resolve(ctx.now, "increx")?)),
    };
    let key = ctx.key(1);
    let (old, old_expiry) = match ctx.guard.read(ctx.db, &key) {
        Some(entry) => (Some(text_of(&entry)?), entry.expiry()),
        None => (None, None),
    };
    let sum = options.sum(old)?;
    ctx.reply.array(2);
    sum.value.reply(&mut ctx.reply);
    sum.increment.reply(&mut ctx.reply);
    if !sum.is_rejected {
        let keeps = options.only_first && old_expiry.is_some();
        let expiry = if keeps { NewExpiry::Keep } else { expiry };
        store(ctx, &sum.value, old_expiry, expiry);
    }
    Ok(Done::Replied)
}

/// Stores a number under the key in the first argument, and when it expires: at once if that is
/// past.
fn store(ctx: &mut Ctx<'_, '_>, value: &Number, old: Option<UnixMs>, expiry: NewExpiry) {
    let (db, key) = (ctx.db, ctx.key(1));
    if matches!(expiry, NewExpiry::Is(Some(at)) if ctx.is_past(at)) {
        if let Some(entry) = ctx.guard.entry_mut(Event::DEL, db, &key) {
            entry.remove();
            record::removal(ctx, key.bytes);
        }
        return;
    }
    let event = match value {
        Number::Int(_) => events::INCRBY,
        Number::Float(_) | Number::Nothing => events::INCRBYFLOAT,
    };
    let at = if let NewExpiry::Is(at) = expiry { at } else { old };
    match ctx.guard.entry_mut(event, db, &key) {
        Some(mut entry) => {
            entry.set_str(value.as_new(), true);
            if at != old {
                entry.set_expiry(at);
                ctx.guard.adjust_change_count(-1); // it is one change
            }
        }
        None => ctx.guard.insert(event, db, &key, value.as_new(), at),
    }
    record::set(ctx, key.bytes, expiry.of_record(), |record| match value {
        Number::Int(number) => record::number(record, *number),
        Number::Float(text) => record.word(text),
        Number::Nothing => unreachable!("it is not stored"),
    });
    match expiry {
        NewExpiry::Is(Some(_)) => ctx.guard.notify(events::EXPIRE, db, &key),
        NewExpiry::Is(None) if old.is_some() => ctx.guard.notify(events::PERSIST, db, &key),
        _ => {}
    }
}
