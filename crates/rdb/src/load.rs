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
    let mut loader = Loader { reader, sink, first: Vec::new(), second: Vec::new() };
    match id {
        types::STRING => {
            let text = load_string(loader.reader)?;
            return loader.sink.string(text);
        }
        types::STREAM | types::STREAM_2 | types::STREAM_3 => {
            let stream = crate::stream::load(id, loader.reader)?;
            return loader.sink.stream(stream);
        }
        types::LIST => loader.strings(Kind::List),
        types::SET => loader.strings(Kind::Set),
        types::ZSET => loader.scored(1, text_score),
        types::ZSET_2 => loader.scored(8, binary_score),
        types::HASH => loader.fields(2, |_| Ok(None), |_| Ok(None)),
        types::HASH_ZIPMAP => loader.zipmap(),
        types::LIST_ZIPLIST => loader.ziplist(Part::Element(Kind::List)),
        types::SET_INTSET => loader.intset(),
        types::ZSET_ZIPLIST => loader.ziplist(Part::Member),
        types::HASH_ZIPLIST => loader.ziplist(Part::Field),
        types::LIST_QUICKLIST => loader.nodes(false),
        types::HASH_LISTPACK => loader.listpack(Part::Field),
        types::ZSET_LISTPACK => loader.listpack(Part::Member),
        types::LIST_QUICKLIST_2 => loader.nodes(true),
        types::SET_LISTPACK => loader.listpack(Part::Element(Kind::Set)),
        _ => loader.expiring(id, dialect),
    }?;
    sink.finish()
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

struct Loader<'r, 'a, S> {
    reader: &'r mut Reader<'a>,
    sink: &'r mut S,
    /// Scratch buffers for strings that are compressed, or integers.
    first: Vec<u8>,
    second: Vec<u8>,
}

impl<S: Sink> Loader<'_, '_, S> {
    fn strings(&mut self, kind: Kind) -> Result<(), Error> {
        let count = self.reader.count(1)?;
        self.sink.start(kind, count)?;
        for _ in 0..count {
            self.sink.element(self.reader.string(&mut self.first)?)?;
        }
        Ok(())
    }

    fn scored(
        &mut self,
        least: usize,
        read: impl Fn(&mut Reader<'_>) -> Result<f64, Error>,
    ) -> Result<(), Error> {
        let count = self.reader.count(1 + least)?;
        self.sink.start(Kind::Zset, count)?;
        for _ in 0..count {
            let member = self.reader.string(&mut self.first)?;
            let score = read(self.reader)?;
            if score.is_nan() {
                return Err(Error::Corrupt);
            }
            self.sink.member(member, score)?;
        }
        Ok(())
    }

    /// Fields of at least `least` bytes; the expiry stands before the field or behind the value.
    fn fields(
        &mut self,
        least: usize,
        before: impl Fn(&mut Reader<'_>) -> Result<Option<UnixMs>, Error>,
        behind: impl Fn(&mut Reader<'_>) -> Result<Option<UnixMs>, Error>,
    ) -> Result<(), Error> {
        let count = self.reader.count(least)?;
        self.sink.start(Kind::Hash, count)?;
        for _ in 0..count {
            let at = before(self.reader)?;
            let field = self.reader.string(&mut self.first)?;
            let value = self.reader.string(&mut self.second)?;
            let at = at.or(behind(self.reader)?);
            self.sink.field(field, value, at)?;
        }
        Ok(())
    }

    /// The types of hashes whose fields expire.
    fn expiring(&mut self, id: u8, dialect: Dialect) -> Result<(), Error> {
        match (dialect, id) {
            (Dialect::Valkey, types::HASH_2) => self.fields(10, |_| Ok(None), signed_expiry),
            (Dialect::Redis, types::HASH_METADATA_PRE) => {
                self.fields(3, |reader| expiry(reader.length()?), |_| Ok(None))
            }
            (Dialect::Redis, types::HASH_LISTPACK_EX_PRE) => self.listpack(Part::FieldTtl),
            (Dialect::Redis, types::HASH_METADATA) => {
                let least = u64::from_le_bytes(self.reader.array()?);
                let relative = |reader: &mut Reader<'_>| match reader.length()? {
                    0 => Ok(None),
                    more => expiry(least.checked_add(more - 1).ok_or(Error::Corrupt)?),
                };
                self.fields(3, relative, |_| Ok(None))
            }
            (Dialect::Redis, types::HASH_LISTPACK_EX) => {
                // The earliest expiry, which may be out of date; every field has its own.
                self.reader.array::<8>()?;
                self.listpack(Part::FieldTtl)
            }
            _ => Err(Error::Type(id)),
        }
    }

    fn listpack(&mut self, part: Part) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.first)?;
        load_packed(Listpack::new(bytes)?, bytes.len(), part, self.sink)
    }

    fn ziplist(&mut self, part: Part) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.first)?;
        load_packed(Ziplist::new(bytes)?, bytes.len(), part, self.sink)
    }

    /// A list of nodes: ziplists, or listpacks and single elements behind the number of their form.
    fn nodes(&mut self, has_forms: bool) -> Result<(), Error> {
        let count = self.reader.count(1 + usize::from(has_forms))?;
        self.sink.start(Kind::List, count)?;
        let mut elements = 0;
        for _ in 0..count {
            let form = if has_forms { Some(self.reader.length()?) } else { None };
            let bytes = self.reader.string(&mut self.first)?;
            let part = Part::Element(Kind::List);
            elements += match form {
                None => unpack(&mut Ziplist::new(bytes)?, part, self.sink)?,
                Some(types::NODE_PACKED) => unpack(&mut Listpack::new(bytes)?, part, self.sink)?,
                Some(types::NODE_PLAIN) => {
                    self.sink.element(bytes)?;
                    1
                }
                Some(_) => return Err(Error::Corrupt),
            };
        }
        if elements == 0 { Err(Error::Empty) } else { Ok(()) }
    }

    fn intset(&mut self) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.first)?;
        self.sink.start(Kind::Set, bytes.len() as u64 / 2)?;
        let mut text = [0; I64_TEXT_MAX];
        let count = intset::read(bytes, |member| self.sink.element(format_i64(&mut text, member)))?;
        if count == 0 { Err(Error::Empty) } else { Ok(()) }
    }

    fn zipmap(&mut self) -> Result<(), Error> {
        let bytes = self.reader.string(&mut self.first)?;
        self.sink.start(Kind::Hash, bytes.len() as u64 / 3)?;
        let count = zipmap::read(bytes, |field, value| self.sink.field(field, value, None))?;
        if count == 0 { Err(Error::Empty) } else { Ok(()) }
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

fn text_score(reader: &mut Reader<'_>) -> Result<f64, Error> {
    reader.text_double()
}

fn binary_score(reader: &mut Reader<'_>) -> Result<f64, Error> {
    reader.double()
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
        at if at >= 0 => Ok(Some(UnixMs(at))),
        _ => Err(Error::Corrupt),
    }
}
