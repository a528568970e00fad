//! Clients move from worker to worker, with DEBUG MOVE-CLIENTS all the time: no reply is lost,
//! repeated or given to somebody else. (When heavy ones move by themselves is tested with counted
//! time, in `crates/server/tests/sim/moving.rs`: who is busy depends on the machine.)

use sheafdb_tests::in_time::until;
use sheafdb_tests::rng::Rng;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::stress::{SetAtEnd, seed};
use sheafdb_tests::wire::{Value, Wire, encode};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Batches that each client sends while all move.
const ROUNDS: usize = 150;
/// Clients that send them.
const CLIENTS: usize = 8;
/// So often somebody must have moved meanwhile: less than a percent of what happens.
const MOVES_MIN: u64 = 100;

fn start(threads: usize, more: &[&str]) -> ServerProcess {
    let threads = threads.to_string();
    let args = ["--threads", &threads, "--enable-debug-command", "yes"];
    ServerProcess::start(&Binary::under_test(), &[&args, more].concat())
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn info(wire: &mut Wire, section: &str, name: &str) -> u64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("INFO is text");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
}

fn moved(wire: &mut Wire) -> u64 {
    info(wire, "stats", "moved_clients")
}

/// A client that checks every reply. Sometimes it connects anew.
fn run_client(server: &ServerProcess, number: usize, mut rng: Rng) {
    let (counter, list) = (format!("counter{number}"), format!("list{number}"));
    let mut wire = server.connect();
    let mut count = 0;
    for round in 0..ROUNDS {
        let mut requests = Vec::new();
        let mut expected = Vec::new();
        for n in 0..=rng.below(60) {
            let unique = format!("{number}.{round}.{n}");
            let mut say = |args: &[&str], reply: Value| {
                requests.extend(encode(args));
                expected.push(reply);
            };
            match rng.below(20) {
                0 => {
                    say(&["MULTI"], ok());
                    say(&["INCR", &counter], Value::Simple(b"QUEUED".to_vec()));
                    say(&["ECHO", &unique], Value::Simple(b"QUEUED".to_vec()));
                    count += 1;
                    let replies = [Value::Int(count), Value::Bulk(unique.clone().into())];
                    say(&["EXEC"], Value::Array(replies.into()));
                }
                1 => {
                    say(&["RPUSH", &list, &unique], Value::Int(1));
                    let served = [Value::Bulk(list.clone().into()), Value::Bulk(unique.into())];
                    say(&["BLPOP", &list, "0"], Value::Array(served.into()));
                }
                2 => {
                    let len = 1 + rng.below(200_000);
                    say(&["SET", &list, &"x".repeat(len)], ok());
                    say(&["STRLEN", &list], Value::Int(len as i64));
                    say(&["DEL", &list], Value::Int(1));
                }
                3 => {
                    say(&["WATCH", &counter], ok());
                    say(&["UNWATCH"], ok());
                }
                4..12 => {
                    count += 1;
                    say(&["INCR", &counter], Value::Int(count));
                }
                _ => say(&["ECHO", &unique], Value::Bulk(unique.clone().into())),
            }
        }
        // In parts, so that requests are cut anywhere.
        let mut rest = &requests[..];
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(1 + rng.below(300_000)));
            wire.send(part).unwrap_or_else(|e| panic!("client {number}: {e}"));
            rest = behind;
        }
        for (at, reply) in expected.into_iter().enumerate() {
            let got = wire.receive().unwrap_or_else(|e| panic!("client {number}: {e}"));
            assert_eq!(got, reply, "client {number}, round {round}, reply {at}");
        }
        if rng.chance(5) {
            wire = server.connect();
        }
    }
}

/// A client that is killed again and again; another one kills it.
fn run_victim(server: &ServerProcess, id: &AtomicU64, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        let mut wire = server.connect();
        let Ok(Value::Int(mine)) = wire.command(&["CLIENT", "ID"]) else { continue };
        id.store(mine as u64, Relaxed);
        let requests = encode(&["ECHO", "still here"]).repeat(100);
        while wire.send(&requests).is_ok() {
            let all = (0..100).map(|_| wire.receive()).take_while(Result::is_ok).count();
            if all < 100 || is_over.load(Relaxed) {
                break;
            }
        }
    }
}

