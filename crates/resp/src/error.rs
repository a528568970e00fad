//! What is wrong with bytes that are no request. Each of these is answered and the connection
//! closed.

use std::fmt;

/// A violation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolError {
    /// The count of arguments is not an integer, or too large.
    InvalidMultibulkLength,
    /// More arguments than a client may send before it authenticates itself.
    UnauthenticatedMultibulkLength,
    /// The line with the count of arguments does not end.
    TooBigMultibulkCount,
    /// An argument starts with this byte instead of `$`.
    ExpectedDollar(u8),
    /// The length of an argument is not an integer, negative, or too large.
    InvalidBulkLength,
    /// A longer argument than a client may send before it authenticates itself.
    UnauthenticatedBulkLength,
    /// The line with the length of an argument does not end.
    TooBigBulkCount,
    /// A header or an argument is not followed by CR LF.
    InvalidLineEnd,
    /// An inline request that does not end.
    TooBigInline,
    /// An inline request whose quotes do not match.
    UnbalancedQuotes,
}

impl ProtocolError {
    /// Appends the text of the error reply, without the leading `-` and the line ending. It may
    /// hold a byte that the client sent, so it need not be UTF-8.
    pub fn write_text(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ERR Protocol error: ");
        out.extend_from_slice(self.what().as_bytes());
        if let Self::ExpectedDollar(got) = self {
            out.push(if matches!(got, b'\r' | b'\n') { b' ' } else { got });
            out.push(b'\'');
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::ExpectedDollar(_) => "expected '$', got '",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::InvalidLineEnd => "invalid CRLF in request",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_text(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl std::error::Error for ProtocolError {}
