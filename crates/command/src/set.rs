//! Commands on sets.

mod algebra;
mod change;
mod few;
mod merge;
mod pop;
mod random;
mod read;
mod store;

pub use algebra::{card_keys, sdiff, sdiffcard, sinter, sintercard, sunion, sunioncard};
pub use change::{sadd, smove, srem};
pub use random::{spop, srandmember};
pub use read::{scard, sismember, smembers, smismember, sscan};
pub use store::{sdiffstore, sinterstore, sunionstore};

use keyspace::{Encoding, Entry};
use value::Big;
use value::packed::{Elem, LISTPACK_MAX, PACKED_INTS_MAX, PACKED_MAX, Packed};
use value::set::{Set, find};

use crate::ctx::Settings;

/// A set as a reader sees it.
#[derive(Clone, Copy)]
enum View<'a> {
    /// Its bytes; true if they are in the order of integers.
    Packed(&'a [u8], bool),
    Big(&'a Big, &'a Set),
}

impl<'a> View<'a> {
    /// The set in an entry, which holds one.
    #[inline]
    fn of(entry: Entry<'a>) -> Self {
        match entry.packed() {
            Some(packed) => View::Packed(packed, entry.encoding() == Encoding::Intset),
            None => match entry.big() {
                Some(big @ Big::Set(set)) => View::Big(big, set),
                _ => unreachable!("the entry holds a set"),
            },
        }
    }

    #[inline]
    fn contains(self, member: &[u8]) -> bool {
        match self {
            View::Packed(packed, ordered) => find(packed, Elem::of(member), ordered).is_ok(),
            View::Big(_, set) => set.contains(member),
        }
    }

    fn len(self) -> u64 {
        match self {
            View::Packed(packed, _) => Packed::new(packed).count() as u64,
            View::Big(_, set) => set.len(),
        }
    }
}

/// The most bytes of a packed set that is called so: what is called intset stays packed, and so in
/// order, up to the default of `set-max-intset-entries`, and what is called listpack in the order
/// of insertion.
fn packed_max(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Intset => PACKED_INTS_MAX,
        Encoding::Listpack => LISTPACK_MAX,
        _ => PACKED_MAX,
    }
}

/// What a set is called as a tree, whose order is not that of a listpack.
fn tree_encoding(encoding: Encoding) -> Encoding {
    if encoding == Encoding::Listpack { Encoding::Hashtable } else { encoding }
}

/// How Redis stores a set: what of it decides.
#[derive(Clone, Copy)]
struct Form {
    encoding: Encoding,
}

impl Form {
    /// A set of nothing.
    const NEW: Form = Form { encoding: Encoding::Intset };

    /// So many members come to a set, which is new or not. As Redis 7.2: where they would be too
    /// many, were they all new, it is a hashtable; a new one that would be too many for an intset
    /// alone is a listpack from the start.
    fn expect(&mut self, settings: &Settings, is_new: bool, first: &[u8], members: u64) {
        let fits_intset = members <= settings.set_max_intset_entries;
        let fits_listpack = members <= settings.set_max_listpack_entries;
        let fits = match self.encoding {
            Encoding::Intset if is_new => {
                fits_listpack || fits_intset && matches!(Elem::of(first), Elem::Int(_))
            }
            Encoding::Intset => fits_intset,
            _ => fits_listpack,
        };
        if !fits {
            self.encoding = Encoding::Hashtable;
        } else if is_new && !fits_intset {
            self.encoding = Encoding::Listpack;
        }
    }

    /// After a member came that was not there, as one of so many.
    #[inline]
    fn add(&mut self, settings: &Settings, member: Elem<'_>, members: u64) {
        if self.encoding == Encoding::Hashtable {
            return;
        }
        let short = member.len() as u64 <= settings.set_max_listpack_value;
        let listed = members <= settings.set_max_listpack_entries;
        self.encoding = match (self.encoding, member) {
            (Encoding::Intset, Elem::Int(_)) if members <= settings.set_max_intset_entries => {
                Encoding::Intset
            }
            _ if listed && short => Encoding::Listpack,
            _ => Encoding::Hashtable,
        };
    }
}
