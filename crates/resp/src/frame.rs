//! Framing in place: where the next request's arguments stand in a buffer of received bytes.
//!
//! ```text
//! buf     ... * 2 \r \n $ 3 \r \n G E T \r \n $ 5 \r \n k e y : 1 \r \n ...
//!             ^at                 |---|             |-------|       ^end
//! spans                           start, len        start, len
//! ```
//!
//! Two functions parse the same grammar. `fast` handles what clients mostly send: a complete array
//! within all limits, whose numbers have at most four digits. For anything else it returns `None`,
//! and `thorough` starts over: long numbers, inline requests, incomplete ones, errors.
//!
//! Each header and each argument ends with CR LF; anything else there is an error, as in Valkey 9.
//! `fast` checks an argument's ending together with the header behind it: both are in the
//! eight bytes that it loads anyway.

use crate::args::{BigArg, Span};
use crate::error::ProtocolError;
use crate::inline;
use crate::limits::{BIG_BULK, LINE_MAX, Limits, UNAUTHENTICATED_MULTIBULK_MAX};
use crate::number;

/// What was found where a request should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A request, whose spans were pushed. The next one starts at `end`.
    Complete {
        /// Index behind the request's last byte.
        end: usize,
    },
    /// An empty request (an empty array, a blank line): to be skipped without a reply.
    Empty {
        /// Index behind the request's last byte.
        end: usize,
    },
    /// The beginning of a request: ask again when more has arrived behind the same bytes.
    Incomplete,
    /// The beginning of a request that should not be scanned again from its start: give the bytes
    /// to an [`Assembler`](crate::Assembler).
    Big,
    /// No request. Answer and close.
    Error(ProtocolError),
}

/// Frames the one request that starts at `buf[at]`.
///
/// Pushes a span for each argument, relative to the start of `buf`, which is shorter than 2 GiB. An
/// inline argument with quotes is pushed to `blobs`, and its span says where. Unless the request is
/// complete, both stay as they are.
#[inline]
pub fn frame(
    buf: &[u8],
    at: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<BigArg>,
    limits: &Limits,
) -> Framed {
    let before = spans.len();
    match fast(buf, at, spans, limits) {
        Some(end) => Framed::Complete { end },
        None => thorough(buf, at, before, spans, blobs, limits),
    }
}

/// Frames a complete array with short numbers. On `None` it may have pushed some spans.
#[inline(always)]
fn fast(buf: &[u8], at: usize, spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    // A complete request has eight bytes.
    let head: &[u8; 8] = buf.get(at..at + 8)?.first_chunk()?;
    let [a, b, c, d, e, f, g, h] = *head;
    let count = u32::from_le_bytes([a, b, c, d]);
    if count != TWO && count != THREE {
        return short_array(buf, at as u32, spans, limits);
    }
    let len = u32::from_le_bytes([e, f, g, h]).wrapping_sub(NAME).rotate_right(8);
    let name = match len {
        0..=9 => Span { start: at as u32 + 8, len },
        _ => short_argument(buf, at as u32 + 2)?,
    };
    match count {
        TWO => arguments_behind_name::<2>(buf, name, spans),
        _ => arguments_behind_name::<3>(buf, name, spans),
    }
}

/// The header of a request with two arguments.
const TWO: u32 = u32::from_le_bytes(*b"*2\r\n");

/// The header of a request with three arguments.
const THREE: u32 = u32::from_le_bytes(*b"*3\r\n");

/// The header of a name of no bytes.
const NAME: u32 = u32::from_le_bytes(*b"$0\r\n");

/// Frames the `N` arguments behind the CR LF at `line_end`; the loop is unrolled. Returns where the
/// last one ends.
#[inline(always)]
fn short_arguments<const N: usize>(
    buf: &[u8],
    mut line_end: u32,
    spans: &mut Vec<Span>,
) -> Option<u32> {
    let mut found = [Span::default(); N];
    for span in &mut found {
        *span = short_argument(buf, line_end)?;
        line_end = span.start.wrapping_add(span.len);
    }
    spans.extend_from_slice(&found);
    Some(line_end)
}

