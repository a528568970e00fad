//! Budgets of databases (`db-limit`): a cache and a queue share a server. Each database keeps its
//! limit at the cost of its own keys, and is refused alone when none of them may go.

use sheafdb_tests::big::figure;
use sheafdb_tests::http;
use sheafdb_tests::in_time::until;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::thread::ScopedJoinHandle;

const MIB: i64 = 1 << 20;
/// Why database 2 refuses.
const OOM: &str = "-OOM command not allowed when used memory of database 2 > 'db-limit'.";
const ABORT: &str = "-EXECABORT Transaction discarded because of: \
     OOM command not allowed when used memory of database 2 > 'db-limit'.";
/// Commands that are sent at once: a window, after which room is made again.
const BURST: usize = 32;

/// A server under test; `None` for the reference.
fn start(args: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    (binary.kind == Kind::SheafDb).then(|| ServerProcess::start(&binary, args))
}

/// The same with one and with two workers.
fn each(args: &[&str], test: impl Fn(ServerProcess)) {
    for threads in ["1", "2"] {
        let own = ["--threads", threads, "--maxmemory-eviction-tenacity", "100"];
        let args: Vec<&str> = own.iter().chain(args).copied().collect();
        if let Some(server) = start(&args) {
            test(server);
        }
    }
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    render::line(&wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}")))
}

/// Sets the budgets in one argument.
fn limit(wire: &mut Wire, text: &str) -> String {
    render::line(&wire.command(&["CONFIG", "SET", "db-limit", text]).expect("answered"))
}

/// A connection to a database.
fn select(server: &ServerProcess, db: usize) -> Wire {
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, &format!("SELECT {db}")), "+OK");
    wire
}

/// A figure of a database's line in INFO; 0 if it is not shown.
fn of(wire: &mut Wire, db: usize, name: &str) -> i64 {
    let Ok(Value::Bulk(text)) = wire.command(&["INFO", "databases"]) else { panic!("a text") };
    let reply = String::from_utf8(text).expect("text");
    let line = reply.lines().find_map(|line| line.strip_prefix(&format!("database{db}:")));
    let fields = line.unwrap_or_default().split(',');
    let value = fields.filter_map(|field| field.split_once('=')).find(|(key, _)| *key == name);
    value.map_or(0, |(_, value)| value.parse().expect("a number"))
}

/// Writes keys in bursts, and returns the replies that are errors.
fn write(wire: &mut Wire, prefix: &str, keys: std::ops::Range<usize>, bytes: usize) -> Vec<String> {
    let value = vec![b'v'; bytes];
    let mut errors = Vec::new();
    let all: Vec<usize> = keys.collect();
    for burst in all.chunks(BURST) {
        let mut request = Vec::new();
        for n in burst {
            let key = format!("{prefix}{n}");
            request.extend(encode(&[&b"SET"[..], key.as_bytes(), &value]));
        }
        wire.send(&request).expect("sent");
        for _ in burst {
            let reply = render::line(&wire.receive().expect("answered"));
            if reply != "+OK" {
                errors.push(reply);
            }
        }
    }
    errors
}

