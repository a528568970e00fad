//! Many connections on several workers: commands are atomic across workers, and no client waits for
//! ever.
//!
//! Every test runs with two workers and with four. `STRESS_SEED` repeats a run, `STRESS_MS` sets
//! the length of each part.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::in_time::in_time;
use sheafdb_tests::linear::{Did, Op, is_linearizable};
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::{SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Requests in one write of a busy client.
const BATCH: usize = 32;

fn start(threads: usize) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &["--threads", &threads.to_string()])
}

/// How long one part of a test runs.
fn span() -> Duration {
    let ms = std::env::var("STRESS_MS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(ms.unwrap_or(400))
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Sends all, then reads all replies.
fn ask_all(wire: &mut Wire, requests: &[String]) -> Vec<Value> {
    let bytes: Vec<u8> =
        requests.iter().flat_map(|r| encode(&r.split(' ').collect::<Vec<_>>())).collect();
    wire.send(&bytes).expect("it takes requests");
    requests.iter().map(|r| wire.receive().unwrap_or_else(|e| panic!("'{r}': {e}"))).collect()
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::Bulk(text) => std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()),
        _ => None,
    }
}

// One key: every history is linearizable.

const CLIENTS: usize = 4;
const KEYS: usize = 3;
const OPS: usize = 24;

#[test]
fn each_key_is_linearizable() {
    for threads in [2, 4] {
        let server = start(threads);
        let (seed, began) = (seed(), Instant::now());
        let barrier = Barrier::new(CLIENTS);
        let mut round = 0;
        let mut wires: Vec<Wire> = (0..CLIENTS).map(|_| server.connect()).collect();
        while began.elapsed() < 2 * span() {
            round += 1;
            let parts: Vec<_> = thread::scope(|s| {
                let start_one = |(client, wire)| {
                    let rng = Rng::new(seed ^ (round << 8) ^ client as u64);
                    let (barrier, began) = (&barrier, &began);
                    let by = client as u64;
                    s.spawn(move || one_client((by, wire), rng, round, barrier, began))
                };
                let handles: Vec<_> = wires.iter_mut().enumerate().map(start_one).collect();
                handles.into_iter().map(|h| h.join().expect("a client ends")).collect()
            });
            for key in 0..KEYS {
                let ops: Vec<Op> =
                    parts.iter().flatten().filter(|(k, _)| *k == key).map(|o| o.1).collect();
                assert!(is_linearizable(&ops), "seed {seed} round {round}: no order for {ops:#?}");
            }
        }
        println!("{threads} workers: {round} rounds");
        assert!(round > 3, "histories were checked");
    }
}

/// Runs random operations in small pipelines; returns key, operation and times of each.
fn one_client(
    (by, wire): (u64, &mut Wire),
    mut rng: Rng,
    round: u64,
    barrier: &Barrier,
    began: &Instant,
) -> Vec<(usize, Op)> {
    let mut done = Vec::new();
    barrier.wait();
    while done.len() < OPS {
        let asked: Vec<(usize, usize, i64)> = (0..=rng.below(3))
            .map(|_| (rng.below(KEYS), rng.below(5), 1000 * rng.below(1_000_000) as i64))
            .collect();
        let texts: Vec<String> = asked
            .iter()
            .map(|(key, what, value)| match what {
                0 => format!("SET lin:{round}:{key} {value}"),
                1 => format!("DEL lin:{round}:{key}"),
                2 | 3 => format!("INCR lin:{round}:{key}"),
                _ => format!("GET lin:{round}:{key}"),
            })
            .collect();
        let call = began.elapsed().as_nanos() as u64;
        let replies = ask_all(wire, &texts);
        let ret = began.elapsed().as_nanos() as u64;
        for ((key, what, value), reply) in asked.into_iter().zip(replies) {
            let did = match what {
                0 => Did::Set(value),
                1 => Did::Del(reply == Value::Int(1)),
                2 | 3 => Did::Incr(number(&reply).expect("INCR says a number")),
                _ => Did::Get(number(&reply)),
            };
            done.push((key, Op { did, call, ret, by }));
        }
    }
    done
}

// Several keys: readers of all keys see all effects of a command or none.

/// The next requests of a writer, given the number of its round.
type Writer = fn(u64) -> Vec<String>;

