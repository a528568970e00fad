//! The commands of streams, in steps.
//!
//! ```text
//! XADD ...                           each entry
//! XADD key MAXLEN 0 0-1 x y          if there is none, a stream all the same
//! XSETID ...                         the last id, and counts
//! XGROUP CREATE ...                  each group
//!   XGROUP CREATECONSUMER ...        each consumer, because an entry of it may be gone
//!   XCLAIM ... FORCE                 each pending entry that is there
//!   XNACK ... FORCE                  each that was released
//! ```
//!
//! A pending entry which is gone from the stream cannot be made again, in redis-server neither.

use base::num::{I64_TEXT_MAX, U64_TEXT_MAX, format_i64, format_u64};
use journal::record::{begin_command, write_command, write_word};
use value::stream::{ConsumerId, Entry, Group, Pending};
use value::{IntText, Stream, StreamId};

/// What is written next.
enum Place {
    /// The entries from this id on.
    Entries(StreamId),
    Marks,
    /// A group.
    Group(usize),
    /// Of a group the consumer of this rank.
    Consumer(usize, usize),
    /// The pending entries of a group from this id on.
    Pending(usize, StreamId),
}

/// A stream under way. It does not change between steps.
pub struct StreamCommands {
    at: Place,
}

impl StreamCommands {
    pub fn new() -> Self {
        Self { at: Place::Entries(StreamId::MIN) }
    }

    /// Appends about so many bytes; true after the last step.
    pub fn step(&mut self, out: &mut Vec<u8>, key: &[u8], stream: &Stream, bytes: usize) -> bool {
        let end = out.len().saturating_add(bytes);
        while out.len() < end {
            self.at = match self.at {
                Place::Entries(from) => entries(out, key, stream, from, end),
                Place::Marks => {
                    marks(out, key, stream);
                    Place::Group(0)
                }
                Place::Group(at) => {
                    let Some((name, group)) = stream.group_at(at) else { return true };
                    create_group(out, key, name, group);
                    Place::Consumer(at, 0)
                }
                Place::Consumer(at, rank) => consumer(out, key, stream, (at, rank)),
                Place::Pending(at, from) => pending(out, key, stream, (at, from), end),
            };
        }
        false
    }
}

fn entries(out: &mut Vec<u8>, key: &[u8], stream: &Stream, from: StreamId, end: usize) -> Place {
    for entry in stream.iter_from_id(from) {
        if out.len() >= end {
            return Place::Entries(entry.id);
        }
        add(out, key, entry);
    }
    Place::Marks
}

fn add(out: &mut Vec<u8>, key: &[u8], entry: Entry<'_>) {
    let (mut name_text, mut value_text) = (IntText::default(), IntText::default());
    begin_command(out, 3 + 2 * entry.len());
    write_word(out, b"XADD");
    write_word(out, key);
    write_word(out, entry.id.to_string().as_bytes());
    for (name, value) in entry.fields() {
        write_word(out, name.bytes(&mut name_text));
        write_word(out, value.bytes(&mut value_text));
    }
}

/// XSETID refuses what no stream can have; a file which was loaded may have set it.
fn marks(out: &mut Vec<u8>, key: &[u8], stream: &Stream) {
    if stream.is_empty() {
        let words: [&[u8]; 7] = [b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"];
        write_command(out, words);
    }
    let marks = stream.marks();
    let (last, deleted) = (marks.last.to_string(), marks.max_deleted.min(marks.last).to_string());
    let added = &mut [0; U64_TEXT_MAX];
    let added = count_text(added, marks.added.max(stream.len()));
    let (last, deleted) = (last.as_bytes(), deleted.as_bytes());
    let words: [&[u8]; 7] =
        [b"XSETID", key, last, b"ENTRIESADDED", added, b"MAXDELETEDID", deleted];
    write_command(out, words);
}

fn create_group(out: &mut Vec<u8>, key: &[u8], name: &[u8], group: &Group) {
    let last = group.last.to_string();
    let read = &mut [0; U64_TEXT_MAX];
    let read = match group.read {
        Some(count) => count_text(read, count),
        None => b"-1",
    };
    let last = last.as_bytes();
    let words: [&[u8]; 7] = [b"XGROUP", b"CREATE", key, name, last, b"ENTRIESREAD", read];
    write_command(out, words);
}

fn consumer(out: &mut Vec<u8>, key: &[u8], stream: &Stream, (at, rank): (usize, usize)) -> Place {
    let (name, group) = stream.group_at(at).expect("it has begun");
    let Some(consumer) = group.consumer_at(rank) else { return Place::Pending(at, StreamId::MIN) };
    let consumer = group.consumer(consumer).name();
    let words: [&[u8]; 5] = [b"XGROUP", b"CREATECONSUMER", key, name, consumer];
    write_command(out, words);
    Place::Consumer(at, rank + 1)
}

fn pending(
    out: &mut Vec<u8>,
    key: &[u8],
    stream: &Stream,
    (at, from): (usize, StreamId),
    end: usize,
) -> Place {
    let (name, group) = stream.group_at(at).expect("it has begun");
    for row in group.pending_from(from) {
        if out.len() >= end {
            return Place::Pending(at, row.id);
        }
        if stream.contains(row.id) {
            claim(out, (key, name), group, row);
        }
    }
    Place::Group(at + 1)
}

/// Makes an entry pending for who got it, or for nobody.
fn claim(out: &mut Vec<u8>, (key, name): (&[u8], &[u8]), group: &Group, row: &Pending) {
    let (time, count) = (&mut [0; I64_TEXT_MAX], &mut [0; U64_TEXT_MAX]);
    let (id, count) = (row.id.to_string(), count_text(count, row.count));
    let id = id.as_bytes();
    if row.consumer == ConsumerId::NOBODY {
        let head: [&[u8]; 7] = [b"XNACK", key, name, b"FAIL", b"IDS", b"1", id];
        let tail: [&[u8]; 3] = [b"RETRYCOUNT", count, b"FORCE"];
        return write_command(out, [&head[..], &tail].concat());
    }
    let (owner, time) = (group.owner_name(row), format_i64(time, row.at_ms));
    let head: [&[u8]; 8] = [b"XCLAIM", key, name, owner, b"0", id, b"TIME", time];
    let tail: [&[u8]; 4] = [b"RETRYCOUNT", count, b"JUSTID", b"FORCE"];
    write_command(out, [&head[..], &tail].concat());
}

/// The text of a count in an argument which takes no more than 63 bits.
fn count_text(text: &mut [u8; U64_TEXT_MAX], count: u64) -> &[u8] {
    format_u64(text, count.min(i64::MAX as u64))
}
