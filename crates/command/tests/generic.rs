//! Commands on keys of any type: compared with a live redis-server, command by command and at
//! random, and properties which only this server has.

use crate::common::session::{Session, wall_clock};
use crate::common::{Oracle, Value, words};
use base::prng::Prng;
use base::{DbIndex, UnixMs};
use keyspace::Intent;
use std::collections::BTreeSet;

/// A session of this server and one of the live server.
struct Pair {
    ours: Session,
    theirs: Oracle,
}

impl Pair {
    fn new() -> Pair {
        Pair { ours: Session::new(), theirs: Oracle::start() }
    }

    fn set(&mut self, name: &str, text: &str) {
        self.ours.now = wall_clock();
        self.ours.put(name.as_bytes(), text.as_bytes(), None);
        self.theirs.ask(&[b"SET", name.as_bytes(), text.as_bytes()]);
    }

    fn select(&mut self, db: u16) {
        self.ours.db = DbIndex::new(db);
        self.theirs.ask(&[b"SELECT", db.to_string().as_bytes()]);
    }

    /// Sends a line to both servers and compares the replies. `SET key text` and `SELECT db` run on
    /// both.
    fn line(&mut self, line: &str) {
        match words(line)[..] {
            [b"SET", name, text] => self.set(text_of(name), text_of(text)),
            [b"SELECT", db] => self.select(text_of(db).parse().expect("a database")),
            ref request => {
                let (ours, theirs) = (self.ours.ask(request), self.theirs.ask(request));
                assert_eq!(sorted(request, ours), sorted(request, theirs), "{line}");
            }
        }
    }
}

fn text_of(word: &[u8]) -> &str {
    std::str::from_utf8(word).expect("words of tests are text")
}

/// The reply, with the keys of KEYS and SCAN in a fixed order.
fn sorted(request: &[&[u8]], mut value: Value) -> Value {
    let list = match (&mut value, request[0].to_ascii_uppercase().as_slice()) {
        (Value::Array(keys), b"KEYS") => keys,
        (Value::Array(parts), b"SCAN") => match &mut parts[1] {
            Value::Array(keys) => keys,
            other => panic!("no list of keys: {other:?}"),
        },
        _ => return value,
    };
    list.sort_by_key(|key| key.text().to_owned());
    value
}

