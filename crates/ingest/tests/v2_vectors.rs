//! The test vectors of protocol 2, `docs/formats/ingest2-vectors.txt`: encoded, and decoded with a
//! split at every byte.

use ingest::v2::{
    self, Ack, Acking, Event, Fault, Held, Hello, Intake, Level, Limits, Reader, ServerFrame,
    SinkKind, Welcome,
};
use ingest::{Layout, Messages};
use std::collections::BTreeMap;

const LIMITS: Limits = Limits { max_message: 16, max_frame: 64 };
const CREDIT: u64 = 128;

fn bytes(hex: &str) -> Vec<u8> {
    if hex == "-" {
        return Vec::new();
    }
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    assert_eq!(digits.len(), hex.chars().filter(|c| !c.is_whitespace()).count(), "{hex}");
    assert_eq!(digits.len() % 2, 0, "{hex}");
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    let text: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    text.concat()
}

/// Names and values of a `frame` line.
struct Values<'a>(BTreeMap<&'a str, &'a str>);

impl Values<'_> {
    fn number<T: TryFrom<u64>>(&self, name: &str) -> T {
        let value = self.0.get(name).map_or(0, |v| v.parse::<u64>().expect("a number"));
        T::try_from(value).ok().expect("it fits its field")
    }

    fn one_of<T: Copy>(&self, name: &str, all: &[T]) -> T {
        all[self.number::<usize>(name)]
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.get(name).map(|v| bytes(v)).unwrap_or_default()
    }
}

fn encode(kind: &str, v: &Values<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match kind {
        "hello" => {
            assert_eq!(v.number::<u16>("version"), v2::VERSION);
            let flags: u16 = v.number("flags");
            let [producer, key] = ["producer", "key"].map(|name| v.bytes(name));
            let [user, password] = ["user", "password"].map(|name| v.bytes(name));
            let hello = Hello {
                level: v.one_of("level", &Level::ALL),
                acking: v.one_of("strategy", &Acking::ALL),
                ack_messages: v.number("ack_messages"),
                ack_micros: v.number("ack_micros"),
                resume: flags & 1 != 0,
                exact: flags & 2 != 0,
                sink: v.one_of("sink", &SinkKind::ALL),
                db: v.number("db"),
                maxlen: v.number("maxlen"),
                producer: &producer,
                key: &key,
                user: &user,
                password: &password,
            };
            v2::write_hello(&mut out, &hello);
        }
        "data" => {
            let mut messages = Vec::new();
            for payload in v.0["messages"].split(',') {
                v2::write_message(&mut messages, &bytes(payload));
            }
            v2::write_data_header(&mut out, v.number("first_id"), messages.len());
            out.extend(messages);
        }
        "flush" => v2::write_flush(&mut out),
        "bye" => v2::write_bye(&mut out),
        "welcome" => {
            assert_eq!(v.number::<u16>("version"), v2::VERSION);
            let welcome = Welcome {
                level: v.one_of("level", &Level::ALL),
                acking: v.one_of("strategy", &Acking::ALL),
                max_message: v.number("max_message"),
                max_frame: v.number("max_frame"),
                idle_ms: v.number("idle_ms"),
                last_id: v.number("last_id"),
                durable: v.number("durable"),
                credit: v.number("credit"),
            };
            v2::write_welcome(&mut out, &welcome);
        }
        "ack" => {
            let ack = Ack {
                nothing_new: v.number::<u8>("flags") == 1,
                id: v.number("id"),
                skipped: v.number("skipped"),
                memory: v.number("memory"),
                durable: v.number("durable"),
            };
            v2::write_ack(&mut out, &ack);
        }
        "credit" => v2::write_credit(&mut out, v.number("limit")),
        "error" => {
            v2::write_error(&mut out, v.number("code"), v.number("id"), &v.bytes("text"));
        }
        other => panic!("'{other}' is no frame"),
    }
    out
}

/// A line as the document writes it, without fields which are 0 or empty.
#[derive(Default)]
struct Line(String);

impl Line {
    fn number(&mut self, name: &str, value: impl Into<u64>) -> &mut Self {
        let value = value.into();
        if value != 0 {
            self.0.extend([format!(" {name}={value}")]);
        }
        self
    }

    fn bytes(&mut self, name: &str, value: &[u8]) -> &mut Self {
        if !value.is_empty() {
            self.0.extend([format!(" {name}={}", hex(value))]);
        }
        self
    }
}

fn describe_hello(hello: &Hello<'_>) -> String {
    let mut line = Line("hello version=2".to_owned());
    line.number("level", hello.level as u8)
        .number("strategy", hello.acking as u8)
        .number("ack_messages", hello.ack_messages)
        .number("ack_micros", hello.ack_micros)
        .number("flags", u8::from(hello.resume) + 2 * u8::from(hello.exact))
        .number("sink", hello.sink as u8)
        .number("db", hello.db)
        .number("maxlen", hello.maxlen)
        .bytes("producer", hello.producer)
        .bytes("key", hello.key)
        .bytes("user", hello.user)
        .bytes("password", hello.password);
    line.0
}

fn describe_server(frame: ServerFrame<'_>) -> String {
    let mut line = Line::default();
    match frame {
        ServerFrame::Welcome(w) => {
            line.0.push_str("welcome version=2");
            line.number("level", w.level as u8)
                .number("strategy", w.acking as u8)
                .number("max_message", w.max_message)
                .number("max_frame", w.max_frame)
                .number("idle_ms", w.idle_ms)
                .number("last_id", w.last_id)
                .number("durable", w.durable)
                .number("credit", w.credit);
        }
        ServerFrame::Ack(a) => {
            line.0.push_str("ack");
            line.number("flags", u8::from(a.nothing_new))
                .number("id", a.id)
                .number("skipped", a.skipped)
                .number("memory", a.memory)
                .number("durable", a.durable);
        }
        ServerFrame::Credit(limit) => {
            line.0.push_str("credit");
            line.number("limit", limit);
        }
        ServerFrame::Error { code, id, text } => {
            line.0.push_str("error");
            line.number("code", code).number("id", id).bytes("text", text);
        }
    }
    line.0
}

