//! Clients that track and never read, beside very many changes: each is closed at its limit, the
//! others are told of everything, and what is remembered stays bounded.

use std::collections::BTreeMap;

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::wire::{Value, Wire, encode};

use super::{LEFT_BYTES_MAX, ask, ok, start, used};

/// More than twice of what fills the buffers of both ends and the limit.
const ROUNDS: usize = 120;
/// Keys that are read and changed together.
const TOGETHER: usize = 100;
/// `tracking-table-max-keys`: some are forgotten before they change.
const REMEMBERED_MAX: i64 = 60;
/// Names of so many bytes fill the output of a client that does not read.
const NAME_BYTES: usize = 2_000;
/// `client-output-buffer-limit` of all classes.
const LIMIT: &str = "1mb";

fn names(round: usize) -> Vec<String> {
    // (Few different ones, so that memory does not grow by keys.)
    let one = |n: usize| format!("k{}:{n:0>NAME_BYTES$}", round % 4);
    (0..TOGETHER).map(one).collect()
}

/// Sends one command with these keys for each of them, and takes the replies.
fn for_each(wire: &mut Wire, names: &[String], request: impl Fn(&str) -> Vec<u8>) {
    let all: Vec<u8> = names.iter().flat_map(|name| request(name)).collect();
    wire.send(&all).expect("it takes requests");
    for _ in names {
        let reply = wire.receive().expect("a reply");
        assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
    }
}

/// Receives until it was told of so many keys; how often of each.
fn told_of(wire: &mut Wire, count: usize) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    let mut all = 0;
    while all < count {
        let value = wire.receive().expect("it is told");
        let (Value::Push(parts) | Value::Array(parts)) = &value else { panic!("{value:?}") };
        let Some(Value::Array(keys)) = parts.last() else { panic!("{value:?}") };
        for key in keys {
            let Value::Bulk(key) = key else { panic!("{value:?}") };
            *told.entry(String::from_utf8_lossy(key).into_owned()).or_insert(0) += 1;
            all += 1;
        }
    }
    told
}

fn resp3(wire: &mut Wire) {
    ask(wire, "HELLO 3");
}

fn id(wire: &mut Wire) -> i64 {
    let Value::Int(id) = ask(wire, "CLIENT ID") else { panic!("a number") };
    id
}

/// How the client that never reads is told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lazy {
    /// Of all keys with a prefix.
    Broadcast,
    /// Of what another client has read, in the third protocol.
    Redirected,
    /// The same, as a subscriber in the second protocol.
    Subscribed,
}

/// One client never reads what it is told; others cache the same keys.
#[test]
fn a_client_that_tracks_and_never_reads_is_closed_at_its_limit() {
    for threads in [1, 2] {
        for lazy in [Lazy::Broadcast, Lazy::Redirected, Lazy::Subscribed] {
            never_reads(threads, lazy);
        }
    }
}

fn never_reads(threads: usize, how: Lazy) {
    let limits = [("normal", LIMIT), ("pubsub", LIMIT)].map(|(class, limit)| {
        ["--client-output-buffer-limit".to_owned(), format!("{class} {limit} 0 0")]
    });
    let most = REMEMBERED_MAX.to_string();
    let settings: Vec<&str> = limits.iter().flatten().map(String::as_str).collect();
    let server = start(threads, &[&settings[..], &["--tracking-table-max-keys", &most]].concat());
    let mut control = server.connect();
    let [mut writer, mut reader, mut broadcast, mut lazy, mut reads_for_lazy] =
        [(); 5].map(|()| server.connect());
    for round in 0..4 {
        for_each(&mut writer, &names(round), |name| encode(&["SET", name, "v"]));
    }
    let before = used(&mut control);
    resp3(&mut reader);
    resp3(&mut broadcast);
    ok(&mut reader, "CLIENT TRACKING ON");
    ok(&mut broadcast, "CLIENT TRACKING ON BCAST PREFIX k PREFIX none");
    let lazy_id = id(&mut lazy);
    if how == Lazy::Subscribed {
        ask(&mut lazy, "SUBSCRIBE __redis__:invalidate");
    } else {
        resp3(&mut lazy);
    }
    if how == Lazy::Broadcast {
        ok(&mut lazy, "CLIENT TRACKING ON BCAST");
    } else {
        ok(&mut reads_for_lazy, &format!("CLIENT TRACKING ON REDIRECT {lazy_id}"));
    }
    let is_there = format!("CLIENT LIST ID {lazy_id}");
    let (mut closed_after, mut most) = (None, 0);
    for round in 0..ROUNDS {
        let names = names(round);
        for_each(&mut reads_for_lazy, &names, |name| encode(&["GET", name]));
        read_and_be_told(&mut reader, &mut writer, &names);
        let all = told_of(&mut broadcast, TOGETHER);
        assert!(names.iter().eq(all.keys()) && all.values().all(|n| *n == 1), "round {round}");
        let remembered = figure(&mut control, "stats", "tracking_total_keys");
        assert!(remembered <= REMEMBERED_MAX, "round {round}: {remembered} are remembered");
        most = most.max(used(&mut control) - before);
        let Value::Bulk(listed) = ask(&mut control, &is_there) else { panic!("a text") };
        if listed.is_empty() {
            closed_after = closed_after.or(Some(round));
        }
    }
    println!("{how:?} on {threads}: closed in round {closed_after:?}, {most} bytes more at most");
    assert!(closed_after.is_some(), "{how:?}: it is not closed in {ROUNDS} rounds");
    assert!(server.log().contains("client-output-buffer-limit"), "{}", server.log());
    assert!(most < 16 << 20, "{most} bytes more in use");
    drop((lazy, reads_for_lazy, reader, broadcast));
    until("nobody tracks", || figure(&mut control, "clients", "tracking_clients") == 0);
    let left = ["mem_tracking", "mem_pubsub"].map(|name| figure(&mut control, "memory", name));
    assert_eq!(left, [0, 0]);
    until("memory is back", || used(&mut control) - before < LEFT_BYTES_MAX);
}

/// A client reads keys and is told of each once: when it changes, or when it is forgotten before.
fn read_and_be_told(reader: &mut Wire, writer: &mut Wire, names: &[String]) {
    // The replies and what it is told while it reads.
    let all: Vec<u8> = names.iter().flat_map(|name| encode(&["GET", name])).collect();
    reader.send(&all).expect("it takes requests");
    let (mut replies, mut told) = (0, BTreeMap::new());
    while replies < names.len() {
        match reader.receive().expect("a reply, or what it is told") {
            Value::Bulk(value) => {
                assert_eq!(value, b"v");
                replies += 1;
            }
            Value::Push(parts) => {
                let Some(Value::Array(keys)) = parts.last() else { panic!("{parts:?}") };
                for key in keys {
                    let Value::Bulk(key) = key else { panic!("{parts:?}") };
                    *told.entry(String::from_utf8_lossy(key).into_owned()).or_insert(0) += 1;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    for_each(writer, names, |name| encode(&["SET", name, "v"]));
    let so_far: usize = told.values().sum();
    for (name, count) in told_of(reader, names.len() - so_far) {
        *told.entry(name).or_insert(0) += count;
    }
    assert!(names.iter().eq(told.keys()), "all of them");
    assert!(told.values().all(|count| *count == 1), "each once");
}
