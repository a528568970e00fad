//! Snapshot files of a server under load: loaded by the reference, and what ends a save.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sheafdb_tests::big::figure;
use sheafdb_tests::folder::Folder;
use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::render;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

/// `rdb-key-save-delay` of a save that ends when [`let_go`] says so.
const ENDLESS: &str = "2000000000";

/// A server whose files are in a folder that outlives it; `None` if the reference is under test.
fn start(folder: &Folder, extra: &[&str]) -> Option<ServerProcess> {
    let binary = Binary::under_test();
    (binary.kind == Kind::SheafDb).then(|| {
        let own = ["--dir", folder.path(), "--enable-protected-configs", "yes"];
        let args: Vec<&str> = own.iter().chain(extra).copied().collect();
        ServerProcess::start(&binary, &args)
    })
}

/// The reference with the file of this folder.
fn redis_with(folder: &Folder) -> ServerProcess {
    let redis = ServerProcess::start(&Binary::redis(), &["--dir", folder.path()]);
    let mut wire = redis.connect();
    until("it has loaded", || !ask(&mut wire, "DBSIZE").starts_with("-LOADING"));
    redis
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match wire.command(&words) {
        Ok(reply) => render::line(&reply),
        Err(_) => "closed".into(),
    }
}

fn send(wire: &mut Wire, line: &str) {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    wire.send(&encode(&words)).expect("the connection is open");
}

/// Waits until no save is under way.
fn await_save(wire: &mut Wire) {
    until("the save ends", || figure(wire, "persistence", "rdb_bgsave_in_progress") == 0);
}

/// Sets the delay of saves; one that is under way follows.
fn set_delay(wire: &mut Wire, delay_us: &str) {
    assert_eq!(ask(wire, &format!("CONFIG SET rdb-key-save-delay {delay_us}")), "+OK");
}

/// Lets an endless save go on.
fn let_go(wire: &mut Wire) {
    set_delay(wire, "0");
}

/// Waits until a figure of INFO persistence is not 0.
fn await_figure(wire: &mut Wire, name: &str) {
    until(name, || figure(wire, "persistence", name) > 0);
}

/// Waits until there is a file, be it a temporary one.
fn await_file(folder: &Folder) {
    until("something is written", || !folder.names().is_empty());
}

/// Values of all types and sizes, in several databases.
fn fill(wire: &mut Wire) {
    let long = "x".repeat(100_000);
    for db in [0, 3, 15] {
        assert_eq!(ask(wire, &format!("SELECT {db}")), "+OK");
        for i in 0..300 {
            for line in [
                format!("SET s:{i} {i}"),
                format!("SET t:{i} value{i} EX {}", 1000 + i),
                format!("RPUSH l:{i} a b {i}"),
                format!("SADD i:{i} 1 2 {i}"),
                format!("SADD u:{i} a b {i}"),
                format!("HSET h:{i} a 1 b {i}"),
                format!("ZADD z:{i} 1 a 2.5 {i}"),
                format!("XADD x:{i} 1-{} a {i}", i + 1),
            ] {
                assert!(!ask(wire, &line).starts_with('-'), "{line}");
            }
        }
        let number = |i: u32| (i.wrapping_mul(2_654_435_761) % 100_003).to_string();
        for (command, key) in [("RPUSH", "L"), ("SADD", "S"), ("HSET", "H"), ("ZADD", "Z")] {
            for from in (0..4_000).step_by(100) {
                let mut line = format!("{command} {key}");
                for i in from..from + 100 {
                    let pair = if command == "RPUSH" || command == "SADD" {
                        format!(" element{}", number(i))
                    } else {
                        format!(" {} {}", number(i), number(i + 7))
                    };
                    line += &pair;
                }
                assert!(!ask(wire, &line).starts_with('-'));
            }
        }
        for i in 1..3_000 {
            assert!(!ask(wire, &format!("XADD X {i}-1 field {i}")).starts_with('-'));
        }
        ask(wire, "XGROUP CREATE X g 0");
        ask(wire, "XREADGROUP GROUP g consumer COUNT 500 STREAMS X >");
        ask(wire, "XACK X g 1-1 2-1");
        assert_eq!(ask(wire, &format!("SET long {long}")), "+OK");
        assert_eq!(ask(wire, &format!("SETRANGE longer 3000000 {long}")), ":3100000");
        assert_eq!(ask(wire, &format!("RPUSH far {long} b {long}")), ":3");
    }
}

