//! Streams which are too long for one step: the content of replies, and their order among other
//! replies.

use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

fn send(wire: &mut Wire, line: &str) {
    wire.send(&encode(&line.split(' ').collect::<Vec<_>>())).expect("the connection is open");
}

fn receive(wire: &mut Wire) -> String {
    render::line(&wire.receive().expect("a reply"))
}

fn ask(wire: &mut Wire, line: &str) -> String {
    send(wire, line);
    receive(wire)
}

/// A delivery of many entries prepares its reply in steps; inside EXEC this reply was once sent
/// after that of EXEC.
#[test]
fn a_long_xreadgroup_inside_exec_is_answered_in_order() {
    const ENTRIES: usize = 20_000;
    for threads in ["1", "2"] {
        let server = ServerProcess::start(&Binary::under_test(), &["--threads", threads]);
        let mut wire = server.connect();
        for _ in 0..ENTRIES {
            send(&mut wire, "XADD s * f v");
        }
        assert!((0..ENTRIES).all(|_| receive(&mut wire).starts_with('"')));
        assert_eq!(ask(&mut wire, "XGROUP CREATE s g 0"), "+OK");
        let deliver = format!("XREADGROUP GROUP g c COUNT {ENTRIES} STREAMS s >");
        for line in ["MULTI", "ECHO before", &deliver, "ECHO behind", "EXEC", "ECHO last"] {
            send(&mut wire, line);
        }
        assert_eq!(receive(&mut wire), "+OK");
        assert!((0..3).all(|_| receive(&mut wire) == "+QUEUED"));
        let Ok(Value::Array(replies)) = wire.receive() else { panic!("EXEC answers an array") };
        assert_eq!(render::line(&replies[0]), "\"before\"");
        assert_eq!(render::line(&replies[2]), "\"behind\"");
        let delivered = render::line(&replies[1]).matches("\"f\"").count();
        assert_eq!((replies.len(), delivered), (3, ENTRIES));
        assert_eq!(receive(&mut wire), "\"last\"");
    }
}

/// The value without times, which differ: absolute ones and idle times; and without a field which
/// Redis 7.0 does not have.
fn timeless(value: Value, is_row: bool) -> Value {
    match value {
        Value::Int(n) if n > 1_000_000_000_000 => Value::Simple(b"time".to_vec()),
        Value::Array(mut items) => {
            let newer = Value::Bulk(b"active-time".to_vec());
            if let Some(at) = items.iter().position(|item| *item == newer) {
                items.drain(at..at + 2);
            }
            if is_row && items.len() == 4 && matches!(items[2], Value::Int(_)) {
                items[2] = Value::Simple(b"idle".to_vec());
            }
            Value::Array(items.into_iter().map(|item| timeless(item, is_row)).collect())
        }
        other => other,
    }
}

/// Replies which are built in many steps equal those of redis-server.
#[test]
fn long_descriptions_and_listings_are_those_of_redis() {
    const ENTRIES: usize = 5_000;
    let mut replies = Vec::new();
    for binary in [Binary::redis(), Binary::under_test()] {
        let server = ServerProcess::start(&binary, &[]);
        let mut wire = server.connect();
        for n in 1..=ENTRIES {
            send(&mut wire, &format!("XADD s {n}-{} field {n} other v{n}", n % 3));
        }
        assert!((0..ENTRIES).all(|_| receive(&mut wire).starts_with('"')));
        for line in [
            "XGROUP CREATE s empty $",
            "XGROUP CREATE s g 0",
            "XGROUP CREATECONSUMER s g idler",
            "XREADGROUP GROUP g alice COUNT 2600 STREAMS s >",
            "XREADGROUP GROUP g bob COUNT 2000 STREAMS s >",
            "XACK s g 17-2 1000-1 1001-2 2599-1",
            "XDEL s 40-1 3000-0",
        ] {
            ask(&mut wire, line);
        }
        let mut all = Vec::new();
        for line in [
            "XPENDING s g",
            "XPENDING s g - + 100000",
            "XPENDING s g - + 1001",
            "XPENDING s g 1000-2 (4000-1 100000",
            "XPENDING s g - + 100000 bob",
            "XPENDING s g - + 100000 nobody",
            "XPENDING s g IDLE 1 - + 100000 alice",
            "XPENDING s g IDLE 100000000 - + 100000",
            "XPENDING s g - + 0",
            "XINFO STREAM s",
            "XINFO STREAM s FULL",
            "XINFO STREAM s FULL COUNT 0",
            "XINFO STREAM s FULL COUNT 1500",
        ] {
            if line.contains("IDLE 1 ") {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            send(&mut wire, line);
            let reply = timeless(wire.receive().expect("a reply"), line.starts_with("XP"));
            all.push((line, render::lines(&reply)));
        }
        replies.push(all);
    }
    let ours = replies.pop().expect("two");
    let theirs = replies.pop().expect("two");
    for ((line, ours), (_, theirs)) in ours.into_iter().zip(theirs) {
        let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        let at = differs.unwrap_or(ours.len().min(theirs.len()));
        assert!(ours == theirs, "{line}: line {at}: {:?}, {:?}", ours.get(at), theirs.get(at));
    }
}
