//! Every model replies correctly, however requests are split, and survives invalid input.

mod common;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use bench::models::{Flush, Model, Options};
use client::Value;
use common::{
    connect, eventually, exchange, is_served, resp_models, resp_models_by_flush, start, stream,
    undisturbed,
};

/// Requests, their words separated by spaces, and the bytes of their replies.
const GOLDEN: &[(&str, &str)] = &[
    ("PING", "+PONG\r\n"),
    ("ping hello", "$5\r\nhello\r\n"),
    ("ECHO x", "$1\r\nx\r\n"),
    ("GET k", "$-1\r\n"),
    ("SET k value", "+OK\r\n"),
    ("get k", "$5\r\nvalue\r\n"),
    ("SET k v EX 10", "-ERR syntax error\r\n"),
    ("INCR k", "-ERR value is not an integer or out of range\r\n"),
    ("INCR n", ":1\r\n"),
    ("INCR n", ":2\r\n"),
    ("SET n 9223372036854775807", "+OK\r\n"),
    ("INCR n", "-ERR increment or decrement would overflow\r\n"),
    ("MSET a 1 b 2 a 3", "+OK\r\n"),
    ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"),
    ("GET a", "$1\r\n3\r\n"),
    ("EXISTS a b a none", ":3\r\n"),
    ("STRLEN a", ":1\r\n"),
    ("STRLEN none", ":0\r\n"),
    ("MGET a none b", "*3\r\n$1\r\n3\r\n$-1\r\n$1\r\n2\r\n"),
    ("UNLINK none", ":0\r\n"),
    ("DBSIZE", ":4\r\n"),
    ("DEL a b a none", ":2\r\n"),
    ("CONFIG GET save", "*0\r\n"),
    ("CONFIG GET", "-ERR wrong number of arguments for 'config|get' command\r\n"),
    ("CONFIG SET a b", "-ERR unknown subcommand 'SET'\r\n"),
    ("COMMAND DOCS", "*0\r\n"),
    ("COMMAND", "*0\r\n"),
    ("CLIENT SETNAME me", "+OK\r\n"),
    ("CLIENT SETINFO lib-name x", "+OK\r\n"),
    ("CLIENT KILL x", "-ERR unknown subcommand 'KILL'\r\n"),
    ("SELECT 0", "+OK\r\n"),
    ("SELECT 1", "-ERR DB index is out of range\r\n"),
    ("SELECT x", "-ERR value is not an integer or out of range\r\n"),
    ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
    ("GET a b", "-ERR wrong number of arguments for 'get' command\r\n"),
    ("NOTHING a", "-ERR unknown command 'NOTHING'\r\n"),
    ("INFO io", "$0\r\n\r\n"),
    ("INFO keyspace", "$44\r\n# Keyspace\r\ndb0:keys=2,expires=0,avg_ttl=0\r\n\r\n"),
    ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
    ("HELLO 3 NONSENSE", "-ERR Syntax error in HELLO\r\n"),
    ("HELLO 3 AUTH user", "-ERR Syntax error in HELLO\r\n"),
    ("GET none", "$-1\r\n"),
    (
        "HELLO 3 AUTH user password SETNAME me",
        "%4\r\n$6\r\nserver\r\n$13\r\nsheafdb-bench\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n$5\r\nproto\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n",
    ),
    ("GET none", "_\r\n"),
    ("CONFIG GET save", "%0\r\n"),
    ("COMMAND DOCS", "%0\r\n"),
    ("INFO io", "=4\r\ntxt:\r\n"),
    (
        "HELLO 2",
        "*8\r\n$6\r\nserver\r\n$13\r\nsheafdb-bench\r\n$7\r\nversion\r\n$5\r\n0.1.0\r\n$5\r\nproto\r\n:2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n",
    ),
    ("GET none", "$-1\r\n"),
    ("FLUSHALL NOW", "-ERR syntax error\r\n"),
    ("FLUSHALL", "+OK\r\n"),
    ("DBSIZE", ":0\r\n"),
    ("FLUSHDB ASYNC", "+OK\r\n"),
    ("QUIT", "+OK\r\n"),
];

