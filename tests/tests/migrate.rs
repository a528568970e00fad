//! MIGRATE between our server and a real one, in both directions, and to faulty targets.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::in_time::in_time;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{PATIENCE, Value, Wire, encode};

const TIMEOUT_MS: u64 = 1_500;

fn ours(extra: &[&str]) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), extra)
}

fn theirs(extra: &[&str]) -> ServerProcess {
    ServerProcess::start(&Binary::redis(), extra)
}

/// Splits at spaces; `''` is an empty word.
fn words(text: &str) -> Vec<&str> {
    text.split(' ').map(|word| if word == "''" { "" } else { word }).collect()
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn info(wire: &mut Wire, section: &str) -> String {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    String::from_utf8(text).expect("INFO is text")
}

fn send(wire: &mut Wire, text: &str) {
    wire.send(&encode(&words(text))).expect("it takes requests");
}

/// A reply in one line.
fn one_line(value: &Value) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Value::Simple(bytes) => format!("+{}", text(bytes)),
        Value::Error(bytes) => format!("-{}", text(bytes)),
        Value::Bulk(bytes) => text(bytes),
        other => format!("{other:?}"),
    }
}

fn migrate(wire: &mut Wire, to: SocketAddr, rest: &str) -> String {
    one_line(&ask(wire, &format!("MIGRATE 127.0.0.1 {} {rest}", to.port())))
}

fn exists(wire: &mut Wire, keys: &str) -> Value {
    ask(wire, &format!("EXISTS {keys}"))
}

/// One key of each type, small and big, with and without a time to live.
fn fill(wire: &mut Wire) -> Vec<String> {
    let mut keys = Vec::new();
    for (size, count) in [("small", 5), ("big", 20_000)] {
        for kind in ["l", "s", "i", "z", "h"] {
            let key = format!("{size}:{kind}");
            for from in (0..count).step_by(500) {
                let mut request = match kind {
                    "l" => vec!["RPUSH".into(), key.clone()],
                    "s" | "i" => vec!["SADD".into(), key.clone()],
                    "z" => vec!["ZADD".into(), key.clone()],
                    _ => vec!["HSET".into(), key.clone()],
                };
                for n in from..(from + 500).min(count) {
                    match kind {
                        "i" => request.push(n.to_string()),
                        "z" => request.extend([format!("{n}.5"), format!("m{n}")]),
                        "h" => request.extend([format!("f{n}"), format!("v{n}")]),
                        _ => request.push(format!("e{n}")),
                    }
                }
                wire.command(&request).expect("it takes requests");
            }
            keys.push(key);
        }
    }
    for (key, value) in [("text", "t".repeat(3_000_000)), ("int", "42".into())] {
        wire.command(&["SET", key, &value, "PX", "5000000"]).expect("it takes requests");
        keys.push(key.into());
    }
    keys
}

/// The content of a key, in an order which does not depend on the server.
fn content(wire: &mut Wire, key: &str) -> Vec<Value> {
    let kind = one_line(&ask(wire, &format!("TYPE {key}")));
    let read = match kind.as_str() {
        "+string" => format!("GET {key}"),
        "+list" => format!("LRANGE {key} 0 -1"),
        "+set" => format!("SMEMBERS {key}"),
        "+zset" => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        "+hash" => format!("HGETALL {key}"),
        other => panic!("{key} is {other}"),
    };
    let mut parts = match ask(wire, &read) {
        Value::Array(parts) => parts,
        one => vec![one],
    };
    match kind.as_str() {
        "+set" => parts.sort_by_key(one_line),
        "+hash" => {
            let mut pairs: Vec<_> = parts.chunks(2).map(<[Value]>::to_vec).collect();
            pairs.sort_by_key(|pair| one_line(&pair[0]));
            parts = pairs.concat();
        }
        _ => {}
    }
    parts
}

