//! Expired keys while nothing may change: during CLIENT PAUSE, and in the slots of keys which
//! MIGRATE transfers. Replies and counters are compared with those of a real server.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(120);

fn send(wire: &mut Wire, line: &str) {
    let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    wire.send(&encode(&words)).expect("the connection is open");
}

fn ask(wire: &mut Wire, line: &str) -> String {
    send(wire, line);
    wire.receive().map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

/// Sends several commands in one write.
fn at_once(wire: &mut Wire, lines: &[&str]) {
    ask(wire, "MULTI");
    for line in lines {
        ask(wire, line);
    }
    assert!(!ask(wire, "EXEC").starts_with('-'));
}

/// A field of INFO.
fn figure(wire: &mut Wire, name: &str) -> String {
    let Ok(Value::Bulk(info)) = wire.command(&["INFO", "everything"]) else { panic!("a text") };
    let info = String::from_utf8_lossy(&info).into_owned();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("none").split(",avg_ttl").next().unwrap_or_default().to_owned()
}

/// Waits until the reply to a command is `expected`.
fn until(wire: &mut Wire, line: &str, expected: &str) {
    let began = Instant::now();
    while ask(wire, line) != expected {
        assert!(began.elapsed() < PATIENCE, "{line} is not {expected}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a scenario on a real server and on ours with one worker and with two: the results must be
/// equal.
fn as_a_real_server(scenario: impl Fn(&ServerProcess) -> Vec<String>) {
    let expected = scenario(&ServerProcess::start(&Binary::redis(), &[]));
    let ours = Binary::under_test();
    if ours.kind == Kind::Redis {
        return;
    }
    for threads in ["1", "2"] {
        let noted = scenario(&ServerProcess::start(&ours, &["--threads", threads]));
        assert_eq!(noted, expected, "--threads {threads}");
    }
}

/// An expired key is not removed during a pause, but it is invisible; afterwards it is removed and
/// counted.
#[test]
fn expired_keys_are_not_removed_during_a_pause() {
    for mode in ["WRITE", "ALL"] {
        as_a_real_server(|server| {
            let mut wires: [Wire; 2] = [server.connect(), server.connect()];
            let [wire, other] = &mut wires;
            let mut noted = Vec::new();
            ask(wire, "SET live v");
            // The keys expire after the end of the transaction.
            let pause = if mode == "WRITE" { "100000 WRITE" } else { "300 ALL" };
            let pause = format!("CLIENT PAUSE {pause}");
            let keys = ["SET k v PX 1", "RPUSH l a", "PEXPIRE l 1", "SET n 1 PX 1"];
            at_once(wire, &[&keys[..], &[&pause]].concat());
            thread::sleep(Duration::from_millis(20));
            if mode == "WRITE" {
                for line in [
                    "DBSIZE",
                    "GET k",
                    "EXISTS k l live",
                    "MGET k live n",
                    "TTL k",
                    "LLEN l",
                    "RANDOMKEY",
                    "KEYS *",
                    "SCAN 0 COUNT 100",
                    "DBSIZE",
                ] {
                    noted.push(format!("{line}: {}", ask(other, line)));
                }
                for name in ["expired_keys", "db0", "keyspace_hits", "keyspace_misses"] {
                    noted.push(format!("{name}: {}", figure(other, name)));
                }
                ask(other, "CLIENT UNPAUSE");
            }
            until(other, "DBSIZE", ":1");
            noted.push(figure(other, "expired_keys"));
            noted
        });
    }
}

/// A transaction whose watched key expires during the pause fails, although it only reads; if the
/// key was already expired when it was watched, the transaction runs.
#[test]
fn watched_keys_which_expire_during_a_pause() {
    as_a_real_server(|server| {
        let mut wires: [Wire; 3] = [server.connect(), server.connect(), server.connect()];
        let [wire, early, late] = &mut wires;
        let began = Instant::now();
        ask(wire, "SET k v PX 1000");
        ask(early, "WATCH k");
        ask(wire, "CLIENT PAUSE 100000 WRITE");
        let was_in_time = began.elapsed() < Duration::from_secs(1);
        until(wire, "EXISTS k", ":0");
        ask(late, "WATCH k");
        let mut noted = vec![ask(wire, "DBSIZE")];
        for watcher in [early, &mut *late] {
            ask(watcher, "MULTI");
            ask(watcher, "GET k");
            noted.push(ask(watcher, "EXEC"));
        }
        ask(late, "WATCH k");
        ask(late, "MULTI");
        ask(late, "GET k");
        ask(wire, "CLIENT UNPAUSE");
        until(wire, "DBSIZE", ":0");
        noted.push(ask(late, "EXEC"));
        // If the machine was suspended, the key was removed before the pause.
        let seldom = [":1", "null-array", "*1 null-bulk", "*1 null-bulk"].map(String::from);
        if was_in_time { noted } else { seldom.to_vec() }
    });
}

/// A key which expires while MIGRATE transfers it is hidden, and is kept until MIGRATE has ended.
/// DEBUG POPULATE and DEBUG RELOAD write as well, so they wait; other keys are not affected.
#[test]
fn expired_keys_stay_while_they_are_migrated() {
    let binary = Binary::under_test();
    if binary.kind == Kind::Redis {
        return;
    }
    let waiters = [("DEBUG POPULATE 2 {x}", ":2"), ("DEBUG RELOAD", ":0")];
    for (threads, (waiter, left)) in
        ["1", "2"].into_iter().flat_map(|threads| waiters.map(|waiter| (threads, waiter)))
    {
        let server = ServerProcess::start(&binary, &["--threads", threads]);
        let target = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = target.local_addr().expect("it listens").port();
        let mut wires: [Wire; 3] = [server.connect(), server.connect(), server.connect()];
        let [slow, wire, waiting] = &mut wires;
        // Both in one read, so they use the same time: MIGRATE finds the key, which expires once it
        // has begun.
        let migrate = format!("MIGRATE 127.0.0.1 {port} {{x}}:0 0 60000");
        let requests = ["SET {x}:0 v PX 1", &migrate].map(|line| {
            encode(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
        });
        ask(wire, "SET {x}:live v");
        slow.send(&requests.concat()).expect("the connection is open");
        assert_eq!(slow.receive().map(|reply| render::line(&reply)).ok(), Some("+OK".into()));
        let (taken, _) = target.accept().expect("it comes");
        until(wire, "EXISTS {x}:0", ":0");
        assert_eq!(ask(wire, "DBSIZE"), ":2");
        assert_eq!(figure(wire, "expired_keys"), "0");
        send(waiting, waiter);
        ask(wire, "SET {y} v PX 1");
        until(wire, "DBSIZE", ":2");
        assert_eq!(figure(wire, "expired_keys"), "1");
        assert!(!waiting.has_reply(Duration::from_millis(100)).expect("it is open"));
        assert_eq!(ask(wire, "EXISTS {x}:0 {x}:1"), ":0");
        drop(taken);
        let reply = slow.receive().map(|reply| render::line(&reply)).expect("a reply");
        assert!(reply.starts_with("-IOERR"), "{reply}");
        let reply = waiting.receive().map(|reply| render::line(&reply)).expect("a reply");
        assert_eq!(reply, "+OK", "{waiter}");
        assert_eq!(ask(wire, "EXISTS {x}:0 {x}:1"), left);
        assert_eq!(ask(wire, "GET {x}:live"), "\"v\"");
    }
}
