//! SORT of many elements runs in steps, and has the same result as at once.

use crate::common::Value;
use crate::common::session::Session;

const ELEMENTS: usize = 3000;
/// At most this many elements are sorted at once, so that SORT runs in steps.
const FEW: u64 = 100;

/// A list `l`, a set `s` and a sorted set `z` of numbers with gaps (some numbers are twice in the
/// list), a list `t` of texts, and weights for some elements, as texts or numbers.
fn session() -> Session {
    let mut session = Session::new();
    for n in 0..ELEMENTS {
        let number = (n * 7919) % (2 * ELEMENTS);
        session.ask_line(&format!("RPUSH l {}", number / 2 * 2));
        session.ask_line(&format!("SADD s {number}"));
        session.ask_line(&format!("ZADD z {} {number}", n % 10));
        session.ask_line(&format!("RPUSH t text:{number:0>50}"));
        if n % 3 > 0 {
            session.ask_line(&format!("SET w_{number} {}", n % 50));
            session.ask_line(&format!("HSET h_{number} f {number}.5"));
        }
    }
    session
}

/// The replies of a request at once and in steps, and the number of steps.
fn both(session: &mut Session, line: &str) -> (Value, Value, usize) {
    session.settings.at_once_elements = u64::MAX;
    let at_once = session.ask_line(line);
    session.settings.at_once_elements = FEW;
    let stepped = session.ask_line(line);
    (at_once, stepped, session.steps)
}

#[test]
fn many_elements_are_sorted_in_steps() {
    let mut session = session();
    for key in ["l", "s", "z"] {
        for by in ["", "BY w_* ", "BY h_*->f ", "BY w_* ALPHA ", "BY nosort ", "ALPHA "] {
            for direction in ["", "DESC "] {
                for limit in ["", "LIMIT 0 10 ", "LIMIT 1000 500 ", "LIMIT 2990 100 ", "LIMIT 0 0 "]
                {
                    for get in ["", "GET # GET x ", "GET # GET w_* GET h_*->f "] {
                        let line = format!("SORT {key} {by}{direction}{limit}{get}");
                        let (at_once, stepped, steps) = both(&mut session, line.trim());
                        assert_eq!(at_once, stepped, "{line}");
                        let is_long = by != "BY nosort " && get.len() < 20;
                        assert!(steps >= ELEMENTS / 300 || !is_long, "{steps} steps of {line}");
                    }
                }
            }
        }
    }
}

#[test]
fn elements_sorted_in_steps_are_stored_at_once() {
    let mut session = session();
    for key in ["l", "s", "z"] {
        for words in
            ["", "DESC", "ALPHA LIMIT 5 200", "BY w_*", "BY nosort", "GET # GET x", "GET w_*"]
        {
            let line = |to: &str| format!("SORT {key} {words} STORE {to}").replace("  ", " ");
            session.settings.at_once_elements = u64::MAX;
            let at_once = session.ask_line(&line("a"));
            session.settings.at_once_elements = FEW;
            let stepped = session.ask_line(&line("b"));
            assert_eq!(at_once, stepped, "{words}");
            let lists = ["a", "b"].map(|key| session.ask_line(&format!("LRANGE {key} 0 -1")));
            assert_eq!(lists[0], lists[1], "{words}");
            let called = ["a", "b"].map(|key| session.ask_line(&format!("OBJECT ENCODING {key}")));
            assert_eq!(called[0], called[1], "{words}");
        }
    }
    // The destination may be the source. An empty result removes the key.
    assert_eq!(session.ask_line("SORT l DESC STORE l"), Value::Integer(ELEMENTS as i64));
    let first = session.ask_line("LINDEX l 0").text().to_owned();
    assert_eq!(first.parse::<usize>(), Ok(2 * ELEMENTS - 2));
    assert_eq!(session.ask_line("SORT l LIMIT 9999 10 STORE l"), Value::Integer(0));
    assert_eq!(session.ask_line("EXISTS l"), Value::Integer(0));
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.contains("can't be converted into double"))
}

#[test]
fn elements_which_are_no_numbers_are_refused_in_steps() {
    let mut session = session();
    session.ask_line("RPUSH to 1 2 3");
    session.ask_line("RPUSH l three");
    for line in ["SORT l", "SORT l STORE to", "SORT l GET w_*", "SORT t", "SORT l LIMIT 0 1"] {
        let (at_once, stepped, _) = both(&mut session, line);
        assert_eq!(at_once, stepped, "{line}");
        assert!(is_refused(&at_once), "{at_once:?}");
    }
    assert_eq!(session.ask_line("LLEN to"), Value::Integer(3), "nothing was changed");
    session.ask_line("SET w_8 eight");
    let (at_once, stepped, _) = both(&mut session, "SORT s BY w_*");
    assert_eq!(at_once, stepped);
    assert!(is_refused(&at_once), "{at_once:?}");
}

/// The value of a pattern's key at the time of its lookup counts, not the value when the elements
/// were captured.
#[test]
fn elements_which_change_are_sorted_again() {
    let mut session = session();
    session.settings.at_once_elements = FEW;
    let before = session.ask_line("SORT s LIMIT 0 1");
    session.ask_line("SADD s -5");
    assert_ne!(session.ask_line("SORT s LIMIT 0 1"), before);
    // Long elements, whose bytes end a step.
    for n in 0..500 {
        let text = format!("{n}{}", "x".repeat(20_000));
        session.ask(&[b"RPUSH", b"long", text.as_bytes()]);
    }
    let (at_once, stepped, steps) = both(&mut session, "SORT long ALPHA");
    assert_eq!(at_once, stepped);
    assert!(steps >= 2 * 500 * 20_000 / 65_536 - 10, "{steps}");
}
