//! Clients move tokens and money while commands panic, clients are killed and paused, and passwords
//! and monitors are set and removed: nothing is lost or created, and no client waits for ever.
//!
//! `STRESS_SEED` repeats the random choices of a run. `SHEAFDB_STRESS_SECONDS` is how long each
//! number of workers is tried; an hour of it is `SHEAFDB_STRESS_SECONDS=1800
//! SHEAFDB_PROFILE=release cargo test -p sheafdb-tests --test all -- --nocapture suite::trouble::`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::{SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Accounts; transactions transfer money between them, so their sum is constant.
const ACCOUNTS: usize = 16;
const MONEY: i64 = 1000;
/// Lists and sets of tokens, which single commands move between them.
const PLACES: usize = 6;
const TOKENS: usize = 40;
/// Fields of a hash, each of which is also a member of a set.
const FIELDS: usize = 500;
const CLIENTS: usize = 6;

/// Commands which are made to panic; each moves a token atomically. Commands of transactions are
/// not among them: inside EXEC the commands before the panic are committed.
const PANICS: &[&str] = &["lmove", "smove", "blmove", "rpoplpush", "copy", "rename"];

fn span() -> Duration {
    let given = std::env::var("SHEAFDB_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(2))
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// Sends all requests and returns the replies; `None` if the connection was closed. The rest of a
/// transaction is sent after MULTI is answered: if MULTI fails, as while a password is set, its
/// commands would run separately.
fn try_all(wire: &mut Wire, requests: &[String]) -> Option<Vec<Value>> {
    if let Some(multi) = requests.iter().position(|request| request == "MULTI") {
        let (head, tail) = requests.split_at(multi + 1);
        let mut replies = send_all(wire, head)?;
        if replies.last() == Some(&Value::Simple(b"OK".to_vec())) {
            replies.extend(send_all(wire, tail)?);
        }
        return Some(replies);
    }
    send_all(wire, requests)
}

fn send_all(wire: &mut Wire, requests: &[String]) -> Option<Vec<Value>> {
    let bytes: Vec<u8> = requests.iter().flat_map(|r| encode(&words(r))).collect();
    wire.send(&bytes).ok()?;
    let replies = requests.iter().map(|request| match wire.receive() {
        Err(why) if why.kind() == std::io::ErrorKind::TimedOut => {
            panic!("'{request}' has no reply")
        }
        reply => reply.ok(),
    });
    replies.collect()
}

fn number(value: &Value) -> i64 {
    match value {
        Value::Int(n) => *n,
        Value::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        other => panic!("{other:?} is no number"),
    }
}

fn fill(wire: &mut Wire) {
    for account in 0..ACCOUNTS {
        ask(wire, &format!("SET account:{account} {MONEY}"));
    }
    for token in 0..TOKENS {
        ask(wire, &format!("RPUSH list:{} token:{token}", token % PLACES));
        ask(wire, &format!("SADD set:{} token:{token}", token % PLACES));
    }
}

/// The next requests of a client; whether they succeed or fail, the sums are constant.
fn next(rng: &mut Rng, client: usize) -> Vec<String> {
    let (a, b, field) = (rng.below(PLACES), rng.below(PLACES), rng.below(FIELDS));
    let exec = |of: &[String]| [&["MULTI".into()][..], of, &["EXEC".into()]].concat();
    match rng.below(9) {
        0 | 1 => {
            let (from, to) = (rng.below(ACCOUNTS), rng.below(ACCOUNTS));
            let sum = rng.below(50);
            exec(&[format!("DECRBY account:{from} {sum}"), format!("INCRBY account:{to} {sum}")])
        }
        2 => exec(&[format!("HSET hash {field} v"), format!("SADD fields {field}")]),
        3 => exec(&[format!("SREM fields {field}"), format!("HDEL hash {field}")]),
        4 => vec![format!("BLMOVE list:{a} list:{b} LEFT RIGHT 0.02")],
        5 => vec![format!("SMOVE set:{a} set:{b} token:{}", rng.below(TOKENS)); 3],
        6 => vec![
            format!("RPOPLPUSH list:{a} list:{b}"),
            format!("LMOVE list:{b} list:{a} LEFT LEFT"),
        ],
        7 => vec![
            format!("COPY hash copy:{client} REPLACE"),
            format!("RENAME copy:{client} renamed:{client}"),
            format!("DEL renamed:{client}"),
        ],
        _ => vec![
            "WATCH account:0".into(),
            "MULTI".into(),
            "DECR account:1".into(),
            "INCR account:0".into(),
            "EXEC".into(),
        ],
    }
}

/// Reads all keys atomically and checks the sums; false if the reader was disturbed as well.
fn sums_hold(wire: &mut Wire, what: &str) -> bool {
    let mut requests: Vec<String> = vec!["MULTI".into()];
    requests.extend((0..ACCOUNTS).map(|n| format!("GET account:{n}")));
    requests.extend((0..PLACES).map(|n| format!("LLEN list:{n}")));
    requests.extend((0..PLACES).map(|n| format!("SCARD set:{n}")));
    requests.extend(["HLEN hash".into(), "SCARD fields".into(), "EXEC".into()]);
    let Some(replies) = try_all(wire, &requests) else { return false };
    let Some(Value::Array(all)) = replies.last() else { return false };
    let figures: Vec<i64> = all.iter().map(number).collect();
    let (money, rest) = figures.split_at(ACCOUNTS);
    let (lists, rest) = rest.split_at(PLACES);
    let (sets, pair) = rest.split_at(PLACES);
    assert_eq!(money.iter().sum::<i64>(), MONEY * ACCOUNTS as i64, "{what}: {money:?}");
    assert_eq!(lists.iter().sum::<i64>(), TOKENS as i64, "{what}: {lists:?}");
    assert_eq!(sets.iter().sum::<i64>(), TOKENS as i64, "{what}: {sets:?}");
    assert_eq!(pair[0], pair[1], "{what}: fields");
    true
}

/// Causes one disturbance after another, and restores what it changed when it ends.
fn cause_disturbances(server: &ServerProcess, wire: &mut Wire, mut rng: Rng, until: Instant) {
    let mut monitor = None;
    while Instant::now() < until {
        thread::sleep(Duration::from_micros(rng.below(6000) as u64));
        let text = match rng.below(12) {
            0 => "CLIENT KILL TYPE normal SKIPME yes".into(),
            1 => format!("CLIENT PAUSE {} WRITE", 1 + rng.below(20)),
            2 => format!("CLIENT PAUSE {} ALL", 1 + rng.below(20)),
            3 => "CLIENT UNPAUSE".into(),
            4 => "CONFIG SET requirepass secret".into(),
            5 => "CONFIG SET requirepass ".into(),
            6 => {
                // The previous monitor disconnects.
                let mut next = server.connect();
                next.send(b"MONITOR\r\n").expect("it takes requests");
                monitor = Some(next);
                continue;
            }
            7 => "DEBUG SLEEP 0.005".into(),
            _ => format!("DEBUG PANIC-IN-COMMAND {} {}", rng.pick(PANICS), 1 + rng.below(4)),
        };
        let reply = ask(wire, &text);
        assert!(!matches!(reply, Value::Error(_)), "{text}: {reply:?}");
    }
    ask(wire, "CONFIG SET requirepass ");
    ask(wire, "CLIENT UNPAUSE");
    drop(monitor);
}

fn keys_agree(wire: &mut Wire) {
    let size = number(&ask(wire, "DBSIZE"));
    let Value::Array(keys) = ask(wire, "KEYS *") else { panic!("KEYS is a list") };
    assert_eq!(keys.len() as i64, size, "what is there, and its count");
    let mut by_type = 0;
    for kind in ["string", "list", "set", "hash", "zset", "stream"] {
        let Value::Array(parts) = ask(wire, &format!("SCAN 0 COUNT 100000 TYPE {kind}")) else {
            panic!("SCAN has two parts")
        };
        let Value::Array(found) = &parts[1] else { panic!("the keys") };
        by_type += found.len() as i64;
    }
    assert_eq!(by_type, size, "the keys of each type, and all");
}

fn dataset(wire: &mut Wire) -> i64 {
    let Value::Bulk(text) = ask(wire, "INFO memory") else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory_dataset:"));
    line.and_then(|n| n.parse().ok()).expect("a number")
}

/// More than recently closed connections may take.
const MEMORY_SLACK: i64 = 1 << 20;

#[test]
fn nothing_is_lost_under_disturbances() {
    for threads in [2, 4] {
        let threads_arg = threads.to_string();
        let mut server = ServerProcess::start_with(
            &Binary::under_test(),
            &["--threads", &threads_arg],
            |command| {
                // Many commands are made to panic; backtraces are not needed.
                command.env("RUST_BACKTRACE", "0");
            },
        );
        let seed = seed();
        let mut admin = server.connect();
        let empty = dataset(&mut admin);
        fill(&mut admin);
        let (end, sent, checks) =
            (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let what = format!("seed {seed}, {threads} workers");
        thread::scope(|s| {
            let (server, end, sent, checks, what) = (&server, &end, &sent, &checks, &what);
            for client in 0..CLIENTS {
                s.spawn(move || {
                    let (mut wire, mut rng) = (server.connect(), Rng::new(seed ^ client as u64));
                    while !end.load(Ordering::Acquire) {
                        let requests = next(&mut rng, client);
                        if try_all(&mut wire, &requests).is_some() {
                            sent.fetch_add(requests.len(), Ordering::Relaxed);
                        } else {
                            wire = server.connect();
                        }
                    }
                });
            }
            s.spawn(move || {
                let mut wire = server.connect();
                while !end.load(Ordering::Acquire) {
                    if sums_hold(&mut wire, what) {
                        checks.fetch_add(1, Ordering::Relaxed);
                    } else {
                        wire = server.connect();
                    }
                }
            });
            let _end = SetAtEnd(end);
            cause_disturbances(server, &mut admin, Rng::new(!seed), Instant::now() + span());
        });
        assert!(sums_hold(&mut admin, &what), "the disturbances have ended");
        keys_agree(&mut admin);
        let (sent, checks) = (sent.into_inner(), checks.into_inner());
        let panics = server.log().matches("its changes were rolled back").count();
        println!("{threads} workers: {sent} requests, {checks} checks, {panics} panics");
        assert!(sent > 0 && checks > 0, "requests and checks ran");
        ask(&mut admin, "FLUSHALL SYNC");
        assert_eq!(ask(&mut admin, "DBSIZE"), Value::Int(0));
        let began = Instant::now();
        while dataset(&mut admin) > empty + MEMORY_SLACK {
            assert!(began.elapsed() < Duration::from_secs(120), "memory is given back");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(server.answers());
    }
}