/// The digest of the reference's data, computed by a server of ours: each computes its own.
fn digest_of(redis: &mut Wire) -> String {
    let copy = ServerProcess::start(&Binary::under_test(), &[]);
    let wire = &mut copy.connect();
    for db in 0..16 {
        let select = format!("SELECT {db}");
        assert_eq!((ask(wire, &select), ask(redis, &select)), ("+OK".into(), "+OK".into()));
        let Value::Array(keys) = redis.command(&["KEYS", "*"]).expect("a reply") else {
            panic!("a list of keys")
        };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("a key") };
            let mut of = |command: &[u8]| redis.command(&[command, &key]).expect("a reply");
            let (Value::Bulk(payload), Value::Int(ttl)) = (of(b"DUMP"), of(b"PTTL")) else {
                panic!("a payload and a time")
            };
            let ttl = ttl.max(0).to_string();
            let restored = wire.command(&[b"RESTORE", &*key, ttl.as_bytes(), &payload]);
            assert_eq!(restored.expect("a reply"), Value::Simple(b"OK".to_vec()));
        }
    }
    ask(wire, "DEBUG DIGEST")
}

/// The reference loads our file, and has the same data.
#[test]
fn the_reference_loads_our_files() {
    for (threads, extra) in [("1", "rdbcompression"), ("2", "rdbchecksum"), ("3", "")] {
        let folder = Folder::new(&format!("loads-{threads}"));
        let mut args = vec!["--threads", threads];
        let name = format!("--{extra}");
        if !extra.is_empty() {
            args.extend([&*name, "no"]);
        }
        let Some(server) = start(&folder, &args) else { return };
        let wire = &mut server.connect();
        fill(wire);
        assert_eq!(ask(wire, "SAVE"), "+OK");
        let log = server.log();
        assert!(log.contains("DB saved on disk"), "{log}");
        assert_eq!(folder.names(), ["dump.rdb"]);
        let redis = redis_with(&folder);
        let other = &mut redis.connect();
        for db in [0, 1, 3, 15] {
            let size = format!("SELECT {db}");
            assert_eq!((ask(wire, &size), ask(other, &size)), ("+OK".into(), "+OK".into()));
            assert_eq!(ask(wire, "DBSIZE"), ask(other, "DBSIZE"));
        }
        assert_eq!(ask(wire, "DEBUG DIGEST"), digest_of(other));
        let ends = ask(wire, "PEXPIRETIME t:7");
        assert!(ends.len() > 10, "{ends}");
        assert_eq!(ends, ask(other, "PEXPIRETIME t:7"));
    }
}

/// What a server has saved before its end it has at the next start, and none of it counts as a
/// change.
#[test]
fn a_restart_has_the_data() {
    for threads in ["1", "3"] {
        let folder = Folder::new(&format!("restart-{threads}"));
        let args = ["--save", "3600 1", "--threads", threads];
        let Some(mut server) = start(&folder, &args) else { return };
        let wire = &mut server.connect();
        fill(wire);
        let digest = ask(wire, "DEBUG DIGEST");
        assert_eq!(ask(wire, "SHUTDOWN"), "closed");
        assert!(server.wait_exit(LIMIT).expect("it ends").success());
        let server = start(&folder, &args).expect("it is ours");
        let wire = &mut server.connect();
        assert_eq!(ask(wire, "DEBUG DIGEST"), digest);
        assert_eq!(figure(wire, "persistence", "rdb_changes_since_last_save"), 0);
    }
}

/// Accounts of each type.
const ACCOUNTS: usize = 25;
/// Adds an amount to an account, by type.
const ADD: [fn(usize, i64) -> String; 5] = [
    |i, n| format!("INCRBY s:{i} {n}"),
    |i, n| format!("HINCRBY h:{i} balance {n}"),
    |i, n| format!("RPUSH l:{i} {n}"),
    |i, n| format!("ZINCRBY z:{i} {n} balance"),
    |i, n| format!("XADD x:{i} * n {n}"),
];
/// The sum of all accounts, at the reference, and how many elements and entries they have.
const SUM: &str = "
    local sum, count = 0, 0
    for _, k in ipairs(redis.call('KEYS', '?:*')) do
        local t = k:sub(1, 1)
        if t == 's' then sum = sum + redis.call('GET', k)
        elseif t == 'h' then sum = sum + redis.call('HGET', k, 'balance')
        elseif t == 'z' then sum = sum + redis.call('ZSCORE', k, 'balance')
        elseif t == 'l' then
            for _, n in ipairs(redis.call('LRANGE', k, 0, -1)) do
                sum, count = sum + n, count + 1
            end
        else
            for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do
                sum, count = sum + e[2][2], count + 1
            end
        end
    end
    return {sum, count}";

