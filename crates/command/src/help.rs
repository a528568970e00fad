//! The texts of `HELP` subcommands and how they are sent.

use resp::Reply;

use crate::ctx::Ctx;
use crate::done::Done;
use crate::error::Error;

/// Sends the help of a command (lower case): a heading, its lines, and those on HELP itself.
pub fn write(reply: &mut Reply<'_>, command: &str) {
    let texts = TEXTS.iter().find(|(name, _)| *name == command);
    let lines = texts.expect("every command with HELP has a text").1;
    reply.array(lines.len() + 3);
    let name = command.to_ascii_uppercase();
    reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        reply.simple(line);
    }
    reply.simple("HELP");
    reply.simple("    Print this help.");
}

/// `HELP` of a container, whichever was called.
pub fn help(ctx: &mut Ctx<'_, '_>) -> Result<Done, Error> {
    let container = ctx.args.get(0).to_ascii_lowercase();
    let name = str::from_utf8(&container).expect("names of commands are ASCII");
    write(&mut ctx.reply, name);
    Ok(Done::Replied)
}

/// The texts by command.
pub const TEXTS: [(&str, &[&str]); 14] = [
    ("client", CLIENT),
    ("command", COMMAND),
    ("commandlog", COMMANDLOG),
    ("config", CONFIG),
    ("debug", DEBUG),
    ("hotkeys", HOTKEYS),
    ("latency", LATENCY),
    ("memory", MEMORY),
    ("module", MODULE),
    ("object", OBJECT),
    ("pubsub", PUBSUB),
    ("slowlog", SLOWLOG),
    ("xgroup", XGROUP),
    ("xinfo", XINFO),
];

const MODULE: &[&str] = &["LIST", "    Return a list of loaded modules."];

const XGROUP: &[&str] = &[
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
];

const XINFO: &[&str] = &[
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

const COMMAND: &[&str] = &[
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
];

const CONFIG: &[&str] = &[
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];

const CLIENT: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "CAPA <capability> [<capability> ...]",
    "    Tell what this client can do, for the filter CAPA. Nothing else depends on it.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "IMPORT-SOURCE (ON|OFF)",
    "    Mark this client as an import source: in import mode it sees keys that are due.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * MAXAGE <seconds>",
    "      Kill connections that are at least so old.",
    "    * ID <id> [<id> ...], IDLE <seconds>, FLAGS <letters>, NAME <name>,",
    "      LIB-NAME <name>, LIB-VER <version>, DB <db>, IP <ip>, CAPA <letters>",
    "      Kill connections that are so.",
    "    * NOT-<option> <value>, but of SKIPME, MAXAGE and IDLE",
    "      Kill connections that are not so.",
    "LIST [<option> <value> [...]]",
    "    Return information about client connections. Options are those of KILL, with",
    "    MAXAGE in milliseconds and SKIPME NO by default.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Name the library of the current connection, or its version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching. There is none: OFF alone.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Leave the access times of keys alone when the current connection reads them.",
];

const COMMANDLOG: &[&str] = &[
    "GET <count> <type>",
    "    Return top <count> entries from the log of <type> (-1 mean all). <type> can be:",
    "    slow, large-request, large-reply. Entries are made of:",
    "    id, timestamp, time in microseconds or size in bytes, arguments array,",
    "    client IP and port, client name",
    "LEN <type>",
    "    Return the length of the log of <type>.",
    "RESET <type>",
    "    Reset the log of <type>.",
];

const HOTKEYS: &[&str] = &[
    "GET",
    "    Return the keys and slots that are used most, and the largest values: of the session,",
    "    or without one of the last one to two minutes, by a sample of the commands.",
    "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]",
    "    Begin a session. It counts one command in <ratio> (default: 1) and shows <k> keys",
    "    (default: 10) by the time or the bytes of their commands.",
    "STOP",
    "    End the session. What it has counted can still be read.",
    "RESET",
    "    Forget the session.",
];

const LATENCY: &[&str] = &[
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
];

const MEMORY: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
];

