//! Values from bytes: every type becomes the same few events.

use std::borrow::Cow;

use base::UnixMs;
use base::num::{I64_TEXT_MAX, format_i64};
use value::Stream;

use crate::listpack::{Elem, Listpack};
use crate::ziplist::Ziplist;
use crate::{Dialect, EXPIRE_MAX, Error, Kind, Reader, intset, load_string, types, zipmap};

/// Receives a value in parts: `string` alone, or `start`, the parts of its kind, and `finish`.
/// After an error of the reader or of the sink no further call follows, and the value is
/// incomplete.
pub trait Sink {
    /// A string.
    fn string(&mut self, bytes: Cow<'_, [u8]>) -> Result<(), Error>;
    /// A collection begins. It has about so many elements, and never more than the bytes could
    /// hold, so room may be reserved for them.
    fn start(&mut self, kind: Kind, about: u64) -> Result<(), Error>;
    /// The next element of a list, or a member of a set.
    fn element(&mut self, bytes: &[u8]) -> Result<(), Error>;
    /// A member of a sorted set. The score is a number.
    fn member(&mut self, member: &[u8], score: f64) -> Result<(), Error>;
    /// A field of a hash, and when it expires.
    fn field(&mut self, field: &[u8], value: &[u8], at: Option<UnixMs>) -> Result<(), Error>;
    /// A stream, whole; nothing else comes.
    fn stream(&mut self, stream: Stream) -> Result<(), Error>;
    /// The collection is complete, and not empty.
    fn finish(&mut self) -> Result<(), Error>;
}

/// Reads one value of the type `id` into `sink`. After an error the position of the reader is
/// undefined.
pub fn load(
    id: u8,
    dialect: Dialect,
    reader: &mut Reader<'_>,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    if let Some(mut parts) = PartReader::begin(id, dialect, reader, 0, sink)? {
        while parts.left() > 0 {
            parts.read(reader, sink)?;
        }
        return parts.finish(sink);
    }
    let mut loader = Loader { reader, sink, scratch: Vec::new() };
    match id {
        types::STRING => {
            let text = load_string(loader.reader)?;
            return loader.sink.string(text);
        }
        types::STREAM | types::STREAM_2 | types::STREAM_3 => {
            let stream = crate::stream::load(id, loader.reader)?;
            return loader.sink.stream(stream);
        }
        types::HASH_ZIPMAP => loader.zipmap(),
        types::LIST_ZIPLIST => loader.ziplist(Part::Element(Kind::List)),
        types::SET_INTSET => loader.intset(),
        types::ZSET_ZIPLIST => loader.ziplist(Part::Member),
        types::HASH_ZIPLIST => loader.ziplist(Part::Field),
        types::HASH_LISTPACK => loader.listpack(Part::Field),
        types::ZSET_LISTPACK => loader.listpack(Part::Member),
        types::SET_LISTPACK => loader.listpack(Part::Element(Kind::Set)),
        types::HASH_LISTPACK_EX_PRE if dialect == Dialect::Redis => loader.listpack(Part::FieldTtl),
        types::HASH_LISTPACK_EX if dialect == Dialect::Redis => {
            // The earliest expiry, which may be out of date; every field has its own.
            loader.reader.array::<8>()?;
            loader.listpack(Part::FieldTtl)
        }
        _ => Err(Error::Type(id)),
    }?;
    sink.finish()
}

/// Where the expiry of a field stands.
#[derive(Clone, Copy, Debug)]
enum Expires {
    Nowhere,
    /// Before the field.
    Before,
    /// Before the field, counted from this.
    From(u64),
    /// Behind the value.
    Behind,
}

/// A collection that is written part by part, while it is read. The parts of a list are nodes.
#[derive(Debug)]
pub(crate) struct PartReader {
    id: u8,
    /// Parts that are left.
    left: u64,
    /// Elements of a list so far.
    elements: u64,
    expires: Expires,
    /// Strings that are compressed, or integers.
    first: Vec<u8>,
    second: Vec<u8>,
}

