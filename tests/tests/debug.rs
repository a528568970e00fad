//! DEBUG subcommands which affect the whole server: RELOAD, PAUSE-CRON, printing of structures.

use std::cell::Cell;
use std::io::{BufRead, BufReader, PipeReader};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

fn ask(wire: &mut Wire, text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    render::line(&wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}")))
}

fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Ok(Value::Bulk(text)) = wire.command(&["INFO", section]) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// A reload replaces keys that are there, and does not end the server over them: the reference
/// does, unless MERGE is given. A key which the file has twice counts as there.
#[test]
fn a_reload_replaces_what_is_there() {
    let (folder, binary) = (Folder::new("replaces"), Binary::under_test());
    if binary.kind != Kind::SheafDb {
        return;
    }
    let server = ServerProcess::start(&binary, &["--dir", folder.path()]);
    let wire = &mut server.connect();
    assert_eq!(ask(wire, "SET a 1"), "+OK");
    assert_eq!(ask(wire, "SAVE"), "+OK");
    assert_eq!(ask(wire, "SET a 2"), "+OK");
    assert_eq!(ask(wire, "SET b 3"), "+OK");
    assert_eq!(ask(wire, "DEBUG RELOAD NOFLUSH NOSAVE"), "+OK");
    assert_eq!(ask(wire, "MGET a b"), "*2 \"1\" \"3\"");
    std::fs::write(folder.file(), b"REDIS0010\0\x01a\x01x\0\x01a\x01y\xff\0\0\0\0\0\0\0\0")
        .expect("room");
    assert_eq!(ask(wire, "DEBUG RELOAD NOSAVE"), "+OK");
    let value = ask(wire, "GET a");
    assert!(value == "\"x\"" || value == "\"y\"", "{value}");
    assert_eq!(ask(wire, "DBSIZE"), ":1");
}

/// DEBUG prints the structures its reply announces.
#[test]
fn structures_are_printed() {
    let server = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut server.connect();
    ask(wire, "CONFIG SET list-max-listpack-size 2");
    ask(wire, "RPUSH l one two three");
    ask(wire, "ZADD z 1.5 member");
    ask(wire, "DEBUG QUICKLIST l");
    ask(wire, "DEBUG LISTPACK z");
    // Another thread writes it, possibly after the reply.
    let printed = |text: &str| until(text, || server.log().contains(text));
    printed("quicklist: 3 elements in 2 nodes of 31 bytes\nlistpack");
    printed("listpack: 1 elements\n0: 6 bytes: member\n1: 3 bytes: 1.5\n");
    ask(wire, "DEBUG QUICKLIST l 1");
    printed("0: 3 bytes: one\n1: 3 bytes: two\n2: 5 bytes: three\n");
}

/// A server whose standard output is a pipe that is not read.
fn unread() -> (ServerProcess, PipeReader) {
    let reader = Cell::new(None);
    let prepare = |command: &mut Command| {
        let (output, writer) = std::io::pipe().expect("a pipe");
        command.stdout(writer);
        reader.set(Some(output));
    };
    let server = ServerProcess::start_with(&Binary::under_test(), &[], prepare);
    (server, reader.take().expect("it was started"))
}

/// A server whose standard output is full keeps serving.
#[test]
fn an_unread_standard_output_blocks_no_client() {
    let (server, output) = unread();
    let (wire, other) = (&mut server.connect(), &mut server.connect());
    ask(wire, "CONFIG SET list-max-listpack-size 1");
    let long = "x".repeat(100_000);
    // More than a pipe holds, and less than the bound on queued output.
    for n in 1..=10 {
        ask(wire, &format!("RPUSH l {long}"));
        ask(wire, &format!("RPUSH l {n}"));
        assert_eq!(ask(wire, "DEBUG QUICKLIST l 1"), "+Quicklist structure printed on stdout");
        assert_eq!(ask(other, "SET key value"), "+OK");
        assert_eq!(ask(other, "DEBUG SET-ACTIVE-EXPIRE 1"), "+OK", "World");
    }
    let mut reader = BufReader::new(output);
    let mut line = String::new();
    while !line.starts_with("19: 2 bytes: 10") {
        line.clear();
        assert!(reader.read_line(&mut line).expect("text") > 0, "all of it is printed");
    }
}

