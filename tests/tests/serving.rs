//! Serving blocked clients that need a further key (`BLMOVE a b` waits for `a` and needs `b`):
//! no other command gets between a push and its waiter, even if that key's slot is held, whichever
//! command pushes, and no client waits for ever.
//!
//! `STRESS_SEED` repeats a run of the random part, `STRESS_MS` lengthens it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::crc16::key_slot;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::{CountAtEnd, SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};

fn start(threads: usize) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &["--threads", &threads.to_string()])
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// Sends without waiting for the reply.
fn send(wire: &mut Wire, text: &str) {
    wire.send(&encode(&words(text))).expect("it takes requests");
}

/// Sends all requests in one write, then reads all replies.
fn ask_all(wire: &mut Wire, requests: &[&str]) -> Vec<Value> {
    let bytes: Vec<u8> = requests.iter().flat_map(|r| encode(&words(r))).collect();
    wire.send(&bytes).expect("it takes requests");
    requests.iter().map(|r| wire.receive().unwrap_or_else(|e| panic!("'{r}': {e}"))).collect()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn blocked(wire: &mut Wire) -> usize {
    let Value::Bulk(text) = ask(wire, "INFO clients") else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix("blocked_clients:"));
    line.and_then(|n| n.parse().ok()).expect("a number")
}

fn until_blocked(wire: &mut Wire, count: usize) {
    let began = Instant::now();
    while blocked(wire) != count {
        assert!(began.elapsed() < Duration::from_secs(60), "{count} clients block");
        thread::sleep(Duration::from_micros(200));
    }
}

/// The texts in a reply.
fn texts(reply: &Value, out: &mut Vec<Vec<u8>>) {
    match reply {
        Value::Bulk(text) => out.push(text.clone()),
        Value::Array(parts) => parts.iter().for_each(|part| texts(part, out)),
        _ => {}
    }
}

/// Holds the slots of `keys` most of the time, by transactions too short to be marked long.
fn hold_busy(server: &ServerProcess, keys: &[&str], done: &AtomicBool) {
    let mut wire = server.connect();
    let exists = format!("EXISTS {}", keys.join(" "));
    let mut queue = vec!["MULTI", &exists];
    queue.extend(["LCS busy:p busy:q LEN"; 4]);
    queue.push("EXEC");
    while !done.load(Ordering::Acquire) {
        assert!(matches!(ask_all(&mut wire, &queue).last(), Some(Value::Array(_))));
    }
}

fn make_busy(server: &ServerProcess) {
    let text = |byte: u8| vec![byte; 600];
    let mut wire = server.connect();
    wire.command(&[b"SET".to_vec(), b"busy:p".to_vec(), text(b'p')]).expect("answered");
    wire.command(&[b"SET".to_vec(), b"busy:q".to_vec(), text(b'q')]).expect("answered");
}

/// Pops from `keys` all the time; returns the popped elements.
fn steal(server: &ServerProcess, keys: &[&str], done: &AtomicBool) -> Vec<Vec<u8>> {
    let (mut wire, mut got) = (server.connect(), Vec::new());
    let pops: Vec<String> = keys.iter().map(|key| format!("LPOP {key}")).collect();
    let pops: Vec<&str> = pops.iter().map(String::as_str).cycle().take(16).collect();
    while !done.load(Ordering::Acquire) {
        for reply in &ask_all(&mut wire, &pops) {
            texts(reply, &mut got);
        }
    }
    got
}

/// Keys in descending order of slots: serving from the first into the next needs a lower slot, for
/// which the server cannot wait while it holds the higher one.
const CHAIN: [&str; 4] = ["step:c", "step:b", "step:d", "step:a"];

/// Ways to push an element to the first list of the chain while a client waits for it.
const PUSHES: [&[&str]; 3] = [
    &["RPUSH step:c x"],
    &["MULTI", "SET other 1", "LPUSH step:c x", "EXEC"],
    &["RPUSH from x", "LMOVE from step:c LEFT LEFT"],
];