/// Lists and kills, and counts who was killed.
fn run_killer(server: &ServerProcess, id: &AtomicU64, killed: &AtomicUsize, is_over: &AtomicBool) {
    let mut wire = server.connect();
    while !is_over.load(Relaxed) {
        let victim = id.swap(0, Relaxed);
        if victim > 0 {
            let count = ask(&mut wire, &format!("CLIENT KILL ID {victim}"));
            killed.fetch_add(usize::from(count == Value::Int(1)), Relaxed);
            until("it is gone", || {
                let shown = ask(&mut wire, &format!("CLIENT LIST ID {victim}"));
                shown == Value::Bulk(Vec::new())
            });
        }
        let Value::Bulk(list) = ask(&mut wire, "CLIENT LIST") else { panic!("a text") };
        let list = String::from_utf8(list).expect("text");
        let mut ids: Vec<&str> = list.lines().filter_map(|line| line.split(' ').next()).collect();
        let shown = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), shown, "somebody is listed twice: {list}");
    }
}

fn all_move(threads: usize) {
    let server = start(threads, &[]);
    let mut admin = server.connect();
    assert_eq!(ask(&mut admin, "WATCH nothing"), ok()); // so that it does not move itself
    assert_eq!(ask(&mut admin, "DEBUG MOVE-CLIENTS 1"), ok());
    let (id, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let killed = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (server, id, killed, is_over) = (&server, &id, &killed, &is_over);
        scope.spawn(move || run_victim(server, id, is_over));
        let end = SetAtEnd(is_over);
        scope.spawn(move || run_killer(server, id, killed, is_over));
        let clients = (0..CLIENTS).map(|number| {
            let rng = Rng::new(seed() + number as u64);
            scope.spawn(move || run_client(server, number, rng))
        });
        let clients: Vec<_> = clients.collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        for client in ended {
            client.expect("each reply is right");
        }
        until("somebody is killed", || killed.load(Relaxed) > 0);
        drop(end);
    });
    let moves = moved(&mut admin);
    assert!(moves > MOVES_MIN, "{moves} moves");
    assert_eq!(ask(&mut admin, "DEBUG MOVE-CLIENTS 0"), ok());
    until("all are gone", || info(&mut admin, "clients", "connected_clients") == 1);
}

#[test]
fn everyone_moves_all_the_time_between_two_workers() {
    all_move(2);
}

#[test]
fn everyone_moves_all_the_time_between_four_workers() {
    all_move(4);
}

/// Both ends of a Unix socket, with requests that are cut anywhere.
#[test]
fn clients_of_a_unix_socket_move_too() {
    let dir = std::env::temp_dir().join(format!("sheafdb-moving-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("socket");
    let server = start(2, &["--unixsocket", path.to_str().expect("text")]);
    let mut admin = server.connect();
    assert_eq!(ask(&mut admin, "WATCH nothing"), ok()); // so that it does not move itself
    assert_eq!(ask(&mut admin, "DEBUG MOVE-CLIENTS 1"), ok());
    let mut stream = UnixStream::connect(&path).expect("it listens");
    let mut rng = Rng::new(seed());
    let mut sent = 0_usize;
    while moved(&mut admin) < MOVES_MIN {
        let texts: Vec<String> = (0..50).map(|n| format!("{:08}", sent + n)).collect();
        let requests: Vec<u8> = texts.iter().flat_map(|text| encode(&["ECHO", text])).collect();
        let (first, second) = requests.split_at(rng.below(requests.len()));
        stream.write_all(first).expect("it takes requests");
        ask(&mut admin, "PING");
        stream.write_all(second).expect("it takes requests");
        let replies: Vec<String> = texts.iter().map(|text| format!("$8\r\n{text}\r\n")).collect();
        let expected = replies.concat();
        let mut got = vec![0; expected.len()];
        stream.read_exact(&mut got).expect("all replies");
        assert_eq!(String::from_utf8_lossy(&got), expected);
        sent += 50;
    }
    drop(server);
    _ = std::fs::remove_dir_all(dir);
}
