//! Expiring fields: they are removed without an access, and a panic is rolled back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::session::Session;
use crate::common::{Value, with_args};
use base::{MonoNs, UnixMs};

/// A session with the hash `h` of this many fields, of which those below `due` expire in a second.
fn session(fields: usize, due: usize) -> Session {
    let mut session = Session::new();
    for n in 0..fields {
        session.ask_line(&format!("HSET h {n} v"));
        if n < due {
            let at = session.now.0 + 100_000;
            session.ask_line(&format!("HPEXPIREAT h {at} FIELDS 1 {n}"));
        }
    }
    session
}

/// Sweeps like the worker until nothing is left to expire. Then the expiry index is empty.
fn sweep(session: &mut Session, later: UnixMs) {
    for _ in 0..1000 {
        session.access.expire_step(later, 1_000_000_000, || MonoNs(0));
        if session.access.next_due().is_none() {
            return;
        }
    }
    panic!("a record is left for ever");
}

#[test]
fn fields_expire_without_an_access() {
    for (fields, due, left) in [(100, 40, 1), (100, 100, 0)] {
        let mut session = session(fields, due);
        assert_eq!(session.access.next_due().is_some(), due > 0);
        let later = UnixMs(session.now.0 + 200_000);
        sweep(&mut session, later);
        assert_eq!(session.access.keyspace().db_len(session.db), left);
        if left > 0 {
            assert_eq!(session.ask_line("HLEN h"), Value::Integer((fields - due) as i64));
        }
    }
}

#[test]
fn readers_do_not_see_expired_fields() {
    let mut session = session(100, 40);
    session.now = UnixMs(session.now.0 + 200_000);
    assert_eq!(session.ask_at(&[b"HLEN", b"h"]), Value::Integer(60));
    assert_eq!(session.ask_at(&[b"HGET", b"h", b"7"]), Value::Null);
    let later = session.now;
    sweep(&mut session, later);
    session.ask_line("DEL h");
    assert_eq!(session.access.keyspace().memory().entries, 0, "every byte was accounted for");
}

/// A payload contains each field's value and expiry, so a copy under another key is equal.
#[test]
fn a_dump_contains_the_expiries_of_fields() {
    for (fields, due) in [(1, 1), (3, 2), (100, 1), (100, 99), (100, 100)] {
        let mut session = session(fields, due);
        let payload = with_args(&[b"DUMP", b"h"], |args| session.reply_to(args)).to_vec();
        let head = payload.windows(2).position(|two| two == b"\r\n").expect("a length") + 2;
        let payload = &payload[head..payload.len() - 2];
        let reply = session.ask_at(&[b"RESTORE", b"i", b"0", payload]);
        assert_eq!(reply, Value::Simple("OK".into()));
        let all = session.ask_line("HGETALL h");
        assert_eq!(session.ask_line("HGETALL i"), all);
        let times = |session: &mut Session, key: &str| -> Vec<Value> {
            (0..fields)
                .map(|n| session.ask_line(&format!("HPEXPIRETIME {key} FIELDS 1 {n}")))
                .collect()
        };
        let expected = times(&mut session, "h");
        assert_eq!(times(&mut session, "i"), expected, "{fields} fields, {due} of them due");
        let never = Value::Array(vec![Value::Integer(-1)]);
        assert_eq!(expected.iter().filter(|time| **time != never).count(), due);
    }
}

#[test]
fn a_panic_rolls_back_field_expiries() {
    for request in [
        "HSET h 1 new",
        "HDEL h 1 2",
        "HEXPIRE h 5 FIELDS 3 1 2 77",
        "HPERSIST h FIELDS 2 1 2",
        "HGETDEL h FIELDS 1 1",
        "HGETEX h PERSIST FIELDS 1 1",
        "HSETEX h EX 5 FIELDS 2 1 x 88 y",
        "RENAME h i",
        "DEL h",
        "EXPIRE h 1000",
    ] {
        for changes in 1..=2 {
            let mut session = session(100, 40);
            let ask = |session: &mut Session| {
                let times = session.ask_line("HPEXPIRETIME h FIELDS 4 1 2 77 88");
                (times, session.ask_line("HGETALL h"))
            };
            let before = ask(&mut session);
            session.panic_after = changes;
            let run = catch_unwind(AssertUnwindSafe(|| session.ask_line(request)));
            session.tally = command::Tally::default();
            assert!(run.is_err() || changes > 1, "{request}: no change");
            if run.is_err() {
                assert_eq!(ask(&mut session), before, "{request}");
                let later = UnixMs(session.now.0 + 200_000);
                sweep(&mut session, later);
                assert_eq!(session.ask_line("HLEN h"), Value::Integer(60), "{request}");
            }
        }
    }
}
