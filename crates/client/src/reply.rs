//! A reply, of any type of either protocol version.

use std::fmt;

/// One reply. Text stays bytes and a double stays text, so that two servers can be compared
/// exactly.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-`, or `!` whose text may hold line endings.
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1` in RESP2, `_` in RESP3.
    Null,
    /// `*-1` in RESP2.
    NullArray,
    /// `*`
    Array(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`: answers no request.
    Push(Vec<Value>),
    /// `,` as it was written.
    Double(Vec<u8>),
    /// `#`
    Bool(bool),
    /// `=`
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The text for people.
        text: Vec<u8>,
    },
    /// `(` as it was written.
    BigNumber(Vec<u8>),
    /// `|` and the value it belongs to.
    Attributed {
        /// The attributes of the value.
        attributes: Vec<(Value, Value)>,
        /// The value.
        value: Box<Value>,
    },
}

impl Value {
    /// `+OK`.
    pub fn ok() -> Self {
        Self::simple("OK")
    }

    /// A simple string.
    pub fn simple(text: impl AsRef<[u8]>) -> Self {
        Self::Simple(text.as_ref().to_vec())
    }

    /// An error.
    pub fn error(text: impl AsRef<[u8]>) -> Self {
        Self::Error(text.as_ref().to_vec())
    }

    /// A bulk string.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    /// True for an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// True for a null of either protocol version.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullArray)
    }

    /// The bytes of a value that is a single string of bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(bytes)
            | Self::Error(bytes)
            | Self::Bulk(bytes)
            | Self::Double(bytes)
            | Self::Verbatim { text: bytes, .. }
            | Self::BigNumber(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The same as text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The integer.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The members of an array, a set or a push.
    pub fn as_members(&self) -> Option<&[Value]> {
        match self {
            Self::Array(members) | Self::Set(members) | Self::Push(members) => Some(members),
            _ => None,
        }
    }
}

/// Short forms for tests: `"bytes"`, `(error) text`, `[1, 2]`, `{"a": 1}`.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "+{}", text.escape_ascii()),
            Self::Error(text) => write!(f, "(error) {}", text.escape_ascii()),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Null => f.write_str("(nil)"),
            Self::NullArray => f.write_str("(nil array)"),
            Self::Array(members) => f.debug_list().entries(members).finish(),
            Self::Map(pairs) => debug_pairs(f, pairs),
            Self::Set(members) => f.debug_set().entries(members).finish(),
            Self::Push(members) => {
                f.write_str("(push) ")?;
                f.debug_list().entries(members).finish()
            }
            Self::Double(text) => write!(f, "(double) {}", text.escape_ascii()),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Verbatim { format, text } => {
                write!(f, "({}) \"{}\"", format.escape_ascii(), text.escape_ascii())
            }
            Self::BigNumber(digits) => write!(f, "(big number) {}", digits.escape_ascii()),
            Self::Attributed { attributes, value } => {
                f.write_str("(attributes ")?;
                debug_pairs(f, attributes)?;
                write!(f, ") {value:?}")
            }
        }
    }
}

fn debug_pairs(f: &mut fmt::Formatter<'_>, pairs: &[(Value, Value)]) -> fmt::Result {
    f.debug_map().entries(pairs.iter().map(|(key, value)| (key, value))).finish()
}
