//! Replies which wait for a journal. `DEBUG SAFE-UP-TO` simulates a journal which is durable up to
//! a number: no reply may show a later change, and each is sent as soon as all changes it shows are
//! safe.
//!
//! That no reply is sent can only be checked by waiting. On a busy machine such a wait may miss a
//! defect, but it never reports a false one.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::producer::{Answer, Hello, Producer, data, flush};
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{PATIENCE, Value, Wire, encode};

const CLASSIC: &str = "127.0.0.1:0 strategy=sync sink=stream:in";
const TWO: &str = "127.0.0.1:0 protocol=2";
/// How long a test waits for a reply that must not be sent.
const UNSENT_WAIT: Duration = Duration::from_millis(20);

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

fn ask(wire: &mut Wire, text: &str) -> String {
    render::line(&wire.command(&words(text)).unwrap_or_else(|e| panic!("'{text}': {e}")))
}

fn send(wire: &mut Wire, text: &str) {
    wire.send(&encode(&words(text))).expect("it takes requests");
}

fn receive(wire: &mut Wire) -> String {
    render::line(&wire.receive().expect("a reply"))
}

/// A server whose changes are numbered.
struct Bench {
    server: ServerProcess,
    control: Wire,
    /// At least one connection on each worker.
    others: Vec<Wire>,
    /// The number up to which changes are safe.
    safe: u64,
}

impl Bench {
    fn start(threads: usize) -> Self {
        let server = ServerProcess::start(
            &Binary::under_test(),
            &[
                "--threads",
                &threads.to_string(),
                "--ingest-listen",
                CLASSIC,
                "--ingest-listen",
                TWO,
            ],
        );
        let control = server.connect();
        let others = (0..2 * threads).map(|_| server.connect()).collect();
        let mut bench = Self { server, control, others, safe: 0 };
        bench.make_all_safe();
        bench
    }

    /// Sets the safe number, and returns the last number drawn.
    fn set_safe(&mut self, safe: u64) -> u64 {
        self.safe = safe;
        self.last()
    }

    fn last(&mut self) -> u64 {
        let text = format!("DEBUG SAFE-UP-TO {}", self.safe);
        match self.control.command(&words(&text)).expect("answered") {
            Value::Int(last) => last as u64,
            other => panic!("{other:?}"),
        }
    }

    /// Makes all changes so far safe, but no later one.
    fn make_all_safe(&mut self) {
        loop {
            let last = self.last();
            if last == self.safe {
                return;
            }
            self.safe = last;
        }
    }

    /// Sends a change and waits until it is executed, but not for its reply.
    fn change(&mut self, wire: &mut Wire, text: &str) {
        let before = self.last();
        send(wire, text);
        self.until_drawn(before + 1);
    }

    /// Makes all changes safe, also later ones, until another number is set.
    fn make_all_safe_until_changed(&mut self) {
        self.set_safe(i64::MAX as u64);
        self.safe = 0;
    }

    fn until_drawn(&mut self, seq: u64) {
        let began = Instant::now();
        while self.last() < seq {
            assert!(began.elapsed() < PATIENCE, "number {seq} is drawn");
            thread::yield_now();
        }
    }

    fn until_blocked(&mut self, count: usize) {
        let began = Instant::now();
        loop {
            let list = ask(&mut self.control, "CLIENT LIST");
            if list.matches("flags=b").count() == count {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{count} clients block: {list}");
        }
    }

    /// Waits until every worker has had a turn.
    fn turn(&mut self) {
        for other in &mut self.others {
            assert_eq!(ask(other, "PING"), "+PONG");
        }
    }

    fn has_come(&mut self, wire: &mut Wire) -> bool {
        self.turn();
        wire.has_reply(UNSENT_WAIT).expect("open")
    }

    /// Fails if this client has received anything after every worker has had a turn.
    fn assert_nothing_sent(&mut self, wire: &mut Wire, what: &str) {
        assert!(!self.has_come(wire), "{what} is sent too early");
    }

    /// The address of an ingest listener.
    fn ingest_addr(&mut self, listener: usize) -> SocketAddr {
        let info = ask(&mut self.control, "INFO ingest");
        let (_, line) = info.split_once(&format!("ingest_listener{listener}:")).expect("a line");
        let (_, addr) = line.split_once("address=").expect("a field");
        let end = addr.find([',', '\\']).unwrap_or(addr.len());
        addr[..end].parse().expect("an address")
    }
}

/// A reply and the change it must wait for.
#[derive(Clone, Copy)]
struct Case {
    /// Commands run while all changes are safe.
    before: &'static [&'static str],
    /// The same, on the reader's connection.
    prelude: &'static [&'static str],
    /// The change which is not safe yet.
    write: &'static str,
    /// The command which shows it.
    read: &'static str,
    /// Its reply.
    reply: &'static str,
}

