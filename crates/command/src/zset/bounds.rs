//! Ends of intervals of scores and of members, as clients write them.

use base::double;
use value::zset::{LexBound, LexRange, ScoreRange};

use crate::error::Error;

/// An interval of scores: `1`, `(1`, `-inf`.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<ScoreRange, Error> {
    let end = |text| score_end(text).ok_or(Error::ScoreBound);
    let ((min, min_excluded), (max, max_excluded)) = (end(min)?, end(max)?);
    Ok(ScoreRange { min, min_excluded, max, max_excluded })
}

fn score_end(text: &[u8]) -> Option<(f64, bool)> {
    match text {
        [b'(', number @ ..] => Some((c_double(number)?, true)),
        number => Some((c_double(number)?, false)),
    }
}

/// A number as C's `strtod` reads it: white space before it, a NUL ends it, nothing is 0, and what
/// is beyond the range is infinite or 0.
fn c_double(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let text = text.trim_ascii_start();
    double::parse(text).or_else(|| {
        let text = std::str::from_utf8(text).ok()?;
        text.parse::<f64>().ok().filter(|value| !value.is_nan())
    })
}

/// An interval of members: `[a`, `(a`, `-`, `+`.
pub(super) fn members<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexRange<'a>, Error> {
    Ok(LexRange { min: member_end(min)?, max: member_end(max)? })
}

fn member_end(text: &[u8]) -> Result<LexBound<'_>, Error> {
    match text {
        b"-" => Ok(LexBound::Min),
        b"+" => Ok(LexBound::Max),
        [b'[', member @ ..] => Ok(LexBound::Included(member)),
        [b'(', member @ ..] => Ok(LexBound::Excluded(member)),
        _ => Err(Error::MemberBound),
    }
}

/// The ranks from `start` to `stop`, both included and negative ones counted from the end, of
/// `len`.
pub(super) fn ranks(start: i64, stop: i64, len: u64) -> std::ops::Range<u64> {
    let signed = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at.saturating_add(signed) } else { at };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(signed - 1);
    if start > stop { 0..0 } else { start as u64..stop as u64 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_parsed_like_strtod() {
        let read: [(&[u8], Option<f64>); 9] = [
            (b"", Some(0.0)),
            (b" 1", Some(1.0)),
            (b"1 ", None),
            (b" ", None),
            (b"1e400", Some(f64::INFINITY)),
            (b"-1e400", Some(f64::NEG_INFINITY)),
            (b"1e-400", Some(0.0)),
            (b"nan", None),
            (b"-1\0z", Some(-1.0)),
        ];
        for (text, value) in read {
            assert_eq!(c_double(text), value, "{text:?}");
        }
    }

    #[test]
    fn ranks_count_from_both_ends() {
        for (start, stop, len, expected) in [
            (0, -1, 3, 0..3),
            (-2, 5, 3, 1..3),
            (-9, 0, 3, 0..1),
            (2, 1, 3, 0..0),
            (3, 9, 3, 0..0),
            (0, -4, 3, 0..0),
            (i64::MIN, i64::MAX, 3, 0..3),
            (0, -1, 0, 0..0),
        ] {
            assert_eq!(ranks(start, stop, len), expected, "{start} {stop} {len}");
        }
    }
}