#[test]
fn a_cache_and_a_queue_share_a_server() {
    each(
        &["--db-limit", "1", "4mb", "allkeys-lru", "--db-limit", "2", "4mb", "noeviction"],
        |server| {
            let (mut cache, mut queue) = (select(&server, 1), select(&server, 2));
            for n in 0..5_000 {
                ask(&mut queue, &format!("RPUSH jobs job:{n}"));
            }
            assert_eq!(write(&mut queue, "job:", 0..2_000, 100), [""; 0]);
            assert_eq!(write(&mut cache, "page:", 0..60_000, 500), [""; 0]);
            let (bytes, evicted) = (of(&mut cache, 1, "bytes"), of(&mut cache, 1, "evicted"));
            let window = (BURST * 1_000) as i64;
            assert!(bytes <= 4 * MIB + 4 * MIB / 100 + window, "{bytes}");
            assert!(bytes > 3 * MIB && evicted > 40_000, "{bytes} after {evicted}");
            // The same at the limit of all: the queue is no victim there either.
            let used = figure(&mut cache, "memory", "used_memory");
            ask(&mut cache, "CONFIG SET maxmemory-policy allkeys-lru");
            assert_eq!(ask(&mut cache, &format!("CONFIG SET maxmemory {used}")), "+OK");
            let mut other = select(&server, 3);
            assert_eq!(write(&mut other, "x:", 0..60_000, 500), [""; 0]);
            assert!(figure(&mut cache, "stats", "evicted_keys") > evicted + 1_000);
            assert_eq!(of(&mut cache, 2, "evicted"), 0);
            assert_eq!(ask(&mut queue, "LLEN jobs"), ":5000");
            assert_eq!(ask(&mut queue, "DBSIZE"), ":2001");
            let all = (0..5_000).all(|n| ask(&mut queue, "LPOP jobs") == format!("\"job:{n}\""));
            assert!(all, "an element was lost");
        },
    );
}

#[test]
fn a_full_database_is_refused_alone() {
    each(&["--db-limit", "2", "1mb", "noeviction"], |server| {
        let (mut full, mut free) = (select(&server, 2), select(&server, 0));
        let errors = write(&mut full, "k:", 0..5_000, 500);
        assert!(errors.len() > 1_000 && errors.iter().all(|e| e == OOM), "{:?}", errors.first());
        let bytes = of(&mut free, 2, "bytes");
        assert!(bytes <= MIB + MIB / 100 + 32_000 && bytes > MIB, "{bytes}");
        assert_eq!(ask(&mut full, "SET a b"), OOM);
        assert_eq!(ask(&mut full, "GET k:0").len(), 502);
        assert_eq!(ask(&mut free, "SET a b"), "+OK");
        assert_eq!(write(&mut free, "k:", 0..1_000, 500), [""; 0]);
        // Keys of others do not come in, by whatever way.
        assert_eq!(ask(&mut free, "MOVE a 2"), OOM);
        assert_eq!(ask(&mut free, "COPY a c DB 2"), OOM);
        assert_eq!(ask(&mut free, "COPY a c DB 1"), ":1");
        assert_eq!(ask(&mut full, "COPY k:0 c DB 1 REPLACE"), ":1");
        // A transaction is judged by the databases that it selects.
        let exec = |wire: &mut Wire, lines: &[&str]| {
            assert_eq!(ask(wire, "MULTI"), "+OK");
            for line in lines {
                assert_eq!(ask(wire, line), "+QUEUED", "{line}");
            }
            ask(wire, "EXEC")
        };
        assert_eq!(exec(&mut free, &["SET b 1", "SELECT 2", "SET b 1", "SELECT 0"]), ABORT);
        assert_eq!(ask(&mut free, "EXISTS b"), ":0");
        assert_eq!(
            exec(&mut free, &["SET b 1", "SELECT 2", "GET b", "SELECT 0"]).matches("+OK").count(),
            3
        );
        assert_eq!(exec(&mut full, &["SELECT 0", "SET b 2", "SELECT 2"]).matches("+OK").count(), 3);
        // In one burst, too: what a SELECT decides is decided when it has run.
        full.send(b"SELECT 0\r\nSET c 1\r\nSELECT 2\r\nSET c 1\r\n").expect("sent");
        let replies: Vec<String> =
            (0..4).map(|_| render::line(&full.receive().expect("answered"))).collect();
        assert_eq!(replies, ["+OK", "+OK", "+OK", OOM]);
        free.send(b"SELECT 2\r\nSET c 1\r\nSELECT 0\r\nSET c 1\r\n").expect("sent");
        let replies: Vec<String> =
            (0..4).map(|_| render::line(&free.receive().expect("answered"))).collect();
        assert_eq!(replies, ["+OK", OOM, "+OK", "+OK"]);
        // Room is room.
        for n in 0..50 {
            ask(&mut full, &format!("DEL k:{n}"));
        }
        assert_eq!(ask(&mut full, "SET a b"), "+OK");
        assert_eq!(limit(&mut free, "2 0"), "+OK");
        assert_eq!(write(&mut full, "k:", 0..5_000, 500), [""; 0]);
        assert_eq!(limit(&mut free, "2 1mb noeviction"), "+OK");
        assert_eq!(ask(&mut full, "SET a b"), OOM, "what is there stays");
        assert_eq!((ask(&mut full, "DBSIZE"), of(&mut free, 2, "evicted")), (":5001".into(), 0));
    });
}

