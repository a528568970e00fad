//! What XINFO STREAM says, in parts: a stream may have millions of pages, of entries and of entries
//! that are pending.

use resp::Reply;
use value::stream::{ConsumerId, Entry, Group};
use value::{Stream, StreamId};

use super::radix::Index;
use super::reply::{Run, STEP_BYTES, STEP_MAX, write_entry, write_id};

/// Pages that are counted in one step.
const STEP_PAGES: usize = 2000;
/// What a row costs that is found by itself, in entries.
const FOUND_WORK: u64 = 4;

/// A description that is being written.
pub(super) struct Description {
    /// FULL: so many entries and pending entries, 0 for all.
    full: Option<u64>,
    at: At,
}

/// What comes next.
enum At {
    /// The pages from a rank on are counted, before anything is replied.
    Pages(Index, u64),
    /// Entries.
    Entries(Run),
    /// A group, by its place.
    Group(usize),
    /// What is pending in a group.
    Pending(usize, Rows),
    /// A consumer of a group, by its place among them.
    Consumer(usize, usize),
    /// What is pending for it.
    PendingOf(usize, usize, Rows),
}

/// The pending entries behind an id, up to a number.
struct Rows {
    behind: Option<StreamId>,
    left: u64,
}

impl Rows {
    fn new(left: u64) -> Self {
        Self { behind: None, left }
    }

    /// The lowest id that may come.
    fn from(&self) -> StreamId {
        self.behind.map_or(StreamId::MIN, |id| id.next().expect("a row is behind it"))
    }

    /// The row of this id was written.
    fn wrote(&mut self, id: StreamId) {
        (self.behind, self.left) = (Some(id), self.left - 1);
    }

    /// Writes the pending entries of a group, as many as fit into a step. Returns how much work
    /// that was.
    fn write_of_group(&mut self, reply: &mut Reply<'_>, group: &Group) -> u64 {
        let (start, before) = (reply.position(), self.left);
        for row in group.pending_from(self.from()).take(before.min(STEP_MAX) as usize) {
            reply.array(4);
            write_id(reply, row.id);
            reply.bulk(group.owner_name(row));
            reply.integer(row.at_ms);
            reply.integer(row.count as i64);
            self.wrote(row.id);
            if reply.written_since(start) >= STEP_BYTES {
                break;
            }
        }
        before - self.left
    }

    /// Writes the pending entries of the `nth` consumer of a group, as many as fit into a step.
    /// Returns how much work that was.
    fn write_of_consumer(&mut self, reply: &mut Reply<'_>, group: &Group, nth: usize) -> u64 {
        let id = group.consumer_at(nth).expect("it was there before");
        let count = self.left.min(STEP_MAX / FOUND_WORK);
        for id in group.consumer(id).pending_from(self.from()).take(count as usize) {
            let row = group.get(*id).expect("what is pending for a consumer is pending");
            reply.array(3);
            write_id(reply, row.id);
            reply.integer(row.at_ms);
            reply.integer(row.count as i64);
            self.wrote(row.id);
        }
        count * FOUND_WORK
    }
}

impl Description {
    /// `full`: FULL, with the most entries of each kind, 0 for all. Each step is given the stream.
    pub fn new(full: Option<u64>) -> Self {
        Self { full, at: At::Pages(Index::default(), 0) }
    }

    /// Writes what fits into a step; true if that was all.
    pub fn step(&mut self, reply: &mut Reply<'_>, stream: &Stream) -> bool {
        let (start, mut work) = (reply.position(), 0);
        while work < STEP_MAX && reply.written_since(start) < STEP_BYTES {
            match self.part(reply, stream) {
                Some(more) => work += more,
                None => return true,
            }
        }
        false
    }

