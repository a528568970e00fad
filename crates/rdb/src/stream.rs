//! Streams: listpacks by their first ids, counts, and groups. `docs/formats/rdb.md` draws the
//! bytes.

use std::collections::BTreeMap;

use base::num::{I64_TEXT_MAX, text_len};
use value::stream::{ConsumerId, Group, Marks, Page, Pending};
use value::{IntText, Stream, StreamId};

use crate::listpack::{Builder, Elem, Listpack};
use crate::primitive::{put_blob, put_length, put_string};
use crate::save::{Plan, Saver};
use crate::{Error, Reader, types};

/// The count of entries read, if it is not known.
const UNKNOWN: u64 = u64::MAX;
/// The time at which a consumer was active that never got anything.
const NEVER: i64 = -1;
/// A flag of an entry: it was deleted.
const DELETED: i64 = 1;
/// A flag of an entry: its fields are those of its node.
const SAME_FIELDS: i64 = 2;

/// Reads a stream of one of its types.
pub fn load(id: u8, reader: &mut Reader<'_>) -> Result<Stream, Error> {
    let mut loader = StreamLoader::new(id);
    while !loader.step(reader, usize::MAX)? {}
    Ok(loader.finish())
}

/// Reads a stream in steps. What it has read is the stream so far.
pub(crate) struct StreamLoader {
    id: u8,
    stream: Stream,
    /// The last entry that was read.
    last: Option<StreamId>,
    next: Next,
}

/// What is read next.
enum Next {
    Begin,
    /// So many nodes.
    Pages(u64),
    /// So many groups.
    Groups(u64),
    /// The rest of a group, and so many behind it.
    Group(Box<GroupLoader>, u64),
}

impl StreamLoader {
    /// Of a stream of this type.
    pub fn new(id: u8) -> Self {
        Self { id, stream: Stream::new(), last: None, next: Next::Begin }
    }

    /// The stream, after the last step.
    pub fn finish(self) -> Stream {
        self.stream
    }

    /// Heap bytes of what was read.
    pub fn memory(&self) -> usize {
        self.stream.memory()
    }

    /// Reads at least `count` bytes, or all; true after the last step.
    pub fn step(&mut self, reader: &mut Reader<'_>, count: usize) -> Result<bool, Error> {
        let start = reader.rest().len();
        while start - reader.rest().len() < count {
            self.next = match std::mem::replace(&mut self.next, Next::Begin) {
                Next::Begin => Next::Pages(reader.count_or_none(2)?),
                Next::Pages(0) => Next::Groups(self.marks(reader)?),
                Next::Pages(left) => {
                    self.page(reader)?;
                    Next::Pages(left - 1)
                }
                Next::Groups(0) => {
                    self.next = Next::Groups(0);
                    return Ok(true);
                }
                Next::Groups(left) => {
                    let group = GroupLoader::begin(self.id, reader, &self.stream)?;
                    Next::Group(Box::new(group), left - 1)
                }
                Next::Group(mut group, left) => {
                    if group.step(self.id, reader)? {
                        group.finish(&mut self.stream)?;
                        Next::Groups(left)
                    } else {
                        Next::Group(group, left)
                    }
                }
            };
        }
        Ok(false)
    }

    fn page(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let master = <[u8; 16]>::try_from(reader.string(&mut scratch)?);
        let master = StreamId::of_bytes(master.map_err(|_| Error::Corrupt)?);
        if self.last.is_some_and(|last| master <= last) {
            return Err(Error::Corrupt);
        }
        let page = load_page(master, reader.string(&mut scratch)?)?;
        self.last = Some(page.last());
        self.stream.add_page(page);
        Ok(())
    }

