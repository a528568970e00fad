//! The ledger, and the test vectors of protocol 2 applied to options, ledger and state.

use std::collections::BTreeMap;

use ingest::v2::{Acking, Level, Reader, SinkKind, Welcome, write_data_header, write_message};

use crate::ledger::{Bounds, Ledger};
use crate::state::{End, Shared};
use crate::{Error, Fault, Options};

const VECTORS: &str = include_str!("../../../docs/formats/ingest2-vectors.txt");
const BOUNDS: Bounds = Bounds { bytes: 100, messages: 5, frame_bytes: 20 };
const WELCOME: Welcome = Welcome {
    level: Level::Received,
    acking: Acking::Adaptive,
    max_message: 50,
    max_frame: 100,
    idle_ms: 0,
    last_id: 0,
    durable: 0,
    credit: 1000,
};

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The lines of one kind: their words and bytes.
fn vectors(kind: &str) -> impl Iterator<Item = (BTreeMap<&'static str, &'static str>, Vec<u8>)> {
    let kind = format!("{kind} ");
    VECTORS.lines().filter(move |line| line.starts_with(&kind)).map(|line| {
        let (words, hex) = line.split_once(" = ").expect("what stands there, and its bytes");
        (words.split(' ').filter_map(|word| word.split_once('=')).collect(), unhex(hex))
    })
}

fn data(first: u64, payloads: &[&[u8]]) -> Vec<u8> {
    let mut messages = Vec::new();
    for payload in payloads {
        write_message(&mut messages, payload);
    }
    let mut out = Vec::new();
    write_data_header(&mut out, first, messages.len());
    out.extend(messages);
    out
}

fn ledger(welcome: Welcome) -> Ledger {
    let mut ledger = Ledger::new(BOUNDS);
    ledger.begin(&welcome, true).expect("the first");
    ledger
}

fn frames(ledger: &mut Ledger) -> Vec<Vec<u8>> {
    let next = || {
        let mut out = Vec::new();
        ledger.next_frame(&mut out).then_some(out)
    };
    std::iter::from_fn(next).collect()
}

fn add(ledger: &mut Ledger, payloads: &[&[u8]]) {
    for payload in payloads {
        assert!(ledger.has_room(payload.len()));
        ledger.add(payload).expect("numbers are left");
    }
}

#[test]
fn hello_frames_match_the_vectors() {
    let mut count = 0;
    for (words, bytes) in vectors("frame hello") {
        let number = |name| words.get(name).map_or(0, |v| v.parse::<u64>().expect("a number"));
        let text = |name| words.get(name).map(|v| unhex(v)).unwrap_or_default();
        let mut options = Options::new("", text("producer"));
        options.level = Level::ALL[number("level") as usize];
        options.strategy = Acking::ALL[number("strategy") as usize];
        options.sink = SinkKind::ALL[number("sink") as usize];
        options.ack_messages = number("ack_messages") as u32;
        options.ack_micros = number("ack_micros") as u32;
        (options.db, options.maxlen) = (number("db") as u32, number("maxlen"));
        (options.key, options.user) = (text("key"), text("user"));
        options.password = text("password");
        options.exact = number("flags") & 2 != 0;
        assert_eq!(options.hello(number("flags") & 1 != 0).expect("not too long"), bytes);
        count += 1;
    }
    assert!(count >= 4);
    let mut options = Options::new("", "p");
    options.password = vec![b'x'; 8192];
    assert!(matches!(options.hello(false), Err(Error::Options(_))));
}

#[test]
fn data_frames_match_the_vectors() {
    for (words, bytes) in vectors("frame data") {
        let first: u64 = words["first_id"].parse().expect("a number");
        let bounds = Bounds { bytes: 1000, messages: 10, frame_bytes: 1000 };
        let mut ledger = Ledger::new(bounds);
        ledger.begin(&Welcome { last_id: first - 1, ..WELCOME }, true).expect("the first");
        for payload in words["messages"].split(',') {
            ledger.add(&unhex(payload)).expect("numbers are left");
        }
        assert_eq!(frames(&mut ledger), [bytes]);
    }
}

#[test]
fn invalid_server_frames_end_the_producer() {
    let mut count = 0;
    for (_, bytes) in vectors("bad s") {
        let taken = Shared::new(Ledger::new(BOUNDS)).on_input(&mut Reader::new(), &bytes);
        assert!(matches!(taken, Err(End::Failed(Error::Protocol(_)))), "{taken:?}");
        count += 1;
    }
    assert!(count >= 5);
    for kind in ["ack", "credit"] {
        for (_, bytes) in vectors(&format!("frame {kind}")) {
            let taken = Shared::new(Ledger::new(BOUNDS)).on_input(&mut Reader::new(), &bytes);
            assert!(matches!(taken, Err(End::Failed(Error::Protocol(_)))), "before a Welcome");
        }
    }
}

