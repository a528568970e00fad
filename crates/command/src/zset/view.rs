//! The sorted set that an entry holds.

use keyspace::Entry;
use value::zset::View;
use value::{Big, Zset};

use crate::asking::Held;

/// The sorted set that an entry holds.
#[inline]
pub(crate) fn view_of(entry: Entry<'_>) -> View<'_> {
    match entry.packed() {
        Some(bytes) => View::Small(bytes),
        None => View::Big(big_of(entry.big().expect("a collection is packed or big"))),
    }
}

/// A sorted set apart from its key.
pub(crate) fn view_of_held(held: &Held) -> View<'_> {
    match held {
        Held::Packed(bytes, _) => View::Small(bytes),
        Held::Big(big) => View::Big(big_of(big)),
    }
}

pub(super) fn big_of(big: &Big) -> &Zset {
    match big {
        Big::Zset(zset) => zset,
        _ => unreachable!("the kind was checked"),
    }
}

pub(super) fn big_mut(big: &mut Big) -> &mut Zset {
    match big {
        Big::Zset(zset) => zset,
        _ => unreachable!("the kind was checked"),
    }
}
