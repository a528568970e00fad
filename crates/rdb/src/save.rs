//! Values to bytes, in the oldest types that today's readers take: Redis 7.0 reads everything but
//! a hash whose fields expire.

use base::UnixMs;
use base::double;
use base::num::parse_i64;
use value::Stream;

use crate::EXPIRE_MAX;
use crate::lzf::Compressor;
use crate::nodes::{NodeLimits, NodePacker, Nodes};
use crate::primitive::{put_blob, put_length, put_string};
use crate::stream::StreamWriter;
use crate::switches::PlainFrom;
use crate::types::{self, Kind};
use crate::types::{VERSION, VERSION_ACTIVE_TIMES, VERSION_FIELD_TTL, VERSION_VALKEY};
use crate::{intset, listpack, payload};

/// A collection whose listpack or intset would be longer is written in its plain type.
const PACKED_BYTES_MAX: usize = 64 << 20;

/// The form in which a collection should be written. It is ignored where its elements do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One string: listpack. (Lists always are nodes of listpacks, sets of bytes always plain.)
    Packed,
    /// A set of integers.
    Intset,
    /// Element by element.
    Plain,
}

/// A part of a value.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// The string itself, an element of a list, a member of a set.
    Element(&'a [u8]),
    /// A member of a sorted set.
    Member(&'a [u8], f64),
    /// A field of a hash, its value, when it expires.
    Field(&'a [u8], &'a [u8], Option<UnixMs>),
}

/// A value that can be written. It is walked more than once and must not change meanwhile.
pub trait Source {
    /// What it is.
    fn kind(&self) -> Kind;
    /// How many elements, members or fields it has, 1 for a string; never 0.
    fn count(&self) -> u64;
    /// The form in which it should be written.
    fn shape(&self) -> Shape;
    /// Whether it is a hash with a field that expires.
    fn expires(&self) -> bool {
        false
    }
    /// The stream that it is, which has no parts.
    fn stream(&self) -> Option<&Stream> {
        None
    }
    /// Calls `item` with every part, in the order of the value.
    fn each(&self, item: impl FnMut(Item<'_>));
}

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether strings are compressed (`rdbcompression`).
    pub compress: bool,
    /// The version whose types are used. It says whose type a hash with field expiry has, and
    /// whether a stream has the active times of its consumers. Everything else is the same in all.
    pub version: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self { compress: true, version: VERSION }
    }
}

/// The results of a first walk over a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub(crate) id: u8,
    pub(crate) version: u16,
    /// Nodes of a list.
    pub(crate) nodes: u64,
    /// The earliest expiry of a field.
    pub(crate) earliest: i64,
}

impl Plan {
    /// The type, which stands before the value (in a file: before the key).
    pub const fn id(&self) -> u8 {
        self.id
    }

    /// The version that a reader has to know.
    pub const fn version(&self) -> u16 {
        self.version
    }
}

/// Writes values; keeps its buffers from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Saver {
    options: Options,
    plain_from: PlainFrom,
    compressor: Compressor,
    pack: listpack::Builder,
    scratch: Vec<u8>,
}

impl Saver {
    /// A writer with these options.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// The whole payload of DUMP.
    pub fn dump(&mut self, source: &impl Source) -> Vec<u8> {
        let plan = self.plan(source);
        let mut out = vec![plan.id];
        self.value(&plan, source, &mut out);
        payload::seal(&mut out, plan.version);
        out
    }

    /// Chooses the type.
    pub fn plan(&self, source: &impl Source) -> Plan {
        let mut plan = self.type_of(source);
        if plan.counts() {
            let mut count = self.count();
            source.each(|item| count.add(&item));
            count.complete(&mut plan);
        }
        plan
    }

    /// The type, and nothing else that a plan says.
    pub(crate) fn type_of(&self, source: &impl Source) -> Plan {
        let mut plan = Plan { id: types::STRING, version: VERSION, nodes: 0, earliest: 0 };
        let packed = source.shape() == Shape::Packed;
        match source.kind() {
            Kind::String => {}
            Kind::List => plan.id = types::LIST_QUICKLIST_2,
            Kind::Set if source.shape() == Shape::Intset && integers(source) => {
                plan.id = types::SET_INTSET;
            }
            Kind::Set => plan.id = types::SET,
            Kind::Zset if packed && fits(source) => plan.id = types::ZSET_LISTPACK,
            Kind::Zset => plan.id = types::ZSET_2,
            Kind::Hash if source.expires() && self.options.version == VERSION_VALKEY => {
                (plan.id, plan.version) = (types::HASH_2, VERSION_VALKEY);
            }
            Kind::Hash if source.expires() => {
                plan.version = VERSION_FIELD_TTL;
                let shaped = packed && fits(source);
                plan.id = if shaped { types::HASH_LISTPACK_EX } else { types::HASH_METADATA };
            }
            Kind::Hash if packed && fits(source) => plan.id = types::HASH_LISTPACK,
            Kind::Hash => plan.id = types::HASH,
            Kind::Stream if self.options.version >= VERSION_ACTIVE_TIMES => {
                (plan.id, plan.version) = (types::STREAM_3, VERSION_ACTIVE_TIMES);
            }
            Kind::Stream => plan.id = types::STREAM_2,
        }
        plan
    }