fn request(words: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    client::encode(&words)
}

fn golden() -> (Vec<u8>, String) {
    let requests = GOLDEN.iter().flat_map(|(words, _)| request(words)).collect();
    (requests, GOLDEN.iter().map(|(_, reply)| *reply).collect())
}

#[test]
fn each_model_answers_each_request() {
    for (model, options) in resp_models_by_flush() {
        let running = start(model, &options);
        let mut stream = stream(&running);
        for (words, expected) in GOLDEN {
            stream.write_all(&request(words)).expect("it reads");
            let mut got = vec![0; expected.len()];
            let read = stream.read_exact(&mut got);
            assert!(read.is_ok(), "{model:?} {words}: {read:?}");
            assert_eq!(String::from_utf8_lossy(&got), *expected, "{model:?} {words}");
        }
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "{model:?} closes after QUIT");
        running.stop();
    }
}

#[test]
fn pipelines_may_be_split_and_are_answered_in_order() {
    let (requests, expected) = golden();
    let more = [&requests[..], &request("PING")].concat();
    for (model, options) in resp_models_by_flush() {
        let running = start(model, &options);
        for piece in [requests.len(), 100, 7, 1] {
            let got = exchange(&running, &requests, piece);
            assert_eq!(String::from_utf8_lossy(&got), expected, "{model:?} in {piece}");
            // Nothing reads the input after QUIT, so the end may be a reset, which discards replies
            // not yet acknowledged by the client's side.
            let got = exchange(&running, &more, piece);
            let got = String::from_utf8_lossy(&got);
            assert!(expected.starts_with(&*got), "{model:?} in {piece}: {got}");
        }
        running.stop();
    }
}

#[test]
fn a_half_closed_client_receives_all_replies() {
    let requests = request("INCR n").repeat(3_000);
    let expected: Vec<u8> = (1..=3_000).flat_map(|n| format!(":{n}\r\n").into_bytes()).collect();
    for (model, options) in resp_models_by_flush() {
        let running = start(model, &options);
        let got = exchange(&running, &requests, 10_000);
        assert!(got == expected, "{model:?} {:?}", options.flush);
        running.stop();
    }
}

#[test]
fn large_values_are_stored_and_returned() {
    let value = vec![b'v'; 1 << 20];
    for (model, options) in resp_models() {
        let running = start(model, &options);
        let mut client = connect(&running);
        let set = client.call(&[b"SET", b"big", &value]).expect("a reply");
        assert_eq!(set, Value::ok(), "{model:?}");
        for _ in 0..3 {
            let got = client.call(&[b"GET", b"big"]).expect("a reply");
            assert!(got == Value::bulk(&value), "{model:?}");
        }
        running.stop();
    }
}

#[test]
fn an_invalid_request_is_answered_and_closes_only_its_connection() {
    let mut bytes = request("PING").repeat(3);
    bytes.extend_from_slice(b"*1\r\n!\r\n");
    bytes.extend(request("PING"));
    let expected = "+PONG\r\n".repeat(3) + "-ERR Protocol error: expected '$', got '!'\r\n";
    for (model, options) in resp_models() {
        let running = start(model, &options);
        let got = exchange(&running, &bytes, bytes.len());
        assert_eq!(String::from_utf8_lossy(&got), expected, "{model:?}");
        for noise in [&b"\0\xff\r\n*-9\r\n"[..], b"*1000000000000\r\n", b"*1\r\n$2000000\r\n"] {
            let got = exchange(&running, noise, 3);
            assert!(got.starts_with(b"-ERR") || got.is_empty(), "{model:?} {got:?}");
        }
        drop(stream(&running));
        assert!(is_served(&mut connect(&running), common::LONG), "{model:?}");
        running.stop();
    }
}