/// One request per line. The replies must be those of the live server.
const CORNERS: &str = "
    EXPIRE no abc | EXPIRE no 10 BOGUS | SET k v | EXPIRE k abc BOGUS | EXPIRE k 10 NX NX
    EXPIRE k 10 LT | EXPIRE k 9 XX LT | EXPIRE k 9 LT XX GT | EXPIRE k 9 NX GT LT | EXPIRE k x nx xx
    EXPIRE no 9223372036854775807 | EXPIRE no 9223372036854775807 BOGUS | EXPIRE k 9223372036854775
    EXPIRE k 9223370000000000 | EXPIRETIME no | PEXPIRE k 9223372036854775807
    PEXPIRE k -9223372036854775808 | EXISTS k | PEXPIREAT k -9223372036854775808 | SET k v
    EXPIRE k -9223372036854775 | EXISTS k | SET k v | EXPIRE k -9223372036854776 | EXISTS k
    EXPIREAT k -9223372036854775 | EXISTS k | SET k v | EXPIREAT k 9223372036854775 | EXPIRETIME k
    EXPIREAT k 9223372036854776 | PEXPIREAT k 9223372036854775807 | EXPIRETIME k | PEXPIRETIME k
    PEXPIREAT k 9223372036854775807 GT | PEXPIREAT k 9223372036854775806 LT | PEXPIRETIME k
    EXPIRE k 5 GT | SET k v | EXPIRE k 0 XX | EXPIRE k -5 GT | EXPIRE k -5 NX | EXISTS k
    SET k v | EXPIREAT k 4000000000 | EXPIRETIME k | PEXPIREAT k 4000000000499 | EXPIRETIME k
    PEXPIREAT k 4000000000500 | EXPIRETIME k | PERSIST k | PERSIST k | PERSIST no | TTL k | PTTL k
    PEXPIREAT k 1 | TTL k | TYPE k | PEXPIREAT no 10 LT BOGUS GT | EXPIRE k 1 gt nx bogus
    OBJECT ENCODING no | OBJECT REFCOUNT no | OBJECT IDLETIME no | OBJECT FREQ no | SET k v
    OBJECT ENCODING k | OBJECT REFCOUNT k | OBJECT IDLETIME k | OBJECT FREQ k | SET k 12345678
    OBJECT ENCODING k | OBJECT | OBJECT FREQ | OBJECT FREQ a b | OBJECT HELP | OBJECT HELP x
    COPY k k | COPY no no | COPY no no DB 0 | COPY no no DB 99 | COPY no n2 DB 99 | COPY no n2 DB x
    COPY k2 k REPLACE REPLACE | COPY k k DB 1 REPLACE | COPY k k DB 1 | COPY k k DB -1
    COPY k k DB 99999999999 | COPY k k DB | COPY k b REPLACE BOGUS | COPY k b DB 1 DB 0 | EXISTS b
    COPY k b DB 99 BOGUS | COPY k b DB x BOGUS | COPY k k DB 0 BOGUS | COPY k k REPLACE DB | COPY k
    PEXPIREAT k 4000000000000 | COPY k b | COPY k b REPLACE | PEXPIRETIME b | TYPE b
    MOVE no 0 | MOVE no 1 | MOVE no 99 | MOVE no abc | MOVE no -1 | MOVE no 99999999999
    MOVE no 9999999999999999999999 | MOVE k 0 | MOVE k 1 | MOVE k 2 | EXISTS k | SELECT 2
    PEXPIRETIME k | MOVE k 2 | MOVE k 0 | SELECT 1 | MOVE k 0 | SELECT 0 | EXISTS k | MOVE k
    RENAME no no | RENAME no k | RENAME k k | RENAMENX k k | RENAMENX no k | RENAME k r | EXISTS k
    PEXPIRETIME r | SET k v | RENAMENX r k | RENAME k r | PEXPIRETIME r | RENAMENX r s | KEYS *
    SET {t}a 1 | SET {t}b 2 | RENAME {t}a {t}b | EXISTS {t}a {t}b | DEL {t}a {t}b {t}b
    TOUCH | TOUCH no s s | EXISTS s s no | UNLINK s s no | DEL | DEL no | KEYS | KEYS a b
    SET h?llo 1 | SET hello 2 | SET hillo 3 | SET he 4 | KEYS h?llo | KEYS h\\?llo | KEYS hello
    KEYS h[ei]llo | KEYS h* | KEYS nothing | KEYS no* | KEYS \"\" | KEYS [h | KEYS ]
    SCAN | SCAN x | SCAN 1x | SCAN \"\" | SCAN -0 COUNT 100 | SCAN 0 COUNT 0 | SCAN 0 MATCH
    SCAN 0 COUNT 100 | SCAN 0 COUNT 100 COUNT | SCAN 0 BOGUS 1 | SCAN 0 TYPE STRING COUNT 100
    SCAN 0 TYPE list COUNT 100 | SCAN 0 TYPE zset COUNT 100 | SCAN 0 TYPE | SCAN 0 COUNT x
    SCAN 0 COUNT 9223372036854775807 | SCAN 0 COUNT 9223372036854775808 | SCAN x COUNT 0
    SCAN 0 COUNT 100 MATCH h?llo | SCAN 0 MATCH * COUNT 100 | SCAN 0 count 100 match x match he
    SCAN 18446744073709551616 | SCAN 99999999999999999999 | SCAN 0 COUNT 1 2 | RANDOMKEY x | DBSIZE
    DEL he hello hillo h?llo | RANDOMKEY | SCAN 0 | DBSIZE
";

#[test]
fn edge_cases_match_redis() {
    let mut pair = Pair::new();
    let lines = CORNERS.split(['|', '\n']).map(str::trim).filter(|line| !line.is_empty());
    lines.for_each(|line| pair.line(line));
}

