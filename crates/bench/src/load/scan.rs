//! Finding the ends of replies, as fast as their lengths allow: bodies are skipped, not read.
//!
//! The scanner may be fed with bytes that were cut anywhere. What it does not consume (the
//! beginning of a header, or of a whole bulk string where the sink wants it whole) must be fed
//! again with more behind it. It holds no bytes itself; an aggregate's missing members are counted
//! on a stack.
//!
//! Pushes (`>`) answer no request and attributes (`|`) are no reply: both are passed over in
//! silence.

use base::num::parse_i64;
use memchr::memchr;

/// Deepest nesting of a reply.
pub const DEPTH_MAX: usize = 128;
/// Longest header, simple string or error.
pub const LINE_MAX: usize = 1024 * 1024;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `+`, and everything else on one line that has no kind of its own here: `,`, `(`, `#`.
    Simple,
    /// `-` or `!`.
    Error,
    /// `:`
    Integer,
    /// `$` or `=`.
    Bulk,
    /// `$-1`, `*-1` or `_`.
    Nil,
    /// `*`, `~` or `%`, with the number of members that follow (twice the pairs of a map).
    Aggregate(u64),
}

/// Receives each value and reply.
pub trait Sink {
    /// Bulk strings must come in one piece.
    const WHOLE: bool;
    /// A value, with its text; `nested` if it is a member of an aggregate. Members come after their
    /// aggregate. If `WHOLE` is false a bulk string's text may be left out.
    fn value(&mut self, kind: Kind, text: &[u8], nested: bool);
    /// A reply is complete.
    fn reply(&mut self);
}

/// What came is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// An aggregate whose members have not all come.
#[derive(Clone, Copy, Debug)]
struct Open {
    left: u64,
    /// Its members belong to no reply: a push or an attribute.
    silent: bool,
    /// It is not a value itself: an attribute.
    attribute: bool,
}

/// The state between two pieces of input.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    stack: Vec<Open>,
    /// Bytes of a bulk string and its line ending that are still to be skipped.
    skip: u64,
}

impl Scanner {
    /// Scans what it can of `bytes`; returns how many were consumed. Linear in the number of
    /// values; bodies cost nothing.
    #[inline]
    pub fn scan<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<usize, Malformed> {
        let mut at = 0;
        if self.skip > 0 {
            let now = self.skip.min(bytes.len() as u64);
            self.skip -= now;
            at = now as usize;
            if self.skip > 0 {
                return Ok(at);
            }
            self.close(sink);
        }
        while at < bytes.len() {
            let rest = &bytes[at..];
            if self.stack.is_empty() {
                if rest.starts_with(b"+OK\r\n") {
                    sink.value(Kind::Simple, b"OK", false);
                    sink.reply();
                    at += 5;
                    continue;
                }
                if rest[0] == b'$'
                    && let Some((body, used)) = short_bulk(rest)
                {
                    sink.value(Kind::Bulk, body, false);
                    sink.reply();
                    at += used;
                    continue;
                }
            }
            match self.one(rest, sink)? {
                0 => break,
                used => at += used,
            }
            if self.skip > 0 {
                break;
            }
        }
        Ok(at)
    }

    /// True between two replies.
    #[cfg(test)]
    pub fn is_between(&self) -> bool {
        self.stack.is_empty() && self.skip == 0
    }

    /// Takes one header and what belongs to it; 0 if it is not whole.
    fn one<S: Sink>(&mut self, rest: &[u8], sink: &mut S) -> Result<usize, Malformed> {
        let Some(end) = line_end(rest)? else { return Ok(0) };
        let (kind, line, used) = (rest[0], &rest[1..end], end + 2);
        match kind {
            b'+' | b',' | b'(' | b'#' => self.leaf(Kind::Simple, line, sink),
            b'-' => self.leaf(Kind::Error, line, sink),
            b':' => self.leaf(Kind::Integer, line, sink),
            b'_' => self.leaf(Kind::Nil, b"", sink),
            b'$' | b'*' if line == b"-1" => self.leaf(Kind::Nil, b"", sink),
            b'$' | b'=' | b'!' => {
                let kind = if kind == b'!' { Kind::Error } else { Kind::Bulk };
                return self.bulk(kind, length(line)?, rest, used, sink);
            }
            b'*' | b'~' => self.open(length(line)?, false, false, sink)?,
            b'%' => self.open(length(line)? * 2, false, false, sink)?,
            b'>' => self.open(length(line)?, true, false, sink)?,
            b'|' => self.open(length(line)? * 2, true, true, sink)?,
            _ => return Err(Malformed(show(&rest[..end]))),
        }
        Ok(used)
    }