/// Once the pusher released its locks and took all of them again, and a third client usually got
/// the element.
#[test]
fn no_command_runs_between_a_push_and_serving_its_waiter() {
    let mut chain = CHAIN;
    chain.sort_unstable_by_key(|key| std::cmp::Reverse(key_slot(key.as_bytes())));
    for threads in [2, 4] {
        // From one list to another, and through a chain of two more.
        for links in [1, 3] {
            race(threads, &chain[..=links]);
        }
    }
}

fn race(threads: usize, chain: &[&str]) {
    let server = start(threads);
    make_busy(&server);
    let (done, links) = (AtomicBool::new(false), chain.len() - 1);
    let (taken_from, last) = (&chain[..links], chain[links]);
    thread::scope(|s| {
        let end = SetAtEnd(&done);
        for _ in 0..threads {
            let (server, done) = (&server, &done);
            s.spawn(move || hold_busy(server, &chain[1..], done));
        }
        let thieves: Vec<_> =
            (0..threads).map(|_| s.spawn(|| steal(&server, taken_from, &done))).collect();
        let mut pusher = server.connect();
        let mut waiting: Vec<Wire> = (0..links).map(|_| server.connect()).collect();
        let mut left_over = Vec::new();
        for round in 0..24 {
            for (n, wire) in waiting.iter_mut().enumerate() {
                send(wire, &format!("BLMOVE {} {} LEFT LEFT 0", chain[n], chain[n + 1]));
            }
            until_blocked(&mut pusher, links);
            for push in PUSHES[round % PUSHES.len()] {
                let push = push.replace("step:c", chain[0]);
                ask(&mut pusher, &push);
            }
            // Served before the pusher's next command, whatever the other clients do.
            left_over.push(ask(&mut pusher, &format!("LPOP {last}")));
            if left_over.last() != Some(&bulk("x")) {
                break;
            }
            for wire in &mut waiting {
                assert_eq!(wire.receive().expect("a reply"), bulk("x"));
            }
        }
        drop(end);
        let stolen: usize =
            thieves.into_iter().map(|t| t.join().expect("a thief ends").len()).sum();
        assert_eq!(
            stolen,
            0,
            "{threads} threads, {links} links: taken by who came later, after {} rounds",
            left_over.len()
        );
        assert!(
            left_over.iter().all(|reply| *reply == bulk("x")),
            "{threads} threads, {links} links"
        );
    });
}

/// A list `from` of one element in `setup`, and each way to get it under the key `k`.
const FILLS: &[(&[&str], &[&str])] = &[
    (&[], &["RPUSH k x"]),
    (&[], &["LPUSH k x"]),
    (&["RPUSH from x"], &["LMOVE from k LEFT LEFT"]),
    (&["RPUSH from x"], &["RPOPLPUSH from k"]),
    (&["RPUSH from x"], &["BLMOVE from k LEFT LEFT 0"]),
    (&["RPUSH from x"], &["BRPOPLPUSH from k 0"]),
    (&["RPUSH from x"], &["RENAME from k"]),
    (&["RPUSH from x"], &["RENAMENX from k"]),
    (&["RPUSH from x"], &["COPY from k"]),
    (&["SELECT 1", "RPUSH from x"], &["COPY from k DB 0"]),
    (&["SELECT 1", "RPUSH k x"], &["MOVE k 0"]),
    (&["RPUSH from x"], &["SORT from ALPHA STORE k"]),
    (&["RPUSH from x", "SET v:x y"], &["SORT from BY v:* ALPHA STORE k"]),
    (&["SELECT 1", "RPUSH k x", "SELECT 0"], &["SWAPDB 0 1"]),
    (&["SELECT 1", "RPUSH k x", "SELECT 0"], &["MULTI", "SWAPDB 0 1", "EXEC"]),
    (&["SELECT 1"], &["MULTI", "SELECT 0", "RPUSH k x", "EXEC"]),
    (&["SET s 1"], &["MULTI", "RPUSH k x", "INCR s", "RPUSH other y", "EXEC"]),
    (&["RPUSH from x"], &["MULTI", "RENAME from k", "EXEC"]),
    (&[], &["RESTORE"]),
];

