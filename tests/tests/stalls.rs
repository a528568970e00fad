//! Big values do not stall: what removes them takes its lock for less than a millisecond, and a client that reads a large
//! reply slowly, or never, holds back little memory and nobody else.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

/// The longest that a command which removes a big value may take.
const COMMAND_US_MAX: i64 = 1_000;
/// Another process may have the core for a moment.
const TRIES: usize = 5;
const BIG: usize = 10_000_000;
const MILLION: usize = 1_000_000;

/// What is added of a number: a member, or a field and its value.
type Element = fn(usize) -> Vec<String>;

/// One of these tests at a time: where threads wait for a core, a wake-up hands it over in the middle of a command, and what
/// is measured then is the scheduler.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// A figure of INFO.
fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Fills a key with elements of numbers, in pipelines.
fn fill(wire: &mut Wire, command: &str, key: &str, count: usize, element: Element) {
    const EACH: usize = 500;
    const DEPTH: usize = 20;
    for from in (0..count).step_by(EACH * DEPTH) {
        let mut pipeline = Vec::new();
        for from in (from..from + EACH * DEPTH).step_by(EACH) {
            let mut args = vec![command.to_owned(), key.to_owned()];
            args.extend((from..from + EACH).flat_map(element));
            pipeline.extend(encode(&args));
        }
        wire.send(&pipeline).expect("it takes requests");
        for _ in 0..DEPTH {
            let reply = wire.receive().expect("answered");
            assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
        }
    }
}

/// The time of a command as the slow log has it: under its locks, and in them and behind them.
fn microseconds(wire: &mut Wire, text: &str) -> (Value, i64) {
    assert_eq!(ask(wire, "CONFIG SET slowlog-log-slower-than 0"), ok());
    assert_eq!(ask(wire, "SLOWLOG RESET"), ok());
    let reply = ask(wire, text);
    let Value::Array(entries) = ask(wire, "SLOWLOG GET 10") else { panic!("a list of entries") };
    assert_eq!(ask(wire, "CONFIG SET slowlog-log-slower-than -1"), ok());
    let word = text.split(' ').next().expect("a command").as_bytes().to_vec();
    let us = entries.iter().find_map(|entry| {
        let Value::Array(parts) = entry else { panic!("an entry has parts") };
        let (Value::Int(us), Value::Array(args)) = (&parts[2], &parts[3]) else { panic!("parts") };
        (args[0] == Value::Bulk(word.clone())).then_some(*us)
    });
    (reply, us.expect("the command is in the slow log"))
}

/// Waits until everything that was removed is freed.
fn until_freed(wire: &mut Wire) {
    let began = Instant::now();
    while figure(wire, "memory", "lazyfree_pending_objects") > 0 {
        assert!(began.elapsed() < Duration::from_secs(30), "it is freed at last");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Each of these removes a set of ten million members, which it alone holds.
#[test]
fn removing_ten_million_members_is_short() {
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "2"]);
    let mut wire = server.connect();
    fill(&mut wire, "SADD", "{v}base", BIG, |n| vec![format!("member:{n}")]);
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
            if command.starts_with("FLUSH") {
                if ask(&mut wire, "EXISTS {v}base") == Value::Int(0) {
                    fill(&mut wire, "SADD", "{v}base", BIG, |n| vec![format!("member:{n}")]);
                }
            } else {
                // One of its own: a copy would share all its pages.
                let made = ask(&mut wire, "SUNIONSTORE {v}victim {v}base {v}small");
                assert_eq!(made, Value::Int(BIG as i64 + 3));
                ask(&mut wire, "SET {v}other text");
            }
            let (_, us) = microseconds(&mut wire, command);
            times.push(us);
            until_freed(&mut wire);
            let left = figure(&mut wire, "memory", "used_memory");
            let max = if command.starts_with("FLUSH") { full / 2 } else { full + full / 10 };
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

/// Its time comes, and the sweep removes it in one of its short steps.
#[test]
fn the_expiry_of_ten_million_members_is_short() {
    const STEP_US_MAX: i64 = 1_000;
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    fill(&mut wire, "SADD", "base", BIG, |n| vec![format!("member:{n}")]);
    let full = figure(&mut wire, "memory", "used_memory");
    let mut times = Vec::new();
    for _ in 0..TRIES {
        ask(&mut wire, "SUNIONSTORE victim base");
        ask(&mut wire, "CONFIG RESETSTAT");
        assert_eq!(ask(&mut wire, "PEXPIRE victim 20"), Value::Int(1));
        let began = Instant::now();
        while figure(&mut wire, "stats", "expired_keys") == 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "it expires");
            std::thread::sleep(Duration::from_millis(5));
        }
        times.push(figure(&mut wire, "stats", "expire_step_max_us"));
        until_freed(&mut wire);
        assert!(figure(&mut wire, "memory", "used_memory") <= full + full / 10);
        if times.last() < Some(&STEP_US_MAX) {
            break;
        }
    }
    println!("longest step of expiry: {times:?} us");
    assert!(times.last() < Some(&STEP_US_MAX), "{times:?}");
}

#[test]
fn removing_a_million_elements_of_any_type_is_short() {
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
                times.push(microseconds(&mut wire, remove).1);
                until_freed(&mut wire);
                if times.last() < Some(&COMMAND_US_MAX) {
                    break;
                }
            }
            println!("{command}, {remove}: {times:?} us");
            assert!(times.last() < Some(&COMMAND_US_MAX), "{command}, '{remove}': {times:?} us");
        }
    }
}

