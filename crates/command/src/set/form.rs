//! How a set is stored, and what OBJECT ENCODING calls it.

use keyspace::Encoding;
use value::packed::{Elem, LISTPACK_MAX, PACKED_INTS_MAX, PACKED_MAX};

use crate::ctx::Settings;

/// The most bytes of a packed set with this encoding. A set that Redis calls intset must stay
/// packed to be replied in ascending order, up to the default of `set-max-intset-entries`; one that
/// it calls listpack, in the order of insertion.
pub(super) fn packed_max(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Intset => PACKED_INTS_MAX,
        Encoding::Listpack => LISTPACK_MAX,
        _ => PACKED_MAX,
    }
}

/// What a set is called as a tree, whose order is not that of a listpack.
pub(super) fn tree_encoding(encoding: Encoding) -> Encoding {
    if encoding == Encoding::Listpack { Encoding::Hashtable } else { encoding }
}

/// How Redis stores a set: what of it decides.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub encoding: Encoding,
}

impl Form {
    /// A set of nothing.
    pub const NEW: Form = Form { encoding: Encoding::Intset };

    /// Called before `members` members are added to a set, which is new or not. As in Redis 7.2,
    /// the set becomes a hashtable if there were too many, all of them counted as new. A new set
    /// which is too large only for an intset is a listpack from the start.
    pub fn expect(&mut self, settings: &Settings, is_new: bool, first: &[u8], members: u64) {
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

    /// Called for each new member; `members` is their number with this one.
    #[inline]
    pub fn add(&mut self, settings: &Settings, member: Elem<'_>, members: u64) {
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
