//! Positions in the stream of replication: the bytes which replicas get, counted from the first one
//! on. In files these are the commands as they stand there, `SELECT` included, without annotations.
//!
//! ```text
//! #OFFSET:4711\r\n            so many bytes of the stream are ahead of the record which follows
//! #OFFSET:4711:8371...\r\n    the same, with the id of the stream (40 digits): the first one of a
//!                             segment, and the first one behind a change of the id
//! repl-id, repl-offset        fields of a base in RDB format: which part of the stream it holds
//! ```

use crate::moment::Moment;
use base::num::{self, parse_u64};
use std::fmt;

/// The name of the field with the id.
pub const AUX_ID: &str = "repl-id";
/// The name of the field with the offset.
pub const AUX_OFFSET: &str = "repl-offset";
/// The largest offset that is believed: there is room above.
const OFFSET_MAX: u64 = i64::MAX as u64 / 2;
/// How an annotation begins.
const PREFIX: &[u8] = b"#OFFSET:";

/// Which stream it is: 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplId([u8; 40]);

impl ReplId {
    /// Reads an id.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: [u8; 40] = text.try_into().ok()?;
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits.iter().all(is_digit).then_some(Self(digits))
    }

    /// Its digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ReplId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|digit| write!(f, "{}", char::from(*digit)))
    }
}

impl fmt::Debug for ReplId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The stream.
    pub id: ReplId,
    /// So many bytes of it are ahead of this place.
    pub offset: u64,
}

impl Position {
    /// What the two fields of an RDB file say.
    pub fn of_fields(id: &[u8], offset: &[u8]) -> Option<Self> {
        Some(Self { id: ReplId::parse(id)?, offset: parse_offset(offset)? })
    }

    /// Appends the annotation with the id.
    pub fn annotate(self, out: &mut Vec<u8>) {
        annotate(out, self.offset, Some(self.id));
    }
}

/// How far the changes reach which a base holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The last number, and when.
    pub moment: Moment,
    /// Where the stream goes on.
    pub position: Option<Position>,
}

impl Extent {
    /// Appends the annotations with which a base of commands begins.
    pub fn annotate_base(&self, out: &mut Vec<u8>) {
        self.moment.annotate_base(out);
        if let Some(position) = self.position {
            position.annotate(out);
        }
    }
}

/// Appends the annotation of the record which follows.
pub fn annotate(out: &mut Vec<u8>, offset: u64, id: Option<ReplId>) {
    out.extend_from_slice(PREFIX);
    num::write_u64(out, offset);
    if let Some(id) = id {
        out.push(b':');
        out.extend_from_slice(id.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

fn parse_offset(text: &[u8]) -> Option<u64> {
    parse_u64(text).and_then(believed)
}

fn believed(offset: u64) -> Option<u64> {
    (offset <= OFFSET_MAX).then_some(offset)
}

/// What an annotation without its line end says; `None` if it is another one.
fn read(text: &[u8]) -> Option<(u64, Option<ReplId>)> {
    let text = text.strip_prefix(PREFIX)?;
    match text.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            Some((parse_offset(&text[..colon])?, Some(ReplId::parse(&text[colon + 1..])?)))
        }
        None => Some((parse_offset(text)?, None)),
    }
}

/// Follows the position through the commands of a file. It looks at annotations only: all other
/// bytes are of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Follow {
    position: Option<Position>,
    /// The position is that of this byte of the file.
    at: u64,
    /// Bytes of annotations since then.
    lines: u64,
    /// Of those, the ones in the transaction which begins there.
    inside: (u64, u64),
    /// A line of this file has said the position.
    is_stated: bool,
    /// The commands are a base, and no part of the stream.
    is_base: bool,
}

impl Follow {
    /// A file whose commands begin at byte `at`, behind files which end at this position.
    pub fn begin(position: Option<Position>, at: u64) -> Self {
        Self { position, at, ..Self::default() }
    }

    /// An annotation was read which stands from `at` to `end`; `multi` is where the transaction
    /// begins in which it stands.
    pub fn annotation(&mut self, text: &[u8], (at, end): (u64, u64), multi: Option<u64>) {
        match (multi, read(text)) {
            (None, Some((offset, id))) => {
                // (Nobody writes an offset without saying of what.)
                let id = id.or(self.position.map(|position| position.id));
                let position = id.map(|id| Position { id, offset });
                let is_base = self.is_base;
                *self = Self { is_stated: true, is_base, ..Self::begin(position, end) };
            }
            (None, None) => {
                self.is_base |= Moment::of_base(text).is_some();
                self.lines += end - at;
            }
            (Some(multi), _) => {
                if self.inside.0 != multi {
                    self.inside = (multi, 0);
                }
                self.inside.1 += end - at;
                self.lines += end - at;
            }
        }
    }

