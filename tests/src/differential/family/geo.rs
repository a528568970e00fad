//! Geospatial commands.

use super::{Family, Template, has, is};
use crate::differential::judge::Mode;

const TEMPLATES: &[Template] = &[
    (14, "GEOADD $k {$g}"),
    (2, "GEOADD $k [NX|XX] [CH] {$g}"),
    (1, "GEOADD $k $p $m"),
    (1, "GEOADD $k {NX|XX|CH|GT} {$g}"),
    (3, "GEOADD $k <$g>"),
    (5, "GEODIST $k $m $m [m|km|ft|mi|KM|x]"),
    (4, "GEOHASH|GEOPOS $k {$m}"),
    (
        6,
        "GEOSEARCH $k FROMMEMBER $m BYRADIUS $r m|km|ft|mi [ASC|DESC] [COUNT+$c] [WITHCOORD] [WITHDIST] [WITHHASH]",
    ),
    (
        6,
        "GEOSEARCH $k FROMLONLAT $p BYRADIUS $r m|km|ft|mi [ASC|DESC] [COUNT+$c] [WITHCOORD] [WITHDIST]",
    ),
    (6, "GEOSEARCH $k FROMLONLAT $p BYBOX $r $r km|mi [ASC|DESC] [COUNT+$c] [WITHDIST]"),
    (3, "GEOSEARCH $k FROMMEMBER $m BYBOX $r $r km|m|x [ASC|DESC] [COUNT+100000+ANY]"),
    (
        1,
        "GEOSEARCH $k {FROMMEMBER+$m|FROMLONLAT+$p|BYBOX+$r+$r+km|BYRADIUS+$r+km} {COUNT+$c|ASC|STORE+$k|WITHDIST}",
    ),
    (
        4,
        "GEOSEARCHSTORE $k $k FROMLONLAT $p BYRADIUS $r m|km|ft|mi [ASC|DESC] [COUNT+$c] [STOREDIST]",
    ),
    (3, "GEOSEARCHSTORE $k $k FROMMEMBER $m BYBOX $r $r km|mi [COUNT+$c] [STOREDIST|WITHDIST]"),
    (3, "GEORADIUS $k $p $r m|km|ft|mi [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT+$c] [ASC|DESC]"),
    (2, "GEORADIUS $k $p $r km [COUNT+$c] [ASC|DESC] STORE|STOREDIST $k"),
    (
        2,
        "GEORADIUSBYMEMBER $k $m $r km|mi [WITHDIST] [COUNT+$c] [ASC|DESC] [STORE+$k|STOREDIST+$k]",
    ),
    (2, "GEORADIUS_RO $k $p $r km [WITHDIST] [COUNT+$c] [ASC|DESC] [STORE+$k]"),
    (2, "GEORADIUSBYMEMBER_RO $k $m $r km [WITHDIST] [COUNT+$c] [ASC|DESC] [STORE+$k]"),
    (2, "ZREM $k {$m}"),
    (2, "ZSCORE $k $m"),
    (2, "ZCARD $k"),
];

/// Without ASC or DESC the order of results is undetermined.
fn order(args: &[Vec<u8>]) -> Mode {
    let ordered = ["ASC", "DESC", "COUNT"].iter().any(|word| has(args, word));
    if ordered && !has(args, "ANY") { Mode::Exact } else { Mode::Unordered }
}

/// Geospatial commands. Which members `ANY` returns is undetermined unless it may return all.
pub const FAMILY: Family = Family {
    name: "geo",
    templates: TEMPLATES,
    replies: &[
        ("GEOSEARCH", Mode::By(order)),
        ("GEORADIUS", Mode::By(order)),
        ("GEORADIUS_RO", Mode::By(order)),
        ("GEORADIUSBYMEMBER", Mode::By(order)),
        ("GEORADIUSBYMEMBER_RO", Mode::By(order)),
    ],
    open: |args, _| {
        args.first().is_some_and(|name| name.to_ascii_uppercase().starts_with(b"GEO"))
            && has(args, "ANY")
            && !is_all(args)
    },
    ..Family::BASE
};

fn is_all(args: &[Vec<u8>]) -> bool {
    has(args, "100000") && is(args, "GEOSEARCH")
}