const fn case(write: &'static str, read: &'static str, reply: &'static str) -> Case {
    Case { before: &[], prelude: &[], write, read, reply }
}

const fn with(before: &'static [&'static str], case: Case) -> Case {
    Case { before, ..case }
}

const fn after(prelude: &'static [&'static str], case: Case) -> Case {
    Case { prelude, ..case }
}

const CASES: &[Case] = &[
    case("SET k v", "GET k", "\"v\""),
    with(&["SET k v"], case("DEL k", "GET k", "null-bulk")),
    case("SET k v", "EXISTS k", ":1"),
    case("SET k v", "LPOP k", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    case("SET k v", "MGET k other", "*2 \"v\" null-bulk"),
    case("SET k v", "DUMP k", ""),
    case("SET k v", "DBSIZE", ":1"),
    case("SET k v", "INFO keyspace", ""),
    case("SET k v", "KEYS *", "*1 \"k\""),
    case("SET k v", "SCAN 0 COUNT 100000", "*2 \"0\" *1 \"k\""),
    case("SET k v", "RANDOMKEY", "\"k\""),
    // Empty slots are skipped.
    with(&["SET k v"], case("DEL k", "KEYS *", "*0")),
    with(&["SET k v", "DEL k", "KEYS *"], case("FLUSHALL ASYNC", "KEYS *", "*0")),
    with(&["SET k v"], case("FLUSHALL SYNC", "KEYS *", "*0")),
    with(&["SET k v"], case("SWAPDB 0 1", "KEYS *", "*0")),
    with(&["SET k v"], case("SWAPDB 0 1", "RANDOMKEY", "null-bulk")),
    with(&["SET k v"], case("SWAPDB 0 1", "GET k", "null-bulk")),
    // Transactions: their reads, and that they were aborted.
    after(&["MULTI", "GET other", "GET k"], case("SET k v", "EXEC", "*2 null-bulk \"v\"")),
    after(&["MULTI", "DBSIZE"], case("SET k v", "EXEC", "*1 :1")),
    after(&["MULTI", "KEYS *"], case("SET k v", "EXEC", "*1 *1 \"k\"")),
    after(&["WATCH k", "MULTI", "GET other"], case("SET k v", "EXEC", "null-array")),
    after(
        &["WATCH k", "MULTI", "GET other"],
        with(&["SET k v"], case("FLUSHALL", "EXEC", "null-array")),
    ),
    // A command which blocks because another client has taken the element.
    with(&["RPUSH q x"], case("LPOP q", "BLPOP q 0.01", "null-array")),
    with(&["RPUSH q x"], case("LPOP q", "BLMOVE q r LEFT LEFT 0.01", "null-array")),
];

/// The writer's own reply and every reply which shows its change wait until the change is safe.
#[test]
fn no_reply_shows_an_unsafe_change() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let mut writer = bench.server.connect();
        let wrong: Vec<String> =
            CASES.iter().filter_map(|case| show(&mut bench, &mut writer, case).err()).collect();
        assert!(wrong.is_empty(), "{threads} threads: {wrong:#?}");
    }
}

fn show(bench: &mut Bench, writer: &mut Wire, case: &Case) -> Result<(), String> {
    let what = format!("'{}' after '{}'", case.read, case.write);
    bench.make_all_safe_until_changed();
    // The second walk knows which slots are empty.
    let mut readers = vec![bench.server.connect()];
    if case.prelude.is_empty() {
        readers.push(bench.server.connect());
    }
    for text in ["FLUSHALL"].iter().chain(case.before).chain(case.prelude) {
        assert!(!ask(&mut readers[0], text).starts_with('-'), "{text}");
    }
    bench.make_all_safe();
    bench.change(writer, case.write);
    let mut early = bench.has_come(writer);
    for reader in &mut readers {
        send(reader, case.read);
        early |= bench.has_come(reader);
    }
    bench.make_all_safe();
    assert!(!receive(writer).starts_with('-'), "{}", case.write);
    for reader in &mut readers {
        let reply = receive(reader);
        assert!(case.reply.is_empty() || reply == case.reply, "{what}: {reply}");
    }
    if early { Err(what) } else { Ok(()) }
}