/// Every command which creates a list serves the client which waits for it, into another list whose
/// slot other clients hold.
#[test]
fn every_command_which_creates_a_list_serves_its_waiter() {
    for threads in [1, 4] {
        let server = start(threads);
        make_busy(&server);
        let done = AtomicBool::new(false);
        thread::scope(|s| {
            let _end = SetAtEnd(&done);
            for _ in 1..threads {
                s.spawn(|| hold_busy(&server, &["far", "farther"], &done));
            }
            let mut pusher = server.connect();
            ask(&mut pusher, "RPUSH from x");
            let Value::Bulk(dump) = ask(&mut pusher, "DUMP from") else { panic!("a payload") };
            let mut waiting = [server.connect(), server.connect()];
            for round in 0..3 {
                for (setup, fill) in FILLS {
                    ask(&mut pusher, "FLUSHALL");
                    make_busy(&server);
                    for request in *setup {
                        ask(&mut pusher, request);
                    }
                    send(&mut waiting[0], "BLMOVE k far LEFT LEFT 0");
                    send(&mut waiting[1], "BRPOPLPUSH far farther 0");
                    until_blocked(&mut pusher, 2);
                    for request in *fill {
                        let said = match *request {
                            "RESTORE" => pusher.command(&[b"RESTORE", &b"k"[..], b"0", &dump]),
                            request => pusher.command(&words(request)),
                        };
                        let said = said.expect("answered");
                        assert!(!matches!(said, Value::Error(_)), "{fill:?}: {said:?}");
                    }
                    ask(&mut pusher, "SELECT 0");
                    let found = ask(&mut pusher, "LRANGE farther 0 -1");
                    assert_eq!(
                        found,
                        Value::Array(vec![bulk("x")]),
                        "{threads} threads, round {round}: {fill:?}"
                    );
                    for wire in &mut waiting {
                        assert_eq!(wire.receive().expect("a reply"), bulk("x"), "{fill:?}");
                    }
                }
            }
        });
    }
}

/// Many clients wait for one key, each to move to a list of its own: more slots than are locked in
/// advance.
#[test]
fn many_waiters_with_different_destinations_are_served_in_order() {
    const MANY: usize = 40;
    for threads in [1, 4] {
        let server = start(threads);
        let mut pusher = server.connect();
        let mut waiting: Vec<Wire> = (0..MANY).map(|_| server.connect()).collect();
        for (n, wire) in waiting.iter_mut().enumerate() {
            send(wire, &format!("BRPOPLPUSH queue own:{n} 0"));
            until_blocked(&mut pusher, n + 1);
        }
        for n in 0..MANY {
            let push = format!("LPUSH queue e{n}");
            let got = ask_all(&mut pusher, &[&push, "LLEN queue", &format!("LRANGE own:{n} 0 -1")]);
            let own = Value::Array(vec![bulk(&format!("e{n}"))]);
            assert_eq!(got, [Value::Int(1), Value::Int(0), own], "{threads} threads");
        }
        for (n, wire) in waiting.iter_mut().enumerate() {
            assert_eq!(wire.receive().expect("a reply"), bulk(&format!("e{n}")));
        }
    }
}

/// A client which waits for more elements than there are is served by the push which completes
/// them, into another list whose slot other clients hold. It does not delay a client which waits
/// for fewer.
#[test]
fn a_waiter_for_several_elements_is_served_by_the_completing_push() {
    for threads in [1, 4] {
        let server = start(threads);
        make_busy(&server);
        let done = AtomicBool::new(false);
        thread::scope(|s| {
            let _end = SetAtEnd(&done);
            for _ in 1..threads {
                s.spawn(|| hold_busy(&server, &["far"], &done));
            }
            let mut pusher = server.connect();
            let mut waiting = [server.connect(), server.connect()];
            let both = Value::Array(vec![bulk("a"), bulk("b")]);
            let pushes = ["RPUSH k b", "LINSERT k AFTER a b", "LMOVE from k LEFT RIGHT"];
            for push in pushes.iter().cycle().take(24) {
                ask(&mut pusher, "DEL far k from");
                ask(&mut pusher, "RPUSH from b");
                send(&mut waiting[0], "BLMOVEM k far LEFT RIGHT 0 EXACTLY 2 BULK");
                until_blocked(&mut pusher, 1);
                send(&mut waiting[1], "BLPOP k 0");
                until_blocked(&mut pusher, 2);
                let got = ask_all(&mut pusher, &["RPUSH k x", "RPUSH k a", "LLEN k"]);
                assert_eq!(got, [1, 1, 1].map(Value::Int));
                let first = Value::Array(vec![bulk("k"), bulk("x")]);
                assert_eq!(waiting[1].receive().expect("a reply"), first);
                let got = ask_all(&mut pusher, &[push, "EXISTS k", "LRANGE far 0 -1"]);
                assert_eq!(got[1..], [Value::Int(0), both.clone()], "{threads} threads: {push}");
                assert_eq!(waiting[0].receive().expect("a reply"), both);
            }
        });
    }
}

