//! Commands on keys of any type.

use super::{Family, Template, has, is};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (8, "DEL|UNLINK {$k}"),
    (6, "EXISTS|TOUCH {$k}"),
    (4, "TYPE $k"),
    (6, "TTL|PTTL|EXPIRETIME|PEXPIRETIME $k"),
    (6, "EXPIRE $k $s [NX|XX|GT|LT]"),
    (6, "PEXPIRE $k $ms [NX|XX|GT|LT]"),
    (5, "EXPIREAT $k $S [NX|XX|GT|LT]"),
    (5, "PEXPIREAT $k $MS [NX|XX|GT|LT]"),
    (2, "EXPIRE|PEXPIRE $k $s {NX|XX|GT|LT|ZZ}"),
    (4, "PERSIST $k"),
    (6, "RENAME|RENAMENX $k $k"),
    (6, "COPY $k $k [DB+$d] [REPLACE]"),
    (1, "COPY $k $k {DB+$d|REPLACE|BOGUS}"),
    (5, "MOVE $k $d"),
    (4, "KEYS *|?|[a-c]|{t}*|\\*|[^a]|a*|*b*|h[e-|**a"),
    (3, "RANDOMKEY"),
    (3, "SCAN 0 COUNT 100000 [MATCH+*] [TYPE+string|TYPE+list]"),
    (1, "SCAN x|0|-1 COUNT|MATCH|TYPE|BOGUS $n"),
    (3, "OBJECT ENCODING $k"),
    (1, "OBJECT REFCOUNT|FREQ|HELP|NOSUCH [$k]"),
];

/// RANDOMKEY and scans see keys that are about to expire, and a reference count tells how a value
/// is shared inside the server.
pub const FAMILY: Family = Family {
    name: "generic",
    templates: TEMPLATES,
    replies: &[
        ("KEYS", Mode::Unordered),
        ("SCAN", Mode::Scan),
        ("RANDOMKEY", Mode::Kind),
        ("TTL", Mode::Time { unit_ms: 1000 }),
        ("EXPIRETIME", Mode::Time { unit_ms: 1000 }),
        ("PTTL", Mode::Time { unit_ms: 1 }),
        ("PEXPIRETIME", Mode::Time { unit_ms: 1 }),
    ],
    open: |args, expiring| {
        (is(args, "OBJECT") && has(args, "REFCOUNT"))
            || (expiring && (is(args, "SCAN") || is(args, "RANDOMKEY")))
    },
    ..Family::BASE
};
