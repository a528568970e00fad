//! Clients which disconnect or half-close while their session waits, on both back ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use sheafdb_tests::no_io_uring::is_forbidden;
use sheafdb_tests::server_process::{Binary, ServerProcess};
use sheafdb_tests::wire::{Value, Wire, encode};

/// Longest wait for something that comes.
const PATIENCE: Duration = Duration::from_secs(120);

fn on_both(test: impl Fn(&ServerProcess)) {
    for back_end in ["epoll", "io_uring"] {
        if back_end == "io_uring" && is_forbidden() {
            eprintln!("not run: io_uring is forbidden here");
            continue;
        }
        let args = ["--io-backend", back_end, "--threads", "2"];
        test(&ServerProcess::start(&Binary::under_test(), &args));
    }
}

fn requests(lines: &[&str]) -> Vec<u8> {
    let one = |line: &&str| encode(&line.split(' ').collect::<Vec<_>>());
    lines.iter().flat_map(one).collect()
}

/// A new connection which has sent these requests in one packet.
fn send(server: &ServerProcess, lines: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(server.addr).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(&requests(lines)).expect("it takes requests");
    stream
}

/// The same, and the client has shut down its sending side.
fn send_last(server: &ServerProcess, lines: &[&str]) -> TcpStream {
    let stream = send(server, lines);
    stream.shutdown(Shutdown::Write).expect("connected");
    stream
}

/// All bytes until the server closes the connection.
fn read_to_end(mut stream: TcpStream) -> String {
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("it is closed in good order");
    String::from_utf8(got).expect("text")
}

fn ask(wire: &mut Wire, text: &str) -> Value {
    let words: Vec<&str> = text.split(' ').collect();
    wire.command(&words).unwrap_or_else(|e| panic!("'{text}': {e}"))
}

fn figure(wire: &mut Wire, name: &str) -> i64 {
    let Value::Bulk(text) = ask(wire, "INFO clients") else { panic!("a text") };
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

fn until(wire: &mut Wire, name: &str, count: i64) {
    let began = Instant::now();
    while figure(wire, name) != count {
        assert!(began.elapsed() < PATIENCE, "{name} is {}, not {count}", figure(wire, name));
        thread::sleep(Duration::from_millis(1));
    }
}

fn descriptors(server: &ServerProcess) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs").count()
}

/// The server notices that a blocked client with a further request has disconnected: the next
/// element is not popped for it.
#[test]
fn a_disconnected_blocked_client_with_queued_requests_takes_no_element() {
    on_both(|server| {
        let mut wire = server.connect();
        until(&mut wire, "connected_clients", 1);
        let before = descriptors(server);
        let behind = vec!["ECHO xxxxxxxxxxxxxxxx"; 1000];
        for (n, behind) in [&[][..], &["PING"], &behind].into_iter().enumerate() {
            for command in [format!("BLPOP q{n} 0"), format!("BLMOVE q{n} other LEFT RIGHT 0")] {
                for _ in 0..5 {
                    let lines = [&[&*command][..], behind].concat();
                    let gone = send(server, &lines);
                    until(&mut wire, "blocked_clients", 1);
                    drop(gone);
                    until(&mut wire, "blocked_clients", 0);
                }
            }
            assert_eq!(ask(&mut wire, &format!("RPUSH q{n} kept")), Value::Int(1));
            assert_eq!(ask(&mut wire, &format!("LLEN q{n}")), Value::Int(1));
        }
        until(&mut wire, "connected_clients", 1);
        assert!(descriptors(server) <= before, "{} after {before}", descriptors(server));
    });
}