/// A reply waits only for the changes which it has read.
#[test]
fn a_reply_is_sent_when_the_changes_it_shows_are_safe() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let mut writers: Vec<Wire> = (0..2).map(|_| bench.server.connect()).collect();
        let before = bench.safe;
        bench.change(&mut writers[0], "SET a 1");
        bench.change(&mut writers[1], "SET b 2");
        let mut readers: Vec<Wire> = (0..4).map(|_| bench.server.connect()).collect();
        assert_eq!(ask(&mut readers[0], "GET other"), "null-bulk");
        for (reader, text) in readers.iter_mut().zip(["GET a", "MGET a b", "GET b", "DBSIZE"]) {
            send(reader, text);
            bench.assert_nothing_sent(reader, text);
        }
        bench.set_safe(before + 1);
        assert_eq!(receive(&mut writers[0]), "+OK");
        assert_eq!(receive(&mut readers[0]), "\"1\"");
        for reader in &mut readers[1..] {
            bench.assert_nothing_sent(reader, "what shows b");
        }
        bench.set_safe(before + 2);
        assert_eq!(receive(&mut writers[1]), "+OK");
        let replies: Vec<String> = readers[1..].iter_mut().map(receive).collect();
        assert_eq!(replies, ["*2 \"1\" \"2\"", "\"2\"", ":2"]);
    }
}

/// Replies of one client are sent in order: a safe one waits for an earlier one that is not.
#[test]
fn a_clients_replies_keep_their_order() {
    let mut bench = Bench::start(2);
    let mut wire = bench.server.connect();
    bench.change(&mut wire, "SET a 1");
    send(&mut wire, "PING");
    bench.assert_nothing_sent(&mut wire, "PING behind SET");
    bench.change(&mut wire, "INCR a");
    bench.set_safe(1);
    assert_eq!([receive(&mut wire), receive(&mut wire)], ["+OK", "+PONG"]);
    bench.assert_nothing_sent(&mut wire, "INCR");
    bench.make_all_safe();
    assert_eq!(receive(&mut wire), ":2");
}

/// The reply to a blocked client waits until the change that served it is safe, on every worker.
#[test]
fn the_reply_to_a_served_client_waits_for_the_serving_change() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let mut writer = bench.server.connect();
        for (wait, reply) in [
            ("BLPOP q 0", "*2 \"q\" \"x\""),
            ("BLMOVE q r LEFT LEFT 0", "\"x\""),
            ("XREAD BLOCK 0 STREAMS s 0", "*1 *2 \"s\" *1 *2 \"1-1\" *2 \"f\" \"v\""),
        ] {
            let write = if wait.starts_with('X') { "XADD s 1-1 f v" } else { "RPUSH q x" };
            let mut waiter = bench.server.connect();
            send(&mut waiter, wait);
            bench.until_blocked(1);
            bench.change(&mut writer, write);
            bench.assert_nothing_sent(&mut waiter, wait);
            bench.assert_nothing_sent(&mut writer, write);
            bench.make_all_safe();
            assert_eq!(receive(&mut waiter), reply);
            assert!(receive(&mut writer).len() > 1);
        }
    }
}

/// A line for MONITOR is sent when its change is safe, and later lines after it.
#[test]
fn monitor_lines_wait_until_their_change_is_safe() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let (mut monitor, mut writer) = (bench.server.connect(), bench.server.connect());
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        send(&mut writer, "SET k v");
        bench.until_drawn(1);
        assert!(!monitor.has_reply(UNSENT_WAIT).expect("open"), "the line is sent too early");
        bench.make_all_safe();
        let Value::Simple(line) = monitor.receive().expect("a line") else { panic!("a line") };
        assert!(line.ends_with(b"\"SET\" \"k\" \"v\""));
        assert_eq!(receive(&mut writer), "+OK");
    }
}

/// A long reply also waits for changes which its first step has read.
#[test]
fn a_long_reply_waits_for_changes_read_in_its_first_step() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        bench.make_all_safe_until_changed();
        let (mut writer, mut reader) = (bench.server.connect(), bench.server.connect());
        let members = (0..60_000).map(|n| n.to_string());
        let words: Vec<String> = ["SADD".into(), "set".into()].into_iter().chain(members).collect();
        assert_eq!(writer.command(&words).expect("open"), Value::Int(60_000));
        bench.make_all_safe();
        bench.change(&mut writer, "SADD set more");
        send(&mut reader, "SMEMBERS set");
        bench.assert_nothing_sent(&mut reader, "SMEMBERS");
        bench.make_all_safe();
        assert_eq!(receive(&mut writer), ":1");
        let Value::Array(all) = reader.receive().expect("a reply") else { panic!("an array") };
        assert_eq!(all.len(), 60_001);
    }
}

