//! Everything that can go wrong in a command, closed, with the exact text a client sees. The texts
//! are those that clients of Redis match on; the leading `-` and the line end are the reply
//! writer's.

use std::borrow::Cow;
use std::fmt;

/// Bytes of a command's name that an error text repeats at most.
const ECHO_NAME_MAX: usize = 128;
/// Bytes of arguments after which an error text repeats no further one.
const ECHO_ARGS_MAX: usize = 128;

/// Bytes of a request that an error repeats. One word, so that an error is two: a handler's result
/// is written and read behind every command.
pub type Echo = Box<Box<[u8]>>;
/// A text of an error, likewise.
pub type Words = Box<Box<str>>;
/// Two of those texts.
pub type Echoes = Box<(Box<[u8]>, Box<[u8]>)>;
/// A name of ours, likewise.
pub type Name = Box<&'static str>;

const _: () = assert!(size_of::<Error>() == 16);

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds another type.
    WrongType,
    /// The options make no sense.
    Syntax,
    /// Not an integer, or beyond 64 bits.
    NotInteger,
    /// DELEX: a condition that is none.
    ConditionWanted,
    /// DELEX: a condition on what is no string.
    ConditionOnString,
    /// INCREX: ENX without a time.
    EnxAlone,
    /// INCREX: the lower bound is above the upper one.
    BoundsCrossed,
    /// IFDEQ, IFDNE: what is no digest.
    DigestWanted,
    /// Not a number.
    NotFloat,
    /// Beyond the bounds of an `int`.
    IntRange,
    /// Below 0 or beyond 64 bits.
    NotPositive,
    /// Below the bounds of an offset.
    OffsetRange,
    /// The key does not exist.
    NoSuchKey,
    /// Not a time to live that a key can have.
    /// The command's full name.
    InvalidExpire(Name),
    /// Too few or too many arguments.
    /// The command's full name.
    Arity(Name),
    /// Right command, wrong number of arguments, found by the command itself.
    /// What stood there, cut; the command.
    SubcommandSyntax(Box<(Box<[u8]>, &'static str)>),
    /// No such command.
    /// Its name, cut; its arguments, quoted and cut.
    UnknownCommand(Echoes),
    /// The container has no such subcommand.
    /// What stood there, cut; the container.
    UnknownSubcommand(Box<(Box<[u8]>, &'static str)>),
    /// Longer than `proto-max-bulk-len`.
    StringTooLong,
    /// INCR or INCRBY beyond 64 bits.
    IncrOverflow,
    /// DECRBY by the smallest integer.
    DecrOverflow,
    /// INCRBYFLOAT to no number.
    IncrNotFinite,
    /// SETBIT, GETBIT, BITFIELD: not an offset, or beyond `proto-max-bulk-len`.
    BitOffset,
    /// SETBIT: neither 0 nor 1.
    BitValue,
    /// BITPOS: an integer, but neither 0 nor 1.
    BitWanted,
    /// BITOP NOT of several keys.
    BitopNot,
    /// BITFIELD: no such type of field.
    BitfieldType,
    /// BITFIELD: OVERFLOW with another word.
    BitfieldOverflow,
    /// BITFIELD_RO with something else than GET.
    BitfieldReadOnly,
    /// The string is no HyperLogLog.
    NotHll,
    /// The string begins like a HyperLogLog and is none.
    CorruptHll,
    /// PFDEBUG: no such key.
    PfdebugNoKey,
    /// PFDEBUG: no such subcommand.
    PfdebugSubcommand(Echo),
    /// PFDEBUG DECODE of a dense sketch.
    HllNotSparse,
    /// An increment that is infinite.
    NotFinite,
    /// HINCRBY: the field holds no integer.
    HashNotInteger,
    /// HINCRBYFLOAT: the field holds no number.
    HashNotFloat,
    /// A count that is too large in one direction.
    OutOfRange,
    /// A count that is the smallest integer.
    CountRange,
    /// A number of keys below 1, or none.
    NumKeysPositive,
    /// Fewer keys than announced.
    NumKeysMany,
    /// SINTERCARD: a limit that is none.
    LimitNegative,
    /// HSETEX: more than one time to live.
    HsetexTimes,
    /// Hash fields: the number of fields is none.
    NumFields,
    /// Hash fields: fewer or more fields than announced.
    NumFieldsMatch,
    /// Hash fields: no FIELDS where it must be.
    NoFields,
    /// No such database.
    DbRange,
    /// SWAPDB: the first index is no integer.
    FirstDbIndex,
    /// SWAPDB: the second index is no integer.
    SecondDbIndex,
    /// COPY or MOVE onto itself.
    SameObject,
    /// EXPIRE: NX together with another condition.
    ExpireNxConflict,
    /// EXPIRE: GT together with LT.
    ExpireGtLt,
    /// EXPIRE: another word.
    ExpireOption(Echo),
    /// SCAN: not a cursor.
    InvalidCursor,
    /// LCS: a key holds no string.
    LcsNotString,
    /// LCS: LEN together with IDX.
    LcsLenIdx,
    /// LCS: the strings are too long for each other.
    LcsMemory,
    /// OBJECT FREQ without an LFU policy.
    NotLfu,
    /// OBJECT IDLETIME with an LFU policy.
    IsLfu,
    /// COUNT is no positive integer.
    CountPositive,
    /// No element at this index.
    IndexRange,
    /// LPOS: a rank of 0.
    LposRank,
    /// LPOS: COUNT is no natural number.
    LposCount,
    /// LPOS: MAXLEN is no natural number.
    LposMaxlen,
    /// WAITAOF: a number of local files that is neither 0 nor 1.
    WaitLocalRange,
    /// WAITAOF: a local file is asked for, and there is none.
    WaitLocalOff,
    /// SORT: an element or what it is sorted by is no number.
    SortScore,
    /// MIGRATE: KEYS and a key.
    MigrateKeys,
    /// MIGRATE: the target did not do as it was asked; what it said.
    MigrateTarget(Echo),
    /// MIGRATE: no way to the target: what could not be done.
    MigrateIo(&'static &'static str),
    /// RESTORE: the key exists.
    BusyKey,
    /// RESTORE: a negative time to live.
    RestoreTtl,
    /// RESTORE: a negative idle time.
    RestoreIdletime,
    /// RESTORE: not a frequency.
    RestoreFreq,
    /// RESTORE: something is wrong with the payload.
    Payload(rdb::Error),
    /// A command on streams.
    Stream(Box<crate::stream::fault::Fault>),
    /// MSETEX: the number of keys is no positive integer.
    NumKeys,
    /// MSETEX: fewer pairs than announced.
    NumKeysArgs,
    /// COMMAND GETKEYS: no such command.
    InvalidCommand,
    /// COMMAND GETKEYS: it takes no keys.
    NoKeyArguments,
    /// COMMAND GETKEYS: wrong arity for the command asked about.
    InvalidArgumentCount,
    /// COMMAND GETKEYS: no keys where its arguments say that they stand.
    InvalidArguments,

    /// Not authenticated.
    NoAuth,
    /// HELLO before authentication.
    NoAuthHello,
    /// AUTH failed.
    WrongPass,
    /// AUTH with a password where none is set.
    NoPasswordSet,
    /// The user may not run this command.
    /// The user; the command's full name.
    NoPerm(Box<(Box<[u8]>, &'static str)>),
    /// HELLO: not a number.
    ProtoNotInteger,
    /// HELLO: neither 2 nor 3.
    NoProto,
    /// HELLO: unknown or incomplete option.
    HelloOption(Echo),
    /// A client name with characters that would break CLIENT LIST.
    ClientName,
    /// CLIENT SETINFO: neither LIB-NAME nor LIB-VER.
    ClientInfoOption(Echo),
    /// CLIENT SETINFO: a value with characters that would break CLIENT LIST.
    ClientInfoValue(Name),
    /// CLIENT LIST or KILL: unknown type.
    ClientType(Echo),
    /// DEBUG RELOAD: an unknown word.
    DebugReload,
    /// DEBUG RELOAD NOSAVE: there is no file.
    NoReloadFile,
    /// DEBUG RELOAD: a value is not what it was.
    ReloadFailed {
        /// Its database.
        db: u32,
        /// Its key.
        key: Echo,
    },
    /// DEBUG SDSLEN: no text.
    NotSds,
    /// DEBUG LISTPACK of something else.
    NotListpack,
    /// DEBUG QUICKLIST of something else.
    NotQuicklist,
    /// CLIENT LIST or KILL: letters that are no flags of clients.
    ClientFlags(Echo),
    /// CLIENT LIST ID: not an integer.
    ClientId,
    /// CLIENT KILL ID: not a positive integer.
    ClientIdPositive,
    /// CLIENT KILL: nobody has this address.
    NoSuchClient,
    /// CLIENT KILL USER: no such user.
    NoSuchUser(Echo),
    /// SCAN TYPE: no such type.
    UnknownType(Echo),
    /// CLIENT PAUSE: not an integer.
    TimeoutNotInteger,
    /// A blocking command: not a number.
    TimeoutNotFloat,
    /// CLIENT PAUSE and blocking commands: negative.
    TimeoutNegative,
    /// CLIENT PAUSE and blocking commands: beyond the end of time.
    TimeoutRange,
    /// CLIENT PAUSE: unknown mode.
    PauseMode,
    /// CLIENT UNBLOCK: unknown reason.
    UnblockReason,

    /// MULTI inside MULTI.
    NestedMulti,
    /// WATCH inside MULTI.
    WatchInMulti,
    /// EXEC without MULTI.
    ExecWithoutMulti,
    /// DISCARD without MULTI.
    DiscardWithoutMulti,
    /// EXEC after a command that could not be queued.
    ExecAbort,
    /// A command that cannot be queued.
    NotInMulti,
    /// MONITOR in a transaction.
    MonitorInMulti,
    /// A command on keys from a client that monitors.
    MonitorOnKeys,
    /// CLIENT TRACKING ON.
    NoTracking,
    /// CLIENT CACHING without tracking.
    CachingWithoutTracking,
    /// CLIENT IMPORT-SOURCE ON without import mode.
    NoImportMode,

    /// Memory is full.
    OutOfMemory,
    /// Data is being loaded.
    Loading,
    /// A script keeps the server busy.
    Busy,
    /// The command failed inside; its changes were undone.
    Internal,
    /// DEBUG is switched off.
    DebugDisabled,
    /// DEBUG PROTOCOL: unknown kind.
    DebugProtocolType,
    /// A push to a RESP2 client.
    Resp3Only,
    /// SHUTDOWN ABORT without a shutdown.
    NoShutdown,
    /// SHUTDOWN SAVE where nothing can be saved.
    NoPersistence,
    /// COMMANDLOG: no such log.
    CommandLogType,
    /// DEBUG QUICKLIST-PACKED-THRESHOLD: no size, or too large a one.
    PackedThreshold,
    /// DEBUG HTSTATS: no such database.
    HtStatsDb,
    /// DEBUG HTSTATS-KEY: a value without a table.
    NoHashTable,
    /// LATENCY GRAPH: nothing is known of this event.
    NoSamples(Words),
    /// SLOWLOG GET: below -1.
    SlowlogCount,
    /// CONFIG SET: no such setting, or a value is missing.
    ConfigOption(Echo),
    /// CONFIG SET: refused.
    /// The setting; why.
    ConfigSet(Box<(Box<str>, Box<str>)>),
    /// CONFIG REWRITE without a file.
    NoConfigFile,
    /// A text with its code, for what only one place can say.
    Text(Words),
}

impl Error {
    /// Too few or too many arguments of a command.
    #[cold]
    pub fn arity(command: &'static str) -> Error {
        Error::Arity(Box::new(command))
    }

    /// Not a time to live that a key can have.
    #[cold]
    pub fn invalid_expire(command: &'static str) -> Error {
        Error::InvalidExpire(Box::new(command))
    }

    /// What is wrong with a command on streams.
    #[cold]
    pub fn stream(fault: crate::stream::fault::Fault) -> Error {
        Error::Stream(Box::new(fault))
    }

    /// A text with its code.
    #[cold]
    pub fn said(text: impl Into<Box<str>>) -> Error {
        Error::Text(Box::new(text.into()))
    }

    /// The error for a request whose first argument names no command.
    pub fn unknown_command<'a>(args: impl IntoIterator<Item = &'a [u8]>) -> Error {
        let mut args = args.into_iter();
        let name = args.next().unwrap_or_default();
        let mut echo = Vec::new();
        for arg in args {
            if echo.len() >= ECHO_ARGS_MAX {
                break;
            }
            let left = ECHO_ARGS_MAX - echo.len();
            echo.push(b'\'');
            echo.extend_from_slice(cut(arg, left));
            echo.extend_from_slice(b"' ");
        }
        Error::UnknownCommand(Box::new((cut(name, ECHO_NAME_MAX).into(), echo.into())))
    }

    /// The error for a subcommand that its container does not have.
    pub fn unknown_subcommand(container: &'static str, name: &[u8]) -> Error {
        Error::UnknownSubcommand(Box::new((cut(name, ECHO_NAME_MAX).into(), container)))
    }

    /// The error for a known subcommand whose arguments (or whose name) do not fit.
    pub fn subcommand_syntax(container: &'static str, name: &[u8]) -> Error {
        Error::SubcommandSyntax(Box::new((cut(name, ECHO_NAME_MAX).into(), container)))
    }

    /// The text's first word: what error statistics count by.
    pub fn code(&self) -> Cow<'static, str> {
        match self {
            Error::WrongType | Error::NotHll => Cow::Borrowed("WRONGTYPE"),
            Error::CorruptHll => Cow::Borrowed("INVALIDOBJ"),
            Error::NoAuth | Error::NoAuthHello => Cow::Borrowed("NOAUTH"),
            Error::WrongPass => Cow::Borrowed("WRONGPASS"),
            Error::NoPerm(_) => Cow::Borrowed("NOPERM"),
            Error::NoProto => Cow::Borrowed("NOPROTO"),
            Error::ExecAbort => Cow::Borrowed("EXECABORT"),
            Error::OutOfMemory => Cow::Borrowed("OOM"),
            Error::Loading => Cow::Borrowed("LOADING"),
            Error::Busy => Cow::Borrowed("BUSY"),
            Error::Text(text) => Cow::Owned(text.split(' ').next().unwrap_or("ERR").to_owned()),
            _ => Cow::Borrowed("ERR"),
        }
    }

    /// The text as it is sent: line breaks are spaces, or nothing at its end, and what a client
    /// sent is repeated byte by byte, UTF-8 or not.
    pub fn text(&self) -> Cow<'static, [u8]> {
        let mut text = self.raw();
        if text.ends_with(b"\r") || text.ends_with(b"\n") {
            let text = text.to_mut();
            while matches!(text.last(), Some(b'\r' | b'\n')) {
                text.pop();
            }
        }
        if text.iter().any(|b| matches!(b, b'\r' | b'\n')) {
            for byte in text.to_mut() {
                if matches!(byte, b'\r' | b'\n') {
                    *byte = b' ';
                }
            }
        }
        text
    }

    /// The text before its line breaks are made harmless.
    fn raw(&self) -> Cow<'static, [u8]> {
        let text = match self {
            Error::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Error::Syntax => "ERR syntax error",
            Error::NotInteger => "ERR value is not an integer or out of range",
            Error::ConditionWanted => "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
            Error::ConditionOnString => {
                "ERR Key should be of string type if conditions are specified"
            }
            Error::EnxAlone => "ERR ENX flag requires an expiration",
            Error::BoundsCrossed => "ERR LBOUND can't be greater than UBOUND",
            Error::DigestWanted => "ERR must be exactly 16 hexadecimal characters",
            Error::NotFloat => "ERR value is not a valid float",
            Error::IntRange => {
                "ERR value is out of range, value must between -2147483648 and 2147483647"
            }
            Error::NotPositive => "ERR value is out of range, must be positive",
            Error::OffsetRange => "ERR offset is out of range",
            Error::NoSuchKey => "ERR no such key",
            Error::StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Error::IncrOverflow => "ERR increment or decrement would overflow",
            Error::DecrOverflow => "ERR decrement would overflow",
            Error::IncrNotFinite => "ERR increment would produce NaN or Infinity",
            Error::BitOffset => "ERR bit offset is not an integer or out of range",
            Error::BitValue => "ERR bit is not an integer or out of range",
            Error::BitWanted => "ERR The bit argument must be 1 or 0.",
            Error::BitopNot => "ERR BITOP NOT must be called with a single source key.",
            Error::BitfieldType => {
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                 supported but i64 is."
            }
            Error::BitfieldOverflow => "ERR Invalid OVERFLOW type specified",
            Error::BitfieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",
            Error::NotHll => "WRONGTYPE Key is not a valid HyperLogLog string value.",
            Error::CorruptHll => "INVALIDOBJ Corrupted HLL object detected",
            Error::PfdebugNoKey => "ERR The specified key does not exist",
            Error::HllNotSparse => "ERR HLL encoding is not sparse",
            Error::NotFinite => "ERR value is NaN or Infinity",
            Error::HashNotInteger => "ERR hash value is not an integer",
            Error::HashNotFloat => "ERR hash value is not a float",
            Error::OutOfRange => "ERR value is out of range",
            Error::CountRange => {
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807"
            }
            Error::NumKeysPositive => "ERR numkeys should be greater than 0",
            Error::NumKeysMany => "ERR Number of keys can't be greater than number of args",
            Error::LimitNegative => "ERR LIMIT can't be negative",
            Error::HsetexTimes => {
                "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
            }
            Error::NumFields => "ERR Number of fields must be a positive integer",
            Error::NumFieldsMatch => {
                "ERR The `numfields` parameter must match the number of arguments"
            }
            Error::NoFields => {
                "ERR Mandatory argument FIELDS is missing or not at the right position"
            }
            Error::DbRange => "ERR DB index is out of range",
            Error::FirstDbIndex => "ERR invalid first DB index",
            Error::SecondDbIndex => "ERR invalid second DB index",
            Error::SameObject => "ERR source and destination objects are the same",
            Error::ExpireNxConflict => {
                "ERR NX and XX, GT or LT options at the same time are not compatible"
            }
            Error::ExpireGtLt => "ERR GT and LT options at the same time are not compatible",
            Error::InvalidCursor => "ERR invalid cursor",
            Error::LcsNotString => "ERR The specified keys must contain string values",
            Error::LcsMemory => {
                "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
            }
            Error::LcsLenIdx => "ERR If you want both the length and indexes, please just use IDX.",
            Error::NotLfu => {
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust."
            }
            Error::IsLfu => {
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time \
                 to adjust."
            }
            Error::CountPositive => "ERR count should be greater than 0",
            Error::IndexRange => "ERR index out of range",
            Error::LposRank => {
                "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second \
                 ... or use negative to start from the end of the list"
            }
            Error::LposCount => "ERR COUNT can't be negative",
            Error::LposMaxlen => "ERR MAXLEN can't be negative",
            Error::NumKeys => "ERR invalid numkeys value",
            Error::WaitLocalRange => "ERR value is out of range, value must between 0 and 1",
            Error::WaitLocalOff => {
                "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
            }
            Error::SortScore => "ERR One or more scores can't be converted into double",
            Error::MigrateKeys => {
                "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
            }
            Error::MigrateTarget(said) => {
                return Cow::Owned(
                    [&b"ERR Target instance replied with error: "[..], said].concat(),
                );
            }
            Error::MigrateIo(what) => {
                return Cow::Owned(format!("IOERR error or timeout {what}").into_bytes());
            }
            Error::BusyKey => "BUSYKEY Target key name already exists.",
            Error::RestoreTtl => "ERR Invalid TTL value, must be >= 0",
            Error::RestoreIdletime => "ERR Invalid IDLETIME value, must be >= 0",
            Error::RestoreFreq => "ERR Invalid FREQ value, must be >= 0 and <= 255",
            Error::Payload(error) => error.reply(),
            Error::Stream(fault) => return fault.text(),
            Error::NumKeysArgs => "ERR wrong number of key-value pairs",
            Error::InvalidCommand => "ERR Invalid command specified",
            Error::NoKeyArguments => "ERR The command has no key arguments",
            Error::InvalidArgumentCount => "ERR Invalid number of arguments specified for command",
            Error::InvalidArguments => "ERR Invalid arguments specified for command",

            Error::NoAuth => "NOAUTH Authentication required.",
            Error::NoAuthHello => {
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                 select the RESP protocol version at the same time"
            }
            Error::WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
            Error::NoPasswordSet => {
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?"
            }
            Error::ProtoNotInteger => "ERR Protocol version is not an integer or out of range",
            Error::NoProto => "NOPROTO unsupported protocol version",
            Error::ClientName => {
                "ERR Client names cannot contain spaces, newlines or special characters."
            }
            Error::DebugReload => {
                "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."
            }
            Error::NoReloadFile => {
                "ERR DEBUG RELOAD NOSAVE needs persistence, which this version does not have"
            }
            Error::NotSds => "ERR Not an sds encoded string.",
            Error::NotListpack => "ERR Not a listpack encoded object.",
            Error::NotQuicklist => "ERR Not a quicklist encoded object.",
            Error::ClientId => "ERR Invalid client ID",
            Error::ClientIdPositive => "ERR client-id should be greater than 0",
            Error::NoSuchClient => "ERR No such client",
            Error::TimeoutNotInteger => "ERR timeout is not an integer or out of range",
            Error::TimeoutNotFloat => "ERR timeout is not a float or out of range",
            Error::TimeoutNegative => "ERR timeout is negative",
            Error::TimeoutRange => "ERR timeout is out of range",
            Error::PauseMode => "ERR CLIENT PAUSE mode must be WRITE or ALL",
            Error::UnblockReason => "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            Error::NestedMulti => "ERR MULTI calls can not be nested",
            Error::WatchInMulti => "ERR WATCH inside MULTI is not allowed",
            Error::ExecWithoutMulti => "ERR EXEC without MULTI",
            Error::DiscardWithoutMulti => "ERR DISCARD without MULTI",
            Error::ExecAbort => "EXECABORT Transaction discarded because of previous errors.",
            Error::NotInMulti => "ERR Command not allowed inside a transaction",
            Error::MonitorInMulti => "ERR MONITOR isn't allowed for DENY BLOCKING client",
            Error::MonitorOnKeys => "ERR Replica can't interact with the keyspace",
            Error::NoTracking => {
                "ERR CLIENT TRACKING needs client-side caching, which this version does not have"
            }
            Error::CachingWithoutTracking => {
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with \
                 OPTIN or OPTOUT mode enabled"
            }
            Error::NoImportMode => "ERR Server is not in import mode",
            Error::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Error::Loading => "LOADING Redis is loading the dataset in memory",
            Error::Busy => {
                "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                 NOSAVE."
            }
            Error::Internal => "ERR internal error, the command was undone",
            Error::DebugDisabled => {
                "ERR DEBUG command not allowed. If the enable-debug-command option is set to \
                 \"local\", you can run it from a local connection, otherwise you need to set \
                 this option in the configuration file, and then restart the server."
            }
            Error::DebugProtocolType => {
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false"
            }
            Error::Resp3Only => "ERR RESP2 is not supported by this command",
            Error::NoShutdown => "ERR No shutdown in progress.",
            Error::NoPersistence => {
                "ERR SHUTDOWN SAVE needs persistence, which this version does not have"
            }
            Error::CommandLogType => "ERR type must be one of slow, large-request, large-reply",
            Error::PackedThreshold => {
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb"
            }
            Error::HtStatsDb => "ERR Out of range database",
            Error::NoHashTable => {
                "ERR The value stored at the specified key is not represented using an hash table"
            }
            Error::SlowlogCount => "ERR count should be greater than or equal to -1",
            Error::NoConfigFile => "ERR The server is running without a config file",

            Error::InvalidExpire(command) => {
                return Cow::Owned(
                    format!("ERR invalid expire time in '{command}' command").into_bytes(),
                );
            }
            Error::Arity(command) => {
                return Cow::Owned(
                    format!("ERR wrong number of arguments for '{command}' command").into_bytes(),
                );
            }
            Error::SubcommandSyntax(said) => {
                let (name, container) = &**said;
                return concat(&[
                    b"ERR unknown subcommand or wrong number of arguments for '",
                    name,
                    b"'. Try ",
                    container.to_ascii_uppercase().as_bytes(),
                    b" HELP.",
                ]);
            }
            Error::UnknownCommand(said) => {
                let (name, args) = &**said;
                return concat(&[
                    b"ERR unknown command '",
                    name,
                    b"', with args beginning with: ",
                    args,
                ]);
            }
            Error::UnknownSubcommand(said) => {
                let (name, container) = &**said;
                return concat(&[
                    b"ERR unknown subcommand '",
                    name,
                    b"'. Try ",
                    container.to_ascii_uppercase().as_bytes(),
                    b" HELP.",
                ]);
            }
            Error::PfdebugSubcommand(word) => {
                return concat(&[b"ERR Unknown PFDEBUG subcommand '", word, b"'"]);
            }
            Error::ExpireOption(word) => return concat(&[b"ERR Unsupported option ", word]),
            Error::NoPerm(said) => {
                let (user, command) = &**said;
                return concat(&[
                    b"NOPERM User ",
                    user,
                    b" has no permissions to run the '",
                    command.as_bytes(),
                    b"' command",
                ]);
            }
            Error::HelloOption(word) => {
                return concat(&[b"ERR Syntax error in HELLO option '", word, b"'"]);
            }
            Error::ClientInfoOption(word) => {
                return concat(&[b"ERR Unrecognized option '", word, b"'"]);
            }
            Error::ClientInfoValue(name) => {
                return Cow::Owned(
                    format!("ERR {name} cannot contain spaces, newlines or special characters.")
                        .into_bytes(),
                );
            }
            Error::ClientType(word) => return concat(&[b"ERR Unknown client type '", word, b"'"]),
            Error::ReloadFailed { db, key } => {
                let db = db.to_string();
                let text =
                    b"ERR Error trying to load the RDB dump: not the same value in database ";
                return concat(&[text, db.as_bytes(), b": ", key]);
            }
            Error::ClientFlags(word) => {
                return concat(&[b"ERR Unknown client flags '", word, b"'"]);
            }
            Error::UnknownType(word) => return concat(&[b"ERR unknown type name '", word, b"'"]),
            Error::NoSuchUser(word) => return concat(&[b"ERR No such user '", word, b"'"]),
            Error::ConfigOption(word) => {
                return concat(&[
                    b"ERR Unknown option or number of arguments for CONFIG SET - '",
                    word,
                    b"'",
                ]);
            }
            Error::ConfigSet(said) => {
                let (name, why) = &**said;
                return Cow::Owned(
                    format!(
                        "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"
                    )
                    .into_bytes(),
                );
            }
            Error::NoSamples(event) => {
                return Cow::Owned(
                    format!("ERR No samples available for event '{event}'").into_bytes(),
                );
            }
            Error::Text(text) => return Cow::Owned(text.as_bytes().to_vec()),
        };
        Cow::Borrowed(text.as_bytes())
    }
}

/// The parts in a row, each up to its first NUL: texts were C strings when clients learnt them.
fn concat(parts: &[&[u8]]) -> Cow<'static, [u8]> {
    Cow::Owned(parts.iter().flat_map(|part| cut(part, part.len())).copied().collect())
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

impl std::error::Error for Error {}

/// At most `max` bytes of `text`, and nothing behind a NUL.
fn cut(text: &[u8], max: usize) -> &[u8] {
    let text = &text[..text.len().min(max)];
    text.iter().position(|b| *b == 0).map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_first_word_of_the_text() {
        let errors = [
            Error::WrongType,
            Error::Syntax,
            Error::NoAuth,
            Error::NoAuthHello,
            Error::WrongPass,
            Error::NoPerm(Box::new((Box::from(*b"me"), "get"))),
            Error::NoProto,
            Error::NotHll,
            Error::CorruptHll,
            Error::ExecAbort,
            Error::OutOfMemory,
            Error::Loading,
            Error::Busy,
            Error::Internal,
            Error::invalid_expire("set"),
            Error::said("TRYAGAIN later"),
        ];
        for error in errors {
            let text = error.to_string();
            assert_eq!(text.split(' ').next(), Some(&*error.code()), "{error:?}");
        }
    }

    #[test]
    fn what_a_client_sent_breaks_no_line() {
        let error = Error::ExpireOption(Box::new(Box::from(*b"a\r\nb\xff")));
        assert_eq!(*error.text(), *b"ERR Unsupported option a  b\xff");
        assert_eq!(error.to_string(), "ERR Unsupported option a  b\u{fffd}");
        let error = Error::ExpireOption(Box::new(Box::from(*b"a\nb\r\n\n")));
        assert_eq!(*error.text(), *b"ERR Unsupported option a b");
    }
}
