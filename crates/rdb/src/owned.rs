//! A value in plain vectors: a sink and a source.

use std::borrow::Cow;

use base::UnixMs;
use base::num::parse_i64;
use value::Stream;

use crate::{Error, Item, Kind, Shape, Sink, Source, restore};

/// Elements that room is reserved for in advance, at most.
const RESERVE_MAX: u64 = 1024;

/// Up to here collections are written packed by default: Redis's default thresholds.
const PACKED_COUNT_MAX: usize = 128;
const PACKED_LEN_MAX: usize = 64;
const INTSET_COUNT_MAX: usize = 512;

/// A field of a hash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field {
    /// Its name.
    pub name: Vec<u8>,
    /// What it holds.
    pub value: Vec<u8>,
    /// When it expires.
    pub expires: Option<UnixMs>,
}

/// A value. Collections are not empty, and members and fields are there once.
#[derive(Clone, Debug, PartialEq)]
pub enum Owned {
    /// Bytes.
    String(Vec<u8>),
    /// Elements in their order.
    List(Vec<Vec<u8>>),
    /// Members in any order.
    Set(Vec<Vec<u8>>),
    /// Members with their scores, in any order.
    Zset(Vec<(Vec<u8>, f64)>),
    /// Fields in any order.
    Hash(Vec<Field>),
    /// A stream.
    Stream(Stream),
}

impl Owned {
    /// The value of a payload.
    pub fn restore(payload: &[u8]) -> Result<Self, Error> {
        let mut builder = Builder::default();
        restore(payload, &mut builder)?;
        builder.value.ok_or(Error::Corrupt)
    }

    /// Sorts members and fields, which have no order, so that equal values compare as equal.
    pub fn sort(&mut self) {
        match self {
            Self::String(_) | Self::List(_) | Self::Stream(_) => {}
            Self::Set(members) => members.sort_unstable(),
            Self::Zset(members) => members.sort_unstable_by(|a, b| a.0.cmp(&b.0)),
            Self::Hash(fields) => fields.sort_unstable(),
        }
    }

    /// The same value, to be written in `shape`.
    pub const fn shaped(&self, shape: Shape) -> Shaped<'_> {
        Shaped { value: self, shape }
    }

    /// Whether a member or field is there twice.
    fn repeats(&self) -> bool {
        fn twice<'a>(names: impl Iterator<Item = &'a Vec<u8>>) -> bool {
            let mut names: Vec<&[u8]> = names.map(Vec::as_slice).collect();
            names.sort_unstable();
            names.windows(2).any(|two| two[0] == two[1])
        }
        match self {
            Self::String(_) | Self::List(_) | Self::Stream(_) => false,
            Self::Set(members) => twice(members.iter()),
            Self::Zset(members) => twice(members.iter().map(|(member, _)| member)),
            Self::Hash(fields) => twice(fields.iter().map(|field| &field.name)),
        }
    }
}

/// Builds an [`Owned`] from events.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    value: Option<Owned>,
}

impl Builder {
    /// The value; it is complete if the reader returned `Ok`.
    pub fn into_value(self) -> Option<Owned> {
        self.value
    }
}

impl Sink for Builder {
    fn string(&mut self, bytes: Cow<'_, [u8]>) -> Result<(), Error> {
        self.value = Some(Owned::String(bytes.into_owned()));
        Ok(())
    }

    fn start(&mut self, kind: Kind, about: u64) -> Result<(), Error> {
        let room = about.min(RESERVE_MAX) as usize;
        self.value = Some(match kind {
            Kind::String | Kind::Stream => return Err(Error::Refused),
            Kind::List => Owned::List(Vec::with_capacity(room)),
            Kind::Set => Owned::Set(Vec::with_capacity(room)),
            Kind::Zset => Owned::Zset(Vec::with_capacity(room)),
            Kind::Hash => Owned::Hash(Vec::with_capacity(room)),
        });
        Ok(())
    }

    fn element(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(Owned::List(all) | Owned::Set(all)) = &mut self.value else {
            return Err(Error::Refused);
        };
        all.push(bytes.to_vec());
        Ok(())
    }

    fn member(&mut self, member: &[u8], score: f64) -> Result<(), Error> {
        let Some(Owned::Zset(all)) = &mut self.value else { return Err(Error::Refused) };
        all.push((member.to_vec(), score));
        Ok(())
    }

    fn field(&mut self, field: &[u8], value: &[u8], at: Option<UnixMs>) -> Result<(), Error> {
        let Some(Owned::Hash(all)) = &mut self.value else { return Err(Error::Refused) };
        all.push(Field { name: field.to_vec(), value: value.to_vec(), expires: at });
        Ok(())
    }

    fn stream(&mut self, stream: Stream) -> Result<(), Error> {
        self.value = Some(Owned::Stream(stream));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Error> {
        match &self.value {
            Some(value) if !value.repeats() => Ok(()),
            _ => Err(Error::Refused),
        }
    }
}

impl Source for Owned {
    fn kind(&self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::Zset(_) => Kind::Zset,
            Self::Hash(_) => Kind::Hash,
            Self::Stream(_) => Kind::Stream,
        }
    }

    fn count(&self) -> u64 {
        (match self {
            Self::String(_) => 1,
            Self::List(all) | Self::Set(all) => all.len(),
            Self::Zset(all) => all.len(),
            Self::Hash(all) => all.len(),
            Self::Stream(stream) => stream.len() as usize,
        }) as u64
    }

    fn shape(&self) -> Shape {
        let count = self.count() as usize;
        let mut integers = count <= INTSET_COUNT_MAX;
        let mut short = count <= PACKED_COUNT_MAX;
        self.each(|item| match item {
            Item::Element(bytes) => integers &= parse_i64(bytes).is_some(),
            Item::Member(member, _) => short &= member.len() <= PACKED_LEN_MAX,
            Item::Field(field, value, _) => {
                short &= field.len().max(value.len()) <= PACKED_LEN_MAX;
            }
        });
        match self {
            Self::Set(_) if integers => Shape::Intset,
            Self::Zset(_) | Self::Hash(_) if short => Shape::Packed,
            _ => Shape::Plain,
        }
    }

    fn expires(&self) -> bool {
        matches!(self, Self::Hash(fields) if fields.iter().any(|field| field.expires.is_some()))
    }

    fn stream(&self) -> Option<&Stream> {
        if let Self::Stream(stream) = self { Some(stream) } else { None }
    }

    fn each(&self, mut item: impl FnMut(Item<'_>)) {
        match self {
            Self::Stream(_) => {}
            Self::String(bytes) => item(Item::Element(bytes)),
            Self::List(all) | Self::Set(all) => {
                for bytes in all {
                    item(Item::Element(bytes));
                }
            }
            Self::Zset(all) => {
                for (member, score) in all {
                    item(Item::Member(member, *score));
                }
            }
            Self::Hash(all) => {
                for field in all {
                    item(Item::Field(&field.name, &field.value, field.expires));
                }
            }
        }
    }
}

/// A value that is written in a chosen shape.
#[derive(Clone, Copy, Debug)]
pub struct Shaped<'a> {
    value: &'a Owned,
    shape: Shape,
}

impl Source for Shaped<'_> {
    fn kind(&self) -> Kind {
        self.value.kind()
    }

    fn count(&self) -> u64 {
        self.value.count()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn expires(&self) -> bool {
        self.value.expires()
    }

    fn stream(&self) -> Option<&Stream> {
        self.value.stream()
    }

    fn each(&self, item: impl FnMut(Item<'_>)) {
        self.value.each(item);
    }
}
