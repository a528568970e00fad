//! Framing in place: where the next request's arguments stand in a buffer of received bytes.
//!
//! Two ways lead through the same grammar. `fast` takes what clients send all day: a complete array
//! whose numbers have at most four digits, which no limit forbids. For anything else it gives up without a trace and
//! `thorough` starts over: long numbers, inline requests, incomplete ones, errors.
//!
//! A header is a line that ends with a carriage return and one more byte, and an argument is
//! followed by two bytes; as in Redis, those bytes are not looked at.

use base::Blob;

use crate::args::Span;
use crate::error::ProtocolError;
use crate::inline;
use crate::limits::{BIG_BULK, LINE_MAX, Limits, UNAUTHENTICATED_MULTIBULK_MAX};
use crate::number;

/// What stands at the place where a request should.
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
    /// The beginning of a request that should not be scanned again from its start: give the bytes to
    /// an [`Assembler`](crate::Assembler).
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
    blobs: &mut Vec<Blob>,
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
    let head = head(buf, at as u32)?;
    let pos = at as u32 + 4;
    match u32::from_le_bytes(*head) {
        TWO => few::<2>(buf, pos, spans),
        THREE => few::<3>(buf, pos, spans),
        _ => many(buf, at as u32, spans, limits),
    }
}

/// The header of a request with two arguments.
const TWO: u32 = u32::from_le_bytes(*b"*2\r\n");

/// The header of a request with three arguments.
const THREE: u32 = u32::from_le_bytes(*b"*3\r\n");

/// Frames `N` arguments from `pos` on: the loop that is unrolled.
#[inline(always)]
fn few<const N: usize>(buf: &[u8], mut pos: u32, spans: &mut Vec<Span>) -> Option<usize> {
    let mut found = [Span::default(); N];
    for span in &mut found {
        let (len, start) = short_header(buf, pos)?;
        *span = Span { start, len };
        pos = start.wrapping_add(len).wrapping_add(2);
    }
    spans.extend_from_slice(&found);
    (pos as usize <= buf.len()).then_some(pos as usize)
}

/// Frames a request of `N` arguments whose name stands there; pushes nothing if it is not complete.
#[inline(always)]
pub(crate) fn few_behind<const N: usize>(
    buf: &[u8],
    name: Span,
    spans: &mut Vec<Span>,
) -> Option<usize> {
    let mut found = [name; N];
    let mut pos = name.start.wrapping_add(name.len).wrapping_add(2);
    for span in &mut found[1..] {
        let (len, start) = short_header(buf, pos)?;
        *span = Span { start, len };
        pos = start.wrapping_add(len).wrapping_add(2);
    }
    if pos as usize > buf.len() {
        return None;
    }
    spans.extend_from_slice(&found);
    Some(pos as usize)
}

/// Frames up to 99 arguments.
#[inline(never)]
fn many(buf: &[u8], at: u32, spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    let head = *head(buf, at)?;
    let (mut count, mut pos) = match one_digit(head, b'*') {
        count @ 1..=9 => (count, at as usize + 4),
        _ => (two_digits(head, b'*')?, at as usize + 5),
    };
    if u64::from(count) > UNAUTHENTICATED_MULTIBULK_MAX && !limits.authenticated() {
        return None;
    }
    while count >= 4 {
        pos = few::<4>(buf, pos as u32, spans)?;
        count -= 4;
    }
    for _ in 0..count {
        pos = few::<1>(buf, pos as u32, spans)?;
    }
    Some(pos)
}

/// Reads the header of an argument, if its number has at most four digits: the number, and the
/// position behind.
#[inline(always)]
fn short_header(buf: &[u8], pos: u32) -> Option<(u32, u32)> {
    let head = head(buf, pos)?;
    if head[2] == b'\r' {
        let digit = one_digit(*head, b'$');
        return (digit <= 9).then_some((digit, pos.wrapping_add(4)));
    }
    if let Some(value) = two_digits(*head, b'$') {
        return Some((value, pos.wrapping_add(5)));
    }
    longer_header(buf, pos)
}