/// In both directions nothing is lost and nothing remains at the source.
#[test]
fn every_type_migrates_to_a_real_server_and_back() {
    for threads in ["1", "3"] {
        let (ours, theirs) = (ours(&["--threads", threads]), theirs(&[]));
        let (mut here, mut there) = (ours.connect(), theirs.connect());
        let keys = fill(&mut here);
        let before: Vec<_> = keys.iter().map(|key| content(&mut here, key)).collect();
        let all = keys.join(" ");
        let reply = migrate(&mut here, theirs.addr, &format!("'' 2 5000 KEYS {all} nothing"));
        assert_eq!(reply, "+OK");
        assert_eq!(exists(&mut here, &all), Value::Int(0));
        assert_eq!(ask(&mut there, "DBSIZE"), Value::Int(0));
        ask(&mut there, "SELECT 2");
        for (key, before) in keys.iter().zip(&before) {
            assert_eq!(&content(&mut there, key), before, "{key}");
        }
        let Value::Int(ttl) = ask(&mut there, "PTTL text") else { panic!("a number") };
        assert!((4_000_000..=5_000_000).contains(&ttl), "{ttl}");
        for key in &keys {
            assert_eq!(migrate(&mut there, ours.addr, &format!("{key} 1 5000")), "+OK", "{key}");
        }
        assert_eq!(ask(&mut there, "DBSIZE"), Value::Int(0));
        ask(&mut here, "SELECT 1");
        for (key, before) in keys.iter().zip(&before) {
            assert_eq!(&content(&mut here, key), before, "{key}");
        }
        assert_eq!(migrate(&mut here, theirs.addr, "nothing 0 100"), "+NOKEY");
    }
}

/// Equal requests to our server and to a real one, with equal targets: equal replies and equal
/// remaining keys.
#[test]
fn replies_and_remaining_keys_match_a_real_server() {
    let (open, locked) = (theirs(&[]), theirs(&["--requirepass", "secret"]));
    let unused = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("it listens").port()
    };
    let (open_port, locked_port) = (open.addr.port(), locked.addr.port());
    let tries = [
        format!("MIGRATE 127.0.0.1 {open_port} a 0 1000"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 1000 COPY"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 KEYS a b c"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 KEYS b a c b"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 copy replace keys a b c zz"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 REPLACE KEYS a b c zz"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 AUTH x KEYS a c"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 99 1000 REPLACE KEYS a c"),
        format!("MIGRATE 127.0.0.1 {open_port} a -1 1000 REPLACE"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 -1 REPLACE"),
        format!("MIGRATE 127.0.0.1 {open_port} x 0 1000 KEYS a"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000 KEYS"),
        format!("MIGRATE 127.0.0.1 {open_port} '' 0 1000"),
        format!("MIGRATE 127.0.0.1 {open_port} a x 1000"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 x"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 1000 FOO"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 1000 AUTH"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0 1000 AUTH2 u"),
        format!("MIGRATE 127.0.0.1 {open_port} a 0"),
        format!("MIGRATE 127.0.0.1 {unused} a 0 300"),
        "MIGRATE 127.0.0.1 port a 0 300".into(),
        "MIGRATE name.invalid 6379 a 0 300".into(),
        format!("MIGRATE 127.0.0.1 {locked_port} a 0 1000"),
        format!("MIGRATE 127.0.0.1 {locked_port} a 0 1000 AUTH wrong"),
        format!("MIGRATE 127.0.0.1 {locked_port} a 0 1000 AUTH2 who secret"),
        format!("MIGRATE 127.0.0.1 {locked_port} a 0 1000 AUTH2 default secret COPY"),
        format!("MIGRATE 127.0.0.1 {locked_port} b 0 1000 AUTH wrong AUTH secret"),
    ];
    let (ours, theirs) = (ours(&["--threads", "2"]), theirs(&[]));
    let mut open_wire = open.connect();
    let mut locked_wire = locked.connect();
    ask(&mut locked_wire, "AUTH secret");
    let mut run = |source: &ServerProcess, request: &str| {
        let mut wire = source.connect();
        for target in [&mut open_wire, &mut locked_wire] {
            ask(target, "FLUSHALL");
        }
        ask(&mut open_wire, "SET b other");
        ask(&mut wire, "MSET a 1 b 2 c 3");
        let reply = one_line(&ask(&mut wire, request));
        let left = ["a", "b", "c"].map(|key| one_line(&ask(&mut wire, &format!("GET {key}"))));
        let sent = ["a", "b", "c"].map(|key| one_line(&ask(&mut open_wire, &format!("GET {key}"))));
        let locked = one_line(&ask(&mut locked_wire, "DBSIZE"));
        (reply, left, sent, locked)
    };
    for request in &tries {
        assert_eq!(run(&ours, request), run(&theirs, request), "{request}");
    }
}

/// A target which accepts requests and sends only `answer`.
fn silent_target(answer: &'static [u8]) -> SocketAddr {
    silent_target_with_reports(answer).0
}

/// The same; it reports each connection which has received bytes. The keys are frozen before
/// MIGRATE connects, so from then on the transfer is in progress.
fn silent_target_with_reports(answer: &'static [u8]) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("it listens");
    let (begun, reports) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let begun = begun.clone();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer);
                let _ = begun.send(());
                let _ = std::io::Write::write_all(&mut stream, answer);
                while stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
            });
        }
    });
    (addr, reports)
}