#[test]
fn policies_choose_among_the_keys_of_their_database() {
    each(&[], |server| {
        let (mut wire, mut other) = (select(&server, 1), select(&server, 0));
        let oom = OOM.replace("database 2", "database 1");
        assert_eq!(write(&mut other, "o:", 0..2_000, 100), [""; 0]);
        for policy in [
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
        ] {
            assert_eq!(limit(&mut other, &format!("1 1mb {policy}")), "+OK");
            let is_volatile = policy.starts_with("volatile");
            for n in 0..500 {
                ask(&mut wire, &format!("SET stays:{n} v"));
                ask(&mut wire, &format!("SET goes:{n} v EX 10000"));
            }
            let before = of(&mut other, 1, "evicted");
            let errors = write(&mut wire, "k:", 0..5_000, 500);
            let evicted = of(&mut other, 1, "evicted") - before;
            if is_volatile {
                assert_eq!(evicted, 500, "{policy}: all that expire, and no other");
                assert!(errors.len() > 1_000 && errors.iter().all(|e| *e == oom), "{policy}");
                let left =
                    (0..500).filter(|n| ask(&mut wire, &format!("EXISTS stays:{n}")) == ":1");
                assert_eq!(left.count(), 500, "{policy}");
            } else {
                assert_eq!(errors, [""; 0], "{policy}");
                assert!(evicted > 2_000, "{policy}: {evicted}");
            }
            let bytes = of(&mut other, 1, "bytes");
            assert!(bytes <= MIB + MIB / 100 + 32_000, "{policy}: {bytes}");
            ask(&mut wire, "FLUSHDB");
            assert_eq!(of(&mut other, 1, "bytes"), 0, "{policy}");
        }
        assert_eq!((ask(&mut other, "DBSIZE"), of(&mut other, 0, "evicted")), (":2000".into(), 0));
    });
}

#[test]
fn limits_that_move_under_load_are_followed() {
    let Some(server) = start(&["--threads", "2", "--maxmemory-eviction-tenacity", "100"]) else {
        return;
    };
    let (mut wire, mut queue) = (server.connect(), select(&server, 2));
    assert_eq!(limit(&mut wire, "1 8mb allkeys-lru 2 4mb noeviction"), "+OK");
    assert_eq!(write(&mut queue, "job:", 0..5_000, 200), [""; 0]);
    std::thread::scope(|scope| {
        let load = |prefix: &'static str| {
            let mut cache = select(&server, 1);
            scope.spawn(move || write(&mut cache, prefix, 0..60_000, 300))
        };
        let loads = [load("a"), load("b"), load("c")];
        let mut low = false;
        while !loads.iter().all(ScopedJoinHandle::is_finished) {
            low = !low;
            let text = if low { "1 2mb allkeys-random" } else { "1 16mb allkeys-lru" };
            assert_eq!(limit(&mut wire, text), "+OK");
        }
        for load in loads {
            assert_eq!(load.join().expect("it ends"), [""; 0]);
        }
    });
    assert_eq!(limit(&mut wire, "1 1mb volatile-ttl"), "+OK");
    let bytes = of(&mut wire, 1, "bytes");
    assert!(bytes > MIB, "none of them expires: {bytes}");
    assert_eq!(limit(&mut wire, "1 1mb allkeys-random"), "+OK");
    until("nobody writes, and it is followed", || of(&mut wire, 1, "bytes") <= MIB);
    assert_eq!(ask(&mut queue, "DBSIZE"), ":5000");
    assert_eq!(of(&mut wire, 2, "evicted"), 0);
}

