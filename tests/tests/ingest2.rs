//! Ingest protocol 2 on the whole server, with a producer that shares no code with it.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sheafdb_tests::http;
use sheafdb_tests::ports::free_addr;
use sheafdb_tests::producer::{Answer, Hello, Producer, data, flush, frame};
use sheafdb_tests::server_process::{Binary, ServerProcess, io_backend};
use sheafdb_tests::wire::{Value, Wire};

fn start(listen: &[&str], extra: &[&str]) -> ServerProcess {
    let listen: Vec<String> = listen.iter().map(|l| format!("127.0.0.1:0 {l}")).collect();
    let mut args: Vec<&str> = vec!["--threads", "2"];
    args.extend(listen.iter().flat_map(|l| ["--ingest-listen", l]));
    args.extend(extra);
    ServerProcess::start(&Binary::under_test(), &args)
}

fn info(wire: &mut Wire) -> String {
    let Ok(Value::Bulk(text)) = wire.command(&["INFO", "ingest"]) else { panic!("INFO answers") };
    String::from_utf8(text).expect("text")
}

fn field(wire: &mut Wire, name: &str) -> String {
    let text = info(wire);
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
}

fn number(wire: &mut Wire, name: &str) -> u64 {
    field(wire, name).parse().expect("a number")
}

fn address(wire: &mut Wire, n: u32) -> SocketAddr {
    let text = field(wire, &format!("ingest_listener{n}"));
    let address =
        text.split(',').find_map(|f| f.strip_prefix("address=")).expect("a field of INFO");
    address.parse().expect("an address")
}

fn integer(wire: &mut Wire, args: &[&str]) -> u64 {
    match wire.command(args) {
        Ok(Value::Int(n)) => u64::try_from(n).expect("a count"),
        other => panic!("{args:?}: {other:?}"),
    }
}

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends Hello, these bytes, and many more which are discarded; then reads the error. A server
/// which closed at once would reset the connection, and the client, which still writes, would lose
/// the error.
fn ends_with(addr: SocketAddr, hello: &Hello, bytes: &[u8]) -> (u16, u64) {
    let mut producer = Producer::connect(addr);
    producer.send(&[&hello.frame(), bytes].concat());
    producer.send(&vec![0x55; 4 << 20]);
    producer.error()
}

/// Incomplete messages, and messages which their sink does not accept, count as client memory.
#[test]
fn buffered_messages_count_as_client_memory() {
    const BYTES: usize = 1_000_000;
    let held = |wire: &mut Wire| {
        let Ok(Value::Bulk(text)) = wire.command(&["INFO", "memory"]) else { panic!("a text") };
        let text = String::from_utf8(text).expect("text");
        let line = text.lines().find_map(|l| l.strip_prefix("mem_clients_normal:"));
        line.expect("a line").parse::<usize>().expect("a number")
    };
    let server = start(&["protocol=2"], &[]);
    let mut wire = server.connect();
    let (mut producer, _) = Producer::greet(address(&mut wire, 0), &Hello::new("p", "counted"));
    let block = data(1, &[&vec![b'x'; BYTES]]);
    let (most, last) = block.split_at(block.len() - 1);
    producer.send(most);
    wait_until("it counts", || held(&mut wire) >= BYTES);
    wire.command(&["CONFIG", "SET", "maxmemory", "1"]).expect("answered");
    producer.send(last);
    wait_until("its sink is full", || {
        info(&mut wire).contains("blocked_connections=1") && held(&mut wire) >= BYTES
    });
    wire.command(&["CONFIG", "SET", "maxmemory", "0"]).expect("answered");
    producer.until_acked(1);
    producer.send(&data(2, &[&vec![b'x'; BYTES]])[..BYTES / 2]);
    wait_until("the next one counts", || held(&mut wire) >= BYTES / 2);
    drop(producer);
    wait_until("it is gone", || held(&mut wire) < BYTES / 2);
}

/// A Hello with the password of the server below.
fn to(key: &str) -> Hello {
    Hello { password: "secret".into(), ..Hello::new("p", key) }
}