/// Moves amounts between accounts until it is told to stop, and counts how many.
fn transfer(server: &ServerProcess, seed: u64, stop: &AtomicBool, count: &AtomicU64) {
    let (mut wire, mut rng) = (server.connect(), Rng::new(seed));
    while !stop.load(Ordering::Relaxed) {
        let n = 1 + rng.below(1000) as i64;
        let mut change = |n| ADD[rng.below(ADD.len())](rng.below(ACCOUNTS), n);
        let (from, to) = (change(-n), change(n));
        for line in ["MULTI", &from, &to, "EXEC"] {
            send(&mut wire, line);
        }
        for _ in 0..4 {
            let reply = wire.receive().expect("the server runs");
            assert!(!matches!(reply, Value::Error(_)), "{from}, {to}: {reply:?}");
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every file shows one moment: transfers between accounts in all types are in it whole or not at
/// all, although they go on while it is written.
#[test]
fn a_file_shows_one_moment() {
    const ROUNDS: usize = 6;
    /// Transfers during each save, at least: with them the next file has more elements.
    const DURING: u64 = 200;
    for threads in ["1", "2", "4"] {
        let folder = Folder::new(&format!("moment-{threads}"));
        let Some(server) = start(&folder, &["--threads", threads]) else { return };
        let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let (server, stop, count) = (&server, &stop, &count);
            let end = SetAtEnd(stop);
            let begin = |seed| scope.spawn(move || transfer(server, seed, stop, count));
            let writers: Vec<_> = (0..3).map(begin).collect();
            let transfers = || count.load(Ordering::Relaxed);
            let await_transfers = || {
                let before = transfers();
                until("transfers are made", || transfers() > before + DURING);
            };
            let wire = &mut server.connect();
            await_transfers();
            let mut elements = vec![0];
            for _ in 0..ROUNDS {
                // Some during its first key, and some during each of the others.
                set_delay(wire, ENDLESS);
                assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
                await_transfers();
                assert_eq!(figure(wire, "persistence", "rdb_bgsave_in_progress"), 1);
                set_delay(wire, "300");
                await_save(wire);
                let redis = redis_with(&folder);
                let told = redis.connect().command(&["EVAL", SUM, "0"]).expect("a reply");
                let Value::Array(told) = told else { panic!("{told:?}") };
                let [Value::Int(sum), Value::Int(all)] = told[..] else { panic!("{told:?}") };
                assert_eq!(sum, 0, "{threads} threads");
                elements.push(all);
            }
            drop(end);
            for writer in writers {
                writer.join().expect("no error");
            }
            assert!(elements.windows(2).all(|pair| pair[0] < pair[1]), "{elements:?}");
            println!("{threads} threads: {} transfers, {elements:?} elements", transfers());
        });
    }
}

/// Reads are served while the server saves before its end; writes wait, and are not executed if it
/// ends.
#[test]
fn writes_wait_behind_the_save_before_the_end() {
    let folder = Folder::new("before-end");
    let slow = ["--save", "3600 1", "--rdb-key-save-delay", ENDLESS, "--threads", "2"];
    let Some(mut server) = start(&folder, &slow) else { return };
    let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
    for i in 0..50 {
        assert_eq!(ask(&mut wires[0], &format!("SET k{i} {i}")), "+OK");
    }
    let begin = |wires: &mut Vec<Wire>| {
        send(&mut wires[0], "SHUTDOWN");
        await_figure(&mut wires[1], "rdb_bgsave_in_progress");
        send(&mut wires[2], "SET late 1");
        assert!(!wires[2].has_reply(Duration::from_millis(50)).expect("it is open"));
        assert_eq!(ask(&mut wires[1], "GET k7"), "\"7\"");
        assert_eq!(ask(&mut wires[1], "EXISTS late"), ":0", "the write waits");
    };
    begin(&mut wires);
    assert_eq!(ask(&mut wires[1], "SHUTDOWN ABORT"), "+OK");
    assert_eq!(receive(&mut wires[0]), "-ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(receive(&mut wires[2]), "+OK", "the write that has waited");
    assert_eq!(ask(&mut wires[1], "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
    assert_eq!(ask(&mut wires[1], "DEL late"), ":1");
    await_save(&mut wires[1]);
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    begin(&mut wires);
    let_go(&mut wires[1]);
    let status = server.wait_exit(LIMIT).expect("it ends");
    assert!(status.success(), "{status}\n{}", server.log());
    assert!(wires[2].receive().is_err(), "the write was not executed");
    assert_eq!(folder.names(), ["dump.rdb"]);
    let redis = redis_with(&folder);
    assert_eq!(ask(&mut redis.connect(), "DBSIZE"), ":50");
}

/// A signal saves as SHUTDOWN does. Where the save fails the server stays, unless it is forced.
#[test]
fn a_server_ends_behind_its_save() {
    let folder = Folder::new("signal");
    let Some(mut server) = start(&folder, &["--save", "3600 1000"]) else { return };
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "SET k v"), "+OK");
    assert_eq!(ask(&mut wire, "CONFIG SET dbfilename ."), "+OK");
    server.terminate();
    until("it fails", || server.log().contains("Errors trying to shut down the server"));
    assert_eq!(ask(&mut wire, "SHUTDOWN SAVE"), "-ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(ask(&mut wire, "SET k w"), "+OK", "writes do not wait any more");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
    assert_eq!(ask(&mut wire, "CONFIG SET dbfilename other.rdb"), "+OK");
    server.terminate();
    assert!(server.wait_exit(LIMIT).expect("it ends").success());
    assert_eq!(folder.names(), ["other.rdb"]);
    for (save, line, saves) in [
        ("3600 1000", "SHUTDOWN NOSAVE", false),
        ("3600 1000", "SHUTDOWN", true),
        ("", "SHUTDOWN", false),
        ("", "SHUTDOWN SAVE", true),
    ] {
        let folder = Folder::new("shutdown");
        let mut server = start(&folder, &["--save", save]).expect("it is ours");
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "SET k v"), "+OK");
        assert_eq!(ask(&mut wire, line), "closed");
        assert!(server.wait_exit(LIMIT).expect("it ends").success());
        assert_eq!(folder.file().exists(), saves, "save '{save}', {line}");
    }
    let folder = Folder::new("forced");
    let mut server = start(&folder, &[]).expect("it is ours");
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "CONFIG SET dbfilename ."), "+OK");
    assert_eq!(ask(&mut wire, "SHUTDOWN SAVE FORCE"), "closed");
    assert!(server.wait_exit(LIMIT).expect("it ends").success());
    assert!(server.log().contains("Exit anyway"), "{}", server.log());
}

