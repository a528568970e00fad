//! The table's entries for places.

use super::fragments::ORDER;
use super::keys;
use crate::spec::{
    Acl, Arg, CommandSpec, Deprecated, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec,
    LockClass,
};

const BASE: CommandSpec =
    CommandSpec { group: Group::Geo, acl: Acl::GEO, lock: LockClass::Keys, ..CommandSpec::BASE };

const UNIT: Arg = Arg::one_of(
    "unit",
    &[Arg::token("m", "M"), Arg::token("km", "KM"), Arg::token("ft", "FT"), Arg::token("mi", "MI")],
);

/// The middle of a search.
const FROM: Arg = Arg::one_of(
    "from",
    &[
        Arg::string("member").after("FROMMEMBER"),
        Arg::block("fromlonlat", &[Arg::double("longitude"), Arg::double("latitude")])
            .after("FROMLONLAT"),
    ],
)
.optional();

/// The shape of a search.
const BY: Arg = Arg::one_of(
    "by",
    &[
        Arg::block("circle", &[Arg::double("radius").after("BYRADIUS"), UNIT]),
        Arg::block("box", &[Arg::double("width").after("BYBOX"), Arg::double("height"), UNIT]),
        POLYGON,
    ],
);

const COUNT_ANY: Arg = Arg::block(
    "count-block",
    &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional()],
)
.optional();

/// As [`COUNT_ANY`], of commands which are older than ANY.
const COUNT_ANY_LATER: Arg = Arg::block(
    "count-block",
    &[Arg::integer("count").after("COUNT"), Arg::token("any", "ANY").optional().since("6.2.0")],
)
.optional();

/// Where GEORADIUS and GEORADIUSBYMEMBER store what they find.
const STORE: Arg = Arg::one_of(
    "store",
    &[
        Arg::key("storekey", 1).shown("key").after("STORE"),
        Arg::key("storedistkey", 2).shown("key").after("STOREDIST"),
    ],
)
.optional();

const WITHCOORD: Arg = Arg::token("withcoord", "WITHCOORD").optional();
const WITHDIST: Arg = Arg::token("withdist", "WITHDIST").optional();
const WITHHASH: Arg = Arg::token("withhash", "WITHHASH").optional();

