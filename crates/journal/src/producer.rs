//! Numbers of producers of ingest, as they stand in files beside the messages: a line in the
//! transaction of each block of messages, and a field at the beginning of an RDB file.
//!
//! ```text
//! #PRODUCER:stream:1042:"sensor-7"\r\n    the block's last message has this number; the key is
//!                                         that of the command before it in the transaction
//! sheafdb-producer = stream:0:1042:8:sensor-7events
//!                    kind, database, number, length of the name; the name; the key
//! ```

use base::num::{parse_u64, write_u64};
use base::words;

/// What such a line begins with.
const BEGIN: &[u8] = b"#PRODUCER:";
/// The name of the field of an RDB file.
pub const AUX_NAME: &str = "sheafdb-producer";
/// The longest name that is believed.
const NAME_MAX: usize = 64;

/// What the messages of a producer become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SinkKind {
    /// Elements of a list.
    List,
    /// Entries of a stream.
    Stream,
}

impl SinkKind {
    const ALL: [Self; 2] = [Self::List, Self::Stream];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Stream => "stream",
        }
    }

    fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// What the line of a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockLine {
    /// What the messages became.
    pub kind: SinkKind,
    /// The number of the last one.
    pub number: u64,
    /// The producer.
    pub producer: Vec<u8>,
}

/// What a field of an RDB file says: everything up to this number is in the file, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// What its messages become.
    pub kind: SinkKind,
    /// The key's database.
    pub db: u32,
    /// The highest number.
    pub number: u64,
    /// The producer.
    pub producer: &'a [u8],
    /// The key.
    pub key: &'a [u8],
}

/// The part of a block's line which is the same for all blocks of a producer.
pub fn quoted_name(producer: &[u8]) -> Box<str> {
    words::quoted(producer).into()
}

/// Appends the line of a block. It has at most 300 bytes, because a name has at most 64.
pub fn write_line(out: &mut Vec<u8>, kind: SinkKind, number: u64, quoted_name: &str) {
    out.extend_from_slice(BEGIN);
    out.extend_from_slice(kind.name().as_bytes());
    out.push(b':');
    write_u64(out, number);
    out.push(b':');
    out.extend_from_slice(quoted_name.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Reads an annotation without its line end; `None` if it is about something else.
///
/// # Errors
/// It is about a producer, and cannot be read.
pub fn read_line(text: &[u8]) -> Option<Result<BlockLine, Unreadable>> {
    let text = text.strip_prefix(BEGIN)?;
    Some(block_line(text).ok_or(Unreadable))
}

/// A number of a producer that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

fn block_line(text: &[u8]) -> Option<BlockLine> {
    let (kind, text) = part(text)?;
    let (number, text) = part(text)?;
    let [producer] = <[Vec<u8>; 1]>::try_from(words::split(text)?).ok()?;
    let line = BlockLine { kind: SinkKind::of(kind)?, number: parse_u64(number)?, producer };
    (line.number > 0 && is_name(&line.producer)).then_some(line)
}

impl<'a> Field<'a> {
    /// The text of the field.
    pub fn text(&self) -> Vec<u8> {
        let Self { kind, db, number, producer, key } = *self;
        let mut text = format!("{}:{db}:{number}:{}:", kind.name(), producer.len()).into_bytes();
        text.extend_from_slice(producer);
        text.extend_from_slice(key);
        text
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn parse(text: &'a [u8]) -> Result<Self, Unreadable> {
        Self::read(text).ok_or(Unreadable)
    }

    fn read(text: &'a [u8]) -> Option<Self> {
        let (kind, text) = part(text)?;
        let (db, text) = part(text)?;
        let (number, text) = part(text)?;
        let (len, text) = part(text)?;
        let len = usize::try_from(parse_u64(len)?).ok()?;
        let (producer, key) = text.split_at_checked(len)?;
        let field = Self {
            kind: SinkKind::of(kind)?,
            db: u32::try_from(parse_u64(db)?).ok()?,
            number: parse_u64(number)?,
            producer,
            key,
        };
        (field.number > 0 && is_name(producer) && !key.is_empty()).then_some(field)
    }
}

fn is_name(name: &[u8]) -> bool {
    (1..=NAME_MAX).contains(&name.len())
}

/// What stands before the next colon, and what behind it.
fn part(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b':')?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::ANNOTATION_MAX;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        for name in [&b"p"[..], b"a \"b\"\\\r\n", &[0; 64], &[255; 64], b"a:b"] {
            for (kind, number) in [(SinkKind::List, 1), (SinkKind::Stream, u64::MAX)] {
                let mut line = Vec::new();
                write_line(&mut line, kind, number, &quoted_name(name));
                assert!(line.len() <= 300 && line.len() < ANNOTATION_MAX);
                let text = line.strip_suffix(b"\r\n").expect("its end");
                assert!(!text.contains(&b'\n'), "one line");
                let expected = BlockLine { kind, number, producer: name.to_vec() };
                assert_eq!(read_line(text), Some(Ok(expected)));
            }
        }
    }

    #[test]
    fn other_lines_are_of_no_producer_and_broken_ones_are_told() {
        assert_eq!(read_line(b"#TS:1"), None);
        for text in [
            "",
            "list",
            "list:1",
            "list:1:",
            "list:0:\"p\"",
            "set:1:\"p\"",
            "list:x:\"p\"",
            "list:1:\"p",
            "list:1:\"\"",
            "list:1:a b",
            "list:18446744073709551616:p",
        ] {
            let line = format!("#PRODUCER:{text}");
            assert_eq!(read_line(line.as_bytes()), Some(Err(Unreadable)), "{line}");
        }
        let long = format!("#PRODUCER:list:1:{}", "x".repeat(65));
        assert_eq!(read_line(long.as_bytes()), Some(Err(Unreadable)));
    }

    #[test]
    fn a_field_is_read_as_it_was_written() {
        let field = |producer, key| Field { kind: SinkKind::List, db: 3, number: 9, producer, key };
        for field in [field(b"p", b"k"), field(b"a:b", b"1:2"), field(&[0; 64], &[255; 4096])] {
            assert_eq!(Field::parse(&field.text()), Ok(field));
        }
        let text = field(b"sensor-7", b"events").text();
        assert_eq!(text, b"list:3:9:8:sensor-7events");
        for bad in ["", "list:3:9:8:sensor", "list:3:9:8:sensor-7", "list:3:0:1:pk", "x:3:9:1:pk"] {
            assert_eq!(Field::parse(bad.as_bytes()), Err(Unreadable), "{bad}");
        }
    }
}
