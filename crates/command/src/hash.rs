//! Commands on hashes.

mod change;
mod expire;
mod number;
mod random;
mod read;

pub use change::{hdel, hmset, hset, hsetnx};
pub use expire::{
    hexpire, hexpireat, hexpiretime, hgetdel, hgetex, hpersist, hpexpire, hpexpireat, hpexpiretime,
    hpttl, hsetex, httl,
};
pub use number::{hincrby, hincrbyfloat};
pub use random::hrandfield;
pub use read::{hexists, hget, hgetall, hkeys, hlen, hmget, hscan, hstrlen, hvals};

use keyspace::Entry;
use value::hash::{self, Hash};
use value::packed::{Elem, LISTPACK_MAX, PACKED_MAX};
use value::{Big, Encoding};

use crate::collection::Text;
use crate::ctx::Settings;

/// A hash as a reader sees it.
#[derive(Clone, Copy)]
enum View<'a> {
    Packed(&'a [u8]),
    Big(&'a Big, &'a Hash),
}

impl<'a> View<'a> {
    /// The hash in an entry, which holds one.
    #[inline]
    fn of(entry: Entry<'a>) -> Self {
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
    fn get(self, field: &[u8]) -> Option<Text<'a>> {
        match self {
            View::Packed(packed) => {
                hash::find(packed, Elem::of(field)).ok().map(|found| Text::Elem(found.value))
            }
            View::Big(_, hash) => hash.get(field).map(Text::Val),
        }
    }

    fn len(self) -> u64 {
        match self {
            View::Packed(packed) => hash::pairs(packed).count() as u64,
            View::Big(_, hash) => hash.len(),
        }
    }
}

/// The most bytes of a packed hash that had `encoding`, with so many fields and a longest text of
/// so many bytes among those that came: what is called listpack stays packed, and so in the order
/// of insertion.
fn packed_max(settings: &Settings, was: Encoding, fields: u64, longest: usize) -> usize {
    let may_be_listed = encoding(settings, was, fields, longest) == Encoding::Listpack;
    if may_be_listed { LISTPACK_MAX } else { PACKED_MAX }
}

/// How Redis stores a hash that had `encoding`, with so many fields and a longest text of so many
/// bytes among those that came.
fn encoding(settings: &Settings, was: Encoding, fields: u64, longest: usize) -> Encoding {
    let small = was == Encoding::Listpack
        && fields <= settings.hash_max_listpack_entries
        && longest as u64 <= settings.hash_max_listpack_value;
    if small { Encoding::Listpack } else { Encoding::Hashtable }
}