/// Runs writers, and readers which read all keys in one command; `holds` must be true for each
/// view.
fn assert_atomic(
    threads: usize,
    first: &str,
    writers: &[Writer],
    read: &str,
    holds: fn(&[Value]) -> bool,
) {
    let server = start(threads);
    if !first.is_empty() {
        assert_eq!(ask(&mut server.connect(), first), ok());
    }
    let stop = AtomicBool::new(false);
    let views: usize = thread::scope(|s| {
        let end = SetAtEnd(&stop);
        for writer in writers {
            let (server, stop) = (&server, &stop);
            s.spawn(move || {
                let mut wire = server.connect();
                for turn in (0..).step_by(BATCH) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let batch: Vec<String> = (turn..turn + BATCH as u64).flat_map(writer).collect();
                    ask_all(&mut wire, &batch);
                }
            });
        }
        let read_until_end = || {
            let mut wire = server.connect();
            let (began, batch) = (Instant::now(), vec![read.to_owned(); BATCH]);
            let (mut views, mut torn) = (0, None);
            while began.elapsed() < span() && torn.is_none() {
                for reply in ask_all(&mut wire, &batch) {
                    let Value::Array(view) = reply else { panic!("'{read}' says {reply:?}") };
                    views += 1;
                    if !holds(&view) {
                        torn = Some(view);
                    }
                }
            }
            (views, torn)
        };
        let readers = [s.spawn(read_until_end), s.spawn(read_until_end)];
        let seen: Vec<_> = readers.map(thread::ScopedJoinHandle::join).into_iter().collect();
        drop(end);
        let seen = seen.into_iter().map(|r| r.expect("a reader ends"));
        seen.map(|(views, torn)| {
            assert_eq!(torn, None, "a view which no order explains, {threads} workers, '{read}'");
            views
        })
        .sum()
    });
    assert!(views > 10 * BATCH, "only {views} views");
}

fn all_equal(view: &[Value]) -> bool {
    view.windows(2).all(|pair| pair[0] == pair[1])
}

fn one_present(view: &[Value]) -> bool {
    view.iter().filter(|v| **v != Value::NullBulk).count() == 1
}

const EIGHT: &str = "MGET a b c d e f g h";

fn mset_eight(n: u64) -> Vec<String> {
    vec![format!("MSET a {n} b {n} c {n} d {n} e {n} f {n} g {n} h {n}")]
}

/// The same keys in reverse order, so that locking in the order of arguments would deadlock.
fn mset_eight_backwards(n: u64) -> Vec<String> {
    vec![format!("MSET h -{n} g -{n} f -{n} e -{n} d -{n} c -{n} b -{n} a -{n}")]
}

#[test]
fn mset_is_atomic() {
    for threads in [2, 4] {
        assert_atomic(threads, "", &[mset_eight, mset_eight_backwards], EIGHT, all_equal);
    }
}

#[test]
fn msetnx_is_atomic() {
    let set: Writer = |n| vec![format!("MSETNX a {n} b {n} c {n} d {n}")];
    let del: Writer = |_| vec!["DEL d c b a".into()];
    for threads in [2, 4] {
        assert_atomic(threads, "", &[set, set, del], "MGET a b c d", all_equal);
    }
}

#[test]
fn rename_is_atomic() {
    let there: Writer = |_| vec!["RENAME a b".into()];
    let back: Writer = |_| vec!["RENAME b a".into(), "RENAMENX b c".into(), "RENAME c a".into()];
    for threads in [2, 4] {
        assert_atomic(threads, "SET a x", &[there, back], "MGET a b c", one_present);
    }
}

#[test]
fn copy_is_atomic() {
    let both: Writer = |n| vec![format!("MSET a {n} b {n}")];
    let copy: Writer = |_| vec!["COPY a b REPLACE".into()];
    for threads in [2, 4] {
        assert_atomic(threads, "MSET a x b x", &[both, copy, copy], "MGET b a", all_equal);
    }
}

#[test]
fn exec_is_atomic() {
    let transfer: Writer = |n| {
        [
            "MULTI".into(),
            format!("INCRBY a {n}"),
            "DECR b".into(),
            format!("DECRBY c {n}"),
            "INCR b".into(),
            "INCR d".into(),
            "DECR a".into(),
            "EXEC".into(),
        ]
        .to_vec()
    };
    let sum_is_zero = |view: &[Value]| view.iter().filter_map(number).sum::<i64>() == 0;
    for threads in [2, 4] {
        assert_atomic(
            threads,
            "MSET a 0 b 0 c 0 d 0",
            &[transfer, transfer],
            "MGET d c b a",
            sum_is_zero,
        );
    }
}

