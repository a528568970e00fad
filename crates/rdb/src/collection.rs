//! Collections part by part: all parts at once, or some at a time for the payload of a long one.

use base::Blob;
use base::blob::Builder;
use base::crc64::crc64;

use crate::load::PartReader;
use crate::nodes::{NodeLimits, NodePacker, Placed};
use crate::payload::{self, TRAILER};
use crate::primitive::put_length;
use crate::save::{Item, Plan, Saver, Shape, Source, bounded, unreachable_item};
use crate::stream::{StreamLoader, StreamWriter};
use crate::switches::skips_checksums;
use crate::types::{self, Kind};
use crate::{Dialect, EXPIRE_MAX, Error, Reader, Sink, VERSION_VALKEY};

/// Parts that a step reads, at most.
const STEP_PARTS: u64 = 1000;
/// Bytes of parts which end a step: to compress them takes 100 us.
const STEP_BYTES: usize = 32 << 10;

/// What has to be known of all parts before the first one is written.
#[derive(Debug)]
pub(crate) struct Count {
    packer: NodePacker,
    earliest: i64,
}

impl Count {
    /// Takes a part in.
    pub fn add(&mut self, item: &Item<'_>) {
        match *item {
            Item::Element(bytes) => _ = self.packer.place(bytes),
            Item::Field(.., Some(at)) => self.earliest = self.earliest.min(bounded(at)),
            Item::Field(..) | Item::Member(..) => {}
        }
    }

    /// Completes the plan.
    pub fn complete(self, plan: &mut Plan) {
        (plan.nodes, plan.earliest) = (self.packer.nodes.count, self.earliest);
    }
}

impl Plan {
    /// True if it is complete only when all parts were counted.
    pub(crate) fn counts(&self) -> bool {
        let counted = [types::LIST_QUICKLIST_2, types::HASH_METADATA, types::HASH_LISTPACK_EX];
        counted.contains(&self.id)
    }
}

impl Saver {
    /// Nothing counted yet.
    pub(crate) fn count(&self) -> Count {
        Count { packer: self.packer(), earliest: EXPIRE_MAX }
    }

    fn packer(&self) -> NodePacker {
        NodePacker::new(NodeLimits::OF_PAYLOADS, self.plain_from())
    }

    /// Appends a collection part by part.
    pub(crate) fn all_parts(&mut self, plan: &Plan, source: &impl Source, out: &mut Vec<u8>) {
        let mut packer = self.packer();
        begin(plan, source.count(), out);
        source.each(|item| self.part(plan, &mut packer, item, out));
        self.end(plan, &packer, out);
    }

    /// Appends a part.
    fn part(&mut self, plan: &Plan, packer: &mut NodePacker, item: Item<'_>, out: &mut Vec<u8>) {
        match (plan.id, item) {
            (types::LIST_QUICKLIST_2, Item::Element(bytes)) => self.listed(packer, bytes, out),
            (types::SET, Item::Element(bytes)) => self.string(bytes, out),
            (types::ZSET_2, Item::Member(member, score)) => {
                self.string(member, out);
                out.extend_from_slice(&score.to_le_bytes());
            }
            (_, Item::Field(field, value, at)) => {
                if plan.id == types::HASH_METADATA {
                    put_length(out, at.map_or(0, |at| (bounded(at) - plan.earliest + 1) as u64));
                }
                self.string(field, out);
                self.string(value, out);
                if plan.version == VERSION_VALKEY {
                    out.extend_from_slice(&at.map_or(-1, |at| at.0.max(0)).to_le_bytes());
                }
            }
            _ => unreachable_item(),
        }
    }

    /// Appends an element of a list to its node.
    fn listed(&mut self, packer: &mut NodePacker, bytes: &[u8], out: &mut Vec<u8>) {
        let placed = packer.place(bytes);
        if placed != Placed::Join {
            self.node(out);
        }
        if placed == Placed::Alone {
            put_length(out, types::NODE_PLAIN);
            self.string(bytes, out);
        } else {
            self.pack_mut().push(bytes);
        }
    }