    fn bulk<S: Sink>(
        &mut self,
        kind: Kind,
        len: u64,
        rest: &[u8],
        used: usize,
        sink: &mut S,
    ) -> Result<usize, Malformed> {
        let body = &rest[used..];
        // An error's text is wanted by every sink, and short.
        let whole = S::WHOLE || kind == Kind::Error && len <= LINE_MAX as u64;
        if (body.len() as u64) < len + 2 {
            if whole {
                return Ok(0);
            }
            self.report(kind, b"", sink);
            self.skip = len + 2 - body.len() as u64;
            return Ok(rest.len());
        }
        let len = len as usize;
        if &body[len..len + 2] != b"\r\n" {
            return Err(Malformed("a bulk string that does not end where it should".to_owned()));
        }
        self.leaf(kind, &body[..len], sink);
        Ok(used + len + 2)
    }

    #[inline]
    fn leaf<S: Sink>(&mut self, kind: Kind, text: &[u8], sink: &mut S) {
        self.report(kind, text, sink);
        self.close(sink);
    }

    #[inline]
    fn report<S: Sink>(&self, kind: Kind, text: &[u8], sink: &mut S) {
        if !self.stack.iter().any(|open| open.silent) {
            sink.value(kind, text, !self.stack.is_empty());
        }
    }

    fn open<S: Sink>(
        &mut self,
        left: u64,
        silent: bool,
        attribute: bool,
        sink: &mut S,
    ) -> Result<(), Malformed> {
        if self.stack.len() == DEPTH_MAX {
            return Err(Malformed(format!("nested deeper than {DEPTH_MAX}")));
        }
        if !silent {
            self.report(Kind::Aggregate(left), b"", sink);
        }
        self.stack.push(Open { left: left + 1, silent, attribute });
        self.close(sink);
        Ok(())
    }

    /// One value is complete: so may be the aggregates that waited for it.
    #[inline]
    fn close<S: Sink>(&mut self, sink: &mut S) {
        while let Some(open) = self.stack.last_mut() {
            open.left -= 1;
            if open.left > 0 {
                return;
            }
            let done = *open;
            self.stack.pop();
            if done.attribute || done.silent && self.stack.is_empty() {
                return;
            }
        }
        sink.reply();
    }
}

/// The body of a bulk string that lies whole in `bytes` and whose length has one to four digits,
/// and how many bytes it takes.
#[inline]
fn short_bulk(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let mut len = 0;
    for (at, &digit) in bytes.iter().enumerate().take(6).skip(1) {
        match digit {
            b'0'..=b'9' => len = len * 10 + usize::from(digit - b'0'),
            b'\r' if at > 1 && bytes.get(at + 1) == Some(&b'\n') => {
                let (body, ending) = bytes[at + 2..].split_at_checked(len)?;
                return ending.starts_with(b"\r\n").then_some((body, at + len + 4));
            }
            _ => return None,
        }
    }
    None
}

/// Where the first line ends, without its ending.
fn line_end(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let searched = &bytes[..bytes.len().min(LINE_MAX)];
    match memchr(b'\n', searched) {
        Some(at) if at >= 2 && bytes[at - 1] == b'\r' => Ok(Some(at - 1)),
        Some(at) => Err(Malformed(show(&bytes[..at]))),
        None if bytes.len() >= LINE_MAX => Err(Malformed(format!("a line over {LINE_MAX} bytes"))),
        None => match bytes[0] {
            b'+' | b'-' | b':' | b'$' | b'*' | b'_' | b',' | b'(' | b'#' | b'=' | b'!' | b'~'
            | b'%' | b'>' | b'|' => Ok(None),
            _ => Err(Malformed(show(bytes))),
        },
    }
}

/// Longest body or largest number of members that is believed.
const LENGTH_MAX: i64 = 1 << 40;

fn length(text: &[u8]) -> Result<u64, Malformed> {
    match parse_i64(text) {
        Some(len @ 0..=LENGTH_MAX) => Ok(len as u64),
        _ => Err(Malformed(format!("the length {}", show(text)))),
    }
}

fn show(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 60;
    format!("\"{}\"", bytes[..bytes.len().min(SHOWN_MAX)].escape_ascii())
}

#[cfg(test)]
mod tests;
