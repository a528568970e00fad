//! MONITOR over several connections and workers: which commands are shown, in which order, and the
//! limit for a slow reader.

use std::time::{Duration, Instant};

use sheafdb_tests::render;
use sheafdb_tests::server_process::{Binary, Kind, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Runs a test on the reference, and here on one and on two workers.
fn everywhere(test: impl Fn(&mut ServerProcess)) {
    let binary = Binary::under_test();
    if binary.kind == Kind::SheafDb {
        for threads in ["1", "2"] {
            test(&mut ServerProcess::start(&binary, &["--threads", threads]));
        }
    }
    test(&mut ServerProcess::start(&Binary::redis(), &[]));
}

fn ask(wire: &mut Wire, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    wire.command(&words).map_or_else(|_| "closed".into(), |reply| render::line(&reply))
}

/// The next line of a monitor.
fn next_line(wire: &mut Wire) -> String {
    match wire.receive().expect("a line") {
        Value::Simple(line) => String::from_utf8(line).expect("quoted text is ASCII"),
        other => panic!("not a line: {other:?}"),
    }
}

/// The line without its timestamp, which must be within 2 s of now.
fn timeless(line: &str) -> &str {
    let (time, rest) = line.split_once(' ').expect("a time stands first");
    let (seconds, micros) = time.split_once('.').expect("with microseconds");
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let seconds: u64 = seconds.parse().expect("a number");
    assert!(seconds.abs_diff(now) <= 2 && micros.len() == 6, "{line}");
    rest
}

#[test]
fn lines_show_database_and_address() {
    everywhere(|server| {
        let mut monitor = server.connect();
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        // Enough connections that each worker has some.
        for n in 0..4 {
            let mut wire = server.connect();
            let address = wire.stream().local_addr().expect("connected");
            assert_eq!(ask(&mut wire, &format!("SELECT {n}")), "+OK");
            assert_eq!(
                timeless(&next_line(&mut monitor)),
                format!("[{n} {address}] \"SELECT\" \"{n}\"")
            );
            wire.command(&[b"set".as_slice(), b"a \"key\"", b"\x00\xffv"]).expect("answered");
            let line = format!("[{n} {address}] \"set\" \"a \\\"key\\\"\" \"\\x00\\xffv\"");
            assert_eq!(timeless(&next_line(&mut monitor)), line);
        }
    });
}

/// A queued command is shown when it runs, and EXEC after it. Commands that were not executed and
/// those of administrators are not shown.
#[test]
fn commands_are_shown_when_they_run() {
    everywhere(|server| {
        let (mut monitor, mut wire) = (server.connect(), server.connect());
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        for line in ["MULTI", "SET k 1", "INCR k", "CONFIG GET port", "exec", "NOSUCH", "GET"] {
            ask(&mut wire, line);
        }
        let mut blocked = server.connect();
        blocked.send(&encode(&["BLPOP", "l", "0"])).expect("open");
        let expected = [
            "\"MULTI\"",
            "\"SET\" \"k\" \"1\"",
            "\"INCR\" \"k\"",
            "\"exec\"",
            "\"BLPOP\" \"l\" \"0\"",
        ];
        for expected in expected {
            let line = next_line(&mut monitor);
            assert_eq!(timeless(&line).split_once("] ").expect("an address").1, expected);
        }
        ask(&mut wire, "RPUSH l x");
        assert!(next_line(&mut monitor).ends_with("\"RPUSH\" \"l\" \"x\""));
        blocked.receive().expect("served");
        assert!(!monitor.has_reply(Duration::from_millis(50)).expect("open"));
    });
}

/// A command sent after a reply is shown after the command of that reply, whichever workers run
/// them.
#[test]
fn lines_follow_the_order_of_replies() {
    everywhere(|server| {
        let mut monitors = [server.connect(), server.connect()];
        for monitor in &mut monitors {
            assert_eq!(ask(monitor, "MONITOR"), "+OK");
        }
        let mut wires: Vec<Wire> = (0..4).map(|_| server.connect()).collect();
        const COMMANDS: usize = 400;
        for n in 0..COMMANDS {
            ask(&mut wires[n % 4], &format!("APPEND k{} {n}", n % 7));
        }
        for monitor in &mut monitors {
            for n in 0..COMMANDS {
                let line = next_line(monitor);
                assert!(line.ends_with(&format!(" \"{n}\"")), "{n}th: {line}");
            }
        }
    });
}

/// Commands on one key from several clients at once are shown in the order in which they took
/// effect.
#[test]
fn commands_on_one_key_are_shown_in_execution_order() {
    everywhere(|server| {
        let mut monitor = server.connect();
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        let addr = server.addr;
        std::thread::scope(|scope| {
            for client in 0..4 {
                scope.spawn(move || {
                    let mut wire = Wire::connect(addr).expect("it listens");
                    for n in 0..300 {
                        ask(&mut wire, &format!("RPUSH list {client}:{n}"));
                    }
                });
            }
        });
        let Value::Array(list) =
            server.connect().command(&["LRANGE", "list", "0", "-1"]).expect("a list")
        else {
            panic!("a list")
        };
        assert_eq!(list.len(), 1200);
        for element in list {
            let Value::Bulk(element) = element else { panic!("{element:?}") };
            let element = String::from_utf8(element).expect("ASCII");
            let line = next_line(&mut monitor);
            assert!(line.ends_with(&format!(" \"{element}\"")), "{element}: {line}");
        }
    });
}

#[test]
fn reset_and_kill_end_monitoring() {
    everywhere(|server| {
        let (mut monitor, mut wire) = (server.connect(), server.connect());
        let id = ask(&mut monitor, "CLIENT ID");
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        let list = ask(&mut wire, "CLIENT LIST TYPE normal");
        assert!(list.contains("flags=O") && list.contains("cmd=monitor"), "{list}");
        assert_eq!(ask(&mut monitor, "RESET"), "+RESET");
        assert_eq!(ask(&mut wire, "PING"), "+PONG");
        assert!(!monitor.has_reply(Duration::from_millis(50)).expect("open"));
        assert_eq!(ask(&mut monitor, "SET k v"), "+OK");
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        assert_eq!(ask(&mut wire, &format!("CLIENT KILL ID {}", &id[1..])), ":1");
        assert!(monitor.receive().is_err(), "it is closed");
        assert_eq!(ask(&mut wire, "GET k"), "\"v\"");
    });
}

/// A monitor which does not read is closed at the limit of normal clients; others are not affected.
#[test]
fn a_slow_monitor_is_closed_at_the_limit() {
    everywhere(|server| {
        let (mut monitor, mut wire) = (server.connect(), server.connect());
        let limit = "CONFIG SET client-output-buffer-limit".split(' ').collect::<Vec<_>>();
        let reply = wire.command(&[&limit[..], &["normal 1mb 0 0"]].concat()).expect("answered");
        assert_eq!(render::line(&reply), "+OK");
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        let id = "flags=O";
        let big = "v".repeat(100_000);
        let started = Instant::now();
        while ask(&mut wire, "CLIENT LIST").contains(id) {
            for _ in 0..20 {
                assert_eq!(ask(&mut wire, &format!("SET k {big}")), "+OK");
            }
            assert!(started.elapsed() < Duration::from_secs(60), "it is never closed");
        }
        assert_eq!(ask(&mut wire, "STRLEN k"), ":100000");
    });
}

#[test]
fn lines_of_unix_socket_clients_show_its_path() {
    everywhere(|server| {
        use std::io::{Read, Write};
        let mut monitor = server.connect();
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK");
        let path = server.unix_socket();
        let mut stream = std::os::unix::net::UnixStream::connect(&path).expect("it listens there");
        stream.write_all(b"PING\r\n").expect("open");
        stream.read_exact(&mut [0; 7]).expect("answered");
        let line = format!("[0 unix:{}] \"PING\"", path.display());
        assert_eq!(timeless(&next_line(&mut monitor)), line);
    });
}
