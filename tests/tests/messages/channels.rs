//! Very many channels, and very many patterns that do not match.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use sheafdb_tests::big::figure;
use sheafdb_tests::in_time::until;
use sheafdb_tests::server_process::{Kind, ServerProcess};
use sheafdb_tests::stress::CountAtEnd;
use sheafdb_tests::wire::{Value, Wire, encode};
use sheafdb_tests::workers;

use super::flow::Flow;
use super::{LEFT_BYTES_MAX, ask, ok, sized, start, used};

const CONNECTIONS: usize = 4;
/// So many names are in one request.
const TOGETHER: usize = 12_500;
/// Used bytes for each channel with one subscriber, its name of 15 bytes included: 327 on one
/// worker and 297 on two, where redis-server 7.0 takes 208.
const CHANNEL_BYTES_MAX: i64 = 360;

fn request(command: &str, names: Range<usize>) -> Vec<u8> {
    let mut text = format!("*{}\r\n${}\r\n{command}\r\n", names.len() + 1, command.len());
    names.for_each(|n| write!(text, "$15\r\nchannel:{n:07}\r\n").expect("memory"));
    text.into_bytes()
}

/// The replies to such a request; `count` is how many subscriptions the client has behind each.
fn confirmed(word: &str, names: Range<usize>, count: impl Fn(usize) -> usize) -> Vec<u8> {
    let mut text = String::new();
    for n in names {
        let head = format_args!("*3\r\n${}\r\n{word}\r\n", word.len());
        write!(text, "{head}$15\r\nchannel:{n:07}\r\n:{}\r\n", count(n)).expect("memory");
    }
    text.into_bytes()
}

/// Another client, while so many threads are at work: it is answered all the time. Prints how
/// often, and how many different numbers of channels it has seen.
fn ask_meanwhile(what: &str, wire: &mut Wire, working: &AtomicUsize) {
    let (mut replies, mut seen, mut last) = (0, 0, -1);
    while working.load(Ordering::Acquire) > 0 {
        assert_eq!(ask(wire, "PING"), Value::Simple(b"PONG".to_vec()));
        assert_eq!(ask(wire, "GET k"), Value::Bulk(b"v".to_vec()));
        let now = figure(wire, "stats", "pubsub_channels");
        seen += u64::from(now != last);
        (last, replies) = (now, replies + 3);
    }
    println!("{what}: {replies} replies meanwhile, at {seen} different numbers of channels");
}

/// Connections subscribe to a million channels in all and leave them, in their own ways. What a
/// channel takes is bounded, messages arrive, and in the end nothing is left.
/// (`SHEAFDB_SERVER=redis-server` runs it on the reference; what each takes is printed.)
#[test]
fn a_million_channels_come_and_go() {
    for threads in [1, 2] {
        let server = start(threads, &["--client-output-buffer-limit", "pubsub 0 0 0"]);
        channels_come_and_go(&server, threads);
    }
}

fn channels_come_and_go(server: &ServerProcess, threads: usize) {
    let each = sized(1_000_000) / CONNECTIONS;
    let all = each * CONNECTIONS;
    let mut other = server.connect();
    ok(&mut other, "SET k v");
    let mut flows: Vec<Flow> = (0..CONNECTIONS).map(|_| Flow::connect(server)).collect();
    for flow in &mut flows {
        flow.send(b"PING\r\n");
        flow.expect(b"+PONG\r\n");
    }
    let before = used(&mut other);
    let working = AtomicUsize::new(CONNECTIONS);
    std::thread::scope(|scope| {
        for (flow, first) in flows.iter_mut().zip((0..).step_by(each)) {
            let working = &working;
            scope.spawn(move || {
                let _end = CountAtEnd(working);
                for from in (first..first + each).step_by(TOGETHER) {
                    let names = from..from + TOGETHER;
                    flow.send(&request("SUBSCRIBE", names.clone()));
                    flow.expect(&confirmed("subscribe", names, |n| n - first + 1));
                }
            });
        }
        ask_meanwhile("subscribing", &mut other, &working);
    });
    assert_eq!(figure(&mut other, "stats", "pubsub_channels"), all as i64);
    let taken = (used(&mut other) - before) / all as i64;
    println!("{all} channels on {threads} workers: {taken} bytes each");
    let is_ours = server.kind == Kind::SheafDb;
    assert!(!is_ours || taken <= CHANNEL_BYTES_MAX, "{taken} bytes for each channel");
    for n in (0..all).step_by(all / 100) {
        let name = format!("channel:{n:07}");
        assert_eq!(other.command(&["PUBLISH", &name, "x"]).expect("a reply"), Value::Int(1));
        let message = format!("*3\r\n$7\r\nmessage\r\n$15\r\n{name}\r\n$1\r\nx\r\n");
        flows[n / each].expect(message.as_bytes());
    }
    leave(flows, each, &mut other);
    until("nobody subscribes", || figure(&mut other, "stats", "pubsub_channels") == 0);
    assert_eq!(ask(&mut other, "PUBLISH channel:0000000 x"), Value::Int(0));
    let mut left = 0;
    let mut is_back = || {
        left = used(&mut other) - before;
        left < LEFT_BYTES_MAX
    };
    if is_ours {
        until("memory is back", &mut is_back);
    }
    is_back();
    println!("{left} bytes more in use than before");
    let names = if is_ours { figure(&mut other, "memory", "mem_pubsub") } else { 0 };
    assert_eq!(names, 0, "no name is kept");
}