/// Elements that an EXEC pushed before one of its commands panicked stay, and waiters are served.
#[test]
fn after_a_panic_in_exec_waiters_are_served() {
    for threads in [1, 4] {
        let server = start(threads);
        let (mut wire, mut pusher) = (server.connect(), server.connect());
        let mut waiting = [server.connect(), server.connect()];
        send(&mut waiting[0], "BLMOVE k far LEFT LEFT 0");
        send(&mut waiting[1], "BLPOP l 0");
        until_blocked(&mut wire, 2);
        ask(&mut wire, "DEBUG PANIC-IN-COMMAND INCR");
        let queue = encode(&["MULTI"]).into_iter();
        let queue = queue.chain(encode(&["RPUSH", "k", "x"])).chain(encode(&["RPUSH", "l", "y"]));
        let queue: Vec<u8> = queue.chain(encode(&["INCR", "n"])).chain(encode(&["EXEC"])).collect();
        pusher.send(&queue).expect("it takes requests");
        assert_eq!(waiting[0].receive().expect("a reply"), bulk("x"), "{threads} threads");
        assert_eq!(
            waiting[1].receive().expect("a reply"),
            Value::Array(vec![bulk("l"), bulk("y")])
        );
        assert_eq!(ask(&mut wire, "EXISTS k l n far"), Value::Int(1));
    }
}

// All kinds of clients at once.

const LISTS: usize = 6;
const PUSHERS: usize = 3;
const WAITERS: usize = 6;
const GROWERS: usize = 3;