    /// What stands behind the nodes; how many groups there are.
    fn marks(&mut self, reader: &mut Reader<'_>) -> Result<u64, Error> {
        let len = reader.length()?;
        let mut marks = Marks { last: load_id(reader)?, added: len, ..Marks::default() };
        if self.id != types::STREAM {
            load_id(reader)?; // the first one, which is seen from the entries
            marks.max_deleted = load_id(reader)?;
            marks.added = reader.length()?;
        }
        if len != self.stream.len() || self.last.is_some_and(|last| last > marks.last) {
            return Err(Error::Corrupt);
        }
        self.stream.set_marks(marks);
        reader.count_or_none(5)
    }
}

fn load_id(reader: &mut Reader<'_>) -> Result<StreamId, Error> {
    Ok(StreamId::new(reader.length()?, reader.length()?))
}

/// The elements of a node.
#[derive(Clone)]
struct Elements<'a>(Listpack<'a>);

impl<'a> Elements<'a> {
    fn any(&mut self) -> Result<Elem<'a>, Error> {
        self.0.step()?.ok_or(Error::Corrupt)
    }

    fn number(&mut self) -> Result<i64, Error> {
        self.any()?.int().ok_or(Error::Corrupt)
    }

    /// A count of things, of which each takes an element at least.
    fn count(&mut self, max: usize) -> Result<usize, Error> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= max).ok_or(Error::Corrupt)
    }

    /// Passes so many elements. They are checked here, and read again where they are used: a list
    /// of texts costs many times the bytes of the node, if these are short. `digits` is filled with
    /// the texts of numbers, which are at most twice as long as these.
    fn texts<'d>(&mut self, count: usize, digits: &'d mut Vec<u8>) -> Result<Texts<'d>, Error>
    where
        'a: 'd,
    {
        let elements = self.clone();
        let mut text = [0; I64_TEXT_MAX];
        digits.clear();
        for _ in 0..count {
            if let elem @ Elem::Int(_) = self.any()? {
                digits.extend_from_slice(elem.bytes(&mut text));
            }
        }
        Ok(Texts { elements, left: count, digits })
    }
}

/// Elements that were checked, as texts.
#[derive(Clone)]
struct Texts<'d> {
    elements: Elements<'d>,
    left: usize,
    /// The texts of the numbers among them, one behind the other.
    digits: &'d [u8],
}

impl<'d> Texts<'d> {
    /// Each two of them.
    fn pairs(mut self) -> impl Iterator<Item = (&'d [u8], &'d [u8])> + Clone {
        std::iter::from_fn(move || Some((self.next()?, self.next()?)))
    }
}

impl<'d> Iterator for Texts<'d> {
    type Item = &'d [u8];

    fn next(&mut self) -> Option<&'d [u8]> {
        self.left = self.left.checked_sub(1)?;
        match self.elements.any().expect("it was checked") {
            Elem::Bytes(bytes) => Some(bytes),
            Elem::Int(value) => {
                let (text, rest) = self.digits.split_at(text_len(value));
                self.digits = rest;
                Some(text)
            }
        }
    }
}

fn load_page(master: StreamId, bytes: &[u8]) -> Result<Page, Error> {
    let mut elements = Elements(Listpack::new(bytes)?);
    let count = elements.count(bytes.len())?;
    let deleted = elements.count(bytes.len())?;
    let fields = elements.count(bytes.len())?;
    let (mut digits, mut digits_of_entry) = (Vec::new(), Vec::new());
    let names = elements.texts(fields, &mut digits)?;
    if count == 0 || fields == 0 || elements.number()? != 0 {
        return Err(Error::Corrupt);
    }
    let mut page = Page::named(master, names.clone());
    let (mut last, mut seen) = (None, 0);
    for _ in 0..count + deleted {
        let flags = elements.number()?;
        let (ms, seq) = (elements.number()?, elements.number()?);
        let id = StreamId {
            ms: master.ms.wrapping_add(ms as u64),
            seq: master.seq.wrapping_add(seq as u64),
        };
        let own = flags & SAME_FIELDS == 0;
        let width = if own { elements.count(bytes.len())? } else { fields };
        let following = if own { 2 * width } else { width };
        let texts = elements.texts(following, &mut digits_of_entry)?;
        let takes = 3 + following + usize::from(own);
        if elements.number()? != takes as i64 || width == 0 {
            return Err(Error::Corrupt);
        }
        if flags & DELETED != 0 {
            continue;
        }
        if id < master || last.is_some_and(|last| id <= last) {
            return Err(Error::Corrupt);
        }
        (last, seen) = (Some(id), seen + 1);
        if own {
            page.push(id, texts.pairs());
        } else {
            page.push(id, names.clone().zip(texts));
        }
    }
    if seen != count || elements.0.step()?.is_some() {
        return Err(Error::Corrupt);
    }
    page.set_history(bytes.len() as u32, deleted as u32);
    page.shrink();
    Ok(page)
}

