//! Fields of INFO which no other test covers.

use std::time::{Duration, Instant};

use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire};

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Expired fields are counted, whether the sweep or a command removes them. Fields removed at once
/// by a time in the past do not count as expired.
#[test]
fn expired_fields_are_counted() {
    for sweep in ["0", "1"] {
        let server = ServerProcess::start(&Binary::under_test(), &[]);
        let wire = &mut server.connect();
        ask(wire, &format!("DEBUG SET-ACTIVE-EXPIRE {sweep}"));
        ask(wire, "HSET h a 1 b 2 c 3 d 4");
        ask(wire, "HPEXPIRE h 20 FIELDS 2 a b");
        ask(wire, "HPEXPIRE h 0 FIELDS 1 c");
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(30));
        while figure(wire, "stats", "expired_subkeys") != 2 {
            assert!(began.elapsed() < Duration::from_secs(30), "two fields expire");
            if sweep == "0" {
                assert_eq!(ask(wire, "HSET h x 1"), Value::Int(1));
                ask(wire, "HDEL h x");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(ask(wire, "HLEN h"), Value::Int(1));
        assert_eq!(figure(wire, "stats", "expired_keys"), 0);
        // All fields of a key at once: the key is removed with its last field.
        ask(wire, "HSET all a 1 b 2 c 3");
        ask(wire, "HPEXPIRE all 20 FIELDS 3 a b c");
        std::thread::sleep(Duration::from_millis(30));
        while figure(wire, "stats", "expired_subkeys") != 5 {
            assert!(began.elapsed() < Duration::from_secs(60), "three more expire");
            if sweep == "0" {
                assert_eq!(ask(wire, "EXISTS all"), Value::Int(0));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        ask(wire, "CONFIG RESETSTAT");
        assert_eq!(figure(wire, "stats", "expired_subkeys"), 0);
    }
}

/// Maximum number of reads until a figure has its value.
const PATIENCE: usize = 2_000;

fn await_figure(wire: &mut Wire, section: &str, name: &str, wanted: i64) {
    for _ in 0..PATIENCE {
        if figure(wire, section, name) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{name} is {}, not {wanted}", figure(wire, section, name));
}

/// The value after `name` in a text of words, `name=value` or `name:value`.
fn word(text: &Value, name: &str) -> String {
    let Value::Bulk(text) = text else { panic!("a text: {text:?}") };
    let text = String::from_utf8_lossy(text).into_owned();
    let found = text.split([' ', '\n', '\r', ',']).find_map(|word| word.strip_prefix(name));
    found.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
}

/// A client which waits in a consumer group gets an error when its key is removed; one which waits
/// for a list keeps waiting.
#[test]
fn waits_which_end_when_their_key_is_removed_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    ask(wire, "XGROUP CREATE s g $ MKSTREAM");
    let mut waiting = [server.connect(), server.connect(), server.connect()];
    waiting[0].send(b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n").expect("open");
    waiting[1].send(b"XREADGROUP GROUP g d BLOCK 0 STREAMS s >\r\n").expect("open");
    waiting[2].send(b"BLPOP l 0\r\n").expect("open");
    await_figure(wire, "clients", "blocked_clients", 3);
    assert_eq!(figure(wire, "clients", "total_blocking_keys"), 2);
    assert_eq!(figure(wire, "clients", "total_blocking_keys_on_nokey"), 1);
    ask(wire, "DEL s");
    waiting[0].receive().expect("answered");
    await_figure(wire, "clients", "total_blocking_keys_on_nokey", 0);
    assert_eq!(figure(wire, "clients", "total_blocking_keys"), 1);
}

/// A wait ended by CLIENT UNBLOCK TIMEOUT is not a failed call.
#[test]
fn only_unblocking_with_an_error_fails_a_call() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let (wire, waiting) = (&mut server.connect(), &mut server.connect());
    let Value::Int(id) = ask(waiting, "CLIENT ID") else { panic!("an id") };
    for (how, failed) in [("TIMEOUT", "0"), ("ERROR", "1")] {
        waiting.send(b"BLPOP l 0\r\n").expect("open");
        await_figure(wire, "clients", "blocked_clients", 1);
        assert_eq!(ask(wire, &format!("CLIENT UNBLOCK {id} {how}")), Value::Int(1));
        waiting.receive().expect("answered");
        let info = ask(wire, "INFO commandstats");
        let Value::Bulk(text) = &info else { panic!("a text") };
        let text = String::from_utf8_lossy(text);
        let line = text.lines().find(|line| line.starts_with("cmdstat_blpop:"));
        let line = line.expect("it was called");
        assert!(line.ends_with(&format!("failed_calls={failed}")), "{how}: {line}");
    }
}

/// One command with two effects is one change, and a command without effect is none.
#[test]
fn changes_are_counted_as_redis_counts_them() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    let steps = [
        ("RPUSH l a", 1),
        ("RPUSH l b", 1),
        ("LTRIM l 0 -1", 0),
        ("LMOVE l l LEFT RIGHT", 1),
        ("LMOVE l m LEFT RIGHT", 1),
        ("RPOPLPUSH l m", 1),
        ("RPUSH l c", 1),
        ("RPUSH l d", 1),
        ("LMOVEM l m LEFT LEFT COUNT 2 OBO", 1),
        ("LMOVEM m m LEFT RIGHT COUNT 2 OBO", 1),
        ("LMOVEM m m LEFT LEFT COUNT 2 BULK", 1),
        ("LMOVEM m m LEFT LEFT EXACTLY 9 OBO", 0),
        ("LTRIM m 0 0", 3),
        ("RENAME m n", 1),
        ("RENAMENX n m", 1),
        ("MOVE m 1", 1),
        ("XGROUP CREATE s g $ MKSTREAM", 1),
        ("XGROUP CREATECONSUMER s g c", 1),
        ("XREADGROUP GROUP g c STREAMS s >", 0),
        ("XREADGROUP GROUP g c STREAMS s >", 0),
        ("XADD s 1-1 f v", 1),
        ("XREADGROUP GROUP g c STREAMS s >", 1),
        ("XREADGROUP GROUP g c STREAMS s 0", 1),
        ("XDELEX s IDS 1 9-9", 0),
        ("XDELEX s IDS 1 1-1", 1),
        ("INCREX i EX 100", 1),
        ("INCREX i EX 200", 1),
        ("INCREX i PERSIST", 1),
        ("INCREX i UBOUND 1 EX 100", 0),
        ("INCREX i NX EX 100", 0),
        ("HSET h a 1", 1),
        ("HEXPIRE h 100 FIELDS 1 b", 0),
        ("HEXPIRE h 100 XX FIELDS 1 a", 0),
        ("OBJECT ENCODING h", 0),
        ("HEXPIRE h 100 FIELDS 2 a b", 1),
        ("HEXPIRE h 100 NX FIELDS 1 a", 0),
    ];
    let mut before = figure(wire, "persistence", "rdb_changes_since_last_save");
    for (line, wanted) in steps {
        std::thread::sleep(Duration::from_millis(2)); // a consumer is seen at another time
        let reply = ask(wire, line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        let now = figure(wire, "persistence", "rdb_changes_since_last_save");
        assert_eq!(now - before, wanted, "{line}");
        before = now;
    }
}

/// Commands which set up the keys before each command of [`COUNTED`].
const BEFORE: [&str; 13] = [
    "FLUSHALL",
    "RPUSH l a b c a d a",
    "SADD s a b c d",
    "HSET h a 1 b 2 c 3",
    "ZADD z 1 a 2 b 3 c 4 d",
    "GEOADD g 1 1 a 2 2 b",
    "SET t aaaaa",
    "SET n 12",
    "PFADD p a b c",
    "XADD x 1-1 f v",
    "XADD x 1-2 f v",
    "XADD x 1-3 f v",
    "XGROUP CREATE x g 0",
];

/// Commands which change several elements, or fewer than expected; their setup precedes them.
const COUNTED: &str = "
RPUSH l x y z|LPUSH new x y|RPUSHX l x y|RPUSHX new x y|LPOP l|LPOP l 3|RPOP l 100|LPOP l 0
LREM l 0 a|LREM l 1 a|LREM l 0 q|LTRIM l 1 2|LTRIM l 5 2|LTRIM l 0 -1|LSET l 0 a|LINSERT l BEFORE q x
LINSERT w AFTER %W %W|LSET w 0 %W%W|RPUSH w %W;LPOP w|RPUSH w %W;LMOVE w w LEFT RIGHT|LMOVE w l LEFT LEFT
LMPOP 2 new l LEFT COUNT 3|LMPOP 1 l LEFT COUNT 300|BLMPOP 0 1 l LEFT COUNT 3|LMOVE l m LEFT RIGHT
SADD s a x y|SADD s a|SREM s a b q|SREM s a b c d|SPOP s|SPOP s 2|SPOP s 100|SMOVE s t2 a|SUNIONSTORE d s s
HSET h a 1 b 2 z 4|HMSET h a 1 b 5|HSETNX h a 1|HDEL h a b q|HDEL h a b c|HINCRBY h a 0
ZADD z 1 a 5 b 7 x 8 y|ZADD z NX 1 a 9 x|ZADD z XX CH 5 a 9 x|ZADD z INCR 0 a|ZREM z a b q|ZREM z a b c d
ZREMRANGEBYRANK z 0 1|ZREMRANGEBYSCORE z 1 3|ZREMRANGEBYLEX z - +|ZPOPMIN z 3|ZPOPMAX z 30|ZPOPMIN z
ZMPOP 1 z MIN COUNT 2|BZMPOP 0 1 z MIN COUNT 3|ZRANGESTORE d z 0 -1|ZUNIONSTORE d 1 z
GEOADD g 1 1 a 2 3 b 4 4 c|GEOSEARCHSTORE d g FROMLONLAT 1 1 BYRADIUS 1000 km|SORT z BY nosort STORE d
GEOSEARCHSTORE l g FROMLONLAT 60 60 BYRADIUS 1 km|DEL l s q|UNLINK l s q|MSET a 1 b 2 c 3|MSETNX a 1 b 2
SETBIT t 0 0|SETBIT n 0 0|SETBIT t 0 1|SETBIT t 100 0|SETBIT new 0 0|BITFIELD n SET u8 0 49
BITFIELD t SET u8 0 1 SET u8 8 2 INCRBY u8 0 0|BITFIELD t SET u8 100 0 SET u8 0 97|BITFIELD t GET u8 0
BITFIELD new SET u8 0 1 SET u8 8 2 INCRBY u8 8 0|BITFIELD t OVERFLOW FAIL INCRBY u8 0 255 INCRBY u8 8 1
PFADD p a b c|PFADD p a x y|PFADD new a b a|PFADD new|PFMERGE d p|PFCOUNT p
XTRIM x MAXLEN 1|XTRIM x MINID 1-3|XTRIM x MAXLEN 9|XDEL x 1-1 1-2 9-9|XADD x MAXLEN 1 2-1 f v
XREADGROUP GROUP g c STREAMS x >;XREADGROUP GROUP g c STREAMS x >|XREADGROUP GROUP g c NOACK STREAMS x >
XREADGROUP GROUP g c COUNT 1 STREAMS x x > >|XREADGROUP GROUP g c STREAMS x 0;XREADGROUP GROUP g c STREAMS x 0
XREADGROUP GROUP g c STREAMS x >;XACK x g 1-1 1-2 9-9|XREADGROUP GROUP g c STREAMS x >;XCLAIM x g d 0 1-1 1-2
XREADGROUP GROUP g c STREAMS x >;XCLAIM x g c 0 1-1 1-2 JUSTID|XREADGROUP GROUP g c STREAMS x >;XCLAIM x g c 99999 1-1
XREADGROUP GROUP g c STREAMS x >;XDEL x 1-1;XCLAIM x g c 0 1-1 1-2|XREADGROUP GROUP g c STREAMS x >;XAUTOCLAIM x g d 0 0
XREADGROUP GROUP g c STREAMS x >;XCLAIM x g c 99999 1-1 LASTID 7-7|XREADGROUP GROUP g c STREAMS x >;XAUTOCLAIM x g c 99999 0
XREADGROUP GROUP g c STREAMS x >;XDEL x 1-1;XAUTOCLAIM x g d 0 0 COUNT 2";

/// A command counts one change for each changed element, as the reference does, whether it runs at
/// once or in steps.
#[test]
fn elements_are_counted_as_the_reference_counts_them() {
    let reference = ServerProcess::start(&Binary::redis(), &[]);
    let settings: [&[&str]; 2] = [&[], &["--work-at-once-elements", "1"]];
    for settings in settings {
        let binary = Binary::under_test();
        let settings = if binary.kind == Kind::SheafDb { settings } else { &[] };
        let ours = ServerProcess::start(&binary, settings);
        let count = |server: &ServerProcess, steps: &str| {
            let wire = &mut server.connect();
            let mut seen = 0;
            // A packed list which is converted by one more such element.
            let steps = steps.replace("%W", &"w".repeat(900));
            let wide = format!("RPUSH w {0} {0}", "w".repeat(900));
            for line in BEFORE.into_iter().chain([&*wide]).chain(steps.split(';')) {
                seen = figure(wire, "persistence", "rdb_changes_since_last_save");
                let reply = ask(wire, line);
                assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
            }
            figure(wire, "persistence", "rdb_changes_since_last_save") - seen
        };
        for steps in COUNTED.trim().split(['\n', '|']) {
            assert_eq!(count(&ours, steps), count(&reference, steps), "{settings:?} {steps}");
        }
    }
}

/// Flushing in the background frees values in another thread; CONFIG RESETSTAT resets their count.
#[test]
fn background_frees_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    for (how, freed) in [("SYNC", 0), ("ASYNC", 1000)] {
        ask(wire, "DEBUG POPULATE 1000");
        ask(wire, &format!("FLUSHALL {how}"));
        await_figure(wire, "memory", "lazyfreed_objects", freed);
    }
    ask(wire, "CONFIG RESETSTAT");
    assert_eq!(figure(wire, "memory", "lazyfreed_objects"), 0);
}

/// Number and time of the workers' turns: they grow with work, and RESETSTAT resets them.
#[test]
fn turns_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    for _ in 0..200 {
        ask(wire, "PING");
    }
    // Workers publish their figures periodically.
    for _ in 0..PATIENCE {
        if figure(wire, "stats", "eventloop_cycles") >= 200 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(figure(wire, "stats", "eventloop_cycles") >= 200, "each PING was a turn");
    assert!(figure(wire, "stats", "eventloop_duration_sum") > 0);
    let of_commands = figure(wire, "stats", "eventloop_duration_cmd_sum");
    assert!(of_commands <= figure(wire, "stats", "eventloop_duration_sum"));
    figure(wire, "stats", "instantaneous_eventloop_cycles_per_sec");
    figure(wire, "stats", "instantaneous_eventloop_duration_usec");
}

#[test]
fn info_reports_a_pause() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    let mut info = |change: &str| {
        ask(wire, change);
        let clients = ask(wire, "INFO clients");
        ["paused_reason:", "paused_actions:", "paused_timeout_milliseconds:"]
            .map(|name| word(&clients, name))
    };
    assert_eq!(info("PING"), ["none", "none", "0"]);
    let [reason, actions, left] = info("CLIENT PAUSE 3600000 WRITE");
    assert_eq!([&*reason, &*actions], ["client_pause", "write"]);
    let left: i64 = left.parse().expect("a number");
    assert!((1..=3_600_000).contains(&left), "{left}");
    assert_eq!(info("CLIENT UNPAUSE"), ["none", "none", "0"]);
}

#[test]
fn watches_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let (wire, other) = (&mut server.connect(), &mut server.connect());
    let mut info = || {
        let clients = ask(other, "INFO clients");
        ["watching_clients:", "total_watched_keys:"].map(|name| word(&clients, name))
    };
    ask(wire, "WATCH a b a");
    assert_eq!(info(), ["1", "2"]);
    for end in ["EXEC", "DISCARD"] {
        ask(wire, "WATCH a b");
        ask(wire, "MULTI");
        ask(wire, end);
        assert_eq!(info(), ["0", "0"], "{end}");
        assert_eq!(word(&ask(wire, "CLIENT INFO"), "watch="), "0", "{end}");
    }
}