    /// Appends what is left behind the last part.
    fn end(&mut self, plan: &Plan, packer: &NodePacker, out: &mut Vec<u8>) {
        if plan.id == types::LIST_QUICKLIST_2 {
            self.node(out);
            debug_assert_eq!(packer.nodes.count, plan.nodes, "the source did not change");
        }
    }
}

/// Appends what stands before the parts.
fn begin(plan: &Plan, count: u64, out: &mut Vec<u8>) {
    if plan.id == types::HASH_METADATA {
        out.extend_from_slice(&plan.earliest.to_le_bytes());
    }
    put_length(out, if plan.id == types::LIST_QUICKLIST_2 { plan.nodes } else { count });
}

/// Writes a collection some parts at a time.
#[derive(Debug)]
pub(crate) struct PartWriter {
    plan: Plan,
    /// How many parts there are.
    parts: u64,
    /// The next part.
    at: u64,
    /// Until all parts are counted.
    count: Option<Count>,
    packer: NodePacker,
}

impl PartWriter {
    /// Of a collection. `None` if it has no parts, as a stream, or is written as one string.
    pub fn new(saver: &Saver, source: &impl Source) -> Option<Self> {
        let has_parts = match source.kind() {
            Kind::String | Kind::Stream => false,
            Kind::List => true,
            Kind::Set | Kind::Zset | Kind::Hash => source.shape() == Shape::Plain,
        };
        if !has_parts {
            return None;
        }
        let plan = saver.type_of(source);
        Some(Self {
            parts: source.count(),
            at: 0,
            count: plan.counts().then(|| saver.count()),
            packer: saver.packer(),
            plan,
        })
    }

    /// The type and the version; what is counted is not complete.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Parts that are written.
    pub fn passed(&self) -> u64 {
        if self.count.is_some() { 0 } else { self.at }
    }