#[test]
fn bytes_and_limits_go_with_content_and_number() {
    each(&["--db-limit", "1", "100mb", "allkeys-lru"], |server| {
        let (mut one, mut zero) = (select(&server, 1), select(&server, 0));
        assert_eq!(write(&mut one, "k:", 0..1_000, 500), [""; 0]);
        let bytes = of(&mut zero, 1, "bytes");
        assert!(bytes > 500_000, "{bytes}");
        assert_eq!(ask(&mut zero, "SWAPDB 0 1"), "+OK");
        assert_eq!((of(&mut zero, 0, "bytes"), of(&mut zero, 1, "bytes")), (bytes, 0));
        assert_eq!((of(&mut zero, 0, "limit"), of(&mut zero, 1, "limit")), (0, 100 * MIB));
        (0..1_000).for_each(|n| assert_eq!(ask(&mut zero, &format!("MOVE k:{n} 1")), ":1"));
        assert_eq!((of(&mut zero, 0, "bytes"), of(&mut zero, 1, "bytes")), (0, bytes));
        let mut filled = |text: &str| {
            let before = of(&mut zero, 1, "bytes");
            ask(&mut one, text);
            of(&mut zero, 1, "bytes") - before
        };
        let value = "v".repeat(50_000);
        assert!((50_000..70_000).contains(&filled(&format!("SET long {value}"))));
        assert!((50_000..90_000).contains(&filled(&format!("APPEND long {value}"))));
        assert!((50_000..90_000).contains(&filled(&format!("RPUSH list {value}"))));
        assert!((50_000..90_000).contains(&filled(&format!("RPUSH list {value}"))));
        assert!((100_000..180_000).contains(&filled("COPY list list2")));
        assert!(filled("RENAME list2 list3").abs() < 500);
        assert!(filled("COPY list list9 DB 9") == 0);
        assert!(filled("LPOP list") < -49_000);
        assert!(filled("DEL list long list3") < -200_000);
        let before = of(&mut zero, 9, "bytes");
        assert!(before > 100_000, "{before}");
        ask(&mut zero, "FLUSHALL");
        assert_eq!((of(&mut zero, 9, "bytes"), of(&mut zero, 1, "bytes")), (0, 0));
    });
}

#[test]
fn reads_and_commands_count_for_their_database() {
    each(&[], |server| {
        let mut wire = server.connect();
        let mut burst = |text: &str, replies: usize| {
            wire.send(text.as_bytes()).expect("sent");
            (0..replies).for_each(|_| _ = wire.receive().expect("answered"));
        };
        burst("SET a 1\r\nGET a\r\nGET b\r\nSELECT 3\r\nGET a\r\nSET a 2\r\nGET a\r\nGET a\r\n", 8);
        burst("MULTI\r\nGET a\r\nSELECT 4\r\nGET a\r\nSELECT 3\r\nEXEC\r\nGET a\r\n", 7);
        burst("SELECT 0\r\nGET a\r\n", 2);
        let counts =
            |wire: &mut Wire, db: usize| ["hits", "misses", "keys"].map(|name| of(wire, db, name));
        let mut other = server.connect();
        assert_eq!(counts(&mut other, 0), [2, 1, 1]);
        assert_eq!(counts(&mut other, 3), [4, 1, 1]);
        assert_eq!(counts(&mut other, 4), [0, 1, 0]);
        let all = (
            figure(&mut other, "stats", "keyspace_hits"),
            figure(&mut other, "stats", "keyspace_misses"),
        );
        assert_eq!(all, (6, 3));
        // Two connections in two databases, at the same time.
        let (mut five, mut six) = (select(&server, 5), select(&server, 6));
        for _ in 0..200 {
            five.send(b"GET a\r\nSET a 1\r\n").expect("sent");
            six.send(b"GET a\r\nGET a\r\nSET a 1\r\n").expect("sent");
            (0..2).for_each(|_| _ = five.receive().expect("answered"));
            (0..3).for_each(|_| _ = six.receive().expect("answered"));
        }
        assert_eq!(counts(&mut other, 5), [199, 1, 1]);
        assert_eq!(counts(&mut other, 6), [398, 2, 1]);
        ask(&mut other, "CONFIG RESETSTAT");
        assert_eq!(counts(&mut other, 6), [0, 0, 1]);
    });
}

