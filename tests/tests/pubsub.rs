//! Publish and subscribe over several connections and workers: order, exact counts, nothing lost or
//! doubled between an answered SUBSCRIBE and an answered UNSUBSCRIBE, messages and changes in the
//! order of their publisher, slow and closed subscribers, many channels. (Random sequences beside
//! redis-server are the family `pubsub` of `differential`.)

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use sheafdb_tests::in_time::until;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::stress::SetAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};

/// How long a test waits for what must not come. (A busy machine may hide a defect so, but never
/// invents one.)
const UNSENT_WAIT: Duration = Duration::from_millis(20);

fn start(threads: usize, extra: &[&str]) -> ServerProcess {
    let threads = threads.to_string();
    ServerProcess::start(&Binary::under_test(), &[&["--threads", &threads], extra].concat())
}

/// Runs a test on one, two and four workers, and on two between which clients move all the time.
fn everywhere(test: impl Fn(&ServerProcess)) {
    for threads in [1, 2, 4] {
        test(&start(threads, &[]));
    }
    let server = start(2, &["--enable-debug-command", "yes"]);
    let mut wire = server.connect();
    assert_eq!(ask(&mut wire, "DEBUG MOVE-CLIENTS 1"), Value::Simple(b"OK".to_vec()));
    test(&server);
    until("clients have moved", || field(&mut wire, "stats", "moved_clients") > 0);
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn send(wire: &mut Wire, line: &str) {
    wire.send(&encode(&words(line))).expect("it takes requests");
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    wire.command(&words(line)).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn number(wire: &mut Wire, line: &str) -> i64 {
    match ask(wire, line) {
        Value::Int(n) => n,
        other => panic!("'{line}': {other:?}"),
    }
}

fn resp3(server: &ServerProcess) -> Wire {
    let mut wire = server.connect();
    ask(&mut wire, "HELLO 3");
    wire
}

/// The words of an array or a push.
fn parts(value: &Value) -> Option<Vec<String>> {
    let (Value::Array(items) | Value::Push(items)) = value else { return None };
    let word = |item: &Value| match item {
        Value::Bulk(text) => Some(String::from_utf8_lossy(text).into_owned()),
        Value::Int(n) => Some(n.to_string()),
        Value::Null | Value::NullBulk => Some("nil".into()),
        _ => None,
    };
    items.iter().map(word).collect()
}

/// The text of a message, whatever kind of subscription it came for.
fn message(value: &Value) -> Option<String> {
    let parts = parts(value)?;
    let is_message = ["message", "pmessage", "smessage"].contains(&parts.first()?.as_str());
    is_message.then(|| parts.last().expect("it has a text").clone())
}

fn next_message(wire: &mut Wire) -> String {
    let value = wire.receive().expect("a message");
    message(&value).unwrap_or_else(|| panic!("no message: {value:?}"))
}

const PUBLISHERS: usize = 3;
const CHANNELS: usize = 4;
const EACH: usize = 600;
const BATCH: usize = 50;

/// What each publisher sends, on several channels, arrives in its order at every subscriber, by
/// channel and by pattern, in both protocols; and each reply counts all of them.
#[test]
fn every_subscriber_receives_the_messages_of_a_publisher_in_order() {
    everywhere(|server| {
        let channels: Vec<String> = (0..CHANNELS).map(|n| format!("c{n}")).collect();
        let mut subscribers: Vec<Wire> =
            (0..8).map(|n| if n % 2 == 0 { server.connect() } else { resp3(server) }).collect();
        for (n, wire) in subscribers.iter_mut().enumerate() {
            if n < 4 {
                send(wire, &format!("SUBSCRIBE {}", channels.join(" ")));
                for _ in &channels {
                    drop(wire.receive().expect("confirmed"));
                }
            } else {
                ask(wire, "PSUBSCRIBE c*");
            }
        }
        let count = subscribers.len() as i64;
        std::thread::scope(|scope| {
            for publisher in 0..PUBLISHERS {
                let (channels, mut wire) = (&channels, server.connect());
                scope.spawn(move || {
                    for batch in 0..EACH / BATCH {
                        let mut requests = Vec::new();
                        for n in batch * BATCH..(batch + 1) * BATCH {
                            let (channel, text) =
                                (&channels[n % CHANNELS], format!("{publisher}:{n}"));
                            requests.extend(encode(&["PUBLISH", channel, &text]));
                        }
                        wire.send(&requests).expect("it takes requests");
                        for _ in 0..BATCH {
                            assert_eq!(wire.receive().expect("a reply"), Value::Int(count));
                        }
                    }
                });
            }
            for mut wire in subscribers {
                scope.spawn(move || {
                    let mut next = [0; PUBLISHERS];
                    for _ in 0..PUBLISHERS * EACH {
                        let text = next_message(&mut wire);
                        let (who, n) = text.split_once(':').expect("publisher:number");
                        let who: usize = who.parse().expect("a number");
                        assert_eq!(n, next[who].to_string(), "of publisher {who}");
                        next[who] += 1;
                    }
                    assert!(!wire.has_reply(UNSENT_WAIT).expect("open"), "nothing is doubled");
                });
            }
        });
    });
}

/// Clients subscribe and unsubscribe while others publish. A message reaches a client exactly if
/// its publisher counted it; none comes behind an answered UNSUBSCRIBE, none from before an
/// answered SUBSCRIBE.
#[test]
fn what_publishers_count_is_received_between_subscribe_and_unsubscribe() {
    const ROUNDS: usize = 150;
    everywhere(|server| {
        let (stop, counted, received) =
            (AtomicBool::new(false), AtomicI64::new(0), AtomicI64::new(0));
        // The last number of each publisher that was answered.
        let answered: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for publisher in 0..2 {
                let (stop, counted, answered) = (&stop, &counted, &answered);
                let mut wire = server.connect();
                scope.spawn(move || {
                    let mut n = 0;
                    while !stop.load(Ordering::Acquire) {
                        let requests: Vec<u8> = (n + 1..n + 9)
                            .flat_map(|n| encode(&["PUBLISH", "a", &format!("{publisher}:{n}")]))
                            .collect();
                        wire.send(&requests).expect("it takes requests");
                        for _ in 0..8 {
                            let Value::Int(count) = wire.receive().expect("a reply") else {
                                panic!("a number")
                            };
                            n += 1;
                            counted.fetch_add(count, Ordering::Relaxed);
                            answered[publisher].store(n, Ordering::Release);
                        }
                    }
                });
            }
            let _stop = SetAtEnd(&stop);
            std::thread::scope(|scope| {
                for client in 0..4 {
                    let (received, answered) = (&received, &answered);
                    let mut wire = if client % 2 == 0 { server.connect() } else { resp3(server) };
                    scope.spawn(move || {
                        let (on, off) = match client {
                            0 | 1 => ("SUBSCRIBE a", "UNSUBSCRIBE a"),
                            2 => ("PSUBSCRIBE a*", "PUNSUBSCRIBE a*"),
                            _ => ("SUBSCRIBE a", "UNSUBSCRIBE"),
                        };
                        let mut last = [0; 2];
                        for _ in 0..ROUNDS {
                            let before: Vec<u64> =
                                answered.iter().map(|n| n.load(Ordering::Acquire)).collect();
                            ask(&mut wire, on);
                            let mut take = |value: &Value| {
                                let Some(text) = message(value) else { return false };
                                let (who, n) = text.split_once(':').expect("publisher:number");
                                let (who, n): (usize, u64) =
                                    (who.parse().expect("digits"), n.parse().expect("digits"));
                                assert!(n > before[who], "from before the subscription");
                                assert!(n > last[who], "twice, or out of order");
                                last[who] = n;
                                received.fetch_add(1, Ordering::Relaxed);
                                true
                            };
                            // Some come while it waits for one.
                            while !take(&wire.receive().expect("a message")) {}
                            send(&mut wire, off);
                            while take(&wire.receive().expect("a message, or the answer")) {}
                            assert_eq!(ping(&mut wire), "pong", "nothing comes behind it");
                        }
                    });
                }
            });
        });
        let (counted, received) = (counted.into_inner(), received.into_inner());
        assert_eq!(counted, received, "what was counted was received");
    });
}

