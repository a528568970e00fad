//! Large values: fills them with elements and waits until they are freed.

use std::time::{Duration, Instant};

use crate::in_time::LIMIT;
use crate::wire::{Value, Wire, encode};

/// A million.
pub const MILLION: usize = 1_000_000;

/// Makes the arguments of the n-th element: a member, or a field and its value.
pub type Element = fn(usize) -> Vec<String>;

/// Sends a command, its arguments separated by spaces, and returns the reply.
///
/// # Panics
/// If there is no reply.
pub fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

/// The integer field `name` of an INFO section.
///
/// # Panics
/// If there is no such field.
pub fn figure(wire: &mut Wire, section: &str, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, &format!("INFO {section}")) else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Adds `count` elements to a key, in pipelined commands of 500 elements.
///
/// # Panics
/// If a reply is an error.
pub fn fill(wire: &mut Wire, command: &str, key: &str, count: usize, element: Element) {
    const EACH: usize = 500;
    const DEPTH: usize = 20;
    for from in (0..count).step_by(EACH * DEPTH) {
        let mut pipeline = Vec::new();
        for from in (from..from + EACH * DEPTH).step_by(EACH) {
            let mut args = vec![command.to_owned(), key.to_owned()];
            args.extend((from..from + EACH).flat_map(element));
            pipeline.extend(encode(&args));
        }
        wire.send(&pipeline).expect("it takes requests");
        for _ in 0..DEPTH {
            let reply = wire.receive().expect("answered");
            assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
        }
    }
}

/// Waits until everything that was removed is freed.
///
/// # Panics
/// If that takes too long.
pub fn until_freed(wire: &mut Wire) {
    let began = Instant::now();
    while figure(wire, "memory", "lazyfree_pending_objects") > 0 {
        assert!(began.elapsed() < LIMIT, "removed values are not freed");
        std::thread::sleep(Duration::from_millis(5));
    }
}