/// One that only stops sending gets the replies of what it sent before it blocked; then it is
/// closed, as in Redis.
#[test]
fn a_blocked_client_that_stops_sending_is_answered_and_closed() {
    on_both(|server| {
        let mut wire = server.connect();
        assert_eq!(read_to_end(send_last(server, &["PING", "BLPOP q 0", "PING"])), "+PONG\r\n");
        until(&mut wire, "blocked_clients", 0);
        assert_eq!(ask(&mut wire, "RPUSH q kept"), Value::Int(1));
        assert_eq!(ask(&mut wire, "LLEN q"), Value::Int(1));
        // The requests sent before are larger than the socket's buffer: they are read later.
        assert_eq!(ask(&mut wire, &format!("SET big {}", "x".repeat(30 << 20))), ok());
        let slow = send_last(server, &["GET big", "BLPOP none 0"]);
        until(&mut wire, "blocked_clients", 0);
        assert_eq!(read_to_end(slow).len(), "$31457280\r\n\r\n".len() + (30 << 20));
    });
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// Under CLIENT PAUSE the requests of a client that disconnects are not executed, nor those of one
/// that only stops sending: as in Redis.
#[test]
fn requests_of_a_disconnected_paused_client_are_not_executed() {
    on_both(|server| {
        let mut wire = server.connect();
        assert_eq!(ask(&mut wire, "CLIENT PAUSE 600000 WRITE"), ok());
        let gone = send(server, &["RPUSH z 1", "PING"]);
        until(&mut wire, "connected_clients", 2);
        drop(gone);
        until(&mut wire, "connected_clients", 1);
        assert_eq!(read_to_end(send_last(server, &["PING", "RPUSH z 1", "PING"])), "+PONG\r\n");
        assert_eq!(ask(&mut wire, "CLIENT UNPAUSE"), ok());
        assert_eq!(ask(&mut wire, "EXISTS z"), Value::Int(0));
    });
}

/// Work that ends by itself is completed, and the requests sent after it are answered.
#[test]
fn a_half_closed_client_gets_the_replies_of_long_commands() {
    on_both(|server| {
        let mut wire = server.connect();
        assert_eq!(
            read_to_end(send_last(server, &["DEBUG SLEEP 0.2", "PING"])),
            "+OK\r\n+PONG\r\n"
        );
        let count = 200_000;
        assert_eq!(ask(&mut wire, &format!("DEBUG POPULATE {count}")), ok());
        for behind in [&[][..], &["PING"]] {
            let got = read_to_end(send_last(server, &[&["KEYS *"][..], behind].concat()));
            assert!(got.starts_with(&format!("*{count}\r\n")), "all keys");
            assert_eq!(got.matches("key:").count(), count);
            assert_eq!(got.ends_with("+PONG\r\n"), !behind.is_empty());
        }
        // While the World gate is closed.
        let sleeper = send(server, &["DEBUG SLEEP 0.3"]);
        thread::sleep(Duration::from_millis(50));
        let parked = send_last(server, &["RPUSH l 1", "PING"]);
        assert_eq!(read_to_end(parked), ":1\r\n+PONG\r\n");
        drop(sleeper);
        until(&mut wire, "connected_clients", 1);
    });
}

/// A blocking timeout passes while clients are paused, and CLIENT UNBLOCK is answered: both as in
/// Redis.
#[test]
fn blocking_timeouts_pass_during_a_pause() {
    on_both(|server| {
        let mut wire = server.connect();
        for mode in ["WRITE", "ALL"] {
            let mut blocked = server.connect();
            let id = ask(&mut blocked, "CLIENT ID");
            let Value::Int(id) = id else { panic!("{id:?}") };
            if mode == "WRITE" {
                blocked.send(&requests(&["BLPOP q 0"])).expect("it takes requests");
                until(&mut wire, "blocked_clients", 1);
                assert_eq!(ask(&mut wire, "CLIENT PAUSE 600000 WRITE"), ok());
                assert_eq!(ask(&mut wire, &format!("CLIENT UNBLOCK {id} ERROR")), Value::Int(1));
                let reply = blocked.receive().expect("a reply");
                assert!(matches!(reply, Value::Error(_)), "{reply:?}");
                assert_eq!(ask(&mut wire, "CLIENT UNPAUSE"), ok());
            }
            blocked.send(&requests(&["BLPOP q 1"])).expect("it takes requests");
            until(&mut wire, "blocked_clients", 1);
            assert_eq!(ask(&mut wire, &format!("CLIENT PAUSE 600000 {mode}")), ok());
            assert_eq!(blocked.receive().expect("long before the pause ends"), Value::NullArray);
            if mode == "WRITE" {
                assert_eq!(ask(&mut wire, "CLIENT UNPAUSE"), ok());
            }
        }
    });
}
