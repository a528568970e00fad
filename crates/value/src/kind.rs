//! What kinds of values there are, and the encodings that Redis names.

/// What kind of value a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A string.
    String = 0,
    /// A list.
    List = 1,
    /// A set.
    Set = 2,
    /// A sorted set.
    Zset = 3,
    /// A hash.
    Hash = 4,
    /// A stream.
    Stream = 5,
}

impl Kind {
    /// All kinds, by their number.
    pub const ALL: [Kind; 6] =
        [Kind::String, Kind::List, Kind::Set, Kind::Zset, Kind::Hash, Kind::Stream];

    /// What the TYPE command says.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::Zset => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
        }
    }

    /// The kind of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| name.eq_ignore_ascii_case(kind.name().as_bytes()))
    }
}

/// What `OBJECT ENCODING` says of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// A string: a 64-bit integer.
    Int = 0,
    /// A string: a short text.
    Embstr = 1,
    /// A string: a long text, or one that was changed in place.
    Raw = 2,
    /// A small collection of any kind.
    Listpack = 3,
    /// A list that is not small.
    Quicklist = 4,
    /// A small set of integers.
    Intset = 5,
    /// A set or a hash that is not small.
    Hashtable = 6,
    /// A sorted set that is not small.
    Skiplist = 7,
    /// A stream.
    Stream = 8,
}

impl Encoding {
    /// All encodings, by their number.
    pub const ALL: [Encoding; 9] = [
        Encoding::Int,
        Encoding::Embstr,
        Encoding::Raw,
        Encoding::Listpack,
        Encoding::Quicklist,
        Encoding::Intset,
        Encoding::Hashtable,
        Encoding::Skiplist,
        Encoding::Stream,
    ];

    /// Redis's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Embstr => "embstr",
            Self::Raw => "raw",
            Self::Listpack => "listpack",
            Self::Quicklist => "quicklist",
            Self::Intset => "intset",
            Self::Hashtable => "hashtable",
            Self::Skiplist => "skiplist",
            Self::Stream => "stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_kinds_and_encodings_are_indexes() {
        assert!(Kind::ALL.iter().enumerate().all(|(n, kind)| *kind as usize == n));
        assert!(Encoding::ALL.iter().enumerate().all(|(n, encoding)| *encoding as usize == n));
    }
}
