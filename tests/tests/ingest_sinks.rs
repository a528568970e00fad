//! Classic ingest into lists and streams on the whole server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Instant;

use sheafdb_tests::in_time::{LIMIT, until};
use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

fn start(threads: &str, listen: &[&str]) -> ServerProcess {
    let mut args = vec!["--threads", threads];
    for one in listen {
        args.extend(["--ingest-listen", one]);
    }
    ServerProcess::start(&Binary::under_test(), &args)
}

fn text(value: Value) -> String {
    match value {
        Value::Bulk(text) => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

/// A field of a listener's line in INFO.
fn field(wire: &mut Wire, listener: usize, name: &str) -> String {
    let info = text(wire.command(&["INFO", "ingest"]).expect("answered"));
    let prefix = format!("ingest_listener{listener}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix)).expect("a listener");
    let field = line.split(',').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    field.unwrap_or_else(|| panic!("no {name} in {line}")).to_owned()
}

fn connect(wire: &mut Wire, listener: usize) -> TcpStream {
    let addr: SocketAddr = field(wire, listener, "address").parse().expect("an address");
    let stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    stream.set_write_timeout(Some(LIMIT)).expect("a limit");
    stream
}

/// Messages with these numbers, which are also their payloads.
fn messages(ids: std::ops::Range<u64>) -> Vec<u8> {
    let message = |id: u64| {
        let payload = format!("payload-{id}");
        [&id.to_le_bytes()[..], &(payload.len() as u32).to_le_bytes(), payload.as_bytes()].concat()
    };
    ids.flat_map(message).collect()
}

/// Reads acknowledgements until this many messages are acknowledged in total.
fn read_acks(stream: &mut TcpStream, acknowledged: &mut u64, until: u64) {
    while *acknowledged < until {
        let mut ack = [0; 12];
        stream.read_exact(&mut ack).expect("an acknowledgement");
        let (id, skipped) = ack.split_at(8);
        *acknowledged += u64::from(u32::from_le_bytes(skipped.try_into().expect("4 bytes"))) + 1;
        let id = u64::from_le_bytes(id.try_into().expect("8 bytes"));
        assert_eq!(id + 1, *acknowledged);
    }
}

fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(members) => members,
        other => panic!("{other:?}"),
    }
}

/// Number and payload of an entry.
fn entry(value: Value) -> (u64, String) {
    let fields = array(array(value).remove(1));
    let [_, id, _, data] = <[Value; 4]>::try_from(fields).expect("two fields");
    (text(id).parse().expect("a number"), text(data))
}

fn a_reader_gets_all_in_order(threads: &str) {
    const COUNT: u64 = 20_000;
    let server = start(threads, &["127.0.0.1:0 strategy=sync sink=stream:s db=2"]);
    let mut wire = server.connect();
    assert_eq!(field(&mut wire, 0, "sink"), "stream:s");
    let mut reader = server.connect();
    reader.command(&["SELECT", "2"]).expect("answered");
    let reader = std::thread::spawn(move || {
        let (mut last, mut next) = ("0".to_owned(), 0);
        while next < COUNT {
            let read =
                reader.command(&["XREAD", "COUNT", "1000", "BLOCK", "0", "STREAMS", "s", &last]);
            let entries = array(array(array(read.expect("answered")).remove(0)).remove(1));
            let Some(Value::Array(newest)) = entries.last() else { panic!("no entry") };
            last = text(newest[0].clone());
            for value in entries {
                assert_eq!(entry(value), (next, format!("payload-{next}")));
                next += 1;
            }
        }
    });
    let mut stream = connect(&mut wire, 0);
    let mut acknowledged = 0;
    for block in 0..COUNT / 500 {
        stream.write_all(&messages(block * 500..(block + 1) * 500)).expect("it reads");
        if block % 7 == 0 {
            read_acks(&mut stream, &mut acknowledged, (block + 1) * 500);
        }
    }
    read_acks(&mut stream, &mut acknowledged, COUNT);
    reader.join().expect("the reader sees everything in order");
    assert_eq!(field(&mut wire, 0, "messages"), COUNT.to_string());
}

#[test]
fn a_reader_that_blocks_gets_all_in_order_with_one_worker() {
    a_reader_gets_all_in_order("1");
}

#[test]
fn a_reader_that_blocks_gets_all_in_order_with_two_workers() {
    a_reader_gets_all_in_order("2");
}

/// All consumers wait before the first message arrives: only the message itself can wake them.
fn waiters_are_woken(threads: &str) {
    let server = start(
        threads,
        &["127.0.0.1:0 strategy=sync sink=stream:s", "127.0.0.1:0 strategy=sync sink=list:l"],
    );
    let mut wire = server.connect();
    wire.command(&["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]).expect("answered");
    let waiters = [
        ["XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >"],
        ["BLPOP l 0", "BLMOVE l other LEFT RIGHT 0"],
    ];
    for (listener, lines) in waiters.into_iter().enumerate() {
        let mut waiting: Vec<Wire> = Vec::new();
        for line in lines {
            let mut waiter = server.connect();
            waiter.send(&encode(&line.split(' ').collect::<Vec<_>>())).expect("sent");
            waiting.push(waiter);
            let blocked = format!("blocked_clients:{}", waiting.len());
            until(&blocked, || {
                text(wire.command(&["INFO", "clients"]).expect("answered")).contains(&blocked)
            });
        }
        let (mut stream, mut acknowledged) = (connect(&mut wire, listener), 0);
        stream.write_all(&messages(0..2)).expect("it reads");
        read_acks(&mut stream, &mut acknowledged, 2);
        for mut waiter in waiting {
            let reply = render::line(&waiter.receive().expect("it is woken"));
            assert!(reply.contains("payload-"), "{reply}");
        }
    }
    let moved = wire.command(&["LRANGE", "other", "0", "-1"]).expect("answered");
    assert_eq!(render::line(&moved), "*1 \"payload-1\"");
    assert_eq!(wire.command(&["LLEN", "l"]).expect("answered"), Value::Int(0));
}

#[test]
fn waiters_for_messages_are_woken_by_one_worker() {
    waiters_are_woken("1");
}

#[test]
fn waiters_for_messages_are_woken_across_workers() {
    waiters_are_woken("2");
}

/// Maximum number of messages written under one lock.
const AT_ONCE_MAX: u64 = 4096;

/// One line for each part of a block; a long block is written in parts, so that no client waits
/// long for the lock.
#[test]
fn monitor_shows_blocks_in_bounded_parts() {
    const COUNT: u64 = 60_000;
    let server = start("1", &["127.0.0.1:0 strategy=sync sink=list:l db=3"]);
    let (mut wire, mut monitor) = (server.connect(), server.connect());
    assert_eq!(render::line(&monitor.command(&["MONITOR"]).expect("answered")), "+OK");
    let (mut stream, mut acknowledged) = (connect(&mut wire, 0), 0);
    let empty = |id: u64| [&id.to_le_bytes()[..], &[0; 4]].concat();
    stream.write_all(&(0..COUNT).flat_map(empty).collect::<Vec<u8>>()).expect("it reads");
    let (mut seen, mut most) = (0, 0);
    while seen < COUNT {
        let line = render::line(&monitor.receive().expect("another part"));
        let Some((_, count)) = line.split_once("[3 ingest] \\\"INGEST\\\" \\\"list:l\\\" \\\"")
        else {
            assert!(line.contains("INFO"), "{line}");
            continue;
        };
        let count = count.trim_end_matches(['\\', '"']).parse::<u64>().expect("a count");
        (seen, most) = (seen + count, most.max(count));
    }
    assert_eq!(seen, COUNT);
    assert!(most <= AT_ONCE_MAX, "{most} at once");
    read_acks(&mut stream, &mut acknowledged, COUNT);
}

/// A consumer which reads until all messages have been delivered to some consumer.
fn worker(
    mut wire: Wire,
    got_by_all: &Arc<AtomicU64>,
    request: Vec<String>,
    found: fn(Value) -> Vec<u64>,
) -> JoinHandle<Vec<u64>> {
    let got_by_all = Arc::clone(got_by_all);
    std::thread::spawn(move || {
        let (mut got, began) = (Vec::new(), Instant::now());
        while got_by_all.load(Relaxed) < SHARED {
            assert!(began.elapsed() < LIMIT, "{} of {SHARED}", got_by_all.load(Relaxed));
            let ids = found(wire.command(&request).expect("answered"));
            got_by_all.fetch_add(ids.len() as u64, Relaxed);
            got.extend(ids);
        }
        got
    })
}

/// Messages shared by the consumers.
const SHARED: u64 = 3_000;

#[test]
fn consumers_of_a_group_and_of_a_list_share_the_work() {
    let server = start(
        "2",
        &["127.0.0.1:0 strategy=sync sink=stream:s", "127.0.0.1:0 strategy=async sink=list:l"],
    );
    let mut wire = server.connect();
    wire.command(&["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]).expect("answered");
    let entries = |reply| match reply {
        Value::NullArray => Vec::new(),
        reply => {
            let entries = array(array(array(reply).remove(0)).remove(1));
            entries.into_iter().map(|value| entry(value).0).collect()
        }
    };
    let element = |reply| match reply {
        Value::NullArray => Vec::new(),
        reply => vec![text(array(reply).remove(1))["payload-".len()..].parse().expect("a number")],
    };
    let words = |line: String| line.split(' ').map(str::to_owned).collect();
    let (read, popped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut consumers = Vec::new();
    let mut poppers = Vec::new();
    for n in 0..3 {
        let request = words(format!("XREADGROUP GROUP g c{n} COUNT 50 BLOCK 100 STREAMS s >"));
        consumers.push(worker(server.connect(), &read, request, entries));
        let request = words("BLPOP l 0.1".into());
        poppers.push(worker(server.connect(), &popped, request, element));
    }
    for listener in 0..2 {
        let (mut stream, mut acknowledged) = (connect(&mut wire, listener), 0);
        for block in 0..SHARED / 100 {
            stream.write_all(&messages(block * 100..(block + 1) * 100)).expect("it reads");
        }
        read_acks(&mut stream, &mut acknowledged, SHARED);
    }
    for workers in [consumers, poppers] {
        let got = workers.into_iter().flat_map(|worker| worker.join().expect("in peace"));
        let mut all: Vec<u64> = got.collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..SHARED), "each once");
    }
}

#[test]
fn a_full_server_stops_the_producer_and_resumes_without_loss() {
    const COUNT: u64 = 60_000;
    let server = start("2", &["127.0.0.1:0 strategy=sync sink=stream:s"]);
    let mut wire = server.connect();
    let (mut stream, mut acknowledged) = (connect(&mut wire, 0), 0);
    stream.write_all(&messages(0..1_000)).expect("it reads");
    read_acks(&mut stream, &mut acknowledged, 1_000);
    let bytes: u64 = field(&mut wire, 0, "bytes").parse().expect("a number");
    wire.command(&["CONFIG", "SET", "maxmemory", "1"]).expect("answered");
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || {
        for block in 1..COUNT / 1_000 {
            writer.write_all(&messages(block * 1_000..(block + 1) * 1_000)).expect("it reads");
        }
    });
    until("more is read", || {
        field(&mut wire, 0, "bytes").parse::<u64>().expect("a number") != bytes
    });
    let refused = wire.command(&["SET", "k", "v"]).expect("answered");
    assert!(matches!(refused, Value::Error(_)), "{refused:?}");
    let len = wire.command(&["XLEN", "s"]).expect("answered");
    assert_eq!(len, Value::Int(1_000), "nothing more is taken");
    wire.command(&["CONFIG", "SET", "maxmemory", "0"]).expect("answered");
    read_acks(&mut stream, &mut acknowledged, COUNT);
    writing.join().expect("everything is read");
    let entries = array(wire.command(&["XRANGE", "s", "-", "+"]).expect("answered"));
    assert_eq!(entries.len() as u64, COUNT);
    for (id, value) in (0..).zip(entries) {
        assert_eq!(entry(value), (id, format!("payload-{id}")));
    }
}

const MIB: usize = 1 << 20;

/// A server with a small memory limit, which a few large messages fill.
fn start_small(listen: &str) -> ServerProcess {
    let args = ["--threads", "2", "--maxmemory", "64mb", "--ingest-max-message", "32mb"];
    let args = [&args[..], &["--ingest-listen", listen]].concat();
    ServerProcess::start(&Binary::under_test(), &args)
}

/// A payload of less than half the limit of [`start_small`].
const LARGE_BYTES: usize = 24 * MIB;

/// The beginning of a message: its header, and this many bytes of its payload.
fn begin(id: u64, bytes: usize) -> Vec<u8> {
    let size = LARGE_BYTES as u32;
    [&id.to_le_bytes()[..], &size.to_le_bytes(), &vec![b'p'; bytes]].concat()
}

/// The clients' memory in INFO.
fn client_bytes(wire: &mut Wire) -> usize {
    let info = text(wire.command(&["INFO", "memory"]).expect("answered"));
    let line = info.lines().find_map(|line| line.strip_prefix("mem_clients_normal:"));
    line.expect("a line").parse().expect("a number")
}

#[test]
fn an_incomplete_message_counts_as_client_memory() {
    let server = start_small("127.0.0.1:0 strategy=sync sink=list:l");
    let mut wire = server.connect();
    let mut stream = connect(&mut wire, 0);
    stream.write_all(&begin(0, 14 * MIB)).expect("it reads");
    until("it is counted", || client_bytes(&mut wire) >= 14 * MIB);
    let mut acknowledged = 0;
    stream.write_all(&vec![b'p'; 10 * MIB]).expect("it reads");
    read_acks(&mut stream, &mut acknowledged, 1);
    until("it counts no more", || client_bytes(&mut wire) < MIB);
    stream.write_all(&begin(1, 10 * MIB)).expect("it reads");
    until("the next one is counted", || client_bytes(&mut wire) >= 10 * MIB);
    drop(stream);
    until("what is gone does not count", || client_bytes(&mut wire) < MIB);
}

/// Messages which may never be completed cannot fill the server, nor block other clients for ever.
#[test]
fn incomplete_messages_do_not_fill_the_server() {
    let server = start_small("127.0.0.1:0 strategy=sync sink=list:l");
    let mut wire = server.connect();
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(&mut wire, 0)).collect();
    for stream in &mut streams {
        // It is closed when it uses too much memory.
        let _ = stream.write_all(&begin(0, 20 * MIB));
        assert!(client_bytes(&mut wire) < 100 * MIB, "more than the limit and a message");
    }
    until("something is written again", || {
        let set = wire.command(&["SET", "k", "v"]).expect("answered");
        set == Value::Simple(b"OK".into())
    });
    let (mut other, mut acknowledged) = (connect(&mut wire, 0), 0);
    other.write_all(&messages(0..10)).expect("it reads");
    read_acks(&mut other, &mut acknowledged, 10);
    assert!(field(&mut wire, 0, "errors") != "0", "some were closed");
}

/// While data fills the server, large messages are not read further, and none is lost.
#[test]
fn a_full_server_reads_no_more_of_a_large_message() {
    let server = start_small("127.0.0.1:0 strategy=sync sink=list:l");
    let mut wire = server.connect();
    let mut stream = connect(&mut wire, 0);
    wire.command(&["CONFIG", "SET", "maxmemory", "1"]).expect("answered");
    let mut writer = stream.try_clone().expect("a second handle");
    let writing = std::thread::spawn(move || writer.write_all(&begin(0, LARGE_BYTES)));
    until("the message is read no further", || field(&mut wire, 0, "blocked_connections") == "1");
    let bytes = |wire: &mut Wire| field(wire, 0, "bytes").parse::<usize>().expect("a number");
    assert!(bytes(&mut wire) < 2 * MIB, "{} bytes are read", bytes(&mut wire));
    assert!(client_bytes(&mut wire) < 4 * MIB);
    wire.command(&["CONFIG", "SET", "maxmemory", "0"]).expect("answered");
    read_acks(&mut stream, &mut 0, 1);
    writing.join().expect("no panic").expect("everything is read");
    assert_eq!(wire.command(&["LLEN", "l"]).expect("answered"), Value::Int(1));
    until("it waits no more", || field(&mut wire, 0, "blocked_connections") == "0");
}

/// Producers which wait for memory are served one after the other as it becomes free. None is
/// closed, although their incomplete messages count as memory.
#[test]
fn producers_waiting_for_memory_are_not_closed() {
    let server = start_small("127.0.0.1:0 strategy=sync sink=list:l");
    let mut wire = server.connect();
    let value = "v".repeat(MIB);
    for n in 0..40 {
        wire.command(&["SET", &format!("k{n}"), &value]).expect("answered");
    }
    wire.command(&["CONFIG", "SET", "maxmemory", "32mb"]).expect("answered");
    let message =
        |id: u64| [&id.to_le_bytes()[..], &(MIB as u32).to_le_bytes(), &vec![b'p'; MIB]].concat();
    let mut streams: Vec<TcpStream> = (0..8).map(|_| connect(&mut wire, 0)).collect();
    let writers: Vec<_> = (0..)
        .zip(&streams)
        .map(|(id, stream)| {
            let mut writer = stream.try_clone().expect("a second handle");
            std::thread::spawn(move || writer.write_all(&message(id)))
        })
        .collect();
    until("all of them wait", || field(&mut wire, 0, "blocked_connections") == "8");
    for n in 0..40 {
        wire.command(&["DEL", &format!("k{n}")]).expect("answered");
    }
    for (id, stream) in (0..).zip(&mut streams) {
        read_acks(stream, &mut { id }, id + 1);
    }
    for writer in writers {
        writer.join().expect("no panic").expect("everything is read");
    }
    assert_eq!(wire.command(&["LLEN", "l"]).expect("answered"), Value::Int(8));
    assert_eq!(field(&mut wire, 0, "errors"), "0");
}

#[test]
fn a_bounded_stream_keeps_its_newest_entries() {
    let server = start(
        "1",
        &[
            "127.0.0.1:0 strategy=sync sink=stream:exact maxlen=1000",
            "127.0.0.1:0 strategy=sync sink=stream:rough maxlen=~1000",
        ],
    );
    let mut wire = server.connect();
    for (listener, key) in [(0, "exact"), (1, "rough")] {
        let (mut stream, mut acknowledged) = (connect(&mut wire, listener), 0);
        stream.write_all(&messages(0..5_000)).expect("it reads");
        read_acks(&mut stream, &mut acknowledged, 5_000);
        let entries = array(wire.command(&["XRANGE", key, "-", "+"]).expect("answered"));
        let len = entries.len() as u64;
        assert!(if listener == 0 { len == 1_000 } else { (1_000..1_100).contains(&len) }, "{len}");
        for (id, value) in (5_000 - len..5_000).zip(entries) {
            assert_eq!(entry(value).0, id);
        }
    }
}