/// PING of a client without subscriptions.
fn ping(wire: &mut Wire) -> String {
    match ask(wire, "PING") {
        Value::Simple(text) => String::from_utf8_lossy(&text).to_lowercase(),
        other => format!("{other:?}"),
    }
}

/// A writer publishes a number and then sets it, in one pipeline or one transaction. Who subscribes
/// and reads the number has received the message before: on the same connection, and on two.
#[test]
fn a_message_is_received_before_a_later_change_is_read() {
    everywhere(|server| {
        for transaction in [false, true] {
            let stop = AtomicBool::new(false);
            let mut setup = server.connect();
            ask(&mut setup, "SET k 0");
            std::thread::scope(|scope| {
                let (mut wire, stop) = (server.connect(), &stop);
                scope.spawn(move || {
                    let mut n = 0;
                    while !stop.load(Ordering::Acquire) {
                        let mut requests = Vec::new();
                        for _ in 0..4 {
                            n += 1;
                            let text = n.to_string();
                            requests.extend(encode(&["PUBLISH", "a", &text]));
                            if transaction {
                                requests.extend(encode(&["MULTI"]));
                                requests.extend(encode(&["PUBLISH", "b", &text]));
                                requests.extend(encode(&["SET", "k", &text]));
                                requests.extend(encode(&["EXEC"]));
                            } else {
                                requests.extend(encode(&["SET", "k", &text]));
                            }
                        }
                        wire.send(&requests).expect("it takes requests");
                        for _ in 0..4 * if transaction { 5 } else { 2 } {
                            wire.receive().expect("a reply");
                        }
                    }
                });
                let _stop = SetAtEnd(stop);
                std::thread::scope(|scope| {
                    scope.spawn(|| reads_what_it_was_told(server));
                    scope.spawn(|| was_told_what_another_reads(server));
                });
            });
        }
    });
}

