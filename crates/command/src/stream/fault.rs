//! What can go wrong in a command on streams, with the exact text a client sees.

use std::borrow::Cow;

/// An error reply of a stream command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not an id.
    Id,
    /// XADD: the id is not higher than the last one.
    IdTooLow,
    /// XADD: 0-0.
    IdZero,
    /// XADD: there is no higher id.
    Exhausted,
    /// XADD: the entry is longer than a node may be.
    TooLarge,
    /// A range begins behind the highest id.
    RangeStart,
    /// A range ends before the lowest id.
    RangeEnd,
    /// MAXLEN below 0.
    MaxlenNegative,
    /// LIMIT below 0.
    LimitNegative,
    /// MAXLEN and MINID, or one of them twice.
    TwoStrategies,
    /// LIMIT without `~`.
    LimitExact,
    /// LIMIT without MAXLEN or MINID.
    LimitAlone,
    /// XSETID: below the highest entry.
    SetidLow,
    /// XSETID: below the id that it says was deleted.
    SetidDeleted,
    /// XSETID: below the highest id that was deleted.
    SetidBelowDeleted,
    /// XSETID: fewer entries added than there are.
    SetidAdded,
    /// XSETID: a negative number of entries.
    AddedNegative,
    /// XGROUP of a key that is not there.
    GroupNoKey,
    /// XGROUP CREATE of a group that is there.
    GroupExists,
    /// ENTRIESREAD below -1.
    EntriesRead,
    /// No such group, of a key that is there.
    NoGroup {
        /// The group.
        group: Box<[u8]>,
        /// The key.
        key: Box<[u8]>,
    },
    /// XREADGROUP: no such key, or no such group.
    NoGroupRead {
        /// The group.
        group: Box<[u8]>,
        /// The key.
        key: Box<[u8]>,
    },
    /// XPENDING, XCLAIM, XAUTOCLAIM: no such key, or no such group.
    NoKeyOrGroup {
        /// The group.
        group: Box<[u8]>,
        /// The key.
        key: Box<[u8]>,
    },
    /// XREAD: not as many ids as keys.
    Unbalanced {
        /// XREADGROUP.
        grouped: bool,
    },
    /// XREAD with GROUP.
    GroupInRead,
    /// XREAD with NOACK.
    NoackInRead,
    /// XREADGROUP without GROUP.
    NoGroupOption,
    /// XREADGROUP with `$`.
    DollarInGroup,
    /// XREAD with `>`.
    NewInRead,
    /// XCLAIM, XAUTOCLAIM: the idle time is none.
    MinIdle(&'static str),
    /// XCLAIM: an option's number is none.
    ClaimNumber(&'static str),
    /// XCLAIM: another word.
    ClaimOption(Box<[u8]>),
    /// XAUTOCLAIM: COUNT below 1.
    CountPositive,
    /// XAUTOCLAIM: COUNT beyond all memory.
    CountMemory,
    /// Too many, too few or unknown words behind a subcommand.
    Subcommand {
        /// The container.
        container: &'static str,
        /// The subcommand, as it was written.
        name: Box<[u8]>,
    },
    /// XDELEX, XACKDEL: the number of ids is none.
    NumIds,
    /// XDELEX, XACKDEL: not as many ids as announced.
    NumIdsMatch,
}

impl Fault {
    /// The text, without the leading `-`.
    pub fn text(&self) -> Cow<'static, [u8]> {
        // A name ends where a text in C does.
        let join = |parts: &[&[u8]]| {
            let ends =
                parts.iter().map(|part| part.split(|byte| *byte == 0).next().unwrap_or(part));
            Cow::Owned(ends.collect::<Vec<_>>().concat())
        };
        let fixed = match self {
            Fault::NoGroup { group, key } => {
                return join(&[
                    b"NOGROUP No such consumer group '",
                    group,
                    b"' for key name '",
                    key,
                    b"'",
                ]);
            }
            Fault::NoGroupRead { group, key } => {
                let end = b"' in XREADGROUP with GROUP option";
                return join(&[
                    b"NOGROUP No such key '",
                    key,
                    b"' or consumer group '",
                    group,
                    end,
                ]);
            }
            Fault::NoKeyOrGroup { group, key } => {
                return join(&[
                    b"NOGROUP No such key '",
                    key,
                    b"' or consumer group '",
                    group,
                    b"'",
                ]);
            }
            Fault::MinIdle(command) => {
                return join(&[b"ERR Invalid min-idle-time argument for ", command.as_bytes()]);
            }
            Fault::ClaimNumber(option) => {
                return join(&[b"ERR Invalid ", option.as_bytes(), b" option argument for XCLAIM"]);
            }
            Fault::ClaimOption(word) => {
                return join(&[b"ERR Unrecognized XCLAIM option '", word, b"'"]);
            }
            Fault::Subcommand { container, name } => {
                let start = b"ERR unknown subcommand or wrong number of arguments for '";
                return join(&[start, name, b"'. Try ", container.as_bytes(), b" HELP."]);
            }
            other => other.fixed(),
        };
        Cow::Borrowed(fixed.as_bytes())
    }

    fn fixed(&self) -> &'static str {
        match self {
            Fault::Id => "ERR Invalid stream ID specified as stream command argument",
            Fault::IdTooLow => {
                "ERR The ID specified in XADD is equal or smaller than the target stream top item"
            }
            Fault::IdZero => "ERR The ID specified in XADD must be greater than 0-0",
            Fault::Exhausted => {
                "ERR The stream has exhausted the last possible ID, unable to add more items"
            }
            Fault::TooLarge => "ERR Elements are too large to be stored",
            Fault::RangeStart => "ERR invalid start ID for the interval",
            Fault::RangeEnd => "ERR invalid end ID for the interval",
            Fault::MaxlenNegative => "ERR The MAXLEN argument must be >= 0.",
            Fault::LimitNegative => "ERR The LIMIT argument must be >= 0.",
            Fault::TwoStrategies => {
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
            }
            Fault::LimitExact => {
                "ERR syntax error, LIMIT cannot be used without the special ~ option"
            }
            Fault::LimitAlone => {
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
            }
            Fault::SetidLow => {
                "ERR The ID specified in XSETID is smaller than the target stream top item"
            }
            Fault::SetidDeleted => {
                "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
            }
            Fault::SetidBelowDeleted => {
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
            }
            Fault::SetidAdded => {
                "ERR The entries_added specified in XSETID is smaller than the target stream length"
            }
            Fault::AddedNegative => "ERR entries_added must be positive",
            Fault::GroupNoKey => {
                "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."
            }
            Fault::GroupExists => "BUSYGROUP Consumer Group name already exists",
            Fault::EntriesRead => "ERR value for ENTRIESREAD must be positive or -1",
            Fault::Unbalanced { grouped: false } => {
                "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
            }
            Fault::Unbalanced { grouped: true } => {
                "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
            }
            Fault::GroupInRead => {
                "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead."
            }
            Fault::NoackInRead => {
                "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead."
            }
            Fault::NoGroupOption => "ERR Missing GROUP option for XREADGROUP",
            Fault::DollarInGroup => {
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
            }
            Fault::NewInRead => {
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option."
            }
            Fault::CountPositive => "ERR COUNT must be > 0",
            Fault::CountMemory => {
                "ERR Insufficient memory, failed allocating transient memory, COUNT too high."
            }
            Fault::NumIds => "ERR Number of IDs must be a positive integer",
            Fault::NumIdsMatch => "ERR The `numids` parameter must match the number of arguments",
            _ => unreachable!("it has a text with names in it"),
        }
    }
}
