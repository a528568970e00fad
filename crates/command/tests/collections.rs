//! Large hashes, sets, sorted sets and streams: replies in steps, scans which miss nothing, random
//! elements, operations on several keys, and the rollback of a panic.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::Value;
use crate::common::session::Session;
use value::Big;

/// A session with the hash `h` and the sets `s` and `t` of this many elements.
fn session(elements: usize) -> Session {
    let mut session = Session::new();
    for n in 0..elements {
        session.ask_line(&format!("HSET h field:{n} {n}"));
        session.ask_line(&format!("SADD s member:{n}"));
        session.ask_line(&format!("SADD t member:{}", n * 2));
    }
    session
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) | Value::Set(values) => {
            values.iter().map(|value| value.text().to_owned()).collect()
        }
        other => panic!("no list: {other:?}"),
    }
}

fn members(numbers: impl Iterator<Item = usize>) -> BTreeSet<String> {
    numbers.map(|n| format!("member:{n}")).collect()
}

#[test]
fn large_replies_are_written_in_steps() {
    let mut session = session(5000);
    let sorted = |value: &Value| texts(value).into_iter().collect::<BTreeSet<_>>();
    let all = texts(&session.ask_line("HGETALL h"));
    assert!(session.steps >= 5, "{}", session.steps);
    assert_eq!(all.len(), 10_000);
    for pair in all.chunks(2) {
        assert_eq!(pair[0], format!("field:{}", pair[1]));
    }
    assert_eq!(sorted(&session.ask_line("HKEYS h")).len(), 5000);
    assert_eq!(sorted(&session.ask_line("HVALS h")).len(), 5000);
    assert_eq!(sorted(&session.ask_line("SMEMBERS s")), members(0..5000));
    assert!(session.steps >= 5, "{}", session.steps);
    let both = (0..5000).filter(|n| n % 2 == 0);
    assert_eq!(sorted(&session.ask_line("SINTER s t")), members(both.clone()));
    assert!(session.steps >= 5, "{}", session.steps);
    let union = (0..5000).chain((0..5000).map(|n| n * 2));
    assert_eq!(sorted(&session.ask_line("SUNION s t none")), members(union.clone()));
    assert!(session.steps >= 5, "{}", session.steps);
    assert_eq!(sorted(&session.ask_line("SDIFF s t")), members((0..5000).filter(|n| n % 2 == 1)));
    assert_eq!(session.ask_line("SINTERCARD 2 s t"), Value::Integer(2500));
    assert!(session.steps >= 4, "{}", session.steps);
    assert_eq!(session.ask_line("SINTERCARD 2 s t LIMIT 2400"), Value::Integer(2400));
    for (request, count) in [
        ("SUNIONCARD 2 s t", 7500),
        ("SUNIONCARD 2 s t LIMIT 7000", 7000),
        ("SDIFFCARD 2 s t", 2500),
        ("SDIFFCARD 2 s t LIMIT 2400", 2400),
    ] {
        assert_eq!(session.ask_line(request), Value::Integer(count), "{request}");
        assert!(session.steps >= 4, "{} steps of {request}", session.steps);
    }
    for (command, expected) in [("SINTERSTORE", members(both)), ("SUNIONSTORE", members(union))] {
        let stored = session.ask_line(&format!("{command} d s t"));
        assert_eq!(stored, Value::Integer(expected.len() as i64));
        assert_eq!(sorted(&session.ask_line("SMEMBERS d")), expected);
    }
    // A much larger set is probed, not iterated.
    session.ask_line("SADD few member:7 member:4998 member:5001 other");
    let few: BTreeSet<_> = members([7, 4998].into_iter());
    assert_eq!(sorted(&session.ask_line("SINTER s few")), few);
    assert_eq!(session.ask_line("SDIFFSTORE d few s"), Value::Integer(2));
    // Random elements: distinct ones, or with repetition.
    for (request, count, different) in [
        ("SRANDMEMBER s 3000", 3000, true),
        ("SRANDMEMBER s -3000", 3000, false),
        ("SRANDMEMBER s 10", 10, true),
        ("SRANDMEMBER s 6000", 5000, true),
        ("HRANDFIELD h 3000", 3000, true),
        ("HRANDFIELD h -7000", 7000, false),
        ("SPOP s 2000", 2000, true),
        ("SPOP s 4000", 3000, true),
    ] {
        let found = texts(&session.ask_line(request));
        let kinds = found.iter().collect::<BTreeSet<_>>().len();
        assert_eq!((found.len(), kinds == count), (count, different), "{request}");
    }
    assert_eq!(session.ask_line("EXISTS s"), Value::Integer(0));
}