/// The four bytes at `buf[pos]`. Every header of a complete request has them, because something
/// follows it.
#[inline(always)]
fn head(buf: &[u8], pos: u32) -> Option<&[u8; 4]> {
    // Positions have 32 bits, so that this sum needs no check.
    buf.get(pos as usize..pos as usize + 4)?.first_chunk()
}

/// The digit of the header `n\r\n` after its `lead`; or something above 9.
///
/// What must be there is taken away, and the place of the lead, now zero, turned to the top: the digit
/// is left in the lowest byte, and whatever was wrong makes the number too large.
#[inline(always)]
fn one_digit(head: [u8; 4], lead: u8) -> u32 {
    let expected = u32::from_le_bytes([0, lead, b'0', b'\r']);
    (u32::from_le_bytes(head) << 8).wrapping_sub(expected).rotate_right(16)
}

/// The value of the header `nn\r` after its `lead`, calculated the same way.
#[inline(always)]
fn two_digits(head: [u8; 4], lead: u8) -> Option<u32> {
    let expected = u32::from_le_bytes([lead, b'1', b'0', b'\r']);
    let digits = u32::from_le_bytes(head).wrapping_sub(expected).rotate_right(8);
    let (tens, ones) = (digits & 0xff, digits >> 8);
    (ones <= 9 && tens < 9).then_some(tens * 10 + ones + 10)
}

/// Reads a header with a number of three or four digits.
#[cold]
fn longer_header(buf: &[u8], pos: u32) -> Option<(u32, u32)> {
    let head: &[u8; 6] = buf.get(pos as usize..pos as usize + 6)?.first_chunk()?;
    let digit = |index: usize| u32::from(head[index].wrapping_sub(b'0'));
    let (first, second, third, fourth) = (digit(1), digit(2), digit(3), digit(4));
    if head[0] != b'$' || first.wrapping_sub(1) >= 9 || second > 9 || third > 9 {
        return None;
    }
    let value = first * 100 + second * 10 + third;
    if head[4] == b'\r' {
        return Some((value, pos + 6));
    }
    (fourth <= 9 && head[5] == b'\r').then_some((value * 10 + fourth, pos + 7))
}

/// Frames anything. `spans` may hold leftovers behind its first `before`.
#[inline(never)]
fn thorough(
    buf: &[u8],
    at: usize,
    before: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<Blob>,
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
        let (len, start) = match short_header(buf, pos as u32) {
            Some((len, start)) => (len as usize, start as usize),
            None => bulk_header(buf, pos, limits)?,
        };
        if buf.len() < start.saturating_add(len).saturating_add(2) {
            return Err(if len >= BIG_BULK { Stop::BigBulk } else { Stop::Incomplete });
        }
        spans.push(Span { start: start as u32, len: len as u32 });
        pos = start + len + 2;
    }
    Ok(pos)
}

/// Reads the header of an argument: its length, and where it starts.
fn bulk_header(buf: &[u8], pos: usize, limits: &Limits) -> Result<(usize, usize), Stop> {
    let (line, start) = header(buf, pos, ProtocolError::TooBigBulkCount)?;
    Ok((number::bulk_length(line, limits)?, start))
}

/// The header line at `at` without its ending; and what follows it.
fn header(buf: &[u8], at: usize, too_big: ProtocolError) -> Result<(&[u8], usize), Stop> {
    let rest = buf.get(at..).unwrap_or(&[]);
    let window = &rest[..rest.len().min(LINE_MAX + 1)];
    match memchr::memchr(b'\r', window) {
        Some(len) if len + 2 <= rest.len() => Ok((&rest[..len], at + len + 2)),
        None if window.len() > LINE_MAX => Err(Stop::Error(too_big)),
        _ => Err(Stop::Incomplete),
    }
}

/// Frames an inline request; returns its end.
fn inline_request(
    buf: &[u8],
    at: usize,
    spans: &mut Vec<Span>,
    blobs: &mut Vec<Blob>,
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
