//! Keyspace notifications: which events are selected, events of what changes without a command, the
//! order of the events of one key, and when a reader may know of them. (Every event of random
//! sequences is compared with redis-server's in `differential`.)

use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

fn start(threads: usize, extra: &[&str]) -> ServerProcess {
    let threads = threads.to_string();
    ServerProcess::start(&Binary::under_test(), &[&["--threads", &threads], extra].concat())
}

fn ask(wire: &mut Wire, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{line}': {e}"))
}

fn ok(wire: &mut Wire, line: &str) {
    assert_eq!(ask(wire, line), Value::Simple(b"OK".to_vec()), "'{line}'");
}

/// Channel and text of the next message, without the common ends of a channel's name.
fn next(wire: &mut Wire) -> (String, String) {
    let value = wire.receive().expect("a message");
    let (Value::Array(parts) | Value::Push(parts)) = &value else { panic!("{value:?}") };
    let text = |value: &Value| match value {
        Value::Bulk(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    };
    let [.., channel, message] = &parts[..] else { panic!("{value:?}") };
    (text(channel).replace("__key", "").replace("__:", ":"), text(message))
}

/// A connection which hears of everything.
fn listener(server: &ServerProcess) -> Wire {
    let mut wire = server.connect();
    ask(&mut wire, "PSUBSCRIBE __key*__:*");
    wire
}

/// What the listener has heard up to now, as `<channel> <text>`.
fn heard(listener: &mut Wire, other: &mut Wire) -> Vec<String> {
    assert_eq!(ask(other, "PUBLISH __key__:end -"), Value::Int(1));
    let mut all = Vec::new();
    loop {
        let (channel, text) = next(listener);
        if channel == ":end" {
            return all;
        }
        all.push(format!("{channel} {text}"));
    }
}

#[test]
fn the_setting_selects_channels_and_classes() {
    for threads in [1, 2] {
        let server = start(threads, &["--notify-keyspace-events", "Kg"]);
        let (mut listener, mut wire) = (listener(&server), server.connect());
        let mut told = |classes: Option<&str>, lines: &[&str]| {
            if let Some(classes) = classes {
                let set = ["CONFIG", "SET", "notify-keyspace-events", classes];
                assert_eq!(wire.command(&set).expect("OK"), Value::Simple(b"OK".to_vec()));
            }
            for line in lines {
                ask(&mut wire, line);
            }
            heard(&mut listener, &mut wire)
        };
        let set_and_del = ["SET k v", "DEL k", "GET none"];
        assert_eq!(told(None, &set_and_del), ["space@0:k del"]);
        assert_eq!(told(Some("E$"), &set_and_del), ["event@0:set k"]);
        assert_eq!(told(Some("g$"), &set_and_del), [""; 0]);
        assert_eq!(told(Some("KE"), &set_and_del), [""; 0]);
        assert_eq!(told(Some("Km"), &set_and_del), ["space@0:none keymiss"]);
        let both = ["space@0:k set", "event@0:set k", "space@0:k del", "event@0:del k"];
        assert_eq!(told(Some("AKE"), &set_and_del), both);
        let new = ["event@0:new k", "event@0:set k", "event@0:del k"];
        assert_eq!(told(Some("AEn"), &set_and_del), new);
        let in_exec = ["SELECT 3", "MULTI", "LPUSH l a", "RENAME l m", "EXEC", "SELECT 0"];
        let expected = ["event@3:lpush l", "event@3:rename_from l", "event@3:rename_to m"];
        assert_eq!(told(Some("AE"), &in_exec), expected);
        assert_eq!(told(Some("AE"), &["MULTI", "SET k v", "DISCARD", "FLUSHALL"]), [""; 0]);
        assert_eq!(told(Some(""), &set_and_del), [""; 0]);
        let refused = ask(&mut server.connect(), "CONFIG SET notify-keyspace-events KEq");
        let text = "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') \
                    - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
        assert_eq!(refused, Value::Error(text.into()));
    }
}

/// What changes without a command is told, too: keys and fields whose time has come, with nobody
/// asking, and keys which go for lack of memory.
#[test]
fn what_expires_and_what_is_evicted_is_told() {
    for threads in [1, 2] {
        let server = start(threads, &["--notify-keyspace-events", "KEA"]);
        let (mut listener, mut wire) = (listener(&server), server.connect());
        ask(&mut wire, "PSETEX short 1 v");
        ask(&mut wire, "HSET hash a 1 b 2");
        ask(&mut wire, "HPEXPIRE hash 1 FIELDS 1 a");
        let mut seen = Vec::new();
        let wanted = ["space@0:short expired", "event@0:expired short", "event@0:hexpired hash"];
        while !wanted.iter().all(|event| seen.contains(&(*event).to_owned())) {
            let (channel, text) = next(&mut listener);
            seen.push(format!("{channel} {text}"));
        }
        assert!(!seen.contains(&"event@0:del hash".to_owned()), "it has another field");
        ok(&mut wire, "CONFIG SET maxmemory-policy allkeys-random");
        ok(&mut wire, "CONFIG SET notify-keyspace-events Ee");
        ok(&mut wire, "CONFIG SET maxmemory 1");
        while next(&mut listener) != ("event@0:evicted".into(), "hash".into()) {}
        assert_eq!(ask(&mut wire, "EXISTS hash"), Value::Int(0));
    }
}

/// The events of one key have the order of its changes, whichever workers make them: they tell a
/// possible history of a list.
#[test]
fn the_events_of_a_key_have_the_order_of_its_changes() {
    const CLIENTS: usize = 4;
    const PAIRS: usize = 2_000;
    for threads in [1, 2, 4] {
        let server = start(threads, &["--notify-keyspace-events", "EAn"]);
        let (mut listener, mut wire) = (listener(&server), server.connect());
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let mut wire = server.connect();
                scope.spawn(move || {
                    let pair =
                        [encode(&["RPUSH", "list", "x"]), encode(&["LPOP", "list"])].concat();
                    for _ in 0..PAIRS / 10 {
                        wire.send(&pair.repeat(10)).expect("it takes requests");
                        for _ in 0..20 {
                            drop(wire.receive().expect("an answer"));
                        }
                    }
                });
            }
            // It reads while they write, or it would be closed for what it has not read.
            let (mut elements, mut pushed, mut popped) = (0, 0, 0);
            let (mut is_new, mut is_over) = (false, false);
            while popped < CLIENTS * PAIRS || is_over {
                let (channel, key) = next(&mut listener);
                assert_eq!(key, "list");
                let name = channel.rsplit(':').next().expect("a name").to_owned();
                assert_eq!(is_over, name == "del", "{name} with {elements} elements");
                match name.as_str() {
                    "new" => assert!(elements == 0 && !std::mem::replace(&mut is_new, true)),
                    "rpush" => {
                        assert_eq!(std::mem::take(&mut is_new), elements == 0);
                        elements += 1;
                        pushed += 1;
                    }
                    "lpop" => {
                        elements -= 1;
                        popped += 1;
                        is_over = elements == 0;
                    }
                    _ => is_over = false,
                }
            }
            assert_eq!(pushed, CLIENTS * PAIRS);
        });
        assert_eq!(heard(&mut listener, &mut wire), [""; 0]);
    }
}