    /// The nodes that a list would have with these limits.
    pub fn nodes_of(&self, source: &impl Source, limits: NodeLimits) -> Nodes {
        let mut packer = NodePacker::new(limits, self.plain_from);
        source.each(|item| {
            let Item::Element(bytes) = item else { unreachable_item() };
            packer.place(bytes);
        });
        packer.nodes
    }

    /// Appends the value behind its type.
    pub fn value(&mut self, plan: &Plan, source: &impl Source, out: &mut Vec<u8>) {
        match plan.id {
            types::STRING => source.each(|item| self.element(item, out)),
            types::STREAM_2 | types::STREAM_3 => {
                let stream = source.stream().expect("a source of this kind is a stream");
                let mut writer = StreamWriter::new(plan);
                while !writer.step(self, stream, out, usize::MAX) {}
            }
            types::SET_INTSET => self.intset(source, out),
            types::ZSET_LISTPACK | types::HASH_LISTPACK => self.packed(source, out),
            types::HASH_LISTPACK_EX => {
                out.extend_from_slice(&plan.earliest.to_le_bytes());
                self.packed_expiring(source, out);
            }
            _ => self.all_parts(plan, source, out),
        }
    }

    /// What a stream's nodes are made with.
    pub(crate) fn parts(&mut self) -> (&mut listpack::Builder, Option<&mut Compressor>) {
        let compressor = self.options.compress.then_some(&mut self.compressor);
        (&mut self.pack, compressor)
    }

    fn element(&mut self, item: Item<'_>, out: &mut Vec<u8>) {
        let Item::Element(bytes) = item else { unreachable_item() };
        self.string(bytes, out);
    }

    /// Appends a string by itself: a key, or a value.
    pub fn string(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        put_string(out, bytes, self.options.compress.then_some(&mut self.compressor));
    }

    /// From which length on an element of a list is a node by itself.
    pub(crate) fn plain_from(&self) -> PlainFrom {
        self.plain_from
    }

    /// The listpack that is being filled.
    pub(crate) fn pack_mut(&mut self) -> &mut listpack::Builder {
        &mut self.pack
    }

    /// Appends the listpack so far as a node, unless it is empty.
    pub(crate) fn node(&mut self, out: &mut Vec<u8>) {
        if !self.pack.is_empty() {
            put_length(out, types::NODE_PACKED);
            self.pack_out(out);
        }
    }

    fn pack_out(&mut self, out: &mut Vec<u8>) {
        let compressor = self.options.compress.then_some(&mut self.compressor);
        put_blob(out, self.pack.finish(), compressor);
        self.pack.clear();
    }

    fn packed(&mut self, source: &impl Source, out: &mut Vec<u8>) {
        let (pack, text) = (&mut self.pack, &mut self.scratch);
        source.each(|item| match item {
            Item::Element(bytes) => pack.push(bytes),
            Item::Field(field, value, _) => {
                pack.push(field);
                pack.push(value);
            }
            Item::Member(member, score) => {
                pack.push(member);
                text.clear();
                double::write(text, score);
                pack.push(text);
            }
        });
        self.pack_out(out);
    }

    /// Fields by their expiry; those without one are the last.
    fn packed_expiring(&mut self, source: &impl Source, out: &mut Vec<u8>) {
        let mut fields: Vec<(i64, Vec<u8>, Vec<u8>)> = Vec::new();
        source.each(|item| {
            let Item::Field(field, value, at) = item else { unreachable_item() };
            fields.push((at.map_or(i64::MAX, bounded), field.to_vec(), value.to_vec()));
        });
        fields.sort_by_key(|&(at, ..)| at);
        for (at, field, value) in fields {
            self.pack.push(&field);
            self.pack.push(&value);
            self.pack.push_int(if at == i64::MAX { 0 } else { at });
        }
        self.pack_out(out);
    }

    fn intset(&mut self, source: &impl Source, out: &mut Vec<u8>) {
        let mut members = Vec::with_capacity(source.count() as usize);
        source.each(|item| {
            let Item::Element(bytes) = item else { unreachable_item() };
            members.push(parse_i64(bytes).expect("the plan saw only integers"));
        });
        members.sort_unstable();
        self.scratch.clear();
        intset::write(&mut self.scratch, &members);
        let compressor = self.options.compress.then_some(&mut self.compressor);
        put_blob(out, &self.scratch, compressor);
    }
}

/// An expiry as Redis's types can hold it: 0 stands for none there, and 48 bits are the most.
pub(crate) fn bounded(at: UnixMs) -> i64 {
    at.0.clamp(1, EXPIRE_MAX)
}

/// A source gives the items of its kind.
#[track_caller]
pub(crate) fn unreachable_item() -> ! {
    panic!("a source gave an item of another kind")
}

/// Whether all members are integers, and few enough for one string.
fn integers(source: &impl Source) -> bool {
    let mut all = source.count() <= (PACKED_BYTES_MAX / size_of::<i64>()) as u64;
    source.each(|item| all &= matches!(item, Item::Element(text) if parse_i64(text).is_some()));
    all
}

/// Whether the listpack of a collection stays within its bound.
fn fits(source: &impl Source) -> bool {
    let mut bytes = 0usize;
    source.each(|item| {
        let more = match item {
            Item::Element(element) => listpack::size(element),
            Item::Member(member, _) => listpack::size(member) + double::TEXT_MAX,
            Item::Field(field, value, _) => listpack::size(field) + listpack::size(value) + 10,
        };
        bytes = bytes.saturating_add(more);
    });
    bytes <= PACKED_BYTES_MAX
}