/// Frames a request of `N` arguments, of which the name is framed already; pushes nothing if it is
/// not complete.
#[inline(always)]
pub(crate) fn arguments_behind_name<const N: usize>(
    buf: &[u8],
    name: Span,
    spans: &mut Vec<Span>,
) -> Option<usize> {
    let mut found = [name; N];
    let mut line_end = name.start.wrapping_add(name.len);
    for span in &mut found[1..] {
        *span = short_argument(buf, line_end)?;
        line_end = span.start.wrapping_add(span.len);
    }
    let end = end_of_request(buf, line_end)?;
    spans.extend_from_slice(&found);
    Some(end)
}

/// Frames up to 99 arguments; returns where the last one ends.
#[inline(never)]
fn short_array(buf: &[u8], at: u32, spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    let head: &[u8; 4] = buf.get(at as usize..at as usize + 4)?.first_chunk()?;
    let (mut count, mut line_end) = match *head {
        [b'*', ones @ b'1'..=b'9', b'\r', _] => (ones - b'0', at + 2),
        [b'*', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r'] => {
            ((tens - b'0') * 10 + (ones - b'0'), at + 3)
        }
        _ => return None,
    };
    if u64::from(count) > UNAUTHENTICATED_MULTIBULK_MAX && !limits.authenticated() {
        return None;
    }
    while count >= 4 {
        line_end = short_arguments::<4>(buf, line_end, spans)?;
        count -= 4;
    }
    for _ in 0..count {
        line_end = short_arguments::<1>(buf, line_end, spans)?;
    }
    end_of_request(buf, line_end)
}

/// The request's end, if CR LF is what stands at the end of its last argument.
#[inline(always)]
fn end_of_request(buf: &[u8], line_end: u32) -> Option<usize> {
    let line_end = line_end as usize;
    let found: &[u8; 2] = buf.get(line_end..line_end + 2)?.first_chunk()?;
    (found == b"\r\n").then_some(line_end + 2)
}

/// A CR LF and the header of one digit behind it, above two bytes that are not of them.
const ONE_DIGIT: u64 = u64::from_le_bytes(*b"\0\0\r\n$0\r\n");

/// The same with two digits, above one byte.
const TWO_DIGITS: u64 = u64::from_le_bytes(*b"\0\r\n$10\r\n");

/// Reads the header behind the CR LF at `line_end`, if its number has at most four digits. Returns
/// the place of its argument, whose own ending has not been checked.
///
/// ```text
/// line_end           argument           line_end              argument
/// v                  v                  v                     v
/// \r \n  $  5 \r \n  k  e               \r \n  $  1  6 \r \n  k     the eight bytes
/// \r \n  $  0 \r \n                     \r \n  $  1  0 \r \n        what is subtracted
///           5                                     0  6              what is left: the digits
/// ```
///
/// The expected bytes are subtracted from the eight bytes at `line_end`, and the digits are rotated
/// to the bottom: any byte that differs makes the number too large. A complete request has eight
/// bytes there: behind a short header stand the argument and its ending.
#[inline(always)]
fn short_argument(buf: &[u8], line_end: u32) -> Option<Span> {
    // Positions have 32 bits, so that this sum needs no check.
    let word: &[u8; 8] = buf.get(line_end as usize..line_end as usize + 8)?.first_chunk()?;
    let bytes = u64::from_le_bytes(*word);
    let digit = (bytes << 16).wrapping_sub(ONE_DIGIT).rotate_right(40);
    if digit <= 9 {
        return Some(Span { start: line_end.wrapping_add(6), len: digit as u32 });
    }
    let digits = (bytes << 8).wrapping_sub(TWO_DIGITS).rotate_right(32);
    let (tens, ones) = (digits & 0xff, digits >> 8);
    if ones <= 9 && tens < 9 {
        let len = (tens * 10 + ones + 10) as u32;
        return Some(Span { start: line_end.wrapping_add(7), len });
    }
    let (start, len) = longer_argument(buf, line_end);
    (start != 0).then_some(Span { start, len })
}

/// Reads a header with a number of three or four digits: where its argument starts, 0 for none, and
/// its length. (Two numbers are returned in registers, an `Option` of them is not.)
#[cold]
fn longer_argument(buf: &[u8], line_end: u32) -> (u32, u32) {
    let word = buf.get(line_end as usize..).and_then(<[u8]>::first_chunk::<9>);
    let Some([b'\r', b'\n', b'$', first, second, third, fourth, rest @ ..]) = word else {
        return (0, 0);
    };
    let digit = |byte: &u8| u32::from(byte.wrapping_sub(b'0'));
    let (first, second, third) = (digit(first), digit(second), digit(third));
    if first.wrapping_sub(1) >= 9 || second > 9 || third > 9 {
        return (0, 0);
    }
    let len = first * 100 + second * 10 + third;
    if [*fourth, rest[0]] == *b"\r\n" {
        return (line_end + 8, len);
    }
    let fourth = digit(fourth);
    if fourth <= 9 && rest == b"\r\n" { (line_end + 9, len * 10 + fourth) } else { (0, 0) }
}

