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

/// The longest timeout: it ends within 63 bits if it begins before 2039.
const TIMEOUT_MS_MAX: u64 = i64::MAX as u64 - (1 << 41);

/// The timeout of a blocking command, in seconds with a fraction, as milliseconds, rounded up; 0 is
/// for ever.
pub fn timeout_ms(arg: &[u8]) -> Result<Option<u64>, Error> {
    let Some(seconds) = base::double::parse(arg) else {
        // Redis reads a long double: what only a double cannot hold is a number out of range.
        base::longdouble::LongDouble::parse(arg).ok_or(Error::TimeoutNotFloat)?;
        let is_negative = arg.starts_with(b"-");
        return Err(if is_negative { Error::TimeoutNegative } else { Error::TimeoutRange });
    };
    let ms = (seconds * 1000.0).ceil();
    if ms < 0.0 {
        Err(Error::TimeoutNegative)
    } else if ms > TIMEOUT_MS_MAX as f64 {
        Err(Error::TimeoutRange)
    } else {
        Ok((ms > 0.0).then_some(ms as u64))
    }
}

/// A timeout in whole milliseconds.
pub fn timeout_integer(arg: &[u8]) -> Result<u64, Error> {
    let ms = integer(arg).map_err(|_| Error::TimeoutNotInteger)?;
    let ms = u64::try_from(ms).map_err(|_| Error::TimeoutNegative)?;
    if ms > TIMEOUT_MS_MAX { Err(Error::TimeoutRange) } else { Ok(ms) }
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
