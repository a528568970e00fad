//! Removing big values does not stall: it occupies a worker for less than a millisecond. The tests
//! measure the processor time of workers, which other programs do not affect.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sheafdb_tests::big::{Element, MILLION, ask, figure, fill, until_freed};
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};
use sheafdb_tests::workers;

/// Maximum processor time of a command which removes a big value, including reading and replying.
const COMMAND_US_MAX: u64 = 1_000;
/// Attempts: a worker also publishes figures and frees buffers periodically.
const TRIES: usize = 5;
/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(120);
/// Members of the large sets, unless `SHEAFDB_MEMBERS` is set. Freeing so many on the worker would
/// take a hundred times as long as a test allows.
const MEMBERS: usize = 2_000_000;

fn members() -> usize {
    let wanted = std::env::var("SHEAFDB_MEMBERS").ok().filter(|text| !text.is_empty());
    wanted.map_or(MEMBERS, |text| text.parse().expect("SHEAFDB_MEMBERS is a number"))
}

/// One of these tests at a time: each holds gigabytes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// The reply to a command, and the processor time of all workers from sending it until they sleep
/// again. The thread which frees removed values is not a worker.
fn microseconds(server: &ServerProcess, wire: &mut Wire, text: &str) -> (Value, u64) {
    let before = workers::microseconds(server);
    let reply = ask(wire, text);
    (reply, workers::microseconds(server) - before)
}

/// Each of these commands removes a large set which shares no pages with another key.
#[test]
fn removing_a_large_set_takes_less_than_a_millisecond() {
    let (_alone, members) = (alone(), members());
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let mut wire = server.connect();
    fill(&mut wire, "SADD", "{v}base", members, |n| vec![format!("member:{n}")]);
    ask(&mut wire, "SADD {v}small a b c");
    let full = figure(&mut wire, "memory", "used_memory");
    for command in [
        "UNLINK {v}victim",
        "DEL {v}victim",
        "SET {v}victim text",
        "RENAME {v}other {v}victim",
        "SINTERSTORE {v}victim {v}small {v}small",
        "COPY {v}small {v}victim REPLACE",
        "PEXPIREAT {v}victim 1",
        "FLUSHDB ASYNC",
        "FLUSHALL ASYNC",
    ] {
        let mut times = Vec::new();
        for _ in 0..TRIES {
            if ask(&mut wire, "EXISTS {v}base") == Value::Int(0) {
                fill(&mut wire, "SADD", "{v}base", members, |n| vec![format!("member:{n}")]);
            } else if command != "FLUSHALL ASYNC" {
                // Created separately: a copy would share all its pages.
                let made = ask(&mut wire, "SUNIONSTORE {v}victim {v}base {v}small");
                assert_eq!(made, Value::Int(members as i64 + 3));
                ask(&mut wire, "SET {v}other text");
            }
            if command == "FLUSHDB ASYNC" {
                assert_eq!(ask(&mut wire, "MOVE {v}victim 1"), Value::Int(1));
                assert_eq!(ask(&mut wire, "SELECT 1"), ok());
            }
            let (_, us) = microseconds(&server, &mut wire, command);
            times.push(us);
            until_freed(&mut wire);
            assert_eq!(ask(&mut wire, "SELECT 0"), ok());
            let left = figure(&mut wire, "memory", "used_memory");
            let max = if command == "FLUSHALL ASYNC" { full / 2 } else { full + full / 10 };
            assert!(
                left <= max,
                "{left} bytes in use after '{command}', {full} without the victim"
            );
            if us < COMMAND_US_MAX {
                break;
            }
        }
        println!("{command}: {times:?} us");
        assert!(*times.last().expect("one") < COMMAND_US_MAX, "'{command}' took {times:?} us");
    }
}

