//! Commands on strings compared with a live redis-server, and at their limits.

use crate::common::session::Session;
use crate::common::{Oracle, Value, with_args, words};
use base::prng::Prng;
use base::{Blob, UnixMs};
use keyspace::INLINE_MAX;
use resp::{Args, OutBuf, Proto, Span};
use value::Str;

/// A session of this server and one of the live server.
struct Pair {
    session: Session,
    oracle: Oracle,
}

impl Pair {
    fn new(proto: Proto) -> Pair {
        let (mut session, mut oracle) = (Session::new(), Oracle::start());
        if proto == Proto::Resp3 {
            oracle.ask_line("HELLO 3");
        }
        session.proto = proto;
        oracle.ask_line("DEBUG SET-ACTIVE-EXPIRE 0");
        Pair { session, oracle }
    }

    /// Asks both servers. They must agree. (Like Valkey 9, GETEX checks its time before it looks
    /// the key up.)
    fn ask(&mut self, request: &[&[u8]]) {
        let (ours, theirs) = (self.session.ask(request), self.oracle.ask(request));
        let is_judged = request[0].eq_ignore_ascii_case(b"GETEX")
            && matches!(ours, Value::Error(_))
            && theirs == Value::Null;
        assert!(is_judged || ours == theirs, "{}: {ours:?}, {theirs:?}", shown(request));
    }

    fn ask_line(&mut self, line: &str) {
        self.ask(&words(line));
    }

    /// A key's value, encoding and expiry must be equal on both servers. The expiry may differ by 3
    /// seconds.
    fn compare(&mut self, key: &str) {
        let (value, encoding, expiry) = self.session.entry(key.as_bytes(), |entry| match entry {
            None => (Value::Null, Value::Null, -2),
            Some(entry) => (
                Value::Bulk(String::from_utf8_lossy(&entry.str().to_vec()).into_owned()),
                Value::Bulk(entry.encoding().name().to_owned()),
                entry.expiry().map_or(-1, |at| at.0),
            ),
        });
        assert_eq!(value, self.oracle.ask_line(&format!("GET {key}")), "{key}");
        assert_eq!(encoding, self.oracle.ask_line(&format!("OBJECT ENCODING {key}")), "{key}");
        let theirs = self.oracle.ask_line(&format!("PEXPIRETIME {key}"));
        let Value::Integer(theirs) = theirs else { panic!("no time: {theirs:?}") };
        let apart = (theirs - expiry).abs();
        assert!(apart == 0 || expiry > 0 && apart < 3000, "{key} expires at {expiry} and {theirs}");
    }
}

/// The reply to a request with an argument inserted which was received in its own buffer.
fn ask_with_blob(session: &mut Session, request: &[&[u8]], at: usize, blob: &Blob) -> OutBuf {
    let (mut base, mut spans) = (Vec::new(), Vec::new());
    for word in request {
        spans.push(Span { start: base.len() as u32, len: word.len() as u32 });
        base.extend_from_slice(word);
    }
    spans.insert(at, Span { start: Span::BLOB, len: 0 });
    session.reply_to(Args::new(&base, &spans, &[blob.clone().into()]))
}

fn shown(request: &[&[u8]]) -> String {
    let words = request.iter().map(|word| word[..word.len().min(60)].escape_ascii().to_string());
    words.collect::<Vec<_>>().join(" ")
}

/// Requests in both protocol versions, and the resulting state.
#[test]
fn requests_match_redis() {
    for proto in [Proto::Resp2, Proto::Resp3] {
        let mut pair = Pair::new(proto);
        for line in LINES {
            pair.ask_line(line);
        }
        for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            pair.compare(key);
        }
    }
}