#[test]
fn many_connections_share_one_table() {
    for (model, options) in resp_models().into_iter().filter(|(m, _)| *m != Model::Sequential) {
        let running = start(model, &options);
        thread::scope(|scope| {
            for _ in 0..8 {
                let running = &running;
                scope.spawn(move || {
                    let request: &[&[u8]] = &[b"INCR", b"n"];
                    let replies = connect(running).pipeline(std::iter::repeat_n(request, 1_000));
                    let replies = replies.expect("replies");
                    assert!(
                        replies.windows(2).all(|two| two[0].as_integer() < two[1].as_integer())
                    );
                });
            }
        });
        let sum = connect(&running).call(&[b"GET", b"n"]).expect("a reply");
        assert_eq!(sum, Value::bulk("8000"), "{model:?}");
        running.stop();
    }
}

#[test]
fn a_client_which_does_not_read_uses_bounded_memory() {
    const ASKED: usize = 2_000;
    let value = vec![b'v'; 512 << 10];
    for (model, options) in resp_models().into_iter().filter(|(m, _)| *m != Model::Sequential) {
        let running = start(model, &Options { flush: Flush::Idle, ..options });
        let mut other = connect(&running);
        other.call(&[b"SET", b"big", &value]).expect("a reply");
        let before = driver::resident_bytes();
        let mut greedy = stream(&running);
        greedy.write_all(&request("GET big").repeat(ASKED)).expect("small enough to be taken");
        for _ in 0..20 {
            assert!(is_served(&mut other, common::LONG), "{model:?}");
            thread::sleep(Duration::from_millis(5));
        }
        let more = driver::resident_bytes().saturating_sub(before);
        // The requested replies are a gigabyte. A single writer may have 64 replies in flight.
        assert!(more < 100 << 20, "{model:?}: {more} bytes");
        let mut first = vec![0; 9 + value.len()];
        greedy.read_exact(&mut first).expect("the first reply is there");
        assert!(first.starts_with(b"$524288\r\n"));
        drop(greedy);
        running.stop();
    }
}

#[test]
fn stopping_a_model_closes_its_connections() {
    undisturbed(|| {
        let all = resp_models().into_iter().map(|(model, options)| (model, options, true));
        let silent = [Model::NullReader, Model::EchoAck, Model::AckEachRead]
            .map(|m| (m, Options::default(), false));
        for (model, options, replies) in all.chain(silent) {
            let running = start(model, &options);
            let mut idle = stream(&running);
            let mut half = stream(&running);
            if replies {
                idle.write_all(&request("PING")).expect("it reads");
                idle.read_exact(&mut [0; 7]).expect("a reply");
            }
            half.write_all(b"*2\r\n$4").expect("it reads, or will");
            let address = running.address;
            let since = Instant::now();
            running.stop();
            assert!(since.elapsed() < Duration::from_secs(60), "{model:?}");
            for mut stream in [idle, half] {
                // A reset is an end, too: the input of `half` may not have been read.
                assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "{model:?}");
            }
            assert!(std::net::TcpStream::connect(address).is_err(), "{model:?}");
        }
    });
}

#[test]
fn a_unix_socket_serves_the_same_table() {
    for (at, (model, options)) in resp_models().into_iter().enumerate() {
        let name = format!("sheafdb-model-{}-{at}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let running = start(model, &Options { unixsocket: Some(path.clone()), ..options });
        assert_eq!(running.unix(), Some(path.as_path()));
        let address = client::Address::Unix(path.clone());
        {
            let mut unix = client::Client::connect(&address, common::LONG).expect("it listens");
            assert_eq!(unix.call(&[b"SET", b"k", b"v"]).expect("a reply"), Value::ok());
        }
        let got = connect(&running).call(&[b"GET", b"k"]).expect("a reply");
        assert_eq!(got, Value::bulk("v"), "{model:?}");
        running.stop();
        assert!(!path.exists(), "{model:?} leaves no file behind");
    }
}

#[test]
fn half_closed_unused_connections_are_released() {
    for (model, options) in resp_models() {
        let running = start(model, &options);
        for _ in 0..50 {
            let gone = stream(&running);
            gone.shutdown(Shutdown::Write).expect("it is connected");
            let mut gone = gone;
            assert_eq!(gone.read(&mut [0]).expect("an end"), 0, "{model:?}");
        }
        assert!(eventually(|| running.totals().connections == 50), "{model:?}");
        assert!(is_served(&mut connect(&running), common::LONG), "{model:?}");
        running.stop();
    }
}
