//! Decodes replies from a byte stream.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use base::num::parse_i64;

use crate::reply::Value;

/// Deepest nesting of a reply.
pub const DEPTH_MAX: usize = 128;

/// Longest line of a reply: a header, a simple string, an error.
pub const LINE_MAX: usize = 1024 * 1024;

/// Bytes received at a time.
const RECEIVE_BYTES: usize = 64 * 1024;

/// Maximum number of members for which memory is reserved before they have arrived.
const MEMBERS_TRUSTED_MAX: usize = 1024;

/// Why there is no reply.
#[derive(Debug)]
pub enum Error {
    /// No complete reply arrived in time. It is unknown whether the request was executed, and to
    /// which request the next bytes would belong.
    Timeout,
    /// The server has closed the connection.
    Closed,
    /// The connection failed.
    Io(io::Error),
    /// The server sent bytes that are not a reply.
    Protocol(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("no reply in time"),
            Self::Closed => f.write_str("the server has closed the connection"),
            Self::Io(error) => write!(f, "the connection failed: {error}"),
            Self::Protocol(what) => write!(f, "not a reply: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Timeout,
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// Reads one reply after the other.
#[derive(Debug)]
pub struct Decoder<R> {
    source: R,
    /// Received bytes; those before `at` have been decoded.
    buf: Vec<u8>,
    at: usize,
}

impl<R: Read> Decoder<R> {
    /// A decoder that reads from `source`.
    pub fn new(source: R) -> Self {
        Self { source, buf: Vec::new(), at: 0 }
    }

    /// The source that it reads from.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The source, for writing to it.
    pub fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Received bytes that are not decoded yet.
    pub fn buffered(&self) -> &[u8] {
        &self.buf[self.at..]
    }

    /// Reads one reply, waiting for it. An attribute is read together with its value.
    pub fn read(&mut self) -> Result<Value, Error> {
        self.value(0)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth > DEPTH_MAX {
            return Err(Error::Protocol(format!("nested deeper than {DEPTH_MAX}")));
        }
        let line = self.line()?;
        let (kind, rest) = match line.split_first() {
            Some((kind, rest)) => (*kind, rest.to_vec()),
            None => return Err(Error::Protocol("an empty line".to_owned())),
        };
        match kind {
            b'+' => Ok(Value::Simple(rest)),
            b'-' => Ok(Value::Error(rest)),
            b':' => Ok(Value::Integer(integer(&rest)?)),
            b',' => Ok(Value::Double(rest)),
            b'(' => Ok(Value::BigNumber(rest)),
            b'_' if rest.is_empty() => Ok(Value::Null),
            b'#' if rest == b"t" => Ok(Value::Bool(true)),
            b'#' if rest == b"f" => Ok(Value::Bool(false)),
            b'$' if rest == b"-1" => Ok(Value::Null),
            b'*' if rest == b"-1" => Ok(Value::NullArray),
            b'$' => Ok(Value::Bulk(self.bulk(&rest)?)),
            b'!' => Ok(Value::Error(self.bulk(&rest)?)),
            b'=' => verbatim(self.bulk(&rest)?),
            b'*' => Ok(Value::Array(self.members(&rest, depth)?)),
            b'~' => Ok(Value::Set(self.members(&rest, depth)?)),
            b'>' => Ok(Value::Push(self.members(&rest, depth)?)),
            b'%' => Ok(Value::Map(self.pairs(&rest, depth)?)),
            b'|' => {
                let attributes = self.pairs(&rest, depth)?;
                let value = Box::new(self.value(depth + 1)?);
                Ok(Value::Attributed { attributes, value })
            }
            _ => Err(Error::Protocol(format!("the line {}", show(&[&[kind], &rest[..]].concat())))),
        }
    }

    fn members(&mut self, len: &[u8], depth: usize) -> Result<Vec<Value>, Error> {
        let len = length(len)?;
        let mut members = Vec::with_capacity(len.min(MEMBERS_TRUSTED_MAX));
        for _ in 0..len {
            members.push(self.value(depth + 1)?);
        }
        Ok(members)
    }

    fn pairs(&mut self, len: &[u8], depth: usize) -> Result<Vec<(Value, Value)>, Error> {
        let len = length(len)?;
        let mut pairs = Vec::with_capacity(len.min(MEMBERS_TRUSTED_MAX));
        for _ in 0..len {
            pairs.push((self.value(depth + 1)?, self.value(depth + 1)?));
        }
        Ok(pairs)
    }

    /// Reads up to the next line ending and drops that.
    fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut seen = 0;
        loop {
            let ending = self.buffered()[seen..].windows(2).position(|pair| pair == b"\r\n");
            if let Some(found) = ending {
                let len = seen + found;
                let line = self.buffered()[..len].to_vec();
                self.at += len + 2;
                return Ok(line);
            }
            seen = self.buffered().len().saturating_sub(1);
            if seen > LINE_MAX {
                return Err(Error::Protocol(format!("a line longer than {LINE_MAX}")));
            }
            self.receive()?;
        }
    }

    /// Reads as many bytes as `len` says, and the line ending behind them.
    fn bulk(&mut self, len: &[u8]) -> Result<Vec<u8>, Error> {
        let len = length(len)?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            if self.buffered().is_empty() {
                self.receive()?;
            }
            let taken = self.buffered().len().min(len - bytes.len());
            bytes.extend_from_slice(&self.buffered()[..taken]);
            self.at += taken;
        }
        while self.buffered().len() < 2 {
            self.receive()?;
        }
        let ending = [self.buffered()[0], self.buffered()[1]];
        self.at += 2;
        match &ending {
            b"\r\n" => Ok(bytes),
            other => Err(Error::Protocol(format!("a bulk string followed by {}", show(other)))),
        }
    }

    /// Receives more bytes, at least one.
    fn receive(&mut self) -> Result<(), Error> {
        self.buf.drain(..self.at);
        self.at = 0;
        let len = self.buf.len();
        self.buf.resize(len + RECEIVE_BYTES, 0);
        let received = loop {
            match self.source.read(&mut self.buf[len..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buf.truncate(len + *received.as_ref().unwrap_or(&0));
        match received? {
            0 => Err(Error::Closed),
            _ => Ok(()),
        }
    }
}

fn integer(text: &[u8]) -> Result<i64, Error> {
    parse_i64(text).ok_or_else(|| Error::Protocol(format!("the integer {}", show(text))))
}

fn length(text: &[u8]) -> Result<usize, Error> {
    usize::try_from(integer(text)?)
        .map_err(|_| Error::Protocol(format!("the length {}", show(text))))
}

/// Splits off the format, which a colon follows.
fn verbatim(mut bytes: Vec<u8>) -> Result<Value, Error> {
    let Some(([a, b, c, b':'], _)) = bytes.split_first_chunk() else {
        return Err(Error::Protocol(format!("the verbatim string {}", show(&bytes))));
    };
    let format = [*a, *b, *c];
    bytes.drain(..4);
    Ok(Value::Verbatim { format, text: bytes })
}

/// The first bytes of malformed input, escaped for an error message.
fn show(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    format!("\"{}\"", bytes[..bytes.len().min(SHOWN_MAX)].escape_ascii())
}