const LINES: &[&str] = &[
    // The order in which SET and GETEX report errors.
    "SET a v",
    "SET a v EX 10 EX 2000",
    "SET a v EX x BOGUS",
    "SET a v EX x NX",
    "SET a v GET EX 0",
    "SET a v PERSIST",
    "SET a v KEEPTTL KEEPTTL",
    "SET a v XX GET",
    "SET a v EX 10 GET NX",
    "set a v ex 3000 get Xx",
    "SET a v EX 10 KEEPTTL",
    "SET a v PX 10 PXAT 99999999999999",
    "SET a v NX XX",
    "SET a v GET KEEPTTL NX GET",
    "SET a v EX 9223372036854775807",
    "SET a v EXAT 9223372036854775807",
    "SET a v PX 9223372036854775807",
    "SET a v PXAT 9223372036854775808",
    "SET a v EX",
    "SET b v PXAT 9223372036854775807",
    "SET c 1 EXAT 9223372036854775",
    "GETEX nothing EX 0",
    "GETEX nothing EX x",
    "GETEX nothing EX",
    "GETEX a EX 0",
    "GETEX a EX x",
    "GETEX a EX -1",
    "GETEX a EX 10 EX 2000",
    "GETEX a EX 10 PX 10",
    "GETEX a PERSIST EX 10",
    "GETEX a PERSIST PERSIST",
    "GETEX a EXAT 9223372036854775807",
    "GETEX a NX",
    "GETEX a KEEPTTL",
    "GETEX a pxat 99999999999999",
    "GETEX b PXAT 1",
    "GETEX b PERSIST",
    "SETEX d x v",
    "SETEX d 9223372036854775807 v",
    "SETEX d 0 v",
    "SETEX d 5000 12",
    "PSETEX d -1 v",
    "PSETEX e 5000000 v",
    "SETNX d x",
    "SETNX f 007",
    // Numbers, and texts which look like numbers.
    "INCRBY d x",
    "INCRBY d 9223372036854775807",
    "INCRBY d 9223372036854775808",
    "DECRBY d -9223372036854775808",
    "DECRBY d 9223372036854775807",
    "DECR d",
    "INCR d",
    "INCR f",
    "APPEND f 7",
    "APPEND d 1",
    "INCR d",
    "INCRBYFLOAT f 0.5",
    "INCRBYFLOAT d 1",
    "INCRBYFLOAT d inf",
    "INCRBYFLOAT d nan",
    "INCRBYFLOAT nothing x",
    "INCRBYFLOAT g 1e60",
    "INCRBYFLOAT e 1",
    "SET h inf",
    "INCRBYFLOAT h 1",
    "INCRBYFLOAT h -inf",
    // Changes of the encoding.
    "SET h 5 EX 7000",
    "SETRANGE h 0 \"\"",
    "APPEND h \"\"",
    "SET i 5",
    "SETRANGE i 0 \"\"",
    "GETSET i 12",
    "GETSET i 13",
    "APPEND j 12",
    "STRLEN j",
    "SETRANGE k 0 12",
    "GETDEL k",
    "GETDEL k",
    // Ranges and their limits.
    "SETRANGE nothing 9223372036854775807 x",
    "SETRANGE nothing 9223372036854775807 \"\"",
    "SETRANGE nothing 536870912 \"\"",
    "SETRANGE nothing 536870912 x",
    "SETRANGE nothing 99999999999999999999 \"\"",
    "SETRANGE a -1 x",
    "SETRANGE a -1 \"\"",
    "SETRANGE a 3 x",
    "GETRANGE nothing 99999999999999999999 0",
    "GETRANGE nothing 0 x",
    "GETRANGE a -9223372036854775808 9223372036854775807",
    "GETRANGE a 9223372036854775807 -9223372036854775808",
    "GETRANGE a -9223372036854775808 -9223372036854775807",
    "GETRANGE a -9223372036854775807 -9223372036854775808",
    "SUBSTR d 1 -2",
    // Several keys.
    "MSET a 1 b 2 a 3",
    "MSET a 1 b",
    "MSETNX c 1 new 2",
    "MSETNX new 1 new 2",
    "MSETNX new 1 newer",
    "MGET a new nothing c a",
    "SET l1 ohmytext EX 100",
    "SET l2 mynewtext",
    "LCS l1 l2 LEN IDX",
    "LCS l1 l2 LEN IDX BOGUS",
    "LCS l1 l2 MINMATCHLEN",
    "LCS l1 l2 MINMATCHLEN x LEN IDX",
    "LCS l1 l2 idx minmatchlen 4 MINMATCHLEN 2 withmatchlen",
    "LCS l2 l1 IDX WITHMATCHLEN",
    "LCS l1 nothing BOGUS",
    "LCS l1 nothing IDX",
    "LCS a d LEN",
    "LCS l1",
    "GET a b",
    "SET a",
];