/// When it expires, the sweep removes it. The workers' processor time is that of a few checks
/// whether it is removed. Freeing the members would take much longer.
#[test]
fn expiry_of_a_large_set_does_not_stall_workers() {
    const SWEEP_US_MAX: u64 = 5_000;
    let (_alone, members) = (alone(), members());
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    fill(&mut wire, "SADD", "base", members, |n| vec![format!("member:{n}")]);
    let full = figure(&mut wire, "memory", "used_memory");
    let mut times = Vec::new();
    for _ in 0..TRIES {
        ask(&mut wire, "SUNIONSTORE victim base");
        let before = workers::microseconds(&server);
        assert_eq!(ask(&mut wire, "PEXPIRE victim 20"), Value::Int(1));
        let began = Instant::now();
        while ask(&mut wire, "DBSIZE") != Value::Int(1) {
            assert!(began.elapsed() < PATIENCE, "it expires");
            std::thread::sleep(Duration::from_millis(20));
        }
        times.push(workers::microseconds(&server) - before);
        until_freed(&mut wire);
        assert!(figure(&mut wire, "memory", "used_memory") <= full + full / 10);
        if times.last() < Some(&SWEEP_US_MAX) {
            break;
        }
    }
    println!("the expiry of {members} members: {times:?} us");
    assert!(times.last() < Some(&SWEEP_US_MAX), "{times:?}");
}

#[test]
fn removing_a_million_elements_takes_less_than_a_millisecond() {
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let mut wire = server.connect();
    let types: [(&str, Element); 4] = [
        ("RPUSH", |n| vec![format!("element:{n}")]),
        ("SADD", |n| vec![format!("member:{n}")]),
        ("HSET", |n| vec![format!("field:{n}"), format!("{n}")]),
        ("ZADD", |n| vec![format!("{n}"), format!("member:{n}")]),
    ];
    for (command, element) in types {
        for remove in ["UNLINK k", "DEL k", "SET k v", "FLUSHALL ASYNC"] {
            let mut times = Vec::new();
            for _ in 0..TRIES {
                ask(&mut wire, "DEL k");
                fill(&mut wire, command, "k", MILLION, element);
                times.push(microseconds(&server, &mut wire, remove).1);
                until_freed(&mut wire);
                if times.last() < Some(&COMMAND_US_MAX) {
                    break;
                }
            }
            println!("{command}, {remove}: {times:?} us");
            assert!(times.last() < Some(&COMMAND_US_MAX), "{command}, '{remove}': {times:?} us");
        }
    }
    // Work on each of a million members would exceed the bound.
    fill(&mut wire, "SADD", "k", MILLION, |n| vec![format!("member:{n}")]);
    let (_, us) = microseconds(&server, &mut wire, "SUNIONSTORE copy k");
    assert!(us > 10 * COMMAND_US_MAX, "{us} us to copy a million members");
}

/// Sets the expiry of the first `count` fields of the hash to `at`, in ms since 1970.
fn expire_fields(wire: &mut Wire, count: usize, at: u128) {
    const EACH: usize = 500;
    const AT_ONCE: usize = 20;
    for from in (0..count).step_by(EACH * AT_ONCE) {
        let mut pipeline = Vec::new();
        for from in (from..from + EACH * AT_ONCE).step_by(EACH) {
            let head = ["HPEXPIREAT", "h", &at.to_string(), "FIELDS", &EACH.to_string()];
            let mut args = head.map(str::to_owned).to_vec();
            args.extend((from..from + EACH).map(|n| format!("field:{n}")));
            pipeline.extend(encode(&args));
        }
        wire.send(&pipeline).expect("it takes requests");
        for _ in 0..AT_ONCE {
            assert!(matches!(wire.receive(), Ok(Value::Array(_))));
        }
    }
}

