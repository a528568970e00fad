//! Blocking commands across workers: each pushed element is popped once, in order, even if waiting
//! clients time out or disconnect.
//!
//! Every test runs with one worker, with two and with four.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

fn start(threads: usize) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &["--threads", &threads.to_string()])
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// Sends without waiting for the reply.
fn send(wire: &mut Wire, text: &str) {
    let words: Vec<&str> = text.split(' ').collect();
    wire.send(&encode(&words)).expect("it takes requests");
}

/// The integer field `name` of an INFO section.
fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Waits until this many clients are blocked.
fn until_blocked(wire: &mut Wire, count: i64) {
    let began = Instant::now();
    while figure(wire, "clients", "blocked_clients") != count {
        assert!(began.elapsed() < Duration::from_secs(60), "{count} clients block");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The elements in a reply of BLPOP, BLMOVE, BLMPOP or LRANGE; none for a null.
fn elements(reply: &Value, out: &mut Vec<Vec<u8>>) {
    match reply {
        Value::Bulk(text) => out.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| elements(part, out)),
        _ => {}
    }
}

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 8;
const PUSHED_EACH: usize = 1500;
const KEYS: usize = 5;

/// Lists in several slots, taken from by every blocking command with short timeouts, some through a
/// second list.
#[test]
fn each_element_is_taken_once() {
    for threads in [1, 2, 4] {
        let server = start(threads);
        let done = AtomicBool::new(false);
        let taken: Vec<Vec<u8>> = thread::scope(|s| {
            let end = SetAtEnd(&done);
            let produce_one = |producer| {
                let server = &server;
                s.spawn(move || produce(server, producer))
            };
            let producers: Vec<_> = (0..PRODUCERS).map(produce_one).collect();
            let consume_one = |consumer| {
                let (server, done) = (&server, &done);
                s.spawn(move || consume(server, consumer, done))
            };
            let consumers: Vec<_> = (0..CONSUMERS).map(consume_one).collect();
            for producer in producers {
                producer.join().expect("a producer ends");
            }
            drop(end);
            consumers.into_iter().flat_map(|c| c.join().expect("a consumer ends")).collect()
        });
        let mut wire = server.connect();
        let mut all = taken;
        for key in (0..KEYS).map(|k| format!("q{k}")).chain((0..KEYS).map(|k| format!("w{k}"))) {
            elements(&ask(&mut wire, &format!("LRANGE {key} 0 -1")), &mut all);
        }
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(
            all.len(),
            PRODUCERS * PUSHED_EACH,
            "{threads} threads: nothing lost or doubled"
        );
        assert_eq!(distinct.len(), all.len(), "{threads} threads: nothing doubled");
        assert_eq!(figure(&mut wire, "clients", "blocked_clients"), 0);
    }
}

fn produce(server: &ServerProcess, producer: usize) {
    let (mut wire, mut rng) = (server.connect(), Rng::new(producer as u64 + 7));
    let mut n = 0;
    while n < PUSHED_EACH {
        let (key, count) = (rng.below(KEYS), (rng.below(3) + 1).min(PUSHED_EACH - n));
        let values: Vec<String> = (n..n + count).map(|n| format!("e{producer}:{n}")).collect();
        let push = format!("RPUSH q{key} {}", values.join(" "));
        if rng.below(4) == 0 {
            for part in ["MULTI", &push, "EXEC"] {
                ask(&mut wire, part);
            }
        } else {
            ask(&mut wire, &push);
        }
        n += count;
        if rng.below(8) == 0 {
            thread::sleep(Duration::from_micros(300));
        }
    }
}

fn consume(server: &ServerProcess, consumer: usize, done: &AtomicBool) -> Vec<Vec<u8>> {
    let (mut wire, mut rng) = (server.connect(), Rng::new(consumer as u64 + 99));
    let mut taken = Vec::new();
    loop {
        let was_done = done.load(Ordering::Acquire);
        let (a, b) = (rng.below(KEYS), rng.below(KEYS));
        let timeout = ["0.001", "0.003", "0.02"][rng.below(3)];
        let before = taken.len();
        match (consumer + rng.below(2)) % 5 {
            0 => elements(&ask(&mut wire, &format!("BLPOP q{a} w{b} {timeout}")), &mut taken),
            1 => elements(&ask(&mut wire, &format!("BRPOP w{a} q{b} {timeout}")), &mut taken),
            2 => {
                let take = format!("BLMPOP {timeout} 2 q{a} w{b} RIGHT COUNT 2");
                elements(&ask(&mut wire, &take), &mut taken);
            }
            // Moved, not popped: it is in the other list.
            3 => drop(ask(&mut wire, &format!("BLMOVE q{a} w{b} LEFT RIGHT {timeout}"))),
            _ => drop(ask(&mut wire, &format!("BRPOPLPUSH w{a} q{b} {timeout}"))),
        }
        // The reply also contains names of keys.
        taken.retain(|text| text.starts_with(b"e"));
        if was_done && taken.len() == before {
            return taken;
        }
    }
}

#[test]
fn waiters_are_served_in_fifo_order() {
    for threads in [1, 2, 4] {
        let server = start(threads);
        let mut pusher = server.connect();
        let mut waiting: Vec<Wire> = (0..20).map(|_| server.connect()).collect();
        for (n, wire) in waiting.iter_mut().enumerate() {
            send(wire, ["BLPOP k 0", "BRPOP other k 0", "BLMOVE k else LEFT LEFT 0"][n % 3]);
            until_blocked(&mut pusher, n as i64 + 1);
        }
        for n in 0..20 {
            ask(&mut pusher, &format!("RPUSH k {n}"));
        }
        for (n, wire) in waiting.iter_mut().enumerate() {
            let mut got = Vec::new();
            elements(&wire.receive().expect("a reply"), &mut got);
            assert_eq!(got.last(), Some(&n.to_string().into_bytes()), "{threads} threads: {n}");
        }
    }
}

/// The pusher's next command sees the state after serving, also if serving needed further slots,
/// and in a chain of lists.
#[test]
fn a_waiter_is_served_before_the_next_command_of_the_pusher() {
    for threads in [1, 2, 4] {
        let server = start(threads);
        let mut pusher = server.connect();
        let mut waiting: Vec<Wire> = (0..3).map(|_| server.connect()).collect();
        for round in 0..200 {
            for (n, wire) in waiting.iter_mut().enumerate() {
                send(wire, &format!("BLMOVE chain{n}:{round} chain{}:{round} LEFT LEFT 0", n + 1));
            }
            until_blocked(&mut pusher, 3);
            let requests = [
                format!("RPUSH chain0:{round} x"),
                format!("EXISTS chain0:{round} chain1:{round} chain2:{round}"),
                format!("LRANGE chain3:{round} 0 -1"),
            ];
            for request in &requests {
                send(&mut pusher, request);
            }
            assert_eq!(pusher.receive().expect("a reply"), Value::Int(1));
            assert_eq!(pusher.receive().expect("a reply"), Value::Int(0), "{threads} threads");
            let mut got = Vec::new();
            elements(&pusher.receive().expect("a reply"), &mut got);
            assert_eq!(got, [b"x".to_vec()], "{threads} threads, round {round}");
            for wire in &mut waiting {
                assert_eq!(wire.receive().expect("a reply"), Value::Bulk(b"x".to_vec()));
            }
        }
    }
}

#[test]
fn a_disconnected_waiter_takes_no_element() {
    for threads in [1, 2] {
        let server = start(threads);
        let mut wire = server.connect();
        for n in 0..50 {
            let mut gone = server.connect();
            send(&mut gone, &format!("BLPOP a{n} b{n} c{n} 0"));
            until_blocked(&mut wire, 1);
            drop(gone);
            until_blocked(&mut wire, 0);
            assert_eq!(ask(&mut wire, &format!("RPUSH b{n} kept")), Value::Int(1));
            assert_eq!(ask(&mut wire, &format!("LLEN b{n}")), Value::Int(1));
        }
    }
}

#[test]
fn timeouts_are_exact_and_leave_no_waiters() {
    let server = start(2);
    let mut wire = server.connect();
    let mut waiting: Vec<Wire> = (0..100).map(|_| server.connect()).collect();
    for round in 0..5 {
        let began = Instant::now();
        for (n, client) in waiting.iter_mut().enumerate() {
            send(client, &format!("BLPOP t{n} t{} never 0.1", n + 1));
        }
        for client in &mut waiting {
            assert!(matches!(
                client.receive().expect("a reply"),
                Value::NullBulk | Value::NullArray
            ));
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(100), "round {round}: {took:?}");
        assert!(took < Duration::from_secs(60), "round {round}: {took:?}");
    }
    until_blocked(&mut wire, 0);
    let began = Instant::now();
    while figure(&mut wire, "clients", "total_blocking_keys") != 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "the queues of keys are emptied");
    }
}