#[test]
fn flushall_is_atomic() {
    let flush: Writer =
        |n| vec![if n % 2 == 0 { "FLUSHALL ASYNC" } else { "FLUSHALL SYNC" }.into()];
    for threads in [2, 4] {
        assert_atomic(threads, "", &[mset_eight, mset_eight, flush], EIGHT, all_equal);
    }
}

#[test]
fn swapdb_is_atomic() {
    let swap: Writer = |_| vec!["SWAPDB 0 1".into()];
    let other: Writer = |n| {
        vec![
            "SELECT 1".into(),
            format!("MSET a -{n} b -{n} c -{n} d -{n} e -{n} f -{n} g -{n} h -{n}"),
        ]
    };
    for threads in [2, 4] {
        assert_atomic(threads, "", &[mset_eight, other, swap], EIGHT, all_equal);
    }
}

#[test]
fn key_counts_are_right_after_flushes_and_swaps() {
    for threads in [2, 4] {
        let server = start(threads);
        thread::scope(|s| {
            for client in 0..4 {
                let server = &server;
                s.spawn(move || {
                    let mut wire = server.connect();
                    let began = Instant::now();
                    for n in 0.. {
                        if began.elapsed() > span() {
                            break;
                        }
                        let mut batch: Vec<String> =
                            (0..BATCH).map(|k| format!("SET {client}:{k} {n}")).collect();
                        batch.push(
                            ["SWAPDB 0 1", "FLUSHDB", "FLUSHALL", "DEL 0:1 1:1"][n % 4].into(),
                        );
                        ask_all(&mut wire, &batch);
                    }
                });
            }
        });
        // DBSIZE, KEYS and reads agree on the keys.
        let mut wire = server.connect();
        for db in 0..2 {
            ask(&mut wire, &format!("SELECT {db}"));
            let Value::Array(keys) = ask(&mut wire, "KEYS *") else { panic!("KEYS says a list") };
            assert_eq!(ask(&mut wire, "DBSIZE"), Value::Int(keys.len() as i64));
            for key in keys {
                let Value::Bulk(key) = key else { panic!("a key is a bulk") };
                let there = wire.command(&[b"EXISTS".to_vec(), key]).expect("answered");
                assert_eq!(there, Value::Int(1));
            }
        }
        assert_eq!(ask(&mut wire, "FLUSHALL"), ok());
        assert_eq!(ask(&mut wire, "DBSIZE"), Value::Int(0));
    }
}

// Transactions that watch.

#[test]
fn a_watched_key_changed_by_any_worker_aborts_the_transaction() {
    let changes = [
        "SET k 2",
        "DEL k",
        "INCR k",
        "EXPIRE k 100",
        "RENAME k z",
        "MSET x 1 k 2",
        "FLUSHALL",
        "FLUSHDB",
        "SWAPDB 0 1",
        "PEXPIRE k 1",
        "EXPIRE k -1",
        "COPY other k REPLACE",
        "MOVE k 1",
    ];
    for threads in [2, 4] {
        let server = start(threads);
        let mut watcher = server.connect();
        // As many as workers and one more: some are on the watcher's worker, some are not.
        let mut others: Vec<Wire> = (0..=threads).map(|_| server.connect()).collect();
        for (i, change) in changes.iter().enumerate() {
            for other in &mut others {
                ask(other, "FLUSHALL");
                ask(other, "MSET k 1 other 7");
                assert_eq!(ask(&mut watcher, "WATCH nothing k"), ok());
                ask(other, change);
                thread::sleep(Duration::from_millis(5));
                assert_eq!(ask(&mut watcher, "MULTI"), ok());
                ask(&mut watcher, "SET done 1");
                let said = ask(&mut watcher, "EXEC");
                assert_eq!(said, Value::NullArray, "after '{change}' ({i}), {threads} workers");
                // Without a change the transaction runs.
                ask(&mut watcher, "WATCH k");
                ask(other, "SET unrelated 1");
                ask(&mut watcher, "MULTI");
                ask(&mut watcher, "SET done 1");
                assert_eq!(ask(&mut watcher, "EXEC"), Value::Array(vec![ok()]), "'{change}'");
            }
        }
    }
}

