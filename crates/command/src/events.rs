//! The names and classes of keyspace events, as Redis has them.

use keyspace::{Event, EventClass};

macro_rules! events {
    ($($class:ident: $($name:ident = $text:literal),+;)+) => {$($(
        #[doc = concat!("`", $text, "`")]
        pub const $name: Event = Event::new(&(EventClass::$class, $text));
    )+)+};
}

events! {
    Generic:
        COPY_TO = "copy_to",
        EXPIRE = "expire",
        MOVE_FROM = "move_from",
        MOVE_TO = "move_to",
        PERSIST = "persist",
        RENAME_FROM = "rename_from",
        RENAME_TO = "rename_to",
        RESTORE = "restore";
    String:
        APPEND = "append",
        INCRBY = "incrby",
        INCRBYFLOAT = "incrbyfloat",
        PFADD = "pfadd",
        SET = "set",
        SETBIT = "setbit",
        SETRANGE = "setrange";
    List:
        LINSERT = "linsert",
        LPOP = "lpop",
        LPUSH = "lpush",
        LREM = "lrem",
        LSET = "lset",
        LTRIM = "ltrim",
        RPOP = "rpop",
        RPUSH = "rpush",
        SORTSTORE = "sortstore";
    Set:
        SADD = "sadd",
        SDIFFSTORE = "sdiffstore",
        SINTERSTORE = "sinterstore",
        SPOP = "spop",
        SREM = "srem",
        SUNIONSTORE = "sunionstore";
    Hash:
        HDEL = "hdel",
        HEXPIRE = "hexpire",
        HINCRBY = "hincrby",
        HINCRBYFLOAT = "hincrbyfloat",
        HPERSIST = "hpersist",
        HSET = "hset";
    Zset:
        GEORADIUSSTORE = "georadiusstore",
        GEOSEARCHSTORE = "geosearchstore",
        ZADD = "zadd",
        ZDIFFSTORE = "zdiffstore",
        ZINCR = "zincr",
        ZINTERSTORE = "zinterstore",
        ZPOPMAX = "zpopmax",
        ZPOPMIN = "zpopmin",
        ZRANGESTORE = "zrangestore",
        ZREM = "zrem",
        ZREMRANGEBYLEX = "zremrangebylex",
        ZREMRANGEBYRANK = "zremrangebyrank",
        ZREMRANGEBYSCORE = "zremrangebyscore",
        ZUNIONSTORE = "zunionstore";
    Stream:
        XADD = "xadd",
        XDEL = "xdel",
        XGROUP_CREATE = "xgroup-create",
        XGROUP_CREATECONSUMER = "xgroup-createconsumer",
        XGROUP_DELCONSUMER = "xgroup-delconsumer",
        XGROUP_DESTROY = "xgroup-destroy",
        XGROUP_SETID = "xgroup-setid",
        XSETID = "xsetid",
        XTRIM = "xtrim";
}