/// Fields of a hash that expire together are invisible to every command from that moment on. They
/// are removed a few at a time, and no client waits for that.
#[test]
fn fields_which_expire_together_are_hidden_at_once() {
    const FIELDS: usize = 600_000;
    const DUE: usize = 500_000;
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    let unix_ms = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_millis()
    };
    let mut times = Vec::new();
    // Twice as long if setting the expiry took longer than that.
    for ahead_ms in [4_000, 8_000, 16_000, 32_000, 64_000] {
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0"), ok());
        ask(&mut wire, "DEL h");
        fill(&mut wire, "HSET", "h", FIELDS, |n| vec![format!("field:{n}"), format!("{n}")]);
        let at = unix_ms() + ahead_ms;
        expire_fields(&mut wire, DUE, at);
        let there = ask(&mut wire, "HLEN h");
        if unix_ms() >= at {
            continue;
        }
        assert_eq!(there, Value::Int(FIELDS as i64), "none is due yet");
        let full = figure(&mut wire, "memory", "used_memory");
        while unix_ms() < at + 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = (FIELDS - DUE) as i64;
        let last = Value::Bulk((FIELDS - 1).to_string().into_bytes());
        let steps = [
            ("HLEN h", Value::Int(left)),
            ("HGET h field:7", Value::NullBulk),
            ("HGET h field:599999", last),
            ("HSET h field:7 new", Value::Int(1)),
            ("HDEL h field:8 field:7", Value::Int(1)),
            ("HLEN h", Value::Int(left)),
        ];
        let longest = steps.into_iter().map(|(command, expected)| {
            let (reply, us) = microseconds(&server, &mut wire, command);
            assert_eq!(reply, expected, "{command}");
            us
        });
        times.push(longest.max().expect("some"));
        let Value::Array(all) = ask(&mut wire, "HKEYS h") else { panic!("fields") };
        assert_eq!(all.len() as i64, left);
        assert!(
            figure(&mut wire, "memory", "used_memory") > full - full / 5,
            "most fields are not removed yet"
        );
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 1"), ok());
        let began = Instant::now();
        while figure(&mut wire, "memory", "used_memory") > full / 2 {
            assert!(began.elapsed() < PATIENCE, "the fields are removed");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ask(&mut wire, "HLEN h"), Value::Int(left));
        if times.last() < Some(&COMMAND_US_MAX) {
            break;
        }
    }
    println!("the longest of some commands on a hash of due fields: {times:?} us");
    assert!(!times.is_empty(), "a minute is enough to say when fields are due");
    assert!(times.last() < Some(&COMMAND_US_MAX), "{times:?}");
}