/// A group that is read row by row.
struct GroupLoader {
    name: Vec<u8>,
    group: Group,
    /// Times and counts of pending entries whose consumer was not read yet.
    rows: BTreeMap<StreamId, (i64, u64)>,
    rows_left: u64,
    /// Known when all rows are read.
    consumers_left: Option<u64>,
    /// Whose entries are read; and whether it has no name.
    owner: (ConsumerId, bool),
    entries_left: u64,
}

impl GroupLoader {
    fn begin(id: u8, reader: &mut Reader<'_>, stream: &Stream) -> Result<Self, Error> {
        let name = reader.string(&mut Vec::new())?.to_vec();
        let last = load_id(reader)?;
        let read = if id == types::STREAM {
            stream.added_up_to(last)
        } else {
            Some(reader.length()?).filter(|read| *read != UNKNOWN)
        };
        Ok(Self {
            name,
            group: Group::new(last, read),
            rows: BTreeMap::new(),
            rows_left: reader.count_or_none(25)?,
            consumers_left: None,
            owner: (ConsumerId::NOBODY, false),
            entries_left: 0,
        })
    }

    /// Reads a row, a consumer or an entry of one; true if nothing is left.
    fn step(&mut self, id: u8, reader: &mut Reader<'_>) -> Result<bool, Error> {
        if self.rows_left > 0 {
            self.rows_left -= 1;
            let entry = StreamId::of_bytes(reader.array()?);
            let row = (i64::from_le_bytes(reader.array()?), reader.length()?);
            return match self.rows.insert(entry, row) {
                Some(_) => Err(Error::Corrupt),
                None => Ok(false),
            };
        }
        if self.entries_left > 0 {
            self.entries_left -= 1;
            return self.entry(reader).map(|()| false);
        }
        match self.consumers_left {
            None => self.consumers_left = Some(reader.count_or_none(10)?),
            Some(0) => return Ok(true),
            Some(left) => {
                self.consumers_left = Some(left - 1);
                self.consumer(id, reader)?;
            }
        }
        Ok(false)
    }

    fn consumer(&mut self, id: u8, reader: &mut Reader<'_>) -> Result<(), Error> {
        let mut scratch = Vec::new();
        let name = reader.string(&mut scratch)?;
        let seen_ms = i64::from_le_bytes(reader.array()?);
        let active_ms =
            if id == types::STREAM_3 { i64::from_le_bytes(reader.array()?) } else { seen_ms };
        if self.group.find(name).is_some() {
            return Err(Error::Corrupt);
        }
        let is_unnamed = name.is_empty();
        let owner = if is_unnamed && seen_ms == 0 {
            ConsumerId::NOBODY
        } else {
            self.group.add_consumer(name, seen_ms, active_ms)
        };
        self.owner = (owner, is_unnamed);
        self.entries_left = reader.count_or_none(16)?;
        Ok(())
    }

