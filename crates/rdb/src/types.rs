//! Names for the numbers: kinds of values, types on disk, versions and dialects.

pub use value::Kind;

/// The version of payloads that hold nothing newer: Redis 7.0 takes it, and all that came after.
pub const VERSION: u16 = 10;

/// The version of a stream with the active times of consumers (Redis 7.2).
pub const VERSION_ACTIVE_TIMES: u16 = 11;

/// The version of a hash with field expiry in Redis's types (7.4).
pub const VERSION_FIELD_TTL: u16 = 12;

/// The version of a hash with field expiry in Valkey's type (9.0).
pub const VERSION_VALKEY: u16 = 80;

/// Whose numbering the types above 21 follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Versions up to 12.
    #[default]
    Redis,
    /// Version 80.
    Valkey,
}

impl Dialect {
    /// The dialect of a version; `None` of one that is not known.
    pub const fn of(version: u16) -> Option<Self> {
        match version {
            0..=VERSION_FIELD_TTL => Some(Self::Redis),
            VERSION_VALKEY => Some(Self::Valkey),
            _ => None,
        }
    }
}

/// A string.
pub const STRING: u8 = 0;
/// A list: count, strings.
pub const LIST: u8 = 1;
/// A set: count, strings.
pub const SET: u8 = 2;
/// A sorted set: count, members with scores as text.
pub const ZSET: u8 = 3;
/// A hash: count, fields and values.
pub const HASH: u8 = 4;
/// A sorted set: count, members with scores as doubles.
pub const ZSET_2: u8 = 5;
/// A value of a module, before 5.0 was released: nobody else knows where it ends.
pub const MODULE_PRE: u8 = 6;
/// A value of a module.
pub const MODULE: u8 = 7;
/// A hash as a zipmap.
pub const HASH_ZIPMAP: u8 = 9;
/// A list as a ziplist.
pub const LIST_ZIPLIST: u8 = 10;
/// A set of integers.
pub const SET_INTSET: u8 = 11;
/// A sorted set as a ziplist.
pub const ZSET_ZIPLIST: u8 = 12;
/// A hash as a ziplist.
pub const HASH_ZIPLIST: u8 = 13;
/// A list as ziplists.
pub const LIST_QUICKLIST: u8 = 14;
/// A stream.
pub const STREAM: u8 = 15;
/// A hash as a listpack.
pub const HASH_LISTPACK: u8 = 16;
/// A sorted set as a listpack.
pub const ZSET_LISTPACK: u8 = 17;
/// A list as listpacks and single elements.
pub const LIST_QUICKLIST_2: u8 = 18;
/// A stream with what it counts (Redis 7.0).
pub const STREAM_2: u8 = 19;
/// A stream with the times at which consumers got something (Redis 7.2).
pub const STREAM_3: u8 = 21;
/// A set as a listpack (Redis 7.2).
pub const SET_LISTPACK: u8 = 20;
/// Valkey: a hash with the expiry of its fields.
pub const HASH_2: u8 = 22;
/// Redis before 7.4 was released: a hash with the expiry of its fields.
pub const HASH_METADATA_PRE: u8 = 22;
/// Redis before 7.4 was released: the same as a listpack.
pub const HASH_LISTPACK_EX_PRE: u8 = 23;
/// Redis 7.4: a hash with the expiry of its fields.
pub const HASH_METADATA: u8 = 24;
/// Redis 7.4: the same as a listpack.
pub const HASH_LISTPACK_EX: u8 = 25;

/// A node of type 18 that is one element.
pub const NODE_PLAIN: u64 = 1;
/// A node of type 18 that is a listpack.
pub const NODE_PACKED: u64 = 2;
