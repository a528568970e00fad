//! Strings of many pages against a live redis-server: changes and probes around the borders of
//! pages, on values which share pages with copies of them.

use std::io::{BufRead, BufReader, Read, Write};

use crate::common::session::Session;
use crate::common::{Oracle, Value, with_args, words};
use base::blob::{BLOCK_MAX, PAGE_BYTES};
use base::prng::Prng;

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
/// The longest string, unless something is appended.
const LEN_MAX: usize = 2 * BLOCK_MAX + PAGE_BYTES + 2;

struct Pair {
    session: Session,
    oracle: Oracle,
    dice: Prng,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self { session: Session::new(), oracle: Oracle::start(), dice: Prng::new(seed) }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.dice.below(bound as u64) as usize
    }

    /// A byte around a border of a page, of a block, or of the string.
    fn place(&mut self) -> usize {
        let page = self.below(LEN_MAX / PAGE_BYTES + 1) * PAGE_BYTES;
        let border = [page, BLOCK_MAX, BLOCK_MAX + PAGE_BYTES, LEN_MAX, 0][self.below(5)];
        (border + self.below(9)).saturating_sub(4)
    }

    /// A bit around such a border, or a place from the end.
    fn bit(&mut self) -> usize {
        self.place() * 8 + self.below(8)
    }

    fn end(&mut self) -> String {
        match self.below(3) {
            0 => format!("-{}", 1 + self.below(12)),
            _ => self.place().to_string(),
        }
    }

    fn key(&mut self) -> &'static str {
        KEYS[self.below(KEYS.len())]
    }

    /// Asks both; they must agree.
    fn ask(&mut self, line: &str) -> Value {
        let (ours, theirs) = (self.session.ask(&words(line)), self.oracle.ask(&words(line)));
        assert_eq!(ours, theirs, "{line}");
        ours
    }

    fn change(&mut self) -> String {
        let (key, other) = (self.key(), self.key());
        let (place, bit) = (self.place(), self.bit());
        match self.below(11) {
            0 | 1 => format!("SETRANGE {key} {place} {}", "x".repeat(1 + self.below(12))),
            2 => format!("SETRANGE {key} {place} {}", "long".repeat(self.below(40_000))),
            3 | 4 => format!("SETBIT {key} {bit} {}", self.below(2)),
            5 => format!("APPEND {key} {}", "tail".repeat(1 + self.below(10))),
            6 => format!("BITFIELD {key} SET u63 {bit} {} GET i64 {bit}", self.dice.draw() >> 1),
            7 => format!("BITFIELD {key} OVERFLOW SAT INCRBY i33 {bit} 99 INCRBY u9 {bit} 300"),
            8 => format!("COPY {key} {other} REPLACE"),
            9 => {
                let operation = ["AND", "OR", "XOR"][self.below(3)];
                format!("BITOP {operation} {} {key} {other} short", self.key())
            }
            _ => format!("BITOP NOT {other} {key}"),
        }
    }

    fn probe(&mut self) -> String {
        let (key, place, end) = (self.key(), self.place(), self.end());
        let (unit, wanted) = (["BYTE", "BIT"][self.below(2)], self.below(2));
        match self.below(9) {
            0 => format!("STRLEN {key}"),
            1 => format!("GETRANGE {key} {} {}", place, place + self.below(12)),
            2 => format!("GETRANGE {key} -{} -{}", 1 + self.below(12), 1 + self.below(4)),
            3 => format!("GETBIT {key} {}", self.bit()),
            4 => format!("BITCOUNT {key}"),
            5 => format!("BITCOUNT {key} {place} {end} {unit}"),
            6 => format!("BITPOS {key} {wanted} {place} {end} {unit}"),
            7 => format!("BITPOS {key} {wanted} {}", self.end()),
            _ => format!("BITFIELD_RO {key} GET u63 {} GET i17 {}", self.bit(), self.bit()),
        }
    }
}

