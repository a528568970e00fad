//! DUMP and RESTORE compared with a live redis-server, in both directions, and corrupt payloads.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::session::Session;
use crate::common::{Oracle, Value, with_args};

/// The bytes of a bulk reply, which need not be text.
fn bulk(reply: &[u8]) -> Vec<u8> {
    let end = reply.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    assert_eq!(reply[0], b'$', "{}", String::from_utf8_lossy(reply));
    reply[end..reply.len() - 2].to_vec()
}

fn dump_ours(session: &mut Session, key: &str) -> Vec<u8> {
    bulk(&with_args(&[b"DUMP", key.as_bytes()], |args| session.reply_to(args)).to_vec())
}

fn dump_theirs(oracle: &mut Oracle, key: &str) -> Vec<u8> {
    let stream: &mut UnixStream = oracle.stream();
    write!(stream, "*2\r\n$4\r\nDUMP\r\n${}\r\n{key}\r\n", key.len()).expect("it takes requests");
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("it answers");
    let len: usize = line.trim_start_matches('$').trim_end().parse().expect("a length");
    let mut bytes = vec![0; len + 2];
    reader.read_exact(&mut bytes).expect("the bulk is complete");
    bytes.truncate(len);
    bytes
}

fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

/// Commands which create every kind of value in every encoding, by key.
fn values() -> Vec<(String, Vec<String>)> {
    let mut made = vec![
        ("int".to_owned(), vec!["SET int -12345".to_owned()]),
        ("embstr".to_owned(), vec!["SET embstr hello".to_owned()]),
        ("raw".to_owned(), vec![format!("SET raw {}", "r".repeat(100))]),
        ("blob".to_owned(), vec![format!("SET blob {}", "b".repeat(70_000))]),
    ];
    type Text = fn(usize) -> String;
    let texts: [(&str, Text); 3] = [
        ("ints", |n| (n as i64 * 7919 - 40_000).to_string()),
        ("texts", |n| format!("member:{n}")),
        ("long", |n| format!("{n}{}", "x".repeat(70))),
    ];
    for count in [1, 100, 128, 129, 512, 513, 2000] {
        for (name, text) in texts {
            let key = |kind: &str| format!("{kind}-{name}-{count}");
            let each = |part: &dyn Fn(usize) -> String, command: String| {
                (0..count).map(|n| format!("{command} {}", part(n))).collect::<Vec<_>>()
            };
            let score = |n: usize| ["1.5", "-inf", "inf", "-0", "1e300", "3"][n % 6].to_owned();
            made.push((key("list"), each(&|n| text(n), format!("RPUSH {}", key("list")))));
            made.push((key("set"), each(&|n| text(n), format!("SADD {}", key("set")))));
            let scored = |n: usize| format!("{} {}", score(n), text(n));
            made.push((key("zset"), each(&scored, format!("ZADD {}", key("zset")))));
            let field = |n: usize| format!("{} {n}", text(n));
            made.push((key("hash"), each(&field, format!("HSET {}", key("hash")))));
        }
    }
    made
}

/// The encoding which Redis 7.2 reports for a value where 7.0 reports `name`, if it may differ:
/// small lists and small sets of texts are listpacks there.
fn encoding_may_be(key: &str, ours: &str, theirs: &str) -> bool {
    let is_new = ours == "listpack"
        && (key.starts_with("list-") && theirs == "quicklist"
            || key.starts_with("set-texts") && theirs == "hashtable"
            || key.starts_with("set-ints") && theirs == "hashtable");
    ours == theirs || is_new
}

#[test]
fn every_value_round_trips_through_redis() {
    let (mut oracle, mut session) = (Oracle::start(), Session::new());
    for (key, commands) in values() {
        for line in &commands {
            drop(oracle.ask_line(line));
        }
        let theirs = dump_theirs(&mut oracle, &key);
        assert_eq!(session.ask(&[b"RESTORE", key.as_bytes(), b"0", &theirs]), ok(), "{key}");
        let encoding = format!("OBJECT ENCODING {key}");
        let (here, there) = (session.ask_line(&encoding), oracle.ask_line(&encoding));
        assert!(encoding_may_be(&key, here.text(), there.text()), "{key}: {here:?}, {there:?}");
        let ours = dump_ours(&mut session, &key);
        assert_eq!(oracle.ask(&[b"RESTORE", b"back", b"0", &ours, b"REPLACE"]), ok(), "{key}");
        let digests = oracle.ask_line(&format!("DEBUG DIGEST-VALUE {key} back"));
        let Value::Array(digests) = digests else { panic!("two digests") };
        assert_eq!(digests[0], digests[1], "{key}");
        assert_eq!(oracle.ask_line("OBJECT ENCODING back"), there, "{key}");
        assert_eq!(session.ask(&[b"RESTORE", b"again", b"0", &ours, b"REPLACE"]), ok(), "{key}");
        assert_eq!(session.ask_line("OBJECT ENCODING again"), here, "{key}");
        assert_eq!(dump_ours(&mut session, "again"), ours, "{key}: the same bytes again");
    }
}

/// Every payload with one bit flipped, and every prefix of one with a corrected checksum: a refused
/// payload changes nothing, and none causes a panic.
#[test]
fn corrupt_payloads_change_nothing() {
    let mut session = Session::new();
    let mut oracle = Oracle::start();
    let mut whole = Vec::new();
    for line in ["RPUSH l a 1 2", "SADD i 3 1 2", "SADD s a b", "ZADD z 1 a 2 b", "HSET h a b c d"]
    {
        oracle.ask_line(line);
        whole.push(dump_theirs(&mut oracle, line.split(' ').nth(1).expect("a key")));
    }
    session.put(b"k", b"kept", None);
    let refusals = ["ERR DUMP payload version or checksum are wrong", "ERR Bad data format"]
        .map(|text| Value::Error(text.to_owned()));
    for payload in whole {
        for bit in 0..payload.len() * 8 {
            let mut bad = payload.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let reply = session.ask(&[b"RESTORE", b"k", b"0", &bad, b"REPLACE"]);
            assert_eq!(reply, refusals[0], "the checksum tells");
        }
        for bit in 0..(payload.len() - 10) * 8 {
            let mut bad = payload[..payload.len() - 10].to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            rdb::seal(&mut bad, rdb::VERSION);
            let reply = session.ask(&[b"RESTORE", b"k", b"0", &bad, b"REPLACE"]);
            assert!(reply == ok() || refusals.contains(&reply), "{reply:?}");
            if reply == ok() {
                session.put(b"k", b"kept", None);
            }
            assert_eq!(session.ask_line("GET k"), Value::Bulk("kept".to_owned()));
        }
    }
    let again = [&b"\x02\x02\x01a\x01a"[..], b"\x04\x02\x01f\x01v\x01f\x01w"];
    for bad in again {
        let mut bad = bad.to_vec();
        rdb::seal(&mut bad, rdb::VERSION);
        let reply = session.ask(&[b"RESTORE", b"k", b"0", &bad, b"REPLACE"]);
        assert_eq!(reply, refusals[1], "a member that comes twice");
    }
    assert_eq!(session.ask_line("GET k"), Value::Bulk("kept".to_owned()));
}