/// Fields of a hash that are due together are not seen from that moment on, whoever comes; and nobody waits until they are
/// removed, which is done a few at a time.
#[test]
fn fields_that_are_due_together_are_hidden_at_once() {
    const FIELDS: usize = 600_000;
    const DUE: usize = 500_000;
    const EACH: usize = 500;
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    let unix_ms = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_millis()
    };
    let mut times = Vec::new();
    // Twice as long where saying it took longer than that.
    for ahead_ms in [4_000, 8_000, 16_000, 32_000, 64_000] {
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 0"), ok());
        ask(&mut wire, "DEL h");
        let field = |n: usize| format!("field:{n}");
        fill(&mut wire, "HSET", "h", FIELDS, |n| vec![format!("field:{n}"), format!("{n}")]);
        let at = unix_ms() + ahead_ms;
        for from in (0..DUE).step_by(EACH * 20) {
            let mut pipeline = Vec::new();
            for from in (from..from + EACH * 20).step_by(EACH) {
                let head = ["HPEXPIREAT", "h", &at.to_string(), "FIELDS", &EACH.to_string()];
                let mut args = head.map(str::to_owned).to_vec();
                args.extend((from..from + EACH).map(field));
                pipeline.extend(encode(&args));
            }
            wire.send(&pipeline).expect("it takes requests");
            for _ in 0..20 {
                assert!(matches!(wire.receive(), Ok(Value::Array(_))));
            }
        }
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
            let (reply, us) = microseconds(&mut wire, command);
            assert_eq!(reply, expected, "{command}");
            us
        });
        times.push(longest.max().expect("some"));
        let Value::Array(all) = ask(&mut wire, "HKEYS h") else { panic!("fields") };
        assert_eq!(all.len() as i64, left);
        assert!(figure(&mut wire, "memory", "used_memory") > full - full / 5, "few are gone");
        assert_eq!(ask(&mut wire, "DEBUG SET-ACTIVE-EXPIRE 1"), ok());
        let began = Instant::now();
        while figure(&mut wire, "memory", "used_memory") > full / 2 {
            assert!(began.elapsed() < Duration::from_secs(30), "they go at last");
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

/// A client asks for a hundred megabytes and does not read: the server holds back little for it, the value may change and
/// go, another client is answered, and what was asked for comes whole when it is read at last.
#[test]
fn a_large_reply_to_a_slow_reader() {
    const HELD_MAX: u64 = 32 << 20;
    const VALUE: usize = 100;
    let _alone = alone();
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let mut wire = server.connect();
    let value: fn(usize) -> String = |n| format!("{n:0>100}");
    let requests: [(&str, Element, &[&str], usize); 5] = [
        ("HSET", |n| vec![format!("field:{n}"), format!("{n:0>100}")], &["HGETALL", "k"], 2),
        ("RPUSH", |n| vec![format!("{n:0>100}")], &["LRANGE", "k", "0", "-1"], 1),
        ("SADD", |n| vec![format!("{n:0>100}")], &["SMEMBERS", "k"], 1),
        ("ZADD", |n| vec![format!("{n}"), format!("{n:0>100}")], &["ZRANGE", "k", "0", "-1"], 1),
        ("SADD", |n| vec![format!("{n:0>100}")], &["SINTER", "k", "k"], 1),
    ];
    assert_eq!(value(7).len(), VALUE);
    for (command, element, request, parts) in requests {
        ask(&mut wire, "DEL k");
        until_freed(&mut wire);
        fill(&mut wire, command, "k", MILLION, element);
        let before = server.resident_bytes();
        let mut slow = TcpStream::connect(server.addr).expect("a connection");
        slow.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout is settable");
        slow.write_all(&encode(request)).expect("it takes requests");
        let (began, mut peak) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_millis(700) {
            assert_eq!(ask(&mut wire, "SET other there"), ok());
            assert_eq!(ask(&mut wire, "GET other"), Value::Bulk(b"there".to_vec()));
            peak = peak.max(server.resident_bytes().saturating_sub(before));
        }
        println!("{}: {} KB held", request[0], peak >> 10);
        // The result of an operation on sets is collected before its length can be told.
        let is_collected = request[0] == "SINTER";
        assert!(is_collected || peak <= HELD_MAX, "{}: {peak} bytes held", request[0]);
        // The value goes; the reply is of what was there.
        assert_eq!(ask(&mut wire, "UNLINK k"), Value::Int(1));
        let header = format!("*{}\r\n", MILLION * parts);
        let bulk = |text: &String| format!("${}\r\n{text}\r\n", text.len()).len();
        let values = MILLION * bulk(&value(0));
        let names = if parts == 2 { (0..MILLION).map(|n| bulk(&element(n)[0])).sum() } else { 0 };
        let mut left = header.len() + values + names;
        let mut chunk = vec![0; 256 * 1024];
        while left > 0 {
            let read = slow.read(&mut chunk).expect("it goes on");
            assert!(0 < read && read <= left, "{read} bytes, {left} were to come: {}", request[0]);
            left -= read;
        }
    }
}

/// Work that is done ahead of a command loses nothing that others write meanwhile: members are added one by one while many
/// at a time are popped, and removed by rank.
#[test]
fn what_is_done_ahead_loses_no_write() {
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
                // Of what is stored, nothing is older than what was answered before it was asked for.
                assert_eq!(ask(&mut wire, &format!("SADD grows member:{n}")), Value::Int(1));
                // Sometimes nobody writes while something is done ahead.
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
            // Back they go, but for some: it stays large.
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

/// Stores a set that grows, again and again: what is found in the copy never gets less, nor is it behind what the set held
/// before the copy was asked for.
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