#[test]
fn watch_prevents_write_skew() {
    for threads in [2, 4] {
        let server = start(threads);
        let barrier = Barrier::new(2);
        let rounds = 400;
        let one = |own: &'static str| {
            let mut wire = server.connect();
            let mut won = 0;
            for round in 0..rounds {
                barrier.wait();
                let (x, y) = (format!("x{round}"), format!("y{round}"));
                ask(&mut wire, &format!("WATCH {x} {y}"));
                // Only if neither key is set: at most one of the two transactions may succeed.
                let unset = ask(&mut wire, &format!("EXISTS {x} {y}")) == Value::Int(0);
                let batch = ["MULTI".into(), format!("SET {own}{round} off"), "EXEC".into()];
                if unset {
                    won += usize::from(ask_all(&mut wire, &batch)[2] != Value::NullArray);
                } else {
                    ask(&mut wire, "UNWATCH");
                }
            }
            won
        };
        let won: usize = thread::scope(|s| {
            let both = [s.spawn(|| one("x")), s.spawn(|| one("y"))];
            both.map(|h| h.join().expect("a client ends")).iter().sum()
        });
        let mut wire = server.connect();
        for round in 0..rounds {
            let off = ask(&mut wire, &format!("EXISTS x{round} y{round}"));
            assert_ne!(off, Value::Int(2), "write skew in round {round}, {threads} workers");
        }
        assert!(won > 0, "some transactions succeeded");
    }
}

#[test]
fn optimistic_increments_lose_no_update() {
    for threads in [2, 4] {
        let server = start(threads);
        let add = || {
            let mut wire = server.connect();
            let (began, mut added) = (Instant::now(), 0);
            while began.elapsed() < span() {
                ask(&mut wire, "WATCH n");
                let n = number(&ask(&mut wire, "GET n")).unwrap_or(0);
                let batch = ["MULTI".into(), format!("SET n {}", n + 1), "EXEC".into()];
                added += i64::from(ask_all(&mut wire, &batch)[2] != Value::NullArray);
            }
            added
        };
        let added: i64 = thread::scope(|s| {
            let all = [s.spawn(add), s.spawn(add), s.spawn(add)];
            all.map(|h| h.join().expect("a client ends")).iter().sum()
        });
        assert_eq!(ask(&mut server.connect(), "GET n"), bulk(&added.to_string()));
    }
}

// No client waits for ever, and none waits for long commands of others.

#[test]
fn random_commands_on_many_keys_do_not_deadlock() {
    for threads in [2, 4] {
        let server = start(threads);
        let seed = seed();
        let replies: usize = thread::scope(|s| {
            let run = |client: u64| {
                let (server, mut rng) = (&server, Rng::new(seed ^ client));
                s.spawn(move || {
                    let mut wire = server.connect();
                    let (began, mut replies) = (Instant::now(), 0);
                    while began.elapsed() < 2 * span() {
                        let batch: Vec<String> = (0..BATCH).flat_map(|_| any(&mut rng)).collect();
                        replies += ask_all(&mut wire, &batch).len();
                    }
                    replies
                })
            };
            let handles: Vec<_> = (0..6).map(run).collect();
            handles.into_iter().map(|h| h.join().expect("every request is answered")).sum()
        });
        println!("{threads} workers: {replies} replies");
        assert!(replies > 100 * BATCH);
    }
}

/// A random command or transaction on several of a few keys, in any order.
fn any(rng: &mut Rng) -> Vec<String> {
    let keys: Vec<String> = (0..2 + rng.below(6)).map(|_| format!("r{}", rng.below(12))).collect();
    let pairs = keys.iter().map(|k| format!("{k} v")).collect::<Vec<_>>().join(" ");
    let list = keys.join(" ");
    let (a, b) = (&keys[0], &keys[1]);
    let one = match rng.below(12) {
        0 | 1 => format!("MSET {pairs}"),
        2 => format!("MSETNX {pairs}"),
        3 | 4 => format!("MGET {list}"),
        5 => format!("DEL {list}"),
        6 => format!("RENAME {a} {b}"),
        7 => format!("COPY {a} {b} REPLACE"),
        8 => format!("EXISTS {list}"),
        9 => format!("WATCH {list}"),
        10 => "SWAPDB 0 1".into(),
        _ => {
            let inner = [format!("MSET {pairs}"), format!("MGET {list}"), format!("DEL {b} {a}")];
            return [vec!["MULTI".into()], inner.to_vec(), vec!["EXEC".into()]].concat();
        }
    };
    vec![one]
}

/// Commands of an EXEC which takes about 150 ms, many time slices of the scheduler.
const LONG: usize = 2000;