const OBJECT: &[&str] = &[
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

const PUBSUB: &[&str] = &[
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
];

const SLOWLOG: &[&str] = &[
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
];

const DEBUG: &[&str] = &[
    "CHANGE-REPL-ID",
    "    Change the replication IDs of the instance.",
    "DICT-RESIZING <0|1>",
    "    Setting it to 0 keeps tables from shrinking. Setting it to 1 reenables back the",
    "    default.",
    "DIGEST",
    "    Output a hex signature representing the current DB content.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Output a hex signature of the values of all the specified keys.",
    "ERROR <string>",
    "    Return a Redis protocol error with <string> as message. Useful for clients",
    "    unit tests to simulate Redis errors.",
    "FAIL-IN-COMMAND <command> [<changes> [<runs>]]",
    "    Like PANIC-IN-COMMAND, but <command> replies with an error.",
    "HOLD <key> <seconds>",
    "    Hold the slot of <key> for <seconds>, as a long command does, and the thread that",
    "    runs it. Decimals allowed; 0 ends all such holds.",
    "HTSTATS <dbid>",
    "    Return hash table statistics of the specified Redis database.",
    "HTSTATS-KEY <key>",
    "    Like HTSTATS but for the hash table stored at <key>'s value.",
    "LEAK <string>",
    "    Create a memory leak of the input string.",
    "LISTPACK <key>",
    "    Print the elements of <key>, which is called listpack, on stdout.",
    "LOADAOF",
    "    Write everything to the append-only file, remove the data, and load that file. Writes",
    "    wait until it is written; while it is loaded, clients are answered as at the start.",
    "LOG <message>",
    "    Write <message> to the server log.",
    "MOVE-CLIENTS <0|1>",
    "    Let each worker hand a client on to the next worker again and again, for tests.",
    "OBJECT <key>",
    "    Show low level info about `key` and associated value.",
    "PANIC-IN-COMMAND [<command> [<changes> [<runs>]]]",
    "    Let the next run of <command> (default: of any) panic, after it has made",
    "    <changes> changes (default: 0). Tests that nothing else suffers from it.",
    "    <runs> runs are let through before; a step is a run, and serving a client.",
    "    SWEEP panics where due keys are removed, SAVER in a save; TURN ends the process.",
    "PAUSE-CRON <0|1>",
    "    Stop what is done now and then: removing keys whose time has come, closing idle",
    "    clients, publishing figures.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> string keys named key:<num>. If <prefix> is specified then",
    "    it is used instead of the 'key' prefix.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type. <type> can be: string,",
    "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
    "    true, false.",
    "QUICKLIST <key> [<0|1>]",
    "    Print how many nodes the list in <key> has on stdout; with 1 its elements, too.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Let elements of <size> bytes and more be nodes by themselves in what DUMP writes and",
    "    OBJECT counts. Default: 1GB, at most 4GB; 0 restores the default.",
    "RELOAD [MERGE] [NOFLUSH] [NOSAVE]",
    "    Save the data, remove it, and load the file. Writes wait for the save; while the file",
    "    is loaded, clients are answered as at the start. NOSAVE: load the file that is there.",
    "    NOFLUSH: keep the other keys. MERGE: accepted; keys that are there are always replaced.",
    "SAFE-UP-TO <number|ALL>",
    "    Number all changes from now on, and hold replies that saw a change above",
    "    <number>, as if a journal had only come so far. ALL: stop numbering, and let all",
    "    replies go. Returns the number of the last change.",
    "SDSLEN <key>",
    "    Show lengths and allocations of <key> and of its text. A short text stands in",
    "    its key's allocation.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 disables expiring keys in background when they are not",
    "    accessed. Setting it to 1 reenables back the default.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Setting it to 1 takes payloads of RESTORE whose checksum is wrong.",
    "SLEEP <seconds>",
    "    Stop the server for <seconds>. Decimals allowed.",
    "STRINGMATCH-LEN <len> <pattern>",
    "    Tell whether <pattern> matches a string of <len> times 'a'.",
    "STRUCTSIZE",
    "    Return the size of different core structures.",
];