/// The shape of GEOSEARCH that Valkey 9 has added.
const POLYGON: Arg = Arg::block(
    "polygon",
    &[
        Arg::integer("num-vertices").after("BYPOLYGON"),
        Arg::block("vertices", &[Arg::double("longitude"), Arg::double("latitude")]).multiple(),
    ],
)
.since("9.0.0");

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "geoadd",
        full_name: "geoadd",
        since: "3.2.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::UPDATE,
        handler: Handler::Data(crate::geo::geoadd),
        docs: &Docs {
            summary: "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
            complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
            history: &[("6.2.0", "Added the `CH`, `NX` and `XX` options.")],
            args: &[
                Arg::key("key", 0),
                Arg::one_of("condition", &[Arg::token("nx", "NX"), Arg::token("xx", "XX")])
                    .optional()
                    .since("6.2.0"),
                Arg::token("change", "CH").optional().since("6.2.0"),
                Arg::block(
                    "data",
                    &[Arg::double("longitude"), Arg::double("latitude"), Arg::string("member")],
                )
                .multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "geodist",
        full_name: "geodist",
        since: "3.2.0",
        arity: -4,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::geodist),
        docs: &Docs {
            summary: "Returns the distance between two members of a geospatial index.",
            complexity: "O(1)",
            args: &[
                Arg::key("key", 0),
                Arg::string("member1"),
                Arg::string("member2"),
                UNIT.optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "geohash",
        full_name: "geohash",
        since: "3.2.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::geohash),
        docs: &Docs {
            summary: "Returns members from a geospatial index as geohash strings.",
            complexity: "O(1) for each member requested.",
            args: &[Arg::key("key", 0), Arg::string("member").optional().multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "geopos",
        full_name: "geopos",
        since: "3.2.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::geopos),
        docs: &Docs {
            summary: "Returns the longitude and latitude of members from a geospatial index.",
            complexity: "O(1) for each member requested.",
            args: &[Arg::key("key", 0), Arg::string("member").optional().multiple()],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "georadius",
        full_name: "georadius",
        since: "3.2.0",
        arity: -6,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RO, K::ACCESS])),
            KeySpec::behind("STORE", 6, K::of(&[K::OW, K::UPDATE])),
            KeySpec::behind("STOREDIST", 6, K::of(&[K::OW, K::UPDATE])),
        ],
        touched: Some(crate::geo::georadius_keys),
        handler: Handler::Data(crate::geo::georadius),
        docs: &Docs {
            summary: "Queries a geospatial index for members within a distance from a coordinate, optionally stores the result.",
            complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
            }),
            history: &[
                ("6.2.0", "Added the `ANY` option for `COUNT`."),
                ("7.0.0", "Added support for uppercase unit names."),
            ],
            args: &[
                Arg::key("key", 0),
                Arg::double("longitude"),
                Arg::double("latitude"),
                Arg::double("radius"),
                UNIT,
                WITHCOORD,
                WITHDIST,
                WITHHASH,
                COUNT_ANY_LATER,
                ORDER,
                STORE,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "georadius_ro",
        full_name: "georadius_ro",
        since: "3.2.10",
        arity: -6,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::georadius_ro),
        docs: &Docs {
            summary: "Returns members from a geospatial index that are within a distance from a coordinate.",
            complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`GEOSEARCH` with the `BYRADIUS` argument",
            }),
            history: &[("6.2.0", "Added the `ANY` option for `COUNT`.")],
            args: &[
                Arg::key("key", 0),
                Arg::double("longitude"),
                Arg::double("latitude"),
                Arg::double("radius"),
                UNIT,
                WITHCOORD,
                WITHDIST,
                WITHHASH,
                COUNT_ANY_LATER,
                ORDER,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "georadiusbymember",
        full_name: "georadiusbymember",
        since: "3.2.0",
        arity: -5,
        flags: F::of(&[F::WRITE, F::DENYOOM, F::MOVABLEKEYS]),
        keys: &[
            KeySpec::at(1, K::of(&[K::RO, K::ACCESS])),
            KeySpec::behind("STORE", 5, K::of(&[K::OW, K::UPDATE])),
            KeySpec::behind("STOREDIST", 5, K::of(&[K::OW, K::UPDATE])),
        ],
        touched: Some(crate::geo::georadiusbymember_keys),
        handler: Handler::Data(crate::geo::georadiusbymember),
        docs: &Docs {
            summary: "Queries a geospatial index for members within a distance from a member, optionally stores the result.",
            complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
            }),
            history: &[("7.0.0", "Added support for uppercase unit names.")],
            args: &[
                Arg::key("key", 0),
                Arg::string("member"),
                Arg::double("radius"),
                UNIT,
                WITHCOORD,
                WITHDIST,
                WITHHASH,
                COUNT_ANY,
                ORDER,
                STORE,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "georadiusbymember_ro",
        full_name: "georadiusbymember_ro",
        since: "3.2.10",
        arity: -5,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::georadiusbymember_ro),
        docs: &Docs {
            summary: "Returns members from a geospatial index that are within a distance from a member.",
            complexity: "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center and radius and M is the number of items inside the index.",
            deprecated: Some(Deprecated {
                since: "6.2.0",
                replaced_by: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
            }),
            args: &[
                Arg::key("key", 0),
                Arg::string("member"),
                Arg::double("radius"),
                UNIT,
                WITHCOORD,
                WITHDIST,
                WITHHASH,
                COUNT_ANY,
                ORDER,
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "geosearch",
        full_name: "geosearch",
        since: "6.2.0",
        arity: -7,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(crate::geo::geosearch),
        docs: &Docs {
            summary: "Queries a geospatial index for members inside an area of a box, a circle, or a polygon.",
            complexity: "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape provided as the filter and M is the number of items inside the shape",
            history: &[
                ("7.0.0", "Added support for uppercase unit names."),
                ("9.0.0", "Added support for the BYPOLYGON option."),
            ],
            args: &[Arg::key("key", 0), FROM, BY, ORDER, COUNT_ANY, WITHCOORD, WITHDIST, WITHHASH],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "geosearchstore",
        full_name: "geosearchstore",
        since: "6.2.0",
        arity: -8,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(1, K::of(&[K::OW, K::UPDATE])),
            KeySpec::at(2, K::of(&[K::RO, K::ACCESS])),
        ],
        handler: Handler::Data(crate::geo::geosearchstore),
        docs: &Docs {
            summary: "Queries a geospatial index for members inside an area of a box, a circle, or a polygon, optionally stores the result.",
            complexity: "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape provided as the filter and M is the number of items inside the shape",
            history: &[
                ("7.0.0", "Added support for uppercase unit names."),
                ("9.0.0", "Added support for the BYPOLYGON option."),
            ],
            args: &[
                Arg::key("destination", 0),
                Arg::key("source", 1),
                FROM,
                BY,
                ORDER,
                COUNT_ANY,
                Arg::token("storedist", "STOREDIST").optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
];