/// Two connections leave by names, one by RESET, one is closed.
fn leave(flows: Vec<Flow>, each: usize, other: &mut Wire) {
    let working = AtomicUsize::new(CONNECTIONS);
    std::thread::scope(|scope| {
        for (at, mut flow) in flows.into_iter().enumerate() {
            let working = &working;
            scope.spawn(move || {
                let _end = CountAtEnd(working);
                match at {
                    0 | 1 => {
                        let end = (at + 1) * each;
                        for from in (at * each..end).step_by(TOGETHER) {
                            let names = from..from + TOGETHER;
                            flow.send(&request("UNSUBSCRIBE", names.clone()));
                            flow.expect(&confirmed("unsubscribe", names, |n| end - n - 1));
                        }
                    }
                    2 => {
                        flow.send(b"RESET\r\n");
                        flow.expect(b"+RESET\r\n");
                    }
                    _ => drop(flow),
                }
            });
        }
        ask_meanwhile("leaving", other, &working);
    });
}

/// 10,000 patterns that do not match, and a few that do: counts and messages are those of the few.
/// (That the others are not even compared is counted in the tests of `pubsub/patterns.rs`.)
#[test]
fn ten_thousand_patterns_that_do_not_match() {
    const PUBLISHED: usize = 2_000;
    const MATCHING: [&str; 4] = ["*", "news.*", "n?ws.[a-b]*", "news.art"];
    for threads in [1, 2] {
        let server = start(threads, &[]);
        let mut publisher = server.connect();
        let (mut many, mut few) = (server.connect(), server.connect());
        subscribe_to_patterns(&mut few, &MATCHING.map(String::from));
        let mut publish = |channel: &str, text: &str| {
            publisher.command(&["PUBLISH", channel, text]).expect("a reply")
        };
        let mut took_us = Vec::new();
        for patterns in [0, 10_000] {
            let names: Vec<String> = (0..patterns).map(|n| format!("user:{n}:*")).collect();
            if patterns > 0 {
                subscribe_to_patterns(&mut many, &names);
            }
            let is_ours = server.kind == Kind::SheafDb;
            let since = is_ours.then(|| workers::microseconds(&server));
            for n in 0..PUBLISHED {
                let text = format!("{n:04}");
                assert_eq!(publish("news.art", &text), Value::Int(MATCHING.len() as i64));
                let mut patterns: Vec<String> =
                    MATCHING.iter().map(|_| pattern_of(&mut few, "news.art", &text)).collect();
                patterns.sort();
                let mut expected = MATCHING;
                expected.sort_unstable();
                assert_eq!(patterns, expected, "each once");
            }
            took_us.extend(since.map(|since| workers::microseconds(&server) - since));
        }
        println!("{PUBLISHED} messages: {took_us:?} us of the workers without and with them");
        assert_eq!(publish("user:77:in", "x"), Value::Int(2), "`*`, and one of the many");
        assert_eq!(pattern_of(&mut many, "user:77:in", "x"), "user:77:*");
        assert_eq!(pattern_of(&mut few, "user:77:in", "x"), "*");
        assert_eq!(publish("none", "x"), Value::Int(1));
        assert_eq!(pattern_of(&mut few, "none", "x"), "*");
        drop(many);
        until("they are gone", || {
            figure(&mut publisher, "stats", "pubsub_patterns") == MATCHING.len() as i64
        });
    }
}

fn subscribe_to_patterns(wire: &mut Wire, names: &[String]) {
    let request: Vec<&str> =
        ["PSUBSCRIBE"].into_iter().chain(names.iter().map(String::as_str)).collect();
    wire.send(&encode(&request)).expect("it takes requests");
    for (n, name) in names.iter().enumerate() {
        let words = [Value::Bulk(b"psubscribe".to_vec()), Value::Bulk(name.clone().into())];
        let [word, name] = words;
        let confirmed = Value::Array(vec![word, name, Value::Int(n as i64 + 1)]);
        assert_eq!(wire.receive().expect("confirmed"), confirmed);
    }
}

/// The pattern for which a client receives this message next.
fn pattern_of(wire: &mut Wire, channel: &str, text: &str) -> String {
    let value = wire.receive().expect("a message");
    let Value::Array(parts) = &value else { panic!("{value:?}") };
    let bulk = |text: &str| Value::Bulk(text.into());
    let [word, Value::Bulk(pattern), rest @ ..] = &parts[..] else { panic!("{value:?}") };
    assert_eq!((word, rest), (&bulk("pmessage"), &[bulk(channel), bulk(text)][..]));
    String::from_utf8_lossy(pattern).into_owned()
}
