//! Byte-exact connections: every reply keeps the type and the text it had on the wire.
//!
//! The reader of the `client` crate cannot be used: it does not distinguish the two forms of null,
//! and it shares the server's code for numbers and requests, so it would not detect a mistake
//! there.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::in_time::LIMIT;

/// Longest wait for bytes that must come.
pub const PATIENCE: Duration = LIMIT;
/// Deepest nesting of a reply that is read.
const DEPTH_MAX: usize = 32;

/// One reply, as it was on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-`, and `!` of RESP3
    Error(Vec<u8>),
    /// `:`
    Int(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `*`
    Array(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
    /// `,` with its text
    Double(Vec<u8>),
    /// `#`
    Bool(bool),
    /// `(`
    BigNumber(Vec<u8>),
    /// `=` with its format and its text
    Verbatim(Vec<u8>),
}

/// Why bytes are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first byte is no type.
    Kind(u8),
    /// A length or number is not an integer.
    Number,
    /// Nested too deep.
    Depth,
    /// A blob does not end in a line end.
    End,
}

/// Parses one reply at the start of `bytes`: the value and its length, or `None` if it is
/// incomplete.
pub fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, Malformed> {
    let mut at = 0;
    let value = parse_at(bytes, &mut at, 0)?;
    Ok(value.map(|value| (value, at)))
}

fn parse_at(bytes: &[u8], at: &mut usize, depth: usize) -> Result<Option<Value>, Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed::Depth);
    }
    let Some(kind) = bytes.get(*at).copied() else { return Ok(None) };
    if !b"+-:$*_%~>,#(=!".contains(&kind) {
        return Err(Malformed::Kind(kind));
    }
    let Some(end) = bytes[*at..].windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let text = &bytes[*at + 1..*at + end];
    *at += end + 2;
    Ok(Some(match kind {
        b'+' => Value::Simple(text.to_vec()),
        b'-' => Value::Error(text.to_vec()),
        b':' => Value::Int(number(text)?),
        b',' => Value::Double(text.to_vec()),
        b'(' => Value::BigNumber(text.to_vec()),
        b'#' => Value::Bool(text == b"t"),
        b'_' => Value::Null,
        b'$' | b'=' | b'!' => {
            let len = number(text)?;
            if len == -1 {
                return Ok(Some(Value::NullBulk));
            }
            let Some(blob) = blob(bytes, at, len)? else { return Ok(None) };
            match kind {
                b'$' => Value::Bulk(blob),
                b'=' => Value::Verbatim(blob),
                _ => Value::Error(blob),
            }
        }
        _ => {
            let len = number(text)?;
            if len == -1 {
                return Ok(Some(Value::NullArray));
            }
            let count = usize::try_from(len).map_err(|_| Malformed::Number)?;
            let count = if kind == b'%' { count * 2 } else { count };
            let mut items = Vec::new();
            for _ in 0..count {
                let Some(item) = parse_at(bytes, at, depth + 1)? else { return Ok(None) };
                items.push(item);
            }
            match kind {
                b'*' => Value::Array(items),
                b'~' => Value::Set(items),
                b'>' => Value::Push(items),
                _ => Value::Map(pairs(items)),
            }
        }
    }))
}

fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut items = items.into_iter();
    let mut out = Vec::new();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        out.push((key, value));
    }
    out
}

fn blob(bytes: &[u8], at: &mut usize, len: i64) -> Result<Option<Vec<u8>>, Malformed> {
    let len = usize::try_from(len).map_err(|_| Malformed::Number)?;
    let Some(whole) = bytes.get(*at..*at + len + 2) else { return Ok(None) };
    if &whole[len..] != b"\r\n" {
        return Err(Malformed::End);
    }
    *at += len + 2;
    Ok(Some(whole[..len].to_vec()))
}

fn number(text: &[u8]) -> Result<i64, Malformed> {
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or(Malformed::Number)
}

/// A command as an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A connection.
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
    /// Where the next reply starts in `unread`.
    at: usize,
    /// The buffer of one read.
    chunk: Vec<u8>,
}

impl Wire {
    /// Connects; replies must come within [`PATIENCE`].
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, unread: Vec::new(), at: 0, chunk: vec![0; 64 * 1024] })
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends these bytes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one command and reads one reply.
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(&encode(args))?;
        self.receive()
    }

    /// Reads one reply. A closed connection is `UnexpectedEof`, no reply in time is `TimedOut`.
    pub fn receive(&mut self) -> io::Result<Value> {
        self.receive_both().map(|(value, _)| value)
    }

    /// The same, but the bytes of the reply.
    pub fn receive_bytes(&mut self) -> io::Result<Vec<u8>> {
        self.receive_both().map(|(_, bytes)| bytes)
    }

    fn receive_both(&mut self) -> io::Result<(Value, Vec<u8>)> {
        loop {
            match parse(&self.unread[self.at..]) {
                Ok(Some((value, used))) => {
                    let bytes = self.unread[self.at..self.at + used].to_vec();
                    self.at += used;
                    if self.at == self.unread.len() {
                        self.unread.clear();
                        self.at = 0;
                    }
                    return Ok((value, bytes));
                }
                Ok(None) => {}
                Err(why) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{why:?}")));
                }
            }
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.unread.extend_from_slice(&self.chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether the first byte of a reply comes within `wait`.
    pub fn has_reply(&mut self, wait: Duration) -> io::Result<bool> {
        if !self.left_over().is_empty() {
            return Ok(true);
        }
        let patience = self.stream.read_timeout()?;
        self.stream.set_read_timeout(Some(wait))?;
        // A process that was stopped and goes on sees an interruption, which is no reply.
        let mut seen = self.stream.peek(&mut [0]);
        while seen.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::Interrupted) {
            seen = self.stream.peek(&mut [0]);
        }
        self.stream.set_read_timeout(patience)?;
        match seen {
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(false)
            }
            // The next read reports a closed connection.
            _ => Ok(true),
        }
    }

    /// Bytes received which were not yet read as a reply.
    pub fn left_over(&self) -> &[u8] {
        &self.unread[self.at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_keep_their_kind() {
        let all = b"*8\r\n+a\r\n-b\r\n:-1\r\n$1\r\n\n\r\n$-1\r\n*-1\r\n_\r\n%1\r\n,1.50\r\n#t\r\n";
        let (value, used) = parse(all).expect("well formed").expect("complete");
        assert_eq!(used, all.len());
        let Value::Array(items) = value else { panic!("not an array") };
        assert_eq!(items[3], Value::Bulk(b"\n".to_vec()));
        assert_eq!(items[4..7], [Value::NullBulk, Value::NullArray, Value::Null]);
        let pair = (Value::Double(b"1.50".to_vec()), Value::Bool(true));
        assert_eq!(items[7], Value::Map(vec![pair]));
    }

    #[test]
    fn every_prefix_asks_for_more() {
        let all = b"*2\r\n$3\r\nabc\r\n>1\r\n:5\r\n";
        for end in 0..all.len() {
            assert_eq!(parse(&all[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn malformed_replies_are_errors() {
        assert_eq!(parse(b"?\r\n"), Err(Malformed::Kind(b'?')));
        assert_eq!(parse(b":x\r\n"), Err(Malformed::Number));
        assert_eq!(parse(b"$1\r\nabc"), Err(Malformed::End));
        assert_eq!(parse(&b"*1\r\n".repeat(100)), Err(Malformed::Depth));
    }
}