/// Inputs which end a connection: its Hello, the bytes sent, and the code of the error.
fn refused() -> Vec<(Hello, Vec<u8>, u16)> {
    let known = to("");
    vec![
        (Hello { version: 1, ..known.clone() }, Vec::new(), 2),
        (known.clone(), frame(9, &[]), 3),
        (known.clone(), data(1, &[&[0; 1001]]), 4),
        (known.clone(), vec![0, 0, 0, 1, 2, 0, 0, 0], 4),
        (Hello::new("p", ""), Vec::new(), 5),
        (Hello { password: "wrong!".into(), ..known.clone() }, Vec::new(), 5),
        (Hello { db: 99, ..to("s") }, Vec::new(), 6),
        (Hello { level: 2, ..known.clone() }, Vec::new(), 7),
        (Hello { sink: 0, ..known.clone() }, Vec::new(), 8),
        (Hello { flags: 1, ..to("unknown") }, Vec::new(), 9),
        (to("text"), data(1, &[b"x"]), 11),
        (to("full"), data(1, &[b"x"]), 17),
        (known.clone(), data(0, &[b"x"]), 13),
    ]
}

#[test]
fn errors_are_sent_only_to_their_client() {
    let mut server = start(
        &[
            "protocol=2 window=65536 max-message=1000",
            "protocol=2 sink=stream:own max-connections=1",
            "protocol=2 window=4096",
        ],
        &["--requirepass", "secret", "--ingest-idle-timeout", "1"],
    );
    let mut wire = server.connect();
    wire.command(&["AUTH", "secret"]).expect("answered");
    wire.command(&["SET", "text", "x"]).expect("answered");
    wire.command(&["XADD", "full", "18446744073709551615-18446744073709551615", "f", "v"])
        .expect("answered");
    let [any, own, narrow] = [0, 1, 2].map(|n| address(&mut wire, n));
    let (mut bystander, answer) = Producer::greet(any, &Hello { producer: "b".into(), ..to("s") });
    assert_eq!(answer, Answer::Welcome(0, 65536));
    let x: &[u8] = b"x";
    let much: Vec<u8> = (0..1_000).flat_map(|n| data(1 + n, &[&[7; 1000]])).collect();
    for (hello, bytes, code) in refused() {
        assert_eq!(ends_with(any, &hello, &bytes).0, code, "{hello:?}");
    }
    assert_eq!(ends_with(narrow, &to("much"), &much).0, 12);
    let (mut gap, answer) = Producer::greet(any, &to("gap"));
    assert_eq!(answer, Answer::Welcome(0, 65536));
    gap.send(&[data(5, &[x, x]), data(8, &[x])].concat());
    assert_eq!(gap.error(), (13, 6));
    assert_eq!(integer(&mut wire, &["XLEN", "gap"]), 2, "what was whole is kept");
    let mut none = Producer::connect(any);
    none.send(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    assert_eq!(none.error(), (1, 0));
    let (mut half, _) = Producer::greet(any, &to("half"));
    half.send(&data(1, &[x, x, x])[..27]);
    assert_eq!(half.error(), (16, 2), "two of its three messages were whole");
    let mine = Hello { sink: 0, ..to("") };
    let (mut first, answer) = Producer::greet(own, &mine);
    assert!(matches!(answer, Answer::Welcome(0, _)), "{answer:?}");
    assert_eq!(Producer::connect(own).error(), (14, 0));
    let (mut second, _) = Producer::greet(any, &to("own"));
    assert_eq!(first.error(), (10, 0));
    second.send(&[data(1, &[x]), flush()].concat());
    second.until_acked(1);
    bystander.send(&[data(1, &[x; 100]), flush()].concat());
    bystander.until_acked(100);
    let codes = field(&mut wire, "ingest_error_codes");
    assert!(
        codes.contains("malformed=1,too_large=2,authentication=2,database=1,level=1"),
        "{codes}"
    );
    assert!(codes.contains("taken_over=1,wrong_type=1,credit=1,gap=2,limit=1"), "{codes}");
    assert_eq!(number(&mut wire, "ingest_takeovers"), 1);
    server.terminate();
    assert_eq!((second.error(), bystander.error()), ((15, 1), (15, 100)));
    let status = server.wait_exit(Duration::from_secs(120)).expect("it ends");
    assert!(status.success());
}

/// A producer which writes and reads without blocking.
struct Busy {
    producer: Producer,
    unsent: Vec<u8>,
    at: usize,
    acked: u64,
}

impl Busy {
    fn new(addr: SocketAddr, hello: &Hello, unsent: Vec<u8>) -> Self {
        let (producer, answer) = Producer::greet(addr, hello);
        assert!(matches!(answer, Answer::Welcome(0, _)), "{answer:?}");
        producer.stream.set_nonblocking(true).expect("a socket can");
        Self { producer, unsent, at: 0, acked: 0 }
    }

    fn pump(&mut self) {
        match self.producer.stream.write(&self.unsent[self.at..]) {
            Ok(n) => self.at += n,
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
        }
        match self.producer.read() {
            Ok(n) => assert!(n > 0, "it ended"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock, "{e}"),
        }
        while let Some(answer) = self.producer.take() {
            match answer {
                Answer::Ack(id) => self.acked = id,
                Answer::Error(..) => panic!("{answer:?}"),
                Answer::Welcome(..) | Answer::Credit(_) => {}
            }
        }
    }
}

/// The entries of a stream in their order: who sent each, and its number.
fn order_of(wire: &mut Wire, key: &str) -> Vec<(usize, u64)> {
    let (mut all, mut from) = (Vec::new(), "-".to_owned());
    loop {
        let Ok(Value::Array(part)) = wire.command(&["XRANGE", key, &from, "+", "COUNT", "1000"])
        else {
            panic!("entries")
        };
        if part.is_empty() {
            return all;
        }
        for entry in &part {
            let Value::Array(entry) = entry else { panic!("an entry") };
            let [Value::Bulk(id), Value::Array(fields)] = &entry[..] else { panic!("an entry") };
            from = format!("({}", String::from_utf8_lossy(id));
            let (Value::Bulk(number), Value::Bulk(payload)) = (&fields[1], &fields[3]) else {
                panic!("two values")
            };
            let read = |text: &[u8]| String::from_utf8_lossy(text).parse().expect("a number");
            all.push((read(&payload[..4]) as usize, read(number)));
        }
    }
}

/// All producers wait while writes are paused; then the stream shows the order in which one worker
/// serves them.
#[test]
fn a_thousand_producers_lose_nothing_and_get_equal_shares() {
    const EACH: u64 = 100;
    const HELD: u64 = 30;
    const PRODUCERS: usize = 1_000;
    let server = start(&["protocol=2"], &["--threads", "1"]);
    let mut wire = server.connect();
    let addr = address(&mut wire, 0);
    wire.command(&["CLIENT", "PAUSE", "600000", "WRITE"]).expect("answered");
    let frames = |n: usize, from: u64, to: u64| -> Vec<u8> {
        let payload = format!("{n:04}{}", "x".repeat(996));
        (from..to).step_by(5).flat_map(|k| data(1 + k, &[payload.as_bytes(); 5])).collect()
    };
    let mut all: Vec<Busy> = (0..PRODUCERS)
        .map(|n| Busy::new(addr, &Hello::new(&format!("p{n}"), "s"), frames(n, 0, HELD)))
        .collect();
    wait_until("all of them wait", || {
        all.iter_mut().for_each(Busy::pump);
        let written = all.iter().all(|p| p.at == p.unsent.len());
        written && number(&mut wire, "ingest_blocked_connections") == PRODUCERS as u64
    });
    // All have the same number of messages in the server and put the same number into their
    // sockets.
    for (n, producer) in all.iter_mut().enumerate() {
        producer.unsent.extend(frames(n, HELD, EACH));
    }
    wait_until("the rest is in the sockets", || {
        all.iter_mut().for_each(Busy::pump);
        all.iter().all(|p| p.at == p.unsent.len())
    });
    wire.command(&["CLIENT", "UNPAUSE"]).expect("answered");
    wait_until("all are in", || {
        all.iter_mut().for_each(Busy::pump);
        all.iter().all(|p| p.acked == EACH)
    });
    assert_eq!(number(&mut wire, "ingest_duplicates"), 0);
    assert_eq!(number(&mut wire, "ingest_producers"), PRODUCERS as u64);
    let (mut counts, mut first_through) = (vec![0; PRODUCERS], None);
    for (producer, number) in order_of(&mut wire, "s") {
        counts[producer] += 1;
        assert_eq!(number, counts[producer], "of producer {producer}");
        if number == EACH && first_through.is_none() {
            first_through = Some(*counts.iter().min().expect("many"));
        }
    }
    assert!(counts.iter().all(|n| *n == EACH), "nothing is lost");
    let least = first_through.expect("a producer finished first");
    // On io_uring a stream whose receive is armed first takes as many of the shared buffers as it
    // fills: shares are equal over longer times than this one.
    if io_backend().as_deref() != Some("io_uring") {
        assert!(least >= EACH / 2, "the last one had {least} when the first one had all");
    }
}

#[test]
fn a_full_server_applies_back_pressure_to_the_producer() {
    let server = start(&["protocol=2"], &[]);
    let (mut wire, mut other) = (server.connect(), server.connect());
    let addr = address(&mut wire, 0);
    let Ok(Value::Bulk(text)) = wire.command(&["INFO", "memory"]) else { panic!("INFO answers") };
    let text = String::from_utf8(text).expect("text");
    let used = text.lines().find_map(|l| l.strip_prefix("used_memory:")).expect("a field of INFO");
    let max = used.parse::<u64>().expect("a number") + (8 << 20);
    wire.command(&["CONFIG", "SET", "maxmemory", &max.to_string()]).expect("answered");
    const ALL: u64 = 40_000;
    let payload: &[u8] = &[b'x'; 1_000];
    let bytes: Vec<u8> = (0..ALL / 20).flat_map(|n| data(1 + n * 20, &[payload; 20])).collect();
    let mut producer = Busy::new(addr, &Hello::new("p", "s"), bytes);
    let mut free = Busy::new(addr, &Hello::new("q", ""), data(1, &[payload; 20]));
    wait_until("it is held back", || {
        producer.pump();
        number(&mut wire, "ingest_blocked_connections") == 1
    });
    // The sockets fill up, and then nothing more is accepted.
    let mut quiet = 0;
    wait_until("nothing more is taken", || {
        let before = (producer.at, producer.acked);
        producer.pump();
        quiet = if before == (producer.at, producer.acked) { quiet + 1 } else { 0 };
        quiet > 100
    });
    assert!(producer.at < producer.unsent.len(), "back pressure reaches the producer");
    let held = integer(&mut wire, &["XLEN", "s"]);
    assert!(producer.acked > 0 && producer.acked <= held && held < ALL);
    wait_until("a producer without a sink continues", || {
        free.pump();
        free.acked == 20
    });
    assert_eq!(other.command(&["PING"]).expect("served"), Value::Simple("PONG".into()));
    assert!(matches!(other.command(&["SET", "a", "b"]), Ok(Value::Error(_))));
    let mut consumed = 0;
    wait_until("it resumes when memory is free", || {
        producer.pump();
        if number(&mut wire, "ingest_blocked_connections") == 1 {
            consumed += integer(&mut other, &["XTRIM", "s", "MAXLEN", "0"]);
        }
        producer.acked == ALL
    });
    assert_eq!(consumed + integer(&mut wire, &["XLEN", "s"]), ALL, "each once");
}

/// The old connection is processing a read of very many frames when a new one on the other worker
/// gets its Welcome.
#[test]
fn no_messages_are_added_after_a_welcome() {
    const FRAMES: u64 = 60_000;
    let server = start(&["protocol=2"], &[]);
    let mut wire = server.connect();
    let addr = address(&mut wire, 0);
    let bytes: Vec<u8> = (1..=FRAMES).flat_map(|n| data(n, &[b"old"])).collect();
    let mut early = 0;
    for round in 0..20 {
        let key = format!("s{round}");
        let (mut old, _) = Producer::greet(addr, &Hello::new("p", &key));
        let mut writer = old.stream.try_clone().expect("a second handle");
        let bytes = bytes.clone();
        let flood = std::thread::spawn(move || writer.write_all(&bytes).is_ok());
        wait_until("some of it is in", || integer(&mut wire, &["XLEN", &key]) > 0);
        let (new, answer) = Producer::greet(addr, &Hello::new("p", &key));
        let Answer::Welcome(held, _) = answer else { panic!("{answer:?}") };
        assert_eq!(old.error(), (10, held));
        assert_eq!(integer(&mut wire, &["XLEN", &key]), held, "round {round}");
        early += u64::from(held < FRAMES);
        drop((old, new));
        flood.join().expect("it only writes");
    }
    assert!(early > 0, "it was never taken over in the middle");
}

#[test]
fn a_reconnected_producer_resumes() {
    let server = start(&["protocol=2"], &[]);
    let mut wire = server.connect();
    let addr = address(&mut wire, 0);
    let texts: Vec<String> = (1..=1_000).map(|n| format!("m{n}")).collect();
    let mut last = 0;
    for round in 0..50u64 {
        let (mut producer, answer) = Producer::greet(addr, &Hello::new("p", "s"));
        let Answer::Welcome(held, _) = answer else { panic!("{answer:?}") };
        assert!(held >= last, "what was acknowledged is held");
        let first = held.saturating_sub(round % 3).max(1);
        let end = (held + 20).min(1_000);
        let payloads: Vec<&[u8]> =
            texts[first as usize - 1..end as usize].iter().map(String::as_bytes).collect();
        let bytes = data(first, &payloads);
        if round % 2 == 0 {
            producer.send(&[bytes, flush()].concat());
            producer.until_acked(end);
            last = end;
        } else {
            producer.send(&bytes[..bytes.len() - (round as usize % 20)]);
        }
    }
    let (mut producer, answer) = Producer::greet(addr, &Hello { flags: 1, ..Hello::new("p", "s") });
    let Answer::Welcome(held, _) = answer else { panic!("{answer:?}") };
    let rest: Vec<&[u8]> = texts[held as usize..].iter().map(String::as_bytes).collect();
    if !rest.is_empty() {
        producer.send(&[data(held + 1, &rest), flush()].concat());
        producer.until_acked(1_000);
    }
    producer.send(&frame(4, &[]));
    assert_eq!(producer.stream.read(&mut [0; 64]).expect("an orderly end"), 0);
    let Ok(Value::Array(all)) = wire.command(&["XRANGE", "s", "-", "+"]) else { panic!("entries") };
    assert_eq!(all.len(), 1_000);
    for (entry, text) in all.iter().zip(&texts) {
        assert!(format!("{entry:?}").contains(&format!("{:?}", Value::Bulk(text.clone().into()))));
    }
    assert!(number(&mut wire, "ingest_duplicates") > 0);
}

#[test]
fn info_fields_and_resetstat() {
    let admin = free_addr().expect("a free port");
    let port = admin.port().to_string();
    let server = start(&["protocol=2"], &["--admin-port", &port]);
    let mut wire = server.connect();
    let addr = address(&mut wire, 0);
    let (mut producer, _) = Producer::greet(addr, &Hello::new("p", ""));
    producer.send(&[data(1, &[b"x", b"y"]), data(1, &[b"x"]), flush()].concat());
    producer.until_acked(2);
    producer.send(&data(9, &[b"x"]));
    assert_eq!(producer.error(), (13, 2));
    wait_until("it is gone", || {
        number(&mut wire, "ingest_connections") == 0 || {
            let _ = producer.stream.shutdown(std::net::Shutdown::Both);
            false
        }
    });
    let body = http::get(admin, "/metrics", &[]).expect("it answers").body;
    let labels = format!("{{strategy=\"protocol-2\",address=\"{addr}\",sink=\"any\"");
    for (name, value) in [
        (format!("sheafdb_ingest_messages_total{labels}}}"), 2),
        (format!("sheafdb_ingest_duplicates_total{labels}}}"), 1),
        (format!("sheafdb_ingest_blocked_connections{labels}}}"), 0),
        (format!("sheafdb_ingest_takeovers_total{labels}}}"), 0),
        (format!("sheafdb_ingest_error_frames_total{labels},code=\"gap\"}}"), 1),
        ("sheafdb_ingest_producers".into(), 1),
    ] {
        assert!(body.lines().any(|l| l == format!("{name} {value}")), "{name} {value}\n{body}");
    }
    wire.command(&["CONFIG", "RESETSTAT"]).expect("answered");
    for name in ["messages", "duplicates", "acks", "credits"] {
        assert_eq!(number(&mut wire, &format!("ingest_{name}")), 0, "{name}");
    }
    assert!(field(&mut wire, "ingest_error_codes").contains("gap=0"));
    assert_eq!(number(&mut wire, "ingest_producers"), 1, "it is remembered");
    let (_, answer) = Producer::greet(addr, &Hello { flags: 1, ..Hello::new("p", "") });
    assert!(matches!(answer, Answer::Welcome(2, _)), "{answer:?}");
}
