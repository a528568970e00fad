//! A list to be read, wherever it stands.

use keyspace::{Entry, Kind};
use resp::Reply;
use value::Big;
use value::list::{Item, Iter, IterBack, List};
use value::packed::{Elem, Packed, PackedIter, skip};

use crate::ctx::Ctx;
use crate::error::Error;

/// A list to be read.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    /// In its entry: positions are found by counting.
    Small(Packed<'a>),
    /// Outside.
    Big(&'a List),
}

impl<'a> View<'a> {
    /// The list of an entry that holds one.
    #[inline]
    pub fn of(entry: Entry<'a>) -> Self {
        match entry.packed() {
            Some(bytes) => Self::Small(Packed::new(bytes)),
            None => Self::Big(of_big(entry.big().expect("a list stands in its entry or outside"))),
        }
    }

    /// Elements.
    #[inline]
    pub fn len(self) -> u64 {
        match self {
            Self::Small(packed) => packed.count() as u64,
            Self::Big(list) => list.len(),
        }
    }

    /// The element at a position.
    pub fn get(self, at: u64) -> Option<Item<'a>> {
        match self {
            Self::Small(packed) => Elem::first(&packed.as_bytes()[offset(packed, at)..])
                .map(|(elem, _)| Item::Near(elem)),
            Self::Big(list) => list.get(at),
        }
    }

    /// The elements from a position on.
    pub fn iter_from(self, at: u64) -> Items<'a> {
        match self {
            Self::Small(packed) => Items::Small(packed.iter_at(offset(packed, at))),
            Self::Big(list) => Items::Big(list.iter_from(at)),
        }
    }

    /// All elements from the last one on.
    pub fn iter_back(self) -> ItemsBack<'a> {
        match self {
            Self::Small(packed) => ItemsBack::Small(packed, offsets(packed)),
            Self::Big(list) => ItemsBack::Big(list.iter_back_from(list.len())),
        }
    }
}

/// What is known to be a list.
#[inline]
pub(super) fn of_big(big: &Big) -> &List {
    match big {
        Big::List(list) => list,
        _ => unreachable!("the key holds a list"),
    }
}

/// As [`of_big`], to change.
#[inline]
pub(super) fn of_big_mut(big: &mut Big) -> &mut List {
    match big {
        Big::List(list) => list,
        _ => unreachable!("the key holds a list"),
    }
}

/// Where an element starts; the end of the buffer if there is none at this position.
pub(super) fn offset(packed: Packed<'_>, at: u64) -> usize {
    let bytes = packed.as_bytes();
    let mut offset = 0;
    for _ in 0..at {
        if offset == bytes.len() {
            break;
        }
        offset += skip(&bytes[offset..]);
    }
    offset
}

/// Where every element starts.
pub(super) fn offsets(packed: Packed<'_>) -> Vec<u16> {
    let bytes = packed.as_bytes();
    let (mut offset, mut all) = (0, Vec::new());
    while offset < bytes.len() {
        all.push(offset as u16);
        offset += skip(&bytes[offset..]);
    }
    all
}

/// Elements upwards.
pub(super) enum Items<'a> {
    Small(PackedIter<'a>),
    Big(Iter<'a>),
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Small(iter) => iter.next().map(Item::Near),
            Self::Big(iter) => iter.next(),
        }
    }
}

/// Elements downwards.
pub(super) enum ItemsBack<'a> {
    Small(Packed<'a>, Vec<u16>),
    Big(IterBack<'a>),
}

impl<'a> Iterator for ItemsBack<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Small(packed, starts) => {
                let start = usize::from(starts.pop()?);
                Elem::first(&packed.as_bytes()[start..]).map(|(elem, _)| Item::Near(elem))
            }
            Self::Big(iter) => iter.next(),
        }
    }
}

/// The list in argument `i`, to be read.
pub(super) fn read<'b, 'a>(
    ctx: &'b mut Ctx<'a, '_>,
    i: usize,
) -> Result<(Option<View<'b>>, &'b mut Reply<'a>), Error> {
    let (entry, reply) = ctx.read_reply(i, Kind::List)?;
    Ok((entry.map(View::of), reply))
}