    /// Counts or writes about 1,000 parts, fewer if they are long; true after the last step.
    /// `each` calls its second argument with the parts from the one at its first argument on,
    /// until that says `false`.
    ///
    /// # Panics
    /// If `each` gives no part although there are some left.
    pub fn step(
        &mut self,
        saver: &mut Saver,
        out: &mut Vec<u8>,
        each: impl Fn(u64, &mut dyn FnMut(Item<'_>) -> bool),
    ) -> bool {
        let mut left = Step { parts: STEP_PARTS, bytes: STEP_BYTES };
        if let Some(mut count) = self.count.take() {
            each(self.at, &mut |item| {
                count.add(&item);
                self.at += 1;
                left.continues(&item)
            });
            if self.at < self.parts {
                assert!(left.parts < STEP_PARTS, "there are parts left");
                self.count = Some(count);
                return false;
            }
            count.complete(&mut self.plan);
            self.at = 0;
            if left.is_used_up() {
                return false;
            }
            left = Step { parts: STEP_PARTS, bytes: STEP_BYTES };
        }
        if self.at == 0 {
            begin(&self.plan, self.parts, out);
        }
        each(self.at, &mut |item| {
            saver.part(&self.plan, &mut self.packer, item, out);
            self.at += 1;
            left.continues(&item)
        });
        assert!(left.parts < STEP_PARTS, "there are parts left");
        let is_last = self.at == self.parts;
        if is_last {
            saver.end(&self.plan, &self.packer, out);
        }
        is_last
    }
}

/// Writes the payload of a collection some parts at a time, in the same bytes as [`Saver::dump`].
pub struct CollectionDump {
    saver: Saver,
    writer: PartWriter,
    /// What one step writes.
    out: Vec<u8>,
    payload: Builder,
    sum: u64,
}

impl CollectionDump {
    /// Of a collection. `None` if it has no parts, as a stream, or is written as one string.
    pub fn new(source: &impl Source) -> Option<Self> {
        let saver = Saver::default();
        let writer = PartWriter::new(&saver, source)?;
        let out = vec![writer.plan.id];
        Some(Self { saver, writer, out, payload: Builder::default(), sum: 0 })
    }

    /// Heap bytes of the payload so far.
    pub fn memory(&self) -> usize {
        self.payload.capacity()
    }

    /// Reads about 1,000 parts, fewer if they are long; the payload after the last step. `each`
    /// calls its second argument with the parts from the one at its first argument on, until that
    /// says `false`.
    ///
    /// # Panics
    /// If `each` gives no part although there are some left.
    pub fn step(&mut self, each: impl Fn(u64, &mut dyn FnMut(Item<'_>) -> bool)) -> Option<Blob> {
        let is_last = self.writer.step(&mut self.saver, &mut self.out, each);
        if is_last {
            self.out.extend_from_slice(&self.writer.plan.version.to_le_bytes());
        }
        self.sum = crc64(self.sum, &self.out);
        if is_last {
            self.out.extend_from_slice(&self.sum.to_le_bytes());
        }
        self.payload.extend(&self.out);
        self.out.clear();
        is_last.then(|| std::mem::take(&mut self.payload).finish())
    }
}

/// Writes the payload of a stream in steps, in the same bytes as [`Saver::dump`].
pub struct StreamDump {
    saver: Saver,
    writer: StreamWriter,
    version: u16,
    /// What one step writes.
    out: Vec<u8>,
    payload: Builder,
    sum: u64,
}

/// Bytes of a stream that a step writes: to pack and compress them takes 200 us.
const STREAM_BYTES: usize = 16 << 10;

impl StreamDump {
    /// Of a stream. `None` if it is none.
    pub fn new(source: &impl Source) -> Option<Self> {
        source.stream()?;
        let saver = Saver::default();
        let plan = saver.type_of(source);
        let (writer, version, out) = (StreamWriter::new(&plan), plan.version, vec![plan.id]);
        Some(Self { saver, writer, version, out, payload: Builder::default(), sum: 0 })
    }

    /// Heap bytes of the payload so far.
    pub fn memory(&self) -> usize {
        self.payload.capacity()
    }

    /// Writes some of it; the payload after the last step. The source is the same in all steps.
    ///
    /// # Panics
    /// If the source is no stream.
    pub fn step(&mut self, source: &impl Source) -> Option<Blob> {
        let stream = source.stream().expect("it is a stream in all steps");
        let is_last = self.writer.step(&mut self.saver, stream, &mut self.out, STREAM_BYTES);
        if is_last {
            self.out.extend_from_slice(&self.version.to_le_bytes());
        }
        self.sum = crc64(self.sum, &self.out);
        if is_last {
            self.out.extend_from_slice(&self.sum.to_le_bytes());
        }
        self.payload.extend(&self.out);
        self.out.clear();
        is_last.then(|| std::mem::take(&mut self.payload).finish())
    }
}

/// Parts of a payload that a step reads, at most: to put them into a tree takes 50 us,
/// and a sorted set has two trees.
const READ_PARTS: u64 = 128;
/// Bytes of a payload which end a step.
const READ_BYTES: usize = 16 << 10;

/// Bytes of a stream that a step reads: to check them and to build its pages takes 200 us.
const READ_STREAM_BYTES: usize = 8 << 10;

/// Reads the payload of a collection some parts at a time, that of a stream some bytes at a time.
pub struct CollectionRestore {
    payload: Blob,
    /// The payload as one slice, as far as it is checked.
    bytes: Vec<u8>,
    sum: u64,
    /// The next byte to read.
    at: usize,
    parts: Option<PartReader>,
    /// Of a stream in place of its parts.
    stream: Option<StreamLoader>,
}

impl CollectionRestore {
    /// Begins to read a payload, of which nothing is known. `None` if it is not that of a
    /// collection which is written part by part: [`restore`](crate::restore) reads it.
    pub fn new(payload: Blob) -> Option<Self> {
        let id = payload.byte(0)?;
        let is_stream = matches!(id, types::STREAM | types::STREAM_2 | types::STREAM_3);
        let has_parts = matches!(
            id,
            types::LIST
                | types::LIST_QUICKLIST
                | types::LIST_QUICKLIST_2
                | types::SET
                | types::ZSET
                | types::ZSET_2
                | types::HASH
                | types::HASH_2 // or HASH_METADATA_PRE
                | types::HASH_METADATA
        );
        let bytes = Vec::new();
        ((has_parts || is_stream) && payload.len() > TRAILER).then(|| Self {
            payload,
            bytes,
            sum: 0,
            at: 1,
            parts: None,
            stream: is_stream.then(|| StreamLoader::new(id)),
        })
    }

    /// Heap bytes of its own.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.stream.as_ref().map_or(0, StreamLoader::memory)
    }

    /// Checks up to `count` bytes, or reads some parts into `sink`, which is the same one in all
    /// steps; true after the last step.
    pub fn step(&mut self, count: usize, sink: &mut impl Sink) -> Result<bool, Error> {
        if self.bytes.len() < self.payload.len() {
            self.check(count)?;
            return Ok(false);
        }
        let (body, version) = payload::split(&self.bytes)?;
        let dialect = Dialect::of(version).ok_or(Error::Envelope)?;
        let mut reader = Reader::new(&body[self.at..]);
        if let Some(mut stream) = self.stream.take() {
            let is_last = stream.step(&mut reader, READ_STREAM_BYTES)?;
            self.at = body.len() - reader.rest().len();
            if is_last {
                return sink.stream(stream.finish()).map(|()| true);
            }
            self.stream = Some(stream);
            return Ok(false);
        }
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => {
                let begun = PartReader::begin(body[0], dialect, &mut reader, 0, sink)?;
                none.insert(begun.ok_or(Error::Type(body[0]))?)
            }
        };
        let (start, mut left) = (reader.rest().len(), READ_PARTS);
        while parts.left() > 0 && left > 0 && start - reader.rest().len() < READ_BYTES {
            left = left.saturating_sub(parts.read(&mut reader, sink)?.max(1));
        }
        self.at = body.len() - reader.rest().len();
        if parts.left() > 0 {
            return Ok(false);
        }
        parts.finish(sink).map(|()| true)
    }

    /// Copies and checks some bytes more.
    fn check(&mut self, count: usize) -> Result<(), Error> {
        let at = self.bytes.len();
        if at == 0 {
            self.bytes.reserve_exact(self.payload.len());
        }
        let end = self.payload.len().min(at.saturating_add(count));
        self.payload.copy_to(at..end, &mut self.bytes);
        let checked = self.payload.len() - size_of::<u64>();
        if at < checked {
            self.sum = crc64(self.sum, &self.bytes[at..end.min(checked)]);
        }
        if end < self.payload.len() {
            return Ok(());
        }
        // The version first, as where a payload is read at once.
        let (_, version) = payload::split(&self.bytes)?;
        let sum = &self.bytes[checked..];
        let is_right = skips_checksums() || self.sum.to_le_bytes() == *sum;
        if Dialect::of(version).is_none() || !is_right { Err(Error::Envelope) } else { Ok(()) }
    }
}

/// What a step may still read.
struct Step {
    parts: u64,
    bytes: usize,
}

impl Step {
    /// Counts a part; true if there is room for another one.
    fn continues(&mut self, item: &Item<'_>) -> bool {
        let len = match item {
            Item::Element(bytes) | Item::Member(bytes, _) => bytes.len(),
            Item::Field(field, value, _) => field.len() + value.len(),
        };
        self.parts -= 1;
        self.bytes = self.bytes.saturating_sub(len);
        !self.is_used_up()
    }

    fn is_used_up(&self) -> bool {
        self.parts == 0 || self.bytes == 0
    }
}