#[test]
fn hits_and_misses_match_redis() {
    let mut pair = Pair::new();
    let lines = [
        "EXISTS a b no",
        "TOUCH a b no",
        "TTL a",
        "TTL no",
        "PTTL a",
        "EXPIRETIME a",
        "PEXPIRETIME no",
        "TYPE a",
        "TYPE no",
        "OBJECT ENCODING a",
        "OBJECT ENCODING no",
        "OBJECT FREQ a",
        "OBJECT IDLETIME a",
        "OBJECT REFCOUNT no",
        "MEMORY USAGE a",
        "MEMORY USAGE no",
        "COPY a c",
        "COPY a c",
        "COPY no c",
        "COPY a c REPLACE",
        "RENAME c d",
        "RENAME no d",
        "RENAMENX d e",
        "MOVE e 1",
        "MOVE no 1",
        "DEL no a",
        "UNLINK no b",
        "PERSIST a",
        "EXPIRE a 100",
        "EXPIRE no 100",
        "KEYS *",
        "KEYS a",
        "SCAN 0",
        "RANDOMKEY",
        "DBSIZE",
    ];
    for line in lines {
        pair.set("a", "1");
        pair.set("b", "2");
        pair.theirs.ask_line("CONFIG RESETSTAT");
        (pair.ours.tally.hits, pair.ours.tally.misses) = (0, 0);
        pair.theirs.ask_line(line);
        pair.ours.ask_line(line);
        let info = pair.theirs.ask_line("INFO stats");
        let field = |name: &str| {
            let value = info.text().lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.parse().ok()).expect("a counter")
        };
        let counted = (pair.ours.tally.hits, pair.ours.tally.misses);
        assert_eq!(counted, (field("keyspace_hits:"), field("keyspace_misses:")), "{line}");
    }
}

/// Which commands count as an access of a key.
#[test]
fn only_accesses_reset_the_idle_time() {
    let mut session = Session::new();
    let start = session.now;
    for (line, is_use) in [
        ("EXISTS k", false),
        ("TTL k", false),
        ("TYPE k", false),
        ("OBJECT ENCODING k", false),
        ("MEMORY USAGE k", false),
        ("KEYS k*", false),
        ("SCAN 0 COUNT 100", false),
        ("TOUCH k", true),
        ("COPY k copy REPLACE", true),
        ("EXPIRE k 100 XX", true),
        ("PERSIST k", true),
        ("RENAME k k", true),
    ] {
        session.now = start;
        session.put(b"k", b"v", None);
        session.now = UnixMs(start.0 + 7_000);
        session.ask_at(&words(line));
        let idle = session.ask_at(&words("OBJECT IDLETIME k"));
        assert_eq!(idle, Value::Integer(if is_use { 0 } else { 7 }), "{line}");
    }
}

/// An expired key is invisible to every command before it is removed.
#[test]
fn expired_keys_are_invisible_to_every_command() {
    let mut session = Session::new();
    let start = session.now;
    let cases = [
        ("EXISTS k", ":0"),
        ("DEL k", ":0"),
        ("TOUCH k", ":0"),
        ("TYPE k", "+none"),
        ("TTL k", ":-2"),
        ("PEXPIRETIME k", ":-2"),
        ("PERSIST k", ":0"),
        ("EXPIRE k 100", ":0"),
        ("COPY k l", ":0"),
        ("COPY other k", ":1"),
        ("MOVE k 1", ":0"),
        ("RENAME k l", "-ERR no such key"),
        ("RENAMENX other k", ":1"),
        ("KEYS *k", "[]"),
        ("KEYS k", "[]"),
        ("OBJECT ENCODING k", "null"),
        ("RANDOMKEY", "other"),
        ("SCAN 0 COUNT 100 MATCH k", "[0, []]"),
    ];
    for (line, expected) in cases {
        session.now = start;
        session.put(b"other", b"v", None);
        session.put(b"k", b"v", Some(UnixMs(start.0 + 5)));
        assert_eq!(shown(&session.ask_at(&words("EXISTS k"))), ":1");
        session.now = UnixMs(start.0 + 5);
        assert_eq!(shown(&session.ask_at(&words(line))), expected, "{line}");
        session.ask_at(&words("DEL k l other"));
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Integer(n) => format!(":{n}"),
        Value::Bulk(text) => text.clone(),
        Value::Simple(text) => format!("+{text}"),
        Value::Error(text) => format!("-{text}"),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        other => panic!("not from these commands: {other:?}"),
    }
}

