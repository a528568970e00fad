//! `maxmemory` also bounds the memory of clients: queues of MULTI, incomplete requests, unread
//! replies. It is counted until it is freed.

use std::time::Duration;

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Maximum number of attempts.
const PATIENCE: usize = 2_000;
const LIMIT_BYTES: usize = 64 << 20;
/// A value much smaller than the limit.
const VALUE_BYTES: usize = 1 << 20;

fn start(threads: &str) -> ServerProcess {
    ServerProcess::start(&Binary::under_test(), &["--threads", threads, "--maxmemory", "64mb"])
}

fn ask(wire: &mut Wire, words: &[&str]) -> Value {
    wire.command(words).unwrap_or_else(|e| panic!("{}: {e}", words[0]))
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"OOM "))
}

/// Waits until a write of another client is refused, or accepted again.
fn await_refusal(wire: &mut Wire, wanted: bool) {
    for _ in 0..PATIENCE {
        if is_refused(&ask(wire, &["SET", "small", "v"])) == wanted {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("writes are {} refused", if wanted { "not" } else { "still" });
}

/// Bytes that are held for clients.
fn clients(wire: &mut Wire) -> usize {
    let Value::Bulk(info) = ask(wire, &["INFO", "memory"]) else { panic!("a text") };
    let info = String::from_utf8(info).expect("text");
    let line = info.lines().find_map(|line| line.strip_prefix("mem_clients_normal:"));
    line.expect("a line").parse().expect("a number")
}

/// Queues ever smaller values until the smallest is refused.
fn fill(wire: &mut Wire) {
    for bytes in [VALUE_BYTES, 1 << 10, 1] {
        let value = "v".repeat(bytes);
        let queued = (0..PATIENCE).take_while(|_| !is_refused(&ask(wire, &["ECHO", &value])));
        assert!(queued.count() < PATIENCE, "{bytes} bytes are queued without limit");
    }
}

/// A command is refused before the process holds much more than the limit.
#[test]
fn a_queue_of_multi_stops_at_the_limit() {
    for threads in ["1", "2"] {
        let server = start(threads);
        let (wire, other) = (&mut server.connect(), &mut server.connect());
        let value = "v".repeat(VALUE_BYTES);
        ask(wire, &["MULTI"]);
        let most = LIMIT_BYTES / VALUE_BYTES + 1;
        let queued =
            (0..most).take_while(|_| !is_refused(&ask(wire, &["SET", "k", &value]))).count();
        assert!(queued < most && queued > most / 2, "{queued} of {most} were queued");
        // Smaller ones are accepted until not even the smallest fits.
        fill(wire);
        await_refusal(other, true);
        assert_eq!(ask(other, &["GET", "k"]), Value::NullBulk, "reads go on");
        let ended = ask(wire, &["EXEC"]);
        assert!(matches!(ended, Value::Error(_)), "{ended:?}");
        await_refusal(other, false);
        // DISCARD frees it, too.
        ask(wire, &["MULTI"]);
        fill(wire);
        await_refusal(other, true);
        assert_eq!(ask(wire, &["DISCARD"]), Value::Simple(b"OK".to_vec()));
        await_refusal(other, false);
    }
}

/// Another thread frees a long queue after EXEC. Until then it is counted once, not also as memory
/// of its client.
#[test]
fn an_executed_queue_is_counted_once() {
    let server = start("2");
    let (wire, other) = (&mut server.connect(), &mut server.connect());
    let value = "v".repeat(100 << 10);
    for _ in 0..5 {
        ask(wire, &["MULTI"]);
        for _ in 0..400 {
            assert_eq!(ask(wire, &["ECHO", &value]), Value::Simple(b"QUEUED".to_vec()));
        }
        ask(wire, &["DISCARD"]);
        let replies = (0..20).map(|_| ask(other, &["SET", "k", "v"]));
        assert_eq!(replies.filter(is_refused).count(), 0, "there is room for one queue");
    }
}

#[test]
fn a_request_in_parts_counts_until_its_client_is_gone() {
    for threads in ["1", "2"] {
        let server = start(threads);
        let (mut wire, other) = (server.connect(), &mut server.connect());
        wire.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n").expect("open");
        for _ in 0..=LIMIT_BYTES / VALUE_BYTES {
            wire.send(&vec![b'v'; VALUE_BYTES]).expect("open");
        }
        await_refusal(other, true);
        drop(wire);
        await_refusal(other, false);
    }
}

/// Results which a command builds in steps count before they are stored: many clients may build
/// concurrently.
#[test]
fn memory_of_unfinished_results_is_counted() {
    const MEMBERS: usize = 100_000;
    let server = ServerProcess::start(&Binary::under_test(), &["--threads", "1"]);
    let other = &mut server.connect();
    for from in (0..MEMBERS).step_by(1000) {
        let names: Vec<String> = (from..from + 1000).map(|n| format!("{n}:member")).collect();
        let words: Vec<&str> =
            ["SADD", "s"].into_iter().chain(names.iter().map(String::as_str)).collect();
        ask(other, &words);
    }
    let before = clients(other);
    for words in [
        &["SUNIONSTORE", "d", "s", "s"][..],
        &["ZUNIONSTORE", "d", "1", "s"],
        &["SORT", "s", "ALPHA", "STORE", "d"],
    ] {
        // Many of them, so that one is observed in progress however fast the server is.
        let mut waiting: Vec<Wire> = (0..6).map(|_| server.connect()).collect();
        for wire in &mut waiting {
            wire.send(&encode(words)).expect("open");
        }
        let mut most = 0;
        while clients(other) < before + VALUE_BYTES {
            most = most.max(clients(other));
            let is_over = waiting
                .iter_mut()
                .all(|wire| wire.has_reply(Duration::from_millis(1)).expect("an option"));
            assert!(!is_over, "{words:?}: {most} bytes of clients at most, {before} before");
        }
        for wire in &mut waiting {
            wire.receive().expect("answered");
        }
        drop(waiting);
        let mut tries = 0;
        while clients(other) >= before + VALUE_BYTES {
            tries += 1;
            assert!(tries < PATIENCE, "{words:?}: what was built still counts");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The names which a client sets count while it is connected.
#[test]
fn names_count_until_their_client_is_gone() {
    let long = "v".repeat(LIMIT_BYTES / 2);
    let server = start("1");
    let other = &mut server.connect();
    let says: [&[&str]; 3] = [
        &["CLIENT", "SETNAME", &long],
        &["CLIENT", "SETINFO", "LIB-NAME", &long],
        &["HELLO", "2", "SETNAME", &long],
    ];
    for (first, second) in [(0, 1), (1, 2), (2, 0)] {
        let (mut one, mut two) = (server.connect(), server.connect());
        ask(&mut one, says[first]);
        await_refusal(other, false);
        ask(&mut two, says[second]);
        await_refusal(other, true);
        ask(&mut two, &["RESET"]);
        let again = says[second] == says[1]; // RESET leaves it
        await_refusal(other, again);
        drop((one, two));
        await_refusal(other, false);
    }
}

/// Replies of EXEC, because they are made at once: a client which sends single requests and does
/// not read waits behind the first turn that leaves unread replies. Of small values, because these
/// are copied: replies with a large value share its memory.
#[test]
fn unread_replies_are_counted() {
    const KEYS: usize = 1 << 10;
    for threads in ["1", "2"] {
        let server = start(threads);
        let (mut wire, other) = (server.connect(), &mut server.connect());
        ask(other, &["SET", "k", &"v".repeat(VALUE_BYTES / KEYS)]);
        let mget = encode(&[&["MGET"][..], &["k"; KEYS]].concat());
        let mut requests = encode(&["MULTI"]);
        (0..2 * LIMIT_BYTES / VALUE_BYTES).for_each(|_| requests.extend(&mget));
        requests.extend(encode(&["EXEC"]));
        wire.send(&requests).expect("open");
        await_refusal(other, true);
        drop(wire);
        await_refusal(other, false);
    }
}

/// Replies with large values share the memory of these. They count for their client, and take no
/// room. (A write was refused until the next measurement of all memory, for a tenth of a second.)
#[test]
fn unread_replies_that_share_a_value_take_no_room() {
    let server = start("1");
    let (mut wire, other) = (server.connect(), &mut server.connect());
    ask(other, &["SET", "k", &"v".repeat(VALUE_BYTES)]);
    let mut requests = encode(&["MULTI"]);
    (0..2 * LIMIT_BYTES / VALUE_BYTES).for_each(|_| requests.extend(encode(&["GET", "k"])));
    requests.extend(encode(&["EXEC"]));
    wire.send(&requests).expect("open");
    for _ in 0..PATIENCE {
        if clients(other) > LIMIT_BYTES {
            // Longer than what passes between two measurements while nothing seems to be left.
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(ask(other, &["SET", "small", "v"]), Value::Simple(b"OK".to_vec()));
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("unread replies do not count for their client");
}