const READS: usize = 400;

/// RESP3: one connection subscribes and reads.
fn reads_what_it_was_told(server: &ServerProcess) {
    let (mut wire, mut told) = (resp3(server), 0);
    ask(&mut wire, "SUBSCRIBE a");
    let first: u64 = read(&mut wire, &mut told);
    for _ in 0..READS {
        let seen = read(&mut wire, &mut told);
        assert!(seen <= told.max(first), "read {seen}, and was told of {told}");
    }
}

/// GET, with the messages before its reply.
fn read(wire: &mut Wire, told: &mut u64) -> u64 {
    send(wire, "GET k");
    loop {
        let value = wire.receive().expect("a reply, or a message");
        match (message(&value), value) {
            (Some(text), _) => *told = text.parse().expect("digits"),
            (None, Value::Bulk(text)) => {
                return String::from_utf8_lossy(&text).parse().expect("digits");
            }
            (None, other) => panic!("{other:?}"),
        }
    }
}

/// One connection reads, then another asks for what it was told.
fn was_told_what_another_reads(server: &ServerProcess) {
    let (mut reader, mut wire, mut told) = (server.connect(), server.connect(), 0);
    ask(&mut wire, "SUBSCRIBE a");
    let first = read(&mut reader, &mut 0);
    for _ in 0..READS {
        let seen = read(&mut reader, &mut 0);
        send(&mut wire, "PING");
        loop {
            let value = wire.receive().expect("a pong, or a message");
            match message(&value) {
                Some(text) => told = text.parse().expect("digits"),
                None => break,
            }
        }
        assert!(seen <= told.max(first), "another read {seen}, told of {told}");
    }
}

