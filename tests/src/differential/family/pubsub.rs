//! Publish and subscribe over several connections: every connection is compared with everything
//! that it receives, in order.

use super::{Family, Template};

const TEMPLATES: &[Template] = &[
    (12, "SUBSCRIBE {$h}"),
    (8, "PSUBSCRIBE {$q}"),
    (6, "SSUBSCRIBE {$h}"),
    (4, "UNSUBSCRIBE [$h] [$h]"),
    (4, "PUNSUBSCRIBE [$q] [$q]"),
    (3, "SUNSUBSCRIBE [$h] [$h]"),
    (24, "PUBLISH $h $w"),
    (2, "PUBLISH $h $v"),
    (8, "SPUBLISH $h $w"),
    (3, "PUBSUB CHANNELS|SHARDCHANNELS [$q]"),
    (4, "PUBSUB NUMSUB|SHARDNUMSUB [$h] [$h]"),
    (2, "PUBSUB NUMPAT"),
    (1, "PUBSUB [BOGUS|NUMPAT|CHANNELS] [$h] [$h]"),
    (3, "PING [$v]"),
    (2, "GET $k"),
    (2, "SET $k $m"),
    (1, "INCR $k"),
    (1, "ECHO $v"),
    (1, "CLIENT GETNAME"),
    (1, "SELECT $d"),
    (5, "HELLO 3"),
    (2, "HELLO 2"),
    (3, "RESET"),
];

/// Its sequences have only its own commands and transactions.
pub const FAMILY: Family =
    Family { name: "pubsub", gathers: true, templates: TEMPLATES, ..Family::BASE };