fn span() -> Duration {
    let ms = std::env::var("STRESS_MS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(ms.unwrap_or(1200))
}

/// Pushers, movers in every direction over a few slots, and SORTs which lock those slots in any
/// order: all of them end, and each element exists once.
#[test]
fn concurrent_pushes_moves_and_sorts_end_and_lose_nothing() {
    for threads in [2, 4] {
        let (server, seed) = (start(threads), seed());
        let mut setup = server.connect();
        for list in 0..LISTS {
            ask(&mut setup, &format!("RPUSH up {list}"));
            ask(&mut setup, &format!("LPUSH down {list}"));
        }
        let until = Instant::now() + span();
        let running = move || Instant::now() < until;
        let (pushed, served, grown) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let left = AtomicUsize::new(PUSHERS + WAITERS + GROWERS);
        let mut all = thread::scope(|s| {
            let (server, running, left) = (&server, &running, &left);
            let (pushed, served, grown) = (&pushed, &served, &grown);
            for n in 0..PUSHERS {
                let rng = Rng::new(seed ^ n as u64);
                s.spawn(move || {
                    let _end = CountAtEnd(left);
                    push_all(server, n, rng, running, pushed);
                });
            }
            for n in 0..WAITERS {
                let rng = Rng::new(seed ^ (100 + n as u64));
                s.spawn(move || {
                    let _end = CountAtEnd(left);
                    move_about(server, rng, running, served);
                });
            }
            for n in 0..GROWERS {
                s.spawn(move || {
                    let _end = CountAtEnd(left);
                    grow_about(server, n, running, grown);
                });
            }
            s.spawn(move || drain(server, left)).join().expect("it ends with the others")
        });
        for list in 0..LISTS {
            texts(&ask(&mut setup, &format!("LRANGE q:{list} 0 -1")), &mut all);
        }
        all.retain(|text| text.starts_with(b"e"));
        let distinct: BTreeSet<_> = all.iter().collect();
        let counts = [pushed, served, grown].map(AtomicUsize::into_inner);
        println!("{threads} threads: pushed, served, grown: {counts:?}");
        assert_eq!(distinct.len(), all.len(), "{threads} threads, seed {seed}: nothing doubled");
        assert_eq!(all.len(), counts[0], "{threads} threads, seed {seed}: nothing lost");
        assert!(
            counts.iter().all(|&n| n > 20),
            "{threads} threads: everybody had a turn: {counts:?}"
        );
        assert_eq!(blocked(&mut setup), 0);
    }
}

fn push_all(
    server: &ServerProcess,
    pusher: usize,
    mut rng: Rng,
    running: &(dyn Fn() -> bool + Sync),
    pushed: &AtomicUsize,
) {
    let (mut wire, mut n) = (server.connect(), 0);
    while running() {
        let (a, b) = (rng.below(LISTS), rng.below(LISTS));
        let mut element = || {
            n += 1;
            pushed.fetch_add(1, Ordering::Relaxed);
            format!("e{pusher}:{n}")
        };
        match rng.below(5) {
            0 => drop(ask(&mut wire, &format!("LPUSH q:{a} {} {}", element(), element()))),
            1 => {
                let both =
                    [format!("RPUSH q:{a} {}", element()), format!("LPUSH q:{b} {}", element())];
                ask_all(&mut wire, &["MULTI", &both[0], &both[1], "EXEC"]);
            }
            2 => drop(ask(&mut wire, &format!("LMOVE q:{a} q:{b} LEFT RIGHT"))),
            3 => drop(ask(&mut wire, &format!("RENAMENX q:{a} q:{b}"))),
            _ => drop(ask(&mut wire, &format!("RPUSH q:{a} {}", element()))),
        }
        if rng.chance(20) {
            thread::sleep(Duration::from_micros(300));
        }
    }
}

/// Pops all elements until no pusher is left, so that lists become empty and movers wait.
fn drain(server: &ServerProcess, left: &AtomicUsize) -> Vec<Vec<u8>> {
    let (mut wire, mut taken) = (server.connect(), Vec::new());
    let pops: Vec<String> = (0..LISTS).map(|list| format!("LPOP q:{list} 100")).collect();
    let pops: Vec<&str> = pops.iter().map(String::as_str).collect();
    while left.load(Ordering::Acquire) > 0 {
        for reply in &ask_all(&mut wire, &pops) {
            texts(reply, &mut taken);
        }
        thread::sleep(Duration::from_micros(200));
    }
    taken
}

/// Moves elements between lists, with blocking commands.
fn move_about(
    server: &ServerProcess,
    mut rng: Rng,
    running: &(dyn Fn() -> bool + Sync),
    served: &AtomicUsize,
) {
    let mut wire = server.connect();
    while running() {
        // The lists of SORT are usually empty, so nearly all of these moves block.
        let from = if rng.chance(50) {
            format!("sorted:{}", rng.below(GROWERS))
        } else {
            format!("q:{}", rng.below(LISTS))
        };
        let to = rng.below(LISTS);
        let timeout = ["0.002", "0.02"][rng.below(2)];
        let said = ask(&mut wire, &format!("BLMOVE {from} q:{to} LEFT RIGHT {timeout}"));
        served.fetch_add(usize::from(matches!(said, Value::Bulk(_))), Ordering::Relaxed);
    }
}

/// SORT by and with keys in the slots of all lists (`{q:0}w` is in that of `q:0`), into a list that
/// is waited for.
fn grow_about(
    server: &ServerProcess,
    n: usize,
    running: &(dyn Fn() -> bool + Sync),
    grown: &AtomicUsize,
) {
    let mut wire = server.connect();
    let list = ["up", "down"][n % 2];
    while running() {
        let sort = format!("SORT {list} BY {{q:*}}w GET # GET {{q:*}}w LIMIT 0 2 STORE sorted:{n}");
        assert!(matches!(ask(&mut wire, &sort), Value::Int(_)));
        ask(&mut wire, &format!("SORT {list} BY nosort GET {{q:*}}w"));
        grown.fetch_add(1, Ordering::Relaxed);
    }
}