#[test]
fn changes_and_probes_agree_with_redis_around_the_borders_of_pages() {
    let mut pair = Pair::new(19);
    pair.ask("SET short abcdefgh");
    for round in 0..1500 {
        if round % 300 == 0 {
            for (n, key) in KEYS.into_iter().enumerate() {
                let len = [BLOCK_MAX - 1, BLOCK_MAX, BLOCK_MAX + 1, LEN_MAX][n];
                pair.ask(&format!("DEL {key}"));
                pair.ask(&format!("SETRANGE {key} {} end", len - 3));
                if round % 600 == 300 {
                    // Pages of zeros are never patched, these are: copies share them.
                    let filled: String =
                        (0..len).map(|at| char::from(b'A' + (at % 41) as u8)).collect();
                    pair.ask(&format!("SET {key} {filled}"));
                }
            }
        }
        let change = pair.change();
        pair.ask(&change);
        for _ in 0..3 {
            let probe = pair.probe();
            pair.ask(&probe);
        }
    }
    for key in KEYS {
        pair.ask(&format!("OBJECT ENCODING {key}"));
        pair.ask(&format!("GET {key}"));
        pair.ask(&format!("GETRANGE {key} 1 -2"));
    }
}

/// LCS of a string of pages with a short one; the answers are the same whichever is first.
#[test]
fn lcs_reads_strings_of_pages() {
    let mut pair = Pair::new(23);
    pair.ask(&format!("SETRANGE a {} needle", 2 * PAGE_BYTES - 3));
    pair.ask(&format!("SETRANGE a {} haystack", BLOCK_MAX + PAGE_BYTES - 3));
    pair.ask("SET b needlestack");
    for (one, two) in [("a", "b"), ("b", "a")] {
        pair.ask(&format!("LCS {one} {two}"));
        pair.ask(&format!("LCS {one} {two} LEN"));
        pair.ask(&format!("LCS {one} {two} IDX WITHMATCHLEN"));
        pair.ask(&format!("LCS {one} {two} IDX MINMATCHLEN 3"));
    }
    assert!(pair.session.steps > 10, "{} steps", pair.session.steps);
    pair.ask(&format!("SETRANGE b {BLOCK_MAX} x"));
    pair.ask("LCS a b LEN");
}

/// The bytes of a bulk reply.
fn bulk(reply: &[u8]) -> &[u8] {
    let end = reply.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    assert_eq!(reply[0], b'$', "{}", String::from_utf8_lossy(&reply[..end]));
    &reply[end..reply.len() - 2]
}

impl Pair {
    /// The bytes of our bulk reply.
    fn ours(&mut self, request: &[&[u8]]) -> Vec<u8> {
        bulk(&with_args(request, |args| self.session.reply_to(args)).to_vec()).to_vec()
    }

    /// The bytes of their bulk reply to a command on a key.
    fn theirs(&mut self, command: &str, key: &str) -> Vec<u8> {
        let stream = self.oracle.stream();
        write!(stream, "{command} {key}\r\n").expect("it takes requests");
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
        let len: usize = line.trim_start_matches('$').trim_end().parse().expect("a length");
        let mut bytes = vec![0; len + 2];
        reader.read_exact(&mut bytes).expect("the bulk is complete");
        bytes.truncate(len);
        bytes
    }
}

/// Payloads of both servers are read by both, with every byte in its place.
#[test]
fn payloads_of_long_strings_travel_both_ways() {
    let mut pair = Pair::new(29);
    let mut noise = vec![0; BLOCK_MAX + 77];
    pair.dice.fill(&mut noise);
    let texts = [noise.repeat(2), [&noise[..300_000], &b"z".repeat(2_000_000)].concat(), noise];
    let ok = Value::Simple("OK".to_owned());
    for text in &texts {
        assert_eq!(pair.session.ask(&[b"SET", b"from", text]), ok);
        assert_eq!(pair.oracle.ask(&[b"SET", b"from", text]), ok);
        let ours = pair.ours(&[b"DUMP", b"from"]);
        assert!(pair.session.steps > 10, "{} steps of DUMP", pair.session.steps);
        let theirs = pair.theirs("DUMP", "from");
        for payload in [&ours, &theirs] {
            let request: [&[u8]; 5] = [b"RESTORE", b"to", b"0", payload, b"REPLACE"];
            assert_eq!(
                (pair.session.ask(&request), pair.oracle.ask(&request)),
                (ok.clone(), ok.clone())
            );
            assert!(pair.ours(&[b"GET", b"to"]) == *text && pair.theirs("GET", "to") == *text);
            let refused = Value::Error("BUSYKEY Target key name already exists.".to_owned());
            assert_eq!(pair.session.ask(&request[..4]), refused);
            let mut wrong = payload.clone();
            wrong[200_000 % payload.len()] ^= 1;
            let request: [&[u8]; 5] = [b"RESTORE", b"to", b"0", &wrong, b"REPLACE"];
            assert_eq!(pair.session.ask(&request), pair.oracle.ask(&request));
            assert!(pair.ours(&[b"GET", b"to"]) == *text, "it stays");
        }
    }
}