/// CLIENT INFO includes its own request in the buffers.
#[test]
fn a_client_sees_its_own_request() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let (wire, _other) = (&mut server.connect(), server.connect());
    let info = ask(wire, "CLIENT INFO");
    // *2 $6 CLIENT $4 INFO
    assert_eq!(["qbuf=", "argv-mem=", "rbs="].map(|name| word(&info, name)), ["26", "10", "26"]);
}

/// A read with NOACK adds no pending entries: the consumer has been seen, but is not active.
#[test]
fn reads_with_noack_do_not_make_a_consumer_active() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    ask(wire, "XGROUP CREATE s g $ MKSTREAM");
    for count in [1, 3] {
        for _ in 0..count {
            ask(wire, "XADD s * f v");
        }
        ask(wire, "XREADGROUP GROUP g c NOACK STREAMS s >");
        let Value::Array(consumers) = ask(wire, "XINFO CONSUMERS s g") else { panic!("a list") };
        let Value::Array(facts) = &consumers[0] else { panic!("facts: {consumers:?}") };
        assert_eq!(facts[6..], [Value::Bulk(b"inactive".to_vec()), Value::Int(-1)]);
    }
}

/// Reads of streams look their keys up, as all reads do: once, however long they wait.
#[test]
fn reads_of_streams_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    ask(wire, "XADD s 1-1 f v");
    ask(wire, "XGROUP CREATE s g 0");
    ask(wire, "CONFIG RESETSTAT");
    let steps = [
        ("XREAD STREAMS s 0", 1, 0),
        ("XREAD STREAMS s nothing 0 0", 1, 1),
        ("XREADGROUP GROUP g c STREAMS s >", 1, 0),
        ("XREADGROUP GROUP g c STREAMS nothing >", 0, 1),
        ("XREAD BLOCK 1 STREAMS nothing 0", 0, 1),
    ];
    let mut before = [0, 0];
    for (line, hits, misses) in steps {
        ask(wire, line);
        let now = ["keyspace_hits", "keyspace_misses"].map(|name| figure(wire, "stats", name));
        assert_eq!([now[0] - before[0], now[1] - before[1]], [hits, misses], "{line}");
        before = now;
    }
}