/// Further texts are refused while the pipe is not read.
#[test]
fn queued_debug_output_is_bounded() {
    let (server, _output) = unread();
    let wire = &mut server.connect();
    ask(wire, "CONFIG SET list-max-listpack-size 1");
    let long = "x".repeat(1 << 20);
    (0..20).for_each(|_| _ = ask(wire, &format!("RPUSH l {long}")));
    let replies: Vec<_> = (0..6).map(|_| ask(wire, "DEBUG QUICKLIST l 1")).collect();
    assert!(replies[5].starts_with("-ERR Nobody reads standard output"), "{replies:?}");
    assert!(replies[2].starts_with("+Quicklist"), "{replies:?}");
}

/// Values of every type, small and large, in two databases, some of which expire.
fn fill(wire: &mut Wire) -> Vec<String> {
    let mut names = Vec::new();
    for size in [1, 3, 200, 3000] {
        let numbers: Vec<String> = (0..size).map(|n| n.to_string()).collect();
        let texts: Vec<String> =
            (0..size).map(|n| format!("text:{n}:{}", "x".repeat(n % 90))).collect();
        let pairs = |of: &[String]| -> Vec<String> {
            of.iter().enumerate().flat_map(|(n, of)| [n.to_string(), of.clone()]).collect()
        };
        let mut add = |command: &str, kind: &str, values: &[String]| {
            let name = format!("{kind}:{size}");
            let mut words = vec![command, &name];
            words.extend(values.iter().map(String::as_str));
            let reply = wire.command(&words).expect("answered");
            assert!(!matches!(reply, Value::Error(_)), "{name}: {}", render::line(&reply));
            names.push(name);
        };
        add("SET", "number", &[(size * 7).to_string()]);
        add("SET", "text", &["v".repeat(size * 40)]);
        add("RPUSH", "list", &texts);
        add("RPUSH", "numbers", &numbers);
        add("SADD", "ints", &numbers);
        add("SADD", "set", &texts);
        add("HSET", "hash", &pairs(&texts));
        add("HSET", "timed", &pairs(&texts));
        add("ZADD", "zset", &pairs(&texts));
        add("PFADD", "hll", &texts);
        assert!(ask(wire, &format!("HPEXPIRE timed:{size} 9000000 FIELDS 1 0")).contains(":1"));
        assert_eq!(ask(wire, &format!("PEXPIREAT list:{size} 32503680000000")), ":1");
    }
    assert_eq!(ask(wire, "SELECT 3"), "+OK");
    assert_eq!(ask(wire, "SET other db"), "+OK");
    assert_eq!(ask(wire, "SELECT 0"), "+OK");
    names
}

#[test]
fn reload_keeps_every_value_its_encoding_and_its_time() {
    for threads in ["1", "2"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let wire = &mut server.connect();
        let names = fill(wire);
        let state = |wire: &mut Wire| -> Vec<String> {
            let mut state = vec![ask(wire, "DEBUG DIGEST"), ask(wire, "DBSIZE")];
            for name in &names {
                // A short HyperLogLog was "raw" when it was made and is "embstr" when it was read,
                // as in Redis.
                if !name.starts_with("hll") {
                    state.push(ask(wire, &format!("OBJECT ENCODING {name}")));
                }
                state.push(ask(wire, &format!("PEXPIRETIME {name}")));
                state.push(ask(wire, &format!("DEBUG DIGEST-VALUE {name}")));
            }
            state.push(ask(wire, "HPEXPIRETIME timed:200 FIELDS 2 0 1"));
            state
        };
        let before = state(wire);
        for reload in ["DEBUG RELOAD", "DEBUG RELOAD MERGE NOFLUSH"] {
            assert_eq!(ask(wire, reload), "+OK");
            assert_eq!(state(wire), before, "{reload}");
        }
        // Inside a transaction it cannot wait.
        assert_eq!(ask(wire, "MULTI"), "+OK");
        assert_eq!(ask(wire, "DEBUG RELOAD"), "+QUEUED");
        assert_eq!(ask(wire, "EXEC"), "*1 -ERR Command not allowed inside a transaction");
        assert_eq!(state(wire), before);
        // An idle time is kept where evictions need it.
        assert_eq!(ask(wire, "CONFIG SET maxmemory-policy allkeys-lru"), "+OK");
        assert_eq!(ask(wire, "SET idle v"), "+OK");
        thread::sleep(Duration::from_millis(2100));
        assert_eq!(ask(wire, "DEBUG RELOAD"), "+OK");
        assert!(ask(wire, "OBJECT IDLETIME idle")[1..].parse::<u64>().expect("seconds") >= 1);
    }
}