/// Long arguments are written into stored strings page by page.
#[test]
fn long_arguments_are_written_where_redis_writes_them() {
    let mut pair = Pair::new(31);
    let long = "0123456789".repeat(150_000);
    for first in ["", "SET a short", "SET a 12"] {
        pair.ask("DEL a b");
        if !first.is_empty() {
            pair.ask(first);
        }
        for request in [
            format!("APPEND a {long}"),
            "COPY a b".to_owned(),
            format!("SETRANGE a {} {long}", PAGE_BYTES - 1),
            format!("APPEND b {long}"),
            format!("SETRANGE c 99 {long}"),
        ] {
            pair.ask(&request);
            pair.ask("GET a");
            pair.ask("GET b");
        }
        pair.ask("GET c");
        pair.ask("DEL c");
    }
    pair.ask(&format!("SETRANGE a 536870000 {long}"));
    pair.ask("SETRANGE a 536870912 x");
    pair.ask("SETBIT a 4294967296 1");
    pair.ask("SETRANGE a -1 x");
    pair.ask("STRLEN a");
}

/// A long argument overwrites a part of a string or all of it, or stands behind its end. A copy
/// which shared the pages stays as it was, and so does the expiry.
#[test]
fn long_arguments_meet_the_borders_of_pages() {
    let mut pair = Pair::new(41);
    let long = "0123456789abcdefg".repeat(80_000);
    for len in [0, 5, BLOCK_MAX, BLOCK_MAX + 1, LEN_MAX] {
        for at in [
            0,
            1,
            PAGE_BYTES - 1,
            PAGE_BYTES,
            PAGE_BYTES + 1,
            BLOCK_MAX,
            LEN_MAX - 1,
            LEN_MAX,
            LEN_MAX + PAGE_BYTES,
        ] {
            pair.ask("DEL a b");
            if len > 0 {
                pair.ask(&format!("SETRANGE a {} x", len - 1));
            }
            pair.ask("COPY a b");
            pair.ask("EXPIREAT a 33333333333");
            pair.ask(&format!("SETRANGE a {at} {long}"));
            // A string which the argument covers is replaced by it.
            let steps = pair.session.steps;
            assert_eq!(steps > 1, at > 0 || len > long.len(), "{steps} steps: {at} of {len}");
            for probe in ["GET a", "GET b", "EXPIRETIME a", "OBJECT ENCODING a"] {
                pair.ask(probe);
            }
        }
    }
    pair.ask("RPUSH list x");
    pair.ask(&format!("SETRANGE list 5 {long}"));
    pair.ask(&format!("APPEND list {long}"));
    pair.ask("SETRANGE a 77 \"\"");
}

/// IFEQ, IFNE and DELIFEQ of texts which differ in one byte, or in their length. Redis 7 has none
/// of them: the replies follow from their definition.
#[test]
fn long_strings_are_compared_byte_by_byte() {
    let mut session = Session::new();
    let mut dice = Prng::new(43);
    for len in [BLOCK_MAX, BLOCK_MAX + 1, LEN_MAX] {
        let mut text = vec![0; len];
        dice.fill(&mut text);
        let mut others = vec![text.clone(), text[1..].to_vec(), [&text[..], b"x"].concat()];
        for at in [0, PAGE_BYTES - 1, PAGE_BYTES, BLOCK_MAX - 1, len - 1] {
            let mut other = text.clone();
            other[at] ^= 1;
            others.push(other);
        }
        for (n, other) in others.iter().enumerate() {
            let is_same = n == 0;
            let checks: [(&[&[u8]], bool); 5] = [
                (&[b"SET", b"key", b"new", b"IFEQ", other], is_same),
                (&[b"SET", b"key", b"new", b"ifne", other], !is_same),
                (&[b"DELEX", b"key", b"IFEQ", other], is_same),
                (&[b"DELEX", b"key", b"IFNE", other], !is_same),
                (&[b"DELIFEQ", b"key", other], is_same),
            ];
            for (request, holds) in checks {
                assert_eq!(session.ask(&[b"SET", b"key", &text]), Value::Simple("OK".to_owned()));
                let is_set = request[0] == b"SET";
                let reply = match (is_set, holds) {
                    (true, true) => Value::Simple("OK".to_owned()),
                    (true, false) => Value::Null,
                    (false, holds) => Value::Integer(holds.into()),
                };
                let what = format!("{} of text {n} of {len} bytes", name(request[0]));
                assert_eq!(session.ask(request), reply, "{what}");
                let in_steps = len > BLOCK_MAX && (is_same || n == others.len() - 1);
                assert_eq!(session.steps > 4, in_steps, "{what}: {} steps", session.steps);
                let left = if holds { usize::from(is_set) * 3 } else { len };
                assert_eq!(session.ask_line("STRLEN key"), Value::Integer(left as i64), "{what}");
            }
        }
    }
}