#[test]
fn settings_are_read_shown_and_checked() {
    let args = ["--db-limit", "2", "10%", "noeviction", "--db-limit", "1", "500mb", "allkeys-lru"];
    let Some(server) = start(&args) else { return };
    let mut wire = server.connect();
    let get = |wire: &mut Wire| ask(wire, "CONFIG GET db-limit");
    let shown = get(&mut wire);
    assert!(shown.contains("1 524288000 allkeys-lru 2 10% noeviction"), "{shown}");
    for (text, why) in [
        ("16 5mb noeviction", "DB index 16 is out of range: it must be between 0 and 15"),
        ("1 101% noeviction", "database 1: percentage argument must be less or equal to 100"),
        (
            "1 99999999999gb noeviction",
            "database 1: argument must be between 0 and 9223372036854775807 inclusive",
        ),
        (
            "1 5mb lru",
            "database 1: argument(s) must be one of the following: volatile-lru, volatile-lfu, \
             volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction",
        ),
    ] {
        let error = limit(&mut wire, text);
        let start = "-ERR CONFIG SET failed (possibly related to argument 'db-limit') - ";
        assert_eq!(error, format!("{start}{why}"));
    }
    assert_eq!(get(&mut wire), shown, "nothing has changed");
    assert_eq!(limit(&mut wire, "2 0 3 1kb volatile-ttl"), "+OK");
    assert!(get(&mut wire).contains("1 524288000 allkeys-lru 3 1024 volatile-ttl"));
    assert_eq!((of(&mut wire, 1, "limit"), of(&mut wire, 2, "limit")), (500 * MIB, 0));
    assert_eq!(limit(&mut wire, ""), "+OK");
    assert_eq!(of(&mut wire, 1, "limit"), 0);
}