/// A save point is due when enough has changed and its time is over; after a failure the next
/// attempt comes 5 seconds later.
#[test]
fn save_points_save_by_themselves() {
    let folder = Folder::new("points");
    let Some(server) = start(&folder, &["--save", "1 3", "--threads", "2"]) else { return };
    let wire = &mut server.connect();
    for _ in 0..2 {
        ask(wire, "INCR n");
    }
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!folder.file().exists(), "two changes are too few");
    ask(wire, "INCR n");
    until("it saves", || figure(wire, "persistence", "rdb_changes_since_last_save") == 0);
    assert!(server.log().contains("3 changes in 1 seconds. Saving..."), "{}", server.log());
    assert!(folder.file().exists());
    let began = Instant::now();
    assert_eq!(ask(wire, "CONFIG SET dbfilename ."), "+OK");
    for _ in 0..5 {
        ask(wire, "INCR n");
    }
    let failures = || server.log().matches("Background saving error").count();
    until("a save fails", || failures() > 0);
    assert!(ask(wire, "INCR n").starts_with("-MISCONF"));
    assert_eq!(ask(wire, "CONFIG SET dbfilename dump.rdb"), "+OK");
    until("a save works", || !ask(wire, "INCR n").starts_with('-'));
    let (failures, attempts_max) = (failures(), 1 + began.elapsed().as_secs() as usize / 5);
    assert!(failures <= attempts_max, "{failures} of {attempts_max} attempts");
}