/// `keyspace_hits`, `keyspace_misses` and `expired_keys` after each command, with its keys absent,
/// present and expired.
#[test]
fn lookup_counters_match_redis() {
    let mut pair = Pair::new(Proto::Resp2);
    let stats = |oracle: &mut Oracle| {
        let info = oracle.ask_line("INFO stats");
        let field = |name: &str| {
            let line = info.text().lines().find_map(|line| line.strip_prefix(name));
            line.expect("the field is there").parse::<u64>().expect("a number")
        };
        [field("keyspace_hits:"), field("keyspace_misses:"), field("expired_keys:")]
    };
    let difference = |a: [u64; 3], b: [u64; 3]| [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
    for command in COUNTED {
        for state in ["absent", "present", "expired"] {
            for key in ["k", "j", "n"] {
                let text = if key == "n" { "5" } else { "v" };
                pair.ask_line(&format!("SET {key} {text}"));
                pair.ask_line(&format!("GETDEL {key}"));
                match state {
                    "present" => pair.ask_line(&format!("SET {key} {text}")),
                    "expired" => pair.ask_line(&format!("SET {key} {text} PXAT 1")),
                    _ => {}
                }
            }
            let ours = |session: &Session| {
                let expired = session.access.keyspace().expiry().expired;
                [session.tally.hits, session.tally.misses, expired]
            };
            let before = (ours(&pair.session), stats(&mut pair.oracle));
            pair.ask_line(command);
            let after = (ours(&pair.session), stats(&mut pair.oracle));
            assert_eq!(
                difference(before.0, after.0),
                difference(before.1, after.1),
                "{command} on keys {state}"
            );
        }
    }
}

const COUNTED: &[&str] = &[
    "GET k",
    "GETDEL k",
    "GETEX k",
    "GETEX k EX 1000",
    "GETEX k PXAT 1",
    "GETEX k BOGUS",
    "GETSET k v",
    "SET k v",
    "SET k v EX 1000",
    "SET k v GET",
    "SET k v GET EX 0",
    "SET k v NX",
    "SET k v NX GET",
    "SET k v XX",
    "SET k v KEEPTTL",
    "SETNX k v",
    "SETEX k 1000 v",
    "APPEND k v",
    "INCR n",
    "INCRBY n x",
    "INCRBYFLOAT n 1",
    "DECRBY n 2",
    "GETRANGE k 0 1",
    "GETRANGE k x 1",
    "SUBSTR k 0 1",
    "STRLEN k",
    "MGET k j k",
    "MSET k v j w",
    "MSETNX k v j w",
    "LCS k j",
    "LCS k k",
    "LCS k j BOGUS",
    "LCS k j LEN IDX",
    "SETRANGE k 0 x",
    "SETRANGE k 0 \"\"",
];

/// Random requests, and the resulting state.
#[test]
fn random_requests_match_redis() {
    let texts: Vec<Vec<u8>> = [
        "",
        "0",
        "-1",
        "12345",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "0.1",
        " 1",
        "01",
        "abc",
        "abcabcabcabcabcabcabcabcabcabc",
        "1e17",
        "-0.25",
        "0x10",
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([43, 44, 45, 200, 1000, 1040, INLINE_MAX, INLINE_MAX + 1, 20_000].map(|n| vec![b'x'; n]))
    .collect();
    let mut pair = Pair::new(Proto::Resp2);
    let mut random = Prng::new(20_250_101);
    for _ in 0..6000 {
        let template = TEMPLATES[random.below(TEMPLATES.len() as u64) as usize];
        let mut request: Vec<Vec<u8>> = Vec::new();
        for word in template.split(' ') {
            let text = |random: &mut Prng| texts[random.below(texts.len() as u64) as usize].clone();
            request.push(match word {
                "$k" => format!("k{}", random.below(4)).into_bytes(),
                "$v" => text(&mut random),
                "$n" => (random.draw() as i64 >> random.below(64)).to_string().into_bytes(),
                "$i" => (random.below(60) as i64 - 20).to_string().into_bytes(),
                "$f" => {
                    format!("{}.{:03}", random.below(30) as i64 - 15, random.below(1000)).into()
                }
                "$s" => (500 + random.below(500)).to_string().into_bytes(),
                "$at" => (4_000_000_000 + random.below(1000)).to_string().into_bytes(),
                word => word.as_bytes().to_vec(),
            });
        }
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        pair.ask(&request);
        if random.chance(1, 20) {
            (0..4).for_each(|key| pair.compare(&format!("k{key}")));
        }
    }
}

const TEMPLATES: &[&str] = &[
    "SET $k $v",
    "SET $k $v EX $s",
    "SET $k $v KEEPTTL",
    "SET $k $v NX GET EXAT $at",
    "SET $k $v XX PXAT $at",
    "SET $k $v PXAT $i",
    "SETNX $k $v",
    "SETEX $k $s $v",
    "GET $k",
    "GETSET $k $v",
    "GETDEL $k",
    "GETEX $k EX $s",
    "GETEX $k PERSIST",
    "GETEX $k EXAT $i",
    "APPEND $k $v",
    "APPEND $k $i",
    "STRLEN $k",
    "SETRANGE $k $i $v",
    "SETRANGE $k $i $i",
    "GETRANGE $k $i $i",
    "INCR $k",
    "DECR $k",
    "INCRBY $k $n",
    "DECRBY $k $n",
    "INCRBYFLOAT $k $f",
    "INCRBYFLOAT $k $v",
    "MSET $k $v $k $i",
    "MSETNX $k $v $k $v",
    "MGET $k $k $k",
    "LCS $k $k LEN",
];

/// Longest common subsequences of random texts, chosen among equal ones as Redis does.
#[test]
fn common_subsequences_match_redis() {
    let mut pair = Pair::new(Proto::Resp2);
    let mut random = Prng::new(5);
    for _ in 0..150 {
        let letters = 1 + random.below(5);
        for key in [&b"a"[..], b"b"] {
            let len_max = if random.chance(1, 5) { 400 } else { 70 };
            let len = random.below(len_max);
            let text: Vec<u8> = (0..len).map(|_| b'a' + random.below(letters) as u8).collect();
            pair.ask(&[b"SET", key, &text]);
        }
        for line in
            ["LCS a b", "LCS a b LEN", "LCS a b IDX MINMATCHLEN 2 WITHMATCHLEN", "LCS b a IDX"]
        {
            pair.ask_line(line);
        }
    }
}

/// `proto-max-bulk-len` limits the results of APPEND and SETRANGE and the inputs of LCS, exact to
/// the byte.
#[test]
fn lengths_are_limited_to_the_byte() {
    const BOUND: usize = 1 << 20;
    let mut pair = Pair::new(Proto::Resp2);
    pair.oracle.ask_line(&format!("CONFIG SET proto-max-bulk-len {BOUND}"));
    pair.session.settings.bulk_len_max = BOUND as u64;
    let almost = vec![b'x'; BOUND - 2];
    for line in [
        format!("SETRANGE a {} xy", BOUND - 2),
        format!("SETRANGE a {} xy", BOUND - 1),
        format!("SETRANGE b {} xy", BOUND - 1),
        format!("SETRANGE c {BOUND} x"),
        format!("SETRANGE c {} x", BOUND - 1),
        "APPEND a x".to_owned(),
        "APPEND a \"\"".to_owned(),
    ] {
        pair.ask_line(&line);
    }
    pair.ask(&[b"SET", b"d", &almost]);
    for line in ["APPEND d x", "APPEND d xy", "APPEND d x", "APPEND d x", "STRLEN d"] {
        pair.ask_line(line);
    }
    for (a, b) in [(511, 511), (512, 511), (511, 512), (262_143, 0), (262_144, 0), (0, 262_144)] {
        pair.ask(&[b"SET", b"a", &vec![b'x'; a]]);
        pair.ask(&[b"SET", b"b", &vec![b'x'; b]]);
        for line in ["LCS a b LEN", "LCS a b", "LCS a b IDX", "LCS a b BOGUS"] {
            pair.ask_line(line);
        }
    }
}

/// A large value is stored and returned without a copy. A small one which was received in its own
/// buffer is stored like any other.
#[test]
fn large_values_are_shared_without_a_copy() {
    let mut session = Session::new();
    let blob = Blob::new(vec![b'x'; 100_000]);
    let same = |other: &Blob| other.is_same(&blob);
    let requests: [(&[&[u8]], usize); 6] = [
        (&[b"SET", b"k"], 2),
        (&[b"SET", b"k", b"EX", b"10"], 2),
        (&[b"GETSET", b"k"], 2),
        (&[b"SETEX", b"k", b"10"], 3),
        (&[b"MSET", b"k"], 2),
        (&[b"APPEND", b"k"], 2),
    ];
    for (request, at) in requests {
        session.ask(&[b"GETDEL", b"k"]);
        ask_with_blob(&mut session, request, at, &blob);
        let stored = |entry: Option<keyspace::Entry<'_>>| match entry.map(|entry| entry.str()) {
            Some(Str::Blob(stored)) => same(stored),
            _ => false,
        };
        assert!(session.entry(b"k", stored), "{}", shown(request));
    }
    let requests: [&[&[u8]]; 5] = [
        &[b"GET", b"k"],
        &[b"MGET", b"nothing", b"k"],
        &[b"GETRANGE", b"k", b"0", b"-1"],
        &[b"GETEX", b"k", b"EX", b"5"],
        &[b"GETDEL", b"k"],
    ];
    for request in requests {
        let reply = with_args(request, |args| session.reply_to(args));
        assert_eq!(reply.blobs.len(), 1, "{}", shown(request));
        assert!(same(&reply.blobs[0].blob), "{}", shown(request));
    }
    ask_with_blob(&mut session, &[b"SET", b"k"], 2, &Blob::new(b"12".to_vec()));
    assert!(session.entry(b"k", |entry| matches!(entry.map(|e| e.str()), Some(Str::Int(12)))));
    ask_with_blob(&mut session, &[b"SET", b"k"], 2, &Blob::new(vec![b'y'; INLINE_MAX]));
    assert!(session.entry(b"k", |entry| matches!(entry.map(|e| e.str()), Some(Str::Bytes(_)))));
}

/// A reply which references a value does not change with it.
#[test]
fn a_reply_does_not_change_with_its_value() {
    let mut session = Session::new();
    ask_with_blob(&mut session, &[b"SET", b"k"], 2, &Blob::new(vec![b'x'; 50_000]));
    let reply = with_args(&[b"GET", b"k"], |args| session.reply_to(args));
    assert_eq!(session.ask_line("SETRANGE k 10 yyy"), Value::Integer(50_000));
    assert_eq!(session.ask_line("APPEND k z"), Value::Integer(50_001));
    assert_eq!(reply.blobs[0].blob.to_vec(), vec![b'x'; 50_000]);
    assert_eq!(session.ask_line("GETRANGE k 9 13").text(), "xyyyx");
}

/// Commands which Redis 7 does not have. The golden files cover a whole server; this test covers
/// the order of errors.
#[test]
fn conditional_writes_report_errors_in_order() {
    let mut session = Session::new();
    let (one, zero, ok, null) = (":1\r\n", ":0\r\n", "+OK\r\n", "$-1\r\n");
    let syntax = "-ERR syntax error\r\n";
    for (line, reply) in [
        ("SET k v IFEQ x GET", null),
        ("SET k 10 IFNE x GET", null),
        ("SET k 11 IFNE 10", null),
        ("SET k 11 IFEQ 10 EX 100", ok),
        ("SET k 12 IFEQ 11 KEEPTTL GET", "$2\r\n11\r\n"),
        ("SET k v EX x IFEQ", syntax),
        ("SET k v IFEQ 12 EX x", "-ERR value is not an integer or out of range\r\n"),
        ("SET k v IFEQ 12 NX", syntax),
        ("SET k v IFNE 12 IFEQ 12", syntax),
        ("DELIFEQ k 11", zero),
        ("DELIFEQ none 11", zero),
        ("DELEX k BOGUS 12", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n"),
        ("DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command\r\n"),
        ("DELEX k IFEQ 12 IFEQ 12", "-ERR wrong number of arguments for 'delex' command\r\n"),
        ("DELEX k ifne 12", zero),
        ("DELEX none IFNE 12", zero),
        ("DELEX k ifeq 12", one),
        ("DELEX k", zero),
        ("MSETEX 0 a 1", "-ERR invalid numkeys value\r\n"),
        ("MSETEX -1 a 1", "-ERR invalid numkeys value\r\n"),
        ("MSETEX 2147483648 a 1", "-ERR invalid numkeys value\r\n"),
        ("MSETEX 2147483647 a 1", "-ERR wrong number of key-value pairs\r\n"),
        ("MSETEX 2 a 1 NX", "-ERR wrong number of key-value pairs\r\n"),
        ("MSETEX 1 a 1 GET", syntax),
        ("MSETEX 1 a 1 IFEQ 1", syntax),
        ("MSETEX 2 a 1 b 2 EX 0", "-ERR invalid expire time in 'msetex' command\r\n"),
        ("MSETEX 2 a 1 b 2 XX", zero),
        ("MSETEX 2 a 1 b 2 NX PXAT 99999999999999", one),
        ("MSETEX 2 b 3 c 3 NX", zero),
        ("MSETEX 2 b 3 c 3 XX", zero),
        ("MSETEX 1 b 4 KEEPTTL XX", one),
        ("MGET a b c", "*3\r\n$1\r\n1\r\n$1\r\n4\r\n$-1\r\n"),
        ("MSETEX 1 a 5", one),
    ] {
        assert_eq!(session.ask_line(line), Value::parse(reply.as_bytes()), "{line}");
    }
    let at = |session: &mut Session, key: &[u8]| {
        session.entry(key, |entry| entry.expect("it exists").expiry())
    };
    assert_eq!(at(&mut session, b"a"), None);
    assert_eq!(at(&mut session, b"b"), Some(UnixMs(99_999_999_999_999)));
}

/// INCREX compared with plain arithmetic: every combination of a value, an increment and bounds.
#[test]
fn increx_stays_within_bounds() {
    let mut session = Session::new();
    let numbers = [i64::MIN, -100, -1, 0, 3, 100, i64::MAX];
    for old in numbers {
        for by in numbers {
            for (lower, upper) in [(i64::MIN, i64::MAX), (-50, 50), (101, 101), (-3, i64::MAX)] {
                let exact = i128::from(old) + i128::from(by);
                let bounds = format!("BYINT {by} LBOUND {lower} UBOUND {upper}");
                let pair = |value: i64, increment: i64| {
                    Value::Array(vec![Value::Integer(value), Value::Integer(increment)])
                };
                let fits = (i128::from(lower)..=i128::from(upper)).contains(&exact);
                session.ask_line(&format!("SET k {old}"));
                let rejecting = if fits { pair(exact as i64, by) } else { pair(old, 0) };
                assert_eq!(session.ask_line(&format!("INCREX k {bounds}")), rejecting, "{bounds}");
                session.ask_line(&format!("SET k {old}"));
                let sum = exact.clamp(lower.into(), upper.into());
                let saturated = match i64::try_from(sum - i128::from(old)) {
                    Ok(increment) => pair(sum as i64, increment),
                    Err(_) => Value::Error("ERR increment or decrement would overflow".into()),
                };
                let request = format!("INCREX k {bounds} SATURATE");
                assert_eq!(session.ask_line(&request), saturated, "{old} {bounds}");
            }
        }
    }
}