/// Subscribers are killed while messages are delivered: the others receive everything, and in the
/// end nobody is counted who is gone.
#[test]
fn a_subscriber_that_is_closed_costs_no_other_a_message() {
    const MESSAGES: usize = 2_000;
    everywhere(|server| {
        let mut stays: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        for wire in &mut stays {
            drop(ask(wire, "SUBSCRIBE a"));
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for how in 0..3 {
                let stop = &stop;
                scope.spawn(move || {
                    let mut control = server.connect();
                    while !stop.load(Ordering::Acquire) {
                        let mut wire = server.connect();
                        let id = number(&mut wire, "CLIENT ID");
                        ask(&mut wire, "SUBSCRIBE a b");
                        match how {
                            0 => drop(wire),
                            1 => drop(ask(&mut control, &format!("CLIENT KILL ID {id}"))),
                            _ => send(&mut wire, "QUIT"),
                        }
                    }
                });
            }
            let _stop = SetAtEnd(&stop);
            let mut publisher = server.connect();
            for batch in 0..MESSAGES / BATCH {
                let numbers = batch * BATCH..(batch + 1) * BATCH;
                let requests: Vec<u8> =
                    numbers.flat_map(|n| encode(&["PUBLISH", "a", &n.to_string()])).collect();
                publisher.send(&requests).expect("it takes requests");
                for _ in 0..BATCH {
                    drop(publisher.receive().expect("a reply"));
                }
            }
        });
        for wire in &mut stays {
            for n in 0..MESSAGES {
                assert_eq!(next_message(wire), n.to_string());
            }
        }
        let mut wire = server.connect();
        until("those who are gone are not counted", || number(&mut wire, "PUBLISH a x") == 4);
        until("nobody subscribes", || number(&mut wire, "PUBLISH b x") == 0);
        assert_eq!(ask(&mut wire, "CLIENT KILL TYPE pubsub"), Value::Int(4));
        assert_eq!(number(&mut wire, "PUBLISH a x"), 0, "the killed are not counted");
        assert_eq!(ask(&mut wire, "PUBSUB CHANNELS"), Value::Array(Vec::new()));
        until("no memory is left of it", || field(&mut wire, "memory", "mem_pubsub") == 0);
    });
}

/// A field of INFO.
fn field(wire: &mut Wire, section: &str, name: &str) -> u64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("INFO is text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no field {name}")).parse().expect("a number")
}

/// A subscriber that never reads is closed at its limit. Nobody else is hurt, and what waits for it
/// is bounded.
#[test]
fn a_subscriber_that_never_reads_is_closed_at_its_limit() {
    for threads in [1, 2] {
        let limit = ["--client-output-buffer-limit", "pubsub 4mb 0 0"];
        let server = start(threads, &limit);
        let mut lazy: Vec<Wire> = (0..2).map(|_| server.connect()).collect();
        for wire in &mut lazy {
            drop(ask(wire, "SUBSCRIBE big"));
        }
        let mut reader = server.connect();
        ask(&mut reader, "SUBSCRIBE big");
        let mut wire = server.connect();
        for n in 0..200 {
            let text = format!("{n}:{}", "x".repeat(200_000));
            wire.command(&["PUBLISH", "big", &text]).expect("answered");
            assert!(next_message(&mut reader) == text, "message {n}");
        }
        until("they are closed", || field(&mut wire, "clients", "pubsub_clients") == 1);
        assert!(server.log().contains("client-output-buffer-limit"), "{}", server.log());
    }
}

/// 100,000 channels in one request, and the end of all of them: in steps, beside which others are
/// served.
#[test]
fn many_channels_are_subscribed_to_and_left_in_steps() {
    const MANY: usize = 100_000;
    for (threads, ending) in [(1, "UNSUBSCRIBE"), (2, "RESET"), (2, "close")] {
        let server = start(threads, &[]);
        let (mut wire, mut other) = (server.connect(), server.connect());
        let names: Vec<String> = (0..MANY).map(|n| format!("channel:{n}")).collect();
        let request: Vec<&str> =
            std::iter::once("SUBSCRIBE").chain(names.iter().map(String::as_str)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wire.send(&encode(&request)).expect("it takes requests");
                for n in 1..=MANY {
                    let confirmed = wire.receive().expect("confirmed");
                    assert_eq!(parts(&confirmed).expect("words")[2], n.to_string());
                }
            });
            for _ in 0..20 {
                assert_eq!(ping(&mut other), "pong");
            }
        });
        assert_eq!(field(&mut other, "stats", "pubsub_channels"), MANY as u64);
        assert_eq!(number(&mut other, "PUBLISH channel:77777 x"), 1);
        assert_eq!(next_message(&mut wire), "x");
        let Value::Array(all) = ask(&mut other, "PUBSUB CHANNELS channel:7777*") else {
            panic!("an array")
        };
        assert_eq!(all.len(), 11);
        match ending {
            "UNSUBSCRIBE" => {
                send(&mut wire, "UNSUBSCRIBE");
                for n in (0..MANY).rev() {
                    let confirmed = wire.receive().expect("confirmed");
                    assert_eq!(parts(&confirmed).expect("words")[2], n.to_string());
                }
                assert_eq!(ping(&mut wire), "pong");
            }
            "RESET" => {
                assert_eq!(ask(&mut wire, "RESET"), Value::Simple(b"RESET".to_vec()));
                assert_eq!(ping(&mut wire), "pong");
            }
            _ => drop(wire),
        }
        until("they are gone", || field(&mut other, "stats", "pubsub_channels") == 0);
        assert_eq!(number(&mut other, "PUBLISH channel:77777 x"), 0);
        assert_eq!(field(&mut other, "memory", "mem_pubsub"), 0);
    }
}