/// FLUSHALL ends a save, and where there are save points the file is empty behind it.
#[test]
fn a_flush_reaches_the_file() {
    let folder = Folder::new("flush");
    let slow = ["--save", "3600 1000", "--rdb-key-save-delay", ENDLESS];
    let Some(server) = start(&folder, &slow) else { return };
    let wire = &mut server.connect();
    for i in 0..200 {
        ask(wire, &format!("SET k{i} {i}"));
    }
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    assert_eq!(ask(wire, "FLUSHALL"), "+OK");
    assert_eq!(ask(wire, "SET new 1"), "+OK");
    let_go(wire);
    until("there is a file", || folder.file().exists());
    await_save(wire);
    assert!(server.log().contains("Saving was given up"), "{}", server.log());
    assert_eq!(folder.names(), ["dump.rdb"]);
    let redis = redis_with(&folder);
    let left = ask(&mut redis.connect(), "DBSIZE");
    assert!(left == ":0" || left == ":1", "{left}");
}

/// A server with data and an endless save under way.
fn start_busy(folder: &Folder, threads: &str) -> Option<ServerProcess> {
    let slow = ["--save", "3600 1000", "--rdb-key-save-delay", ENDLESS, "--threads", threads];
    let server = start(folder, &slow)?;
    let wire = &mut server.connect();
    for i in 0..50 {
        assert_eq!(ask(wire, &format!("SET k{i} {i}")), "+OK");
    }
    assert_eq!(ask(wire, "BGSAVE"), "+Background saving started");
    Some(server)
}

fn receive(wire: &mut Wire) -> String {
    render::line(&wire.receive().expect("a reply"))
}

/// A BGSAVE which stood behind the save of FLUSHALL in its worker, and held the run which that save
/// waited for, stopped all saves for ever.
#[test]
fn saves_wait_behind_that_of_a_flush() {
    for threads in ["1", "4"] {
        let folder = Folder::new(&format!("behind-{threads}"));
        let Some(server) = start_busy(&folder, threads) else { return };
        let (mut wire, mut other) = (server.connect(), server.connect());
        assert_eq!(ask(&mut wire, "BGSAVE"), "-ERR Background save already in progress");
        let pipelines: [(&[&str], &[&str]); 3] = [
            (&["FLUSHALL", "BGSAVE"], &["+OK", "+Background saving started"]),
            (
                &["FLUSHALL", "MULTI", "BGSAVE", "EXEC"],
                &["+OK", "+OK", "+QUEUED", "*1 +Background saving scheduled"],
            ),
            (&["FLUSHALL", "SAVE"], &["+OK", "+OK"]),
        ];
        for (requests, replies) in pipelines {
            // In one write: behind the first request no other one may be late.
            let words = |line: &&str| encode(&line.split(' ').collect::<Vec<_>>());
            wire.send(&requests.iter().flat_map(words).collect::<Vec<u8>>()).expect("it is open");
            let got: Vec<String> = replies.iter().map(|_| receive(&mut wire)).collect();
            assert_eq!(got, replies, "{threads} threads, {requests:?}");
            await_save(&mut other);
            assert_eq!(std::fs::read(folder.file()).expect("a file")[..9], *b"REDIS0010");
            for i in 0..50 {
                assert_eq!(ask(&mut other, &format!("SET k{i} {i}")), "+OK");
            }
            assert_eq!(ask(&mut other, "BGSAVE"), "+Background saving started");
        }
    }
}

/// A SAVE whose data another client flushes meanwhile saves what is there behind that.
#[test]
fn a_save_survives_a_flush() {
    for points in ["", "3600 1"] {
        let folder = Folder::new("flushed");
        let slow = ["--save", points, "--rdb-key-save-delay", ENDLESS, "--threads", "2"];
        let Some(server) = start(&folder, &slow) else { return };
        let (mut wire, mut other) = (server.connect(), server.connect());
        for i in 0..200 {
            assert_eq!(ask(&mut wire, &format!("SET k{i} {i}")), "+OK");
        }
        send(&mut wire, "SAVE");
        await_figure(&mut other, "rdb_bgsave_in_progress");
        assert_eq!(ask(&mut other, "SAVE"), "-ERR Background save already in progress");
        assert_eq!(ask(&mut other, "FLUSHALL"), "+OK");
        assert_eq!(ask(&mut other, "SET new 1"), "+OK");
        let_go(&mut other);
        assert_eq!(receive(&mut wire), "+OK", "save points '{points}'\n{}", server.log());
        await_save(&mut other);
        let left = ask(&mut redis_with(&folder).connect(), "DBSIZE");
        assert!(left == ":0" || left == ":1", "{left}");
    }
}

