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
    let (count, mut pos) = short_header(buf, at, b'*')?;
    if count == 0 || count as u64 > UNAUTHENTICATED_MULTIBULK_MAX && !limits.authenticated() {
        return None;
    }
    for _ in 0..count {
        let (len, start) = short_header(buf, pos, b'$')?;
        spans.push(Span { start: start as u32, len: len as u32 });
        pos = start + len + 2;
    }
    (pos <= buf.len()).then_some(pos)
}

/// Reads a header with a number of one or two digits, or leaves it to `longer_header`.
#[inline(always)]
fn short_header(buf: &[u8], pos: usize, lead: u8) -> Option<(usize, usize)> {
    let head = buf.get(pos..pos + 4)?;
    let first = head[1].wrapping_sub(b'0');
    if head[0] != lead || first > 9 {
        return None;
    }
    if head[2] == b'\r' {
        return Some((first as usize, pos + 4));
    }
    let second = head[2].wrapping_sub(b'0');
    if second > 9 || first == 0 {
        return None;
    }
    let value = first as usize * 10 + second as usize;
    if head[3] == b'\r' {
        return Some((value, pos + 5));
    }
    longer_header(buf, pos, value)
}

/// Reads a header with a number of three or four digits, of which the first two are `value`.
#[inline(never)]
fn longer_header(buf: &[u8], pos: usize, value: usize) -> Option<(usize, usize)> {
    let tail = buf.get(pos + 3..pos + 6)?;
    let third = tail[0].wrapping_sub(b'0');
    let value = value * 10 + third as usize;
    if third > 9 {
        return None;
    }
    if tail[1] == b'\r' {
        return Some((value, pos + 6));
    }
    let fourth = tail[1].wrapping_sub(b'0');
    if fourth > 9 || tail[2] != b'\r' {
        return None;
    }
    Some((value * 10 + fourth as usize, pos + 7))
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
        let (line, start) = header(buf, pos, ProtocolError::TooBigBulkCount)?;
        let len = number::bulk_length(line, limits)?;
        if buf.len() - start < len.saturating_add(2) {
            return Err(if len >= BIG_BULK { Stop::BigBulk } else { Stop::Incomplete });
        }
        spans.push(Span { start: start as u32, len: len as u32 });
        pos = start + len + 2;
    }
    Ok(pos)
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