    /// The position behind the file, which is whole up to byte `end`; `multi` is where a
    /// transaction begins which is not. `None` if the file does not say it: commands which stand
    /// ahead of any such line are of another server.
    pub fn end(&self, end: u64, multi: Option<u64>) -> Option<Position> {
        let cut_off = if multi == Some(self.inside.0) { self.inside.1 } else { 0 };
        let commands = end.saturating_sub(self.at + self.lines - cut_off);
        if self.is_base {
            return self.position.filter(|_| self.is_stated);
        }
        let Position { id, offset } = self.position.filter(|_| self.is_stated || commands == 0)?;
        Some(Position { id, offset: believed(offset.checked_add(commands)?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, Reader};

    const A: ReplId = ReplId([b'a'; 40]);
    const B: ReplId = ReplId([b'b'; 40]);
    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";

    #[expect(clippy::unnecessary_wraps, reason = "all that is compared may be none")]
    fn at(id: ReplId, offset: u64) -> Option<Position> {
        Some(Position { id, offset })
    }

    fn line(offset: u64, id: Option<ReplId>) -> Vec<u8> {
        let mut out = Vec::new();
        annotate(&mut out, offset, id);
        out
    }

    /// The position behind a file of these pieces.
    fn followed(before: Option<Position>, pieces: &[&[u8]]) -> Option<Position> {
        let mut reader = Reader::new(100);
        reader.feed(&pieces.concat());
        let mut follow = Follow::begin(before, 100);
        while let Some(item) = reader.next().expect("no damage but its end") {
            if let Item::Annotation { at, end, multi, text } = item {
                follow.annotation(text, (at, end), multi);
            }
        }
        follow.end(reader.valid_up_to(), reader.multi())
    }

    #[test]
    fn what_is_written_is_read_and_all_else_is_no_offset() {
        for (offset, id) in [(0, None), (4711, Some(A)), (OFFSET_MAX, Some(B))] {
            let line = line(offset, id);
            assert_eq!(read(line.strip_suffix(b"\r\n").expect("a line")), Some((offset, id)));
        }
        let long = format!("#OFFSET:5:{A}0");
        let upper = format!("#OFFSET:5:{}", A.to_string().to_uppercase());
        let above = format!("#OFFSET:{}", OFFSET_MAX + 1);
        let others = ["", "#NUM:5:5", "#OFFSET:", "#OFFSET:-1", "#OFFSET:5:", "#offset:5"];
        for other in others.into_iter().chain([&*long, &*upper, &*above]) {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
        assert_eq!(Position::of_fields(A.as_bytes(), b"7"), at(A, 7));
        assert_eq!(Position::of_fields(b"a", b"7"), None);
        assert_eq!(Position::of_fields(A.as_bytes(), b"-1"), None);
    }

    #[test]
    fn commands_count_and_annotations_do_not() {
        let (len, first) = (SET.len() as u64, line(50, Some(A)));
        assert_eq!(followed(None, &[&first, SET, b"#TS:5\r\n", SET]), at(A, 50 + 2 * len));
        // An offset of its own counts from there on: what is not in the file was sent, too.
        let later = line(500, None);
        assert_eq!(followed(at(B, 9), &[&first, SET, &later, SET]), at(A, 500 + len));
        assert_eq!(followed(at(B, 9), &[&later, SET]), at(B, 500 + len));
        assert_eq!(followed(at(B, 9), &[b"#TS:5\r\n"]), at(B, 9), "nothing was recorded");
        assert_eq!(followed(at(B, 9), &[]), at(B, 9));
        assert_eq!(followed(None, &[&line(OFFSET_MAX, Some(A)), SET]), None, "beyond the bound");
    }

    /// redis-server appends to a new file, or an old version: the bytes are of nobody's stream.
    #[test]
    fn commands_ahead_of_any_offset_are_of_no_stream() {
        assert_eq!(followed(at(A, 9), &[SET]), None);
        assert_eq!(followed(at(A, 9), &[b"#NUM:5:5\r\n", SET]), None);
        assert_eq!(followed(None, &[SET, &line(7, None), SET]), None);
        let len = SET.len() as u64;
        assert_eq!(followed(None, &[SET, &line(7, Some(A)), SET]), at(A, 7 + len));
    }

    #[test]
    fn a_transaction_counts_once_it_is_whole() {
        let (multi, exec) = (&b"*1\r\n$5\r\nMULTI\r\n"[..], &b"*1\r\n$4\r\nEXEC\r\n"[..]);
        let mark = &b"#PRODUCER:list:9:\"x\"\r\n"[..];
        let first = line(50, Some(A));
        let one = [multi, SET, mark, exec];
        let len = (multi.len() + SET.len() + exec.len()) as u64;
        let whole = [&[&first[..]], &one[..], &one[..]].concat();
        assert_eq!(followed(None, &whole), at(A, 50 + 2 * len));
        assert_eq!(followed(None, &whole[..whole.len() - 1]), at(A, 50 + len), "without its EXEC");
        let bytes = whole.concat();
        for end in bytes.len() - 2 * exec.len() - mark.len()..bytes.len() {
            assert_eq!(followed(None, &[&bytes[..end]]), at(A, 50 + len), "{end}");
        }
    }

    #[test]
    fn the_commands_of_a_base_are_no_part_of_the_stream() {
        let base = |position| {
            let mut base = Vec::new();
            let moment = Moment { number: 30, unix_ms: 5 };
            Extent { moment, position }.annotate_base(&mut base);
            base
        };
        assert_eq!(followed(at(B, 9), &[&base(at(A, 70)), SET, SET]), at(A, 70));
        assert_eq!(followed(at(B, 9), &[&base(None), SET]), None, "it does not say it");
    }
}