#[test]
fn errors_contain_code_and_text() {
    for (words, bytes) in vectors("frame error") {
        let taken = Shared::new(Ledger::new(BOUNDS)).on_input(&mut Reader::new(), &bytes);
        let Err(End::Failed(Error::Server(error))) = taken else { panic!("{taken:?}") };
        assert_eq!(error.code.to_string(), words["code"]);
        assert_eq!(error.id.to_string(), *words.get("id").unwrap_or(&"0"));
        let text = words.get("text").map(|v| unhex(v)).unwrap_or_default();
        assert_eq!(error.text.as_bytes(), text);
        assert_eq!(Error::Server(error.clone()).fault(), Fault::from_code(error.code));
    }
}

#[test]
fn room_is_limited_by_bytes_and_by_messages() {
    let mut many = ledger(WELCOME);
    add(&mut many, &[b"", b"", b"", b"", b""]);
    assert!(!many.has_room(0));
    let mut large = ledger(WELCOME);
    add(&mut large, &[&[0; 50]]);
    assert!(large.has_room(42) && !large.has_room(43));
}

#[test]
fn frames_are_packed_and_acknowledged() {
    let mut ledger = ledger(Welcome { last_id: 6, ..WELCOME });
    add(&mut ledger, &[b"aaaa", b"bbbb", &[b'c'; 30], b"d"]);
    let wanted = [data(7, &[b"aaaa", b"bbbb"]), data(9, &[&[b'c'; 30]]), data(10, &[b"d"])];
    assert_eq!(frames(&mut ledger), wanted);
    ledger.ack(8, 0).expect("sent");
    assert_eq!((ledger.acknowledged(), ledger.last()), (8, 10));
    let left: Vec<_> = ledger.unacknowledged().collect();
    assert_eq!(left, [(9, &[b'c'; 30][..]), (10, b"d")]);
    for wrong in [7, 11] {
        assert!(matches!(ledger.ack(wrong, 0), Err(Error::Protocol(_))), "{wrong}");
    }
    ledger.ack(10, 0).expect("sent");
    assert_eq!(ledger.unacknowledged().count(), 0);
}

#[test]
fn credit_is_used_to_the_byte() {
    let mut ledger = ledger(Welcome { credit: 24, ..WELCOME });
    add(&mut ledger, &[b"aaaa", b"b"]);
    assert_eq!(frames(&mut ledger), [data(1, &[b"aaaa"])]);
    for limit in [24 + 20, 10] {
        ledger.grant(limit);
        assert!(frames(&mut ledger).is_empty());
    }
    ledger.grant(24 + 21);
    assert_eq!(frames(&mut ledger), [data(2, &[b"b"])]);
}

#[test]
fn a_new_connection_sends_unacknowledged_messages_again() {
    let mut ledger = ledger(WELCOME);
    add(&mut ledger, &[b"1", b"2", b"3", b"4"]);
    assert_eq!(frames(&mut ledger).len(), 2);
    ledger.ack(1, 0).expect("sent");
    ledger.begin(&Welcome { last_id: 2, ..WELCOME }, false).expect("between");
    assert_eq!(frames(&mut ledger), [data(3, &[b"3", b"4"])]);
    for held in [1, 5] {
        let begun = ledger.begin(&Welcome { last_id: held, ..WELCOME }, false);
        assert_eq!(begun, Err(Error::NumbersDisagree { held, acknowledged: 2, last: 4 }));
    }
    let begun = ledger.begin(&Welcome { last_id: 2, max_message: 0, ..WELCOME }, false);
    assert_eq!(begun, Err(Error::TooLarge { size: 1, max: 0 }));
    let begun = ledger.begin(&Welcome { last_id: 2, max_frame: 11, ..WELCOME }, false);
    assert!(matches!(begun, Err(Error::Protocol(_))));
}

#[test]
fn the_last_number_is_assigned_once() {
    let mut ledger = ledger(Welcome { last_id: u64::MAX - 1, ..WELCOME });
    assert_eq!(ledger.add(b"a"), Ok(u64::MAX));
    assert_eq!(ledger.add(b"b"), Err(Error::NumbersEnd));
    assert_eq!(frames(&mut ledger), [data(u64::MAX, &[b"a"])]);
    ledger.ack(u64::MAX, 0).expect("sent");
}

/// Many small messages through a small buffer: it does not grow, and no message is lost.
#[test]
fn the_buffer_stays_within_twice_its_limit() {
    let mut ledger = ledger(Welcome { credit: u64::MAX, ..WELCOME });
    for n in 0..100_000u64 {
        let payload = n.to_le_bytes();
        while !ledger.has_room(payload.len()) {
            let next = ledger.acknowledged() + 1 + n % 2;
            ledger.ack(next.min(ledger.last()), 0).expect("sent");
        }
        ledger.add(&payload).expect("numbers are left");
        frames(&mut ledger);
        assert!(ledger.buffer_bytes() <= 2 * BOUNDS.bytes, "{n}");
        let first = ledger.unacknowledged().next().expect("one is there");
        assert_eq!(first.1, (first.0 - 1).to_le_bytes());
    }
}
