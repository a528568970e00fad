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
