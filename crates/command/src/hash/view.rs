//! A hash, to be read, whichever way it is stored.

use keyspace::Entry;
use value::Big;
use value::hash::{self, Hash};
use value::packed::Elem;

use crate::asking::Held;
use crate::collection::Text;

/// A hash as a reader sees it.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Packed(&'a [u8]),
    Big(&'a Big, &'a Hash),
}

impl<'a> View<'a> {
    /// A hash apart from its key.
    pub fn held(held: &'a Held) -> Self {
        match (held, held.big()) {
            (Held::Packed(packed, _), _) => View::Packed(packed),
            (_, Some(big @ Big::Hash(hash))) => View::Big(big, hash),
            _ => unreachable!("a hash is held"),
        }
    }

    /// The hash in an entry, which holds one.
    #[inline]
    pub fn of(entry: Entry<'a>) -> Self {
        match entry.packed() {
            Some(packed) => View::Packed(packed),
            None => match entry.big() {
                Some(big @ Big::Hash(hash)) => View::Big(big, hash),
                _ => unreachable!("the entry holds a hash"),
            },
        }
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Text<'a>> {
        match self {
            View::Packed(packed) => {
                hash::find(packed, Elem::of(field)).ok().map(|found| Text::Elem(found.value))
            }
            View::Big(_, hash) => hash.get(field).map(Text::Val),
        }
    }

    pub fn len(self) -> u64 {
        match self {
            View::Packed(packed) => hash::pairs(packed).count() as u64,
            View::Big(_, hash) => hash.len(),
        }
    }
}
