//! A set, to be read, whichever way it is stored.

use keyspace::{Encoding, Entry};
use value::Big;
use value::packed::{Elem, Packed};
use value::set::{Set, find};

use crate::asking::Held;

/// A set as a reader sees it.
#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    /// Its bytes; true if they are in the order of integers.
    Packed(&'a [u8], bool),
    Big(&'a Big, &'a Set),
}

impl<'a> View<'a> {
    /// A set apart from its key.
    pub fn held(held: &'a Held) -> Self {
        match (held, held.big()) {
            (Held::Packed(packed, encoding), _) => {
                View::Packed(packed, *encoding == Encoding::Intset)
            }
            (_, Some(big @ Big::Set(set))) => View::Big(big, set),
            _ => unreachable!("a set is held"),
        }
    }

    /// The set in an entry, which holds one.
    #[inline]
    pub fn of(entry: Entry<'a>) -> Self {
        match entry.packed() {
            Some(packed) => View::Packed(packed, entry.encoding() == Encoding::Intset),
            None => match entry.big() {
                Some(big @ Big::Set(set)) => View::Big(big, set),
                _ => unreachable!("the entry holds a set"),
            },
        }
    }

    #[inline]
    pub fn contains(self, member: &[u8]) -> bool {
        match self {
            View::Packed(packed, ordered) => find(packed, Elem::of(member), ordered).is_ok(),
            View::Big(_, set) => set.contains(member),
        }
    }

    pub fn len(self) -> u64 {
        match self {
            View::Packed(packed, _) => Packed::new(packed).count() as u64,
            View::Big(_, set) => set.len(),
        }
    }
}