    fn entry(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let entry = StreamId::of_bytes(reader.array()?);
        let (at_ms, count) = self.rows.remove(&entry).ok_or(Error::Corrupt)?;
        let (owner, is_unnamed) = self.owner;
        let is_released = is_unnamed && at_ms == 0;
        let consumer = if is_released { ConsumerId::NOBODY } else { owner };
        self.group.put(Pending { id: entry, at_ms, count, consumer });
        Ok(())
    }

    fn finish(self, stream: &mut Stream) -> Result<(), Error> {
        if !self.rows.is_empty() || !stream.add_group(&self.name, self.group) {
            return Err(Error::Corrupt);
        }
        Ok(())
    }
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    put_length(out, id.ms);
    put_length(out, id.seq);
}

/// Writes a stream in steps. It does not change between them.
#[derive(Debug)]
pub(crate) struct StreamWriter {
    /// The type has the times at which consumers got something.
    has_active_times: bool,
    at: Place,
    /// The released entries of the group at hand.
    released: Vec<StreamId>,
}

/// What is written next.
#[derive(Debug)]
enum Place {
    /// The nodes from the one that has the entry of this rank.
    Pages(u64),
    /// A group, up to its pending entries.
    Group(usize),
    /// The pending entries of a group from this id on.
    Rows(usize, StreamId),
    /// The number of consumers of a group.
    Consumers(usize),
    /// Of a group the consumer of this rank: its entries from this id on.
    Consumer(usize, usize, StreamId),
}

impl StreamWriter {
    /// Of a stream in the type of the plan.
    pub fn new(plan: &Plan) -> Self {
        let has_active_times = plan.id() == types::STREAM_3;
        Self { has_active_times, at: Place::Pages(0), released: Vec::new() }
    }

    /// Writes until that are `count` bytes, or nothing is left; true after the last step. The
    /// released entries of a group are written in one step.
    pub fn step(
        &mut self,
        saver: &mut Saver,
        stream: &Stream,
        out: &mut Vec<u8>,
        count: usize,
    ) -> bool {
        let end = out.len().saturating_add(count);
        while out.len() < end {
            self.at = match self.at {
                Place::Pages(rank) => pages(saver, stream, rank, out, end),
                Place::Group(at) => {
                    let Some((name, group)) = stream.group_at(at) else { return true };
                    put_string(out, name, None);
                    put_id(out, group.last);
                    put_length(out, group.read.unwrap_or(UNKNOWN));
                    put_length(out, group.pending());
                    Place::Rows(at, StreamId::MIN)
                }
                Place::Rows(at, from) => match rows(stream.group(at), from, out, end) {
                    Some(from) => Place::Rows(at, from),
                    None => Place::Consumers(at),
                },
                Place::Consumers(at) => {
                    self.consumers(stream.group(at), out);
                    Place::Consumer(at, 0, StreamId::MIN)
                }
                Place::Consumer(at, rank, from) => {
                    match self.consumer(stream.group(at), (rank, from), out, end) {
                        Some((rank, from)) => Place::Consumer(at, rank, from),
                        None => Place::Group(at + 1),
                    }
                }
            };
        }
        false
    }

    /// How many consumers a group has; and one without a name, if there is none and it needs one.
    fn consumers(&mut self, group: &Group, out: &mut Vec<u8>) {
        // Released entries are written as pending for the consumer without a name, because older
        // servers need a consumer for each.
        let rows = group.pending_from(StreamId::MIN);
        let released = rows.filter(|row| row.consumer == ConsumerId::NOBODY).map(|row| row.id);
        self.released = released.collect();
        let is_alone = !self.released.is_empty() && group.find(b"").is_none();
        put_length(out, group.consumers().len() as u64 + u64::from(is_alone));
        if is_alone {
            self.put_consumer(b"", (0, NEVER), self.released.len(), out);
            put_ids(&self.released, out);
        }
    }