/// Sends an EXEC of this many LCS of 2,000 by 2,000 bytes, on keys which include `p` and `q`. Does
/// not wait for the reply.
fn send_long_exec(wire: &mut Wire, commands: usize) {
    let mut batch = encode(&["MULTI"]);
    for _ in 0..commands {
        batch.extend(encode(&["LCS", "p", "q", "LEN"]));
    }
    batch.extend(encode(&["SET", "p", "after"]));
    wire.send(&batch).expect("it takes requests");
    for _ in 0..commands + 2 {
        wire.receive().expect("OK and QUEUED");
    }
    wire.send(&encode(&["EXEC"])).expect("it takes requests");
}

#[test]
fn a_long_exec_blocks_no_other_worker() {
    let server = start(2);
    in_time(|factor| other_worker_answers_during_exec(&server, LONG * factor as usize));
}

/// Whether a client on the other worker is answered while EXEC runs, although another client of
/// that worker waits for a slot which EXEC holds.
fn other_worker_answers_during_exec(server: &ServerProcess, commands: usize) -> bool {
    let mut long = server.connect();
    let text = |byte: u8| vec![byte; 2000];
    let fill = |wire: &mut Wire| {
        wire.command(&[b"SET".to_vec(), b"p".to_vec(), text(b'p')]).expect("answered");
        wire.command(&[b"SET".to_vec(), b"q".to_vec(), text(b'q')]).expect("answered");
    };
    // The clients that are answered while EXEC runs are on the other worker.
    fill(&mut long);
    let mut others: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
    send_long_exec(&mut long, commands);
    for wire in &mut others {
        wire.send(&encode(&["GET", "elsewhere"])).expect("it takes requests");
    }
    let mut early = Vec::new();
    while !long.has_reply(Duration::from_millis(1)).expect("it is open") && early.len() < 2 {
        for at in (0..others.len()).rev() {
            if others[at].has_reply(Duration::from_millis(1)).expect("it is open") {
                early.push(others.swap_remove(at));
            }
        }
    }
    assert!(matches!(long.receive(), Ok(Value::Array(_))), "EXEC says its replies");
    for wire in early.iter_mut().chain(&mut others) {
        assert_eq!(wire.receive().expect("answered"), Value::NullBulk);
    }
    // (Several may have been answered by the time one is noticed.)
    let [parked, neighbour, ..] = &mut early[..] else { return false };
    // One of them needs a slot which EXEC holds; the other, on the same worker, must not wait for
    // it.
    fill(&mut long);
    send_long_exec(&mut long, commands);
    thread::sleep(Duration::from_millis(5));
    parked.send(&encode(&["GET", "p"])).expect("it takes requests");
    thread::sleep(Duration::from_millis(5));
    assert_eq!(ask(neighbour, "GET elsewhere"), Value::NullBulk);
    let is_early = !parked.has_reply(Duration::from_millis(1)).expect("it is open");
    let saw = parked.receive().expect("it is answered");
    assert!(matches!(long.receive(), Ok(Value::Array(_))), "EXEC says its replies");
    // On a busy machine it may have run before EXEC.
    is_early && saw == bulk("after")
}

#[test]
fn administration_runs_during_debug_sleep_and_all_wake_afterwards() {
    for threads in [2, 4] {
        in_time(|factor| kill_runs_during_sleep(threads, factor * Duration::from_millis(700)));
    }
}

/// Whether CLIENT KILL runs during DEBUG SLEEP, and no write does before the sleep ends.
fn kill_runs_during_sleep(threads: usize, sleep: Duration) -> bool {
    let mut server = start(threads);
    let mut sleeper = server.connect();
    let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
    let mut admin = server.connect();
    let mut victim = server.connect();
    let id = number(&ask(&mut victim, "CLIENT ID")).expect("an id");
    let began = Instant::now();
    let seconds = sleep.as_secs_f64().to_string();
    sleeper.send(&encode(&["DEBUG", "SLEEP", &seconds])).expect("it takes requests");
    thread::sleep(sleep / 7);
    for (i, wire) in wires.iter_mut().enumerate() {
        wire.send(&encode(&["SET", &format!("w{i}"), "1"])).expect("it takes requests");
    }
    assert_eq!(ask(&mut admin, &format!("CLIENT KILL ID {id}")), Value::Int(1));
    assert!(victim.receive().is_err(), "it is closed");
    let is_early = began.elapsed() < sleep;
    for wire in &mut wires {
        assert_eq!(wire.receive().expect("it resumes"), ok());
    }
    let are_late = began.elapsed() >= sleep;
    assert_eq!(sleeper.receive().expect("it wakes"), ok());
    // Killing the sleeping client releases World at once.
    let id = number(&ask(&mut sleeper, "CLIENT ID")).expect("an id");
    sleeper.send(&encode(&["DEBUG", "SLEEP", "1000"])).expect("it takes requests");
    thread::sleep(Duration::from_millis(100));
    wires[0].send(&encode(&["GET", "w1"])).expect("it takes requests");
    assert_eq!(ask(&mut admin, &format!("CLIENT KILL ID {id}")), Value::Int(1));
    assert_eq!(wires[0].receive().expect("it resumes"), bulk("1"));
    assert!(server.answers());
    is_early && are_late
}