/// Elements which exist during the whole scan are returned, whatever is added and removed
/// meanwhile.
#[test]
fn a_scan_returns_every_element_which_exists_throughout() {
    let mut session = session(2000);
    for (command, key) in [("HSCAN", "h"), ("SSCAN", "s")] {
        let (mut cursor, mut seen, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
        loop {
            let reply = session.ask_line(&format!("{command} {key} {cursor} COUNT 30"));
            let Value::Array(parts) = reply else { panic!("no pair: {reply:?}") };
            let step = if command == "HSCAN" { 2 } else { 1 };
            seen.extend(texts(&parts[1]).into_iter().step_by(step));
            cursor = parts[0].text().to_owned();
            calls += 1;
            for n in 0..20 {
                session.ask_line(&format!("HSET h new:{calls}:{n} x"));
                session.ask_line(&format!("SADD s new:{calls}:{n}"));
                let gone = 1000 + (calls * 20 + n) % 1000;
                session.ask_line(&format!("HDEL h field:{gone}"));
                session.ask_line(&format!("SREM s member:{gone}"));
            }
            if cursor == "0" {
                break;
            }
        }
        assert!(calls > 30, "{calls}");
        let word = if command == "HSCAN" { "field" } else { "member" };
        assert!((0..1000).all(|n| seen.contains(&format!("{word}:{n}"))), "{command}");
    }
}

/// Redis selects uniformly from a small set.
#[test]
fn random_members_are_uniform() {
    for elements in [10, 1000] {
        let mut session = session(elements);
        let mut counts = vec![0; elements];
        for _ in 0..elements * 100 {
            let member = session.ask_line("SRANDMEMBER s").text().to_owned();
            let number: usize = member["member:".len()..].parse().expect("a number");
            counts[number] += 1;
        }
        assert!(counts.iter().all(|n| (45..170).contains(n)), "{counts:?}");
    }
}

/// Everything that a client can observe of the keys used below.
fn state(session: &mut Session) -> Vec<Value> {
    let requests = ["HGETALL h", "SMEMBERS s", "SMEMBERS t", "SMEMBERS few", "TYPE d"];
    let encodings = ["h", "s", "few"].map(|key| format!("OBJECT ENCODING {key}"));
    let requests = requests.iter().map(|r| (*r).to_owned()).chain(encodings);
    requests.collect::<Vec<_>>().iter().map(|request| session.ask_line(request)).collect()
}

#[test]
fn a_panic_rolls_back_every_change() {
    let long = "v".repeat(300);
    let requests = [
        "HSET h field:1 x new y field:2 LONG".to_owned(),
        "HSET h field:1 LONG".to_owned(),
        "HDEL h field:1 field:2 none field:3".to_owned(),
        "HINCRBY h field:3 7".to_owned(),
        "HINCRBYFLOAT h field:3 7".to_owned(),
        "HSETNX h new LONG".to_owned(),
        "SADD s a b LONG".to_owned(),
        "SREM s member:1 member:2".to_owned(),
        "SPOP s".to_owned(),
        "SPOP s 5".to_owned(),
        "SPOP s 100000".to_owned(),
        "SMOVE s few member:3".to_owned(),
        "SMOVE few s 5".to_owned(),
        "SINTERSTORE few s t".to_owned(),
        "SUNIONSTORE d s t".to_owned(),
        "SDIFFSTORE s s t".to_owned(),
        "SADD few word".to_owned(),
        "SREM few 5 6 7".to_owned(),
    ];
    for elements in [20, 1500] {
        let mut session = session(elements);
        session.ask_line("SADD few 5 6 7");
        let before = state(&mut session);
        for request in &requests {
            for changes in 1..=2 {
                session.panic_after = changes;
                let request = request.replace("LONG", &long);
                let run = catch_unwind(AssertUnwindSafe(|| session.ask_line(&request)));
                session.tally = command::Tally::default();
                assert!(run.is_err() || changes > 1, "{request}: no change");
                if run.is_ok() {
                    // The request makes only one change. Continue with the previous state.
                    break;
                }
                assert_eq!(state(&mut session), before, "{request}");
            }
            if state(&mut session) != before {
                session = self::session(elements);
                session.ask_line("SADD few 5 6 7");
            }
        }
    }
}

/// Large sorted sets which are combined in steps give the same result as at once, in both of their
/// trees.
#[test]
fn sorted_sets_are_combined_in_steps() {
    let mut session = Session::new();
    for n in 0..2500 {
        let score = ["-0", "0", "1.5", "-inf", "7"][n % 5];
        session.ask_line(&format!("ZADD a {score} member:{n}"));
        session.ask_line(&format!("ZADD b {} member:{}", n * 37 % 100, n * 2));
        session.ask_line(&format!("SADD c member:{}", n * 3));
    }
    session.ask_line("ZADD few 5 member:6 2 other");
    for (operation, options) in [
        ("UNION", "4 a b c few WEIGHTS 1 -2 3 0.5"),
        ("UNION", "3 a b few AGGREGATE MIN"),
        ("INTER", "3 b a c AGGREGATE MAX"),
        ("INTER", "2 a few"),
        ("DIFF", "2 a c"),
        ("DIFF", "3 b few none"),
    ] {
        let mut replies = Vec::new();
        for at_once in [u64::MAX, 100] {
            session.settings.at_once_elements = at_once;
            let shown = session.ask_line(&format!("Z{operation} {options} WITHSCORES"));
            let is_stepped = session.steps > 10;
            assert!(operation != "UNION" || is_stepped == (at_once == 100), "{}", session.steps);
            let stored = session.ask_line(&format!("Z{operation}STORE to {options}"));
            let called = session.ask_line("OBJECT ENCODING to");
            let all = session.ask_line("ZRANGE to 0 -1 WITHSCORES");
            assert_eq!(all, shown, "{operation} {options}");
            let all = texts(&all);
            for (rank, pair) in all.chunks(2).enumerate() {
                let (member, score) = (&pair[0], &pair[1]);
                assert_eq!(session.ask_line(&format!("ZSCORE to {member}")).text(), score);
                let found = session.ask_line(&format!("ZRANK to {member}"));
                assert_eq!(found, Value::Integer(rank as i64));
            }
            replies.push((shown, stored, called));
        }
        assert_eq!(replies[0], replies[1], "{operation} {options}");
    }
}

/// Regression: each change of a group copied all groups of the stream for the undo log.
#[test]
fn a_change_of_a_group_does_not_copy_the_others() {
    let mut session = Session::new();
    session.ask_line("XGROUP CREATE s a 0 MKSTREAM");
    let place = |session: &mut Session| {
        session.entry(b"s", |entry| match entry.and_then(|entry| entry.big()) {
            Some(Big::Stream(stream)) => stream.groups().next().expect("a group").0.as_ptr(),
            _ => panic!("a stream"),
        })
    };
    let first = place(&mut session);
    let ok = Value::Simple("OK".into());
    // Few groups fit into a page, many into a tree of pages.
    for others in [0, 200] {
        for n in 0..others {
            assert_eq!(session.ask_line(&format!("XGROUP CREATE s other{n} 0")), ok);
        }
        for (line, reply) in [
            ("XGROUP CREATE s b $", ok.clone()),
            ("XGROUP SETID s b 5-0 ENTRIESREAD 3", ok.clone()),
            ("XGROUP CREATECONSUMER s b c", Value::Integer(1)),
            ("XGROUP CREATECONSUMER s b d", Value::Integer(1)),
            ("XGROUP DELCONSUMER s b c", Value::Integer(0)),
            ("XGROUP CREATE s c 1", ok.clone()),
            ("XGROUP DESTROY s b", Value::Integer(1)),
            ("XGROUP DESTROY s c", Value::Integer(1)),
        ] {
            assert_eq!(session.ask_line(line), reply, "{line}");
            assert_eq!(place(&mut session), first, "{line}");
        }
    }
}