/// What the clients beside a reload have done.
#[derive(Default)]
struct Beside {
    stop: AtomicBool,
    changes: AtomicU64,
    refused: AtomicU64,
}

/// Reads and writes until it is told to stop. Each acknowledged change is still there, and what is
/// read is all of the data or LOADING.
fn count(server: &ServerProcess, name: &str, beside: &Beside) {
    const LOADING: &str = "-LOADING Redis is loading the dataset in memory";
    let (mut wire, mut count) = (server.connect(), 0);
    let (counter, tally) = (format!("INCR {name}"), format!("HINCRBY tally:{name} n 1"));
    while !beside.stop.load(Ordering::Acquire) {
        let there = ask(&mut wire, "EXISTS list:200 hash:3000 zset:3 number:1");
        assert!(there == ":4" || there == LOADING, "{there}");
        for change in [&counter, &tally] {
            let (mut reply, began) = (ask(&mut wire, change), Instant::now());
            while reply == LOADING {
                assert!(began.elapsed() < LIMIT, "it loads for ever");
                beside.refused.fetch_add(1, Ordering::Relaxed);
                reply = ask(&mut wire, change);
            }
            assert_eq!(reply, format!(":{}", count + 1));
        }
        count += 1;
        beside.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Other clients read and write during RELOAD: they see all of the data or LOADING, and no
/// acknowledged change is lost.
#[test]
fn reload_beside_traffic() {
    for threads in ["1", "2", "4"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let (wire, other) = (&mut server.connect(), &mut server.connect());
        fill(wire);
        let beside = Beside::default();
        thread::scope(|s| {
            let (server, beside) = (&server, &beside);
            let _end = SetAtEnd(&beside.stop);
            for name in ["a", "b", "c"] {
                s.spawn(move || count(server, name, beside));
            }
            let changes = || beside.changes.load(Ordering::Relaxed);
            for _ in 0..20 {
                assert_eq!(ask(wire, "DEBUG RELOAD"), "+OK");
                thread::sleep(Duration::from_millis(5));
            }
            let before = changes();
            until("changes are made", || changes() >= before + 50);
            if server.kind == Kind::SheafDb {
                // This one lasts until somebody was refused.
                assert_eq!(ask(wire, "CONFIG SET key-load-delay 2000000000"), "+OK");
                wire.send(&encode(&["DEBUG", "RELOAD"])).expect("it is open");
                let before = beside.refused.load(Ordering::Relaxed);
                until("a change is refused", || beside.refused.load(Ordering::Relaxed) > before);
                assert_eq!(ask(other, "CONFIG SET key-load-delay 0"), "+OK");
                assert_eq!(render::line(&wire.receive().expect("a reply")), "+OK");
            }
        });
        println!("{threads} threads: {:?} changes, {:?} refused", beside.changes, beside.refused);
    }
}

/// While cron is paused only commands on an expired key remove it, and idle clients stay
/// connected.
#[test]
fn pause_cron_stops_periodic_work() {
    for threads in ["1", "2"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let (wire, idle) = (&mut server.connect(), &mut server.connect());
        assert_eq!(ask(idle, "PING"), "+PONG");
        assert_eq!(ask(wire, "DEBUG PAUSE-CRON 1"), "+OK");
        assert_eq!(ask(wire, "CONFIG SET timeout 1"), "+OK");
        for n in 0..50 {
            assert_eq!(ask(wire, &format!("SET key:{n} v PX 20")), "+OK");
        }
        for _ in 0..16 {
            thread::sleep(Duration::from_millis(100));
            assert_eq!(ask(wire, "DBSIZE"), ":50");
        }
        assert_eq!(figure(wire, "stats", "expired_keys"), 0);
        assert_eq!(ask(idle, "PING"), "+PONG");
        assert_eq!(ask(wire, "DEBUG PAUSE-CRON 0"), "+OK");
        // (Another connection each time: one that is idle for a second is closed.)
        until("they expire after cron is resumed", || {
            let info = server.connect().command(&["INFO", "stats"]);
            info.is_ok_and(|info| render::line(&info).contains("expired_keys:50\\r"))
        });
        assert!(idle.receive().is_err(), "closed");
    }
}