/// Keys which SORT reads by pattern, in different slots.
const GROWN: usize = 24;

/// Checks that all values are of one generation, because each writer writes all of them; returns
/// it.
fn generation(reply: &Value) -> i64 {
    let Value::Array(parts) = reply else { panic!("an array: {reply:?}") };
    assert_eq!(parts.len(), GROWN);
    assert!(parts.windows(2).all(|two| two[0] == two[1]), "of several generations: {parts:?}");
    match &parts[0] {
        Value::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        other => panic!("a bulk: {other:?}"),
    }
}

/// Runs SORT in each of its forms; each reply must show one generation of values.
fn sort_in_each_form(wire: &mut Wire, client: usize) {
    let list = ["up", "down"][client % 2];
    let sorts = [
        format!("SORT {list} BY nosort GET v:*"),
        format!("SORT {list} BY v:* GET v:*"),
        format!("SORT_RO {list} ALPHA GET v:*"),
    ];
    for reply in &ask_all(wire, &sorts) {
        generation(reply);
    }
    ask(wire, &format!("SORT {list} BY nosort GET v:* STORE kept:{client}"));
    generation(&ask(wire, &format!("LRANGE kept:{client} 0 -1")));
}

/// Increments all values in a transaction; it must find them equal.
fn increment_all(wire: &mut Wire, names: &[String]) {
    let mut queue = vec!["MULTI".to_owned()];
    queue.extend(names.iter().rev().map(|n| format!("INCR v:{n}")));
    queue.push("EXEC".into());
    let replies = ask_all(wire, &queue);
    let Some(Value::Array(done)) = replies.last() else { panic!("{replies:?}") };
    assert!(done.windows(2).all(|two| two[0] == two[1]), "{done:?}");
}

/// SORT with patterns locks keys in any order while it runs. SORTs do not deadlock with each other
/// or with commands which lock in order, and each sees MSETs and transactions completely or not at
/// all.
#[test]
fn sort_with_patterns_reads_atomic_values() {
    for threads in [2, 4] {
        let server = start(threads);
        let mut setup = server.connect();
        let names: Vec<String> = (0..GROWN).map(|n| n.to_string()).collect();
        let (up, down) =
            (names.join(" "), names.iter().rev().cloned().collect::<Vec<_>>().join(" "));
        ask(&mut setup, &format!("RPUSH up {up}"));
        ask(&mut setup, &format!("RPUSH down {down}"));
        let all = |value: &str| {
            let pairs: Vec<String> = names.iter().map(|n| format!("v:{n} {value}")).collect();
            format!("MSET {}", pairs.join(" "))
        };
        ask(&mut setup, &all("0"));
        let (until, grown) = (Instant::now() + 2 * span(), AtomicUsize::new(0));
        let running = || Instant::now() < until;
        thread::scope(|s| {
            for client in 0..4 {
                let (server, grown, running) = (&server, &grown, &running);
                s.spawn(move || {
                    let mut wire = server.connect();
                    while running() {
                        sort_in_each_form(&mut wire, client);
                        grown.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for client in 0..2 {
                let (server, running, all) = (&server, &running, &all);
                s.spawn(move || {
                    let mut wire = server.connect();
                    let mut n = client;
                    while running() {
                        n += 2;
                        ask(&mut wire, &all(&n.to_string()));
                    }
                });
            }
            for _ in 0..2 {
                let (server, running, names) = (&server, &running, &names);
                s.spawn(move || {
                    let mut wire = server.connect();
                    while running() {
                        increment_all(&mut wire, names);
                    }
                });
            }
        });
        assert!(grown.load(Ordering::Relaxed) > 0, "some SORTs ran");
        generation(&ask(&mut setup, "SORT up BY nosort GET v:*"));
    }
}