/// The reply of MIGRATE shows that the key is removed here, so it waits for that change.
#[test]
fn migrate_waits_for_the_removal() {
    let (mut bench, target) = (Bench::start(2), ServerProcess::start(&Binary::redis(), &[]));
    let mut wire = bench.server.connect();
    bench.make_all_safe_until_changed();
    assert_eq!(ask(&mut wire, "SET k v"), "+OK");
    bench.make_all_safe();
    let port = target.addr.port();
    bench.change(&mut wire, &format!("MIGRATE 127.0.0.1 {port} k 0 5000"));
    bench.assert_nothing_sent(&mut wire, "MIGRATE");
    bench.make_all_safe();
    assert_eq!(receive(&mut wire), "+OK");
}

/// Nothing is acknowledged that a crash would undo, and every block is acknowledged when it is
/// safe.
#[test]
fn messages_are_acknowledged_when_they_are_safe() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let mut client = TcpStream::connect(bench.ingest_addr(0)).expect("it listens");
        let message = [&0u64.to_le_bytes()[..], &1u32.to_le_bytes(), b"x"].concat();
        let before = bench.safe;
        client.write_all(&message).expect("it reads");
        bench.until_drawn(before + 1);
        // A held acknowledgement does not block the next message.
        let next = [&1u64.to_le_bytes()[..], &1u32.to_le_bytes(), b"y"].concat();
        client.write_all(&next).expect("it reads");
        bench.until_drawn(before + 2);
        assert!(!has_come(&client), "an acknowledgement is sent too early");
        bench.set_safe(before + 1);
        let mut ack = [0; 12];
        client.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
        client.read_exact(&mut ack).expect("an acknowledgement");
        assert_eq!(ack[..8], 0u64.to_le_bytes());
        assert!(!has_come(&client), "the second acknowledgement is sent too early");
        // A producer that stops sending still gets its acknowledgements.
        client.shutdown(Shutdown::Write).expect("open");
        assert!(!has_come(&client), "closing the sending side releases it");
        bench.make_all_safe();
        client.read_exact(&mut ack).expect("an acknowledgement");
        assert_eq!(ack[..8], 1u64.to_le_bytes());
        assert_eq!(client.read(&mut ack).expect("an end"), 0);
    }
}

/// In protocol 2, Welcome and the acknowledgement of duplicates show messages of an earlier
/// connection, so they wait until those are safe.
#[test]
fn welcome_and_duplicate_acks_wait_for_safe_messages() {
    for threads in [1, 4] {
        let mut bench = Bench::start(threads);
        let (addr, hello) = (bench.ingest_addr(1), Hello::new("p", "in2"));
        let (mut first, answer) = Producer::greet(addr, &hello);
        assert!(matches!(answer, Answer::Welcome(0, _)), "{answer:?}");
        let before = bench.safe;
        first.send(&[data(1, &[b"a", b"b"]), flush()].concat());
        bench.until_drawn(before + 1);
        assert!(!has_come(&first.stream), "an acknowledgement is sent too early");
        // A new connection takes over the producer.
        let mut second = Producer::connect(addr);
        second.send(&hello.frame());
        assert!(!has_come(&second.stream), "Welcome shows messages which are not safe");
        bench.make_all_safe();
        first.until_acked(2);
        assert!(matches!(second.hear(), Ok(Answer::Welcome(2, _))));
        second.send(&[data(1, &[b"a", b"b"]), flush()].concat());
        second.until_acked(2);
    }
}

