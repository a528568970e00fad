//! The table's entries for strings as bits.

use super::keys;
use crate::bitmap;
use crate::spec::{
    Acl, Arg, CommandSpec, Docs, Flags as F, Group, Handler, KeyFlags as K, KeySpec, LockClass,
};

const BASE: CommandSpec = CommandSpec {
    group: Group::Bitmap,
    acl: Acl::BITMAP,
    lock: LockClass::Keys,
    ..CommandSpec::BASE
};

const UNIT: Arg = Arg::one_of("unit", &[Arg::token("byte", "BYTE"), Arg::token("bit", "BIT")])
    .optional()
    .since("7.0.0");

/// All of them, by name.
pub static COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: "bitcount",
        full_name: "bitcount",
        since: "2.6.0",
        arity: -2,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(bitmap::bitcount),
        docs: &Docs {
            summary: "Counts the number of set bits (population counting) in a string.",
            complexity: "O(N)",
            history: &[("7.0.0", "Added the `BYTE|BIT` option.")],
            args: &[
                Arg::key("key", 0),
                Arg::block("range", &[Arg::integer("start"), Arg::integer("end"), UNIT]).optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bitfield",
        full_name: "bitfield",
        since: "3.2.0",
        arity: -2,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[KeySpec::at(1, K::of(&[K::RW, K::ACCESS, K::UPDATE, K::VARIABLE_FLAGS]))
            .note("This command allows both access and modification of the key")],
        key_flags: Some(crate::bitmap::bitfield_key_flags),
        handler: Handler::Data(bitmap::bitfield),
        docs: &Docs {
            summary: "Performs arbitrary bitfield integer operations on strings.",
            complexity: "O(1) for each subcommand specified",
            args: &[
                Arg::key("key", 0),
                Arg::one_of(
                    "operation",
                    &[
                        Arg::block("get-block", &[Arg::string("encoding"), Arg::integer("offset")])
                            .after("GET"),
                        Arg::block("write", FIELD_WRITE),
                    ],
                )
                .optional()
                .multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bitfield_ro",
        full_name: "bitfield_ro",
        since: "6.0.0",
        arity: -2,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(bitmap::bitfield_ro),
        docs: &Docs {
            summary: "Performs arbitrary read-only bitfield integer operations on strings.",
            complexity: "O(1) for each subcommand specified",
            args: &[
                Arg::key("key", 0),
                Arg::block("get-block", &[Arg::string("encoding"), Arg::integer("offset")])
                    .after("GET")
                    .optional()
                    .multiple()
                    .multiple_token(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bitop",
        full_name: "bitop",
        since: "2.6.0",
        arity: -4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: &[
            KeySpec::at(2, K::of(&[K::OW, K::UPDATE])),
            KeySpec::at(3, K::of(&[K::RO, K::ACCESS])).to_end(1),
        ],
        handler: Handler::Data(bitmap::bitop),
        docs: &Docs {
            summary: "Performs bitwise operations on multiple strings, and stores the result.",
            complexity: "O(N)",
            args: &[
                Arg::one_of(
                    "operation",
                    &[
                        Arg::token("and", "AND"),
                        Arg::token("or", "OR"),
                        Arg::token("xor", "XOR"),
                        Arg::token("not", "NOT"),
                    ],
                ),
                Arg::key("destkey", 0),
                Arg::key("key", 1).multiple(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "bitpos",
        full_name: "bitpos",
        since: "2.8.7",
        arity: -3,
        flags: F::READONLY,
        keys: keys::READ,
        handler: Handler::Data(bitmap::bitpos),
        docs: &Docs {
            summary: "Finds the first set (1) or clear (0) bit in a string.",
            complexity: "O(N)",
            history: &[("7.0.0", "Added the `BYTE|BIT` option.")],
            args: &[
                Arg::key("key", 0),
                Arg::integer("bit"),
                Arg::block(
                    "range",
                    &[
                        Arg::integer("start"),
                        Arg::block("end-unit-block", &[Arg::integer("end"), UNIT]).optional(),
                    ],
                )
                .optional(),
            ],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "getbit",
        full_name: "getbit",
        since: "2.2.0",
        arity: 3,
        flags: F::of(&[F::READONLY, F::FAST]),
        keys: keys::READ,
        handler: Handler::Data(bitmap::getbit),
        docs: &Docs {
            summary: "Returns a bit value by offset.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::integer("offset")],
            ..Docs::NONE
        },
        ..BASE
    },
    CommandSpec {
        name: "setbit",
        full_name: "setbit",
        since: "2.2.0",
        arity: 4,
        flags: F::of(&[F::WRITE, F::DENYOOM]),
        keys: keys::READ_UPDATE,
        handler: Handler::Data(bitmap::setbit),
        docs: &Docs {
            summary: "Sets or clears the bit at offset of the string value. Creates the key if it doesn't exist.",
            complexity: "O(1)",
            args: &[Arg::key("key", 0), Arg::integer("offset"), Arg::integer("value")],
            ..Docs::NONE
        },
        ..BASE
    },
];

const FIELD_WRITE: &[Arg] = &[
    Arg::one_of(
        "overflow-block",
        &[Arg::token("wrap", "WRAP"), Arg::token("sat", "SAT"), Arg::token("fail", "FAIL")],
    )
    .after("OVERFLOW")
    .optional(),
    Arg::one_of(
        "write-operation",
        &[
            Arg::block(
                "set-block",
                &[Arg::string("encoding"), Arg::integer("offset"), Arg::integer("value")],
            )
            .after("SET"),
            Arg::block(
                "incrby-block",
                &[Arg::string("encoding"), Arg::integer("offset"), Arg::integer("increment")],
            )
            .after("INCRBY"),
        ],
    ),
];