fn keys_of(value: &Value) -> Vec<String> {
    let Value::Array(keys) = value else { panic!("no list: {value:?}") };
    keys.iter().map(|key| key.text().to_owned()).collect()
}

fn fill(session: &mut Session, keys: usize) -> BTreeSet<String> {
    let names: BTreeSet<_> = (0..keys).map(|n| format!("key:{n}")).collect();
    for name in &names {
        session.put(name.as_bytes(), b"v", None);
    }
    names
}

/// More keys than one step visits, and more bytes than one step writes.
#[test]
fn keys_runs_in_steps() {
    let mut session = Session::new();
    let names = fill(&mut session, 20_000);
    let found = keys_of(&session.ask_line("KEYS *"));
    assert_eq!(found.len(), names.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names);
    assert!(session.steps > 20, "{} steps", session.steps);
    assert_eq!(keys_of(&session.ask_line("KEYS *999?")).len(), 20);
    session.ask_line("KEYS key:7");
    assert_eq!(session.steps, 1, "a literal pattern is one lookup");
}

/// Long keys and patterns make a step visit fewer keys.
#[test]
fn the_work_of_a_step_is_bounded() {
    let mut session = Session::new();
    let long = "k".repeat(1_000);
    (0..400).for_each(|n| session.put(format!("{long}{n}").as_bytes(), b"v", None));
    session.ask_line("KEYS no*");
    let few = session.steps;
    let pattern = format!("*{}x", "k*".repeat(100));
    assert_eq!(keys_of(&session.ask(&[b"KEYS", pattern.as_bytes()])).len(), 0);
    assert!(session.steps > 8 * few, "{} steps, {few} for a short pattern", session.steps);
}

#[test]
fn scan_returns_every_key() {
    let mut session = Session::new();
    let names = fill(&mut session, 20_000);
    // (The last count is bounded by the work of a call.)
    for (options, least_calls) in [("", 1_500), (" COUNT 1000", 20), (" COUNT 1000000000", 4)] {
        let (mut cursor, mut found, mut calls) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let reply = session.ask_line(&format!("SCAN {cursor}{options}"));
            let Value::Array(parts) = reply else { panic!("no pair: {reply:?}") };
            parts[0].text().clone_into(&mut cursor);
            found.extend(keys_of(&parts[1]));
            calls += 1;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found.len(), names.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), names);
        assert!((least_calls..2 * least_calls + 2).contains(&calls), "{calls} calls");
    }
    assert_eq!(shown(&session.ask_line("SCAN -1")), "[0, []]", "a cursor behind the end");
}

#[test]
fn random_keys_are_spread_over_the_keyspace() {
    let mut session = Session::new();
    let names = fill(&mut session, 100);
    let drawn: BTreeSet<_> =
        (0..2_000).map(|_| session.ask_line("RANDOMKEY").text().to_owned()).collect();
    assert!(drawn.is_subset(&names));
    assert!(drawn.len() > 60, "{} of 100", drawn.len());
}