/// Who reads a value hears of its change first: the message is there before the reply.
#[test]
fn an_event_comes_before_a_reply_that_shows_its_change() {
    for threads in [1, 2, 4] {
        let server = start(threads, &["--notify-keyspace-events", "E$"]);
        let mut readers: Vec<Wire> = (0..4)
            .map(|_| {
                let mut wire = server.connect();
                ask(&mut wire, "HELLO 3");
                ask(&mut wire, "SUBSCRIBE __keyevent@0__:set");
                wire
            })
            .collect();
        let mut writer = server.connect();
        let mut told = vec![0_i64; readers.len()];
        for n in 1..=500_i64 {
            writer.send(&encode(&["SET", "k", &n.to_string()])).expect("it takes requests");
            for (reader, told) in readers.iter_mut().zip(&mut told) {
                reader.send(&encode(&["GET", "k"])).expect("it takes requests");
                let value = loop {
                    match reader.receive().expect("a reply") {
                        Value::Push(_) => *told += 1,
                        reply => break reply,
                    }
                };
                let Value::Bulk(text) = value else { continue }; // not set yet
                let shown: i64 = String::from_utf8_lossy(&text).parse().expect("a number");
                assert!(*told >= shown, "it shows {shown} and has told of {told} changes");
            }
            assert_eq!(writer.receive().expect("OK"), Value::Simple(b"OK".to_vec()));
        }
    }
}

/// With `appendfsync always` nobody hears of a change before it is durable: the event is behind
/// what the file holds.
#[test]
fn events_wait_until_their_change_is_durable() {
    let always = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = start(2, &[&always[..], &["--notify-keyspace-events", "E$"]].concat());
    let (mut listener, mut wire) = (listener(&server), server.connect());
    for n in 0..100 {
        ok(&mut wire, &format!("SET k{n} v"));
        assert_eq!(next(&mut listener), ("event@0:set".into(), format!("k{n}")));
    }
}