/// Work prepared before a command runs loses no concurrent writes: members are added one by one
/// while many at a time are popped, and removed by rank.
#[test]
fn prepared_work_loses_no_concurrent_write() {
    const BEFORE: usize = 60_000;
    const ADDED: usize = 20_000;
    let _alone = alone();
    for threads in ["1", "2", "4"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let mut wire = server.connect();
        fill(&mut wire, "SADD", "s", BEFORE, |n| vec![format!("member:{n}")]);
        fill(&mut wire, "ZADD", "z", BEFORE, |n| vec![format!("{n}"), format!("member:{n}")]);
        let done = AtomicBool::new(false);
        let (popped, removed) = std::thread::scope(|scope| {
            let end = SetAtEnd(&done);
            let poppers: Vec<_> = (0..2).map(|_| scope.spawn(|| pop(&server, &done))).collect();
            let remover = scope.spawn(|| remove(&server, &done));
            let storer = scope.spawn(|| store(&server, &done));
            for n in BEFORE..BEFORE + ADDED {
                assert_eq!(ask(&mut wire, &format!("SADD s member:{n}")), Value::Int(1));
                assert_eq!(ask(&mut wire, &format!("ZADD z {n} member:{n}")), Value::Int(1));
                // A store includes all members acknowledged before it was requested.
                assert_eq!(ask(&mut wire, &format!("SADD grows member:{n}")), Value::Int(1));
                // Sometimes no client writes while work is prepared.
                if n % 1000 == 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            drop(end);
            let stores = storer.join().expect("it ends");
            let popped: Vec<_> =
                poppers.into_iter().flat_map(|p| p.join().expect("it ends")).collect();
            println!("{threads} threads: {} popped, {stores} stores", popped.len());
            (popped, remover.join().expect("it ends"))
        });
        let Value::Array(left) = ask(&mut wire, "SMEMBERS s") else { panic!("members") };
        let all: BTreeSet<Vec<u8>> = popped.iter().chain(&left).map(text).collect();
        assert_eq!(popped.len() + left.len(), BEFORE + ADDED, "each once, {threads} threads");
        assert_eq!(all.len(), BEFORE + ADDED, "none twice, {threads} threads");
        let Value::Int(left) = ask(&mut wire, "ZCARD z") else { panic!("a number") };
        assert_eq!(removed + left, (BEFORE + ADDED) as i64, "{threads} threads");
        // Both trees of the sorted set agree.
        let Value::Array(members) = ask(&mut wire, "ZRANGE z 0 -1") else { panic!("members") };
        assert_eq!(members.len() as i64, left);
        for member in members.iter().step_by(97) {
            let score = wire.command(&[b"ZSCORE".to_vec(), b"z".to_vec(), text(member)]);
            assert!(matches!(score, Ok(Value::Bulk(_))), "{member:?}: {score:?}");
        }
    }
}

fn text(value: &Value) -> Vec<u8> {
    let Value::Bulk(text) = value else { panic!("{value:?} is no member") };
    text.clone()
}

fn pop(server: &ServerProcess, done: &AtomicBool) -> Vec<Value> {
    let (mut wire, mut all) = (server.connect(), Vec::new());
    while !done.load(Ordering::Acquire) {
        for count in [1500, 5000] {
            let Value::Array(some) = ask(&mut wire, &format!("SPOP s {count}")) else {
                panic!("members")
            };
            // Most of them are added again, so that the set stays large.
            let (kept, back) = some.split_at(some.len() / 50);
            all.extend_from_slice(kept);
            for chunk in back.chunks(500) {
                let args: Vec<Vec<u8>> = [b"SADD".to_vec(), b"s".to_vec()]
                    .into_iter()
                    .chain(chunk.iter().map(text))
                    .collect();
                let added = wire.command(&args).expect("answered");
                assert_eq!(added, Value::Int(chunk.len() as i64));
            }
        }
    }
    all
}

fn remove(server: &ServerProcess, done: &AtomicBool) -> i64 {
    let (mut wire, mut all) = (server.connect(), 0);
    while !done.load(Ordering::Acquire) {
        let Value::Int(some) = ask(&mut wire, "ZREMRANGEBYRANK z 10 1510") else {
            panic!("a number")
        };
        all += some;
        std::thread::sleep(Duration::from_millis(30));
    }
    all
}

/// Repeatedly stores a growing set: the copy never becomes smaller, and includes all members which
/// the set had before the command was sent.
fn store(server: &ServerProcess, done: &AtomicBool) -> usize {
    let (mut wire, mut stores, mut last) = (server.connect(), 0, 0);
    fill(&mut wire, "SADD", "grows", 20_000, |n| vec![format!("base:{n}")]);
    while !done.load(Ordering::Acquire) {
        let Value::Int(before) = ask(&mut wire, "SCARD grows") else { panic!("a number") };
        let Value::Int(stored) = ask(&mut wire, "SUNIONSTORE copy grows nothing") else {
            panic!("a number")
        };
        assert!(before.max(last) <= stored, "{before}, then {stored} after {last}");
        let Value::Int(sorted) = ask(&mut wire, "SORT grows ALPHA STORE sorted") else {
            panic!("a number")
        };
        assert!(stored <= sorted, "{stored}, then {sorted} in order");
        let stored = sorted;
        (last, stores) = (stored, stores + 1);
    }
    stores
}