#[test]
fn debug_object_matches_redis() {
    let mut session = Session::new();
    let mut pair_lines = Vec::new();
    let mut oracle = Oracle::start();
    oracle.ask_line("CONFIG SET rdbcompression no");
    for text in ["v", "12", "123456", &"x".repeat(100), &"y".repeat(20_000)] {
        session.put(b"k", text.as_bytes(), None);
        oracle.ask(&[b"SET", b"k", text.as_bytes()]);
        let keyspace = std::sync::Arc::clone(session.access.keyspace());
        let key = keyspace.key(b"k");
        let later = UnixMs(session.now.0 + 3_000);
        let ours = session.access.free(later).visit(key.slot, Intent::Read, |guard| {
            let entry = guard.peek(DbIndex(0), &key).expect("it is there");
            command::server::describe(entry, later, &command::Settings::default())
        });
        let ours = ours.expect("nobody else holds a slot");
        assert!(ours.ends_with(" lru_seconds_idle:3"), "{ours}");
        assert!(ours.starts_with("Value at:0x"), "{ours}");
        let theirs = oracle.ask_line("DEBUG OBJECT k");
        let facts = |line: &str| {
            let words = line.split(' ').filter(|word| {
                word.starts_with("encoding:") || word.starts_with("serializedlength:")
            });
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(facts(&ours), facts(theirs.text()), "{ours}");
        let names = |line: &str| {
            let names = line.split(' ').map(|word| word.split(':').next().map(str::to_owned));
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&ours), names(theirs.text()));
        pair_lines.push(ours);
    }
    pair_lines.dedup();
    assert_eq!(pair_lines.len(), 5);
}

/// The same random commands on both servers. Expiries are far in the future or in the past, so that
/// no reply depends on the speed of the test.
#[test]
fn random_commands_match_redis() {
    for seed in 0..12 {
        let mut dice = Prng::new(seed);
        let mut pair = Pair::new();
        for _ in 0..500 {
            let line = random_line(&mut dice);
            pair.line(&line);
        }
        for db in 0..3 {
            pair.select(db);
            pair.line("KEYS *");
            pair.line("DBSIZE");
            for key in KEYS {
                pair.line(&format!("PEXPIRETIME {key}"));
                pair.line(&format!("OBJECT ENCODING {key}"));
            }
        }
    }
}

const KEYS: [&str; 6] = ["a", "b", "{a}c", "{a}d", "long-name-of-a-key", "e"];

fn random_line(dice: &mut Prng) -> String {
    let mut pick = |from: &[&str]| from[dice.below(from.len() as u64) as usize].to_owned();
    let (key, other) = (pick(&KEYS), pick(&KEYS));
    let at = pick(&["4000000000000", "4000000000001", "5000000000000", "1", "0", "-1"]);
    let seconds = pick(&["4000000000", "5000000000", "7", "0", "-9"]);
    let condition = pick(&["", "", "NX", "XX", "GT", "LT", "XX GT", "XX LT", "NX LT", "gt lt"]);
    let db = pick(&["0", "1", "2"]);
    match pick(&[
        "SET",
        "SET",
        "SET",
        "DEL",
        "EXISTS",
        "PEXPIREAT",
        "PEXPIREAT",
        "EXPIREAT",
        "PERSIST",
        "COPY",
        "COPY",
        "MOVE",
        "RENAME",
        "RENAMENX",
        "TYPE",
        "PEXPIRETIME",
        "EXPIRETIME",
        "KEYS",
        "SCAN",
        "SELECT",
        "TOUCH",
        "UNLINK",
        "OBJECT",
    ])
    .as_str()
    {
        "SET" => format!("SET {key} {}", pick(&["v", "12", "text", "-7", "0123"])),
        "DEL" => format!("DEL {key} {other}"),
        "EXISTS" => format!("EXISTS {key} {other} {key}"),
        "PEXPIREAT" => format!("PEXPIREAT {key} {at} {condition}"),
        "EXPIREAT" => format!("EXPIREAT {key} {seconds} {condition}"),
        "COPY" => format!("COPY {key} {other} {}", pick(&["", "REPLACE", "DB 1", "DB 2 REPLACE"])),
        "MOVE" => format!("MOVE {key} {db}"),
        "SELECT" => format!("SELECT {db}"),
        "KEYS" => format!("KEYS {}", pick(&["*", "a", "{a}*", "?", "[ab]", "*e*"])),
        "SCAN" => format!("SCAN 0 COUNT 1000 {}", pick(&["", "MATCH *a*", "TYPE string"])),
        "OBJECT" => format!("OBJECT ENCODING {key}"),
        two @ ("RENAME" | "RENAMENX" | "TOUCH" | "UNLINK") => format!("{two} {key} {other}"),
        one => format!("{one} {key}"),
    }
}