/// While MIGRATE waits for its target, all commands run except those which change its keys. These
/// wait, and see the key as MIGRATE leaves it.
#[test]
fn a_hanging_target_blocks_only_writes_to_the_migrated_keys() {
    for threads in ["1", "2", "4"] {
        in_time(|factor| other_commands_run(threads, TIMEOUT_MS * u64::from(factor)));
    }
}

/// Whether the other commands run before a MIGRATE with this timeout has ended.
fn other_commands_run(threads: &str, timeout_ms: u64) -> bool {
    let (target, begun) = silent_target_with_reports(b"");
    let server = ours(&["--threads", threads]);
    let mut wires: Vec<Wire> = (0..8).map(|_| server.connect()).collect();
    let [slow, quick, writer, flusher, trader, waiter, pusher, queued] = &mut wires[..] else {
        panic!("eight of them");
    };
    ask(quick, "MSET a 1 b 2 other 3");
    let began = Instant::now();
    send(slow, &format!("MIGRATE 127.0.0.1 {} a 0 {timeout_ms}", target.port()));
    begun.recv_timeout(PATIENCE).expect("it writes to its target");
    send(waiter, "BLMOVE list a LEFT LEFT 0");
    send(writer, "APPEND a x");
    send(flusher, "FLUSHDB");
    send(queued, &format!("MIGRATE 127.0.0.1 {} a 0 {timeout_ms}", target.port()));
    for text in ["MULTI", "SET other 4", "INCR a"] {
        ask(trader, text);
    }
    send(trader, "EXEC");
    // Pipelined with other commands, on the short path and off it.
    for text in ["GET a", "SET b 3", "INCR b", "MSET b 5 other 6", "EXISTS a b"] {
        ask(quick, text);
    }
    assert_eq!(one_line(&ask(quick, "GET a")), "1");
    assert_eq!(one_line(&ask(quick, "GET b")), "5");
    let mut hears = |wire: &mut Wire| wire.has_reply(Duration::from_millis(50)).expect("open");
    let heard = [&mut *writer, &mut *flusher, &mut *trader, &mut *waiter].map(&mut hears);
    if began.elapsed() >= Duration::from_millis(timeout_ms) {
        return false; // perhaps MIGRATE has ended
    }
    assert_eq!(heard, [false; 4], "who changes the key waits");
    assert_eq!(one_line(&ask(pusher, "DEL nothing")), "Int(0)");
    let reply = one_line(&slow.receive().expect("a reply"));
    assert_eq!(reply, "-IOERR error or timeout reading to target instance");
    assert!(began.elapsed() >= Duration::from_millis(timeout_ms), "it waits its time");
    for wire in [writer, flusher, trader] {
        wire.receive().expect("they go on afterwards");
    }
    let second = one_line(&queued.receive().expect("it has its turn"));
    assert!(second == "+NOKEY" || second.starts_with("-IOERR"), "{second}");
    let Value::Bulk(stats) = ask(quick, "INFO commandstats") else { panic!("a text") };
    assert!(String::from_utf8_lossy(&stats).contains("cmdstat_migrate:calls=2"));
    true
}

