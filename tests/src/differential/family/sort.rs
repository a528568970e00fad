//! SORT over lists, sets and sorted sets, with BY and GET patterns.

use super::{Family, Template, has, is};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (6, "RPUSH $k {$m}"),
    (3, "RPUSH|SADD $k {$c}"),
    (4, "SADD $k {$m}"),
    (4, "ZADD $k {$c+$m}"),
    (2, "RPUSH|SADD $k <$u>"),
    (6, "SET $x $c"),
    (3, "SET $x $m"),
    (4, "HSET $x f $c g $m"),
    (4, "SORT|SORT_RO $k [ASC|DESC] [LIMIT+$i+$c]"),
    (6, "SORT|SORT_RO $k ALPHA [ASC|DESC] [LIMIT+$i+$c]"),
    (
        8,
        "SORT|SORT_RO $k BY w_*|w_*->f|w_*->g|*|f*|w_*-> [ASC|DESC] [ALPHA] [LIMIT+$i+$c] [GET+#] [GET+w_*|GET+w_*->g|GET+x]",
    ),
    (3, "SORT|SORT_RO $k BY nosort [DESC] [GET+#] [GET+w_*]"),
    (4, "SORT $k [BY+w_*|BY+w_*->f] [LIMIT+$i+$c] [GET+#|GET+w_*] [DESC] STORE $k"),
    (3, "SORT $k ALPHA [LIMIT+$i+$c] [GET+#|GET+w_*] [DESC] STORE $k"),
    (2, "SORT $k BY nosort STORE $k"),
    (1, "SORT|SORT_RO $k {BY|GET|LIMIT|STORE|ALPHA|ASC|BOGUS} {$c}"),
    (3, "LRANGE $k 0 -1"),
    (2, "TYPE $k"),
];

/// The order of sets, and of elements with equal weight, is undetermined.
fn order(args: &[Vec<u8>]) -> Mode {
    if unsorted(args) || ties(args) { Mode::Unordered } else { Mode::Exact }
}

/// Whether the BY pattern has no `*`, so that SORT does not sort.
fn unsorted(args: &[Vec<u8>]) -> bool {
    args.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*'))
}

/// Whether elements may tie: equal numbers are ordered by their elements, texts are not.
fn ties(args: &[Vec<u8>]) -> bool {
    has(args, "BY") && has(args, "ALPHA")
}

/// SORT. A LIMIT on results without an order is undetermined.
pub const FAMILY: Family = Family {
    name: "sort",
    templates: TEMPLATES,
    replies: &[("SORT", Mode::By(order)), ("SORT_RO", Mode::By(order))],
    open: |args, _| {
        let sorts = is(args, "SORT") || is(args, "SORT_RO");
        sorts
            && ((unsorted(args) && has(args, "LIMIT"))
                || (ties(args) && (has(args, "LIMIT") || has(args, "STORE"))))
    },
    ..Family::BASE
};