    /// The consumer of this rank, or the rest of its entries; what comes next.
    fn consumer(
        &self,
        group: &Group,
        (rank, from): (usize, StreamId),
        out: &mut Vec<u8>,
        end: usize,
    ) -> Option<(usize, StreamId)> {
        let consumer = group.consumer(group.consumer_at(rank)?);
        let further = if consumer.name().is_empty() { &self.released[..] } else { &[] };
        if from == StreamId::MIN {
            let count = consumer.pending() as usize + further.len();
            let times = (consumer.seen_ms, consumer.active_ms);
            self.put_consumer(consumer.name(), times, count, out);
        }
        for id in consumer.pending_from(from) {
            if out.len() >= end && *id > from {
                return Some((rank, *id));
            }
            put_ids(std::slice::from_ref(id), out);
        }
        put_ids(further, out);
        Some((rank + 1, StreamId::MIN))
    }

    /// Appends what stands before the entries of a consumer. It was seen, and active, at these
    /// times.
    fn put_consumer(
        &self,
        name: &[u8],
        (seen, active): (i64, i64),
        count: usize,
        out: &mut Vec<u8>,
    ) {
        put_string(out, name, None);
        out.extend_from_slice(&seen.to_le_bytes());
        if self.has_active_times {
            out.extend_from_slice(&active.to_le_bytes());
        }
        put_length(out, count as u64);
    }
}

/// Appends nodes from the one that has the entry at `rank`, and what stands behind the last one.
fn pages(saver: &mut Saver, stream: &Stream, from: u64, out: &mut Vec<u8>, end: usize) -> Place {
    if from == 0 {
        put_length(out, stream.pages().count() as u64);
    }
    let mut rank = from;
    for page in stream.pages_from(rank) {
        if rank > from && out.len() >= end {
            return Place::Pages(rank);
        }
        put_string(out, &page.master().to_bytes(), None);
        let (pack, compressor) = saver.parts();
        pack_page(page, pack);
        put_blob(out, pack.finish(), compressor);
        pack.clear();
        rank += page.count();
    }
    let marks = stream.marks();
    put_length(out, stream.len());
    put_id(out, marks.last);
    put_id(out, stream.first_id());
    put_id(out, marks.max_deleted);
    put_length(out, marks.added);
    put_length(out, stream.groups().len() as u64);
    Place::Group(0)
}

/// Appends pending entries from an id on; the next one that is left.
fn rows(group: &Group, from: StreamId, out: &mut Vec<u8>, end: usize) -> Option<StreamId> {
    for row in group.pending_from(from) {
        if out.len() >= end {
            return Some(row.id);
        }
        out.extend_from_slice(&row.id.to_bytes());
        out.extend_from_slice(&row.at_ms.to_le_bytes());
        put_length(out, row.count);
    }
    None
}

fn put_ids(ids: &[StreamId], out: &mut Vec<u8>) {
    for id in ids {
        out.extend_from_slice(&id.to_bytes());
    }
}

/// A node as Redis packs it, without what was deleted.
fn pack_page(page: &Page, pack: &mut Builder) {
    let mut text = IntText::default();
    let names: Vec<Vec<u8>> = page.names().map(|name| name.bytes(&mut text).to_vec()).collect();
    pack.push_int(page.count() as i64);
    pack.push_int(0);
    pack.push_int(names.len() as i64);
    for name in &names {
        pack.push(name);
    }
    pack.push_int(0);
    let master = page.master();
    for entry in page.entries() {
        let same = entry.has_page_fields();
        pack.push_int(if same { SAME_FIELDS } else { 0 });
        pack.push_int(entry.id.ms.wrapping_sub(master.ms) as i64);
        pack.push_int(entry.id.seq.wrapping_sub(master.seq) as i64);
        if !same {
            pack.push_int(entry.len() as i64);
        }
        for (name, value) in entry.fields() {
            if !same {
                pack.push(name.bytes(&mut text));
            }
            pack.push(value.bytes(&mut text));
        }
        let count = if same { 3 + entry.len() } else { 4 + 2 * entry.len() };
        pack.push_int(count as i64);
    }
}