impl PartReader {
    /// Reads what stands before the parts, of which up to `further` bytes follow those of the
    /// reader. `None` if the type has none.
    pub fn begin(
        id: u8,
        dialect: Dialect,
        reader: &mut Reader<'_>,
        further: u64,
        sink: &mut impl Sink,
    ) -> Result<Option<Self>, Error> {
        use Expires::{Before, Behind, From, Nowhere};
        // The least bytes of a part.
        let (kind, least, expires) = match (id, dialect) {
            (types::LIST | types::LIST_QUICKLIST, _) => (Kind::List, 1, Nowhere),
            (types::LIST_QUICKLIST_2, _) => (Kind::List, 2, Nowhere),
            (types::SET, _) => (Kind::Set, 1, Nowhere),
            (types::ZSET, _) => (Kind::Zset, 2, Nowhere),
            (types::ZSET_2, _) => (Kind::Zset, 9, Nowhere),
            (types::HASH, _) => (Kind::Hash, 2, Nowhere),
            (types::HASH_2, Dialect::Valkey) => (Kind::Hash, 10, Behind),
            (types::HASH_METADATA_PRE, Dialect::Redis) => (Kind::Hash, 3, Before),
            (types::HASH_METADATA, Dialect::Redis) => {
                (Kind::Hash, 3, From(u64::from_le_bytes(reader.array()?)))
            }
            _ => return Ok(None),
        };
        let left = reader.count_in(least, further)?;
        sink.start(kind, left.min((reader.rest().len() / least) as u64))?;
        let (first, second) = (Vec::new(), Vec::new());
        Ok(Some(Self { id, left, elements: 0, expires, first, second }))
    }

    /// Parts that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Reads the next part; how many elements it has.
    pub fn read(&mut self, reader: &mut Reader<'_>, sink: &mut impl Sink) -> Result<u64, Error> {
        self.left -= 1;
        match self.id {
            types::LIST | types::SET => sink.element(reader.string(&mut self.first)?)?,
            types::LIST_QUICKLIST | types::LIST_QUICKLIST_2 => return self.node(reader, sink),
            types::ZSET | types::ZSET_2 => {
                let member = reader.string(&mut self.first)?;
                let has_text = self.id == types::ZSET;
                let score = if has_text { reader.text_double()? } else { reader.double()? };
                if score.is_nan() {
                    return Err(Error::Corrupt);
                }
                sink.member(member, score)?;
            }
            _ => self.field(reader, sink)?,
        }
        Ok(1)
    }

    /// The next field.
    fn field(&mut self, reader: &mut Reader<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        let before = match self.expires {
            Expires::Before => expiry(reader.length()?)?,
            Expires::From(earliest) => match reader.length()? {
                0 => None,
                more => expiry(earliest.checked_add(more - 1).ok_or(Error::Corrupt)?)?,
            },
            Expires::Nowhere | Expires::Behind => None,
        };
        let field = reader.string(&mut self.first)?;
        let value = reader.string(&mut self.second)?;
        let is_behind = matches!(self.expires, Expires::Behind);
        let at = if is_behind { signed_expiry(reader)? } else { before };
        sink.field(field, value, at)
    }

    /// The next node of a list: a ziplist; or behind the number of its form, a listpack or a single
    /// element.
    fn node(&mut self, reader: &mut Reader<'_>, sink: &mut impl Sink) -> Result<u64, Error> {
        let has_form = self.id == types::LIST_QUICKLIST_2;
        let form = if has_form { Some(reader.length()?) } else { None };
        let bytes = reader.string(&mut self.first)?;
        let part = Part::Element(Kind::List);
        let elements = match form {
            None => unpack(&mut Ziplist::new(bytes)?, part, sink)?,
            Some(types::NODE_PACKED) => unpack(&mut Listpack::new(bytes)?, part, sink)?,
            Some(types::NODE_PLAIN) => {
                sink.element(bytes)?;
                1
            }
            Some(_) => return Err(Error::Corrupt),
        };
        self.elements += elements;
        Ok(elements)
    }

    /// Ends the collection behind its last part.
    pub fn finish(&self, sink: &mut impl Sink) -> Result<(), Error> {
        let has_nodes = matches!(self.id, types::LIST_QUICKLIST | types::LIST_QUICKLIST_2);
        if has_nodes && self.elements == 0 { Err(Error::Empty) } else { sink.finish() }
    }
}

/// What the elements of a packed container are.
#[derive(Clone, Copy)]
enum Part {
    Element(Kind),
    Member,
    Field,
    /// Field, value, expiry.
    FieldTtl,
}

/// A packed container: listpack or ziplist.
trait Pack<'a> {
    fn count(&self) -> Option<u64>;
    fn step(&mut self) -> Result<Option<Elem<'a>>, Error>;

    /// The next element, which must exist.
    fn required(&mut self) -> Result<Elem<'a>, Error> {
        self.step()?.ok_or(Error::Corrupt)
    }
}