/// INFO shows for each database the number of hashes with expiring fields, if there are any, under
/// Valkey 9's name.
#[test]
fn hashes_with_fields_that_expire_are_counted() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let wire = &mut server.connect();
    ask(wire, "SET k v");
    let expect = |wire: &mut Wire, line: &str, counts: [&str; 2]| {
        ask(wire, line);
        let info = ask(wire, "INFO keyspace");
        let Value::Bulk(text) = &info else { panic!("a text") };
        let text = String::from_utf8_lossy(text).into_owned();
        let found = ["db0:", "db1:"].map(|db| {
            let of_db = text.lines().find(|line| line.starts_with(db)).unwrap_or("none");
            let word = |name: &str| of_db.split(',').find_map(|word| word.strip_prefix(name));
            word("keys_with_volatile_items=").unwrap_or("-").to_owned()
        });
        assert_eq!(found, counts, "{line}: {text}");
    };
    let lines = [
        ("HSET h a 1 b 2", ["-", "-"]),
        ("HPEXPIRE h 100000 FIELDS 2 a b", ["1", "-"]),
        ("HPERSIST h FIELDS 1 a", ["1", "-"]),
        ("COPY h i", ["2", "-"]),
        ("COPY h j DB 1", ["2", "1"]),
        ("RENAME i h", ["1", "1"]),
        ("HPERSIST h FIELDS 1 b", ["-", "1"]),
        ("HPEXPIRE h 100000 FIELDS 1 b", ["1", "1"]),
        ("HDEL h b", ["-", "1"]),
        ("HSETEX h EX 1000 FIELDS 1 c 3", ["1", "1"]),
        ("SWAPDB 0 1", ["1", "1"]),
        ("FLUSHDB", ["-", "1"]),
        ("SWAPDB 0 1", ["1", "-"]),
        ("HPEXPIRE h 1 FIELDS 1 c", ["-", "-"]),
        ("FLUSHALL", ["-", "-"]),
    ];
    for (line, counts) in lines {
        if line.starts_with("HPEXPIRE h 1 ") {
            ask(wire, line);
            for _ in 0..PATIENCE {
                let Value::Bulk(text) = ask(wire, "INFO keyspace") else { panic!("a text") };
                if !String::from_utf8_lossy(&text).contains("keys_with_volatile_items=") {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            continue;
        }
        expect(wire, line, counts);
    }
}

/// The percentage of keys with an expiry which have expired and are not removed yet: 0 unless
/// removal is held back.
#[test]
fn the_share_of_stale_keys_is_reported() {
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let wire = &mut server.connect();
    let percent = |wire: &mut Wire| word(&ask(wire, "INFO stats"), "expired_stale_perc:");
    let come_to = |wire: &mut Wire, wanted: &str| {
        for _ in 0..PATIENCE {
            if percent(wire) == wanted {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{} percent, not {wanted}", percent(wire));
    };
    assert_eq!(percent(wire), "0.00");
    ask(wire, "DEBUG SET-ACTIVE-EXPIRE 0");
    ask(wire, "SET never v");
    for key in 0..3 {
        ask(wire, &format!("SET soon{key} v PX 1"));
    }
    come_to(wire, "100.00");
    ask(wire, "SET later v EX 1000");
    come_to(wire, "75.00");
    ask(wire, "DEBUG SET-ACTIVE-EXPIRE 1");
    come_to(wire, "0.00");
}

/// INFO shows which part of a save is done. (It was 0.00 at all times.)
#[test]
fn the_part_of_a_save_that_is_done_is_shown() {
    let binary = Binary::under_test();
    if binary.kind != Kind::SheafDb {
        return;
    }
    let server = ServerProcess::start(&binary, &["--rdb-key-save-delay", "10000"]);
    let (wire, began) = (&mut server.connect(), Instant::now());
    for i in 0..50 {
        ask(wire, &format!("SET k{i} {i}"));
    }
    let mut part_was_seen = false;
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "no save was seen half done");
        let Value::Bulk(info) = ask(wire, "INFO persistence") else { panic!("a text") };
        let info = String::from_utf8(info).expect("text");
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.expect("the field is there")
        };
        let keys: u32 = field("current_save_keys_processed").parse().expect("a number");
        let percent = format!("{:.2}", f64::from(keys) * 100.0 / 50.0);
        assert_eq!(field("current_fork_perc"), percent, "{info}");
        part_was_seen |= (1..50).contains(&keys);
        if field("rdb_bgsave_in_progress") == "0" {
            assert_eq!(percent, "0.00", "nothing is being saved");
            if part_was_seen {
                break;
            }
            // At first, and where a busy machine answers when the save is over.
            ask(wire, "BGSAVE");
        }
    }
}