    /// Writes a part of it: how much work that was, in entries; `None` at the end.
    fn part(&mut self, reply: &mut Reply<'_>, stream: &Stream) -> Option<u64> {
        match &mut self.at {
            At::Pages(index, rank) => {
                for page in stream.pages_from(*rank).take(STEP_PAGES) {
                    index.add(page.master());
                    *rank += page.count();
                }
                if *rank < stream.len() {
                    return Some(STEP_MAX);
                }
                head(reply, stream, self.full.is_some(), std::mem::take(index));
                let Some(count) = self.full else {
                    ends(reply, stream);
                    return None;
                };
                let left = bounded(stream.len(), count);
                list_head(reply, "entries", left);
                self.at = At::Entries(Run { rank: 0, left, down: false });
            }
            At::Entries(run) if run.left > 0 => {
                let before = run.left;
                run.write(reply, stream, STEP_MAX);
                return Some(before - run.left);
            }
            At::Entries(_) => {
                list_head(reply, "groups", stream.groups().len() as u64);
                self.at = At::Group(0);
            }
            At::Group(at) => {
                let (name, group) = stream.group_at(*at)?;
                let left = bounded(group.pending(), self.full.unwrap_or(0));
                group_head(reply, stream, name, group);
                reply.array(left as usize);
                self.at = At::Pending(*at, Rows::new(left));
            }
            At::Pending(at, rows) if rows.left > 0 => {
                return Some(rows.write_of_group(reply, stream.group(*at)));
            }
            At::Pending(at, _) => {
                list_head(reply, "consumers", stream.group(*at).consumers().len() as u64);
                self.at = At::Consumer(*at, 0);
            }
            At::Consumer(at, nth) => {
                let group = stream.group(*at);
                let Some(id) = group.consumer_at(*nth) else {
                    self.at = At::Group(*at + 1);
                    return Some(1);
                };
                let left = bounded(group.consumer(id).pending(), self.full.unwrap_or(0));
                consumer_head(reply, group, id);
                reply.array(left as usize);
                self.at = At::PendingOf(*at, *nth, Rows::new(left));
            }
            At::PendingOf(at, nth, rows) if rows.left > 0 => {
                return Some(rows.write_of_consumer(reply, stream.group(*at), *nth));
            }
            At::PendingOf(at, nth, _) => self.at = At::Consumer(*at, *nth + 1),
        }
        Some(1)
    }
}

/// `len`, but at most `most`; 0 is no bound.
fn bounded(len: u64, most: u64) -> u64 {
    if most == 0 { len } else { len.min(most) }
}

/// The name of a list and its length.
fn list_head(reply: &mut Reply<'_>, name: &str, len: u64) {
    reply.bulk(name.as_bytes());
    reply.array(len as usize);
}

fn head(reply: &mut Reply<'_>, stream: &Stream, is_full: bool, index: Index) {
    let (marks, (keys, nodes)) = (stream.marks(), index.finish());
    reply.map(if is_full { 9 } else { 10 });
    number(reply, "length", stream.len());
    number(reply, "radix-tree-keys", keys);
    number(reply, "radix-tree-nodes", nodes);
    named_id(reply, "last-generated-id", marks.last);
    named_id(reply, "max-deleted-entry-id", marks.max_deleted);
    number(reply, "entries-added", marks.added);
    named_id(reply, "recorded-first-entry-id", stream.first_id());
}

fn ends(reply: &mut Reply<'_>, stream: &Stream) {
    number(reply, "groups", stream.groups().len() as u64);
    reply.bulk(b"first-entry");
    entry_or_null(reply, stream.iter().next());
    reply.bulk(b"last-entry");
    entry_or_null(reply, stream.iter_back_from(stream.len()).next());
}

fn group_head(reply: &mut Reply<'_>, stream: &Stream, name: &[u8], group: &Group) {
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(name);
    named_id(reply, "last-delivered-id", group.last);
    counts(reply, stream, group);
    number(reply, "pel-count", group.pending());
    reply.bulk(b"pending");
}

fn consumer_head(reply: &mut Reply<'_>, group: &Group, id: ConsumerId) {
    let consumer = group.consumer(id);
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(consumer.name());
    reply.bulk(b"seen-time");
    reply.integer(consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.integer(consumer.active_ms);
    number(reply, "pel-count", consumer.pending());
    reply.bulk(b"pending");
}

/// How many entries a group has read, null if nobody knows; and how many are left.
pub(super) fn counts(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    reply.bulk(b"entries-read");
    match group.read {
        Some(read) => reply.integer(read as i64),
        None => reply.null(),
    }
    number(reply, "lag", stream.lag(group));
}

/// A field with a number.
pub(super) fn number(reply: &mut Reply<'_>, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(value as i64);
}

/// A field with an id.
pub(super) fn named_id(reply: &mut Reply<'_>, name: &str, id: StreamId) {
    reply.bulk(name.as_bytes());
    write_id(reply, id);
}

fn entry_or_null(reply: &mut Reply<'_>, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => write_entry(reply, entry),
        None => reply.null(),
    }
}