fn has_come(stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(UNSENT_WAIT)).expect("a time above 0");
    let seen = stream.peek(&mut [0]);
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above 0");
    !matches!(seen, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// A pipeline is executed while its replies are held, up to a bound; commands beyond it are not
/// even read.
#[test]
fn pipelines_are_executed_up_to_the_bound_on_held_replies() {
    let mut bench = Bench::start(2);
    let mut wire = bench.server.connect();
    let value = "x".repeat(64 << 10);
    let before = bench.safe;
    assert_eq!(bench.last(), before);
    let set = encode(&["SET", "big", &value]);
    wire.send(&set).expect("it reads");
    bench.until_drawn(before + 1);
    // Each GET holds 64 KiB: the INCR behind 4 of them is executed, that behind 64 of them is not.
    let gets = |n: usize| encode(&["GET", "big"]).repeat(n);
    wire.send(&[gets(4), encode(&["INCR", "n"])].concat()).expect("it reads");
    bench.until_drawn(before + 2);
    for _ in 0..64 {
        // One by one, so that one read does not return all of them.
        wire.send(&gets(1)).expect("it reads");
        bench.turn();
    }
    wire.send(&encode(&["INCR", "n"])).expect("it reads");
    bench.turn();
    assert_eq!(bench.last(), before + 2, "a client with too many held bytes is read");
    bench.set_safe(before + 2);
    let mut replies = Vec::new();
    // Reading resumes as the client receives the released replies.
    while bench.last() == before + 2 {
        if wire.has_reply(UNSENT_WAIT).expect("open") {
            replies.push(wire.receive().expect("a reply"));
        }
    }
    bench.make_all_safe();
    while replies.len() < 71 {
        replies.push(wire.receive().expect("a reply"));
    }
    let text = |reply: &Value| render::line(reply);
    assert_eq!([text(&replies[0]), text(&replies[5]), text(&replies[70])], ["+OK", ":1", ":2"]);
    let value = Value::Bulk(value.into());
    assert_eq!(replies.iter().filter(|reply| **reply == value).count(), 68);
}

/// Clients which are each below their bound are not read when they exceed the common bound
/// together; others are.
#[test]
fn held_replies_of_all_clients_are_bounded() {
    let mut bench = Bench::start(1);
    let mut writer = bench.server.connect();
    let before = bench.safe;
    let value = "x".repeat(900_000);
    writer.send(&encode(&["SET", "big", &value])).expect("it reads");
    bench.until_drawn(before + 1);
    let mut readers: Vec<Wire> = (0..80).map(|_| bench.server.connect()).collect();
    for reader in &mut readers {
        send(reader, "GET big");
    }
    bench.turn();
    send(&mut readers[0], "INCR n");
    bench.turn();
    assert_eq!(bench.last(), before + 1, "a client is read above the common bound");
    let mut other = bench.server.connect();
    bench.change(&mut other, "INCR other");
    bench.make_all_safe();
    for reader in &mut readers {
        assert_eq!(reader.receive().expect("a reply"), Value::Bulk(value.clone().into()));
    }
    bench.until_drawn(before + 3);
    bench.make_all_safe();
    assert_eq!([receive(&mut readers[0]), receive(&mut other)], [":1", ":1"]);
}

/// Held bytes count as output of a client, like unread bytes.
#[test]
fn held_replies_count_towards_the_output_limit() {
    let mut bench = Bench::start(2);
    let mut wire = bench.server.connect();
    let limit = "CONFIG SET client-output-buffer-limit";
    let mut words = words(limit);
    words.push("normal 100000 0 0");
    bench.control.command(&words).expect("answered");
    let value = "x".repeat(60_000);
    wire.send(&encode(&["SET", "big", &value])).expect("it reads");
    bench.until_drawn(1);
    wire.send(&encode(&["GET", "big"]).repeat(2)).expect("it reads");
    let ended = wire.receive().expect_err("above the limit it is closed").kind();
    assert!(matches!(ended, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{ended:?}");
}

/// A client that stops sending is still sent its held replies.
#[test]
fn a_half_closed_client_gets_its_held_replies() {
    let mut bench = Bench::start(2);
    let mut wire = bench.server.connect();
    bench.change(&mut wire, "SET k v");
    wire.stream().shutdown(Shutdown::Write).expect("open");
    bench.assert_nothing_sent(&mut wire, "the reply to who has ended");
    bench.make_all_safe();
    assert_eq!(receive(&mut wire), "+OK");
    assert!(wire.receive().is_err(), "then it is closed");
}

/// No reply waits when changes are not numbered.
#[test]
fn no_reply_is_held_when_numbering_is_off() {
    let mut bench = Bench::start(4);
    let mut wires: Vec<Wire> = (0..8).map(|_| bench.server.connect()).collect();
    for wire in &mut wires {
        bench.change(wire, "INCR n");
    }
    let last = bench.last();
    assert_eq!(ask(&mut bench.control, "DEBUG SAFE-UP-TO ALL"), format!(":{last}"));
    let replies: Vec<String> = wires.iter_mut().map(receive).collect();
    assert_eq!(replies, (1..=8).map(|n| format!(":{n}")).collect::<Vec<_>>());
    assert_eq!(ask(&mut wires[0], "INCR n"), ":9");
    assert_eq!(ask(&mut bench.control, "DEBUG SAFE-UP-TO ALL"), format!(":{last}"));
    assert!(ask(&mut bench.control, "DEBUG SAFE-UP-TO x").starts_with('-'));
}