/// Elements, members, fields and values may be as long as strings.
#[test]
fn collections_hold_elements_of_many_pages() {
    let mut pair = Pair::new(37);
    let mut long = vec![b'e'; BLOCK_MAX + PAGE_BYTES + 1];
    let mut other = long.clone();
    *other.last_mut().expect("not empty") = b'f';
    long[5] = b'-';
    let (a, b): (&[u8], &[u8]) = (&long, &other);
    let requests: [&[&[u8]]; 32] = [
        &[b"RPUSH", b"list", a, b"short", b, a],
        &[b"LLEN", b"list"],
        &[b"LINDEX", b"list", b"2"],
        &[b"LPOS", b"list", b],
        &[b"LPOS", b"list", a, b"RANK", b"-1"],
        &[b"LREM", b"list", b"1", a],
        &[b"LINSERT", b"list", b"BEFORE", b, a],
        &[b"LSET", b"list", b"0", b],
        &[b"LRANGE", b"list", b"0", b"-1"],
        &[b"SORT", b"list", b"ALPHA"],
        &[b"HSET", b"hash", b"f", a, a, b],
        &[b"HSTRLEN", b"hash", b"f"],
        &[b"HGET", b"hash", a],
        &[b"HINCRBY", b"hash", b"f", b"1"],
        &[b"HINCRBYFLOAT", b"hash", b"f", b"1"],
        &[b"HMGET", b"hash", b"f", b"none"],
        &[b"SADD", b"set", a, b, a],
        &[b"SISMEMBER", b"set", b],
        &[b"SREM", b"set", b],
        &[b"SMEMBERS", b"set"],
        &[b"ZADD", b"zset", b"1", a, b"1", b],
        &[b"ZRANK", b"zset", b],
        &[b"ZRANGE", b"zset", b"0", b"-1", b"WITHSCORES"],
        &[b"ZLEXCOUNT", b"zset", b"-", b"+"],
        &[b"XADD", b"stream", b"1-1", a, b],
        &[b"XRANGE", b"stream", b"-", b"+"],
        &[b"COPY", b"list", b"to"],
        &[b"LPOP", b"list", b"9"],
        &[b"LRANGE", b"to", b"0", b"-1"],
        &[b"SET", b"counter", a],
        &[b"INCRBYFLOAT", b"counter", b"1"],
        &[b"PFCOUNT", b"counter"],
    ];
    for request in requests {
        let (ours, theirs) = (pair.session.ask(request), pair.oracle.ask(request));
        assert!(ours == theirs, "{} on {}", name(request[0]), name(request[1]));
    }
    for key in ["to", "hash", "set", "zset", "stream"] {
        let payload = pair.ours(&[b"DUMP", key.as_bytes()]);
        let request: [&[u8]; 5] = [b"RESTORE", key.as_bytes(), b"0", &payload, b"REPLACE"];
        let ok = Value::Simple("OK".to_owned());
        assert_eq!((pair.session.ask(&request), pair.oracle.ask(&request)), (ok.clone(), ok));
        let read: &[&[u8]] = match key {
            "to" => &[b"LRANGE", b"to", b"0", b"-1"],
            "hash" => &[b"HMGET", b"hash", b"f", a],
            "set" => &[b"SMEMBERS", b"set"],
            "zset" => &[b"ZRANGE", b"zset", b"0", b"-1", b"WITHSCORES"],
            _ => &[b"XRANGE", b"stream", b"-", b"+"],
        };
        assert!(pair.session.ask(read) == pair.oracle.ask(read), "{key} after RESTORE");
    }
}

fn name(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}