impl<'a> Pack<'a> for Listpack<'a> {
    fn count(&self) -> Option<u64> {
        Listpack::count(self)
    }

    fn step(&mut self) -> Result<Option<Elem<'a>>, Error> {
        Listpack::step(self)
    }
}

impl<'a> Pack<'a> for Ziplist<'a> {
    fn count(&self) -> Option<u64> {
        Ziplist::count(self)
    }

    fn step(&mut self) -> Result<Option<Elem<'a>>, Error> {
        Ziplist::step(self)
    }
}

/// A value that is one container, or no collection.
struct Loader<'r, 'a, S> {
    reader: &'r mut Reader<'a>,
    sink: &'r mut S,
    /// A string that is compressed.
    scratch: Vec<u8>,
}

impl<S: Sink> Loader<'_, '_, S> {
    fn listpack(&mut self, part: Part) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.scratch)?;
        load_packed(Listpack::new(bytes)?, bytes.len(), part, self.sink)
    }

    fn ziplist(&mut self, part: Part) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.scratch)?;
        load_packed(Ziplist::new(bytes)?, bytes.len(), part, self.sink)
    }

    fn intset(&mut self) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.scratch)?;
        self.sink.start(Kind::Set, bytes.len() as u64 / 2)?;
        let mut text = [0; I64_TEXT_MAX];
        let count = intset::read(bytes, |member| self.sink.element(format_i64(&mut text, member)))?;
        // No server has written an empty one, and Redis refuses it: it is no Error::Empty.
        if count == 0 { Err(Error::Corrupt) } else { Ok(()) }
    }

    fn zipmap(&mut self) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.scratch)?;
        self.sink.start(Kind::Hash, bytes.len() as u64 / 3)?;
        let count = zipmap::read(bytes, |field, value| self.sink.field(field, value, None))?;
        if count == 0 { Err(Error::Corrupt) } else { Ok(()) }
    }
}

/// A collection that is one packed container of `len` bytes.
fn load_packed<'a>(
    mut pack: impl Pack<'a>,
    len: usize,
    part: Part,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let (kind, width) = match part {
        Part::Element(kind) => (kind, 1),
        Part::Member => (Kind::Zset, 2),
        Part::Field => (Kind::Hash, 2),
        Part::FieldTtl => (Kind::Hash, 3),
    };
    let most = len as u64 / 2; // an element has two bytes at least
    sink.start(kind, pack.count().unwrap_or(most).min(most) / width)?;
    if unpack(&mut pack, part, sink)? == 0 { Err(Error::Empty) } else { Ok(()) }
}

/// Every element of a packed container; says how many of its kind there were.
fn unpack<'a>(pack: &mut impl Pack<'a>, part: Part, sink: &mut impl Sink) -> Result<u64, Error> {
    let (mut text, mut other) = ([0; I64_TEXT_MAX], [0; I64_TEXT_MAX]);
    let mut count = 0;
    while let Some(elem) = pack.step()? {
        match part {
            Part::Element(_) => sink.element(elem.bytes(&mut text))?,
            Part::Member => {
                let score = match pack.required()? {
                    Elem::Int(value) => value as f64,
                    Elem::Bytes(text) => base::double::parse(text).ok_or(Error::Corrupt)?,
                };
                sink.member(elem.bytes(&mut text), score)?;
            }
            Part::Field => {
                let value = pack.required()?;
                sink.field(elem.bytes(&mut text), value.bytes(&mut other), None)?;
            }
            Part::FieldTtl => {
                let (value, at) = (pack.required()?, pack.required()?);
                let at = at.int().and_then(|at| u64::try_from(at).ok()).ok_or(Error::Corrupt)?;
                sink.field(elem.bytes(&mut text), value.bytes(&mut other), expiry(at)?)?;
            }
        }
        count += 1;
    }
    Ok(count)
}

/// An expiry of Redis's types: 0 is none.
fn expiry(at: u64) -> Result<Option<UnixMs>, Error> {
    match i64::try_from(at) {
        Ok(0) => Ok(None),
        Ok(at) if at <= EXPIRE_MAX => Ok(Some(UnixMs(at))),
        _ => Err(Error::Corrupt),
    }
}

/// An expiry of Valkey's type: -1 is none.
fn signed_expiry(reader: &mut Reader<'_>) -> Result<Option<UnixMs>, Error> {
    match i64::from_le_bytes(reader.array()?) {
        -1 => Ok(None),
        at if at >= 0 => Ok(Some(UnixMs(at.min(EXPIRE_MAX)))),
        _ => Err(Error::Corrupt),
    }
}