/// A push waits if its waiter would move the element to a key which is being migrated. Afterwards
/// push and move are executed together.
#[test]
fn a_blocked_move_to_a_migrating_key_is_served_after_it() {
    for threads in ["1", "2"] {
        in_time(|factor| move_is_served_after(threads, TIMEOUT_MS * u64::from(factor)));
    }
}

/// Whether the waiter is served after a MIGRATE with this timeout.
fn move_is_served_after(threads: &str, timeout_ms: u64) -> bool {
    let (server, theirs) = (ours(&["--threads", threads]), theirs(&[]));
    let (target, begun) = silent_target_with_reports(b"+OK\r\n");
    let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
    let [slow, waiter, pusher, quick] = &mut wires[..] else { panic!("four of them") };
    ask(quick, "RPUSH to one");
    send(waiter, "BLMOVE from to LEFT RIGHT 0");
    let began = Instant::now();
    while !info(quick, "clients").contains("blocked_clients:1\r\n") {
        assert!(began.elapsed() < PATIENCE, "BLMOVE blocks");
        thread::sleep(Duration::from_millis(5));
    }
    let began = Instant::now();
    send(slow, &format!("MIGRATE 127.0.0.1 {} to 0 {timeout_ms}", target.port()));
    begun.recv_timeout(PATIENCE).expect("it writes to its target");
    send(pusher, "RPUSH from two");
    let mut hears = |wire: &mut Wire| wire.has_reply(Duration::from_millis(50)).expect("open");
    let there = [ask(quick, "LLEN to"), ask(quick, "EXISTS from")];
    let heard = [&mut *pusher, &mut *waiter].map(&mut hears);
    if began.elapsed() >= Duration::from_millis(timeout_ms) {
        return false; // perhaps MIGRATE has ended
    }
    assert_eq!((heard, there), ([false; 2], [Value::Int(1), Value::Int(0)]));
    assert!(one_line(&slow.receive().expect("a reply")).starts_with("-IOERR"));
    assert_eq!(pusher.receive().expect("the connection is open"), Value::Int(1));
    assert_eq!(one_line(&waiter.receive().expect("it is served")), "two");
    assert_eq!(ask(quick, "LLEN to"), Value::Int(2));
    // The keys which the target accepted are removed; keys written meanwhile are not lost.
    assert_eq!(migrate(quick, theirs.addr, "to 0 1000"), "+OK");
    assert_eq!(ask(quick, "EXISTS to from"), Value::Int(0));
    true
}

/// Keys which the target accepted before it stopped replying are removed here, the others stay,
/// also if the client disconnects.
#[test]
fn a_target_which_fails_half_way_and_a_client_which_disconnects() {
    let target = silent_target(b"+OK\r\n+OK\r\n");
    let server = ours(&["--threads", "2"]);
    let mut wire = server.connect();
    ask(&mut wire, "MSET a 1 b 2 c 3");
    let reply = migrate(&mut wire, target, "'' 0 300 KEYS a b c");
    assert_eq!(reply, "-IOERR error or timeout reading to target instance");
    assert_eq!(exists(&mut wire, "a"), Value::Int(0));
    assert_eq!(exists(&mut wire, "b c"), Value::Int(2));
    let mut leaver = server.connect();
    send(&mut leaver, &format!("MIGRATE 127.0.0.1 {} '' 0 300 KEYS b c", target.port()));
    thread::sleep(Duration::from_millis(100));
    drop(leaver);
    assert_eq!(one_line(&ask(&mut wire, "SET b new")), "+OK");
    assert_eq!(exists(&mut wire, "b c"), Value::Int(2), "b is new, c was not taken");
}