/// Frames anything. `spans` may hold leftovers behind its first `before`.
#[inline(never)]
fn thorough(
    buf: &[u8],
    at: usize,
    before: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<BigArg>,
    limits: &Limits,
) -> Framed {
    debug_assert!(buf.len() < Span::BLOB as usize, "spans have 31 bits");
    spans.truncate(before);
    let blobs_before = blobs.len();
    let step = match buf.get(at) {
        None => Err(Stop::Incomplete),
        Some(b'*') => multibulk(buf, at, spans, limits),
        Some(_) => inline_request(buf, at, spans, blobs),
    };
    let stop = match step {
        Ok(end) if spans.len() > before => return Framed::Complete { end },
        Ok(end) => return Framed::Empty { end },
        Err(stop) => stop,
    };
    spans.truncate(before);
    blobs.truncate(blobs_before);
    match stop {
        Stop::Error(error) => Framed::Error(error),
        Stop::BigBulk => Framed::Big,
        Stop::Incomplete if buf.len().saturating_sub(at) > BIG_BULK => Framed::Big,
        Stop::Incomplete => Framed::Incomplete,
    }
}

/// Why framing ended before the request did.
enum Stop {
    Incomplete,
    BigBulk,
    Error(ProtocolError),
}

impl From<ProtocolError> for Stop {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

/// Frames an array; returns its end.
fn multibulk(buf: &[u8], at: usize, spans: &mut Vec<Span>, limits: &Limits) -> Result<usize, Stop> {
    let (line, mut pos) = header(buf, at, ProtocolError::TooBigMultibulkCount)?;
    let count = number::count(&line[1..], limits)?;
    for _ in 0..count {
        let (len, start) = match short_argument(buf, pos as u32 - 2) {
            Some(Span { start, len }) => (len as usize, start as usize),
            None => bulk_header(buf, pos, limits)?,
        };
        let end = start.saturating_add(len);
        if buf.len() < end.saturating_add(2) {
            return Err(if len >= BIG_BULK { Stop::BigBulk } else { Stop::Incomplete });
        }
        if buf[end..end + 2] != *b"\r\n" {
            return Err(Stop::Error(ProtocolError::InvalidLineEnd));
        }
        spans.push(Span { start: start as u32, len: len as u32 });
        pos = end + 2;
    }
    Ok(pos)
}

/// Reads the header of an argument: its length, and where it starts.
fn bulk_header(buf: &[u8], pos: usize, limits: &Limits) -> Result<(usize, usize), Stop> {
    let (line, start) = header(buf, pos, ProtocolError::TooBigBulkCount)?;
    Ok((number::bulk_length(line, limits)?, start))
}

/// The header line at `at` up to its CR and the byte behind; and what follows it.
fn header(buf: &[u8], at: usize, too_big: ProtocolError) -> Result<(&[u8], usize), Stop> {
    let rest = buf.get(at..).unwrap_or(&[]);
    let window = &rest[..rest.len().min(LINE_MAX + 1)];
    match memchr::memchr(b'\r', window) {
        Some(len) if len + 2 <= rest.len() => Ok((&rest[..len + 2], at + len + 2)),
        None if window.len() > LINE_MAX => Err(Stop::Error(too_big)),
        _ => Err(Stop::Incomplete),
    }
}

/// Frames an inline request; returns its end.
fn inline_request(
    buf: &[u8],
    at: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<BigArg>,
) -> Result<usize, Stop> {
    let rest = &buf[at..];
    let window = &rest[..rest.len().min(LINE_MAX + 1)];
    match memchr::memchr(b'\n', window) {
        Some(len) => {
            inline::split(buf, at, at + len, spans, blobs)?;
            Ok(at + len + 1)
        }
        None if window.len() > LINE_MAX => Err(Stop::Error(ProtocolError::TooBigInline)),
        None => Err(Stop::Incomplete),
    }
}