/// Saves that are wanted or under way delay the end of the server, but never prevent it, and what
/// was acknowledged before is in the file.
#[test]
fn other_saves_do_not_prevent_the_end() {
    for (threads, by_signal) in [("1", false), ("4", true), ("4", false), ("1", true)] {
        let folder = Folder::new(&format!("end-{threads}-{by_signal}"));
        let Some(mut server) = start_busy(&folder, threads) else { return };
        let mut wires: Vec<Wire> = (0..20).map(|_| server.connect()).collect();
        let mut wire = server.connect();
        set_delay(&mut wire, "10000");
        let set = wire.command(&["CONFIG", "SET", "save", "1 1"]).expect("a reply");
        assert_eq!(set, Value::Simple(b"OK".to_vec()));
        assert_eq!(ask(&mut wire, "SET last 1"), "+OK");
        let status = std::thread::scope(|scope| {
            for wire in &mut wires {
                scope.spawn(|| while ask(wire, "BGSAVE") != "closed" {});
            }
            if by_signal {
                server.terminate();
            } else {
                send(&mut wire, "SHUTDOWN");
            }
            let status = server.wait_exit(LIMIT);
            if status.is_none() {
                let _ = std::process::Command::new("kill")
                    .args(["-9", &server.pid().to_string()])
                    .status(); // the threads end with the server
            }
            status
        });
        let log = server.log();
        assert!(status.is_some_and(|status| status.success()), "{threads} threads\n{log}");
        assert_eq!(folder.names(), ["dump.rdb"]);
        assert_eq!(ask(&mut redis_with(&folder).connect(), "DBSIZE"), ":51", "{log}");
    }
}

