//! Commands on strings and on keys of any type, applied to keys which hold a collection.
#![allow(clippy::redundant_closure_for_method_calls)] // a method is not general enough for what takes it

use crate::common::Value;
use crate::common::session::Session;
use base::UnixMs;
use keyspace::{Encoding, Event, Intent, Kind};
use std::sync::Arc;
use value::List;
use value::{Big, Log};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// A session with `packed` and `big`, which hold a list in the two layouts, and `text`.
fn session() -> Session {
    let mut session = Session::new();
    session.put(b"text", b"word", None);
    let keyspace = Arc::clone(session.access.keyspace());
    for name in [&b"packed"[..], b"big"] {
        let key = keyspace.key(name);
        let mut guard =
            session.access.lock_one(key.slot, session.now, Intent::Write).expect("nobody holds it");
        let due = Some(UnixMs(session.now.0 + 1_000_000));
        if name == b"packed" {
            guard.insert_packed(
                Event::SILENT,
                session.db,
                &key,
                Kind::List,
                Encoding::Listpack,
                b"\x01a",
                due,
            );
        } else {
            guard.insert_big(Event::SILENT, session.db, &key, Encoding::Quicklist, list(300), due);
        }
    }
    session
}

/// A list of many pages.
fn list(elements: usize) -> Big {
    let (mut list, mut log) = (List::default(), Log::default());
    for n in 0..elements {
        list.push_back(element(n).as_bytes(), &mut log);
    }
    Big::List(list)
}

fn element(n: usize) -> String {
    format!("{n:0900}")
}

fn len(session: &mut Session, name: &[u8]) -> Option<u64> {
    session.entry(name, |entry| {
        let entry = entry?;
        assert_eq!(entry.kind(), Kind::List);
        entry.big().map(Big::len)
    })
}

/// Recorded from a real server with a list under the key.
#[test]
fn string_commands_refuse_collections() {
    let mut session = session();
    let wrong = Value::Error(WRONG_TYPE.to_owned());
    for key in ["packed", "big"] {
        let requests = [
            "GET K",
            "STRLEN K",
            "GETDEL K",
            "GETSET K v",
            "GETEX K",
            "GETEX K PERSIST",
            "GETEX K EX 10",
            "GETRANGE K 0 -1",
            "SUBSTR K 0 -1",
            "SETRANGE K 0 v",
            "SETRANGE K 1 v",
            "APPEND K v",
            "INCR K",
            "DECR K",
            "INCRBY K 2",
            "DECRBY K 2",
            "INCRBYFLOAT K 1",
            "SET K v GET",
            "SET K v XX GET",
            "SET K v NX GET",
            "SET K v IFEQ x",
            "DELIFEQ K x",
        ];
        for request in requests {
            let request = request.replace('K', key);
            assert_eq!(session.ask_line(&request), wrong, "{request}");
        }
        let conditions = "ERR Key should be of string type if conditions are specified".into();
        assert_eq!(session.ask_line(&format!("DELEX {key} IFEQ x")), Value::Error(conditions));
        let lcs = "The specified keys must contain string values";
        let Value::Error(text) = session.ask_line(&format!("LCS text {key}")) else {
            panic!("LCS of a list is refused")
        };
        assert!(text.contains(lcs), "{text}");
        for (request, reply) in [
            (
                format!("MGET text {key}"),
                Value::Array(vec![Value::Bulk("word".into()), Value::Null]),
            ),
            (format!("SETNX {key} v"), Value::Integer(0)),
            (format!("SET {key} v NX"), Value::Null),
            (format!("MSETNX new v {key} v"), Value::Integer(0)),
            (format!("EXISTS {key}"), Value::Integer(1)),
            (format!("TOUCH {key}"), Value::Integer(1)),
            (format!("TYPE {key}"), Value::Simple("list".into())),
        ] {
            assert_eq!(session.ask_line(&request), reply, "{request}");
        }
    }
    assert_eq!((len(&mut session, b"packed"), len(&mut session, b"big")), (None, Some(300)));
}

#[test]
fn commands_on_any_key_accept_collections() {
    let mut session = session();
    let encoding =
        |session: &mut Session, key: &str| session.ask_line(&format!("OBJECT ENCODING {key}"));
    assert_eq!(encoding(&mut session, "packed"), Value::Bulk("listpack".into()));
    assert_eq!(encoding(&mut session, "big"), Value::Bulk("quicklist".into()));
    let Value::Integer(usage) = session.ask_line("MEMORY USAGE big") else { panic!("a size") };
    assert!(usage > 1000, "{usage}");
    // The copy is independent: a change of one does not change the other.
    assert_eq!(session.ask_line("COPY big copy"), Value::Integer(1));
    assert_eq!(session.ask_line("RENAME big other"), Value::Simple("OK".into()));
    assert_eq!(session.ask_line("EXISTS big"), Value::Integer(0));
    let keyspace = Arc::clone(session.access.keyspace());
    let key = keyspace.key(b"copy");
    {
        let mut guard =
            session.access.lock_one(key.slot, session.now, Intent::Write).expect("free");
        let mut entry = guard.entry_mut(Event::SILENT, session.db, &key).expect("it was copied");
        let popped = entry.edit(|big, log| match big {
            #[allow(clippy::redundant_closure_for_method_calls)]
            // the method takes one lifetime only
            Big::List(list) => Some(list.remove(list.len() - 1, log, |item| item.to_vec())),
            _ => None,
        });
        assert_eq!(popped, Some(element(299).into_bytes()));
    }
    assert_eq!((len(&mut session, b"copy"), len(&mut session, b"other")), (Some(299), Some(300)));
    for (request, reply) in [
        ("PERSIST other", Value::Integer(1)),
        ("TTL other", Value::Integer(-1)),
        ("EXPIRE other 100", Value::Integer(1)),
        ("TTL other", Value::Integer(100)),
        ("MOVE other 3", Value::Integer(1)),
        ("EXISTS other", Value::Integer(0)),
        ("RENAME copy packed", Value::Simple("OK".into())),
        ("COPY packed text", Value::Integer(0)),
        ("COPY packed text REPLACE", Value::Integer(1)),
        ("SCAN 0 TYPE string", Value::Array(vec![Value::Bulk("0".into()), Value::Array(vec![])])),
        ("SET packed v", Value::Simple("OK".into())),
        ("TYPE packed", Value::Simple("string".into())),
        ("UNLINK text packed", Value::Integer(2)),
    ] {
        assert_eq!(session.ask_line(request), reply, "{request}");
    }
    session.db = base::DbIndex(3);
    assert_eq!(len(&mut session, b"other"), Some(300));
    assert_eq!(session.ask_line("DEL other"), Value::Integer(1));
    let members: Vec<_> = (0..30_000).map(|n| n.to_string()).collect();
    let words = ["SADD", "many"].into_iter().chain(members.iter().map(String::as_str));
    let request: Vec<_> = words.map(str::as_bytes).collect();
    assert_eq!(session.ask(&request), Value::Integer(30_000));
    assert_eq!(session.ask_line("DEL many"), Value::Integer(1));
    assert_eq!(keyspace.memory().entries, 0, "every byte was accounted for");
    assert!(keyspace.reclaimer().freed() > 0, "values of many parts are freed apart");
}