/// The same waits on both servers: served, timed out, unblocked as timeout or with an error, served
/// with an error. Calls, failures, latencies and the slow log must agree.
#[test]
fn blocked_commands_are_counted_as_in_redis() {
    let noted = |server: &ServerProcess| -> Vec<String> {
        let (mut wire, mut waiter) = (server.connect(), server.connect());
        let Value::Int(id) = ask(&mut waiter, "CLIENT ID") else { panic!("a number") };
        for setting in ["slowlog-log-slower-than 0", "latency-tracking yes"] {
            ask(&mut wire, &format!("CONFIG SET {setting}"));
        }
        ask(&mut wire, "CONFIG RESETSTAT");
        ask(&mut wire, "SLOWLOG RESET");
        let mut wait = |command: &str, then: &[&str]| {
            send(&mut waiter, command);
            until_blocked(&mut wire, 1);
            for line in then {
                ask(&mut wire, line);
            }
            waiter.receive().expect("answered");
        };
        wait("BLPOP a 0", &["RPUSH a x"]);
        wait("BLPOP b 0.05", &[]);
        wait("BLPOP b 0", &[&format!("CLIENT UNBLOCK {id}")]);
        wait("BLPOP b 0", &[&format!("CLIENT UNBLOCK {id} ERROR")]);
        wait("BLMOVE from to LEFT LEFT 0", &["SET to x", "RPUSH from a"]);
        let Value::Bulk(text) = ask(&mut wire, "INFO commandstats") else { panic!("a text") };
        let text = String::from_utf8(text).expect("text");
        let mut seen = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("cmdstat_bl")) {
            let counts: Vec<&str> = line.split(',').filter(|c| !c.starts_with("usec")).collect();
            let usec = line.split("usec=").nth(1).and_then(|rest| rest.split(',').next());
            assert!(usec.and_then(|n| n.parse().ok()) > Some(0_u64), "a time: {line}");
            seen.push(counts.join(","));
        }
        seen.sort();
        let histogram = ask(&mut wire, "LATENCY HISTOGRAM blpop blmove");
        let Value::Array(parts) = histogram else { panic!("by command") };
        for pair in parts.chunks_exact(2) {
            let Value::Array(facts) = &pair[1] else { panic!("facts") };
            seen.push(format!("{:?} {:?}", pair[0], facts[1]));
        }
        let Value::Array(log) = ask(&mut wire, "SLOWLOG GET -1") else { panic!("a list") };
        // Redis 7.0 does not keep the arguments of unblocked commands.
        let is_blocking = |entry: &&Value| {
            let Value::Array(parts) = entry else { panic!("an entry") };
            let Value::Array(words) = &parts[3] else { panic!("words") };
            match words.first() {
                Some(Value::Bulk(word)) => word.to_ascii_lowercase().starts_with(b"bl"),
                _ => true,
            }
        };
        seen.push(format!("{} in the slow log", log.iter().filter(is_blocking).count()));
        seen
    };
    let mut expected = noted(&ServerProcess::start(&Binary::redis(), &[]));
    // Redis 7.0 counts every wait ended by CLIENT UNBLOCK as failed, 7.2 only those ended with an
    // error.
    let pops = expected.iter_mut().find(|line| line.starts_with("cmdstat_blpop"));
    let pops = pops.expect("it was called");
    let waits = pops.strip_suffix("failed_calls=2").map(str::to_owned);
    if let Some(waits) = waits {
        *pops = waits + "failed_calls=1";
    }
    assert!(pops.ends_with("calls=4,rejected_calls=0,failed_calls=1"), "{pops}");
    for threads in [1, 2, 4] {
        assert_eq!(noted(&start(threads)), expected, "{threads} threads");
    }
}

/// Serving for long is a latency event, and its time belongs to the command.
#[test]
fn serving_for_long_is_a_latency_event() {
    let server = start(2);
    let (mut wire, mut waiter) = (server.connect(), server.connect());
    ask(&mut wire, "CONFIG SET latency-monitor-threshold 1");
    send(&mut waiter, "BLMPOP 0 1 big LEFT COUNT 1000000");
    until_blocked(&mut wire, 1);
    let elements: Vec<String> = (0..400_000).map(|n| format!("element:{n}")).collect();
    let words: Vec<&str> =
        ["RPUSH", "big"].into_iter().chain(elements.iter().map(String::as_str)).collect();
    wire.command(&words).expect("answered");
    waiter.receive().expect("answered");
    let Value::Array(events) = ask(&mut wire, "LATENCY LATEST") else { panic!("events") };
    let seen = format!("{events:?}");
    let named = |event: &Value| matches!(event, Value::Array(parts) if parts[0] == Value::Bulk(b"command-unblocking".to_vec()));
    assert!(events.iter().any(named), "{seen}");
}
