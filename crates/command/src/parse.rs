//! Small readers of arguments that several families share.

use base::num::parse_i64;

use crate::error::Error;

/// Whether an argument is this word, which is given in upper case, in any case.
#[inline]
pub fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// A 64-bit integer.
#[inline]
pub fn integer(arg: &[u8]) -> Result<i64, Error> {
    parse_i64(arg).ok_or(Error::NotInteger)
}

/// An integer within the bounds of an `int`, as database numbers are.
#[inline]
pub fn int(arg: &[u8]) -> Result<i32, Error> {
    i32::try_from(integer(arg)?).map_err(|_| Error::IntRange)
}

/// The timeout of a blocking command, in seconds with a fraction, as milliseconds, rounded up; 0 is for ever. Recorded:
/// what is beyond 2^63 milliseconds, infinity included, is called negative.
pub fn timeout_ms(arg: &[u8]) -> Result<Option<u64>, Error> {
    // Redis reads a long double: what only a double cannot hold is too large, and that is what this says.
    let Some(seconds) = base::double::parse(arg) else {
        let is_long = base::longdouble::LongDouble::parse(arg).is_some();
        return Err(if is_long { Error::TimeoutNegative } else { Error::TimeoutNotFloat });
    };
    let ms = (seconds * 1000.0).ceil();
    if !(0.0..9_223_372_036_854_775_808.0).contains(&ms) {
        return Err(Error::TimeoutNegative);
    }
    Ok((ms > 0.0).then_some(ms as u64))
}

/// A count of random elements: negative for as many draws.
pub fn count(arg: &[u8]) -> Result<i64, Error> {
    match integer(arg)? {
        i64::MIN => Err(Error::CountRange),
        count => Ok(count),
    }
}

/// `ON` or `OFF`.
pub fn on_off(arg: &[u8]) -> Result<bool, Error> {
    if is(arg, "ON") {
        Ok(true)
    } else if is(arg, "OFF") {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}