/// A sink in a full database accepts nothing until there is room; one in another database goes on.
#[test]
fn a_sink_in_a_full_database_waits() {
    let listen = |db: usize| format!("127.0.0.1:0 strategy=async sink=list:q db={db}");
    let (one, two) = (listen(1), listen(2));
    let args = ["--db-limit", "2", "1mb", "noeviction", "--ingest-listen", &one];
    each(&[&args[..], &["--ingest-listen", &two]].concat(), |server| {
        let (mut wire, mut full, mut free) =
            (server.connect(), select(&server, 2), select(&server, 1));
        assert!(write(&mut full, "k:", 0..3_000, 500).len() > 100);
        let Ok(Value::Bulk(info)) = wire.command(&["INFO", "ingest"]) else { panic!("a text") };
        let info = String::from_utf8(info).expect("text");
        let connect = |listener: usize| {
            let line = info.lines().find(|l| l.starts_with(&format!("ingest_listener{listener}:")));
            let address = line.and_then(|line| line.split("address=").nth(1)).expect("an address");
            let address: SocketAddr =
                address.split(',').next().expect("a field").parse().expect("an address");
            TcpStream::connect(address).expect("it listens")
        };
        let message = |id: u64| [&id.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
        let messages: Vec<u8> = (0..10).flat_map(message).collect();
        let (mut into_free, mut into_full) = (connect(0), connect(1));
        into_full.write_all(&messages).expect("sent");
        into_free.write_all(&messages).expect("sent");
        until("the other sink accepts", || ask(&mut free, "LLEN q") == ":10");
        assert_eq!((ask(&mut full, "LLEN q"), ask(&mut full, "DBSIZE").len()), (":0".into(), 5));
        for n in 0..100 {
            ask(&mut full, &format!("DEL k:{n}"));
        }
        until("there is room", || ask(&mut full, "LLEN q") == ":10");
    });
}

/// `/metrics` shows the first 256 databases, INFO all that were used.
#[test]
fn the_databases_that_are_shown_are_bounded() {
    let admin = free_addr().expect("a free port");
    let port = admin.port().to_string();
    let args =
        ["--databases", "300", "--admin-port", &port, "--db-limit", "0", "1gb", "noeviction"];
    let Some(server) = start(&args) else { return };
    let mut wire = server.connect();
    for db in 0..300 {
        ask(&mut wire, &format!("SELECT {db}"));
        ask(&mut wire, "SET a b");
    }
    assert_eq!(of(&mut wire, 299, "keys"), 1);
    let body = http::get(admin, "/metrics", &[]).expect("answered").body;
    let shown = |name: &str| body.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(shown("sheafdb_db_bytes{"), 256);
    assert_eq!(shown("sheafdb_db_limit_bytes{db=\"db0\",policy=\"noeviction\"} 1073741824"), 1);
    let page = http::get(admin, "/live.json", &[]).expect("answered").body;
    assert_eq!(page.matches("\"policy\":").count(), 256, "{page}");
}

/// Sends two commands at once. Returns their replies.
fn both(wire: &mut Wire, first: &[&str], second: &[&str]) -> [String; 2] {
    wire.send(&[encode(first), encode(second)].concat()).expect("open");
    [(); 2].map(|()| render::line(&wire.receive().expect("answered")))
}

/// A limit holds from the next command on, and what is full stays so whatever else is set.
#[test]
fn a_limit_holds_in_the_packet_that_sets_it() {
    each(&[], |server| {
        let mut wire = select(&server, 2);
        let text = "v".repeat(100_000);
        for n in 0..30 {
            assert_eq!(ask(&mut wire, &format!("SET {n} {text}")), "+OK");
        }
        let limit = ["CONFIG", "SET", "db-limit", "2 1mb volatile-lru"];
        assert_eq!(
            both(&mut wire, &["CONFIG", "SET", "db-limit", "2 1mb noeviction"], &["SET", "k", "v"]),
            ["+OK", OOM]
        );
        assert_eq!(both(&mut wire, &limit, &["SET", "k", "v"])[0], "+OK");
        assert_eq!(ask(&mut wire, "SET k v"), OOM, "no key may go");
        for hz in ["11", "12", "13"] {
            assert_eq!(
                both(&mut wire, &["CONFIG", "SET", "hz", hz], &["SET", "k", "v"]),
                ["+OK", OOM]
            );
        }
    });
}

/// That nothing could go once says nothing of a later excess.
#[test]
fn a_waiting_client_is_served_where_keys_may_go_again() {
    each(&[], |server| {
        let mut wire = select(&server, 2);
        assert_eq!(limit(&mut wire, "2 1mb volatile-lru"), "+OK");
        assert_eq!(ask(&mut wire, "RPUSH list a b"), ":2");
        let text = "v".repeat(100_000);
        let mut filled = 0;
        while ask(&mut wire, &format!("SET {filled} {text}")) == "+OK" {
            filled += 1;
        }
        for n in 0..filled {
            assert_eq!(ask(&mut wire, &format!("DEL {n}")), ":1");
        }
        for n in 0..9 {
            assert_eq!(ask(&mut wire, &format!("SET {n} {text} EX 100")), "+OK");
        }
        let mut waiter = select(&server, 2);
        waiter.send(&encode(&["BLMOVE", "from", "to", "LEFT", "RIGHT", "0"])).expect("open");
        until("it waits", || ask(&mut wire, "INFO clients").contains("blocked_clients:1"));
        let big = "v".repeat(400_000);
        let replies =
            both(&mut wire, &["SET", "9", &big, "EX", "100"], &["RENAME", "list", "from"]);
        assert_eq!(replies, ["+OK", "+OK"]);
        let served = render::line(&waiter.receive().expect("answered"));
        assert_eq!(served, "\"a\"");
    });
}