/// Whoever has asked for the end may change how it comes, while the save before it runs.
#[test]
fn the_save_before_the_end_can_be_cut_short() {
    const INT: &str = "SIGINT";
    for (second, threads, code) in
        [("SHUTDOWN NOSAVE", "1", 0), ("SHUTDOWN NOSAVE", "4", 0), (INT, "1", 1), (INT, "4", 1)]
    {
        let folder = Folder::new(&format!("short-{threads}-{code}"));
        let slow = ["--save", "3600 1", "--rdb-key-save-delay", ENDLESS, "--threads", threads];
        let Some(mut server) = start(&folder, &slow) else { return };
        let mut wire = server.connect();
        for i in 0..100 {
            assert_eq!(ask(&mut wire, &format!("SET k{i} {i}")), "+OK");
        }
        server.terminate();
        await_file(&folder);
        server.terminate(); // which is nothing new
        assert_eq!(ask(&mut wire, "GET k7"), "\"7\"", "it saves");
        if second == INT {
            server.interrupt();
        } else {
            assert_eq!(ask(&mut wire, second), "closed");
        }
        let status = server.wait_exit(LIMIT).expect("it ends");
        assert_eq!(status.code(), Some(code), "{second}\n{}", server.log());
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
    // FORCE reaches a save that fails.
    let folder = Folder::new("late-force");
    let slow = ["--save", "3600 1", "--rdb-key-save-delay", ENDLESS, "--threads", "2"];
    let mut server = start(&folder, &slow).expect("it is ours");
    let [mut wire, mut other, mut third] = [(); 3].map(|()| server.connect());
    for i in 0..100 {
        assert_eq!(ask(&mut wire, &format!("SET k{i} {i}")), "+OK");
    }
    send(&mut wire, "SHUTDOWN");
    await_file(&folder);
    std::fs::create_dir(folder.file()).expect("room");
    std::fs::write(folder.file().join("full"), "").expect("room");
    send(&mut other, "SHUTDOWN FORCE");
    let_go(&mut third);
    assert!(server.wait_exit(LIMIT).expect("it ends").success());
    assert!(server.log().contains("Exit anyway"), "{}", server.log());
}

/// What DEBUG RELOAD refuses, and what happens to the data if the file cannot be loaded.
#[test]
fn a_reload_that_cannot_be_done_changes_nothing() {
    for threads in ["1", "3"] {
        let folder = Folder::new(&format!("reload-{threads}"));
        let Some(mut server) = start(&folder, &["--threads", threads]) else { return };
        let (mut wire, mut other) = (server.connect(), server.connect());
        for i in 0..50 {
            assert_eq!(ask(&mut wire, &format!("SET k{i} {i}")), "+OK");
        }
        let digest = ask(&mut wire, "DEBUG DIGEST");
        // There is no file, no snapshot, and no file which the data can be saved to.
        let failed = "-ERR Error trying to load the RDB dump";
        assert_eq!(ask(&mut wire, "DEBUG RELOAD NOSAVE"), failed);
        for text in ["", "REDI", "a text"] {
            std::fs::write(folder.file(), text).expect("room");
            assert_eq!(ask(&mut wire, "DEBUG RELOAD NOSAVE"), failed, "{text}");
        }
        assert_eq!(ask(&mut wire, "CONFIG SET dbfilename ."), "+OK");
        assert_eq!(ask(&mut wire, "DEBUG RELOAD"), "-ERR");
        assert_eq!(ask(&mut wire, "CONFIG SET dbfilename dump.rdb"), "+OK");
        // A save is under way.
        set_delay(&mut wire, ENDLESS);
        assert_eq!(ask(&mut wire, "BGSAVE"), "+Background saving started");
        for reload in ["DEBUG RELOAD", "DEBUG RELOAD NOSAVE"] {
            let busy = "-ERR Background save already in progress";
            assert_eq!(ask(&mut wire, reload), busy);
        }
        let_go(&mut wire);
        await_save(&mut wire);
        set_delay(&mut wire, ENDLESS);
        let mut third = server.connect();
        // Writes wait during the save of a reload, and reads do not.
        send(&mut wire, "DEBUG RELOAD");
        await_figure(&mut other, "rdb_bgsave_in_progress");
        assert_eq!(ask(&mut other, "GET k7"), "\"7\"");
        assert_eq!(ask(&mut other, "BGSAVE"), "-ERR Background save already in progress");
        send(&mut other, "SET late 1");
        assert!(!other.has_reply(Duration::from_millis(50)).expect("it is open"));
        let_go(&mut third);
        assert_eq!(receive(&mut wire), "+OK", "{}", server.log());
        let late = receive(&mut other);
        assert!(late == "+OK" || late.starts_with("-LOADING"), "{late}");
        assert!(matches!(&*ask(&mut wire, "DEL late"), ":0" | ":1"));
        assert_eq!(ask(&mut wire, "DEBUG DIGEST"), digest);
        assert!(server.log().contains("DB reloaded by DEBUG RELOAD"));
        // Behind the first key it is too late: the server ends, and the file stays.
        let mut bytes = std::fs::read(folder.file()).expect("a file");
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
        std::fs::write(folder.file(), &bytes).expect("room");
        assert_eq!(ask(&mut wire, "DEBUG RELOAD NOSAVE"), "closed");
        assert_eq!(server.wait_exit(LIMIT).expect("it ends").code(), Some(1));
        assert_eq!(std::fs::read(folder.file()).expect("a file"), bytes);
    }
}

/// Libraries of functions, which this server keeps without running them, stay as the data does.
#[test]
fn a_reload_that_fails_keeps_functions() {
    const LIBRARY: &str = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    let folder = Folder::new("functions");
    let redis = redis_with(&folder);
    let load = redis.connect().command(&["FUNCTION", "LOAD", LIBRARY]).expect("a reply");
    assert_eq!(load, Value::Bulk(b"lib".to_vec()));
    assert_eq!(ask(&mut redis.connect(), "SAVE"), "+OK");
    drop(redis);
    let Some(server) = start(&folder, &[]) else { return };
    let wire = &mut server.connect();
    let kept = |wire: &mut Wire, why: &str| {
        assert_eq!(ask(wire, "SAVE"), "+OK");
        let functions = ask(&mut redis_with(&folder).connect(), "FUNCTION LIST");
        assert_eq!(functions.matches("\"library_name\"").count(), 1, "{why}: {functions}");
    };
    kept(wire, "it was loaded");
    std::fs::write(folder.file(), "a text").expect("room");
    let failed = "-ERR Error trying to load the RDB dump";
    assert_eq!(ask(wire, "DEBUG RELOAD NOSAVE"), failed);
    kept(wire, "no snapshot");
    std::fs::remove_file(folder.file()).expect("it is there");
    assert_eq!(ask(wire, "DEBUG RELOAD NOSAVE"), failed);
    kept(wire, "no file");
    assert_eq!(ask(wire, "CONFIG SET dbfilename ."), "+OK");
    assert_eq!(ask(wire, "DEBUG RELOAD"), "-ERR");
    assert_eq!(ask(wire, "CONFIG SET dbfilename dump.rdb"), "+OK");
    kept(wire, "no save");
    assert_eq!(ask(wire, "DEBUG RELOAD"), "+OK");
    kept(wire, "a reload");
}

/// What is loaded is refused to clients, and a transaction that was queued before fails.
#[test]
fn a_reload_answers_as_the_start() {
    const LOADING: &str = "-LOADING Redis is loading the dataset in memory";
    let folder = Folder::new("answers");
    let Some(server) = start(&folder, &["--threads", "2"]) else { return };
    let (mut wire, mut other, mut queued) = (server.connect(), server.connect(), server.connect());
    assert_eq!(ask(&mut wire, "DEBUG POPULATE 200000 k 100"), "+OK");
    assert_eq!(ask(&mut wire, "SAVE"), "+OK");
    assert_eq!(ask(&mut queued, "MULTI"), "+OK");
    assert_eq!(ask(&mut queued, "SET late 1"), "+QUEUED");
    assert_eq!(ask(&mut other, &format!("CONFIG SET key-load-delay {ENDLESS}")), "+OK");
    send(&mut wire, "DEBUG RELOAD NOSAVE");
    await_figure(&mut other, "loading");
    let replies = ["EXEC", "SET a 1", "DEBUG RELOAD", "DEBUG POPULATE 10", "DEBUG RELOAD NOSAVE"]
        .map(|line| (line, ask(if line == "EXEC" { &mut queued } else { &mut other }, line)));
    assert_eq!(figure(&mut other, "persistence", "loading"), 1);
    assert_eq!(ask(&mut other, "CONFIG SET key-load-delay 0"), "+OK");
    assert_eq!(receive(&mut wire), "+OK");
    assert_eq!(
        replies[0].1,
        "-EXECABORT Transaction discarded because of: LOADING Redis is loading the dataset in memory"
    );
    for (line, reply) in &replies[1..] {
        assert_eq!(reply, LOADING, "{line}");
    }
    assert_eq!(ask(&mut other, "EXISTS late a k:1"), ":1");
    assert_eq!(ask(&mut other, "DBSIZE"), ":200000");
    assert_eq!(figure(&mut other, "persistence", "rdb_changes_since_last_save"), 0);
}

/// A version that cannot hold the data is refused, and the file that is there stays.
#[test]
fn a_version_must_hold_the_data() {
    let folder = Folder::new("version");
    let Some(server) = start(&folder, &[]) else { return };
    let wire = &mut server.connect();
    let version = |path: &Path| {
        let bytes = std::fs::read(path).expect("a file");
        String::from_utf8_lossy(&bytes[..9]).into_owned()
    };
    let mut save = |set: &str| {
        assert_eq!(ask(wire, &format!("CONFIG SET rdb-version {set}")), "+OK");
        (ask(wire, "SAVE"), version(&folder.file()))
    };
    assert_eq!(save("0"), ("+OK".into(), "REDIS0010".into()));
    assert_eq!(save("11"), ("+OK".into(), "REDIS0011".into()));
    assert_eq!(save("80"), ("+OK".into(), "VALKEY080".into()));
    let mut other = server.connect();
    ask(&mut other, "HSET h a 1");
    ask(&mut other, "HEXPIRE h 1000 FIELDS 1 a");
    assert_eq!(save("0"), ("+OK".into(), "REDIS0012".into()));
    let (refused, left) = save("10");
    assert!(refused.starts_with("-ERR rdb-version 10 cannot hold"), "{refused}");
    assert_eq!(left, "REDIS0012", "the old file");
    assert_eq!(save("80"), ("+OK".into(), "VALKEY080".into()));
    assert_eq!(save("12"), ("+OK".into(), "REDIS0012".into()));
}
