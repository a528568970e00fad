//! Sinks: what becomes of messages.

use std::fmt;

/// The longest key of a sink, bytes.
pub const KEY_BYTES_MAX: usize = 4096;

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Nothing: it is counted.
    Null,
    /// Its payload is appended to a list.
    List,
    /// It becomes an entry of a stream.
    Stream,
}

/// How many entries a stream keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxLen {
    /// The number of entries.
    pub count: u64,
    /// Trimmed exactly; otherwise by whole nodes, as with `~`.
    pub exact: bool,
}

/// Where messages are stored: the target, and the key of a list or stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sink {
    /// What becomes of a message.
    pub kind: Target,
    /// The key's database.
    pub db: u32,
    /// The key; empty for [`Target::Null`].
    pub key: Box<[u8]>,
    /// The bound of a stream.
    pub maxlen: Option<MaxLen>,
}

impl Sink {
    /// Messages are counted.
    pub fn null() -> Self {
        Self { kind: Target::Null, db: 0, key: Box::default(), maxlen: None }
    }

    /// Reads `null`, `list:KEY` or `stream:KEY`; of database 0, and without a bound.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let at = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
        let key = text.get(at + 1..).unwrap_or_default();
        let kind = match &text[..at] {
            b"null" if at == text.len() => Target::Null,
            b"list" => Target::List,
            b"stream" => Target::Stream,
            _ => return None,
        };
        let has_key = !key.is_empty() && key.len() <= KEY_BYTES_MAX;
        (has_key || kind == Target::Null).then(|| Self { kind, key: key.into(), ..Self::null() })
    }

    /// True if messages are only counted.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.kind == Target::Null
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Target::Null => return f.write_str("null"),
            Target::List => "list",
            Target::Stream => "stream",
        };
        write!(f, "{kind}:{}", String::from_utf8_lossy(&self.key))
    }
}

impl MaxLen {
    /// Reads `N` or `~N`.
    pub fn parse(text: &str) -> Option<Self> {
        let (exact, digits) = match text.strip_prefix('~') {
            Some(digits) => (false, digits),
            None => (true, text),
        };
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count = digits.parse().ok().filter(|_| is_number)?;
        Some(Self { count, exact })
    }
}

impl fmt::Display for MaxLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.exact { "" } else { "~" }, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinks_round_trip_through_their_text() {
        for text in ["null", "list:jobs", "stream:a:b", "stream::"] {
            let sink = Sink::parse(text.as_bytes()).expect(text);
            assert_eq!(sink.to_string(), text);
            assert_eq!(sink.is_null(), text == "null");
        }
        assert_eq!(&*Sink::parse(b"list:a:b").expect("a list").key, b"a:b");
        for wrong in ["", "nul", "null:", "null:a", "list", "list:", "stream:", "set:a", ":a"] {
            assert_eq!(Sink::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(Sink::parse(&[b"list:", &[b'k'; KEY_BYTES_MAX][..]].concat()).is_some());
        assert!(Sink::parse(&[b"list:", &[b'k'; KEY_BYTES_MAX + 1][..]].concat()).is_none());
        for text in ["0", "~100", "18446744073709551615"] {
            assert_eq!(MaxLen::parse(text).expect(text).to_string(), text);
        }
        for wrong in ["", "~", "+1", "-1", "1 ", "18446744073709551616", "~~1"] {
            assert_eq!(MaxLen::parse(wrong), None, "{wrong}");
        }
    }
}