/// Nobody is told of what is not safe yet: a message waits for the changes of its publisher.
#[test]
fn messages_wait_for_the_changes_of_their_publisher() {
    for threads in [1, 2] {
        let server = start(threads, &["--enable-debug-command", "yes"]);
        let (mut control, mut publisher) = (server.connect(), server.connect());
        let (mut near, mut far) = (server.connect(), resp3(&server));
        for wire in [&mut near, &mut far] {
            drop(ask(wire, "SUBSCRIBE a"));
        }
        let held = |publisher: &mut Wire, requests: &[&str], wires: [&mut Wire; 2], text: &str| {
            let mut control = server.connect();
            ask(&mut control, "DEBUG SAFE-UP-TO 0");
            for line in requests {
                send(publisher, line);
            }
            let [near, far] = wires;
            assert!(!near.has_reply(UNSENT_WAIT).expect("open"), "not before its change is safe");
            assert!(!far.has_reply(UNSENT_WAIT).expect("open"), "not before its change is safe");
            ask(&mut control, "DEBUG SAFE-UP-TO ALL");
            assert_eq!(next_message(near), text);
            assert_eq!(next_message(far), text);
            for _ in requests {
                drop(publisher.receive().expect("a reply"));
            }
        };
        let requests = ["SET k 1", "PUBLISH a one"];
        held(&mut publisher, &requests, [&mut near, &mut far], "one");
        let requests = ["MULTI", "PUBLISH a two", "SET k 2", "EXEC"];
        held(&mut publisher, &requests, [&mut near, &mut far], "two");
        // Who has changed nothing waits for nothing.
        ask(&mut control, "DEBUG SAFE-UP-TO 0");
        let mut another = server.connect();
        assert_eq!(number(&mut another, "PUBLISH a three"), 2);
        assert_eq!(
            (next_message(&mut near), next_message(&mut far)),
            ("three".into(), "three".into())
        );
        ask(&mut control, "DEBUG SAFE-UP-TO ALL");
    }
}

/// The figures that INFO and CLIENT LIST show.
#[test]
fn figures_are_those_of_redis() {
    let mut told = BTreeMap::new();
    for binary in [Binary::under_test(), Binary::redis()] {
        let server = ServerProcess::start(&binary, &[]);
        let (mut a, mut b) = (server.connect(), resp3(&server));
        for line in ["SUBSCRIBE x", "PSUBSCRIBE x* y*", "SSUBSCRIBE x"] {
            send(&mut a, line);
        }
        for _ in 0..4 {
            drop(a.receive().expect("confirmed"));
        }
        for line in ["SUBSCRIBE x z", "PSUBSCRIBE x*"] {
            send(&mut b, line);
        }
        for _ in 0..3 {
            drop(b.receive().expect("confirmed"));
        }
        let mut control = server.connect();
        let fields = ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"]
            .map(|name| field(&mut control, "stats", name));
        let Value::Bulk(list) = ask(&mut control, "CLIENT LIST TYPE pubsub") else {
            panic!("a text")
        };
        let list = String::from_utf8_lossy(&list).into_owned();
        let wanted = ["flags=", "sub=", "psub=", "ssub="];
        let is_wanted = |word: &&str| wanted.iter().any(|name| word.starts_with(name));
        let lines: Vec<Vec<String>> = list
            .lines()
            .map(|line| line.split(' ').filter(is_wanted).map(Into::into).collect())
            .collect();
        told.entry((fields, lines)).or_insert_with(Vec::new).push(binary.kind == Kind::Redis);
    }
    assert_eq!(told.len(), 1, "{told:?}");
}
