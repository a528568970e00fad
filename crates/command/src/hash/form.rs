//! How a hash is stored, and what OBJECT ENCODING calls it.

use value::Encoding;
use value::packed::{LISTPACK_MAX, PACKED_MAX};

use crate::ctx::Settings;

/// The most bytes of a packed hash that has the encoding `was` and to which `fields` fields are
/// added, whose longest text has `longest` bytes. A hash that Redis calls listpack must stay packed
/// to be replied in the order of insertion.
pub(super) fn packed_max(settings: &Settings, was: Encoding, fields: u64, longest: usize) -> usize {
    let may_be_listed = encoding(settings, was, fields, longest) == Encoding::Listpack;
    if may_be_listed { LISTPACK_MAX } else { PACKED_MAX }
}

/// How Redis stores a hash that had the encoding `was` and has `fields` fields; the longest added
/// text has `longest` bytes.
pub(super) fn encoding(
    settings: &Settings,
    was: Encoding,
    fields: u64,
    longest: usize,
) -> Encoding {
    let small = was == Encoding::Listpack
        && fields <= settings.hash_max_listpack_entries
        && longest as u64 <= settings.hash_max_listpack_value;
    if small { Encoding::Listpack } else { Encoding::Hashtable }
}
