//! A value as it is stored, walked part by part: what DUMP writes and SORT sorts.

use base::UnixMs;
use keyspace::{Entry, Kind};
use rdb::{Item, Shape, Source};
use value::keyed::Val;
use value::packed::{Elem, Packed};
use value::zset::small;
use value::{Big, Encoding, IntText, Str, Stream};

/// A value in its entry, or captured from it.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    kind: Kind,
    encoding: Encoding,
    form: Form<'a>,
}

#[derive(Clone, Copy)]
enum Form<'a> {
    Text(Str<'a>),
    Packed(&'a [u8]),
    Big(&'a Big),
}

impl<'a> Stored<'a> {
    /// What an entry holds.
    pub fn of(entry: Entry<'a>) -> Self {
        let form = match (entry.packed(), entry.big()) {
            (Some(packed), _) => Form::Packed(packed),
            (None, Some(big)) => Form::Big(big),
            (None, None) => Form::Text(entry.str()),
        };
        Self { kind: entry.kind(), encoding: entry.encoding(), form }
    }

    /// A small collection that was copied, and how it is called.
    pub fn packed(kind: Kind, bytes: &'a [u8], encoding: Encoding) -> Self {
        Self { kind, encoding, form: Form::Packed(bytes) }
    }

    /// A collection that was captured, and how it is called.
    pub fn captured(big: &'a Big, encoding: Encoding) -> Self {
        Self { kind: big.kind(), encoding, form: Form::Big(big) }
    }

    /// A string.
    pub fn text(text: Str<'a>) -> Self {
        Self { kind: Kind::String, encoding: Encoding::Raw, form: Form::Text(text) }
    }

    /// Elements, members or fields; 1 for a string.
    pub fn len(&self) -> u64 {
        match self.form {
            Form::Text(_) => 1,
            Form::Big(big) => big.len(),
            Form::Packed(packed) => {
                let elements = Packed::new(packed).count() as u64;
                if matches!(self.kind, Kind::Hash | Kind::Zset) { elements / 2 } else { elements }
            }
        }
    }

    /// Calls `f` with so many parts from the one at `from` on, in the order of the value.
    pub fn each_from(&self, from: u64, count: u64, mut f: impl FnMut(Item<'_>)) {
        self.each_while(from, count, |item| {
            f(item);
            true
        });
    }

    /// As [`Stored::each_from`], until `f` says `false`. To begin is O(log n) in a big collection.
    pub fn each_while(&self, from: u64, count: u64, mut f: impl FnMut(Item<'_>) -> bool) {
        let (skip, take) = (from as usize, count as usize);
        let (mut text, mut second) = (IntText::default(), IntText::default());
        let _ = match self.form {
            Form::Text(Str::Int(number)) => f(Item::Element(IntText::new(number).as_bytes())),
            Form::Text(Str::Bytes(bytes)) => f(Item::Element(bytes)),
            Form::Text(Str::Blob(blob)) => f(Item::Element(&blob.to_slice())),
            Form::Packed(packed) => {
                let mut elements = Packed::new(packed).iter();
                match self.kind {
                    Kind::Zset => small::pairs(packed)
                        .skip(skip)
                        .take(take)
                        .all(|pair| f(Item::Member(pair.member.bytes(&mut text), pair.score))),
                    Kind::Hash => pairs(elements).skip(skip).take(take).all(|(name, value)| {
                        f(Item::Field(name.bytes(&mut text), value.bytes(&mut second), None))
                    }),
                    _ => elements
                        .by_ref()
                        .skip(skip)
                        .take(take)
                        .all(|element| f(Item::Element(element.bytes(&mut text)))),
                }
            }
            Form::Big(Big::List(list)) => {
                list.iter_from(from).take(take).all(|item| f(Item::Element(&item.bytes(&mut text))))
            }
            Form::Big(Big::Set(set)) => {
                set.iter_at(from).take(take).all(|member| f(Item::Element(member)))
            }
            Form::Big(Big::Zset(zset)) => zset
                .iter_from(from)
                .take(take)
                .all(|scored| f(Item::Member(scored.member, scored.score))),
            Form::Big(Big::Stream(_)) => true,
            Form::Big(Big::Hash(hash)) => {
                let expires = hash.expires();
                hash.iter_at(from).take(take).all(|(name, value)| {
                    let at = if expires { hash.expiry(name).map(UnixMs) } else { None };
                    f(Item::Field(name, &value.bytes(), at))
                })
            }
        };
    }

    /// Calls `f` with so many elements or members, as [`Stored::each_while`] does; those of a list
    /// which have an allocation of their own are passed as references to it.
    pub fn elements_while(&self, from: u64, count: u64, mut f: impl FnMut(Val<'_>) -> bool) {
        let Form::Big(Big::List(list)) = self.form else {
            return self.each_while(from, count, |item| {
                let (Item::Element(text) | Item::Member(text, _) | Item::Field(text, ..)) = item;
                f(Val::Bytes(text))
            });
        };
        let mut text = IntText::default();
        list.iter_from(from).take(count as usize).all(|item| match item {
            value::list::Item::Near(elem) => f(Val::Bytes(elem.bytes(&mut text))),
            value::list::Item::Far(blob) => f(Val::Blob(blob)),
        });
    }

    /// Calls `f` with the value of a field of a hash, if it is there.
    pub fn field<R>(&self, name: &[u8], f: impl FnOnce(Option<Val<'_>>) -> R) -> R {
        match self.form {
            Form::Packed(packed) if self.kind == Kind::Hash => {
                let name = Elem::of(name);
                let found = pairs(Packed::new(packed).iter()).find(|(field, _)| *field == name);
                let mut text = IntText::default();
                f(found.map(|(_, value)| Val::Bytes(value.bytes(&mut text))))
            }
            Form::Big(Big::Hash(hash)) => f(hash.get(name)),
            _ => f(None),
        }
    }
}

impl Source for Stored<'_> {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn count(&self) -> u64 {
        self.len()
    }

    fn shape(&self) -> Shape {
        match self.encoding {
            Encoding::Listpack => Shape::Packed,
            Encoding::Intset => Shape::Intset,
            _ => Shape::Plain,
        }
    }

    fn expires(&self) -> bool {
        matches!(self.form, Form::Big(Big::Hash(hash)) if hash.expires())
    }

    fn stream(&self) -> Option<&Stream> {
        if let Form::Big(Big::Stream(stream)) = self.form { Some(stream) } else { None }
    }

    fn each(&self, item: impl FnMut(Item<'_>)) {
        self.each_from(0, u64::MAX, item);
    }
}

/// Elements by twos: fields with values, members with scores.
pub(super) fn pairs<'a>(
    mut elements: impl Iterator<Item = Elem<'a>>,
) -> impl Iterator<Item = (Elem<'a>, Elem<'a>)> {
    std::iter::from_fn(move || elements.next().zip(elements.next()))
}