/// What a producer's bytes decode to, in pieces of `step` bytes: the lines of complete frames, then
/// the fault, if any. Consecutive Messages of one Data frame are one line.
fn producer(intake: &mut Intake, bytes: &[u8], step: usize) -> (Vec<String>, Option<Fault>) {
    let (mut lines, mut fault, mut held) = (Vec::<String>::new(), None, Held::default());
    let mut expected = 0;
    for piece in bytes.chunks(step) {
        let mut input = piece;
        while let Some(event) = intake.next(&mut input) {
            assert_eq!(fault, None, "{event:?}");
            match event {
                Event::Hello(hello) => lines.push(describe_hello(&hello)),
                Event::Flush => lines.push("flush".to_owned()),
                Event::Bye => lines.push("bye".to_owned()),
                Event::Fault(why) => fault = Some(why),
                Event::Messages { first, count, bytes } => {
                    if let Err(why) = held.admit(first, count) {
                        return (lines, Some(why));
                    }
                    held.hold(first + (count - 1));
                    let all = Messages::new(bytes, Layout::Numbered(first));
                    let payloads: Vec<String> = all.map(|(_, payload)| hex(payload)).collect();
                    assert_eq!(payloads.len() as u64, count);
                    let payloads = payloads.join(",");
                    match lines.last_mut().filter(|_| expected == first) {
                        Some(line) => line.extend([",", &payloads]),
                        None => lines.push(format!("data first_id={first} messages={payloads}")),
                    }
                    expected = first.wrapping_add(count);
                }
            }
        }
    }
    (lines, fault)
}

fn server(bytes: &[u8], step: usize) -> (Vec<String>, Option<Fault>) {
    let (mut lines, mut fault, mut reader) = (Vec::new(), None, Reader::new());
    for piece in bytes.chunks(step) {
        let mut input = piece;
        while let Some(frame) = reader.next(&mut input) {
            assert_eq!(fault, None, "{frame:?}");
            match frame {
                Ok(frame) => lines.push(describe_server(frame)),
                Err(why) => fault = Some(why),
            }
        }
    }
    (lines, fault)
}

/// An intake whose Welcome was sent.
fn welcomed(limits: Limits, credit: u64) -> Intake {
    let mut intake = Intake::new(limits);
    let mut hello = Vec::new();
    v2::write_hello(&mut hello, &Hello { producer: b"p", ..Hello::default() });
    assert!(matches!(intake.next(&mut &hello[..]), Some(Event::Hello(_))));
    intake.grant(credit);
    intake
}

fn text() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/ingest2-vectors.txt");
    std::fs::read_to_string(path).expect("the vectors are there")
}

#[test]
fn every_frame_matches_the_document_in_both_directions() {
    let (text, mut kinds) = (text(), BTreeMap::<String, usize>::new());
    for line in text.lines().filter_map(|l| l.strip_prefix("frame ")) {
        let (what, coded) = line.split_once(" = ").expect("a line has bytes");
        let coded = bytes(coded);
        let mut words = what.split(' ');
        let kind = words.next().expect("a line has a type");
        let values = words.map(|word| word.split_once('=').expect("NAME=VALUE")).collect();
        assert_eq!(hex(&encode(kind, &Values(values))), hex(&coded), "{what}");
        *kinds.entry(kind.to_owned()).or_default() += 1;
        let limits = Limits { max_message: 1 << 20, max_frame: (1 << 20) + 12 };
        for step in 1..=coded.len() {
            let (lines, fault) = match kind {
                "hello" => producer(&mut Intake::new(limits), &coded, step),
                "data" | "flush" | "bye" => producer(&mut welcomed(limits, 1 << 22), &coded, step),
                _ => server(&coded, step),
            };
            assert_eq!(fault, None, "{what} by {step}");
            assert_eq!(lines, [what], "by {step}");
        }
    }
    assert_eq!(kinds.len(), 8, "each type: {kinds:?}");
}

#[test]
fn every_fault_is_found_for_any_split() {
    let (text, mut codes) = (text(), BTreeMap::<u16, usize>::new());
    for line in text.lines().filter_map(|l| l.strip_prefix("bad ")) {
        let (what, coded) = line.split_once(" = ").expect("a line has bytes");
        let (from, code) = what.split_once(' ').expect("FROM CODE");
        let code: u16 = code.parse().expect("a code");
        let coded = bytes(coded);
        let begins = code == Fault::NoHello.code() || coded.get(4) == Some(&1);
        let run = |step| match from {
            "p" if begins => producer(&mut Intake::new(LIMITS), &coded, step),
            "p" => producer(&mut welcomed(LIMITS, CREDIT), &coded, step),
            "s" => server(&coded, step),
            other => panic!("'{other}' sends nothing"),
        };
        let whole = run(coded.len());
        assert_eq!(whole.1.map(Fault::code), Some(code), "{line}");
        for step in 1..coded.len() {
            assert_eq!(run(step), whole, "{line} by {step}");
        }
        *codes.entry(code).or_default() += 1;
    }
    let found: Vec<u16> = codes.keys().copied().collect();
    assert_eq!(found, [1, 2, 3, 4, 7, 8, 12, 13], "each fault that bytes alone prove");
}
