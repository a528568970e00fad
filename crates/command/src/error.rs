//! Every error that a client can get: one row per error, its exact text beside its name. Clients
//! match on these texts; the leading `-` and the line end are the reply writer's.
//!
//! A row is `Name => "text"`, or `Name { field: Type } => "text with {field}"`. The latter also
//! makes a struct `Name`, which becomes an [`Error`] with `.into()`. `Text` is the only error whose
//! whole text is made elsewhere.

#[macro_use]
mod row;
mod reply;

pub use row::Echo;

errors! {
    // Requests: names, subcommands, arguments.

    Arity { command: &'static str } => "ERR wrong number of arguments for '{command}' command",
    UnknownCommand { name: Echo, args: Echo } =>
        "ERR unknown command '{name}', with args beginning with: {args}",
    UnknownSubcommand { name: Echo, container: Box<str> } =>
        "ERR unknown subcommand '{name}'. Try {container} HELP.",
    /// A known subcommand whose arguments do not fit.
    SubcommandSyntax { name: Echo, container: Box<str> } =>
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try {container} HELP.",
    Syntax => "ERR syntax error",
    NotInteger => "ERR value is not an integer or out of range",
    NotFloat => "ERR value is not a valid float",
    /// An increment which is infinite.
    NotFinite => "ERR value is NaN or Infinity",
    /// Below 0 or beyond 64 bits.
    NotPositive => "ERR value is out of range, must be positive",
    /// Beyond the bounds of an `int`.
    IntRange => "ERR value is out of range, value must between -2147483648 and 2147483647",
    /// The smallest integer, which has no opposite.
    CountRange =>
        "ERR value is out of range, value must between -9223372036854775807 and \
         9223372036854775807",
    /// A count that is too large in one direction.
    OutOfRange => "ERR value is out of range",
    OffsetRange => "ERR offset is out of range",
    CountPositive => "ERR count should be greater than 0",
    /// GEOSEARCH, XAUTOCLAIM: the same in other words.
    CountAboveZero => "ERR COUNT must be > 0",
    /// SINTERCARD, ZINTERCARD.
    LimitNegative => "ERR LIMIT can't be negative",
    NumKeysPositive => "ERR numkeys should be greater than 0",
    /// Fewer keys than announced.
    NumKeysMany => "ERR Number of keys can't be greater than number of args",

    // Keys: databases, expiry, scans.

    WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
    NoSuchKey => "ERR no such key",
    DbRange => "ERR DB index is out of range",
    /// SWAPDB.
    FirstDbIndex => "ERR invalid first DB index",
    /// SWAPDB.
    SecondDbIndex => "ERR invalid second DB index",
    /// COPY or MOVE onto itself.
    SameObject => "ERR source and destination objects are the same",
    InvalidExpire { command: &'static str } => "ERR invalid expire time in '{command}' command",
    ExpireNxConflict => "ERR NX and XX, GT or LT options at the same time are not compatible",
    ExpireGtLt => "ERR GT and LT options at the same time are not compatible",
    ExpireOption { word: Echo } => "ERR Unsupported option {word}",
    InvalidCursor => "ERR invalid cursor",
    UnknownType { name: Echo } => "ERR unknown type name '{name}'",
    /// OBJECT FREQ.
    NotLfu =>
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    /// OBJECT IDLETIME.
    IsLfu =>
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
         switching between policies at runtime LRU and LFU data will take some time to adjust.",
    /// SORT: an element, or what it is sorted by.
    SortScore => "ERR One or more scores can't be converted into double",
    /// WAITAOF: a number of local files that is neither 0 nor 1.
    WaitLocalRange => "ERR value is out of range, value must between 0 and 1",
    WaitLocalOff => "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",

    // RESTORE, MIGRATE.

    BusyKey => "BUSYKEY Target key name already exists.",
    RestoreTtl => "ERR Invalid TTL value, must be >= 0",
    RestoreIdletime => "ERR Invalid IDLETIME value, must be >= 0",
    RestoreFreq => "ERR Invalid FREQ value, must be >= 0 and <= 255",
    /// The payload is not readable: the text is that of `rdb::Error::reply`.
    Payload { text: &'static str } => "{text}",
    MigrateKeys =>
        "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
    MigrateTarget { reply: Box<[u8]> } => "ERR Target instance replied with error: {reply}",
    MigrateConnecting => "IOERR error or timeout connecting to the client",
    MigrateWriting => "IOERR error or timeout writing to target instance",
    MigrateReading => "IOERR error or timeout reading to target instance",
    MigrateRemoving => "IOERR error or timeout removing what it has taken",

    // Strings and bitmaps.

    StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
    /// INCR or INCRBY beyond 64 bits.
    IncrOverflow => "ERR increment or decrement would overflow",
    /// DECRBY by the smallest integer.
    DecrOverflow => "ERR decrement would overflow",
    IncrNotFinite => "ERR increment would produce NaN or Infinity",
    /// INCREX.
    EnxAlone => "ERR ENX flag requires an expiration",
    /// INCREX.
    BoundsCrossed => "ERR LBOUND can't be greater than UBOUND",
    /// DELEX.
    ConditionWanted => "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE",
    /// DELEX.
    ConditionOnString => "ERR Key should be of string type if conditions are specified",
    /// IFDEQ, IFDNE.
    DigestWanted => "ERR must be exactly 16 hexadecimal characters",
    /// MSETEX.
    NumKeys => "ERR invalid numkeys value",
    /// MSETEX: fewer pairs than announced.
    NumKeysArgs => "ERR wrong number of key-value pairs",
    LcsNotString => "ERR The specified keys must contain string values",
    LcsLenIdx => "ERR If you want both the length and indexes, please just use IDX.",
    LcsMemory => "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
    BitOffset => "ERR bit offset is not an integer or out of range",
    /// SETBIT: neither 0 nor 1.
    BitValue => "ERR bit is not an integer or out of range",
    /// BITPOS: an integer, but neither 0 nor 1.
    BitWanted => "ERR The bit argument must be 1 or 0.",
    BitopNot => "ERR BITOP NOT must be called with a single source key.",
    BitfieldType =>
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
         i64 is.",
    BitfieldOverflow => "ERR Invalid OVERFLOW type specified",
    BitfieldReadOnly => "ERR BITFIELD_RO only supports the GET subcommand",

    // HyperLogLogs.

    NotHll => "WRONGTYPE Key is not a valid HyperLogLog string value.",
    CorruptHll => "INVALIDOBJ Corrupted HLL object detected",
    PfdebugNoKey => "ERR The specified key does not exist",
    PfdebugSubcommand { word: Echo } => "ERR Unknown PFDEBUG subcommand '{word}'",
    /// PFDEBUG DECODE.
    HllNotSparse => "ERR HLL encoding is not sparse",
    SelfTest { why: Box<str> } => "TESTFAILED {why}",

    // Hashes.

    HashNotInteger => "ERR hash value is not an integer",
    HashNotFloat => "ERR hash value is not a float",
    HsetexTimes => "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
    NumFields => "ERR Number of fields must be a positive integer",
    NumFieldsMatch => "ERR The `numfields` parameter must match the number of arguments",
    NoFields => "ERR Mandatory argument FIELDS is missing or not at the right position",

    // Lists.

    IndexRange => "ERR index out of range",
    LposRank =>
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or \
         use negative to start from the end of the list",
    LposCount => "ERR COUNT can't be negative",
    LposMaxlen => "ERR MAXLEN can't be negative",

    // Sorted sets and places.

    ZaddNxXx => "ERR XX and NX options at the same time are not compatible",
    ZaddGtLtNx => "ERR GT, LT, and/or NX options at the same time are not compatible",
    ZaddIncrPairs => "ERR INCR option supports a single increment-element pair",
    ScoreNan => "ERR resulting score is not a number (NaN)",
    ScoreBound => "ERR min or max is not a float",
    MemberBound => "ERR min or max not valid string range item",
    /// ZRANGE.
    LimitByRank =>
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
    /// ZRANGE.
    ScoresByLex => "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
    WeightNotFloat => "ERR weight value is not a float",
    NoInputKeys { command: &'static str } =>
        "ERR at least 1 input key is needed for '{command}' command",
    /// The pair has six decimals each.
    InvalidPlace { pair: Box<str> } => "ERR invalid longitude,latitude pair {pair}",
    UnknownUnit => "ERR unsupported unit provided. please use M, KM, FT, MI",
    NeedNumeric { what: &'static str } => "ERR need numeric {what}",
    RadiusNegative => "ERR radius cannot be negative",
    BoxNegative => "ERR height or width cannot be negative",
    VerticesNotInteger => "ERR invalid number of vertices",
    VerticesTooFew => "ERR GEOSEARCH BYPOLYGON must have at least 3 vertices",
    /// The member in the middle of a search.
    NoSuchPlace => "ERR could not decode requested zset member",
    AnyWithoutCount => "ERR the ANY argument requires COUNT argument",
    GeoStoreWith { what: &'static str } =>
        "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
    GeoExactlyOne { what: &'static str, command: Box<str> } =>
        "ERR exactly one of {what} can be specified for {command}",

    // Streams: ids, trimming, XSETID.

    StreamId => "ERR Invalid stream ID specified as stream command argument",
    StreamIdTooLow =>
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    StreamIdZero => "ERR The ID specified in XADD must be greater than 0-0",
    StreamIdsExhausted =>
        "ERR The stream has exhausted the last possible ID, unable to add more items",
    StreamEntryTooLarge => "ERR Elements are too large to be stored",
    StreamRangeStart => "ERR invalid start ID for the interval",
    StreamRangeEnd => "ERR invalid end ID for the interval",
    TrimMaxlenNegative => "ERR The MAXLEN argument must be >= 0.",
    TrimLimitNegative => "ERR The LIMIT argument must be >= 0.",
    TrimTwoStrategies =>
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
    TrimLimitExact => "ERR syntax error, LIMIT cannot be used without the special ~ option",
    TrimLimitAlone =>
        "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
    SetidLow => "ERR The ID specified in XSETID is smaller than the target stream top item",
    SetidDeleted =>
        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
    SetidBelowDeleted =>
        "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
    SetidAdded =>
        "ERR The entries_added specified in XSETID is smaller than the target stream length",
    SetidAddedNegative => "ERR entries_added must be positive",
    /// XDELEX, XACKDEL, XNACK.
    NumIds => "ERR Number of IDs must be a positive integer",
    /// XDELEX, XACKDEL, XNACK: not as many ids as announced.
    NumIdsMatch => "ERR The `numids` parameter must match the number of arguments",

    // Streams: groups and readers.

    /// XGROUP.
    GroupNoKey =>
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want \
         to use the MKSTREAM option to create an empty stream automatically.",
    GroupExists => "BUSYGROUP Consumer Group name already exists",
    /// No such group, of a key that exists.
    NoGroup { group: Echo, key: Echo } =>
        "NOGROUP No such consumer group '{group}' for key name '{key}'",
    NoKeyOrGroup { key: Echo, group: Echo } =>
        "NOGROUP No such key '{key}' or consumer group '{group}'",
    NoKeyOrGroupRead { key: Echo, group: Echo } =>
        "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option",
    EntriesRead => "ERR value for ENTRIESREAD must be positive or -1",
    /// XREAD: not as many ids as keys.
    XreadUnbalanced =>
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be \
         specified.",
    /// XREADGROUP: not as many ids as keys.
    XreadgroupUnbalanced =>
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be \
         specified.",
    GroupInXread =>
        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
    NoackInXread =>
        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
    NewIdInXread =>
        "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
         <consumer> option.",
    NoGroupOption => "ERR Missing GROUP option for XREADGROUP",
    DollarInXreadgroup =>
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history \
         of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ \
         ID would just return an empty result set.",
    MinIdleTime { command: &'static str } => "ERR Invalid min-idle-time argument for {command}",
    XclaimNumber { option: &'static str } => "ERR Invalid {option} option argument for XCLAIM",
    XclaimOption { word: Echo } => "ERR Unrecognized XCLAIM option '{word}'",
    /// XAUTOCLAIM.
    CountMemory =>
        "ERR Insufficient memory, failed allocating transient memory, COUNT too high.",

    // Connections: authentication, CLIENT, timeouts.

    /// A file is being loaded.
    Loading => "LOADING Redis is loading the dataset in memory",
    NoAuth => "NOAUTH Authentication required.",
    NoAuthHello =>
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
         <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
         RESP protocol version at the same time",
    WrongPass => "WRONGPASS invalid username-password pair or user is disabled.",
    NoPasswordSet =>
        "ERR AUTH <password> called without any password configured for the default user. Are you \
         sure your configuration is correct?",
    ProtoNotInteger => "ERR Protocol version is not an integer or out of range",
    NoProto => "NOPROTO unsupported protocol version",
    HelloOption { word: Echo } => "ERR Syntax error in HELLO option '{word}'",
    ClientName => "ERR Client names cannot contain spaces, newlines or special characters.",
    ClientInfoOption { word: Echo } => "ERR Unrecognized option '{word}'",
    ClientInfoValue { name: &'static str } =>
        "ERR {name} cannot contain spaces, newlines or special characters.",
    ClientType { word: Echo } => "ERR Unknown client type '{word}'",
    ClientFlags { word: Echo } => "ERR Unknown client flags '{word}'",
    ClientId => "ERR Invalid client ID",
    ClientIdPositive => "ERR client-id should be greater than 0",
    /// CLIENT KILL: no client has this address.
    NoSuchClient => "ERR No such client",
    NoSuchUser { name: Echo } => "ERR No such user '{name}'",
    TimeoutNotInteger => "ERR timeout is not an integer or out of range",
    TimeoutNotFloat => "ERR timeout is not a float or out of range",
    TimeoutNegative => "ERR timeout is negative",
    /// Beyond the end of time.
    TimeoutRange => "ERR timeout is out of range",
    PauseMode => "ERR CLIENT PAUSE mode must be WRITE or ALL",
    UnblockReason => "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
    NoRedirectionTarget => "ERR The client ID you want redirect to does not exist",
    SecondRedirection => "ERR A client can only redirect to a single other client",
    PrefixWithoutBroadcast => "ERR PREFIX option requires BCAST mode to be enabled",
    BroadcastSwitched =>
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and \
         then re-enabling it with a different mode.",
    OptionsInBroadcast => "ERR OPTIN and OPTOUT are not compatible with BCAST",
    OptInAndOut => "ERR You can't specify both OPTIN mode and OPTOUT mode",
    OptSwitched =>
        "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and \
         then re-enabling it with a different mode.",
    PrefixExists { prefix: Echo, other: Echo } =>
        "ERR Prefix '{prefix}' overlaps with an existing prefix '{other}'. Prefixes for a single \
         client must not overlap.",
    PrefixesOverlap { prefix: Echo, other: Echo } =>
        "ERR Prefix '{prefix}' overlaps with another provided prefix '{other}'. Prefixes for a \
         single client must not overlap.",
    CachingWithoutOptIn => "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
    CachingWithoutOptOut => "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
    CachingWithoutTracking =>
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    NoImportMode => "ERR Server is not in import mode",

    // Transactions, MONITOR.

    NestedMulti => "ERR MULTI calls can not be nested",
    WatchInMulti => "ERR WATCH inside MULTI is not allowed",
    ExecWithoutMulti => "ERR EXEC without MULTI",
    DiscardWithoutMulti => "ERR DISCARD without MULTI",
    ExecAbort => "EXECABORT Transaction discarded because of previous errors.",
    /// EXEC itself was refused: the error, without `ERR`.
    ExecRefused { why: Box<str> } => "EXECABORT Transaction discarded because of: {why}",
    NotInMulti => "ERR Command not allowed inside a transaction",
    MonitorInMulti => "ERR MONITOR isn't allowed for DENY BLOCKING client",
    /// SSUBSCRIBE inside a transaction.
    ShardSubscribeInMulti => "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
    /// A RESP2 client with subscriptions sends something else.
    Subscribed { command: &'static str } =>
        "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context",
    /// A command on keys from a client that monitors.
    MonitorOnKeys => "ERR Replica can't interact with the keyspace",

    // The server: memory, COMMAND, CONFIG, SHUTDOWN, logs, DEBUG.

    OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
    /// As above, for the budget of a database.
    DatabaseFull { db: u32 } =>
        "OOM command not allowed when used memory of database {db} > 'db-limit'.",
    /// COMMAND GETKEYS, as the three below.
    InvalidCommand => "ERR Invalid command specified",
    NoKeyArguments => "ERR The command has no key arguments",
    InvalidArgumentCount => "ERR Invalid number of arguments specified for command",
    InvalidArguments => "ERR Invalid arguments specified for command",
    NoConfigFile => "ERR The server is running without a config file",
    NoShutdown => "ERR No shutdown in progress.",
    ShutdownFailed => "ERR Errors trying to SHUTDOWN. Check logs.",
    SaveUnderWay => "ERR Background save already in progress",
    RewriteUnderWay => "ERR Background append only file rewriting already in progress",
    /// SAVE has failed: the log says why, as in Redis.
    SaveFailed => "ERR",
    /// A write while background saves fail (`stop-writes-on-bgsave-error`).
    MisconfiguredSave =>
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist \
         to disk. Commands that may modify the data set are disabled, because this instance is \
         configured to report errors during writes if RDB snapshotting fails \
         (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the \
         RDB error.",
    CommandLogType => "ERR type must be one of slow, large-request, large-reply",
    SlowlogCount => "ERR count should be greater than or equal to -1",
    /// HOTKEYS START, as the five below.
    HotKeysMetrics => "ERR METRICS must be followed by a count, 1 or 2, and so many of CPU and NET",
    HotKeysCount => "ERR COUNT must be between 1 and 64",
    HotKeysDuration => "ERR DURATION must be between 1 and 4294967295 seconds",
    HotKeysSample => "ERR SAMPLE must be between 1 and 4294967295",
    HotKeysSlots => "ERR SLOTS is for servers in cluster mode",
    HotKeysUnderWay => "ERR A session of HOTKEYS is under way",
    NoSamples { event: Box<str> } => "ERR No samples available for event '{event}'",
    DebugDisabled =>
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
         you can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    DebugProtocolType =>
        "ERR Wrong protocol type name. Please use one of the following: \
         string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
    /// A push to a RESP2 client.
    Resp3Only => "ERR RESP2 is not supported by this command",
    DebugReload => "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
    ReloadFailed => "ERR Error trying to load the RDB dump",
    NotSds => "ERR Not an sds encoded string.",
    NotListpack => "ERR Not a listpack encoded object.",
    NotQuicklist => "ERR Not a quicklist encoded object.",
    PackedThreshold => "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
    HtStatsDb => "ERR Out of range database",
    NoHashTable =>
        "ERR The value stored at the specified key is not represented using an hash table",
    /// DEBUG FAIL-IN-COMMAND.
    AskedFor => "ERR an error was asked for",
    /// DEBUG LISTPACK and DEBUG QUICKLIST, as the one below.
    NobodyReads => "ERR Nobody reads standard output, and too much waits for it",
    NoPrinter { why: Box<str> } => "ERR cannot start a thread that prints: {why}",
    /// A text made elsewhere, its code included: by CONFIG SET, CONFIG REWRITE, DEBUG ERROR.
    Text { text: Box<str> } => "{text}",
}

const _: () = assert!(size_of::<Error>() == 16, "a handler's result is written for every command");