/// More MIGRATEs at a time than threads: each of them is executed.
#[test]
fn more_concurrent_migrates_than_threads() {
    let (server, theirs) = (ours(&["--threads", "2"]), theirs(&[]));
    let mut wires: Vec<Wire> = (0..50).map(|_| server.connect()).collect();
    for (n, wire) in wires.iter_mut().enumerate() {
        ask(wire, &format!("RPUSH key:{n} a b c"));
    }
    for (n, wire) in wires.iter_mut().enumerate() {
        let port = theirs.addr.port();
        send(wire, &format!("MIGRATE 127.0.0.1 {port} key:{n} 0 5000"));
        send(wire, &format!("RPUSH key:{n} d"));
    }
    for wire in &mut wires {
        assert_eq!(one_line(&wire.receive().expect("a reply")), "+OK");
        assert_eq!(wire.receive().expect("a reply"), Value::Int(1));
    }
    let mut there = theirs.connect();
    assert_eq!(ask(&mut there, "DBSIZE"), Value::Int(50));
    assert_eq!(ask(&mut there, "LLEN key:49"), Value::Int(3));
}

/// A target that accepts connections and never replies.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

/// FLUSHALL must run although MIGRATEs overlap: new ones wait for it, so that it does not depend on
/// a moment without frozen slots.
#[test]
fn flushall_runs_despite_overlapping_migrates() {
    const EACH: usize = 40;
    for threads in ["1", "2"] {
        let (server, target) = (ours(&["--threads", threads]), silent());
        let port = target.local_addr().expect("it listens").port();
        let (mut wires, mut flusher) = ([server.connect(), server.connect()], server.connect());
        for (n, wire) in wires.iter_mut().enumerate() {
            ask(wire, &format!("SET key:{n} v"));
        }
        for (n, wire) in wires.iter_mut().enumerate() {
            for _ in 0..EACH {
                send(wire, &format!("MIGRATE 127.0.0.1 {port} key:{n} 0 100"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(one_line(&ask(&mut flusher, "FLUSHALL")), "+OK");
        for wire in &mut wires {
            let replies: Vec<String> =
                (0..EACH).map(|_| one_line(&wire.receive().expect("a reply"))).collect();
            assert_eq!(replies[EACH - 1], "+NOKEY", "FLUSHALL ran before the last of them");
        }
        assert_eq!(one_line(&ask(&mut flusher, "FLUSHALL")), "+OK");
    }
}

/// Its file descriptor was kept until the thaw, which depends on the target.
#[test]
fn a_half_closed_client_at_a_frozen_slot_is_closed() {
    for (threads, held) in [("1", "SET k new"), ("2", "SET k new"), ("2", "FLUSHALL")] {
        let (server, target) = (ours(&["--threads", threads]), silent());
        let port = target.local_addr().expect("it listens").port();
        let (mut slow, mut leaver) = (server.connect(), server.connect());
        let mut wire = server.connect();
        ask(&mut wire, "SET k v");
        send(&mut slow, &format!("MIGRATE 127.0.0.1 {port} k 0 1000000"));
        // Before MIGRATE has begun the key can be changed.
        let mut probe = server.connect();
        loop {
            send(&mut probe, "SET k v");
            if !probe.has_reply(Duration::from_millis(100)).expect("it is open") {
                break;
            }
            probe.receive().expect("a reply");
        }
        send(&mut leaver, held);
        leaver.stream().shutdown(std::net::Shutdown::Write).expect("open");
        let ended = leaver.receive().expect_err("it is closed").kind();
        assert_eq!(ended, std::io::ErrorKind::UnexpectedEof);
        assert!(
            !slow.has_reply(Duration::from_millis(1)).expect("it is open"),
            "long before the thaw"
        );
        assert_eq!(one_line(&ask(&mut wire, "GET k")), "v");
    }
}
